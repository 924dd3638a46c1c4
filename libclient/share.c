/* SPDX-License-Identifier: ISC */
/*
 * Sharing a memory with another process.
 *
 * The descriptor that rigd gives names the memory; whoever presents it, in any connection, means that
 * memory. From before the export is sent, runs on the memory carry the time of their call, so that rigd can
 * keep the order that the processes themselves could see, and waits for it ask rigd.
 */
#include "libclient/buffer.h"
#include "libclient/wire.h"

static int take_descriptor(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        int *fd = call->data;

        if (!msg->buffer_done.has_fd)
                return -EBADMSG;
        *fd = rig_packet_fds_take(fds, msg->buffer_done.fd);
        return *fd < 0 ? -EBADMSG : 0;
}

RIG_API int rig_buffer_export(struct rig_buffer *buffer, int *ret_fd)
{
        struct rig_msg_buffer_export m = {0};
        struct rig_request request = RIG_REQUEST(RIG_MSG_BUFFER_EXPORT, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_BUFFER_DONE);
        struct rig *rig;
        int fd = -EBADF, r;

        if (!buffer || !ret_fd)
                return rig_fail(-EINVAL, "an export needs a buffer and where to store the descriptor");
        rig = buffer->device->rig;
        r = rig_check(rig);
        if (r < 0)
                return r;
        rig_lock_take(&rig->lock);
        /* relaxed: read under the lock by the runs that come after */
        atomic_store_explicit(&buffer->memory->shared, true, memory_order_relaxed);
        rig_lock_drop(&rig->lock);

        m.buffer = buffer->id;
        call.take = take_descriptor;
        call.data = &fd;
        r = rig_wire_call(rig, &request, &call);
        if (r < 0)
                return r;
        *ret_fd = fd;
        return 0;
}

RIG_API int rig_buffer_import(struct rig_device *device, int fd, struct rig_buffer **ret_buffer)
{
        struct rig_msg_buffer_import m = {0};
        struct rig_request request = RIG_REQUEST(RIG_MSG_BUFFER_IMPORT, m);
        struct rig_buffer_making making = {
                .device = device, .request = &request, .id = &m.buffer, .given_fd = fd};
        int r;

        if (!device || !ret_buffer)
                return rig_fail(-EINVAL, "an import needs a device and where to store the buffer");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        if (fd < 0)
                return rig_fail(-EBADF, "%d is no descriptor", fd);
        m.device = device->id;
        request.fds = &fd;
        request.n_fds = 1;
        return rig_buffer_make(&making, ret_buffer);
}
