/* SPDX-License-Identifier: ISC */
/*
 * The reference model, written from the laws alone: slow, obvious, and sharing nothing with daemon/order/.
 *
 * It keeps every run ever accepted, in the order of acceptance, and answers each question by looking at all
 * of them. There are no stamps here, and no transitivity: a run follows every earlier run, of whichever
 * device, that wrote memory it names or named memory it writes (O2, O3), and the points it names (O7); on
 * its own device it follows all before it (O1); nothing else (O8).
 *
 * Loss, which L2 says in one sentence, is read like this:
 *
 *   - A device that is lost loses every run of it that was accepted and not reached. A lost run spoils the
 *     memory it writes, and, unless the loss ended the device's work, also the memory it only reads: that
 *     may be read yet, so nothing may write it.
 *   - Spoiling acts on later runs only. A run that names memory which an earlier lost run spoiled is lost
 *     too. Its device is not: the run is passed, that is, never handed over, its value counts as reached in
 *     its turn, and it spoils what it would have written.
 *   - A run that names a point of its own (O7) which is unreached on a lost device is lost in the same way.
 *     A value that was passed counts as reached.
 *   - A run that was handed over cannot be passed any more. But a device whose queue waits for an unreached
 *     value of a lost device is lost with it, for its queue would wait for ever.
 *   - A run accepted on a lost device has a value that is never reached, and spoils what it would have
 *     written. Whether it also spoils what it would have read is left open: no work of it ever runs.
 *
 * Where the laws say what must become of a run but not when, the model has a may and a must. A run that is
 * to be lost may be passed as soon as its fate is sealed, which is also when a run it follows is itself to
 * be lost; it must be, at the latest, once it is first in its queue and whatever it follows is reached or
 * lost. What it follows includes, behind a run that was lost with its device, what that would have followed.
 *
 * Waits in the queue are the device's to save time with, and no law asks for them. A run that has no more
 * points to follow than its device's queue can wait for must not be kept in the core by them; one that has
 * more may be, and so may one that follows a device which passed a run.
 *
 * Memory (M1, L3) is idle when no work touches it any more. It may count as idle when that is so, and must
 * when every run that named it was reached, or dropped by its device's loss, or belongs to a lost device
 * whose work ended or which completed the last run it was given; but a run that was lost with its device may
 * hold its memory for as long as work that it would have followed goes on.
 */
#include <string.h>

#include "tests/order/model.h"

void rig_model_init(struct rig_model *m)
{
        m->n_runs = 0;
        m->n_devices = 0;
}

unsigned rig_model_open(struct rig_model *m, uint32_t waits_for, unsigned max_waits)
{
        rig_assert(m->n_devices < RIG_MODEL_DEVICES);
        m->devices[m->n_devices] = (struct rig_model_device){.waits_for = waits_for, .max_waits = max_waits};
        return m->n_devices++;
}

static uint32_t names(const struct rig_model_run *run)
{
        return run->reads | run->writes;
}

const struct rig_model_run *rig_model_run_of(const struct rig_model *m, unsigned device, uint64_t value)
{
        for (unsigned i = 0; i < m->n_runs; i++)
                if (m->runs[i].device == device && m->runs[i].value == value)
                        return &m->runs[i];
        return NULL;
}

bool rig_model_reached(const struct rig_model *m, const struct rig_model_run *run)
{
        return run->value <= m->devices[run->device].reached;
}

static bool point_reached(const struct rig_model *m, const struct rig_model_point *p)
{
        return p->value <= m->devices[p->device].reached;
}

/* The numbers that follow from what became of the runs: `handed` is a prefix, and so is `reached`. */
static void count(struct rig_model *m, unsigned device)
{
        struct rig_model_device *d = &m->devices[device];

        for (unsigned i = 0; i < m->n_runs; i++) {
                const struct rig_model_run *run = &m->runs[i];

                if (run->device != device)
                        continue;
                if (run->value == d->handed + 1 && run->fate != RIG_MODEL_WAITING &&
                        run->fate != RIG_MODEL_DROPPED)
                        d->handed++;
                if (run->value == d->reached + 1 && run->fate == RIG_MODEL_PASSED)
                        d->reached++;
        }
}

/* Whether `run` must follow the earlier run `p` of another device, by O2 or O3. */
static const char *follows(const struct rig_model_run *run, const struct rig_model_run *p)
{
        if (p->device == run->device)
                return NULL;
        if (p->writes & run->reads)
                return "O2";
        return names(p) & run->writes ? "O3" : NULL;
}

/* Whether the run was lost with its device. */
static bool went_with_device(const struct rig_model *m, const struct rig_model_run *run)
{
        return m->devices[run->device].lost && !rig_model_reached(m, run);
}

/*
 * Everything that a run waits for at most: what it follows, and, behind those of it that went with their
 * device, what they would have followed, for nobody noted which of that concerned which memory.
 */
static void behind(const struct rig_model *m, unsigned run, bool waits_for[static RIG_MODEL_RUNS])
{
        for (unsigned i = run; i-- > 0;) {
                waits_for[i] = follows(&m->runs[run], &m->runs[i]);
                for (unsigned k = i + 1; k < run && !waits_for[i]; k++)
                        waits_for[i] = waits_for[k] && went_with_device(m, &m->runs[k]) &&
                                       follows(&m->runs[k], &m->runs[i]);
        }
}

/* The points that a run follows, unreached when it is accepted: one of each device, and those it names
 * itself. */
static unsigned count_foreign(const struct rig_model *m, const struct rig_model_run *run)
{
        uint32_t devices = 0;
        unsigned n = 0;

        for (const struct rig_model_run *p = m->runs; p < run; p++)
                if (follows(run, p) && !rig_model_reached(m, p))
                        devices |= RIG_MODEL_BIT(p->device);
        for (unsigned i = 0; i < run->n_points; i++)
                n += !point_reached(m, &run->points[i]);
        return n + (unsigned)__builtin_popcount(devices);
}

unsigned rig_model_accept(struct rig_model *m, unsigned device, uint32_t reads, uint32_t writes,
        const struct rig_model_point *points, unsigned n_points)
{
        struct rig_model_device *d = &m->devices[device];
        struct rig_model_run *run = &m->runs[m->n_runs];

        rig_assert(m->n_runs < RIG_MODEL_RUNS && n_points <= RIG_MODEL_POINTS);
        *run = (struct rig_model_run){
                .device = device, .value = ++d->submitted, .reads = reads, .writes = writes};
        for (unsigned i = 0; i < n_points; i++) {
                if (points[i].device == device)
                        continue; /* O1 has it already */
                run->points[run->n_points++] = points[i];
                if (m->devices[points[i].device].lost && !point_reached(m, &points[i]))
                        run->point_causes |= RIG_MODEL_BIT(points[i].device);
        }
        run->n_foreign = count_foreign(m, run);
        if (d->lost) {
                run->fate = RIG_MODEL_DROPPED;
                run->culprits = RIG_MODEL_BIT(device);
                run->spoils = writes;
                run->may_spoil = d->ended ? 0 : reads;
        }
        return m->n_runs++;
}

void rig_model_hand_over(
        struct rig_model *m, unsigned run, const struct rig_model_point *waits, unsigned n_waits)
{
        struct rig_model_run *r = &m->runs[run];

        rig_assert(n_waits <= RIG_MODEL_WAITS);
        r->fate = RIG_MODEL_HANDED;
        r->n_waits = n_waits;
        for (unsigned i = 0; i < n_waits; i++)
                r->waits[i] = waits[i];
        m->devices[r->device].last_handed = r->value;
        count(m, r->device);
}

void rig_model_pass(struct rig_model *m, unsigned run)
{
        struct rig_model_run *r = &m->runs[run];

        r->culprits = rig_model_may_lose(m, run);
        r->fate = RIG_MODEL_PASSED;
        r->spoils = r->writes;
        count(m, r->device);
}

/* What a device completed is reached, and so is whatever its queue waited for, on any device. */
void rig_model_reach(struct rig_model *m, unsigned device, uint64_t value)
{
        struct rig_model_device *d = &m->devices[device];

        if (d->ended || value <= d->reached)
                return; /* once nothing of it runs, what its word says is of no interest */
        for (unsigned i = 0; i < m->n_runs; i++)
                for (unsigned k = 0; k < m->runs[i].n_waits; k++)
                        if (m->runs[i].device == device && m->runs[i].value > d->reached &&
                                m->runs[i].value <= value)
                                rig_model_reach(m, m->runs[i].waits[k].device, m->runs[i].waits[k].value);
        d->reached = value;
        count(m, device);
}

/* What the loss of `device` does to one run of it, which is not reached. */
static void lose_run(struct rig_model_run *run, bool ended)
{
        if (run->fate == RIG_MODEL_PASSED) {
                run->may_spoil |= ended ? 0 : run->reads; /* it is lost already, and nothing of it runs */
                return;
        }
        if (run->fate == RIG_MODEL_WAITING)
                run->fate = RIG_MODEL_DROPPED;
        run->culprits = RIG_MODEL_BIT(run->device);
        run->spoils = run->writes | (ended ? 0 : run->reads);
}

void rig_model_lose(struct rig_model *m, unsigned device, bool ended)
{
        struct rig_model_device *d = &m->devices[device];

        if (d->lost) {
                d->ended |= ended;
                return;
        }
        d->lost = true;
        d->ended = ended;
        for (unsigned i = 0; i < m->n_runs; i++) {
                struct rig_model_run *run = &m->runs[i];
                bool reached = rig_model_reached(m, run);

                if (run->device == device && !reached)
                        lose_run(run, ended);
                for (unsigned k = 0; k < run->n_points; k++)
                        if (run->points[k].device == device && !point_reached(m, &run->points[k]))
                                run->point_causes |= RIG_MODEL_BIT(device);
                for (unsigned k = 0; k < run->n_waits; k++)
                        if (!reached && run->waits[k].device == device && !point_reached(m, &run->waits[k]))
                                m->devices[run->device].stuck_causes |= RIG_MODEL_BIT(device);
        }
}

static bool waited_for(
        unsigned device, uint64_t value, const struct rig_model_point *waits, unsigned n_waits)
{
        for (unsigned i = 0; i < n_waits; i++)
                if (waits[i].device == device && waits[i].value >= value)
                        return true;
        return false;
}

/* Whether the laws have `run` follow this value at all. */
static bool is_to_follow(const struct rig_model *m, unsigned run, const struct rig_model_point *point)
{
        const struct rig_model_run *r = &m->runs[run];

        for (unsigned i = 0; i < run; i++)
                if (m->runs[i].device == point->device && m->runs[i].value >= point->value &&
                        follows(r, &m->runs[i]))
                        return true;
        return waited_for(point->device, point->value, r->points, r->n_points);
}

static const char *forbids_waits(
        const struct rig_model *m, unsigned run, const struct rig_model_point *waits, unsigned n_waits)
{
        const struct rig_model_device *d = &m->devices[m->runs[run].device];

        if (n_waits > d->max_waits)
                return "O8: more waits in the queue than the device can do";
        for (unsigned i = 0; i < n_waits; i++) {
                const struct rig_model_run *p = rig_model_run_of(m, waits[i].device, waits[i].value);

                if (!(d->waits_for & RIG_MODEL_BIT(waits[i].device)))
                        return "O2: a wait in the queue that the device cannot do";
                if (!is_to_follow(m, run, &waits[i]))
                        return "O8: a wait in the queue that no law asks for";
                if (point_reached(m, &waits[i]))
                        continue;
                if (!p || p->fate != RIG_MODEL_HANDED)
                        return "O2: a wait in the queue for a value that was not handed over";
                if (m->devices[p->device].lost)
                        return "L2: a wait in the queue for a lost device";
        }
        return NULL;
}

/* Whatever the queue of a completed run waited for is complete. */
static void follow_waits(const struct rig_model *m, uint64_t complete[static RIG_MODEL_DEVICES])
{
        bool more = true;

        while (more) {
                more = false;
                for (unsigned i = 0; i < m->n_runs; i++)
                        for (unsigned k = 0; k < m->runs[i].n_waits; k++) {
                                const struct rig_model_point *w = &m->runs[i].waits[k];

                                if (m->runs[i].value > complete[m->runs[i].device] ||
                                        complete[w->device] >= w->value)
                                        continue;
                                complete[w->device] = w->value;
                                more = true;
                        }
        }
}

/*
 * For each device, the value that is complete when the run starts, if it starts once the points are reached:
 * its own device's earlier runs are (O1), and with each run that is complete, what its queue waited for.
 */
static void complete_before(const struct rig_model *m, const struct rig_model_run *run,
        const struct rig_model_point *waits, unsigned n_waits, uint64_t before[static RIG_MODEL_DEVICES])
{
        for (unsigned i = 0; i < m->n_devices; i++)
                before[i] = m->devices[i].reached;
        before[run->device] = run->value - 1;
        for (unsigned i = 0; i < n_waits; i++)
                before[waits[i].device] = RIG_MAX(before[waits[i].device], waits[i].value);
        follow_waits(m, before);
}

const char *rig_model_forbids_start(
        const struct rig_model *m, unsigned run, const struct rig_model_point *waits, unsigned n_waits)
{
        const struct rig_model_run *r = &m->runs[run];
        const struct rig_model_device *d = &m->devices[r->device];
        uint64_t before[RIG_MODEL_DEVICES];

        if (d->lost)
                return "L1: a run handed over to a lost device";
        if (r->fate != RIG_MODEL_WAITING || r->value != d->handed + 1)
                return "O1: a run handed over out of its turn";
        if (rig_model_must_lose(m, run))
                return "L2: a run handed over that is lost";
        complete_before(m, r, waits, n_waits, before);
        for (unsigned i = 0; i < run; i++) {
                const struct rig_model_run *p = &m->runs[i];
                const char *law = follows(r, p);

                if (law && !rig_model_may_be_over(m, p) && p->value > before[p->device])
                        return law;
        }
        for (unsigned i = 0; i < r->n_points; i++)
                if (r->points[i].value > before[r->points[i].device])
                        return "O7";
        return forbids_waits(m, run, waits, n_waits);
}

uint32_t rig_model_spoiled(const struct rig_model *m, unsigned memory, unsigned n_runs)
{
        uint32_t culprits = 0;

        for (unsigned i = 0; i < n_runs; i++)
                if (m->runs[i].spoils & RIG_MODEL_BIT(memory))
                        culprits |= m->runs[i].culprits;
        return culprits;
}

/*
 * For each memory, the devices whose loss perhaps spoiled it for what comes after the first `n_runs` runs: a
 * run that is perhaps to be lost perhaps spoils what it writes, and so on, in the order of acceptance.
 */
static void perhaps_spoiled(
        const struct rig_model *m, unsigned n_runs, uint32_t culprits[static RIG_MODEL_MEMORIES])
{
        memset(culprits, 0, RIG_MODEL_MEMORIES * sizeof(*culprits));
        for (unsigned i = 0; i < n_runs; i++) {
                const struct rig_model_run *r = &m->runs[i];
                uint32_t spoils = r->spoils | r->may_spoil, why = r->culprits;

                if (r->fate == RIG_MODEL_WAITING) {
                        why = r->point_causes;
                        for (uint32_t left = names(r); left; left &= left - 1)
                                why |= culprits[__builtin_ctz(left)];
                        spoils = r->writes;
                }
                for (uint32_t left = why ? spoils : 0; left; left &= left - 1)
                        culprits[__builtin_ctz(left)] |= why;
        }
}

uint32_t rig_model_perhaps_spoiled(const struct rig_model *m, unsigned memory, unsigned n_runs)
{
        uint32_t culprits[RIG_MODEL_MEMORIES];

        perhaps_spoiled(m, n_runs, culprits);
        return culprits[memory];
}

uint32_t rig_model_may_lose(const struct rig_model *m, unsigned run)
{
        const struct rig_model_run *r = &m->runs[run];
        uint32_t culprits[RIG_MODEL_MEMORIES], why = r->point_causes;

        if (r->fate != RIG_MODEL_WAITING)
                return 0;
        perhaps_spoiled(m, run, culprits);
        for (uint32_t left = names(r); left; left &= left - 1)
                why |= culprits[__builtin_ctz(left)];
        return why;
}

uint32_t rig_model_must_lose(const struct rig_model *m, unsigned run)
{
        const struct rig_model_run *r = &m->runs[run];
        uint32_t why = 0;

        if (r->fate != RIG_MODEL_WAITING)
                return 0;
        for (unsigned i = 0; i < run; i++)
                if (m->runs[i].spoils & names(r))
                        why |= m->runs[i].culprits;
        for (unsigned i = 0; i < r->n_points; i++)
                if (m->devices[r->points[i].device].lost && !point_reached(m, &r->points[i]))
                        why |= RIG_MODEL_BIT(r->points[i].device);
        return why;
}

/* Whether the device passed this value or a later one, which leaves waits for it to the core. */
static bool passed_since(const struct rig_model *m, unsigned device, uint64_t value)
{
        for (unsigned i = 0; i < m->n_runs; i++)
                if (m->runs[i].device == device && m->runs[i].value >= value &&
                        m->runs[i].fate == RIG_MODEL_PASSED)
                        return true;
        return false;
}

/* What a run must follow and the core must still wait for is refused; what its queue can wait for is
 * counted. */
struct pending {
        const struct rig_model_device *device;
        uint32_t in_queue; /* devices whose values its queue could wait for */
        bool blocked;
};

static void must_follow(const struct rig_model *m, struct pending *pending, unsigned device, uint64_t value)
{
        const struct rig_model_run *p = rig_model_run_of(m, device, value);

        if (value <= m->devices[device].reached || m->devices[device].lost)
                return;
        if (p->fate == RIG_MODEL_HANDED && (pending->device->waits_for & RIG_MODEL_BIT(device)) &&
                !passed_since(m, device, value))
                pending->in_queue |= RIG_MODEL_BIT(device);
        else
                pending->blocked = true;
}

/* A run that is to be lost, first in its queue: whether whatever it follows is reached or lost. */
static bool must_pass(const struct rig_model *m, unsigned run)
{
        bool waits_for[RIG_MODEL_RUNS];

        behind(m, run, waits_for);
        for (unsigned i = 0; i < run; i++)
                if (waits_for[i] && !rig_model_reached(m, &m->runs[i]) &&
                        !m->devices[m->runs[i].device].lost)
                        return false;
        return true;
}

bool rig_model_must_go(const struct rig_model *m, unsigned device, bool room)
{
        const struct rig_model_device *d = &m->devices[device];
        const struct rig_model_run *r = rig_model_run_of(m, device, d->handed + 1);
        struct pending pending = {.device = d};
        unsigned run;

        if (d->lost || !r)
                return false;
        run = (unsigned)(r - m->runs);
        for (unsigned i = 0; i < run; i++)
                if (follows(r, &m->runs[i]))
                        must_follow(m, &pending, m->runs[i].device, m->runs[i].value);
        for (unsigned i = 0; i < r->n_points; i++)
                must_follow(m, &pending, r->points[i].device, r->points[i].value);
        if (pending.blocked)
                return false;
        if (rig_model_must_lose(m, run))
                return !pending.in_queue && must_pass(m, run);
        if (rig_model_may_lose(m, run))
                return room && !pending.in_queue && must_pass(m, run);
        return room && (!pending.in_queue || r->n_foreign <= d->max_waits);
}

int rig_model_stuck_on(const struct rig_model *m, unsigned device)
{
        for (unsigned i = 0; i < m->n_runs; i++) {
                const struct rig_model_run *r = &m->runs[i];

                if (r->device != device || r->fate != RIG_MODEL_HANDED || rig_model_reached(m, r))
                        continue;
                for (unsigned k = 0; k < r->n_waits; k++)
                        if (m->devices[r->waits[k].device].lost && !point_reached(m, &r->waits[k]))
                                return (int)r->waits[k].device;
        }
        return -1;
}

bool rig_model_may_be_over(const struct rig_model *m, const struct rig_model_run *run)
{
        const struct rig_model_device *d = &m->devices[run->device];

        return rig_model_reached(m, run) || run->fate == RIG_MODEL_PASSED ||
               run->fate == RIG_MODEL_DROPPED || (d->lost && d->ended);
}

static bool works_no_more(const struct rig_model *m, const struct rig_model_run *run)
{
        const struct rig_model_device *d = &m->devices[run->device];

        return rig_model_reached(m, run) || run->fate == RIG_MODEL_DROPPED ||
               (d->lost && (d->ended || d->reached >= d->last_handed));
}

bool rig_model_must_be_over(const struct rig_model *m, const struct rig_model_run *run)
{
        unsigned n = (unsigned)(run - m->runs);
        bool waits_for[RIG_MODEL_RUNS];

        if (!works_no_more(m, run))
                return false;
        if (!went_with_device(m, run))
                return true;
        behind(m, n, waits_for);
        for (unsigned i = 0; i < n; i++)
                if (waits_for[i] && !works_no_more(m, &m->runs[i]))
                        return false;
        return true;
}

bool rig_model_may_be_idle(const struct rig_model *m, unsigned memory, unsigned n_runs)
{
        for (unsigned i = 0; i < n_runs; i++)
                if ((names(&m->runs[i]) & RIG_MODEL_BIT(memory)) && !rig_model_may_be_over(m, &m->runs[i]))
                        return false;
        return true;
}

bool rig_model_must_be_idle(const struct rig_model *m, unsigned memory, unsigned n_runs)
{
        for (unsigned i = 0; i < n_runs; i++)
                if ((names(&m->runs[i]) & RIG_MODEL_BIT(memory)) && !rig_model_must_be_over(m, &m->runs[i]))
                        return false;
        return true;
}

void rig_model_watch_init(struct rig_model_watch *w, const struct rig_model *m,
        enum rig_model_watch_kind kind, unsigned memory, struct rig_model_point point)
{
        *w = (struct rig_model_watch){.kind = kind, .memory = memory, .point = point, .n_runs = m->n_runs};
        if (kind == RIG_MODEL_WATCH_READ || kind == RIG_MODEL_WATCH_WRITE)
                w->spoiled_before = rig_model_spoiled(m, memory, m->n_runs);
}

/* Whether an access of the host follows this run. */
static bool access_follows(const struct rig_model_watch *w, const struct rig_model_run *run)
{
        uint32_t uses = w->kind == RIG_MODEL_WATCH_READ ? run->writes : names(run);

        return uses & RIG_MODEL_BIT(w->memory);
}

/* Devices whose loss the access has to be told: they spoiled the memory before, or lost what it follows. */
static uint32_t access_must_fail(const struct rig_model *m, const struct rig_model_watch *w)
{
        uint32_t culprits = w->spoiled_before;

        for (unsigned i = 0; i < w->n_runs; i++)
                if (access_follows(w, &m->runs[i]) && (m->runs[i].spoils & RIG_MODEL_BIT(w->memory)))
                        culprits |= m->runs[i].culprits;
        return culprits;
}

bool rig_model_watch_may_succeed(const struct rig_model *m, const struct rig_model_watch *w)
{
        if (w->kind == RIG_MODEL_WATCH_VALUE)
                return point_reached(m, &w->point);
        if (w->kind == RIG_MODEL_WATCH_IDLE)
                return rig_model_may_be_idle(m, w->memory, w->n_runs);
        if (access_must_fail(m, w))
                return false;
        for (unsigned i = 0; i < w->n_runs; i++)
                if (access_follows(w, &m->runs[i]) && !rig_model_may_be_over(m, &m->runs[i]))
                        return false;
        return true;
}

uint32_t rig_model_watch_may_fail(const struct rig_model *m, const struct rig_model_watch *w)
{
        if (w->kind == RIG_MODEL_WATCH_IDLE)
                return 0;
        if (w->kind != RIG_MODEL_WATCH_VALUE)
                return rig_model_perhaps_spoiled(m, w->memory, w->n_runs);
        if (m->devices[w->point.device].lost && !point_reached(m, &w->point))
                return RIG_MODEL_BIT(w->point.device);
        return 0;
}

bool rig_model_watch_must_end(const struct rig_model *m, const struct rig_model_watch *w)
{
        if (w->kind == RIG_MODEL_WATCH_VALUE)
                return point_reached(m, &w->point) || m->devices[w->point.device].lost;
        if (w->kind == RIG_MODEL_WATCH_IDLE)
                return rig_model_must_be_idle(m, w->memory, m->n_runs); /* later uses may prolong it */
        if (w->spoiled_before)
                return true;
        for (unsigned i = 0; i < w->n_runs; i++)
                if (access_follows(w, &m->runs[i]) && !rig_model_reached(m, &m->runs[i]) &&
                        !m->devices[m->runs[i].device].lost)
                        return false;
        return true;
}

bool rig_model_hangs(struct rig_model *m, unsigned device, uint64_t now, uint64_t bound)
{
        struct rig_model_device *d = &m->devices[device];
        const struct rig_model_run *r = rig_model_run_of(m, device, d->reached + 1);
        bool still = r && r->fate == RIG_MODEL_HANDED;

        for (unsigned i = 0; still && i < r->n_waits; i++)
                still = point_reached(m, &r->waits[i]);
        if (!still) {
                d->still_value = 0;
                return false;
        }
        if (d->still_value != r->value) {
                d->still_value = r->value;
                d->still_since = now;
        }
        return now - d->still_since >= bound;
}
