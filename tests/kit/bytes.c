/* SPDX-License-Identifier: ISC */
/*
 * Works, buffers, and bytes moved in and out of them beside the driver: through rigd's mapping where the
 * memory has one, through a descriptor of the kit's own where it is a file. Only memory that nobody but the
 * device reaches is read and written by the device's copies, through pinned memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/drivers/parts.h"
#include "daemon/order/order.h"
#include "tests/kit/kit.h"

#define TAIL_BYTES 64 /* behind each buffer, so that writes beyond its end are seen */

/* ---------------------------------------------------------------- buffers */

/* A new file without a name, and two descriptors of it that share nothing. */
static int make_file(uint64_t bytes, int *ret_fd, int *ret_own_fd)
{
        const char *folder = getenv("TMPDIR");
        static unsigned made;
        char path[256];
        int fd, own;

        snprintf(path, sizeof(path), "%s/rig-kit-%d-%u", folder ? folder : "/tmp", (int)getpid(), made++);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        own = open(path, O_RDWR | O_CLOEXEC);
        unlink(path);
        if (own < 0 || ftruncate(own, (off_t)bytes) < 0) {
                rig_close(own);
                rig_close(fd);
                return -EIO;
        }
        *ret_fd = fd;
        *ret_own_fd = own;
        return 0;
}

static struct kit_buffer new_buffer(struct rig_device *device, uint64_t bytes, uint64_t offset)
{
        return (struct kit_buffer){.device = device, .own_fd = -EBADF, .bytes = bytes, .offset = offset};
}

static bool file_buffer(struct kit_buffer *b)
{
        struct rig_error e;
        int fd = -EBADF, r;

        b->is_file = true;
        if (make_file(b->offset + b->bytes + TAIL_BYTES, &fd, &b->own_fd) < 0)
                return kit_expect(b->device->kit, false, "the kit could not make a file");
        r = kit_adopt(b->device, fd, &b->region, &e);
        if (!kit_expect(b->device->kit, r == 0, "a file was not adopted: %s", e.text)) {
                rig_close(fd);
                b->own_fd = rig_close(b->own_fd);
                return false;
        }
        return true;
}

static bool allocated_buffer(struct kit_buffer *b, enum rig_memory_kind kind)
{
        uint64_t bytes = b->offset + b->bytes + TAIL_BYTES;
        int r = kit_alloc(b->device, bytes, kind, &b->region);

        return kit_expect(b->device->kit, r == 0 && b->region.bytes >= bytes,
                "%llu bytes of %s memory: error %d, %llu bytes", (unsigned long long)bytes,
                rig_memory_kind_to_string(kind), r, (unsigned long long)b->region.bytes);
}

bool kit_buffer_near(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret)
{
        *ret = new_buffer(device, bytes, offset);
        return kit_flags(device) & RIG_DEVICE_FILES ? file_buffer(ret)
                                                    : allocated_buffer(ret, RIG_MEMORY_DEVICE);
}

bool kit_buffer_far(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret)
{
        uint32_t flags = kit_flags(device);

        *ret = new_buffer(device, bytes, offset);
        if (flags & RIG_DEVICE_NAMES_HOST) {
                ret->is_host = true;
                return rig_region_alloc_host(offset + bytes + TAIL_BYTES, &ret->region, NULL) == 0;
        }
        if (flags & RIG_DEVICE_BORROWS_HOST) {
                if (rig_region_alloc_host(offset + bytes + TAIL_BYTES, &ret->lent, NULL) < 0)
                        return false;
                if (kit_expect(device->kit, kit_borrow(device, &ret->lent, &ret->region) == 0, "no borrow"))
                        return true;
                rig_region_free_host(&ret->lent);
                return false;
        }
        return !(flags & RIG_DEVICE_HOST_ADDRESSED) && allocated_buffer(ret, RIG_MEMORY_PINNED);
}

bool kit_buffer_other(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret)
{
        return kit_flags(device) & RIG_DEVICE_FILES ? kit_buffer_far(device, bytes, offset, ret)
                                                    : kit_buffer_near(device, bytes, offset, ret);
}

bool kit_buffer_visible(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret)
{
        return kit_flags(device) & (RIG_DEVICE_FILES | RIG_DEVICE_HOST_ADDRESSED)
                       ? kit_buffer_near(device, bytes, offset, ret)
                       : kit_buffer_far(device, bytes, offset, ret);
}

void kit_buffer_free(struct kit_buffer *b)
{
        if (b->is_host)
                rig_region_free_host(&b->region);
        else
                kit_free(b->device->kit, &b->region);
        if (b->lent.host)
                rig_region_free_host(&b->lent);
        b->own_fd = rig_close(b->own_fd);
}

struct rig_filled kit_filled(const struct kit_buffer *b)
{
        return (struct rig_filled){
                .region = b->bytes ? &b->region : NULL, .offset = b->offset, .bytes = b->bytes};
}

/* ---------------------------------------------------------------- bytes */

static void file_transfer(
        const struct kit_buffer *b, uint64_t offset, void *data, uint64_t bytes, bool write)
{
        uint8_t *at = data;

        while (bytes) {
                ssize_t n = write ? pwrite(b->own_fd, at, bytes, (off_t)(b->offset + offset))
                                  : pread(b->own_fd, at, bytes, (off_t)(b->offset + offset));

                if (!kit_expect(b->device->kit, n > 0, "the kit's own access to the file failed"))
                        return;
                at += n;
                offset += (uint64_t)n;
                bytes -= (uint64_t)n;
        }
}

/* Through pinned memory, by the device's copy: the memory is nobody else's to reach. */
static void staged_transfer(
        const struct kit_buffer *b, uint64_t offset, void *data, uint64_t bytes, bool write)
{
        struct rig_device *device = b->device;
        struct rig_driver_work *work = kit_work(2);
        struct rig_region staging;
        struct rig_filled slots[2] = {{&b->region, b->offset + offset, bytes}, {&staging, 0, bytes}};

        if (bytes && kit_expect(device->kit, kit_alloc(device, bytes, RIG_MEMORY_PINNED, &staging) == 0,
                             "no staging")) {
                if (write)
                        memcpy(staging.host, data, bytes);
                kit_part_copy(work, kit_queue(device, RIG_RUNS_COPY, 0), 0, write ? 0 : 1, 0, write ? 1 : 0,
                        0, bytes);
                if (kit_prepare(device, work) && kit_submit(device, work, slots))
                        kit_finish(device);
                if (!write)
                        memcpy(data, staging.host, bytes);
                kit_free(device->kit, &staging);
        }
        kit_work_free(device, work);
}

/* The buffer's bytes as the host addresses them: borrowed memory by whom it was borrowed from. Or NULL. */
static uint8_t *host_bytes(const struct kit_buffer *b)
{
        uint8_t *host = b->lent.host ? b->lent.host : b->region.host;

        return host ? host + b->offset : NULL;
}

void kit_put(const struct kit_buffer *b, uint64_t offset, const void *data, uint64_t bytes)
{
        void *copy;

        if (host_bytes(b)) {
                memcpy(host_bytes(b) + offset, data, bytes);
                return;
        }
        copy = malloc(bytes + 1);
        rig_assert(copy);
        memcpy(copy, data, bytes);
        if (b->is_file)
                file_transfer(b, offset, copy, bytes, true);
        else
                staged_transfer(b, offset, copy, bytes, true);
        free(copy);
}

void kit_get(const struct kit_buffer *b, uint64_t offset, void *data, uint64_t bytes)
{
        if (host_bytes(b))
                memcpy(data, host_bytes(b) + offset, bytes);
        else if (b->is_file)
                file_transfer(b, offset, data, bytes, false);
        else
                staged_transfer(b, offset, data, bytes, false);
}

void kit_scribble(struct kit *kit, const struct kit_buffer *buffer, uint8_t *ret_data)
{
        for (uint64_t i = 0; i < buffer->bytes; i++)
                ret_data[i] = (uint8_t)kit_draw(kit, 256);
        kit_put(buffer, 0, ret_data, buffer->bytes);
}

/* ---------------------------------------------------------------- works */

struct rig_driver_work *kit_work(uint32_t n_slots)
{
        struct rig_driver_work *work = calloc(1, sizeof(*work));

        rig_assert(work && n_slots <= RIG_SLOTS_MAX);
        work->n_slots = n_slots;
        return work;
}

static uint32_t add_part(struct rig_driver_work *work, const struct rig_part *part)
{
        rig_assert(work->n_parts < RIG_PARTS_MAX && part->queue < RIG_QUEUES_MAX);
        work->parts[work->n_parts] = *part;
        return work->n_parts++;
}

uint32_t kit_part_copy(struct rig_driver_work *work, int queue, uint32_t after, uint32_t dst,
        uint64_t dst_offset, uint32_t src, uint64_t src_offset, uint64_t bytes)
{
        work->access[dst] |= RIG_ACCESS_WRITE;
        work->access[src] |= RIG_ACCESS_READ;
        return add_part(work, &(struct rig_part){.kind = RIG_PART_COPY,
                                      .queue = (uint32_t)queue,
                                      .after = after,
                                      .dst = {dst, dst_offset},
                                      .src = {src, src_offset},
                                      .bytes = bytes});
}

uint32_t kit_part_fill(struct rig_driver_work *work, int queue, uint32_t after, uint32_t dst,
        uint64_t offset, uint64_t bytes, uint32_t pattern)
{
        work->access[dst] |= RIG_ACCESS_WRITE;
        return add_part(work, &(struct rig_part){.kind = RIG_PART_FILL,
                                      .queue = (uint32_t)queue,
                                      .after = after,
                                      .dst = {dst, offset},
                                      .bytes = bytes,
                                      .pattern = pattern});
}

uint32_t kit_part_sync(struct rig_driver_work *work, int queue, uint32_t after, uint32_t dst)
{
        work->access[dst] |= RIG_ACCESS_READ;
        return add_part(work,
                &(struct rig_part){
                        .kind = RIG_PART_SYNC, .queue = (uint32_t)queue, .after = after, .dst = {dst, 0}});
}

uint32_t kit_part_launch(struct rig_driver_work *work, int queue, uint32_t after,
        struct rig_driver_image *image, uint64_t entry, const void *params, uint32_t params_bytes,
        const struct rig_patch *patches, uint32_t n)
{
        struct rig_part part = {.kind = RIG_PART_LAUNCH,
                .queue = (uint32_t)queue,
                .after = after,
                .image = image,
                .entry = entry,
                .grid = {1, 1, 1},
                .group = {1, 1, 1},
                .params_bytes = params_bytes,
                .n_patches = n};

        part.params = malloc(params_bytes + 1);
        part.patches = malloc((n + 1) * sizeof(*patches));
        rig_assert(part.params && part.patches);
        if (params_bytes)
                memcpy(part.params, params, params_bytes);
        if (n)
                memcpy(part.patches, patches, n * sizeof(*patches));
        return add_part(work, &part);
}

/* Slow on purpose: a byte at a time, so that it shares nothing with what it checks. */
void kit_interpret(const struct rig_part *part, const struct rig_filled *slots)
{
        uint8_t *dst = rig_operand_host(&part->dst, slots);
        const uint8_t *src = part->kind == RIG_PART_COPY ? rig_operand_host(&part->src, slots) : NULL;
        uint64_t bytes = rig_part_moves(part, slots);

        for (uint64_t i = 0; i < bytes; i++)
                dst[i] = src ? src[i] : ((const uint8_t *)&part->pattern)[i % 4];
}
