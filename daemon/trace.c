/* SPDX-License-Identifier: ISC */
/*
 * Recording (daemon/trace.h).
 *
 * A run that is accepted while somebody traces carries its times behind its record, and is written once it
 * is over, with the times known then; a trace that starts meanwhile has it without, and is not told of it.
 * Who may see what: a trace of one client sees its devices alone, and does not learn which other program's
 * device a run waited for.
 *
 * A ring is its reader's memory. A store into it may find no page, which the guard turns into a lost record.
 */
#include "daemon/trace.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/client.h"
#include "daemon/memory/guard.h"
#include "daemon/process.h"
#include "daemon/work.h"

#define MEMORY_NSEC (UINT64_C(1000) * RIG_NSEC_PER_USEC) /* between records of an adapter's memory */

struct rig_traced_memory {
        const struct rig_adapter *adapter;
        uint64_t live_bytes, cached_bytes;
};

static bool sees(const struct rig_trace *t, const struct rig_device *d)
{
        return !t->client || (d->client && d->client->number == t->client);
}

/* Writes a record about a device into every trace that sees it. */
static void write_about(const struct rig_device *d, const struct rig_trace_record *record)
{
        rig_list_for_each (l, &d->adapter->core->traces) {
                struct rig_trace *t = rig_list_entry(l, struct rig_trace, link);

                if (sees(t, d))
                        rig_trace_ring_write(&t->ring, record);
        }
}

/* ---------------------------------------------------------------- devices */

static struct rig_trace_record device_record(const struct rig_device *d)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_DEVICE, .device = d->number};
        struct rig_trace_device *opened = &record.opened;

        opened->id = d->id;
        opened->n_queues = d->driver.facts.n_queues;
        snprintf(opened->name, sizeof(opened->name), "%s", d->name);
        if (d->client) {
                opened->client = d->client->number;
                opened->pid = (uint32_t)d->client->pid;
                rig_process_command(d->client->pid, d->client->connected_boot_usec, opened->command);
        }
        return record;
}

void rig_trace_opened(struct rig_device *device)
{
        struct rig_trace_record record = device_record(device);

        write_about(device, &record);
}

/* ---------------------------------------------------------------- runs */

void rig_trace_accepted(struct rig_device *device, const struct rig_run *run)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_WAIT, .device = device->number};

        *rig_run_times(run) = (struct rig_run_times){.accepted_nsec = rig_now_nsec()};
        record.wait.value = run->value;
        for (unsigned i = 0; i < run->n_points; i++) {
                const struct rig_device *on = run->points[i].timeline->userdata;

                record.wait.on_value = run->points[i].value;
                rig_list_for_each (l, &device->adapter->core->traces) {
                        struct rig_trace *t = rig_list_entry(l, struct rig_trace, link);

                        if (!sees(t, device))
                                continue;
                        record.wait.on = on && sees(t, on) ? on->number : 0;
                        record.wait.on_value = record.wait.on ? run->points[i].value : 0;
                        rig_trace_ring_write(&t->ring, &record);
                }
        }
}

void rig_trace_over(struct rig_device *device, const struct rig_run *run, bool lost)
{
        const struct rig_run_load *load = run->payload;
        const struct rig_driver_work *work = &load->work->driver;
        const struct rig_run_times *times = rig_run_times(run);
        struct rig_trace_record record = {.kind = RIG_TRACE_RUN, .device = device->number};
        struct rig_trace_run *r = &record.run;
        uint64_t moved;

        r->value = run->value;
        r->accepted_nsec = times->accepted_nsec;
        /* One that was never handed over took no time of the device. */
        r->ended_nsec = times->ended_nsec ? times->ended_nsec : rig_now_nsec();
        r->started_nsec =
                times->handed_nsec ? RIG_MAX(times->handed_nsec, device->ended_nsec) : r->ended_nsec;
        r->ended_nsec = RIG_MAX(r->ended_nsec, r->started_nsec);
        device->ended_nsec = r->ended_nsec;
        r->error = lost ? -ENODEV : device->error_value == run->value ? device->error : 0;
        moved = lost ? 0 : rig_run_moves(run, &r->copied_bytes);
        r->filled_bytes = moved - r->copied_bytes;
        for (uint32_t p = 0; p < work->n_parts; p++) {
                r->launches += work->parts[p].kind == RIG_PART_LAUNCH;
                r->queues |= 1u << work->parts[p].queue;
        }
        static_assert(sizeof(r->name) == sizeof(load->work->name), "a record has room for a work's name");
        memcpy(r->name, load->work->name, sizeof(r->name));
        write_about(device, &record);
}

/* ---------------------------------------------------------------- memory */

/* What a trace is told of an adapter's memory: all of it, or its client's. */
static struct rig_traced_memory look(const struct rig_trace *t, const struct rig_adapter *a)
{
        struct rig_traced_memory m = {
                .adapter = a, .live_bytes = a->budget.live_bytes, .cached_bytes = a->budget.cached_bytes};

        if (!t->client)
                return m;
        m.live_bytes = m.cached_bytes = 0;
        rig_list_for_each (l, &t->core->clients) {
                const struct rig_client *c = rig_list_entry(l, struct rig_client, link);

                for (uint32_t i = 0; c->number == t->client && i < c->accounts.room; i++) {
                        const struct rig_account *account = c->accounts.slots[i];

                        if (account && account->adapter == a) {
                                m.live_bytes = account->share.live_bytes;
                                m.cached_bytes = account->cache.bytes;
                        }
                }
        }
        return m;
}

/* Where an adapter's last look lies. Return: NULL where there is no memory for it. */
static struct rig_traced_memory *last_look(struct rig_trace *t, const struct rig_adapter *a)
{
        struct rig_traced_memory *all;

        for (unsigned i = 0; i < t->n_memory; i++)
                if (t->memory[i].adapter == a)
                        return &t->memory[i];
        all = realloc(t->memory, (t->n_memory + 1) * sizeof(*all));
        if (!all)
                return NULL;
        t->memory = all;
        all[t->n_memory] = (struct rig_traced_memory){.adapter = a};
        return &all[t->n_memory++];
}

static void trace_memory(struct rig_trace *t, uint64_t now_nsec)
{
        t->memory_nsec = now_nsec;
        rig_list_for_each (l, &t->core->adapters) {
                const struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);
                struct rig_traced_memory *last = last_look(t, a), m = look(t, a);
                struct rig_trace_record record = {.kind = RIG_TRACE_MEMORY};

                if (!last || (last->live_bytes == m.live_bytes && last->cached_bytes == m.cached_bytes))
                        continue;
                *last = m;
                record.memory.nsec = now_nsec;
                record.memory.live_bytes = m.live_bytes;
                record.memory.cached_bytes = m.cached_bytes;
                snprintf(record.memory.adapter, sizeof(record.memory.adapter), "%s", a->driver.name);
                rig_trace_ring_write(&t->ring, &record);
        }
}

void rig_trace_memory(struct rig_core *core, bool last)
{
        uint64_t now_nsec = rig_now_nsec();

        rig_list_for_each (l, &core->traces) {
                struct rig_trace *t = rig_list_entry(l, struct rig_trace, link);

                if (last || now_nsec - t->memory_nsec >= MEMORY_NSEC)
                        trace_memory(t, now_nsec);
        }
}

/* ---------------------------------------------------------------- life */

static const char *refusal(int r)
{
        switch (r) {
        case -EPERM:
                return "the ring of a trace is a memfd, sealed with F_SEAL_SHRINK, F_SEAL_GROW and "
                       "F_SEAL_SEAL, "
                       "that can be written";
        case -EINVAL:
                return "the ring of a trace is a page, then a power of two of records of 128 bytes, at "
                       "least 256";
        default:
                return strerror(-r);
        }
}

int rig_trace_start(struct rig_core *core, int fd, uint64_t max_bytes, uint64_t client,
        struct rig_trace **ret_trace, struct rig_error *e)
{
        struct rig_trace *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return rig_error_set(e, -ENOMEM, "no memory for a trace");
        rig_list_init(&t->link);
        t->core = core;
        t->client = client;
        r = rig_trace_ring_map(fd, max_bytes, &t->ring);
        if (r >= 0)
                r = rig_guard_add(t->ring.page, rig_trace_file_bytes(t->ring.n_records), &t->guard);
        if (r < 0) {
                if (t->ring.page)
                        rig_trace_ring_unmap(&t->ring);
                free(t);
                return rig_error_set(e, r, "%s", refusal(r));
        }
        rig_list_append(&core->traces, &t->link);
        core->n_traces++;
        rig_list_for_each (l, &core->adapters) {
                const struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);

                rig_list_for_each (m, &a->devices) {
                        const struct rig_device *d = rig_list_entry(m, struct rig_device, link);
                        struct rig_trace_record record;

                        if (!d->open || !sees(t, d))
                                continue;
                        record = device_record(d);
                        rig_trace_ring_write(&t->ring, &record);
                }
        }
        trace_memory(t, rig_now_nsec());
        *ret_trace = t;
        return 0;
}

struct rig_trace *rig_trace_stop(struct rig_trace *trace)
{
        if (!trace)
                return NULL;
        trace_memory(trace, rig_now_nsec());
        rig_list_remove(&trace->link);
        trace->core->n_traces--;
        rig_guard_remove(trace->guard);
        rig_trace_ring_unmap(&trace->ring);
        free(trace->memory);
        free(trace);
        return NULL;
}
