/* SPDX-License-Identifier: ISC */
/*
 * Building works.
 *
 * Everything that rigd would refuse is checked here, part by part and with a sentence, because a run has no
 * answer: what rigd refuses of a run ends the connection. What depends on the buffers of a run is brought to
 * one number a slot, the least bytes its buffer has, so that a submission checks slots and not parts.
 *
 * A work ends in two steps. When the program drops it, rigd is told and what the work held is returned;
 * runs that a host device has yet to do keep the parts themselves, and what they call, until they are done.
 */
#include "libclient/work.h"

#include <string.h>

#include "libclient/image.h"
#include "libclient/wire.h"

#define PATCH_BYTES 8 /* what a patch writes */

static const char *const kind_names[_RIG_PART_KIND_MAX] = {
        [RIG_PART_COPY] = "copy",
        [RIG_PART_FILL] = "fill",
        [RIG_PART_LAUNCH] = "launch",
        [RIG_PART_SYNC] = "sync",
};

static const uint32_t kind_runs[_RIG_PART_KIND_MAX] = {
        [RIG_PART_COPY] = RIG_RUNS_COPY,
        [RIG_PART_FILL] = RIG_RUNS_FILL,
        [RIG_PART_LAUNCH] = RIG_RUNS_LAUNCH,
        [RIG_PART_SYNC] = RIG_RUNS_SYNC,
};

const char *rig_part_kind_to_string(enum rig_part_kind kind)
{
        return (unsigned)kind < _RIG_PART_KIND_MAX ? kind_names[kind] : NULL;
}

/* ---------------------------------------------------------------- life */

int rig_work_new_internal(struct rig_device *device, struct rig_work **ret_work)
{
        _cleanup_(rig_freep) struct rig_work *work = NULL;

        work = calloc(1, sizeof(*work));
        if (!work)
                return rig_fail_memory();
        work->parts = calloc(RIG_PROTO_PARTS_MAX, sizeof(*work->parts));
        if (!work->parts)
                return rig_fail_memory();
        work->refs = 1;
        work->pins = 1;
        work->internal = true;
        work->device = device;
        *ret_work = RIG_STEAL(work);
        return 0;
}

RIG_API int rig_work_new(struct rig_device *device, struct rig_work **ret_work)
{
        struct rig_work *work;
        int r;

        if (!device || !ret_work)
                return rig_fail(-EINVAL, "a work needs a device and where to store it");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        r = rig_work_new_internal(device, &work);
        if (r < 0)
                return r;
        work->internal = false;
        rig_device_ref(device);
        *ret_work = work;
        return 0;
}

RIG_API struct rig_work *rig_work_ref(struct rig_work *work)
{
        /* relaxed: whoever refs holds a reference already */
        if (work)
                atomic_fetch_add_explicit(&work->refs, 1, memory_order_relaxed);
        return work;
}

void rig_work_pin(struct rig_work *work)
{
        /* relaxed: the caller has a reference */
        atomic_fetch_add_explicit(&work->pins, 1, memory_order_relaxed);
}

void rig_work_unpin(struct rig_work *work)
{
        /* acq_rel: the last use of the parts is before their end */
        if (atomic_fetch_sub_explicit(&work->pins, 1, memory_order_acq_rel) > 1)
                return;
        for (uint32_t i = 0; i < work->n_parts; i++) {
                rig_code_unref(work->parts[i].code);
                free(work->parts[i].params);
                free(work->parts[i].patches);
        }
        free(work->parts);
        free(work);
}

static void drop_there(struct rig_work *work)
{
        struct rig_msg_work_drop m = {.work = work->id};
        struct rig *rig = work->device->rig;

        if (!work->prepared || rig_forked(rig))
                return;
        rig_lock_take(&rig->lock);
        if (rig_wire_order(rig, RIG_MSG_WORK_DROP, &m) == 0)
                rig_ids_put(&rig->work_ids, work->id);
        rig_lock_drop(&rig->lock);
}

RIG_API struct rig_work *rig_work_unref(struct rig_work *work)
{
        /* acq_rel: what others did with the work is before its end */
        if (!work || atomic_fetch_sub_explicit(&work->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        drop_there(work);
        for (uint32_t i = 0; i < work->n_slots; i++)
                rig_buffer_unref(work->slots[i].buffer);
        for (uint32_t i = 0; i < work->n_parts; i++)
                work->parts[i].image = rig_image_unref(work->parts[i].image);
        if (!work->internal)
                rig_device_unref(work->device);
        rig_work_unpin(work);
        return NULL;
}

RIG_API int rig_work_set_name(struct rig_work *work, const char *name)
{
        size_t bytes;
        int r;

        if (!work || !name)
                return rig_fail(-EINVAL, "a name needs a work");
        r = rig_check(work->device->rig);
        if (r < 0)
                return r;
        if (work->prepared)
                return rig_fail(-EBUSY, "the work is prepared, and keeps its name");
        bytes = strlen(name);
        if (bytes > RIG_PROTO_LABEL_MAX)
                return rig_fail(-ENAMETOOLONG, "a work's name has at most %u bytes", RIG_PROTO_LABEL_MAX);
        if (!rig_text_valid((const uint8_t *)name, bytes))
                return rig_fail(-EILSEQ, "a work's name is UTF-8");
        memcpy(work->name, name, bytes + 1);
        return 0;
}

/* ---------------------------------------------------------------- slots */

static int check_building(const struct rig_work *work)
{
        int r;

        if (!work)
                return rig_fail(-EINVAL, "no work");
        r = rig_check(work->device->rig);
        if (r < 0)
                return r;
        return work->prepared ? rig_fail(-EINVAL, "the work is prepared, and does not change any more") : 0;
}

RIG_API int rig_work_slot(struct rig_work *work, uint32_t access)
{
        int r;

        r = check_building(work);
        if (r < 0)
                return r;
        if (access == 0 || access > RIG_READ_WRITE)
                return rig_fail(-EINVAL, "a slot's access is RIG_READ, RIG_WRITE or both, not %u", access);
        if (work->n_slots == RIG_PROTO_SLOTS_MAX)
                return rig_fail(-EINVAL, "a work has at most %u slots", RIG_PROTO_SLOTS_MAX);
        work->slots[work->n_slots] = (struct rig_slot){.access = access};
        return (int)work->n_slots++;
}

/* Checks that a slot is there and declares what a part does to it. */
static int check_slot(const struct rig_work *work, int slot, uint32_t access, const char *what)
{
        if (slot < 0 || (uint32_t)slot >= work->n_slots)
                return rig_fail(-EINVAL, "the work has no slot %d", slot);
        if ((work->slots[slot].access & access) != access)
                return rig_fail(-EINVAL, "%s slot %d, which does not declare %s", what, slot,
                        access == RIG_READ ? "RIG_READ" : "RIG_WRITE");
        return 0;
}

RIG_API int rig_work_bind(struct rig_work *work, int slot, struct rig_buffer *buffer)
{
        struct rig_slot *s;
        int r;

        r = check_building(work);
        if (r == 0)
                r = check_slot(work, slot, 0, "a binding of");
        if (r < 0)
                return r;
        if (!buffer)
                return rig_fail(-EINVAL, "no buffer to bind");
        if (!rig_buffer_fits_device(buffer, work->device))
                return rig_fail(-EXDEV, "%s does not reach the buffer: borrow it", work->device->name);
        s = &work->slots[slot];
        if (s->access & ~buffer->access)
                return rig_fail(
                        -EACCES, "slot %d needs an access that the buffer's memory does not admit", slot);
        rig_buffer_ref(buffer);
        rig_buffer_unref(s->buffer);
        s->buffer = buffer;
        return 0;
}

/* A part needs `bytes` of a slot from `offset`. */
static int need(struct rig_work *work, uint32_t slot, uint64_t offset, uint64_t bytes)
{
        struct rig_slot *s = &work->slots[slot];
        uint64_t end;

        if (rig_add_overflow(offset, bytes, &end) || end > RIG_PROTO_BYTES_MAX)
                return rig_fail(-ERANGE, "%llu bytes from %llu are more than any buffer has",
                        (unsigned long long)bytes, (unsigned long long)offset);
        s->least_bytes = RIG_MAX(s->least_bytes, end);
        return 0;
}

/* ---------------------------------------------------------------- parts */

static int check_part(const struct rig_work *work, int queue, enum rig_part_kind kind)
{
        const struct rig_device *device;
        int r;

        r = check_building(work);
        if (r < 0)
                return r;
        device = work->device;
        if (work->n_parts == RIG_PROTO_PARTS_MAX)
                return rig_fail(-EINVAL, "a work has at most %u parts", RIG_PROTO_PARTS_MAX);
        if (queue < 0 || (uint32_t)queue >= device->n_queues)
                return rig_fail(-EINVAL, "%s has no queue %d, but %u queues from 0", device->name, queue,
                        device->n_queues);
        if (!(device->queues[queue] & kind_runs[kind]))
                return rig_fail(-EOPNOTSUPP, "queue %d of %s does not run a %s", queue, device->name,
                        rig_part_kind_to_string(kind));
        return 0;
}

static int add(struct rig_work *work, const struct rig_part *part)
{
        work->parts[work->n_parts] = *part;
        if (part->bytes == RIG_WHOLE)
                work->has_whole = true;
        return (int)work->n_parts++;
}

RIG_API int rig_work_copy(struct rig_work *work, int queue, int dst_slot, uint64_t dst_offset, int src_slot,
        uint64_t src_offset, uint64_t bytes)
{
        struct rig_part part = {.kind = RIG_PART_COPY,
                .queue = (uint32_t)queue,
                .dst_slot = (uint32_t)dst_slot,
                .src_slot = (uint32_t)src_slot,
                .dst_offset = dst_offset,
                .src_offset = src_offset,
                .bytes = bytes};
        uint64_t moves = bytes == RIG_WHOLE ? 0 : bytes;
        int r;

        r = check_part(work, queue, RIG_PART_COPY);
        if (r == 0)
                r = check_slot(work, dst_slot, RIG_WRITE, "a copy writes");
        if (r == 0)
                r = check_slot(work, src_slot, RIG_READ, "a copy reads");
        if (r == 0)
                r = need(work, part.dst_slot, dst_offset, moves);
        if (r == 0)
                r = need(work, part.src_slot, src_offset, moves);
        return r < 0 ? r : add(work, &part);
}

RIG_API int rig_work_fill(
        struct rig_work *work, int queue, int slot, uint64_t offset, uint64_t bytes, uint32_t pattern)
{
        struct rig_part part = {.kind = RIG_PART_FILL,
                .queue = (uint32_t)queue,
                .dst_slot = (uint32_t)slot,
                .dst_offset = offset,
                .bytes = bytes,
                .pattern = pattern};
        int r;

        r = check_part(work, queue, RIG_PART_FILL);
        if (r == 0)
                r = check_slot(work, slot, RIG_WRITE, "a fill writes");
        if (r < 0)
                return r;
        if (offset % 4 != 0 || (bytes != RIG_WHOLE && bytes % 4 != 0))
                return rig_fail(-EINVAL, "a fill's offset and bytes are multiples of 4");
        r = need(work, part.dst_slot, offset, bytes == RIG_WHOLE ? 0 : bytes);
        return r < 0 ? r : add(work, &part);
}

RIG_API int rig_work_sync(struct rig_work *work, int queue, int slot)
{
        struct rig_part part = {.kind = RIG_PART_SYNC, .queue = (uint32_t)queue, .dst_slot = (uint32_t)slot};
        int r;

        r = check_part(work, queue, RIG_PART_SYNC);
        if (r == 0)
                r = check_slot(work, slot, 0, "a sync of");
        return r < 0 ? r : add(work, &part);
}

RIG_API int rig_work_after(struct rig_work *work, int part, int earlier)
{
        int r;

        r = check_building(work);
        if (r < 0)
                return r;
        if (part < 0 || (uint32_t)part >= work->n_parts || earlier < 0 || earlier >= part)
                return rig_fail(-EINVAL,
                        "part %d cannot follow part %d: it follows one that was added before it", part,
                        earlier);
        work->parts[part].after |= UINT32_C(1) << earlier;
        return 0;
}

/* ---------------------------------------------------------------- launches */

/* A launch as this library knows it: a newer header's may not use what is new in it. */
static int read_launch(const struct rig_launch *from, struct rig_launch *launch)
{
        const uint8_t *bytes = (const uint8_t *)from;

        if (!from || from->size < sizeof(from->size))
                return rig_fail(-EINVAL, "a launch needs a struct that says its size");
        for (size_t i = sizeof(*launch); i < from->size; i++)
                if (bytes[i] != 0)
                        return rig_fail(-E2BIG, "the launch uses what is newer than the library");
        memset(launch, 0, sizeof(*launch));
        memcpy(launch, from, RIG_MIN((size_t)from->size, sizeof(*launch)));
        return 0;
}

static int check_dims(const struct rig_launch *launch)
{
        uint64_t groups, threads;

        if (rig_mul_overflow(
                    (uint64_t)launch->grid[0] * launch->grid[1], (uint64_t)launch->grid[2], &groups) ||
                rig_mul_overflow((uint64_t)launch->group[0] * launch->group[1], (uint64_t)launch->group[2],
                        &threads) ||
                groups == 0 || threads == 0 || groups > INT64_MAX)
                return rig_fail(-EINVAL, "a launch has from 1 group of 1 thread to %lld groups",
                        (long long)INT64_MAX);
        return 0;
}

static int check_code(const struct rig_device *device, const struct rig_launch *launch)
{
        bool here = device->flags & RIG_DEVICE_CLIENT_CODE;

        if (launch->image && launch->image->device != device)
                return rig_fail(-EXDEV, "the image is of another device than the work");
        if (launch->function && !here)
                return rig_fail(-EINVAL, "a function of the program runs on a host device, which %s is not",
                        device->name);
        if (launch->function && launch->image)
                return rig_fail(-EINVAL, "a launch has a function or an image with its entry, not both");
        if (!launch->function && (!launch->image || (here && launch->entry == 0)))
                return rig_fail(-EINVAL, "a launch needs what it runs: an image and its entry%s",
                        here ? ", or a function" : "");
        return 0;
}

static int check_params(struct rig_work *work, const struct rig_launch *launch)
{
        if (launch->params_bytes > RIG_PROTO_PARAMS_BYTES || launch->n_patches > RIG_PROTO_PATCHES_MAX)
                return rig_fail(-EINVAL, "a launch has at most %u bytes of parameters and %u patches",
                        RIG_PROTO_PARAMS_BYTES, RIG_PROTO_PATCHES_MAX);
        if ((launch->params_bytes > 0 && !launch->params) || (launch->n_patches > 0 && !launch->patches))
                return rig_fail(-EINVAL, "a launch has parameters or patches, and none are given");
        for (uint32_t i = 0; i < launch->n_patches; i++) {
                const struct rig_patch *patch = &launch->patches[i];
                int r;

                r = check_slot(work, patch->slot, 0, "a patch of");
                if (r < 0)
                        return r;
                if (rig_range_outside(patch->at, PATCH_BYTES, launch->params_bytes))
                        return rig_fail(-EINVAL, "a patch at %u is outside of %u bytes of parameters",
                                patch->at, launch->params_bytes);
                r = need(work, (uint32_t)patch->slot, patch->addend, 0);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int copy_params(const struct rig_launch *launch, struct rig_part *part)
{
        part->params = malloc(RIG_MAX(launch->params_bytes, 1u));
        part->patches = calloc(RIG_MAX(launch->n_patches, 1u), sizeof(*part->patches));
        if (!part->params || !part->patches) {
                free(part->params);
                free(part->patches);
                return rig_fail_memory();
        }
        if (launch->params_bytes > 0)
                memcpy(part->params, launch->params, launch->params_bytes);
        if (launch->n_patches > 0)
                memcpy(part->patches, launch->patches, sizeof(*part->patches) * launch->n_patches);
        part->params_bytes = launch->params_bytes;
        part->n_patches = launch->n_patches;
        return 0;
}

/* What a host device calls: an entry of a host image is its function's address. */
static rig_host_function function_of(const struct rig_launch *launch)
{
        rig_host_function function = launch->function;
        uintptr_t address = (uintptr_t)launch->entry;

        if (!function && launch->image->code)
                memcpy(&function, &address, sizeof(function));
        return function;
}

RIG_API int rig_work_launch(struct rig_work *work, int queue, const struct rig_launch *launch)
{
        struct rig_part part = {.kind = RIG_PART_LAUNCH, .queue = (uint32_t)queue};
        struct rig_launch l;
        int r;

        r = check_part(work, queue, RIG_PART_LAUNCH);
        if (r == 0)
                r = read_launch(launch, &l);
        if (r == 0)
                r = check_dims(&l);
        if (r == 0)
                r = check_code(work->device, &l);
        if (r == 0)
                r = check_params(work, &l);
        if (r == 0)
                r = copy_params(&l, &part);
        if (r < 0)
                return r;
        part.function = function_of(&l);
        part.image = rig_image_ref(l.image);
        part.code = l.image ? rig_code_ref(l.image->code) : NULL;
        part.entry = l.entry;
        memcpy(part.grid, l.grid, sizeof(part.grid));
        memcpy(part.group, l.group, sizeof(part.group));
        part.shared_bytes = l.shared_bytes;
        return add(work, &part);
}

/* ---------------------------------------------------------------- preparing */

static struct rig_msg_dims dims(const uint32_t *d)
{
        return (struct rig_msg_dims){.x = d[0], .y = d[1], .z = d[2]};
}

static void encode_launch(const struct rig_part *part, struct rig_msg_part *m)
{
        m->has_grid = m->has_group = m->has_shared = true;
        m->grid = dims(part->grid);
        m->group = dims(part->group);
        m->shared = part->shared_bytes;
        if (part->function)
                return; /* what runs here is nobody else's to know */
        m->has_image = m->has_entry = m->has_params = m->has_patches = true;
        m->image = part->image->id;
        m->entry = part->entry;
        m->params = (struct rig_bytes){.data = part->params, .bytes = part->params_bytes};
        m->n_patches = part->n_patches;
        for (uint32_t i = 0; i < part->n_patches; i++)
                m->patches[i] = (struct rig_msg_patch){.at = part->patches[i].at,
                        .slot = (uint32_t)part->patches[i].slot,
                        .addend = part->patches[i].addend};
}

static void encode_part(const struct rig_part *part, struct rig_msg_part *m)
{
        m->kind = part->kind;
        m->queue = part->queue;
        m->has_after = part->after != 0;
        m->after = part->after;
        if (part->kind == RIG_PART_LAUNCH) {
                encode_launch(part, m);
                return;
        }
        m->has_dst = true;
        m->dst = (struct rig_msg_operand){.slot = part->dst_slot, .offset = part->dst_offset};
        if (part->kind == RIG_PART_SYNC)
                return;
        m->has_bytes = part->bytes != RIG_WHOLE;
        m->bytes = m->has_bytes ? part->bytes : 0;
        if (part->kind == RIG_PART_COPY) {
                m->has_src = true;
                m->src = (struct rig_msg_operand){.slot = part->src_slot, .offset = part->src_offset};
        } else {
                m->has_pattern = true;
                m->pattern = part->pattern;
        }
}

static int encode_slots(struct rig_work *work, struct rig_msg_work_new *m)
{
        work->n_open = 0;
        m->n_slots = work->n_slots;
        for (uint32_t i = 0; i < work->n_slots; i++) {
                struct rig_slot *slot = &work->slots[i];

                m->slots[i].access = slot->access;
                if (!slot->buffer) {
                        work->open[work->n_open++] = (uint8_t)i;
                        continue;
                }
                if (slot->buffer->bytes < slot->least_bytes)
                        return rig_fail(-ERANGE, "slot %u needs %llu bytes, and its buffer has %llu", i,
                                (unsigned long long)slot->least_bytes,
                                (unsigned long long)slot->buffer->bytes);
                m->slots[i].has_buffer = true;
                m->slots[i].buffer = slot->buffer->id;
        }
        return 0;
}

static int prepare(struct rig_work *work, struct rig_msg_work_new *m)
{
        struct rig_request request = {.type = RIG_MSG_WORK_NEW,
                .msg = m,
                .serial = &m->serial,
                .follows = &m->follows,
                .has_follows = &m->has_follows};
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DONE);
        struct rig *rig = work->device->rig;
        int r;

        rig_lock_take(&rig->lock);
        r = rig_ids_take(&rig->work_ids, &work->id);
        rig_lock_drop(&rig->lock);
        if (r < 0)
                return r;
        m->work = work->id;
        r = rig_wire_call(rig, &request, &call);
        if (r < 0) {
                rig_lock_take(&rig->lock);
                rig_ids_put(&rig->work_ids, work->id);
                rig_lock_drop(&rig->lock);
        }
        return r;
}

RIG_API int rig_work_prepare(struct rig_work *work)
{
        _cleanup_(rig_freep) struct rig_msg_work_new *m = NULL;
        int r;

        r = check_building(work);
        if (r < 0)
                return r;
        m = calloc(1, sizeof(*m));
        if (!m)
                return rig_fail_memory();
        m->device = work->device->id;
        m->has_name = work->name[0] != '\0';
        m->name = rig_text(work->name, RIG_PROTO_LABEL_MAX);
        r = encode_slots(work, m);
        if (r < 0)
                return r;
        m->n_parts = work->n_parts;
        for (uint32_t i = 0; i < work->n_parts; i++)
                encode_part(&work->parts[i], &m->parts[i]);
        r = prepare(work, m);
        if (r < 0)
                return r;
        work->prepared = true;
        return 0;
}
