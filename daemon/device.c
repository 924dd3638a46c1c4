/* SPDX-License-Identifier: ISC */
/*
 * Devices (daemon/device.h): what stands between a timeline, which says what may run, and a driver, which
 * runs it.
 *
 * Ending. A device that is dropped closes once its work is over, on the slow thread. One that is lost is
 * stopped there first, and its memory returns when the driver says that no work of it runs any more (L3).
 */
#include "daemon/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "daemon/client.h"
#include "daemon/log/log.h"
#include "daemon/trace.h"
#include "daemon/work.h"

const char *rig_device_describe(const struct rig_device *device)
{
        return device->adapter->driver.name;
}

const char *rig_device_loss(const struct rig_timeline *timeline)
{
        return timeline->remains ? timeline->remains : "a device that is closed";
}

/* ---------------------------------------------------------------- what the client sees */

static struct rig_word *word(const struct rig_device *d)
{
        return d->client && d->client->words && d->id ? &d->client->words->word[d->id - 1] : NULL;
}

static void tell_reached(struct rig_device *d)
{
        struct rig_word *w = word(d);

        if (w) {
                /* Pairs with a client's look at the word after it counted itself a sleeper. */
                atomic_store_explicit(&w->signaled, d->timeline->reached, memory_order_seq_cst);
                rig_client_wake(d->client, &w->signaled);
        } else if (d->client && d->id && d->told_reached != d->timeline->reached) {
                if (rig_client_clogged(d->client))
                        return; /* the newest value is told when it reads on: rig_device_catch_up() */
                struct rig_msg_reached m = {.device = d->id, .value = d->timeline->reached};

                rig_client_send(d->client, RIG_MSG_REACHED, &m, NULL, 0);
        }
        d->told_reached = d->timeline->reached;
}

static void tell_ready(struct rig_device *d)
{
        struct rig_word *w = word(d);

        if (d->told_ready == d->ready || (!w && d->client && rig_client_clogged(d->client)))
                return;
        d->told_ready = d->ready;
        if (w) {
                atomic_store_explicit(&w->ready, d->ready, memory_order_seq_cst);
                rig_client_wake(d->client, &w->ready);
        } else if (d->client && d->id) {
                struct rig_msg_ready m = {.device = d->id, .value = d->ready};

                rig_client_send(d->client, RIG_MSG_READY, &m, NULL, 0);
        }
}

void rig_device_catch_up(struct rig_device *device)
{
        tell_ready(device);
        tell_reached(device);
}

/* Before the value is told: who waits for it looks at the count of failures then. */
static void tell_failed(struct rig_device *d, uint64_t value, int error, const char *text, bool lost)
{
        struct rig_word *w = word(d);
        struct rig_msg_run_failed m = {.device = d->id,
                .value = value,
                .error = (uint32_t)-error,
                .text = rig_text(text, RIG_PROTO_TEXT_MAX),
                .lost = lost};

        d->failures++;
        if (!d->client || !d->id)
                return;
        rig_client_send(d->client, RIG_MSG_RUN_FAILED, &m, NULL, 0);
        if (w)
                atomic_store_explicit(&w->failures, d->failures, memory_order_release);
}

static void tell_lost(struct rig_device *d)
{
        struct rig_word *w = word(d);
        struct rig_msg_device_lost m = {
                .device = d->id, .error = ENODEV, .text = rig_text(d->reason, RIG_PROTO_TEXT_MAX)};

        if (!d->client || !d->id)
                return;
        rig_client_send(d->client, RIG_MSG_DEVICE_LOST, &m, NULL, 0);
        if (!w)
                return;
        atomic_store_explicit(&w->flags, RIG_WORD_LOST, memory_order_seq_cst);
        rig_client_wake(d->client, &w->signaled);
        rig_client_wake(d->client, &w->ready);
}

/* ---------------------------------------------------------------- what it used */

/* Adds what was counted since the last time to what its client and its adapter are told. */
static void tell_usage(struct rig_device *d)
{
        rig_usage_add(&d->usage, &d->untold);
        rig_usage_add(&d->adapter->usage, &d->untold);
        if (d->client)
                rig_usage_add(&d->client->usage, &d->untold);
        d->untold = (struct rig_usage){0};
}

void rig_device_count_busy(struct rig_device *device, uint64_t now_nsec)
{
        struct rig_device *d = device;

        if (rig_list_empty(&d->busy))
                return;
        d->untold.busy_nsec += now_nsec - d->busy_nsec;
        d->busy_nsec = now_nsec;
        tell_usage(d);
}

/*
 * The time is the loop's last look at the clock, at most CLOCK_TURNS turns ago, or when a device was idle
 * last: so short work is counted as up to half a microsecond more than it takes, and never twice.
 */
static void set_busy(struct rig_device *d)
{
        struct rig_core *core = d->adapter->core;

        rig_list_append(&core->busy, &d->busy);
        d->busy_nsec = core->now_nsec ? core->now_nsec : rig_now_nsec();
        if (d->driver.facts.hang_usec)
                rig_core_arm_hang_timer(d->adapter->core);
}

static void set_idle(struct rig_device *d)
{
        if (rig_list_empty(&d->busy))
                return;
        d->adapter->core->now_nsec = rig_now_nsec();
        rig_device_count_busy(d, d->adapter->core->now_nsec);
        rig_list_remove(&d->busy);
}

/* ---------------------------------------------------------------- the timeline's ops */

static int op_room(struct rig_timeline *timeline, const struct rig_run *run)
{
        struct rig_device *d = timeline->userdata;
        const struct rig_run_load *load = run->payload;
        const struct rig_driver *ops = d->adapter->driver.driver;
        int r;

        if (!ops->room)
                return 1;
        d->prompt = true;
        r = ops->room(&d->driver, &load->submission);
        d->prompt = false;
        return r < 0 ? 1 : r; /* what never fits is refused by hand_over() */
}

/*
 * A queue waits only for devices of its own client: another client's loss must not stall it (L6), while a
 * run that the core holds back is merely lost.
 */
static bool op_queue_waits(struct rig_timeline *timeline, const struct rig_timeline *producer)
{
        const struct rig_device *d = timeline->userdata, *p = producer->userdata;

        return p && p->client == d->client && d->client &&
               d->driver.facts.waits_on & 1u << p->driver.facts.completion;
}

static unsigned op_max_waits(struct rig_timeline *timeline)
{
        const struct rig_device *d = timeline->userdata;

        return RIG_MIN(d->driver.facts.max_waits, RIG_PROTO_DEVICES_MAX);
}

static int op_hand_over(struct rig_timeline *timeline, struct rig_run *run)
{
        struct rig_device *d = timeline->userdata;
        struct rig_run_load *load = run->payload;
        struct rig_queue_wait waits[RIG_PROTO_DEVICES_MAX];
        struct rig_run_times *times;
        struct rig_error e;
        int r;

        e.code = 0; /* all of it would cost more than the hand-over */

        for (unsigned i = 0; i < run->n_waits; i++) {
                struct rig_device *p = run->points[i].timeline->userdata;

                waits[i] = (struct rig_queue_wait){.producer = &p->driver, .value = run->points[i].value};
        }
        load->submission.waits = waits;
        load->submission.n_waits = run->n_waits;
        if (rig_list_empty(&d->busy))
                set_busy(d);
        times = rig_run_times(run);
        if (rig_unlikely(times != NULL))
                times->handed_nsec = rig_now_nsec();
        d->ran = false;
        d->prompt = true;
        r = d->adapter->driver.driver->hand_over(&d->driver, &load->submission, &e);
        d->prompt = false;
        if (rig_unlikely(times != NULL) && d->ran)
                times->ended_nsec = rig_now_nsec();
        if (r < 0)
                snprintf(d->reason, sizeof(d->reason), "value %llu could not be handed over: %s",
                        (unsigned long long)run->value, e.code ? e.text : strerror(-r));
        return r;
}

static void op_commit(struct rig_timeline *timeline)
{
        struct rig_device *d = timeline->userdata;

        if (!d->adapter->driver.driver->commit)
                return;
        d->prompt = true;
        d->adapter->driver.driver->commit(&d->driver);
        d->prompt = false;
        tell_ready(d);
}

static void op_run_lost(struct rig_timeline *timeline, struct rig_run *run, struct rig_timeline *culprit)
{
        struct rig_device *d = timeline->userdata;
        char text[RIG_ERROR_TEXT_MAX];

        snprintf(text, sizeof(text), "it followed work that is lost with %s", rig_device_loss(culprit));
        tell_failed(d, run->value, -ENODEV, text, true);
}

uint64_t rig_run_moves(const struct rig_run *run, uint64_t *ret_copied)
{
        const struct rig_run_load *load = run->payload;
        const struct rig_driver_work *work = &load->work->driver;
        uint64_t copied = 0, filled = 0;

        for (uint32_t p = 0; p < work->n_parts; p++)
                if (work->parts[p].kind == RIG_PART_COPY)
                        copied += rig_part_moves(&work->parts[p], load->slots);
                else
                        filled += rig_part_moves(&work->parts[p], load->slots);
        if (ret_copied)
                *ret_copied = copied;
        return copied + filled;
}

static void op_run_over(struct rig_timeline *timeline, struct rig_run *run)
{
        struct rig_device *d = timeline->userdata;
        struct rig_run_load *load = run->payload;
        bool lost = run->lost || run->value > timeline->reached;

        if (rig_unlikely(lost))
                d->untold.lost++;
        else
                d->untold.copied_bytes += rig_run_moves(run, NULL);
        if (rig_unlikely(run->marked))
                rig_trace_over(d, run, lost);
        if (d->client)
                rig_client_run_over(d->client);
        rig_work_unref(load->work);
}

static void op_advanced(struct rig_timeline *timeline)
{
        struct rig_device *d = timeline->userdata;

        tell_reached(d);
        d->untold.reached = timeline->reached - d->usage.reached;
        tell_usage(d);
}

static void op_failed(struct rig_timeline *timeline, int error)
{
        struct rig_device *d = timeline->userdata;
        char reason[RIG_ERROR_TEXT_MAX];

        memcpy(reason, d->reason, sizeof(reason));
        rig_device_lose(d, reason, false);
}

static void op_stuck(struct rig_timeline *timeline, struct rig_timeline *producer)
{
        char reason[RIG_ERROR_TEXT_MAX];

        snprintf(reason, sizeof(reason), "its queue waits for work that is lost with %s",
                rig_device_loss(producer));
        rig_device_lose(timeline->userdata, reason, false);
}

static const struct rig_timeline_ops timeline_ops = {
        .advanced = op_advanced,
        .commit = op_commit,
        .failed = op_failed,
        .hand_over = op_hand_over,
        .max_waits = op_max_waits,
        .queue_waits = op_queue_waits,
        .room = op_room,
        .run_lost = op_run_lost,
        .run_over = op_run_over,
        .stuck = op_stuck,
};

/* ---------------------------------------------------------------- life */

struct rig_device *rig_device_new(
        struct rig_adapter *adapter, struct rig_client *client, uint32_t id, const char *name)
{
        struct rig_device *d = calloc(1, sizeof(*d));

        if (!d)
                return NULL;
        d->timeline = rig_timeline_new(&adapter->core->order, &timeline_ops, d);
        if (!d->timeline) {
                free(d);
                return NULL;
        }
        d->adapter = adapter;
        d->client = rig_client_ref(client); /* what is in flight tells it, also after it closed the device */
        d->id = id;
        d->number = ++adapter->core->last_device;
        snprintf(d->name, sizeof(d->name), "%s", name);
        d->refs = 1;
        d->driver.adapter = &adapter->driver;
        d->driver.core = d;
        rig_list_init(&d->busy);
        rig_list_append(&adapter->devices, &d->link);
        adapter->n_devices++;
        return d;
}

static void forget_client(struct rig_device *d)
{
        struct rig_client *c = d->client;

        d->client = NULL;
        rig_client_unref(c);
}

static void device_free(struct rig_device *d)
{
        rig_watch_cancel(&d->drained);
        sd_event_source_disable_unref(d->source);
        set_idle(d);
        tell_usage(d);
        forget_client(d);
        rig_list_remove(&d->link);
        d->adapter->n_devices--;
        d->timeline->userdata = NULL;
        rig_timeline_unref(d->timeline);
        free(d);
}

struct device_job {
        struct rig_slow_job job;
        struct rig_device *device;
        int r;
};

static void defer(
        struct rig_device *d, void (*run)(struct rig_slow_job *), void (*done)(struct rig_slow_job *))
{
        struct device_job *j = calloc(1, sizeof(*j));

        if (!j) {
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(d->adapter, RIG_LOG_OUT_OF_MEMORY),
                        "%s: no memory to end a device: it stays", rig_device_describe(d));
                return;
        }
        j->device = d;
        j->job.run = run;
        j->job.done = done;
        rig_adapter_defer(&d->adapter->driver, &j->job);
}

static void close_run(struct rig_slow_job *job)
{
        struct rig_device *d = RIG_CONTAINER_OF(job, struct device_job, job)->device;

        d->adapter->driver.driver->device_close(&d->driver);
}

static void close_done(struct rig_slow_job *job)
{
        struct device_job *j = RIG_CONTAINER_OF(job, struct device_job, job);

        device_free(j->device);
        free(j);
}

static void close_device(struct rig_device *d)
{
        if (!d->open) {
                device_free(d);
                return;
        }
        d->open = false;
        sd_event_source_disable_unref(d->source);
        d->source = NULL;
        defer(d, close_run, close_done);
}

static void drained(struct rig_watch *watch, struct rig_timeline *culprit)
{
        struct rig_device *d = watch->userdata;

        if (d->lost && !d->timeline->ended)
                d->unended = true; /* until rig_device_ended() */
        else
                close_device(d);
}

void rig_device_ended(struct rig_device *device)
{
        rig_timeline_lose(device->timeline, true);
        if (device->unended) {
                device->unended = false;
                close_device(device);
        }
}

struct rig_device *rig_device_ref(struct rig_device *device)
{
        device->refs++;
        return device;
}

struct rig_device *rig_device_unref(struct rig_device *device)
{
        struct rig_device *d = device;

        if (!d || --d->refs || d->closing)
                return NULL;
        d->closing = true;
        rig_watch_value(
                &d->drained, &d->adapter->core->order, d->timeline, d->timeline->submitted, drained, d);
        return NULL;
}

static int descriptor_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct rig_device *d = userdata;

        if (rig_device_poll(d))
                rig_core_settle(d->adapter->core);
        return 0;
}

int rig_device_opened(struct rig_device *device)
{
        struct rig_device *d = device;
        int fd, r;

        d->open = true;
        if (rig_traced(d->adapter->core))
                rig_trace_opened(d);
        if (!d->adapter->driver.driver->descriptor)
                return 0;
        fd = d->adapter->driver.driver->descriptor(&d->driver);
        if (fd < 0)
                return 0;
        r = sd_event_add_io(d->adapter->core->event, &d->source, fd, EPOLLIN | EPOLLET, descriptor_ready, d);
        if (r < 0)
                return r;
        sd_event_source_set_description(d->source, "completions");
        return sd_event_source_set_priority(d->source, SD_EVENT_PRIORITY_IMPORTANT);
}

void rig_device_leave(struct rig_device *device, bool client_gone)
{
        struct rig_device *d = rig_device_ref(device);

        /* While it is not open its facts are the slow thread's. */
        if (d->open && d->driver.facts.flags & RIG_DEVICE_CLIENT_CODE &&
                d->timeline->reached < d->timeline->submitted)
                rig_device_lose(d,
                        client_gone ? "the program whose code it runs has ended"
                                    : "it was closed before its program's code was done",
                        true);
        d->id = 0;
        if (client_gone)
                forget_client(d);
        rig_device_unref(d);
}

/* ---------------------------------------------------------------- progress and loss */

bool rig_device_poll(struct rig_device *device)
{
        struct rig_device *d = device;
        uint64_t reached = d->timeline->reached, before = reached;
        struct rig_error e;
        int r;

        if (!d->open || d->lost)
                return false; /* its stop is on the slow thread */
        e.code = 0;
        d->prompt = true;
        r = d->adapter->driver.driver->poll(&d->driver, &reached, &e);
        d->prompt = false;
        if (r < 0) {
                rig_device_lose(d, e.code ? e.text : strerror(-r), false);
                return true;
        }
        rig_timeline_reach(d->timeline, reached);
        if (d->timeline->reached >= d->timeline->handed)
                set_idle(d);
        return d->timeline->reached != before;
}

static void stop_run(struct rig_slow_job *job)
{
        struct device_job *j = RIG_CONTAINER_OF(job, struct device_job, job);
        struct rig_device *d = j->device;

        j->r = d->adapter->driver.driver->stop(&d->driver);
}

static void stop_done(struct rig_slow_job *job)
{
        struct device_job *j = RIG_CONTAINER_OF(job, struct device_job, job);
        struct rig_device *d = j->device;

        struct rig_adapter *a = d->adapter;

        rig_device_unref(d);
        if (j->r != -EINPROGRESS)
                rig_device_ended(d);
        rig_adapter_stopped(a, j->r == -EINPROGRESS);
        rig_core_settle(a->core);
        free(j);
}

void rig_device_lose(struct rig_device *device, const char *reason, bool ended)
{
        struct rig_device *d = device;

        if (d->lost)
                return;
        d->lost = true;
        snprintf(d->reason, sizeof(d->reason), "%s", reason);
        rig_log_about(LOG_WARNING,
                &(struct rig_log_about){.message_id = RIG_LOG_DEVICE_LOST,
                        .adapter = d->adapter->driver.name,
                        .device = d->name,
                        .client = d->client ? d->client->number : 0,
                        .pid = d->client ? d->client->pid : 0,
                        .uid = d->client ? d->client->uid : 0,
                        .limited = true},
                "%s of %s is lost: %s", rig_device_describe(d),
                d->client ? d->client->name : "a client that is gone", reason);
        if (asprintf(&d->timeline->remains, "%s: %s", rig_device_describe(d), reason) < 0)
                d->timeline->remains = NULL;
        set_idle(d);
        rig_timeline_lose(d->timeline, ended || !d->open);
        tell_usage(d);
        tell_lost(d);
        if (!d->open)
                return;
        d->adapter->n_stops++;
        rig_device_ref(d);
        defer(d, stop_run, stop_done);
}

int rig_device_client_done(
        struct rig_device *device, uint64_t value, int error, const char *text, struct rig_error *e)
{
        struct rig_device *d = device;
        int r;

        if (d->lost)
                return 0; /* it was under way when the device was lost */
        if (!d->adapter->driver.driver->client_done)
                return rig_error_set(e, -EINVAL, "device %u runs no work of the client's", d->id);
        d->prompt = true;
        r = d->adapter->driver.driver->client_done(&d->driver, value, error, text);
        d->prompt = false;
        if (r < 0)
                return rig_error_set(e, r,
                        "value %llu of device %u was not to be run: it may run up to %llu",
                        (unsigned long long)value, d->id, (unsigned long long)d->ready);
        return 0;
}

/* ---------------------------------------------------------------- what the core offers a driver */

void rig_device_kick(struct rig_driver_device *device)
{
        struct rig_core *core = device->core->adapter->core;

        /* Either this sees that the core sleeps, or the core sees the kick before it does (core.c). */
        atomic_store_explicit(&core->kicked, true, memory_order_seq_cst);
        if (atomic_load_explicit(&core->asleep, memory_order_seq_cst))
                rig_post_wake(core->post);
}

void rig_device_run_failed(struct rig_driver_device *device, uint64_t value, int error, const char *fmt, ...)
{
        char text[RIG_ERROR_TEXT_MAX];
        va_list ap;

        rig_assert(device->core->prompt);
        device->core->untold.failed++;
        device->core->error = error;
        device->core->error_value = value;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        tell_failed(device->core, value, error, text, false);
}

void rig_device_ready(struct rig_driver_device *device, uint64_t value)
{
        rig_assert(device->core->prompt);
        device->core->ready = value;
}

void rig_device_ran(struct rig_driver_device *device)
{
        rig_assert(device->core->prompt);
        device->core->ran = true;
}
