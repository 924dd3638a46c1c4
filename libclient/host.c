/* SPDX-License-Identifier: ISC */
/*
 * Host devices: the program's own code as ordered work.
 *
 * rigd orders a host device's runs as any device's, and says in the device's word how far they may go. The
 * runs themselves wait here, in a list of what was submitted; the leading worker takes them in order, waits
 * until the next one may run, does its parts one after the other with the help of all workers, and publishes
 * that it is done. A run that may follow at once costs no round trip.
 *
 * A run that rigd passed, because it is lost with another device's work, must not be done. rigd counts a
 * failure before it moves the word past it: so the failures that are due are read before a run begins.
 *
 * What a run uses is kept by its entry in the list: the memories' mappings and the work's parts, which the
 * program may have dropped. The device itself is not: its last reference waits here until the list is empty,
 * so that accepted work completes.
 *
 * Nobody is woken while there is nothing to run.
 */
#include "libclient/host.h"

#include <sched.h>
#include <string.h>

#include "base/futex.h"
#include "gen/rig-proto-fast.h"
#include "libclient/crew.h"
#include "libclient/part.h"
#include "libclient/wait.h"
#include "libclient/wire.h"

#define HEADER_WORDS   2 /* of an entry: the value, and the work */
#define SLOT_WORDS     3 /* address, bytes, memory */
#define FIFO_WORDS_MIN 4096u
#define WORKERS_MAX    1024
#define NAP_USEC       (50 * RIG_USEC_PER_MSEC)

/* A run, taken from the list. */
struct host_run {
        uint64_t value;
        struct rig_work *work;                           /* pinned */
        struct rig_host_slot slots[RIG_PROTO_SLOTS_MAX]; /* each with a reference on its memory */
};

struct rig_host {
        struct rig_device *device; /* not counted: it ends us */
        pthread_mutex_t start_mutex;
        uint32_t wanted;      /* workers, or 0: as many as cores; under start_mutex */
        bool started;         /* under start_mutex */
        _Atomic bool running; /* the same, to look at */

        struct rig_crew crew;

        /* under the crew's lock */
        uint64_t *fifo; /* entries, in words */
        uint32_t fifo_words;
        uint64_t first, used;                   /* positions, in words ever queued */
        bool kick;                              /* something was queued while nobody led */
        uint64_t taken;                         /* the value of the run that the leader has */
        bool skip;                              /* rigd passed it */
        void (*end)(struct rig_device *device); /* to be called once all is done */

        _Atomic uint32_t n_runs;    /* queued or being done; who ends the device sleeps on it */
        struct rig_part_run *parts; /* the leader's */
};

int rig_host_new(struct rig_device *device, struct rig_host **ret_host)
{
        struct rig_host *host = calloc(1, sizeof(*host));

        if (!host)
                return rig_fail_memory();
        host->device = device;
        pthread_mutex_init(&host->start_mutex, NULL);
        *ret_host = host;
        return 0;
}

struct rig_host *rig_host_free(struct rig_host *host)
{
        if (!host)
                return NULL;
        pthread_mutex_destroy(&host->start_mutex);
        rig_part_run_free(host->parts);
        free(host->fifo);
        free(host);
        return NULL;
}

/* ---------------------------------------------------------------- the list */

static uint64_t *at(struct rig_host *host, uint64_t position)
{
        return &host->fifo[position & (host->fifo_words - 1)];
}

static uint64_t entry_words(const struct rig_work *work)
{
        return HEADER_WORDS + (uint64_t)work->n_slots * SLOT_WORDS;
}

static struct rig_work *work_at(struct rig_host *host, uint64_t position)
{
        return (struct rig_work *)(uintptr_t)*at(host, position + 1);
}

int rig_host_room(struct rig_host *host, const struct rig_work *work)
{
        uint64_t need = entry_words(work);
        uint32_t words;
        uint64_t *grown, *old;
        int r = 0;

        rig_lock_take(&host->crew.lock);
        words = RIG_MAX(host->fifo_words, FIFO_WORDS_MIN);
        while (words < host->used - host->first + need)
                words *= 2;
        if (words > host->fifo_words) {
                grown = calloc(words, sizeof(*grown));
                for (uint64_t p = host->first; grown && p < host->used; p++)
                        grown[p & (words - 1)] = *at(host, p);
                old = host->fifo;
                if (grown) {
                        host->fifo = grown;
                        host->fifo_words = words;
                        free(old);
                } else {
                        r = rig_fail_memory();
                }
        }
        rig_lock_drop(&host->crew.lock);
        return r;
}

void rig_host_push(
        struct rig_host *host, uint64_t value, struct rig_work *work, const struct rig_host_slot *slots)
{
        uint64_t p;

        rig_work_pin(work);
        atomic_fetch_add_explicit(&host->n_runs, 1, memory_order_relaxed);
        rig_lock_take(&host->crew.lock);
        p = host->used;
        *at(host, p++) = value;
        *at(host, p++) = (uintptr_t)work;
        for (uint32_t i = 0; i < work->n_slots; i++) {
                *at(host, p++) = (uintptr_t)slots[i].address;
                *at(host, p++) = slots[i].bytes;
                *at(host, p++) = (uintptr_t)rig_memory_ref(slots[i].memory);
        }
        host->used = p;
        host->crew.work = true;
        host->kick |= !host->crew.leading;
        rig_lock_drop(&host->crew.lock);
}

void rig_host_wake(struct rig_host *host)
{
        bool kick;

        rig_lock_take(&host->crew.lock);
        kick = host->kick;
        host->kick = false;
        rig_lock_drop(&host->crew.lock);
        if (kick)
                rig_crew_wake(&host->crew, 1);
}

void rig_host_skip(struct rig_host *host, uint64_t value)
{
        rig_lock_take(&host->crew.lock);
        if (host->taken == value)
                host->skip = true;
        for (uint64_t p = host->first; p < host->used; p += entry_words(work_at(host, p)))
                if (*at(host, p) == value)
                        *at(host, p) |= RIG_HOST_SKIP;
        rig_lock_drop(&host->crew.lock);
}

/* With the crew's lock held. */
static void take_entry(struct rig_host *host, struct host_run *run)
{
        uint64_t p = host->first;

        run->value = *at(host, p) & ~RIG_HOST_SKIP;
        host->taken = run->value;
        host->skip = *at(host, p++) & RIG_HOST_SKIP;
        run->work = (struct rig_work *)(uintptr_t)*at(host, p++);
        for (uint32_t i = 0; i < run->work->n_slots; i++) {
                run->slots[i].address = (uint8_t *)(uintptr_t)*at(host, p++);
                run->slots[i].bytes = *at(host, p++);
                run->slots[i].memory = (struct rig_memory *)(uintptr_t)*at(host, p++);
        }
        host->first = p;
}

/* Waits for an entry for a moment. With the crew's lock held, and dropped. Return: if there is one. */
static bool some_entry(struct rig_host *host)
{
        uint64_t until = 0;

        while (host->first == host->used) {
                uint64_t now = rig_now_usec();

                if (until == 0)
                        until = now + host->device->rig->spin_usec;
                if (now >= until || host->end)
                        return false;
                rig_lock_drop(&host->crew.lock);
                for (int i = 0; i < 32; i++)
                        rig_cpu_relax();
                rig_lock_take(&host->crew.lock);
        }
        return true;
}

/* ---------------------------------------------------------------- running */

enum verdict {
        VERDICT_WAIT,
        VERDICT_RUN,
        VERDICT_PASSED, /* rigd passed it: it is lost */
        VERDICT_DROP,   /* nobody will hear of it */
};

struct judged {
        struct rig_host *host;
        uint64_t value;
};

static enum verdict judge(const struct judged *j)
{
        struct rig_device *device = j->host->device;

        if (rig_device_lost_now(device) ||
                atomic_load_explicit(&device->rig->broken, memory_order_relaxed) < 0)
                return VERDICT_DROP;
        if (rig_device_ready_now(device) >= j->value)
                return VERDICT_RUN;
        return rig_device_now(device) >= j->value ? VERDICT_PASSED : VERDICT_WAIT;
}

static bool judged(void *data)
{
        return judge(data) != VERDICT_WAIT;
}

static void wait_for_word(const struct judged *j)
{
        struct rig_device *device = j->host->device;
        struct rig *rig = device->rig;
        uint64_t until = rig_now_usec() + rig->spin_usec, seen;

        while (!judged((void *)(uintptr_t)j) && rig_now_usec() < until)
                rig_cpu_relax();
        while (!judged((void *)(uintptr_t)j)) {
                seen = rig_device_ready_now(device);
                if (seen < j->value)
                        rig_nap(rig, &device->word->ready, seen, NAP_USEC);
        }
}

static void wait_for_socket(const struct judged *j)
{
        struct rig *rig = j->host->device->rig;

        rig_lock_take(&rig->lock);
        rig_wire_drain(rig);
        /* Whatever ends it, the verdict is asked again. */
        (void)rig_wire_wait(rig, judged, (void *)(uintptr_t)j, RIG_USEC_INFINITY, rig->spin_usec);
        rig_lock_drop(&rig->lock);
}

/* Waits until the run may be done, and says whether it is to be. */
static enum verdict await_turn(struct rig_host *host, uint64_t value)
{
        struct judged j = {.host = host, .value = value};
        struct rig_device *device = host->device;
        enum verdict verdict;
        bool skip;
        int r = 0;

        if (!judged(&j)) {
                if (device->word)
                        wait_for_word(&j);
                else
                        wait_for_socket(&j);
        }
        verdict = judge(&j);
        if (verdict != VERDICT_RUN)
                return verdict;
        if (!rig_device_faultless(device)) {
                rig_lock_take(&device->rig->lock);
                r = rig_device_catch_up(device);
                rig_lock_drop(&device->rig->lock);
        }
        rig_lock_take(&host->crew.lock);
        skip = host->skip;
        rig_lock_drop(&host->crew.lock);
        if (r < 0)
                return VERDICT_DROP;
        return skip ? VERDICT_PASSED : VERDICT_RUN;
}

/* Tells rigd that the run is done, or failed with `error`. What cannot be told breaks the connection by
 * itself. */
static void publish_done(struct rig_device *device, uint64_t value, int error)
{
        struct rig_msg_host_done m;
        struct rig *rig = device->rig;
        uint8_t *out;

        /* release: pairs with rig_device_now() */
        atomic_store_explicit(&device->done, value, memory_order_release);
        m.device = device->id;
        m.value = value;
        m.has_failed = m.has_text = error < 0;
        if (error < 0) {
                m.failed = (uint32_t)-error;
                m.text = rig_text(rig_strerror(error), RIG_PROTO_TEXT_MAX);
        }
        rig_lock_take(&rig->lock);
        out = rig->ring && rig_check(rig) == 0 ? rig_wire_reserve(rig, RIG_FAST_HOST_DONE_BYTES_MAX) : NULL;
        if (out)
                rig_wire_publish(rig, rig_fast_host_done_encode(&m, out));
        else
                (void)rig_wire_order(rig, RIG_MSG_HOST_DONE, &m);
        rig_lock_drop(&rig->lock);
        rig_wire_ring_bell(rig);
}

static void do_run(struct rig_host *host, uint32_t worker, struct host_run *run)
{
        int r;

        if (await_turn(host, run->value) == VERDICT_RUN) {
                r = rig_part_run_all(host->parts, &host->crew, worker, run->work, run->slots);
                publish_done(host->device, run->value, r);
        }
        for (uint32_t i = 0; i < run->work->n_slots; i++)
                rig_memory_unref(run->slots[i].memory);
        rig_work_unpin(run->work);
}

/* The device was dropped in a run of its own, and all of its runs are done. */
static void end_here(struct rig_host *host)
{
        void (*end)(struct rig_device * device) = host->end;
        struct rig_device *device = host->device;

        rig_crew_stop(&host->crew);
        end(device);
}

/* What the leading worker does. */
static bool lead(void *data, uint32_t worker)
{
        struct rig_host *host = data;
        struct host_run run;
        bool ends;

        rig_lock_take(&host->crew.lock);
        while (some_entry(host)) {
                take_entry(host, &run);
                rig_lock_drop(&host->crew.lock);
                do_run(host, worker, &run);
                /* release: pairs with who ends the device and sees 0 */
                if (atomic_fetch_sub_explicit(&host->n_runs, 1, memory_order_acq_rel) == 1)
                        rig_futex_wake(&host->n_runs);
                rig_lock_take(&host->crew.lock);
                host->taken = 0;
        }
        host->crew.work = false;
        ends = host->end;
        host->crew.leading = ends; /* nobody leads what is ending */
        rig_lock_drop(&host->crew.lock);
        if (ends)
                end_here(host);
        return !ends;
}

/* ---------------------------------------------------------------- starting and ending */

static uint32_t cores(void)
{
        cpu_set_t cpus;
        int n = 0;

        if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
                n = CPU_COUNT(&cpus);
        n = RIG_MAX(n, 1);
        return (uint32_t)RIG_MIN(n, WORKERS_MAX);
}

static int start(struct rig_host *host)
{
        uint32_t n = host->wanted > 0 ? host->wanted : cores();
        int r;

        if (host->started)
                return 0;
        r = rig_part_run_new(n, &host->parts);
        if (r < 0)
                return rig_fail_memory();
        r = rig_crew_start(&host->crew, n, "rig-host", lead, host);
        if (r < 0) {
                host->parts = rig_part_run_free(host->parts);
                return rig_fail(r, "cannot start a worker: %s", rig_strerror(r));
        }
        host->started = true;
        /* release: pairs with the load in rig_host_start() */
        atomic_store_explicit(&host->running, true, memory_order_release);
        return 0;
}

int rig_host_start(struct rig_host *host)
{
        int r;

        if (rig_likely(atomic_load_explicit(&host->running, memory_order_acquire)))
                return 0;
        pthread_mutex_lock(&host->start_mutex);
        r = start(host);
        pthread_mutex_unlock(&host->start_mutex);
        return r;
}

static bool leave_to_worker(struct rig_host *host, void (*end)(struct rig_device *device))
{
        if (!rig_part_is_inside(host->parts))
                return false;
        rig_lock_take(&host->crew.lock);
        host->end = end;
        rig_lock_drop(&host->crew.lock);
        return true;
}

void rig_host_end(struct rig_host *host, void (*end)(struct rig_device *device))
{
        struct rig_device *device = host->device;
        uint32_t n;

        if (rig_forked(device->rig)) {
                end(device); /* its workers are the parent's: what they had is left alone */
                return;
        }
        if (leave_to_worker(host, end))
                return;
        for (;;) {
                /* acquire: what the runs did is before the end of what they used */
                n = atomic_load_explicit(&host->n_runs, memory_order_acquire);
                if (n == 0)
                        break;
                rig_futex_wait(&host->n_runs, n, NAP_USEC);
        }
        rig_crew_stop(&host->crew);
        end(device);
}

RIG_API int rig_host_set_workers(struct rig_device *device, uint32_t workers)
{
        int r = 0;

        if (!device || workers == 0 || workers > WORKERS_MAX)
                return rig_fail(-EINVAL, "a host device has 1 to %d workers", WORKERS_MAX);
        if (!device->host)
                return rig_fail(-EINVAL, "%s runs no code of this process", device->name);
        pthread_mutex_lock(&device->host->start_mutex);
        if (device->host->started)
                r = rig_fail(-EINVAL, "the workers of %s have started already", device->name);
        else
                device->host->wanted = workers;
        pthread_mutex_unlock(&device->host->start_mutex);
        return r;
}
