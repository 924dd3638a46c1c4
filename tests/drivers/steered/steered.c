/* SPDX-License-Identifier: ISC */
/*
 * See steered.h. Each device has a thread, which runs the committed runs one after the other: contract 2.
 * Within a run it picks one of the parts that may start at random until none is left: contract 1 and no
 * more. It stores the run's value to the device's word and kicks the core: contract 3.
 *
 * One lock guards everything but the memory that work touches, and one condition says that something
 * changed: a word moved, work was committed, a test steered. Devices can so wait for one another's words, as
 * queues of real devices do. A word outlives its device while a run still waits for it.
 *
 * The end. stop() makes the thread leave at its next look and waits for it. A sticky device's thread does
 * not look: it is left running and the device forgotten, until adapter_reset() ends what is left.
 */
#include "tests/drivers/steered/steered.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/drivers/parts.h"
#include "tests/drivers/steered/internal.h"

#define NAP_NSEC     200000
#define BUDGET_BYTES (UINT64_C(256) << 20)

struct word {
        uint64_t value;
        unsigned refs; /* the device, and each run that waits for it */
};

struct steered_run {
        uint64_t value;
        const struct rig_driver_work *work;
        struct rig_filled slots[RIG_SLOTS_MAX];
        struct {
                struct word *word;
                uint64_t value;
        } waits[STEERED_WAITS_MAX];
        uint32_t n_waits;
        int failed; /* the run's error, until poll() told it */
        char failure[RIG_ERROR_TEXT_MAX];
};

struct options {
        bool manual, waits, noborrow, sticky, fault_open;
        uint64_t room, hang_usec, seed, slow_open_usec;
};

struct steered_device {
        struct rig_list link;
        struct rig_driver_device *device; /* NULL once it was closed with its thread still running */
        struct steered_adapter *adapter;
        struct options options;
        pthread_t thread;

        struct word *word;
        uint64_t told;    /* the last value that poll() told */
        uint64_t allowed; /* work up to this value may run */
        uint64_t random;
        unsigned done;      /* runs[done % STEERED_ROOM_MAX] is the first that is not done, */
        unsigned told_runs; /* behind the ones that poll() told, */
        unsigned committed; /* before the ones that were not committed yet, */
        unsigned handed;    /* and those that were not handed over */
        struct steered_run runs[STEERED_ROOM_MAX];

        bool faulted;
        char fault[RIG_ERROR_TEXT_MAX];
        bool stop;      /* the thread is to leave */
        bool joined;    /* it has */
        bool abandoned; /* a sticky device was told to stop: the thread starts no further part */
        bool in_part;   /* the thread runs a part, */
        bool napping;   /* which stands still */
};

pthread_mutex_t steered_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

#define ADAPTER(i)                                                                                          \
        {                                                                                                   \
                .regions = RIG_LIST_INIT(steered_adapters[i].regions),                                      \
                .devices = RIG_LIST_INIT(steered_adapters[i].devices)                                       \
        }
struct steered_adapter steered_adapters[STEERED_ADAPTERS] = {ADAPTER(0), ADAPTER(1), ADAPTER(2), ADAPTER(3)};

struct steered_adapter *steered_adapter_of(const struct rig_driver_adapter *adapter)
{
        return &steered_adapters[adapter->name[strlen("steered:")] - '0'];
}

static void lock(void)
{
        pthread_mutex_lock(&steered_lock);
}

static void unlock(void)
{
        pthread_mutex_unlock(&steered_lock);
}

static void word_unref(struct word *word)
{
        if (--word->refs == 0)
                free(word);
}

static void kick(struct steered_device *s)
{
        if (s->device)
                rig_device_kick(s->device);
}

static void fault(struct steered_device *s, const char *text)
{
        if (s->faulted)
                return;
        s->faulted = true;
        snprintf(s->fault, sizeof(s->fault), "%s", text);
        kick(s);
}

/* ---------------------------------------------------------------- the thread */

static uint64_t draw(struct steered_device *s)
{
        s->random ^= s->random << 13;
        s->random ^= s->random >> 7;
        s->random ^= s->random << 17;
        return s->random;
}

/* One of the bits of `set`, at random. */
static uint32_t pick(struct steered_device *s, uint32_t set)
{
        unsigned skip = (unsigned)(draw(s) % (unsigned)__builtin_popcount(set));

        while (skip--)
                set &= set - 1;
        return (uint32_t)__builtin_ctz(set);
}

/* Naps in a part that stands still, which touches nothing of the core's meanwhile. True: it is to end. */
static bool stopped(void *userdata)
{
        struct steered_device *s = userdata;
        bool stop;

        lock();
        s->napping = true;
        pthread_cond_broadcast(&changed);
        unlock();
        nanosleep(&(struct timespec){.tv_nsec = NAP_NSEC}, NULL);
        lock();
        stop = s->stop;
        unlock();
        return stop;
}

/* Whether the thread may begin a part; it has begun it then. */
static bool begin_part(struct steered_device *s)
{
        lock();
        s->in_part = !s->stop && !s->abandoned;
        s->napping = false;
        unlock();
        return s->in_part;
}

static void end_part(struct steered_device *s)
{
        lock();
        s->in_part = false;
        pthread_cond_broadcast(&changed);
        unlock();
}

/* Runs all parts of a run. Not locked. */
static enum steered_outcome run_parts(
        struct steered_device *s, const struct steered_run *run, struct rig_error *e)
{
        enum steered_outcome outcome = STEERED_DONE;
        struct rig_parts parts;
        uint32_t ready;

        rig_parts_init(&parts, run->work);
        while (outcome == STEERED_DONE && (ready = rig_parts_ready(&parts))) {
                uint32_t i = pick(s, ready);

                if (!begin_part(s))
                        return STEERED_STOPPED;
                parts.started |= 1u << i;
                outcome = steered_part_run(s->adapter, &run->work->parts[i], run->slots, stopped, s, e);
                parts.done |= 1u << i;
                end_part(s);
        }
        return outcome;
}

/* Whether the next run may start: it is committed, allowed, and what it waits for was reached. */
static bool may_start(const struct steered_device *s)
{
        const struct steered_run *run = &s->runs[s->done % STEERED_ROOM_MAX];

        if (s->faulted || s->abandoned || s->done == s->committed || run->value > s->allowed)
                return false;
        for (uint32_t i = 0; i < run->n_waits; i++)
                if (run->waits[i].word->value < run->waits[i].value)
                        return false;
        return true;
}

/* Runs the next run and stores its value. Locked but while the parts run. */
static void run_next(struct steered_device *s)
{
        struct steered_run *run = &s->runs[s->done % STEERED_ROOM_MAX];
        struct rig_error e = RIG_ERROR_NULL;
        enum steered_outcome outcome;

        unlock();
        outcome = run_parts(s, run, &e);
        lock();
        if (outcome == STEERED_FAULTED)
                fault(s, e.text);
        if (outcome == STEERED_FAULTED || outcome == STEERED_STOPPED)
                return;
        if (outcome == STEERED_RUN_FAILED) {
                run->failed = e.code;
                memcpy(run->failure, e.text, sizeof(run->failure));
        }
        for (uint32_t i = 0; i < run->n_waits; i++)
                word_unref(run->waits[i].word);
        run->n_waits = 0;
        s->word->value = run->value;
        s->done++;
        pthread_cond_broadcast(&changed);
        kick(s);
}

static void *device_thread(void *userdata)
{
        struct steered_device *s = userdata;

        lock();
        while (!s->stop) {
                if (may_start(s))
                        run_next(s);
                else
                        pthread_cond_wait(&changed, &steered_lock);
        }
        unlock();
        return NULL;
}

/* ---------------------------------------------------------------- work */

static int steered_room(struct rig_driver_device *device, const struct rig_submission *submission)
{
        struct steered_device *s = device->drv;
        int room;

        lock();
        room = s->handed - s->told_runs < s->options.room;
        unlock();
        return room;
}

static int steered_hand_over(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        struct steered_device *s = device->drv;
        struct steered_run *run;

        lock();
        rig_assert(s->handed - s->told_runs < s->options.room); /* room() said so */
        run = &s->runs[s->handed % STEERED_ROOM_MAX];
        run->value = submission->value;
        run->work = submission->work;
        run->failed = 0;
        run->n_waits = submission->n_waits;
        memcpy(run->slots, submission->slots, submission->work->n_slots * sizeof(run->slots[0]));
        rig_assert(submission->n_waits <= device->facts.max_waits);
        for (uint32_t i = 0; i < submission->n_waits; i++) {
                struct steered_device *producer = submission->waits[i].producer->drv;

                rig_assert(submission->waits[i].producer->adapter->driver == device->adapter->driver);
                run->waits[i].word = producer->word;
                run->waits[i].word->refs++;
                run->waits[i].value = submission->waits[i].value;
        }
        s->handed++;
        unlock();
        return 0;
}

static void steered_commit(struct rig_driver_device *device)
{
        struct steered_device *s = device->drv;

        lock();
        s->committed = s->handed;
        pthread_cond_broadcast(&changed);
        unlock();
}

/* The next run that poll() tells, if it is done. Its failure is told with the lock dropped. */
static bool tell_run(struct steered_device *s)
{
        struct steered_run *run;

        if (s->told_runs == s->done)
                return false;
        run = &s->runs[s->told_runs % STEERED_ROOM_MAX];
        if (run->failed) {
                unlock();
                rig_device_run_failed(s->device, run->value, run->failed, "%s", run->failure);
                lock();
        }
        s->told = run->value;
        s->told_runs++;
        return true;
}

static int steered_poll(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        struct steered_device *s = device->drv;
        bool news = false;
        int r = 0;

        lock();
        while (tell_run(s))
                news = true;
        if (s->faulted && news)
                kick(s); /* first what was reached, then the fault */
        else if (s->faulted)
                r = rig_error_set(e, -EIO, "%s", s->fault);
        *ret_reached = s->told;
        unlock();
        return r;
}

/* ---------------------------------------------------------------- devices */

/* Reads "KEY" or "KEY=NUMBER". False: it is neither, or the number is none. */
static bool is_flag(const char *option, const char *key, bool *ret)
{
        if (strcmp(option, key) != 0)
                return false;
        *ret = true;
        return true;
}

static bool is_number(const char *option, const char *key, uint64_t *ret)
{
        size_t length = strlen(key);
        char *end;

        if (strncmp(option, key, length) != 0 || option[length] != '=' || option[length + 1] < '0' ||
                option[length + 1] > '9')
                return false;
        *ret = strtoull(option + length + 1, &end, 10);
        return *end == 0;
}

static bool parse_option(struct options *o, const char *option)
{
        return is_flag(option, "manual", &o->manual) || is_flag(option, "waits", &o->waits) ||
               is_flag(option, "noborrow", &o->noborrow) || is_flag(option, "sticky", &o->sticky) ||
               is_flag(option, "fault-open", &o->fault_open) || is_number(option, "room", &o->room) ||
               is_number(option, "hang", &o->hang_usec) || is_number(option, "seed", &o->seed) ||
               is_number(option, "slow-open", &o->slow_open_usec);
}

static int parse_options(struct options *o, const char *text, struct rig_error *e)
{
        char copy[256], *rest = copy;

        *o = (struct options){.room = STEERED_ROOM_MAX, .seed = 1};
        snprintf(copy, sizeof(copy), "%s", text);
        for (const char *option; text[0] && (option = strsep(&rest, ","));)
                if (!parse_option(o, option))
                        return rig_error_set(e, -EINVAL, "a steered device has no option \"%s\"", option);
        if (o->room < 1 || o->room > STEERED_ROOM_MAX)
                return rig_error_set(
                        e, -EINVAL, "room=%" PRIu64 " is not from 1 to %d", o->room, STEERED_ROOM_MAX);
        return 0;
}

static void fill_facts(struct rig_facts *facts, const struct options *o)
{
        *facts = (struct rig_facts){
                .arch = "steered-1",
                .flags = RIG_DEVICE_LOADS_IMAGES | (o->noborrow ? 0 : RIG_DEVICE_BORROWS_HOST),
                .n_queues = 3,
                .queues = {RIG_RUNS_COPY | RIG_RUNS_FILL, RIG_RUNS_COPY | RIG_RUNS_FILL | RIG_RUNS_LAUNCH,
                        RIG_RUNS_LAUNCH},
                .completion = RIG_COMPLETION_STORE,
                .waits_on = o->waits ? 1u << RIG_COMPLETION_STORE : 0,
                .max_waits = o->waits ? STEERED_WAITS_MAX : 0,
                .hang_usec = o->hang_usec,
        };
}

static struct steered_device *device_new(struct rig_driver_device *device, const struct options *o)
{
        struct steered_device *s = calloc(1, sizeof(*s));
        struct word *word = calloc(1, sizeof(*word));

        if (!s || !word) {
                free(s);
                free(word);
                return NULL;
        }
        word->refs = 1;
        s->word = word;
        s->device = device;
        s->adapter = steered_adapter_of(device->adapter);
        s->options = *o;
        s->allowed = o->manual ? 0 : UINT64_MAX;
        s->random = o->seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
        return s;
}

static void device_free(struct steered_device *s)
{
        for (; s->done != s->handed; s->done++) {
                struct steered_run *run = &s->runs[s->done % STEERED_ROOM_MAX];

                for (uint32_t i = 0; i < run->n_waits; i++)
                        word_unref(run->waits[i].word);
        }
        word_unref(s->word);
        free(s);
}

static int steered_device_open(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        struct steered_device *s;
        struct options o;
        int r;

        r = parse_options(&o, options, e);
        if (r < 0)
                return r;
        if (o.fault_open)
                return rig_error_set(e, -EIO, "the steered device was told not to open");
        if (o.slow_open_usec)
                usleep((useconds_t)RIG_MIN(o.slow_open_usec, RIG_USEC_PER_SEC - 1));
        s = device_new(device, &o);
        if (!s)
                return rig_error_set(e, -ENOMEM, "no memory for a device");
        fill_facts(&device->facts, &o);
        r = -pthread_create(&s->thread, NULL, device_thread, s);
        if (r < 0) {
                device_free(s);
                return rig_error_set(e, r, "a steered device's thread did not start: %s", strerror(-r));
        }
        lock();
        rig_list_append(&s->adapter->devices, &s->link);
        unlock();
        device->drv = s;
        return 0;
}

/* Makes the thread leave, and waits until it has. Not locked. */
static void end_thread(struct steered_device *s)
{
        bool joined;

        lock();
        s->stop = true;
        joined = s->joined;
        s->joined = true;
        pthread_cond_broadcast(&changed);
        unlock();
        if (!joined)
                pthread_join(s->thread, NULL);
}

static int steered_stop(struct rig_driver_device *device)
{
        struct steered_device *s = device->drv;
        bool stands_still;

        lock();
        stands_still = s->options.sticky && !s->joined && (s->faulted || s->done != s->committed);
        s->abandoned = stands_still;
        /* the core's own objects may go now: what the thread has begun with them ends first */
        while (stands_still && s->in_part && !s->napping)
                pthread_cond_wait(&changed, &steered_lock);
        unlock();
        if (stands_still)
                return -EINPROGRESS;
        end_thread(s);
        return 0;
}

static void steered_device_close(struct rig_driver_device *device)
{
        struct steered_device *s = device->drv;
        bool left_behind;

        lock();
        left_behind = s->options.sticky && !s->joined && s->done != s->committed;
        s->device = NULL;
        if (!left_behind)
                rig_list_remove(&s->link);
        unlock();
        device->drv = NULL;
        if (left_behind)
                return;
        end_thread(s);
        lock();
        device_free(s);
        unlock();
}

static int steered_adapter_reset(struct rig_driver_adapter *adapter, struct rig_error *e)
{
        struct steered_adapter *a = steered_adapter_of(adapter);

        rig_list_for_each_safe (i, &a->devices) {
                struct steered_device *s = rig_list_entry(i, struct steered_device, link);

                end_thread(s);
                if (s->device)
                        continue; /* still open, and over */
                lock();
                rig_list_remove(&s->link);
                device_free(s);
                unlock();
        }
        return 0;
}

static int steered_discover(
        void (*found)(const struct rig_driver_adapter *adapter, void *userdata), void *userdata)
{
        for (int i = 0; i < STEERED_ADAPTERS; i++) {
                struct rig_driver_adapter adapter = {
                        .driver = &rig_driver_steered,
                        .about = "a device that a test steers",
                        .budget_bytes = BUDGET_BYTES,
                };

                snprintf(adapter.name, sizeof(adapter.name), "steered:%d", i);
                found(&adapter, userdata);
        }
        return 0;
}

/* ---------------------------------------------------------------- for tests */

void steered_complete(struct rig_driver_device *device, uint64_t value)
{
        struct steered_device *s = device->drv;

        lock();
        s->allowed = RIG_MAX(s->allowed, value);
        pthread_cond_broadcast(&changed);
        unlock();
}

void steered_fault(struct rig_driver_device *device, const char *reason)
{
        lock();
        fault(device->drv, reason);
        unlock();
}

static uint64_t value_before(const struct steered_device *s, unsigned run)
{
        return run == 0 ? 0 : s->runs[(run - 1) % STEERED_ROOM_MAX].value;
}

uint64_t steered_handed(struct rig_driver_device *device)
{
        struct steered_device *s = device->drv;
        uint64_t value;

        lock();
        value = value_before(s, s->handed);
        unlock();
        return value;
}

uint64_t steered_committed(struct rig_driver_device *device)
{
        struct steered_device *s = device->drv;
        uint64_t value;

        lock();
        value = value_before(s, s->committed);
        unlock();
        return value;
}

const struct rig_driver rig_driver_steered = {
        .name = "steered",
        .adapter_reset = steered_adapter_reset,
        .commit = steered_commit,
        .device_close = steered_device_close,
        .device_open = steered_device_open,
        .discover = steered_discover,
        .hand_over = steered_hand_over,
        .image_entry = steered_image_entry,
        .image_load = steered_image_load,
        .image_unload = steered_image_unload,
        .poll = steered_poll,
        .region_alloc = steered_region_alloc,
        .region_borrow = steered_region_borrow,
        .region_free = steered_region_free,
        .room = steered_room,
        .stop = steered_stop,
};
