/* SPDX-License-Identifier: ISC */
/*
 * Staging.
 *
 * A device whose memory the host does not address has two slots of pinned memory; files go through two slots
 * of a host memory of the library's own, the device "memory:staging". Both are made when first needed and
 * kept by what they belong to.
 *
 * A copy goes in pieces: into a slot, and out of it. Nothing waits for the pieces: that a slot is read
 * before it is written again is kept by its memory, as for any buffer. Who uses a slot has it for as long as
 * it submits, so that two threads' pieces do not meet in it. The one step that is waited for is one that can
 * fail by itself, from a file: its bytes must not go on where they did not come.
 */
#include "libclient/staging.h"

#include "libclient/wait.h"

#define SLOTS          2
#define SLOT_BYTES     (UINT64_C(4) << 20)
#define SLOT_BYTES_MIN (UINT64_C(64) << 10) /* where the budget leaves no more */
#define STAGE_DEVICE   "memory:staging"

struct rig_stage {
        pthread_mutex_t mutex;
        pthread_cond_t given;
        uint64_t slot_bytes;
        struct rig_buffer *slots[SLOTS];
        bool taken[SLOTS];
};

/* ---------------------------------------------------------------- slots */

struct rig_stage *rig_stage_free(struct rig_stage *stage)
{
        if (!stage)
                return NULL;
        for (size_t i = 0; i < SLOTS; i++)
                rig_buffer_unref(stage->slots[i]);
        pthread_cond_destroy(&stage->given);
        pthread_mutex_destroy(&stage->mutex);
        free(stage);
        return NULL;
}

static int make_slots(struct rig_stage *stage, struct rig_device *device)
{
        int r = 0;

        for (size_t i = 0; i < SLOTS && r == 0; i++)
                r = rig_buffer_new_internal(device, stage->slot_bytes, RIG_MEMORY_PINNED, &stage->slots[i]);
        for (size_t i = 0; i < SLOTS && r < 0; i++)
                stage->slots[i] = rig_buffer_unref(stage->slots[i]);
        if (r == 0 && !stage->slots[0]->memory->host)
                return rig_fail(-EOPNOTSUPP, "%s has no memory that the host addresses", device->name);
        return r;
}

static int stage_new(struct rig_device *device, struct rig_stage **ret_stage)
{
        struct rig_stage *stage = calloc(1, sizeof(*stage));
        int r;

        if (!stage)
                return rig_fail_memory();
        pthread_mutex_init(&stage->mutex, NULL);
        pthread_cond_init(&stage->given, NULL);
        for (stage->slot_bytes = SLOT_BYTES;; stage->slot_bytes /= 2) {
                r = make_slots(stage, device);
                if ((r != -ENOMEM && r != -EDQUOT) || stage->slot_bytes == SLOT_BYTES_MIN)
                        break;
        }
        if (r < 0) {
                rig_stage_free(stage);
                return r;
        }
        *ret_stage = stage;
        return 0;
}

/* The library's own device of host memory. With the stage mutex held. */
static int get_device(struct rig *rig, struct rig_device **ret_device)
{
        int r = 0;

        if (!rig->stage_device)
                r = rig_device_open_internal(rig, STAGE_DEVICE, &rig->stage_device);
        if (r == 0)
                *ret_device = rig->stage_device;
        return r;
}

int rig_stage_for(const struct rig_buffer *buffer, struct rig_stage **ret_stage)
{
        struct rig_device *device = buffer->device;
        struct rig *rig = device->rig;
        int r = 0;

        pthread_mutex_lock(&rig->stage_mutex);
        if (buffer->memory->file || buffer->memory->host)
                r = get_device(rig, &device);
        if (r == 0 && !device->stage)
                r = stage_new(device, &device->stage);
        if (r == 0)
                *ret_stage = device->stage;
        pthread_mutex_unlock(&rig->stage_mutex);
        return r;
}

struct rig_buffer *rig_stage_take(struct rig_stage *stage, bool wait)
{
        struct rig_buffer *slot = NULL;

        pthread_mutex_lock(&stage->mutex);
        while (!slot) {
                for (size_t i = 0; i < SLOTS && !slot; i++) {
                        if (stage->taken[i])
                                continue;
                        stage->taken[i] = true;
                        slot = stage->slots[i];
                }
                if (slot || !wait)
                        break;
                pthread_cond_wait(&stage->given, &stage->mutex);
        }
        pthread_mutex_unlock(&stage->mutex);
        return slot;
}

void rig_stage_give(struct rig_stage *stage, struct rig_buffer *slot)
{
        if (!slot)
                return;
        pthread_mutex_lock(&stage->mutex);
        for (size_t i = 0; i < SLOTS; i++)
                if (stage->slots[i] == slot)
                        stage->taken[i] = false;
        pthread_cond_signal(&stage->given);
        pthread_mutex_unlock(&stage->mutex);
}

uint64_t rig_stage_bytes(const struct rig_stage *stage)
{
        return stage->slot_bytes;
}

/* ---------------------------------------------------------------- steps */

int rig_stage_step(const struct rig_range *dst, const struct rig_range *src, struct rig_point *ret_point)
{
        struct rig *rig = dst->buffer->device->rig;
        struct rig_device *device = dst->buffer->device;
        int r;

        if (rig_once_can_copy(device, dst->buffer, src->buffer))
                return rig_once_copy(device, dst, src, ret_point);
        device = src->buffer->device;
        if (rig_once_can_copy(device, dst->buffer, src->buffer))
                return rig_once_copy(device, dst, src, ret_point);
        pthread_mutex_lock(&rig->stage_mutex);
        r = get_device(rig, &device);
        pthread_mutex_unlock(&rig->stage_mutex);
        if (r < 0)
                return r;
        if (rig_once_can_copy(device, dst->buffer, src->buffer))
                return rig_once_copy(device, dst, src, ret_point);
        return rig_fail(-EOPNOTSUPP, "no device copies from memory of %s to memory of %s",
                src->buffer->device->name, dst->buffer->device->name);
}

/* A step, waited for where it can fail by itself. */
static int sure_step(const struct rig_range *dst, const struct rig_range *src, struct rig_point *ret_point)
{
        int r;

        r = rig_stage_step(dst, src, ret_point);
        if (r == 0 && src->buffer->memory->file)
                r = rig_once_settle(ret_point);
        return r;
}

/* The slots that a copy goes through, held: one, or one on each side. */
struct path {
        struct rig_stage *stage[2];
        struct rig_buffer *slot[2];
        int n;
};

static bool host_side(const struct rig_buffer *buffer)
{
        return buffer->memory->host;
}

static int find_path(struct path *path, const struct rig_buffer *dst, const struct rig_buffer *src)
{
        int r = 0;

        path->n = 0;
        /* A slot of one side is host memory, which a file's disk and a host's device reach. */
        if (!host_side(src) && !src->memory->file)
                r = rig_stage_for(src, &path->stage[path->n++]);
        if (r == 0 && !host_side(dst) && !dst->memory->file)
                r = rig_stage_for(dst, &path->stage[path->n++]);
        if (r == 0 && path->n == 0 && !(host_side(dst) && host_side(src)))
                r = rig_stage_for(src, &path->stage[path->n++]);
        if (path->n == 2 && path->stage[0] == path->stage[1])
                path->n = 1;
        return r;
}

/* In one order whatever way the copy goes, so that two of them cannot wait for each other. */
static void take_slots(struct path *path)
{
        int first = path->n == 2 && path->stage[1] < path->stage[0];

        for (int i = 0; i < path->n; i++)
                path->slot[i ^ first] = rig_stage_take(path->stage[i ^ first], true);
}

/* One piece, through the slots of the path. */
static int copy_piece(struct path *path, const struct rig_range *dst, const struct rig_range *src,
        struct rig_point *ret_point)
{
        struct rig_range from = *src, to;
        int r = 0;

        for (int i = 0; i < path->n && r == 0; i++) {
                to = (struct rig_range){.buffer = path->slot[i], .bytes = src->bytes};
                r = sure_step(&to, &from, ret_point);
                from = to;
        }
        return r < 0 ? r : rig_stage_step(dst, &from, ret_point);
}

static uint64_t piece_bytes(const struct path *path, uint64_t bytes)
{
        for (int i = 0; i < path->n; i++)
                bytes = RIG_MIN(bytes, path->stage[i]->slot_bytes);
        return bytes;
}

int rig_stage_copy(const struct rig_range *dst, const struct rig_range *src, struct rig_point *ret_point)
{
        struct rig_range to = *dst, from = *src;
        struct rig_point point;
        struct path path;
        uint64_t done = 0;
        int r;

        r = find_path(&path, dst->buffer, src->buffer);
        if (r < 0)
                return r;
        do {
                to.bytes = from.bytes = piece_bytes(&path, dst->bytes - done);
                take_slots(&path);
                r = copy_piece(&path, &to, &from, &point);
                for (int i = 0; i < path.n; i++)
                        rig_stage_give(path.stage[i], path.slot[i]);
                done += to.bytes;
                to.offset += to.bytes;
                from.offset += from.bytes;
        } while (r == 0 && done < dst->bytes);
        if (r == 0 && ret_point)
                *ret_point = point;
        return r;
}

int rig_stage_fill(const struct rig_range *dst, uint32_t pattern, struct rig_point *ret_point)
{
        struct rig_range to = *dst, from = {0};
        struct rig_stage *stage;
        struct rig_point point;
        uint64_t done = 0;
        int r;

        r = rig_stage_for(dst->buffer, &stage);
        if (r < 0)
                return r;
        from.buffer = rig_stage_take(stage, true);
        from.bytes = RIG_MIN(dst->bytes, stage->slot_bytes);
        r = rig_once_fill(from.buffer->device, &from, pattern, &point);
        do {
                if (r < 0)
                        break;
                to.bytes = from.bytes = RIG_MIN(dst->bytes - done, stage->slot_bytes);
                r = rig_stage_step(&to, &from, &point);
                done += to.bytes;
                to.offset += to.bytes;
        } while (done < dst->bytes);
        rig_stage_give(stage, from.buffer);
        if (r == 0 && ret_point)
                *ret_point = point;
        return r;
}
