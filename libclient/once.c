/* SPDX-License-Identifier: ISC */
/*
 * One-shot calls.
 *
 * For each kind of part a device has one work of the library's own, with open slots and no lengths, made
 * when it is first needed. A call over a part of a buffer makes a view for it, runs the work and drops the
 * view again: all of it is one-way. A fill's pattern is in its work, so another pattern makes another work
 * in its place.
 *
 * A copy runs on the destination's device where that can do it, else on the source's, else on one that names
 * the memory of both; what no device can do in one step goes through staging memory (staging.c).
 */
#include "libclient/once.h"

#include <string.h>

#include "libclient/run.h"
#include "libclient/staging.h"
#include "libclient/wait.h"
#include "libclient/wire.h"

/* ---------------------------------------------------------------- the library's own works */

/* Which of a device's works. */
enum once {
        ONCE_COPY,
        ONCE_FILL,
        ONCE_SYNC,       /* of a file that is read */
        ONCE_SYNC_WRITE, /* of a file opened to write only: it admits no other access */
        _ONCE_MAX,
};

static const struct {
        enum rig_part_kind kind;
        uint32_t runs;
} once_table[_ONCE_MAX] = {
        [ONCE_COPY] = {RIG_PART_COPY, RIG_RUNS_COPY},
        [ONCE_FILL] = {RIG_PART_FILL, RIG_RUNS_FILL},
        [ONCE_SYNC] = {RIG_PART_SYNC, RIG_RUNS_SYNC},
        [ONCE_SYNC_WRITE] = {RIG_PART_SYNC, RIG_RUNS_SYNC},
};
static_assert(_ONCE_MAX <= RIG_ONCE_MAX, "a device has room for each");

static int add_part(struct rig_work *work, enum once once, uint32_t queue, uint32_t pattern)
{
        int dst, src;

        switch (once) {
        case ONCE_COPY:
                dst = rig_work_slot(work, RIG_WRITE);
                src = rig_work_slot(work, RIG_READ);
                return rig_work_copy(work, (int)queue, dst, 0, src, 0, RIG_WHOLE);
        case ONCE_FILL:
                dst = rig_work_slot(work, RIG_WRITE);
                return rig_work_fill(work, (int)queue, dst, 0, RIG_WHOLE, pattern);
        default:
                dst = rig_work_slot(work, once == ONCE_SYNC ? RIG_READ : RIG_WRITE);
                return rig_work_sync(work, (int)queue, dst);
        }
}

static int make_work(struct rig_device *device, enum once once, uint32_t pattern, struct rig_work **ret_work)
{
        struct rig_work *work;
        uint32_t queue;
        int r;

        if (!rig_device_runs(device, once_table[once].runs, &queue))
                return rig_fail(-EOPNOTSUPP, "%s runs no %s", device->name,
                        rig_part_kind_to_string(once_table[once].kind));
        r = rig_work_new_internal(device, &work);
        if (r < 0)
                return r;
        r = add_part(work, once, queue, pattern);
        if (r >= 0)
                r = rig_work_prepare(work);
        if (r < 0) {
                rig_work_unref(work);
                return r;
        }
        *ret_work = work;
        return 0;
}

/* A reference on the device's work for a kind of part. */
static int get_work(struct rig_device *device, enum once once, uint32_t pattern, struct rig_work **ret_work)
{
        struct rig_work **kept = &device->once[once], *old = NULL;
        int r = 0;

        pthread_mutex_lock(&device->once_mutex);
        if (*kept && once == ONCE_FILL && (*kept)->parts[0].pattern != pattern)
                old = RIG_STEAL(*kept);
        if (!*kept)
                r = make_work(device, once, pattern, kept);
        if (r == 0)
                *ret_work = rig_work_ref(*kept);
        pthread_mutex_unlock(&device->once_mutex);
        rig_work_unref(old);
        return r;
}

/* A buffer of exactly the range: the range's own, or a view. */
static int exactly(const struct rig_range *range, struct rig_buffer **ret_buffer)
{
        int r;

        r = rig_buffer_check_range(range->buffer, range->offset, range->bytes);
        if (r < 0)
                return r;
        if (range->offset == 0 && range->bytes == range->buffer->bytes) {
                *ret_buffer = rig_buffer_ref(range->buffer);
                return 0;
        }
        return rig_buffer_view(range->buffer, range->offset, range->bytes, ret_buffer);
}

static int run_once(struct rig_device *device, enum once once, uint32_t pattern,
        const struct rig_range *ranges, size_t n_ranges, struct rig_point *ret_point)
{
        struct rig_buffer *buffers[2] = {NULL, NULL};
        struct rig_work *work = NULL;
        int r = 0;

        for (size_t i = 0; i < n_ranges && r == 0; i++)
                r = exactly(&ranges[i], &buffers[i]);
        if (r == 0)
                r = get_work(device, once, pattern, &work);
        if (r == 0)
                r = rig_run(work, buffers, n_ranges, NULL, 0, ret_point);
        rig_work_unref(work);
        for (size_t i = 0; i < n_ranges; i++)
                rig_buffer_unref(buffers[i]);
        return r;
}

bool rig_once_can_copy(
        const struct rig_device *device, const struct rig_buffer *dst, const struct rig_buffer *src)
{
        uint32_t queue;

        return rig_device_runs(device, RIG_RUNS_COPY, &queue) && rig_buffer_fits_device(dst, device) &&
               rig_buffer_fits_device(src, device) && !(dst->memory->file && src->memory->file);
}

int rig_once_copy(struct rig_device *device, const struct rig_range *dst, const struct rig_range *src,
        struct rig_point *ret_point)
{
        const struct rig_range ranges[] = {*dst, *src};

        return run_once(device, ONCE_COPY, 0, ranges, 2, ret_point);
}

int rig_once_fill(struct rig_device *device, const struct rig_range *dst, uint32_t pattern,
        struct rig_point *ret_point)
{
        return run_once(device, ONCE_FILL, pattern, dst, 1, ret_point);
}

int rig_once_settle(const struct rig_point *point)
{
        struct rig_device *device = point->device;
        int r;

        r = rig_await(device, point->value, RIG_USEC_INFINITY);
        if (r < 0 || rig_likely(rig_device_faultless(device)))
                return r;
        rig_lock_take(&device->rig->lock);
        r = rig_device_catch_up(device);
        if (r == 0)
                r = rig_device_tell_failure(device, point->value, point->value);
        rig_lock_drop(&device->rig->lock);
        return r;
}

/* ---------------------------------------------------------------- the calls */

static int check_access(const struct rig_buffer *buffer, uint32_t access)
{
        if (!(access & ~buffer->access))
                return 0;
        return rig_fail(
                -EACCES, "the buffer's memory admits no %s", access == RIG_WRITE ? "writes" : "reads");
}

static int check_copy(const struct rig_range *dst, const struct rig_range *src)
{
        int r;

        if (dst->buffer->device->rig != src->buffer->device->rig)
                return rig_fail(-EXDEV, "the buffers are of two connections");
        r = rig_check(dst->buffer->device->rig);
        if (r == 0)
                r = rig_buffer_check_range(dst->buffer, dst->offset, dst->bytes);
        if (r == 0)
                r = rig_buffer_check_range(src->buffer, src->offset, src->bytes);
        if (r == 0)
                r = check_access(dst->buffer, RIG_WRITE);
        if (r == 0)
                r = check_access(src->buffer, RIG_READ);
        return r;
}

RIG_API int rig_buffer_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes, struct rig_point *ret_point)
{
        const struct rig_range to = {.buffer = dst, .offset = dst_offset, .bytes = bytes};
        const struct rig_range from = {.buffer = src, .offset = src_offset, .bytes = bytes};
        int r;

        if (!dst || !src)
                return rig_fail(-EINVAL, "a copy needs two buffers");
        r = check_copy(&to, &from);
        if (r < 0)
                return r;
        if (rig_once_can_copy(dst->device, dst, src))
                return rig_once_copy(dst->device, &to, &from, ret_point);
        if (rig_once_can_copy(src->device, dst, src))
                return rig_once_copy(src->device, &to, &from, ret_point);
        return rig_stage_copy(&to, &from, ret_point);
}

RIG_API int rig_buffer_fill(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t pattern,
        struct rig_point *ret_point)
{
        const struct rig_range to = {.buffer = buffer, .offset = offset, .bytes = bytes};
        uint32_t queue;
        int r;

        if (!buffer || offset % 4 != 0 || bytes % 4 != 0)
                return rig_fail(
                        -EINVAL, "a fill needs a buffer, and an offset and bytes that are multiples of 4");
        r = rig_check(buffer->device->rig);
        if (r == 0)
                r = rig_buffer_check_range(buffer, offset, bytes);
        if (r == 0)
                r = check_access(buffer, RIG_WRITE);
        if (r < 0)
                return r;
        if (rig_device_runs(buffer->device, RIG_RUNS_FILL, &queue) &&
                rig_buffer_fits_device(buffer, buffer->device))
                return rig_once_fill(buffer->device, &to, pattern, ret_point);
        return rig_stage_fill(&to, pattern, ret_point);
}

RIG_API int rig_buffer_sync(struct rig_buffer *buffer, struct rig_point *ret_point)
{
        struct rig_range range = {.buffer = buffer};
        int r;

        if (!buffer)
                return rig_fail(-EINVAL, "no buffer to sync");
        r = rig_check(buffer->device->rig);
        if (r < 0)
                return r;
        if (!buffer->memory->file)
                return rig_fail(-EOPNOTSUPP, "the buffer is no file's");
        range.bytes = buffer->bytes;
        return run_once(buffer->device, buffer->access & RIG_READ ? ONCE_SYNC : ONCE_SYNC_WRITE, 0, &range,
                1, ret_point);
}

RIG_API int rig_launch_once(struct rig_device *device, const struct rig_launch *launch,
        struct rig_buffer *const *buffers, const uint32_t *accesses, size_t n_buffers,
        struct rig_point *ret_point)
{
        struct rig_work *work;
        uint32_t queue = 0;
        int r;

        if (!device || !launch || (n_buffers > 0 && (!buffers || !accesses)))
                return rig_fail(-EINVAL, "a launch needs a device, and the buffers and accesses it counts");
        r = rig_work_new(device, &work);
        if (r < 0)
                return r;
        if (!rig_device_runs(device, RIG_RUNS_LAUNCH, &queue))
                r = rig_fail(-EOPNOTSUPP, "%s runs no launch", device->name);
        for (size_t i = 0; i < n_buffers && r >= 0; i++)
                r = rig_work_slot(work, accesses[i]);
        if (r >= 0)
                r = rig_work_launch(work, (int)queue, launch);
        if (r >= 0)
                r = rig_work_prepare(work);
        if (r >= 0)
                r = rig_submit(work, buffers, n_buffers, NULL, 0, ret_point);
        rig_work_unref(work);
        return r < 0 ? r : 0;
}
