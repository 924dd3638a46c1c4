/* SPDX-License-Identifier: ISC */
/*
 * Buffers.
 *
 * A buffer is made by a request, whose answer says where its bytes are; a view by an ordered message that
 * needs no answer, since the library can check all that rigd would. The last reference publishes that the
 * buffer is dropped: what was published before still uses it, and rigd returns the memory once that is done.
 *
 * Two buffers that share a memory share it here too, except where the library cannot know: a descriptor that
 * was imported or adopted makes a memory of its own here, and is marked shared, so that rigd is asked for
 * its order.
 */
#include "libclient/buffer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "libclient/wait.h"
#include "libclient/wire.h"

struct made {
        struct rig_msg_buffer_done done;
        int fd;
};

static int take_buffer(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        const struct rig_msg_buffer_done *m = &msg->buffer_done;
        struct made *made = call->data;
        uint64_t end;

        made->done = *m;
        if (m->has_fd) {
                made->fd = rig_packet_fds_take(fds, m->fd);
                if (made->fd < 0)
                        return -EBADMSG;
        }
        return rig_add_overflow(m->offset, m->bytes, &end) ? -EBADMSG : 0;
}

/*
 * Whether a descriptor of the program's maps the memory: a memfd that stays as long as it is. What names
 * memory that the host does not address is shorter.
 */
static bool maps(int fd, const struct made *made)
{
        struct stat st;
        int seals;

        if (fd < 0 || fstat(fd, &st) < 0)
                return false;
        seals = fcntl(fd, F_GET_SEALS);
        return seals >= 0 && seals & F_SEAL_SHRINK &&
               !rig_range_outside(made->done.offset, made->done.bytes, (uint64_t)st.st_size);
}

static int memory_new(
        const struct rig_buffer_making *making, struct made *made, struct rig_memory **ret_memory)
{
        struct rig_device *device = making->device;
        struct rig_memory *memory = calloc(1, sizeof(*memory));

        if (!memory)
                return rig_fail_memory();
        memory->refs = 1;
        memory->fd = rig_steal_fd(&made->fd);
        memory->fd_offset = made->done.offset;
        if (memory->fd < 0 && maps(making->given_fd, made)) {
                memory->fd = fcntl(making->given_fd, F_DUPFD_CLOEXEC, 0);
                if (memory->fd < 0) {
                        free(memory);
                        return rig_fail(-errno, "cannot keep the descriptor: %s", rig_strerror(errno));
                }
        }
        memory->bytes = made->done.bytes;
        memory->access = made->done.access;
        memory->file = device->flags & RIG_DEVICE_FILES;
        memory->host = !memory->file && (memory->fd >= 0 || memory->bytes == 0);
        memory->shared = made->done.flags & 1;
        rig_lock_take(&device->rig->lock);
        memory->number = ++device->rig->memories;
        rig_lock_drop(&device->rig->lock);
        *ret_memory = memory;
        return 0;
}

static int buffer_new(
        const struct rig_buffer_making *making, struct made *made, struct rig_buffer **ret_buffer)
{
        _cleanup_(rig_freep) struct rig_buffer *buffer = NULL;
        int r;

        buffer = calloc(1, sizeof(*buffer));
        if (!buffer)
                return rig_fail_memory();
        buffer->refs = 1;
        buffer->id = *making->id;
        buffer->bytes = made->done.bytes;
        buffer->access = made->done.access;
        buffer->device = making->device;
        buffer->internal = making->internal;
        if (making->of) {
                buffer->memory = rig_memory_ref(making->of->memory);
                buffer->offset = making->of->offset;
        } else {
                r = memory_new(making, made, &buffer->memory);
                if (r < 0)
                        return r;
        }
        if (!buffer->internal)
                rig_device_ref(buffer->device);
        *ret_buffer = RIG_STEAL(buffer);
        return 0;
}

static int id_take(struct rig *rig, uint32_t *ret_id)
{
        int r;

        rig_lock_take(&rig->lock);
        r = rig_ids_take(&rig->buffer_ids, ret_id);
        rig_lock_drop(&rig->lock);
        return r;
}

static void id_put(struct rig *rig, uint32_t id)
{
        rig_lock_take(&rig->lock);
        rig_ids_put(&rig->buffer_ids, id);
        rig_lock_drop(&rig->lock);
}

/* Tells rigd that a buffer is gone; its number can be given again then. */
static void id_drop(struct rig *rig, uint32_t id)
{
        struct rig_msg_buffer_drop m = {.buffer = id};

        if (rig_forked(rig))
                return;
        rig_lock_take(&rig->lock);
        if (rig_wire_order(rig, RIG_MSG_BUFFER_DROP, &m) == 0)
                rig_ids_put(&rig->buffer_ids, id);
        rig_lock_drop(&rig->lock);
}

int rig_buffer_make(const struct rig_buffer_making *making, struct rig_buffer **ret_buffer)
{
        struct made made = {.fd = -EBADF};
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_BUFFER_DONE);
        struct rig *rig = making->device->rig;
        int r;

        r = id_take(rig, making->id);
        if (r < 0)
                return r;
        call.take = take_buffer;
        call.data = &made;
        r = rig_wire_call(rig, making->request, &call);
        if (r < 0)
                id_put(rig, *making->id);
        else {
                r = buffer_new(making, &made, ret_buffer);
                if (r < 0)
                        id_drop(rig, *making->id);
        }
        rig_close(made.fd);
        return r;
}

static int new_buffer(struct rig_device *device, uint64_t bytes, uint32_t memory, bool internal,
        struct rig_buffer **ret_buffer)
{
        struct rig_msg_buffer_new m = {.device = device->id, .bytes = bytes, .kind = memory};
        struct rig_request request = RIG_REQUEST(RIG_MSG_BUFFER_NEW, m);
        struct rig_buffer_making making = {.device = device,
                .request = &request,
                .id = &m.buffer,
                .given_fd = -EBADF,
                .internal = internal};

        return rig_buffer_make(&making, ret_buffer);
}

int rig_buffer_new_internal(
        struct rig_device *device, uint64_t bytes, uint32_t memory, struct rig_buffer **ret_buffer)
{
        return new_buffer(device, bytes, memory, true, ret_buffer);
}

RIG_API int rig_buffer_new(
        struct rig_device *device, uint64_t bytes, uint32_t memory, struct rig_buffer **ret_buffer)
{
        int r;

        if (!device || !ret_buffer || memory > RIG_MEMORY_MAPPED)
                return rig_fail(-EINVAL, "a buffer needs a device, a kind of memory and where to store it");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        return new_buffer(device, bytes, memory, false, ret_buffer);
}

RIG_API int rig_buffer_adopt(
        struct rig_device *device, int fd, uint64_t offset, uint64_t bytes, struct rig_buffer **ret_buffer)
{
        struct rig_msg_buffer_adopt m = {.offset = offset, .bytes = bytes};
        struct rig_request request = RIG_REQUEST(RIG_MSG_BUFFER_ADOPT, m);
        struct rig_buffer_making making = {
                .device = device, .request = &request, .id = &m.buffer, .given_fd = fd};
        int r;

        if (!device || !ret_buffer)
                return rig_fail(-EINVAL, "a buffer needs a device and where to store it");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        if (fd < 0)
                return rig_fail(-EBADF, "%d is no descriptor", fd);
        if (device->flags & RIG_DEVICE_FILES)
                making.given_fd = -EBADF;
        m.device = device->id;
        request.fds = &fd;
        request.n_fds = 1;
        return rig_buffer_make(&making, ret_buffer);
}

RIG_API int rig_buffer_borrow(
        struct rig_device *device, struct rig_buffer *buffer, struct rig_buffer **ret_buffer)
{
        struct rig_msg_buffer_borrow m = {0};
        struct rig_request request = RIG_REQUEST(RIG_MSG_BUFFER_BORROW, m);
        struct rig_buffer_making making = {
                .device = device, .request = &request, .id = &m.buffer, .of = buffer, .given_fd = -EBADF};
        int r;

        if (!device || !buffer || !ret_buffer || device->rig != buffer->device->rig)
                return rig_fail(-EINVAL, "a borrow needs a device and a buffer of one connection");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        m.device = device->id;
        m.of = buffer->id;
        return rig_buffer_make(&making, ret_buffer);
}

int rig_buffer_check_range(const struct rig_buffer *buffer, uint64_t offset, uint64_t bytes)
{
        if (!rig_range_outside(offset, bytes, buffer->bytes))
                return 0;
        return rig_fail(-ERANGE, "%llu bytes from %llu are not inside a buffer of %llu",
                (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)buffer->bytes);
}

/* A view has no answer that could refuse it, so its place in rigd's limit is counted here. With the lock
 * held. */
static int check_objects(const struct rig *rig)
{
        uint64_t n = rig_ids_in_use(&rig->buffer_ids) + rig_ids_in_use(&rig->work_ids) +
                     rig_ids_in_use(&rig->image_ids);

        if (n <= rig->objects_limit)
                return 0;
        return rig_fail(-EDQUOT,
                "this connection may have %llu buffers, works and images (ClientObjectsMax), and has them",
                (unsigned long long)rig->objects_limit);
}

/* Publishes a view, whose number is new. */
static int order_view(struct rig *rig, struct rig_msg_buffer_view *m)
{
        int r;

        r = id_take(rig, &m->buffer);
        if (r < 0)
                return r;
        rig_lock_take(&rig->lock);
        r = check_objects(rig);
        if (r == 0)
                r = rig_wire_order(rig, RIG_MSG_BUFFER_VIEW, m);
        if (r < 0)
                rig_ids_put(&rig->buffer_ids, m->buffer);
        rig_lock_drop(&rig->lock);
        return r;
}

RIG_API int rig_buffer_view(
        struct rig_buffer *buffer, uint64_t offset, uint64_t bytes, struct rig_buffer **ret_buffer)
{
        struct rig_msg_buffer_view m = {.offset = offset, .bytes = bytes};
        struct rig_buffer *view;
        int r;

        if (!buffer || !ret_buffer)
                return rig_fail(-EINVAL, "a view needs a buffer and where to store it");
        r = rig_check(buffer->device->rig);
        if (r < 0)
                return r;
        r = rig_buffer_check_range(buffer, offset, bytes);
        if (r < 0)
                return r;
        view = calloc(1, sizeof(*view));
        if (!view)
                return rig_fail_memory();
        m.of = buffer->id;
        r = order_view(buffer->device->rig, &m);
        if (r < 0) {
                free(view);
                return r;
        }
        *view = (struct rig_buffer){.refs = 1,
                .id = m.buffer,
                .access = buffer->access,
                .device = rig_device_ref(buffer->device),
                .memory = rig_memory_ref(buffer->memory),
                .offset = buffer->offset + offset,
                .bytes = bytes};
        *ret_buffer = view;
        return 0;
}

RIG_API struct rig_buffer *rig_buffer_ref(struct rig_buffer *buffer)
{
        /* relaxed: whoever refs holds a reference already */
        if (buffer)
                atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
        return buffer;
}

RIG_API struct rig_buffer *rig_buffer_unref(struct rig_buffer *buffer)
{
        /* acq_rel: what others did with the buffer is before its end */
        if (!buffer || atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        id_drop(buffer->device->rig, buffer->id);
        rig_memory_unref(buffer->memory);
        if (!buffer->internal)
                rig_device_unref(buffer->device);
        free(buffer);
        return NULL;
}

RIG_API uint64_t rig_buffer_bytes(const struct rig_buffer *buffer)
{
        return buffer->bytes;
}

RIG_API struct rig_device *rig_buffer_device(const struct rig_buffer *buffer)
{
        return buffer->device;
}

int rig_buffer_address(const struct rig_buffer *buffer, uint8_t **ret_address)
{
        uint8_t *map;
        int r;

        r = rig_memory_map(buffer->memory, &map);
        if (r < 0)
                return r;
        *ret_address = map + buffer->offset;
        return 0;
}

RIG_API int rig_buffer_map(struct rig_buffer *buffer, void **ret_address)
{
        uint8_t *address;
        int r;

        if (!buffer || !ret_address)
                return rig_fail(-EINVAL, "a mapping needs a buffer and where to store its address");
        if (rig_forked(buffer->device->rig))
                return rig_check(buffer->device->rig);
        r = rig_buffer_address(buffer, &address);
        if (r < 0)
                return r;
        *ret_address = address;
        return 0;
}

bool rig_buffer_fits_device(const struct rig_buffer *buffer, const struct rig_device *device)
{
        const struct rig_memory *memory = buffer->memory;

        if (rig_likely(buffer->device == device))
                return true;
        if (buffer->device->rig != device->rig)
                return false;
        return memory->bytes == 0 || (device->flags & RIG_DEVICE_NAMES_HOST && memory->host);
}

/* ---------------------------------------------------------------- waiting */

/* A device that a wait is for; held meanwhile. */
struct target {
        struct rig_device *device;
        uint64_t value;
};

static uint64_t awaited(const struct rig_stamp *stamp, uint32_t access)
{
        return access & RIG_WRITE ? stamp->last_use : stamp->last_write;
}

/*
 * What a memory that is this connection's alone waits for, held. With the lock held; it is not dropped.
 * Return: 0; -EAGAIN where only rigd knows.
 */
static int find_targets(struct rig_buffer *buffer, uint32_t access, struct target *targets, int *n)
{
        struct rig_memory *memory = buffer->memory;
        struct rig *rig = buffer->device->rig;

        if (memory->crowded || atomic_load_explicit(&memory->shared, memory_order_relaxed) ||
                atomic_load_explicit(&rig->seen_loss, memory_order_relaxed))
                return -EAGAIN;
        for (uint32_t i = 0; i < memory->n_stamps; i++) {
                const struct rig_stamp *stamp = &memory->stamps[i];
                struct rig_device *device = rig->devices[stamp->device];
                uint64_t value = awaited(stamp, access);

                if (value == 0)
                        continue;
                if (!device || device->epoch != stamp->epoch)
                        return -EAGAIN; /* it closed, and its word with it */
                if (rig_device_now(device) >= value)
                        continue;
                if (!rig_device_hold(device))
                        return -EAGAIN;
                targets[(*n)++] = (struct target){.device = device, .value = value};
        }
        return 0;
}

/* Reads every failure that is due, of all devices. Return: 0, or what broke the connection. */
static int catch_up(struct rig *rig)
{
        int r = 0;

        rig_lock_take(&rig->lock);
        if (!rig->words)
                rig_wire_drain(rig);
        for (size_t i = 1; i < RIG_ARRAY_SIZE(rig->devices) && r == 0; i++) {
                struct rig_device *device = rig->devices[i];

                if (!device || rig_device_faultless(device) || !rig_device_hold(device))
                        continue;
                r = rig_device_catch_up(device);
                rig_lock_drop(&rig->lock);
                rig_device_unref(device);
                rig_lock_take(&rig->lock);
        }
        rig_lock_drop(&rig->lock);
        return r;
}

/* Waits by the library's own stamps. Return: 0; -EAGAIN where rigd has to be asked; or an error. */
static int settle_here(struct rig_buffer *buffer, uint32_t access, uint64_t deadline_usec)
{
        struct target targets[RIG_STAMPS_MAX];
        struct rig *rig = buffer->device->rig;
        int n = 0, r;

        rig_lock_take(&rig->lock);
        r = find_targets(buffer, access, targets, &n);
        rig_lock_drop(&rig->lock);
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = rig_await(targets[i].device, targets[i].value, deadline_usec);
                rig_device_unref(targets[i].device);
        }
        if (r == 0)
                r = catch_up(rig);
        /* What was lost, and what is lost with it, is rigd's to say. */
        if (r == -ENODEV || (r == 0 && atomic_load_explicit(&rig->seen_loss, memory_order_acquire)))
                return -EAGAIN;
        return r;
}

static int settle_there(struct rig_buffer *buffer, uint32_t access, uint64_t deadline_usec)
{
        struct rig_msg_buffer_wait m = {.buffer = buffer->id, .access = access, .time = rig_now_nsec()};
        struct rig_request request = RIG_REQUEST(RIG_MSG_BUFFER_WAIT, m);
        struct rig_call *call = calloc(1, sizeof(*call));

        if (!call)
                return rig_fail_memory();
        call->expect = RIG_MSG_DONE;
        return rig_wire_call_until(buffer->device->rig, &request, call, deadline_usec);
}

int rig_buffer_settle(struct rig_buffer *buffer, uint32_t access, uint64_t deadline_usec)
{
        int r;

        r = settle_here(buffer, access, deadline_usec);
        if (r == -EAGAIN)
                r = settle_there(buffer, access, deadline_usec);
        if (r == -ETIMEDOUT)
                return rig_fail(r, "the buffer is still in use after the time given");
        return r;
}

static const struct rig_stamp *stamp_of(const struct rig_memory *memory, const struct rig_device *device)
{
        static const struct rig_stamp none;

        for (uint32_t i = 0; i < memory->n_stamps; i++)
                if (memory->stamps[i].device == device->id && memory->stamps[i].epoch == device->epoch)
                        return &memory->stamps[i];
        return &none;
}

/* Tells of a run on the memory that failed and was not told yet. */
static int tell_failure(struct rig_buffer *buffer)
{
        struct rig_memory *memory = buffer->memory;
        struct rig *rig = buffer->device->rig;
        int r = 0;

        rig_lock_take(&rig->lock);
        for (size_t i = 1; i < RIG_ARRAY_SIZE(rig->devices) && r == 0; i++) {
                const struct rig_stamp *stamp;

                if (!rig->devices[i])
                        continue;
                stamp = stamp_of(memory, rig->devices[i]);
                r = rig_device_tell_failure_of(
                        rig->devices[i], memory->number, stamp->last_write, stamp->last_use);
        }
        rig_lock_drop(&rig->lock);
        return r;
}

RIG_API int rig_buffer_wait(struct rig_buffer *buffer, uint32_t access, uint64_t timeout_usec)
{
        int r;

        if (!buffer || access == 0 || access > RIG_READ_WRITE)
                return rig_fail(-EINVAL, "a wait needs a buffer and RIG_READ or RIG_WRITE");
        r = rig_check(buffer->device->rig);
        if (r < 0)
                return r;
        r = rig_buffer_settle(buffer, access, rig_deadline_usec(timeout_usec));
        if (r == 0)
                r = catch_up(buffer->device->rig);
        return r < 0 ? r : tell_failure(buffer);
}
