/* SPDX-License-Identifier: ISC */
/*
 * Submitting: the path that every run takes.
 *
 * Checks come first, without the lock, against the few numbers that preparing the work left. Then, under the
 * lock, the message is encoded straight into the ring, the run gets its value, the memories it uses get
 * their stamps, and the ring's tail moves. In the steady state that is no allocation, no system call and one
 * lock. A clock is read only where the memory may be shared with other connections.
 *
 * The library never has more runs in flight than rigd takes from one client. A host device's completions
 * travel behind the runs that were published before them, so a ring that rigd has stopped reading could
 * otherwise wait for itself. The count is taken again only when the room that it left is used up.
 *
 * Whether the device is lost is known here only once the event of it was read. A run that is submitted
 * before is never reached, as if it had been submitted just before the loss.
 */
#include "libclient/run.h"

#include <string.h>

#include "gen/rig-proto-fast.h"
#include "libclient/host.h"
#include "libclient/wait.h"
#include "libclient/wire.h"

#define ROOM_USEC (50 * RIG_USEC_PER_MSEC) /* until runs are counted again, where there are too many */

struct run {
        struct rig_work *work;
        struct rig_device *device;
        struct rig *rig;
        struct rig_buffer *const *buffers;
        bool shared; /* a memory of it may be used by other connections */
        uint64_t value;
        struct rig_host_slot *slots; /* of a host device: where its slots are in this process */
};

/* ---------------------------------------------------------------- checks */

static int fail_slot(const struct rig_work *work, uint32_t slot, const struct rig_buffer *buffer)
{
        const struct rig_slot *s = &work->slots[slot];

        if (!buffer)
                return rig_fail(-EINVAL, "slot %u is filled with no buffer", slot);
        if (buffer->device->rig != work->device->rig)
                return rig_fail(-EXDEV, "slot %u is filled with a buffer of another connection", slot);
        if (buffer->bytes < s->least_bytes)
                return rig_fail(-ERANGE, "slot %u needs %llu bytes, and its buffer has %llu", slot,
                        (unsigned long long)s->least_bytes, (unsigned long long)buffer->bytes);
        if (s->access & ~buffer->access)
                return rig_fail(
                        -EACCES, "slot %u needs an access that the buffer's memory does not admit", slot);
        return rig_fail(
                -EXDEV, "%s does not reach the buffer of slot %u: borrow it", work->device->name, slot);
}

static inline bool fits(
        const struct rig_slot *slot, const struct rig_buffer *buffer, const struct rig_device *device)
{
        return rig_likely(
                       buffer && buffer->bytes >= slot->least_bytes && !(slot->access & ~buffer->access)) &&
               rig_buffer_fits_device(buffer, device);
}

static const struct rig_buffer *in_slot(const struct run *run, uint32_t slot)
{
        const struct rig_work *work = run->work;

        if (work->slots[slot].buffer)
                return work->slots[slot].buffer;
        for (uint32_t i = 0; i < work->n_open; i++)
                if (work->open[i] == slot)
                        return run->buffers[i];
        return NULL;
}

/* Parts that move all of their slots' buffers: what is left of them must fit. */
static int check_whole(const struct run *run)
{
        for (uint32_t i = 0; i < run->work->n_parts; i++) {
                const struct rig_part *part = &run->work->parts[i];
                uint64_t dst, src;

                if (part->bytes != RIG_WHOLE)
                        continue;
                dst = in_slot(run, part->dst_slot)->bytes - part->dst_offset;
                if (part->kind == RIG_PART_FILL && dst % 4 != 0)
                        return rig_fail(-ERANGE, "part %u fills %llu bytes, which is no multiple of 4", i,
                                (unsigned long long)dst);
                if (part->kind != RIG_PART_COPY)
                        continue;
                src = in_slot(run, part->src_slot)->bytes - part->src_offset;
                if (dst != src)
                        return rig_fail(-ERANGE, "part %u copies all of %llu bytes to %llu", i,
                                (unsigned long long)src, (unsigned long long)dst);
        }
        return 0;
}

/* Fills in the message's buffers. */
static int check_buffers(struct run *run, size_t n_buffers, struct rig_msg_run *m)
{
        struct rig_work *work = run->work;

        if (rig_unlikely(n_buffers != work->n_open))
                return rig_fail(-EINVAL, "the work has %u slots to fill, and %zu buffers are given",
                        work->n_open, n_buffers);
        m->n_buffers = (uint32_t)n_buffers;
        for (uint32_t i = 0; i < n_buffers; i++) {
                const struct rig_slot *slot = &work->slots[work->open[i]];

                if (rig_unlikely(!fits(slot, run->buffers[i], run->device)))
                        return fail_slot(work, work->open[i], run->buffers[i]);
                m->buffers[i] = run->buffers[i]->id;
        }
        return work->has_whole ? check_whole(run) : 0;
}

static int check_points(
        const struct run *run, const struct rig_point *points, size_t n_points, struct rig_msg_run *m)
{
        if (n_points > RIG_PROTO_POINTS_MAX)
                return rig_fail(-EINVAL, "a run follows at most %u points", RIG_PROTO_POINTS_MAX);
        m->n_points = (uint32_t)n_points;
        m->has_points = n_points > 0;
        for (size_t i = 0; i < n_points; i++) {
                const struct rig_point *p = &points[i];

                if (!p->device)
                        return rig_fail(-EINVAL, "point %zu has no device", i);
                if (p->device->rig != run->rig)
                        return rig_fail(-EXDEV, "point %zu is of another connection", i);
                if (p->value > rig_device_submitted(p->device))
                        return rig_fail(-EINVAL, "point %zu is %llu of %s, which is not submitted", i,
                                (unsigned long long)p->value, p->device->name);
                m->points[i] = (struct rig_msg_point){.device_id = p->device->id, .value = p->value};
        }
        return 0;
}

/* Where a host device finds the slots. */
static int find_slots(struct run *run, struct rig_host_slot *slots)
{
        for (uint32_t i = 0; i < run->work->n_slots; i++) {
                const struct rig_buffer *buffer = in_slot(run, i);
                int r;

                r = rig_buffer_address(buffer, &slots[i].address);
                if (r < 0)
                        return r;
                slots[i].bytes = buffer->bytes;
                slots[i].memory = buffer->memory;
        }
        run->slots = slots;
        return 0;
}

/* ---------------------------------------------------------------- room for one more */

static uint64_t in_flight(const struct rig *rig, struct rig_device **ret_busy)
{
        uint64_t n = 0;

        *ret_busy = NULL;
        for (size_t i = 1; i < RIG_ARRAY_SIZE(rig->devices); i++) {
                struct rig_device *device = rig->devices[i];
                uint64_t here;

                if (!device || rig_device_lost_now(device))
                        continue;
                here = atomic_load_explicit(&device->submitted, memory_order_relaxed) -
                       rig_device_now(device);
                if (here > 0)
                        *ret_busy = device;
                n += here;
        }
        return n;
}

/* Counts the runs in flight; waits for one to be over where there are too many. With the lock held. */
static int make_runs_room(struct rig *rig)
{
        struct rig_device *busy;
        uint64_t n;

        if (!rig->words)
                rig_wire_drain(rig);
        n = in_flight(rig, &busy);
        if (n < rig->runs_limit) {
                rig->runs_room = rig->runs_limit - n;
                return 0;
        }
        if (busy && rig_device_hold(busy)) {
                rig_lock_drop(&rig->lock);
                /* Whatever ends this wait, the runs are counted again. */
                (void)rig_await(busy, rig_device_now(busy) + 1, rig_deadline_usec(ROOM_USEC));
                rig_device_unref(busy);
                rig_lock_take(&rig->lock);
        }
        return rig_check(rig);
}

/* ---------------------------------------------------------------- publishing */

static int publish(struct run *run, struct rig_msg_run *m)
{
        struct rig *rig = run->rig;
        uint8_t *out = rig->outbox;
        size_t n;

        m->has_time = run->shared;
        if (rig_unlikely(run->shared))
                m->time = rig_now_nsec();
        if (rig_likely(rig->ring)) {
                out = rig_wire_reserve(rig, RIG_FAST_RUN_BYTES_MAX);
                if (rig_unlikely(!out))
                        return -EAGAIN;
                n = rig_fast_run_encode(m, out);
                rig_wire_publish(rig, n);
                return 0;
        }
        n = rig_fast_run_encode(m, out);
        return rig_wire_send(rig, out, n, NULL, 0);
}

/* Whether a memory of the run is shared: asked under the lock, as an export sets it. */
static bool any_shared(const struct run *run)
{
        const struct rig_work *work = run->work;

        for (uint32_t i = 0; i < work->n_open; i++)
                if (atomic_load_explicit(&run->buffers[i]->memory->shared, memory_order_relaxed))
                        return true;
        if (rig_likely(work->n_open == work->n_slots))
                return false;
        for (uint32_t i = 0; i < work->n_slots; i++)
                if (work->slots[i].buffer &&
                        atomic_load_explicit(&work->slots[i].buffer->memory->shared, memory_order_relaxed))
                        return true;
        return false;
}

static inline void touch(struct run *run, struct rig_memory *memory, uint32_t access)
{
        rig_memory_touch(memory, run->device, run->value, access);
        if (rig_unlikely(run->device->flags & RIG_DEVICE_FILES))
                rig_device_note_use(run->device, run->value, memory->number);
}

static void stamp(struct run *run)
{
        struct rig_work *work = run->work;

        for (uint32_t i = 0; i < work->n_open; i++)
                touch(run, run->buffers[i]->memory, work->slots[work->open[i]].access);
        if (rig_likely(work->n_open == work->n_slots))
                return;
        for (uint32_t i = 0; i < work->n_slots; i++)
                if (work->slots[i].buffer)
                        touch(run, work->slots[i].buffer->memory, work->slots[i].access);
}

/* One attempt, under the lock. -EAGAIN: there was no room, and now there may be. */
static int submit_once(struct run *run, struct rig_msg_run *m)
{
        struct rig_device *device = run->device;
        struct rig *rig = run->rig;
        int r;

        if (rig_unlikely(rig->runs_room == 0)) {
                r = make_runs_room(rig);
                return r < 0 ? r : -EAGAIN;
        }
        if (rig_unlikely(device->flags & (RIG_DEVICE_FILES | RIG_DEVICE_CLIENT_CODE))) {
                r = device->flags & RIG_DEVICE_FILES ? rig_device_use_room(device, run->work->n_slots) : 0;
                if (r == 0 && device->host)
                        r = rig_host_room(device->host, run->work);
                if (r < 0)
                        return r;
        }
        run->shared = any_shared(run);
        r = publish(run, m);
        if (rig_unlikely(r == -EAGAIN)) {
                r = rig_wire_await_room(rig);
                return r < 0 ? r : -EAGAIN;
        }
        if (rig_unlikely(r < 0))
                return r;
        rig->runs_room--;
        run->value = atomic_load_explicit(&device->submitted, memory_order_relaxed) + 1;
        /* release: pairs with rig_device_submitted() */
        atomic_store_explicit(&device->submitted, run->value, memory_order_release);
        stamp(run);
        if (rig_unlikely(run->slots))
                rig_host_push(device->host, run->value, run->work, run->slots);
        return 0;
}

static int submit(struct run *run, struct rig_msg_run *m)
{
        struct rig *rig = run->rig;
        int r;

        if (rig_unlikely(atomic_load_explicit(&run->device->lost, memory_order_acquire)))
                return rig_device_fail_lost(run->device);
        rig_lock_take(&rig->lock);
        do {
                r = rig_check(rig);
                if (rig_likely(r == 0))
                        r = submit_once(run, m);
        } while (rig_unlikely(r == -EAGAIN));
        rig_lock_drop(&rig->lock);
        if (rig_unlikely(r < 0))
                return r;
        rig_wire_ring_bell(rig);
        if (rig_unlikely(run->slots))
                rig_host_wake(run->device->host);
        return 0;
}

static int submit_host(struct run *run, struct rig_msg_run *m)
{
        struct rig_host_slot slots[RIG_PROTO_SLOTS_MAX];
        int r;

        r = find_slots(run, slots);
        if (r == 0)
                r = rig_host_start(run->device->host);
        return r < 0 ? r : submit(run, m);
}

int rig_run(struct rig_work *work, struct rig_buffer *const *buffers, size_t n_buffers,
        const struct rig_point *points, size_t n_points, struct rig_point *ret_point)
{
        struct run run = {
                .work = work, .device = work->device, .rig = work->device->rig, .buffers = buffers};
        struct rig_msg_run m;
        int r;

        m.work = work->id;
        r = check_buffers(&run, n_buffers, &m);
        if (rig_unlikely(r < 0))
                return r;
        r = check_points(&run, points, n_points, &m);
        if (rig_unlikely(r < 0))
                return r;
        r = rig_unlikely(run.device->host) ? submit_host(&run, &m) : submit(&run, &m);
        if (rig_unlikely(r < 0))
                return r;
        if (ret_point)
                *ret_point = (struct rig_point){.device = run.device, .value = run.value};
        return 0;
}

RIG_API int rig_submit(struct rig_work *work, struct rig_buffer *const *buffers, size_t n_buffers,
        const struct rig_point *points, size_t n_points, struct rig_point *ret_point)
{
        int r;

        if (rig_unlikely(!work || (n_buffers > 0 && !buffers) || (n_points > 0 && !points)))
                return rig_fail(-EINVAL, "a submission needs a work, and the buffers and points it counts");
        r = rig_check(work->device->rig);
        if (rig_unlikely(r < 0))
                return r;
        if (rig_unlikely(!work->prepared))
                return rig_fail(-EINVAL, "the work is not prepared");
        return rig_run(work, buffers, n_buffers, points, n_points, ret_point);
}
