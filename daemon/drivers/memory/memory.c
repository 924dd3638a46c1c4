/* SPDX-License-Identifier: ISC */
/*
 * The memory driver: a device whose memory is the host's and whose work is copies and fills that the host's
 * processor does. It is the smallest driver there is. Read daemon/driver.h first, then this from the bottom,
 * where its table is, up.
 *
 * Whoever opens "memory:M" gets a device of their own; M is a name for the reader alone. A run that moves up
 * to INLINE_BYTES has run when hand_over() returns. A larger one would hold up the core loop, and with it
 * every other client: it is put in `records` and runs on the adapter's slow thread. With the option "async"
 * every run goes there, so that the device completes on its own, as other devices do.
 *
 * How it keeps the contract:
 *
 *   1. There is one queue, and a run's parts are done one after the other in their order, which is at once
 *      the order of the queue and of any `after`.
 *   2. A run is done inside hand_over() only where no earlier one is left in `records`; else it waits there
 *      behind them, however small.
 *   3. `reached` is moved on the core loop alone: by hand_over(), or by done() of the slow job, which then
 *      kicks the core to poll. What the job wrote is visible by then, since the core's queue of jobs orders
 *      run() before done().
 *
 * Records. A ring of ROOM records is part of the device, so that handing over allocates nothing; room() says
 * when it is full. The slow job takes the records that were there when it was queued, [first, last), and the
 * core loop adds behind them meanwhile: no record is touched by both. A job moves SLICE_BYTES and is queued
 * again, behind what others want of the slow thread: a long copy holds up nobody's allocation.
 *
 * The end. A stopped device's job may still be queued: run() then does nothing, and `holders` lets whichever
 * of device_close() and done() comes last free the memory.
 *
 * Deliberately not here: faults (memory that cannot be touched is the guard's matter,
 * daemon/memory/guard.c), a hang bound (a long copy is no hang, L5), a descriptor (kicks do).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/drivers/drivers.h"
#include "daemon/drivers/parts.h"

#define INLINE_BYTES 65536u
#define ROOM         16u
#define SLICE_BYTES  (UINT64_C(8) << 20)

struct record {
        uint64_t value;
        const struct rig_driver_work *work;
        struct rig_filled
                slots[RIG_SLOTS_MAX]; /* those of the submission are gone when hand_over() returns */
};

struct memory_device {
        struct rig_driver_device *device;
        bool async;

        /* core loop only */
        uint64_t reached;
        unsigned head, tail; /* records[head % ROOM] is the oldest; head == tail: none */
        bool job_queued;

        struct rig_slow_job job;
        /* the job's while it is queued: */
        unsigned first, last; /* its records; `first` moves as they are done */
        uint32_t part;        /* of the first one: which part it is at, */
        uint64_t moved;       /* and how much of that is done */
        struct record records[ROOM];

        /* both threads */
        atomic_bool stopped;
        atomic_uint holders; /* the device, and the job while it is queued */
};

static void memory_device_unref(struct memory_device *m)
{
        if (atomic_fetch_sub(&m->holders, 1) == 1)
                free(m);
}

/* ---------------------------------------------------------------- work */

/* Does a part from its byte `from` on, up to `most` bytes of it. Return: how many it did; 0 at its end. */
static uint64_t run_part(
        const struct rig_part *part, const struct rig_filled *slots, uint64_t from, uint64_t most)
{
        uint64_t bytes = rig_part_moves(part, slots) - from;
        uint8_t *dst, *src;

        if (bytes == 0)
                return 0;
        dst = rig_operand_host(&part->dst, slots) + from;
        if (part->kind == RIG_PART_FILL) {
                bytes = RIG_MIN(bytes, most);
                rig_fill(dst, part->pattern, bytes);
                return bytes;
        }
        src = rig_operand_host(&part->src, slots) + from;
        /* The two may overlap, where they are the same memory: then only all of it at once is right. */
        if (dst >= src + bytes || src >= dst + bytes)
                bytes = RIG_MIN(bytes, most);
        memmove(dst, src, bytes);
        return bytes;
}

/* Does what is left of a record, up to `*left` bytes. Return: whether it is done. */
static bool run_record(struct memory_device *m, const struct record *record, uint64_t *left)
{
        for (; m->part < record->work->n_parts; m->part++, m->moved = 0) {
                uint64_t n;

                while ((n = run_part(&record->work->parts[m->part], record->slots, m->moved, *left)) > 0) {
                        m->moved += n;
                        *left -= RIG_MIN(n, *left);
                        if (*left == 0)
                                return false;
                }
        }
        m->part = 0;
        return true;
}

static bool is_small(const struct rig_driver_work *work, const struct rig_filled *slots)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < work->n_parts; i++)
                if (rig_add_overflow(sum, rig_part_moves(&work->parts[i], slots), &sum) ||
                        sum > INLINE_BYTES)
                        return false;
        return true;
}

/* Hands all records to the slow thread, unless it has some already: done() sees to the rest then. */
static void queue_job(struct memory_device *m)
{
        if (m->job_queued || m->head == m->tail)
                return;
        m->first = m->head;
        m->last = m->tail;
        m->job_queued = true;
        atomic_fetch_add(&m->holders, 1);
        rig_adapter_defer(m->device->adapter, &m->job);
}

/* On the slow thread. */
static void memory_job_run(struct rig_slow_job *job)
{
        struct memory_device *m = RIG_CONTAINER_OF(job, struct memory_device, job);

        uint64_t left = SLICE_BYTES;

        while (m->first != m->last && !atomic_load(&m->stopped) &&
                run_record(m, &m->records[m->first % ROOM], &left))
                m->first++;
}

/* Back on the core loop. */
static void memory_job_done(struct rig_slow_job *job)
{
        struct memory_device *m = RIG_CONTAINER_OF(job, struct memory_device, job);

        m->job_queued = false;
        if (!atomic_load(&m->stopped)) {
                if (m->head != m->first)
                        m->reached = m->records[(m->first - 1) % ROOM].value;
                m->head = m->first;
                queue_job(m);
                rig_device_kick(m->device);
        }
        memory_device_unref(m);
}

static int memory_room(struct rig_driver_device *device, const struct rig_submission *submission)
{
        const struct memory_device *m = device->drv;

        return m->tail - m->head < ROOM;
}

static int memory_hand_over(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        struct memory_device *m = device->drv;
        struct record *record;

        if (m->head == m->tail && !m->async && is_small(submission->work, submission->slots)) {
                for (uint32_t i = 0; i < submission->work->n_parts; i++)
                        run_part(&submission->work->parts[i], submission->slots, 0, UINT64_MAX);
                m->reached = submission->value;
                rig_device_ran(device);
                return 0;
        }
        rig_assert(m->tail - m->head < ROOM); /* room() said so */
        record = &m->records[m->tail++ % ROOM];
        record->value = submission->value;
        record->work = submission->work;
        memcpy(record->slots, submission->slots, submission->work->n_slots * sizeof(record->slots[0]));
        return 0;
}

static void memory_commit(struct rig_driver_device *device)
{
        queue_job(device->drv);
}

static int memory_poll(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        const struct memory_device *m = device->drv;

        *ret_reached = m->reached;
        return 0;
}

/* ---------------------------------------------------------------- memory */

static int memory_region_alloc(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        return rig_region_alloc_host(bytes, ret_region, e); /* all kinds are the host's memory */
}

static void memory_region_free(struct rig_driver_adapter *adapter, struct rig_region *region)
{
        rig_region_free_host(region);
}

/* ---------------------------------------------------------------- devices */

static int memory_device_open(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        struct memory_device *m;

        if (options[0] && strcmp(options, "async") != 0)
                return rig_error_set(e, -EINVAL,
                        "a memory device has no option \"%s\"; its one option is \"async\"", options);
        m = calloc(1, sizeof(*m));
        if (!m)
                return rig_error_set(e, -ENOMEM, "no memory for a device");
        m->device = device;
        m->async = options[0];
        m->job = (struct rig_slow_job){.run = memory_job_run, .done = memory_job_done};
        rig_list_init(&m->job.link);
        atomic_init(&m->stopped, false);
        atomic_init(&m->holders, 1);
        device->drv = m;
        device->facts = (struct rig_facts){
                .flags = RIG_DEVICE_HOST_ADDRESSED | RIG_DEVICE_NAMES_HOST,
                .n_queues = 1,
                .queues = {RIG_RUNS_COPY | RIG_RUNS_FILL},
                .completion = RIG_COMPLETION_HOST,
        };
        return 0;
}

/* On the slow thread, so behind any run() that had begun; one that is still queued sees the flag. */
static int memory_stop(struct rig_driver_device *device)
{
        struct memory_device *m = device->drv;

        atomic_store(&m->stopped, true);
        return 0;
}

static void memory_device_close(struct rig_driver_device *device)
{
        memory_device_unref(device->drv);
        device->drv = NULL;
}

static int memory_discover(
        void (*found)(const struct rig_driver_adapter *adapter, void *userdata), void *userdata)
{
        uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        struct rig_driver_adapter adapter = {
                .driver = &rig_driver_memory,
                .name = "memory",
                .any_instance = true,
                .budget_bytes = pages / 2 * page_bytes, /* half of the machine's */
        };

        snprintf(adapter.about, sizeof(adapter.about), "the host's memory, %llu MiB",
                (unsigned long long)(pages * page_bytes >> 20));
        found(&adapter, userdata);
        return 0;
}

const struct rig_driver rig_driver_memory = {
        .name = "memory",
        .commit = memory_commit,
        .device_close = memory_device_close,
        .device_open = memory_device_open,
        .discover = memory_discover,
        .hand_over = memory_hand_over,
        .poll = memory_poll,
        .region_alloc = memory_region_alloc,
        .region_free = memory_region_free,
        .room = memory_room,
        .stop = memory_stop,
};
