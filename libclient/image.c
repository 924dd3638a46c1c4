/* SPDX-License-Identifier: ISC */
/*
 * Images.
 *
 * A device's image goes to rigd as a memfd that can no longer change. A host device's is a shared object,
 * loaded into this process from such a memfd: rigd never sees it, because it runs no client code. Its
 * functions are named by their addresses.
 *
 * The object is loaded by the name of its descriptor, which stays open as long as the object does: a number
 * used again would name the earlier object.
 */
#include "libclient/image.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libclient/wire.h"

struct rig_code *rig_code_ref(struct rig_code *code)
{
        /* relaxed: whoever refs holds a reference already */
        if (code)
                atomic_fetch_add_explicit(&code->refs, 1, memory_order_relaxed);
        return code;
}

struct rig_code *rig_code_unref(struct rig_code *code)
{
        /* acq_rel: the last call of its code is before its end */
        if (!code || atomic_fetch_sub_explicit(&code->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        dlclose(code->handle);
        rig_close(code->fd);
        free(code);
        return NULL;
}

/* A memfd of the bytes that cannot change any more. */
static int seal(const void *image, size_t bytes, int *ret_fd)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        const uint8_t *p = image;
        size_t left = bytes;

        fd = memfd_create("rig-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return rig_fail(-errno, "cannot make a memfd: %s", rig_strerror(errno));
        while (left > 0) {
                ssize_t n = write(fd, p, left);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return rig_fail(
                                -errno, "cannot copy an image of %zu bytes: %s", bytes, rig_strerror(errno));
                p += n;
                left -= (size_t)n;
        }
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return rig_fail(-errno, "cannot seal a memfd: %s", rig_strerror(errno));
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

static int load_code(int fd, struct rig_code **ret_code)
{
        _cleanup_(rig_freep) struct rig_code *code = NULL;
        char path[32];

        code = calloc(1, sizeof(*code));
        if (!code)
                return rig_fail_memory();
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        code->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!code->handle)
                return rig_fail(-ENOEXEC, "the image cannot be loaded: %s", dlerror());
        code->refs = 1;
        code->fd = fd;
        *ret_code = RIG_STEAL(code);
        return 0;
}

static int load_there(struct rig_image *image, int fd, size_t bytes)
{
        struct rig_msg_image_load m = {.device = image->device->id, .bytes = bytes};
        struct rig_request request = RIG_REQUEST(RIG_MSG_IMAGE_LOAD, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DONE);
        struct rig *rig = image->device->rig;
        int r;

        rig_lock_take(&rig->lock);
        r = rig_ids_take(&rig->image_ids, &image->id);
        rig_lock_drop(&rig->lock);
        if (r < 0)
                return r;
        m.image = image->id;
        request.fds = &fd;
        request.n_fds = 1;
        r = rig_wire_call(rig, &request, &call);
        if (r < 0) {
                rig_lock_take(&rig->lock);
                rig_ids_put(&rig->image_ids, image->id);
                rig_lock_drop(&rig->lock);
        }
        return r;
}

static int load(struct rig_image *image, const void *bytes, size_t n_bytes)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        int r;

        r = seal(bytes, n_bytes, &fd);
        if (r < 0)
                return r;
        if (!(image->device->flags & RIG_DEVICE_CLIENT_CODE))
                return load_there(image, fd, n_bytes);
        r = load_code(fd, &image->code);
        if (r == 0)
                rig_steal_fd(&fd); /* the code has it now */
        return r;
}

RIG_API int rig_image_load(
        struct rig_device *device, const void *image, size_t bytes, struct rig_image **ret_image)
{
        _cleanup_(rig_freep) struct rig_image *made = NULL;
        int r;

        if (!device || !image || bytes == 0 || !ret_image)
                return rig_fail(-EINVAL, "an image needs a device, its bytes and where to store it");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        if (!(device->flags & (RIG_DEVICE_LOADS_IMAGES | RIG_DEVICE_CLIENT_CODE)))
                return rig_fail(-EOPNOTSUPP, "%s loads no images", device->name);
        if (rig_device_lost_now(device))
                return rig_device_fail_lost(device);
        made = calloc(1, sizeof(*made));
        if (!made)
                return rig_fail_memory();
        made->refs = 1;
        made->device = device;
        r = load(made, image, bytes);
        if (r < 0)
                return r;
        rig_device_ref(device);
        *ret_image = RIG_STEAL(made);
        return 0;
}

RIG_API struct rig_image *rig_image_ref(struct rig_image *image)
{
        /* relaxed: whoever refs holds a reference already */
        if (image)
                atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
        return image;
}

static void drop_there(struct rig *rig, uint32_t id)
{
        struct rig_msg_image_drop m = {.image = id};

        if (rig_forked(rig))
                return;
        rig_lock_take(&rig->lock);
        if (rig_wire_order(rig, RIG_MSG_IMAGE_DROP, &m) == 0)
                rig_ids_put(&rig->image_ids, id);
        rig_lock_drop(&rig->lock);
}

RIG_API struct rig_image *rig_image_unref(struct rig_image *image)
{
        /* acq_rel: what others did with the image is before its end */
        if (!image || atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        if (image->code)
                rig_code_unref(image->code);
        else
                drop_there(image->device->rig, image->id);
        rig_device_unref(image->device);
        free(image);
        return NULL;
}

static int take_entry(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        *(uint64_t *)call->data = msg->entry_done.entry;
        return 0;
}

static int entry_there(struct rig_image *image, const char *name, uint64_t *ret_entry)
{
        struct rig_msg_image_entry m = {.image = image->id, .name = rig_text(name, RIG_PROTO_NAME_MAX)};
        struct rig_request request = RIG_REQUEST(RIG_MSG_IMAGE_ENTRY, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_ENTRY_DONE);
        uint64_t entry = 0;
        int r;

        if (strlen(name) > RIG_PROTO_NAME_MAX)
                return rig_fail(-ENOENT, "no function has a name of more than %u bytes", RIG_PROTO_NAME_MAX);
        call.take = take_entry;
        call.data = &entry;
        r = rig_wire_call(image->device->rig, &request, &call);
        if (r == 0)
                *ret_entry = entry;
        return r;
}

RIG_API int rig_image_entry(struct rig_image *image, const char *name, uint64_t *ret_entry)
{
        void *address;
        int r;

        if (!image || !name || !ret_entry)
                return rig_fail(-EINVAL, "an entry needs an image, a name and where to store it");
        r = rig_check(image->device->rig);
        if (r < 0)
                return r;
        if (!image->code)
                return entry_there(image, name, ret_entry);
        address = dlsym(image->code->handle, name);
        if (!address)
                return rig_fail(-ENOENT, "the image has no function %s", name);
        *ret_entry = (uint64_t)(uintptr_t)address;
        return 0;
}
