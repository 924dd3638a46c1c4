/* SPDX-License-Identifier: ISC */
/*
 * The core that the kit plays. One loop, on the thread that runs the promises; one slow thread for the
 * adapter; nothing else. Slow ops go to the slow thread, and the loop turns while they run, as rigd's does.
 *
 * What is checked all the time, whichever promise is: services are called from the kind of thread they
 * allow; a word moves forwards only and never beyond what was handed over; a failure is told before its
 * value, with a sentence; the device is polled only after it was handed work, was kicked, or its descriptor
 * polled readable, so that a driver that forgets to say so gets stuck, visibly. Every wait is bounded by the
 * subject's patience.
 */
#include "tests/kit/kit.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "daemon/drivers/parts.h"

enum where { ELSEWHERE, ON_LOOP, ON_SLOW };
static _Thread_local enum where where;

void kit_broken(struct kit *kit, const char *fmt, ...)
{
        va_list ap;

        kit->broken++;
        if (kit->broken_here++ >= 5 || kit->quiet) /* the first few say it all */
                return;
        fprintf(stderr, "%s: %s: ", kit->subject->name, kit->promise);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
}

uint64_t kit_draw(struct kit *kit, uint64_t below)
{
        kit->random ^= kit->random << 13;
        kit->random ^= kit->random >> 7;
        kit->random ^= kit->random << 17;
        return kit->random % below;
}

static void wake(struct kit *kit)
{
        uint64_t one = 1;

        rig_assert(write(kit->wake, &one, sizeof(one)) == sizeof(one));
}

/* ---------------------------------------------------------------- what the core offers a driver */

void rig_device_kick(struct rig_driver_device *device)
{
        atomic_store(&device->core->kicked, true);
        wake(device->core->kit);
}

void rig_device_run_failed(struct rig_driver_device *device, uint64_t value, int error, const char *fmt, ...)
{
        struct rig_device *d = device->core;
        struct kit_run *run;
        va_list ap;

        kit_expect(d->kit, where == ON_LOOP, "rig_device_run_failed() was called away from the loop");
        if (!kit_expect(d->kit, value > d->reached && value <= d->handed,
                    "the failure of value %llu was told with %llu reached and %llu handed over",
                    (unsigned long long)value, (unsigned long long)d->reached,
                    (unsigned long long)d->handed))
                return;
        run = &d->runs[value - 1];
        kit_expect(d->kit, error < 0, "value %llu failed with %d, which is no error",
                (unsigned long long)value, error);
        run->failed = error;
        va_start(ap, fmt);
        vsnprintf(run->failure, sizeof(run->failure), fmt, ap);
        va_end(ap);
        kit_expect(
                d->kit, run->failure[0], "value %llu failed without a sentence", (unsigned long long)value);
}

void rig_device_ran(struct rig_driver_device *device)
{
        kit_expect(device->core->kit, device->core->handing,
                "rig_device_ran() was called away from hand_over()");
        device->core->ran = true;
}

void rig_device_ready(struct rig_driver_device *device, uint64_t value)
{
        struct rig_device *d = device->core;

        kit_expect(d->kit, where == ON_LOOP, "rig_device_ready() was called away from the loop");
        kit_expect(d->kit, device->facts.flags & RIG_DEVICE_CLIENT_CODE,
                "ready without RIG_DEVICE_CLIENT_CODE");
        kit_expect(d->kit, value > d->ready && value <= d->handed,
                "ready for %llu after %llu, with %llu handed over", (unsigned long long)value,
                (unsigned long long)d->ready, (unsigned long long)d->handed);
        d->ready = value;
}

void rig_adapter_defer(struct rig_driver_adapter *adapter, struct rig_slow_job *job)
{
        struct rig_adapter *a = adapter->core;

        kit_expect(a->kit, where == ON_LOOP, "rig_adapter_defer() was called away from the loop");
        pthread_mutex_lock(&a->lock);
        rig_list_append(&a->queue, &job->link);
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
}

/* ---------------------------------------------------------------- the slow thread */

static void *slow_thread(void *userdata)
{
        struct rig_adapter *a = userdata;

        where = ON_SLOW;
        pthread_mutex_lock(&a->lock);
        while (!a->quit || !rig_list_empty(&a->queue)) {
                struct rig_list *link = rig_list_pop(&a->queue);
                struct rig_slow_job *job;

                if (!link) {
                        pthread_cond_wait(&a->changed, &a->lock);
                        continue;
                }
                job = rig_list_entry(link, struct rig_slow_job, link);
                pthread_mutex_unlock(&a->lock);
                job->run(job);
                pthread_mutex_lock(&a->lock);
                rig_list_append(&a->done, &job->link);
                wake(a->kit);
        }
        pthread_mutex_unlock(&a->lock);
        return NULL;
}

/* Jobs that ran get their done(), on the loop. */
static void finish_jobs(struct kit *kit)
{
        struct rig_adapter *a = &kit->adapter;
        struct rig_list *link;

        for (;;) {
                struct rig_slow_job *job;

                pthread_mutex_lock(&a->lock);
                link = rig_list_pop(&a->done);
                pthread_mutex_unlock(&a->lock);
                if (!link)
                        return;
                job = rig_list_entry(link, struct rig_slow_job, link);
                where = ON_LOOP;
                job->done(job);
                where = ELSEWHERE;
        }
}

/* A call of an op on the slow thread: whichever arguments it takes. */
struct slow_call {
        struct rig_slow_job job;
        void (*op)(struct slow_call *call);
        bool returned;
        struct rig_device *device;
        struct kit *kit;
        int r;
        struct rig_error e;
        const void *in;
        const char *text, *text2;
        void *out;
        uint64_t n;
};

static void slow_call_run(struct rig_slow_job *job)
{
        struct slow_call *call = RIG_CONTAINER_OF(job, struct slow_call, job);

        call->op(call);
}

static void slow_call_done(struct rig_slow_job *job)
{
        RIG_CONTAINER_OF(job, struct slow_call, job)->returned = true;
}

/* Runs an op there, and turns the loop meanwhile. A slow op that never returns ends the test by its time
 * limit. */
static int slow(struct kit *kit, struct slow_call *call)
{
        call->kit = kit;
        call->job = (struct rig_slow_job){.run = slow_call_run, .done = slow_call_done};
        rig_list_init(&call->job.link);
        where = ON_LOOP;
        rig_adapter_defer(&kit->adapter.side, &call->job);
        where = ELSEWHERE;
        while (!call->returned)
                kit_turn(kit, RIG_USEC_PER_SEC);
        return call->r;
}

/* ---------------------------------------------------------------- slow ops */

static const struct rig_driver *driver_of(const struct slow_call *call)
{
        return call->kit->subject->driver;
}

/* A failure of a slow op has its sentence. */
static void expect_sentence(struct kit *kit, int r, const struct rig_error *e, const char *op)
{
        if (r < 0)
                kit_expect(kit, e->text[0], "%s() failed with %d and no sentence", op, r);
}

static void op_open(struct slow_call *c)
{
        c->r = driver_of(c)->device_open(&c->device->side, c->text, c->text2, &c->e);
}

static void op_close(struct slow_call *c)
{
        driver_of(c)->device_close(&c->device->side);
}

static void op_stop(struct slow_call *c)
{
        c->r = driver_of(c)->stop(&c->device->side);
}

static void op_reset(struct slow_call *c)
{
        c->r = driver_of(c)->adapter_reset(&c->kit->adapter.side, &c->e);
}

static void op_alloc(struct slow_call *c)
{
        c->r = driver_of(c)->region_alloc(
                &c->device->side, c->n, *(const enum rig_memory_kind *)c->in, c->out, &c->e);
}

static void op_adopt(struct slow_call *c)
{
        /* As the core does: only files are a driver's matter. */
        if (c->device->side.facts.flags & RIG_DEVICE_FILES)
                c->r = driver_of(c)->region_adopt(&c->device->side, (int)c->n, c->out, &c->e);
        else
                c->r = rig_region_adopt_memfd((int)c->n, c->out, &c->e);
}

static void op_borrow(struct slow_call *c)
{
        c->r = driver_of(c)->region_borrow(&c->device->side, c->in, c->out, &c->e);
}

static void op_free(struct slow_call *c)
{
        driver_of(c)->region_free(&c->kit->adapter.side, c->out);
}

static void op_image_load(struct slow_call *c)
{
        c->r = driver_of(c)->image_load(&c->device->side, c->in, c->n, c->out, &c->e);
}

static void op_image_entry(struct slow_call *c)
{
        c->r = driver_of(c)->image_entry(&c->device->side, c->in, c->text, c->out);
}

static void op_image_unload(struct slow_call *c)
{
        driver_of(c)->image_unload(&c->device->side, c->out);
}

static void op_prepare(struct slow_call *c)
{
        c->r = driver_of(c)->work_prepare(&c->device->side, c->out, &c->e);
}

static void op_release(struct slow_call *c)
{
        driver_of(c)->work_release(&c->device->side, c->out);
}

int kit_alloc(struct rig_device *device, uint64_t bytes, enum rig_memory_kind kind, struct rig_region *ret)
{
        struct slow_call c = {.op = op_alloc, .device = device, .n = bytes, .in = &kind, .out = ret};
        int r = slow(device->kit, &c);

        expect_sentence(device->kit, r, &c.e, "region_alloc");
        return r;
}

int kit_adopt(struct rig_device *device, int fd, struct rig_region *ret, struct rig_error *e)
{
        struct slow_call c = {.op = op_adopt, .device = device, .n = (uint64_t)fd, .out = ret};
        int r = slow(device->kit, &c);

        expect_sentence(device->kit, r, &c.e, "region_adopt");
        *e = c.e;
        return r;
}

int kit_borrow(struct rig_device *device, const struct rig_region *of, struct rig_region *ret)
{
        struct slow_call c = {.op = op_borrow, .device = device, .in = of, .out = ret};
        int r = slow(device->kit, &c);

        expect_sentence(device->kit, r, &c.e, "region_borrow");
        return r;
}

void kit_free(struct kit *kit, struct rig_region *region)
{
        struct slow_call c = {.op = op_free, .out = region};

        slow(kit, &c);
}

int kit_image_load(struct rig_device *device, const void *image, size_t bytes, struct rig_driver_image *ret,
        struct rig_error *e)
{
        struct slow_call c = {.op = op_image_load, .device = device, .in = image, .n = bytes, .out = ret};
        int r = slow(device->kit, &c);

        expect_sentence(device->kit, r, &c.e, "image_load");
        *e = c.e;
        return r;
}

int kit_image_entry(
        struct rig_device *device, const struct rig_driver_image *image, const char *name, uint64_t *ret)
{
        struct slow_call c = {.op = op_image_entry, .device = device, .in = image, .text = name, .out = ret};

        return slow(device->kit, &c);
}

void kit_image_unload(struct rig_device *device, struct rig_driver_image *image)
{
        struct slow_call c = {.op = op_image_unload, .device = device, .out = image};

        slow(device->kit, &c);
}

bool kit_prepare(struct rig_device *device, struct rig_driver_work *work)
{
        struct slow_call c = {.op = op_prepare, .device = device, .out = work};
        int r;

        if (!device->kit->subject->driver->work_prepare)
                return true;
        r = slow(device->kit, &c);
        expect_sentence(device->kit, r, &c.e, "work_prepare");
        return kit_expect(device->kit, r == 0, "a work was not prepared: %s", c.e.text);
}

void kit_work_free(struct rig_device *device, struct rig_driver_work *work)
{
        struct slow_call c = {.op = op_release, .device = device, .out = work};

        if (device->kit->subject->driver->work_release)
                slow(device->kit, &c);
        for (uint32_t i = 0; i < work->n_parts; i++) {
                free(work->parts[i].params);
                free(work->parts[i].patches);
        }
        free(work);
}

/* ---------------------------------------------------------------- prompt ops */

static long switches(void)
{
        struct rusage usage;

        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
}

/* Brackets a prompt call: one that gives the processor away by itself has waited for something. */
static long prompt_begin(void)
{
        where = ON_LOOP;
        return switches();
}

static void prompt_end(struct kit *kit, long before)
{
        kit->prompt.calls++;
        kit->prompt.slept += switches() != before;
        where = ELSEWHERE;
}

int kit_room(struct rig_device *device, const struct rig_driver_work *work, const struct rig_filled *slots)
{
        const struct rig_submission submission = {
                .value = device->submitted + 1, .work = work, .slots = slots};
        long before;
        int room;

        if (!device->kit->subject->driver->room || device->stopped)
                return 1;
        before = prompt_begin();
        room = device->kit->subject->driver->room(&device->side, &submission);
        prompt_end(device->kit, before);
        return room;
}

static void poll_device(struct rig_device *d)
{
        struct rig_error e = RIG_ERROR_NULL;
        uint64_t reached = d->reached, before_value = d->reached;
        long before;
        int r;

        if (!d->open || d->stopped || d->faulted)
                return;
        before = prompt_begin();
        r = d->kit->subject->driver->poll(&d->side, &reached, &e);
        prompt_end(d->kit, before);
        if (r < 0) {
                d->faulted = true;
                d->fault = e;
                expect_sentence(d->kit, r, &e, "poll");
                return;
        }
        kit_expect(d->kit, reached >= d->reached, "the word went back from %llu to %llu",
                (unsigned long long)d->reached, (unsigned long long)reached);
        if (!kit_expect(d->kit, reached <= d->handed, "value %llu was told with %llu handed over",
                    (unsigned long long)reached, (unsigned long long)d->handed))
                return;
        d->reached = RIG_MAX(d->reached, reached);
        for (uint64_t v = before_value + 1; d->on_reached && v <= d->reached; v++)
                d->on_reached(d, v, d->userdata);
}

/* Lets a device that waits to be told run. */
static void release(struct rig_device *d, uint64_t value)
{
        if (d->kit->subject->release && !d->stopped)
                d->kit->subject->release(&d->side, value);
}

uint64_t kit_submit_after(struct rig_device *d, const struct rig_driver_work *work,
        const struct rig_filled *slots, const struct rig_queue_wait *waits, uint32_t n_waits)
{
        struct rig_submission submission = {
                .work = work, .slots = slots, .waits = waits, .n_waits = n_waits};
        uint64_t deadline = rig_deadline_usec(d->kit->subject->patience_usec);
        struct rig_error e = RIG_ERROR_NULL;
        uint64_t reached = 0;
        long before;
        int r;

        if (d->stopped)
                return 0;
        r = kit_room(d, work, slots);
        if (r == 0)
                kit_commit(d);
        if (r == 0)
                release(d, d->handed);
        while ((r = kit_room(d, work, slots)) == 0 && !d->faulted && rig_now_usec() < deadline)
                kit_turn(d->kit, 10 * RIG_USEC_PER_MSEC);
        if (!kit_expect(d->kit, r == 1, "room() says %d for value %llu, with %llu reached", r,
                    (unsigned long long)d->submitted + 1, (unsigned long long)d->reached))
                return 0;
        rig_assert(d->submitted < KIT_RUNS_MAX);
        submission.value = d->handed = ++d->submitted;
        d->runs[submission.value - 1] = (struct kit_run){.work = work};
        memcpy(d->runs[submission.value - 1].slots, slots, work->n_slots * sizeof(*slots));
        before = prompt_begin();
        d->ran = false;
        d->handing = true;
        r = d->kit->subject->driver->hand_over(&d->side, &submission, &e);
        d->handing = false;
        prompt_end(d->kit, before);
        expect_sentence(d->kit, r, &e, "hand_over");
        if (d->ran && d->kit->subject->driver->poll(&d->side, &reached, &e) >= 0)
                kit_expect(d->kit, reached >= submission.value,
                        "value %llu was said to have run in hand_over(), and poll() tells %llu",
                        (unsigned long long)submission.value, (unsigned long long)reached);
        return kit_expect(d->kit, r == 0, "hand_over() failed: %s", e.text) ? submission.value : 0;
}

uint64_t kit_submit(
        struct rig_device *device, const struct rig_driver_work *work, const struct rig_filled *slots)
{
        return kit_submit_after(device, work, slots, NULL, 0);
}

void kit_commit(struct rig_device *device)
{
        long before;

        if (device->stopped)
                return;
        if (device->kit->subject->driver->commit) {
                before = prompt_begin();
                device->kit->subject->driver->commit(&device->side);
                prompt_end(device->kit, before);
        }
        poll_device(device);
}

/* ---------------------------------------------------------------- the client of a client device */

static void client_run_parts(struct rig_device *d, const struct kit_run *run)
{
        struct rig_parts parts;
        uint32_t ready;

        rig_parts_init(&parts, run->work);
        while ((ready = rig_parts_ready(&parts))) {
                uint32_t i;

                do
                        i = (uint32_t)kit_draw(d->kit, parts.n);
                while (!(ready & 1u << i));
                kit_interpret(&run->work->parts[i], run->slots);
                parts.started |= 1u << i;
                parts.done |= 1u << i;
        }
}

static void client_tell(struct rig_device *d, uint64_t value, int error)
{
        int r;

        where = ON_LOOP;
        r = d->kit->subject->driver->client_done(
                &d->side, value, error, error ? "the client's own reason" : "");
        where = ELSEWHERE;
        kit_expect(d->kit, r == 0, "client_done(%llu) was refused with %d", (unsigned long long)value, r);
        poll_device(d);
}

/* The client runs what it may, and tells of several values at once. */
static void client_work(struct rig_device *d)
{
        if (d->client_slow || d->stopped)
                return;
        while (d->client_ran < d->ready && !d->faulted) {
                const struct kit_run *run = &d->runs[d->client_ran++];

                if (run->work) /* else the core passed the value */
                        client_run_parts(d, run);
                if (run->client_fails || d->client_ran == d->ready || kit_draw(d->kit, 4) == 0)
                        client_tell(d, d->client_ran, run->client_fails ? -EIO : 0);
        }
}

/* ---------------------------------------------------------------- the loop */

/* Waits for a kick, a job that is done, or a descriptor that polls readable. */
static void wait_for_news(struct kit *kit, uint64_t usec)
{
        struct pollfd fds[1 + KIT_DEVICES_MAX] = {{.fd = kit->wake, .events = POLLIN}};
        uint64_t count;

        for (unsigned i = 0; i < KIT_DEVICES_MAX; i++) {
                struct rig_device *d = &kit->devices[i];
                bool watched = d->open && !d->stopped && !d->faulted;

                fds[1 + i] = (struct pollfd){.fd = watched ? d->descriptor : -1, .events = POLLIN};
        }
        if (poll(fds, 1 + KIT_DEVICES_MAX, (int)((usec + 999) / 1000)) <= 0)
                return;
        if (fds[0].revents)
                rig_assert(read(kit->wake, &count, sizeof(count)) == sizeof(count));
        for (unsigned i = 0; i < KIT_DEVICES_MAX; i++)
                if (fds[1 + i].revents)
                        atomic_store(&kit->devices[i].kicked, true);
}

void kit_turn(struct kit *kit, uint64_t usec)
{
        bool busy = false;

        for (unsigned i = 0; i < KIT_DEVICES_MAX; i++) {
                struct rig_device *d = &kit->devices[i];

                busy |= d->open && !d->stopped && !d->faulted && !d->client_slow && d->client_ran < d->ready;
        }
        wait_for_news(kit, busy ? 0 : usec);
        finish_jobs(kit);
        for (unsigned i = 0; i < KIT_DEVICES_MAX; i++) {
                struct rig_device *d = &kit->devices[i];

                if (!d->open)
                        continue;
                if (atomic_exchange(&d->kicked, false))
                        poll_device(d);
                client_work(d);
        }
}

bool kit_reaches(struct rig_device *device, uint64_t value, uint64_t usec)
{
        uint64_t deadline = rig_deadline_usec(usec), now;

        while (device->reached < value && !device->faulted && (now = rig_now_usec()) < deadline)
                kit_turn(device->kit, deadline - now);
        return device->reached >= value;
}

bool kit_wait(struct rig_device *device, uint64_t value)
{
        if (device->stopped)
                return false;
        release(device, value);
        if (kit_reaches(device, value, device->kit->subject->patience_usec))
                return true;
        kit_broken(device->kit, "value %llu is not reached, %llu is%s%s", (unsigned long long)value,
                (unsigned long long)device->reached, device->faulted ? "; the device faulted: " : "",
                device->fault.text);
        kit_stop(device); /* what it would still do, it would do to memory that its test takes back */
        return false;
}

bool kit_finish(struct rig_device *device)
{
        kit_commit(device);
        return kit_wait(device, device->submitted);
}

bool kit_faults(struct rig_device *device)
{
        uint64_t deadline = rig_deadline_usec(device->kit->subject->patience_usec), now;

        while (!device->faulted && (now = rig_now_usec()) < deadline)
                kit_turn(device->kit, deadline - now);
        return device->faulted;
}

/* ---------------------------------------------------------------- devices */

uint32_t kit_flags(const struct rig_device *device)
{
        return device->side.facts.flags;
}

int kit_queue(const struct rig_device *device, uint32_t kinds, unsigned nth)
{
        const struct rig_facts *facts = &device->side.facts;
        int found[RIG_QUEUES_MAX];
        unsigned n = 0;

        for (uint32_t q = 0; q < facts->n_queues; q++)
                if ((facts->queues[q] & kinds) == kinds)
                        found[n++] = (int)q;
        return n ? found[nth % n] : -1;
}

int kit_try_open(struct kit *kit, const char *options, struct rig_device **ret_device, struct rig_error *e)
{
        struct slow_call c = {.op = op_open, .text = kit->subject->instance, .text2 = options};
        struct rig_device *d = NULL;
        int r;

        for (unsigned i = 0; i < KIT_DEVICES_MAX && !d; i++)
                if (!kit->devices[i].open)
                        d = &kit->devices[i];
        rig_assert(d);
        free(d->runs);
        *d = (struct rig_device){.kit = kit, .descriptor = -1};
        d->side = (struct rig_driver_device){.adapter = &kit->adapter.side, .core = d};
        d->runs = calloc(KIT_RUNS_MAX, sizeof(*d->runs));
        rig_assert(d->runs);
        c.device = d;
        r = slow(kit, &c);
        expect_sentence(kit, r, &c.e, "device_open");
        *e = c.e;
        if (r < 0)
                return r;
        d->open = true;
        if (kit->subject->driver->descriptor) {
                long before = prompt_begin();

                d->descriptor = kit->subject->driver->descriptor(&d->side);
                prompt_end(kit, before);
        }
        *ret_device = d;
        return 0;
}

struct rig_device *kit_open(struct kit *kit)
{
        struct rig_device *device = NULL;
        struct rig_error e;
        int r = kit_try_open(kit, kit->subject->options, &device, &e);

        kit_expect(kit, r == 0, "the device does not open: %s", e.text);
        return r < 0 ? NULL : device;
}

int kit_stop(struct rig_device *device)
{
        struct slow_call c = {.op = op_stop, .device = device}, reset = {.op = op_reset};
        int r;

        device->stopped = true; /* no prompt call from now on */
        r = slow(device->kit, &c);
        if (r == -EINPROGRESS && device->kit->subject->driver->adapter_reset) {
                int reset_r = slow(device->kit, &reset);

                kit_expect(device->kit, reset_r == 0, "the adapter's reset failed: %s", reset.e.text);
        }
        return r;
}

void kit_close(struct rig_device *device)
{
        struct slow_call c = {.op = op_close, .device = device};

        if (!device->stopped && (device->faulted || device->reached < device->submitted))
                kit_stop(device);
        device->stopped = true;
        slow(device->kit, &c);
        device->open = false;
}

/* ---------------------------------------------------------------- running */

static void on_found(const struct rig_driver_adapter *found, void *userdata)
{
        struct kit *kit = userdata;

        if (strcmp(found->name, kit->subject->adapter) == 0)
                kit->adapter.side = *found;
}

/* Finds the subject's adapter and starts its slow thread. */
static bool start(struct kit *kit)
{
        struct rig_adapter *a = &kit->adapter;
        int r;

        kit->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        rig_assert(kit->wake >= 0);
        r = kit->subject->driver->discover(on_found, kit);
        if (!kit_expect(
                    kit, r == 0 && a->side.name[0], "the adapter %s is not found", kit->subject->adapter))
                return false;
        if (a->side.unavailable[0]) {
                printf("skipped: %s is unavailable: %s\n", a->side.name, a->side.unavailable);
                kit->broken = KIT_UNAVAILABLE;
                return false;
        }
        a->side.core = a;
        a->kit = kit;
        rig_list_init(&a->queue);
        rig_list_init(&a->done);
        pthread_mutex_init(&a->lock, NULL);
        pthread_cond_init(&a->changed, NULL);
        rig_assert(pthread_create(&a->thread, NULL, slow_thread, a) == 0);
        return true;
}

static void finish(struct kit *kit)
{
        struct rig_adapter *a = &kit->adapter;

        pthread_mutex_lock(&a->lock);
        a->quit = true;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
        pthread_join(a->thread, NULL);
        finish_jobs(kit);
        pthread_cond_destroy(&a->changed);
        pthread_mutex_destroy(&a->lock);
        for (unsigned i = 0; i < KIT_DEVICES_MAX; i++)
                free(kit->devices[i].runs);
        close(kit->wake);
}

static void hold_to(struct kit *kit, const struct kit_promise *promises, const char *only)
{
        for (; promises->name; promises++) {
                if (only && strcmp(only, promises->name) != 0)
                        continue;
                kit->promise = promises->name;
                kit->broken_here = 0;
                kit->random = UINT64_C(88172645463325252);
                kit->prompt.calls = kit->prompt.slept = 0;
                promises->check(kit);
                if (!kit->quiet)
                        printf("%s %s: %s\n", kit->broken_here ? "not ok" : "ok", kit->subject->name,
                                promises->name);
        }
}

unsigned kit_hold(const struct kit_subject *subject, const char *promise, bool quiet)
{
        struct kit *kit = calloc(1, sizeof(*kit));
        unsigned broken;

        rig_assert(kit);
        kit->subject = subject;
        kit->quiet = quiet;
        kit->promise = "discover";
        if (start(kit)) {
                hold_to(kit, kit_promises, promise);
                hold_to(kit, kit_lifecycle, promise);
                hold_to(kit, kit_properties, promise);
                if (subject->own)
                        hold_to(kit, subject->own, promise);
                finish(kit);
        }
        broken = kit->broken;
        free(kit);
        return broken;
}
