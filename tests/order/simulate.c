/* SPDX-License-Identifier: ISC */
/*
 * The simulation: devices that a program steers, and the checks around daemon/order/.
 *
 * A device holds the runs it was handed, in order, and completes them when it is told to: never before they
 * were committed, before the one ahead of it, or before the words that its queue waits for. Its word is what
 * it completed; the order hears of it when the device is polled, which may be later and in another order
 * than between devices the words moved.
 *
 * Whatever the order does is told to the model, after the model was asked whether the laws allow it. The
 * objects that the order borrows or may not touch any more (stamps, watches) are heap memory of their own,
 * so that a sanitizer sees a use after their end.
 *
 * It deliberately does not tear anything down once a law is broken: whatever then runs is not to be trusted.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tests/order/simulate-internal.h"

#define PAYLOAD_MAGIC UINT64_C(0x72696720706c6421)

struct payload {
        uint64_t magic;
        struct rig_sim *sim;
        uint64_t run;
        uint64_t not_run;
        uint64_t extra_bytes;
        char extra[]; /* its last byte is marked, too */
};

#define EXTRA_MARK 0x5a

static const char *const feature_table[_RIG_SIM_FEATURE_MAX] = {
        [RIG_SIM_RUNS] = "runs",
        [RIG_SIM_HANDED] = "handed over",
        [RIG_SIM_OVERLAPS] = "handed over while another device worked",
        [RIG_SIM_CORE_WAITS] = "waited in the core",
        [RIG_SIM_QUEUE_WAITS] = "queue waits",
        [RIG_SIM_MANY_WAITS] = "runs with several queue waits",
        [RIG_SIM_FULL] = "times without room",
        [RIG_SIM_SYNC] = "completed when handed over",
        [RIG_SIM_MIXED_USES] = "named a memory twice",
        [RIG_SIM_POINTS] = "with points of their own",
        [RIG_SIM_LARGE] = "with large records",
        [RIG_SIM_SHARED] = "on another client's memory",
        [RIG_SIM_LOSSES] = "losses",
        [RIG_SIM_ENDED_LOSSES] = "losses that ended all work",
        [RIG_SIM_LATE_ENDS] = "losses that ended all work later",
        [RIG_SIM_LATE_WORDS] = "words of lost devices that moved",
        [RIG_SIM_LOST_RUNS] = "lost",
        [RIG_SIM_LOST_CHAINS] = "lost by a lost run",
        [RIG_SIM_DROPPED_RUNS] = "accepted on a lost device",
        [RIG_SIM_STUCK] = "stuck devices",
        [RIG_SIM_FAILED] = "failed hand-overs",
        [RIG_SIM_HANGS] = "hangs",
        [RIG_SIM_WATCHES_READ] = "watches to read",
        [RIG_SIM_WATCHES_WRITE] = "watches to write",
        [RIG_SIM_WATCHES_IDLE] = "watches for idle memory",
        [RIG_SIM_WATCHES_VALUE] = "watches of a value",
        [RIG_SIM_WATCHES_FAILED] = "watches with a culprit",
        [RIG_SIM_WATCHES_CANCELLED] = "watches cancelled",
        [RIG_SIM_RETIRED] = "memories returned",
        [RIG_SIM_RETIRED_BUSY] = "memories returned after a wait",
        [RIG_SIM_RETIRED_LATE] = "memories that a loss held",
        [RIG_SIM_CLIENTS_DEAD] = "dead clients",
        [RIG_SIM_CLOSED] = "devices closed",
};

const char *rig_sim_feature_to_string(enum rig_sim_feature feature)
{
        return feature_table[feature];
}

void rig_sim_broken(struct rig_sim *sim, const char *law, const char *fmt, ...)
{
        va_list ap;

        if (sim->law)
                return;
        sim->law = law;
        va_start(ap, fmt);
        vsnprintf(sim->text, sizeof(sim->text), fmt, ap);
        va_end(ap);
        if (sim->trace)
                fprintf(sim->trace, "  %s is broken: %s\n", law, sim->text);
}

void rig_sim_trace(struct rig_sim *sim, const char *fmt, ...)
{
        va_list ap;

        if (!sim->trace)
                return;
        va_start(ap, fmt);
        vfprintf(sim->trace, fmt, ap);
        va_end(ap);
        fputc('\n', sim->trace);
        fflush(sim->trace);
}

void rig_sim_did(struct rig_sim *sim, enum rig_sim_feature feature)
{
        sim->features[feature]++;
}

struct rig_sim_device *rig_sim_device_of(const struct rig_timeline *timeline)
{
        return timeline->userdata;
}

/* The model's number of a run that the order gives back; -1 after a complaint. */
static int run_of(struct rig_sim_device *d, const struct rig_run *run)
{
        const struct payload *p = run->payload;
        const struct rig_model_run *r;

        if ((uintptr_t)p % 8 || p->magic != PAYLOAD_MAGIC || p->run != ~p->not_run || p->sim != d->sim ||
                (p->extra_bytes && p->extra[p->extra_bytes - 1] != EXTRA_MARK)) {
                rig_sim_broken(d->sim, "record", "device %u: a run's payload is not what it was", d->index);
                return -1;
        }
        r = &d->sim->model.runs[p->run];
        if (r->device != d->index || r->value != run->value) {
                rig_sim_broken(d->sim, "record", "device %u: run %" PRIu64 " is said to be value %" PRIu64,
                        d->index, r->value, run->value);
                return -1;
        }
        return (int)p->run;
}

/* ---- what the order asks of a device */

static unsigned in_flight(const struct rig_sim_device *d)
{
        const struct rig_model *m = &d->sim->model;
        unsigned n = 0;

        for (unsigned i = 0; i < m->n_runs; i++)
                n += m->runs[i].device == d->index && m->runs[i].fate == RIG_MODEL_HANDED &&
                     !rig_model_reached(m, &m->runs[i]);
        return n;
}

bool rig_sim_has_room(const struct rig_sim_device *d)
{
        return d->config.capacity == 0 || in_flight(d) < d->config.capacity;
}

static int sim_room(struct rig_timeline *timeline, const struct rig_run *run)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);

        run_of(d, run);
        if (!rig_sim_has_room(d))
                rig_sim_did(d->sim, RIG_SIM_FULL);
        return rig_sim_has_room(d);
}

static bool sim_queue_waits(struct rig_timeline *timeline, const struct rig_timeline *producer)
{
        return rig_sim_device_of(timeline)->config.waits_for &
               RIG_MODEL_BIT(rig_sim_device_of(producer)->index);
}

static unsigned sim_max_waits(struct rig_timeline *timeline)
{
        return rig_sim_device_of(timeline)->config.max_waits;
}

static void note_hand_over(struct rig_sim_device *d, const struct rig_run *run)
{
        struct rig_sim *sim = d->sim;
        bool overlaps = false;

        for (unsigned i = 0; i < sim->n_devices; i++)
                overlaps |= i != d->index && in_flight(&sim->devices[i]) > 0;
        sim->features[RIG_SIM_OVERLAPS] += overlaps;
        sim->features[RIG_SIM_QUEUE_WAITS] += run->n_waits;
        sim->features[RIG_SIM_MANY_WAITS] += run->n_waits > 1;
        sim->features[RIG_SIM_SYNC] += d->config.sync;
        rig_sim_did(sim, RIG_SIM_HANDED);
}

static int sim_hand_over(struct rig_timeline *timeline, struct rig_run *run)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);
        struct rig_sim *sim = d->sim;
        struct rig_model_point waits[RIG_MODEL_WAITS];
        const char *law;
        int i = run_of(d, run);

        if (i < 0 || run->n_waits > RIG_MODEL_WAITS || run->n_waits > run->n_points) {
                rig_sim_broken(sim, "record", "device %u: a run with %u waits", d->index, run->n_waits);
                return 0;
        }
        for (unsigned k = 0; k < run->n_waits; k++)
                waits[k] = (struct rig_model_point){
                        rig_sim_device_of(run->points[k].timeline)->index, run->points[k].value};
        rig_sim_trace(sim, "    device %u is handed %" PRIu64, d->index, run->value);
        for (unsigned k = 0; k < run->n_waits; k++)
                rig_sim_trace(sim, "        after device %u value %" PRIu64 ", in its queue",
                        waits[k].device, waits[k].value);
        law = rig_model_forbids_start(&sim->model, (unsigned)i, waits, run->n_waits);
        if (law)
                rig_sim_broken(sim, law, "device %u is handed %" PRIu64, d->index, run->value);
        else if (!sim->running)
                rig_sim_broken(
                        sim, "contract", "device %u is handed a run outside of rig_order_run()", d->index);
        else if (!rig_sim_has_room(d))
                rig_sim_broken(sim, "contract", "device %u is handed %" PRIu64 " without room", d->index,
                        run->value);
        else if (d->failed)
                rig_sim_broken(sim, "L1", "device %u is handed a run after one failed", d->index);
        if (d->fail_next) {
                d->fail_next = false;
                d->failed = -EIO;
                rig_sim_trace(sim, "        which fails");
                return -EIO;
        }
        note_hand_over(d, run);
        rig_model_hand_over(&sim->model, (unsigned)i, waits, run->n_waits);
        if (d->config.sync)
                d->word = run->value;
        return 0;
}

static void sim_commit(struct rig_timeline *timeline)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);

        if (d->committed == d->sim->model.devices[d->index].last_handed)
                rig_sim_broken(d->sim, "contract", "device %u: a commit of nothing", d->index);
        d->committed = d->sim->model.devices[d->index].last_handed;
}

/* Whether the run is lost by the loss of a run that was itself passed. */
static bool in_chain(const struct rig_sim *sim, unsigned run)
{
        const struct rig_model_run *r = &sim->model.runs[run];

        for (unsigned i = 0; i < run; i++)
                if (sim->model.runs[i].fate == RIG_MODEL_PASSED &&
                        (sim->model.runs[i].spoils & (r->reads | r->writes)))
                        return true;
        return false;
}

static void sim_run_lost(struct rig_timeline *timeline, struct rig_run *run, struct rig_timeline *culprit)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);
        struct rig_sim *sim = d->sim;
        unsigned by = rig_sim_device_of(culprit)->index;
        int i = run_of(d, run);

        if (i < 0)
                return;
        rig_sim_trace(sim, "    device %u: %" PRIu64 " is lost by device %u", d->index, run->value, by);
        if (sim->runs[i].told++)
                rig_sim_broken(
                        sim, "L2", "device %u: %" PRIu64 " is lost a second time", d->index, run->value);
        else if (!(rig_model_may_lose(&sim->model, (unsigned)i) & RIG_MODEL_BIT(by)))
                rig_sim_broken(sim, "L2", "device %u: %" PRIu64 " is said to be lost by device %u", d->index,
                        run->value, by);
        rig_sim_did(sim, RIG_SIM_LOST_RUNS);
        sim->features[RIG_SIM_LOST_CHAINS] += in_chain(sim, (unsigned)i);
        rig_model_pass(&sim->model, (unsigned)i);
}

static void sim_run_over(struct rig_timeline *timeline, struct rig_run *run)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);
        struct rig_sim *sim = d->sim;
        int i = run_of(d, run);

        if (i < 0)
                return;
        if (sim->runs[i].over++)
                rig_sim_broken(
                        sim, "record", "device %u: %" PRIu64 " is over a second time", d->index, run->value);
        else if (!rig_model_may_be_over(&sim->model, &sim->model.runs[i]))
                rig_sim_broken(sim, "M1", "device %u: the record of %" PRIu64 " goes while it may run",
                        d->index, run->value);
}

static void sim_advanced(struct rig_timeline *timeline)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);

        if (timeline->reached <= d->advanced)
                rig_sim_broken(
                        d->sim, "contract", "device %u is told to have advanced, and has not", d->index);
        d->advanced = timeline->reached;
}

static void lose(struct rig_sim_device *d, bool ended)
{
        struct rig_sim *sim = d->sim;

        rig_sim_trace(sim, "    device %u is lost%s", d->index, ended ? ", and its work ended" : "");
        rig_sim_did(sim, sim->model.devices[d->index].lost ? RIG_SIM_LATE_ENDS : RIG_SIM_LOSSES);
        sim->features[RIG_SIM_ENDED_LOSSES] += ended && !sim->model.devices[d->index].lost;
        rig_model_lose(&sim->model, d->index, ended);
        rig_timeline_lose(d->timeline, ended);
}

static void sim_failed(struct rig_timeline *timeline, int error)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);

        if (!d->failed || error != d->failed || d->sim->model.devices[d->index].lost)
                rig_sim_broken(
                        d->sim, "contract", "device %u is said to have failed with %d", d->index, error);
        d->failed = 0;
        rig_sim_did(d->sim, RIG_SIM_FAILED);
        lose(d, d->config.ends);
}

static void sim_stuck(struct rig_timeline *timeline, struct rig_timeline *producer)
{
        struct rig_sim_device *d = rig_sim_device_of(timeline);
        unsigned by = rig_sim_device_of(producer)->index;

        if (d->sim->model.devices[d->index].lost)
                rig_sim_broken(d->sim, "L1", "device %u is stuck after it was lost", d->index);
        else if (!(d->sim->model.devices[d->index].stuck_causes & RIG_MODEL_BIT(by)))
                rig_sim_broken(d->sim, "L2", "device %u is said to be stuck on device %u", d->index, by);
        rig_sim_did(d->sim, RIG_SIM_STUCK);
        lose(d, d->config.ends);
}

/* A driver that says everything, and one that says only what it must. */
static const struct rig_timeline_ops full_ops = {
        .advanced = sim_advanced,
        .commit = sim_commit,
        .failed = sim_failed,
        .hand_over = sim_hand_over,
        .max_waits = sim_max_waits,
        .queue_waits = sim_queue_waits,
        .room = sim_room,
        .run_lost = sim_run_lost,
        .run_over = sim_run_over,
        .stuck = sim_stuck,
};

static const struct rig_timeline_ops bare_ops = {
        .failed = sim_failed,
        .hand_over = sim_hand_over,
        .run_lost = sim_run_lost,
        .run_over = sim_run_over,
        .stuck = sim_stuck,
};

bool rig_sim_is_bare(const struct rig_sim_config *config)
{
        return config->capacity == 0 && config->waits_for == 0;
}

/* ---- what programs do */

void rig_sim_init(struct rig_sim *sim, FILE *to)
{
        memset(sim, 0, offsetof(struct rig_sim, model));
        memset(&sim->devices, 0, sizeof(*sim) - offsetof(struct rig_sim, devices));
        rig_order_init(&sim->order);
        rig_model_init(&sim->model);
        sim->now_usec = 1;
        sim->trace = to;
}

void rig_sim_open(struct rig_sim *sim, const struct rig_sim_config *config)
{
        struct rig_sim_device *d = &sim->devices[sim->n_devices];

        if (sim->law || sim->n_devices == RIG_MODEL_DEVICES)
                return;
        *d = (struct rig_sim_device){.sim = sim, .index = sim->n_devices, .config = *config};
        if (d->config.sync || !d->config.max_waits)
                d->config.waits_for = d->config.max_waits = 0;
        d->config.waits_for &= ~RIG_MODEL_BIT(d->index);
        d->timeline = rig_timeline_new(&sim->order, rig_sim_is_bare(&d->config) ? &bare_ops : &full_ops, d);
        rig_assert(d->timeline);
        rig_model_open(&sim->model, d->config.waits_for, d->config.max_waits);
        sim->n_devices++;
        rig_sim_trace(sim, "open device %u: client %u, %u runs at once%s%s", d->index, d->config.client,
                d->config.capacity, d->config.sync ? ", synchronous" : "",
                d->config.host_code ? ", host code" : "");
        if (d->config.waits_for)
                rig_sim_trace(sim, "  its queue waits for devices %#x, %u at once", d->config.waits_for,
                        d->config.max_waits);
}

void rig_sim_memory(struct rig_sim *sim, uint32_t clients)
{
        struct rig_sim_memory *memory = &sim->memories[sim->n_memories];

        if (sim->law || sim->n_memories == RIG_MODEL_MEMORIES)
                return;
        *memory = (struct rig_sim_memory){.sim = sim, .index = sim->n_memories, .clients = clients};
        memory->last_client = UINT32_MAX;
        memory->stamps = malloc(sizeof(*memory->stamps));
        rig_assert(memory->stamps);
        rig_stamps_init(memory->stamps);
        rig_sim_trace(sim, "memory %u of clients %#x", sim->n_memories, clients);
        sim->n_memories++;
}

static void note_accept(struct rig_sim *sim, const struct rig_sim_device *d, const struct rig_sim_use *uses,
        unsigned n_uses, unsigned n_points)
{
        uint32_t named = 0;

        rig_sim_did(sim, RIG_SIM_RUNS);
        sim->features[RIG_SIM_POINTS] += n_points > 0;
        sim->features[RIG_SIM_LARGE] += sim->extra_bytes > 0;
        sim->features[RIG_SIM_DROPPED_RUNS] += sim->model.devices[d->index].lost;
        for (unsigned i = 0; i < n_uses; i++) {
                struct rig_sim_memory *memory = &sim->memories[uses[i].memory];

                sim->features[RIG_SIM_MIXED_USES] += (named & RIG_MODEL_BIT(uses[i].memory)) != 0;
                named |= RIG_MODEL_BIT(uses[i].memory);
                sim->features[RIG_SIM_SHARED] +=
                        memory->last_client != UINT32_MAX && memory->last_client != d->config.client;
                memory->last_client = d->config.client;
                rig_sim_trace(sim, "    %s%s memory %u", uses[i].access & RIG_ACCESS_READ ? "reads " : "",
                        uses[i].access & RIG_ACCESS_WRITE ? "writes" : "", uses[i].memory);
        }
}

static void check_record(struct rig_sim *sim, unsigned device, unsigned run, struct rig_run *record)
{
        struct payload *p;

        if (!record != sim->model.devices[device].lost) {
                rig_sim_broken(sim, "record", "device %u: accepted a run %s a record", device,
                        record ? "with" : "without");
                return;
        }
        if (!record)
                return;
        sim->runs[run].has_record = true;
        p = record->payload;
        *p = (struct payload){.magic = PAYLOAD_MAGIC, .sim = sim, .run = run, .not_run = ~(uint64_t)run};
        p->extra_bytes = sim->extra_bytes;
        if (p->extra_bytes)
                p->extra[p->extra_bytes - 1] = EXTRA_MARK;
        if (record->value != sim->model.runs[run].value)
                rig_sim_broken(sim, "O1", "device %u: accepted as value %" PRIu64, device, record->value);
        else if (record->seq <= sim->seq)
                rig_sim_broken(sim, "O4", "device %u: %" PRIu64 " is not later than the run before", device,
                        record->value);
        sim->seq = record->seq;
}

int rig_sim_accept(struct rig_sim *sim, unsigned device, const struct rig_sim_use *uses, unsigned n_uses,
        const struct rig_model_point *points, unsigned n_points)
{
        struct rig_sim_device *d = &sim->devices[device];
        struct rig_use real_uses[RIG_SIM_USES];
        struct rig_point real_points[RIG_MODEL_POINTS];
        struct rig_run *record = NULL;
        uint32_t reads = 0, writes = 0;
        unsigned run;

        if (sim->law || sim->model.n_runs == RIG_MODEL_RUNS)
                return -1;
        rig_assert(n_uses <= RIG_SIM_USES && n_points <= RIG_MODEL_POINTS);
        for (unsigned i = 0; i < n_uses; i++) {
                real_uses[i] = (struct rig_use){sim->memories[uses[i].memory].stamps, uses[i].access};
                reads |= uses[i].access & RIG_ACCESS_READ ? RIG_MODEL_BIT(uses[i].memory) : 0;
                writes |= uses[i].access & RIG_ACCESS_WRITE ? RIG_MODEL_BIT(uses[i].memory) : 0;
        }
        for (unsigned i = 0; i < n_points; i++)
                real_points[i] =
                        (struct rig_point){sim->devices[points[i].device].timeline, points[i].value};
        rig_sim_trace(sim, "device %u accepts %" PRIu64, device, sim->model.devices[device].submitted + 1);
        for (unsigned i = 0; i < n_points; i++)
                rig_sim_trace(sim, "    after device %u value %" PRIu64, points[i].device, points[i].value);
        note_accept(sim, d, uses, n_uses, n_points);
        run = rig_model_accept(&sim->model, device, reads, writes, points, n_points);
        if (rig_timeline_accept(d->timeline, real_uses, n_uses, real_points, n_points,
                    sizeof(struct payload) + sim->extra_bytes, &record) < 0) {
                rig_sim_broken(sim, "record", "device %u: a run was refused", device);
                return -1;
        }
        check_record(sim, device, run, record);
        return (int)run;
}

/* Whether the words that a run's queue waits for are there. */
static bool words_there(const struct rig_sim *sim, const struct rig_model_run *r)
{
        for (unsigned i = 0; i < r->n_waits; i++)
                if (sim->devices[r->waits[i].device].word < r->waits[i].value)
                        return false;
        return true;
}

/* O2 and O3 once more, as the hardware has it: no earlier conflicting work is in a device that still runs.
 */
static void check_start(struct rig_sim *sim, const struct rig_model_run *r)
{
        for (const struct rig_model_run *p = sim->model.runs; p < r; p++) {
                const struct rig_model_device *d = &sim->model.devices[p->device];
                bool conflict = (p->writes & (r->reads | r->writes)) || (p->reads & r->writes);

                if (p->device == r->device || !conflict || p->fate != RIG_MODEL_HANDED)
                        continue;
                if (sim->devices[p->device].word < p->value && !(d->lost && d->ended))
                        rig_sim_broken(sim, p->writes & r->reads ? "O2" : "O3",
                                "device %u starts %" PRIu64 " before device %u completed %" PRIu64,
                                r->device, r->value, p->device, p->value);
        }
}

void rig_sim_complete(struct rig_sim *sim, unsigned device, unsigned n)
{
        struct rig_sim_device *d = &sim->devices[device];
        const struct rig_model_device *m = &sim->model.devices[device];

        for (unsigned i = 0; i < sim->model.n_runs && n > 0 && !sim->law && !m->ended; i++) {
                const struct rig_model_run *r = &sim->model.runs[i];

                if (r->device != device || r->fate != RIG_MODEL_HANDED || r->value <= d->word)
                        continue;
                if ((!rig_sim_is_bare(&d->config) && r->value > d->committed) || !words_there(sim, r))
                        return;
                check_start(sim, r);
                rig_sim_trace(sim, "device %u completes %" PRIu64, device, r->value);
                sim->features[RIG_SIM_LATE_WORDS] += m->lost;
                d->word = r->value;
                n--;
        }
}

void rig_sim_poll(struct rig_sim *sim, unsigned device)
{
        struct rig_sim_device *d = &sim->devices[device];

        if (sim->law || !d->timeline || d->word <= sim->model.devices[device].reached)
                return;
        rig_sim_trace(sim, "device %u is polled: %" PRIu64, device, d->word);
        rig_model_reach(&sim->model, device, d->word);
        rig_timeline_reach(d->timeline, d->word);
}

void rig_sim_lose(struct rig_sim *sim, unsigned device, bool ended)
{
        if (sim->law)
                return;
        rig_sim_trace(sim, "device %u faults", device);
        lose(&sim->devices[device], ended);
        sim->devices[device].failed = 0;
}

void rig_sim_fail_next(struct rig_sim *sim, unsigned device)
{
        rig_sim_trace(sim, "device %u will fail its next run", device);
        sim->devices[device].fail_next = true;
}

/* ---- watches */

static void watch_done(struct rig_watch *watch, struct rig_timeline *culprit)
{
        struct rig_sim_watch *w = watch->userdata;
        struct rig_sim *sim = w->sim;
        int by = culprit ? (int)rig_sim_device_of(culprit)->index : -1;
        long i = w - sim->watches;

        rig_sim_trace(sim, "    watch %ld is done, culprit %d", i, by);
        if (w->cancelled || !w->watch || !sim->running)
                rig_sim_broken(sim, "O6", "watch %ld is done when it must not be", i);
        else if (by < 0 && !rig_model_watch_may_succeed(&sim->model, &w->model))
                rig_sim_broken(sim, w->model.kind == RIG_MODEL_WATCH_IDLE ? "M1" : "O6",
                        "watch %ld is done too early", i);
        else if (by >= 0 && !(rig_model_watch_may_fail(&sim->model, &w->model) & RIG_MODEL_BIT(by)))
                rig_sim_broken(sim, "L2", "watch %ld is told that device %d is the culprit", i, by);
        sim->features[RIG_SIM_WATCHES_FAILED] += by >= 0;
        if (w->model.kind != RIG_MODEL_WATCH_VALUE)
                sim->memories[w->model.memory].n_watches--;
        w->watch = NULL;
        free(watch);
}

int rig_sim_watch(
        struct rig_sim *sim, enum rig_model_watch_kind kind, unsigned memory, struct rig_model_point point)
{
        struct rig_sim_watch *w = &sim->watches[sim->n_watches];
        const struct rig_stamps *stamps;
        int r = 0;

        if (sim->law || sim->n_watches == RIG_SIM_WATCHES)
                return -1;
        stamps = kind == RIG_MODEL_WATCH_VALUE ? NULL : sim->memories[memory].stamps;
        *w = (struct rig_sim_watch){.sim = sim, .watch = calloc(1, sizeof(*w->watch))};
        rig_assert(w->watch);
        rig_model_watch_init(&w->model, &sim->model, kind, memory, point);
        rig_sim_did(sim, RIG_SIM_WATCHES_READ + kind);
        if (kind == RIG_MODEL_WATCH_VALUE) {
                rig_sim_trace(sim, "watch %u: device %u value %" PRIu64, sim->n_watches, point.device,
                        point.value);
                rig_watch_value(w->watch, &sim->order, sim->devices[point.device].timeline, point.value,
                        watch_done, w);
        } else {
                static const char *const names[] = {"to read", "to write", "until idle:"};

                rig_sim_trace(sim, "watch %u: %s memory %u", sim->n_watches, names[kind], memory);
                sim->memories[memory].n_watches++;
                r = kind == RIG_MODEL_WATCH_IDLE
                            ? rig_watch_idle(w->watch, &sim->order, stamps, watch_done, w)
                            : rig_watch_access(w->watch, &sim->order, stamps,
                                      kind == RIG_MODEL_WATCH_READ ? RIG_ACCESS_READ : RIG_ACCESS_WRITE,
                                      watch_done, w);
        }
        rig_assert(r == 0);
        return (int)sim->n_watches++;
}

void rig_sim_cancel(struct rig_sim *sim, unsigned watch)
{
        struct rig_sim_watch *w = &sim->watches[watch];

        if (sim->law || !w->watch)
                return;
        rig_sim_trace(sim, "watch %u is cancelled", watch);
        rig_watch_cancel(w->watch);
        rig_watch_cancel(w->watch);
        w->cancelled = true;
        if (w->model.kind != RIG_MODEL_WATCH_VALUE)
                sim->memories[w->model.memory].n_watches--;
        free(w->watch);
        w->watch = NULL;
        rig_sim_did(sim, RIG_SIM_WATCHES_CANCELLED);
}

/* ---- memory that returns */

void rig_sim_release(struct rig_sim_memory *memory)
{
        rig_stamps_deinit(memory->stamps);
        free(memory->stamps);
        memory->stamps = NULL;
        rig_sim_did(memory->sim, RIG_SIM_RETIRED);
        memory->sim->features[RIG_SIM_RETIRED_LATE] += memory->held;
}

static void retire_done(struct rig_watch *watch, struct rig_timeline *culprit)
{
        struct rig_sim_memory *memory = watch->userdata;
        struct rig_sim *sim = memory->sim;

        rig_sim_trace(sim, "    memory %u is idle", memory->index);
        if (culprit)
                rig_sim_broken(sim, "M1", "memory %u: a wait for idle memory has a culprit", memory->index);
        else if (!sim->running || !memory->retire)
                rig_sim_broken(sim, "M1", "memory %u is idle once more", memory->index);
        else if (!rig_model_may_be_idle(&sim->model, memory->index, sim->model.n_runs))
                rig_sim_broken(sim, "M1", "memory %u returns while it is used", memory->index);
        memory->retire = NULL;
        free(watch);
        if (!memory->n_watches && !sim->law)
                rig_sim_release(memory);
}

void rig_sim_retire(struct rig_sim *sim, unsigned memory)
{
        struct rig_sim_memory *mem = &sim->memories[memory];
        int r;

        if (sim->law || !mem->stamps || mem->retire)
                return;
        rig_sim_trace(sim, "memory %u is dropped", memory);
        mem->clients = 0;
        if (!rig_model_may_be_idle(&sim->model, memory, sim->model.n_runs))
                rig_sim_did(sim, RIG_SIM_RETIRED_BUSY);
        mem->retire = calloc(1, sizeof(*mem->retire));
        rig_assert(mem->retire);
        r = rig_watch_idle(mem->retire, &sim->order, mem->stamps, retire_done, mem);
        rig_assert(r == 0);
}

void rig_sim_close(struct rig_sim *sim, unsigned device)
{
        if (sim->law || sim->devices[device].closed)
                return;
        rig_sim_trace(sim, "device %u is closed", device);
        sim->devices[device].closed = true;
}

void rig_sim_kill(struct rig_sim *sim, unsigned client)
{
        if (sim->law || (sim->dead_clients & RIG_MODEL_BIT(client)))
                return;
        rig_sim_trace(sim, "client %u dies", client);
        sim->dead_clients |= RIG_MODEL_BIT(client);
        rig_sim_did(sim, RIG_SIM_CLIENTS_DEAD);
        for (unsigned i = 0; i < sim->n_devices; i++) {
                struct rig_sim_device *d = &sim->devices[i];

                if (d->config.client != client || !d->timeline)
                        continue;
                if (d->config.host_code && !sim->model.devices[i].ended)
                        rig_sim_lose(sim, i, true);
                rig_sim_close(sim, i);
        }
        for (unsigned i = 0; i < sim->n_memories; i++) {
                struct rig_sim_memory *memory = &sim->memories[i];

                if (!(memory->clients & RIG_MODEL_BIT(client)))
                        continue;
                memory->clients &= ~RIG_MODEL_BIT(client);
                if (!memory->clients)
                        rig_sim_retire(sim, i);
        }
}

void rig_sim_tick(struct rig_sim *sim, uint64_t usec)
{
        if (sim->law)
                return;
        rig_sim_trace(sim, "%" PRIu64 " us pass", usec);
        sim->now_usec += usec;
        for (unsigned i = 0; i < sim->n_devices && !sim->law; i++) {
                struct rig_sim_device *d = &sim->devices[i];
                bool hangs, is;

                if (!d->timeline || sim->model.devices[i].lost)
                        continue;
                is = rig_timeline_hangs(d->timeline, sim->now_usec, RIG_SIM_HANG_BOUND);
                hangs = rig_model_hangs(&sim->model, i, sim->now_usec, RIG_SIM_HANG_BOUND);
                if (hangs != is)
                        rig_sim_broken(sim, "L4", "device %u %s", i,
                                hangs ? "hangs, and is not found" : "is said to hang");
                if (!hangs)
                        continue;
                rig_sim_did(sim, RIG_SIM_HANGS);
                rig_sim_lose(sim, i, false);
        }
}

enum rig_model_fate rig_sim_fate(const struct rig_sim *sim, int run)
{
        return sim->model.runs[run].fate;
}

bool rig_sim_watch_done(const struct rig_sim *sim, int watch)
{
        return !sim->watches[watch].watch && !sim->watches[watch].cancelled;
}
