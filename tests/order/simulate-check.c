/* SPDX-License-Identifier: ISC */
/*
 * What the simulation checks after each run of the order, and at its end.
 *
 * The order was asked to do all it can. So the model is asked what the laws demand by now, and whatever of
 * it was not done breaks a law: a run that waits for nothing, a loss nobody was told, a watch or a memory
 * that is forgotten, a number that differs. At the end everything is completed, every loss ended and every
 * memory returned, and what then is left over was leaked.
 */
#include <inttypes.h>

#include "tests/order/simulate-internal.h"

/* ---- after each run of the order */

static void check_device(struct rig_sim *sim, struct rig_sim_device *d)
{
        const struct rig_model_device *m = &sim->model.devices[d->index];
        const struct rig_timeline *t = d->timeline;

        sim->features[RIG_SIM_CORE_WAITS] += !m->lost && m->handed < m->submitted && rig_sim_has_room(d);
        if (t->submitted != m->submitted || t->handed != m->handed || t->reached != m->reached)
                rig_sim_broken(sim, "O1",
                        "device %u is at %" PRIu64 ", %" PRIu64 ", %" PRIu64
                        " (submitted, handed, reached), not %" PRIu64 ", %" PRIu64 ", %" PRIu64,
                        d->index, t->submitted, t->handed, t->reached, m->submitted, m->handed, m->reached);
        else if (t->lost != m->lost || t->ended != m->ended)
                rig_sim_broken(sim, "L1", "device %u is %slost", d->index, t->lost ? "" : "not ");
        else if (d->failed)
                rig_sim_broken(sim, "contract", "device %u failed, and nobody was told", d->index);
        else if (!m->lost && rig_model_stuck_on(&sim->model, d->index) >= 0)
                rig_sim_broken(sim, "L2", "device %u is stuck on device %d, and not lost", d->index,
                        rig_model_stuck_on(&sim->model, d->index));
        else if (rig_model_must_go(&sim->model, d->index, rig_sim_has_room(d)))
                rig_sim_broken(sim, "O8", "device %u keeps %" PRIu64 " waiting for nothing", d->index,
                        m->handed + 1);
        else if (!m->lost && !rig_sim_is_bare(&d->config) && d->committed != m->last_handed)
                rig_sim_broken(sim, "contract", "device %u: %" PRIu64 " was not committed", d->index,
                        m->last_handed);
        else if (!rig_sim_is_bare(&d->config) && d->advanced != t->reached)
                rig_sim_broken(sim, "contract", "device %u was not told that it advanced to %" PRIu64,
                        d->index, t->reached);
}

static void check_run(struct rig_sim *sim, unsigned run)
{
        const struct rig_model_run *r = &sim->model.runs[run];
        const struct rig_timeline *t = sim->devices[r->device].timeline;
        bool gone = rig_model_reached(&sim->model, r) || r->fate == RIG_MODEL_DROPPED;

        if (sim->runs[run].has_record && gone && !sim->runs[run].over)
                rig_sim_broken(
                        sim, "record", "device %u: the record of %" PRIu64 " stays", r->device, r->value);
        if (!t)
                return;
        if (rig_timeline_over(t, r->value)) {
                if (!rig_model_may_be_over(&sim->model, r))
                        rig_sim_broken(
                                sim, "M1", "device %u: %" PRIu64 " is said to be over", r->device, r->value);
        } else if (rig_model_reached(&sim->model, r) || sim->model.devices[r->device].ended) {
                rig_sim_broken(sim, "L3", "device %u: %" PRIu64 " is said to run yet", r->device, r->value);
        }
}

static void check_memory(struct rig_sim *sim, struct rig_sim_memory *memory)
{
        const struct rig_model *m = &sim->model;
        struct rig_timeline *culprit = rig_stamps_culprit(memory->stamps);
        bool idle = rig_stamps_idle(memory->stamps);

        if (culprit) {
                unsigned by = rig_sim_device_of(culprit)->index;

                if (!(rig_model_perhaps_spoiled(m, memory->index, m->n_runs) & RIG_MODEL_BIT(by)))
                        rig_sim_broken(sim, "L2", "memory %u is said to be spoiled by device %u",
                                memory->index, by);
        } else if (rig_model_spoiled(m, memory->index, m->n_runs)) {
                rig_sim_broken(sim, "L2", "memory %u is spoiled, and nobody says so", memory->index);
        }
        if (idle && !rig_model_may_be_idle(m, memory->index, m->n_runs))
                rig_sim_broken(sim, "M1", "memory %u is said to be idle", memory->index);
        else if (!idle && rig_model_must_be_idle(m, memory->index, m->n_runs))
                rig_sim_broken(sim, "L3", "memory %u is idle, and nobody says so", memory->index);
        else if (memory->retire && rig_model_must_be_idle(m, memory->index, m->n_runs))
                rig_sim_broken(sim, "L3", "memory %u is idle, and does not return", memory->index);
}

static void check_all(struct rig_sim *sim)
{
        for (unsigned i = 0; i < sim->n_devices; i++)
                if (sim->devices[i].timeline)
                        check_device(sim, &sim->devices[i]);
        for (unsigned i = 0; i < sim->model.n_runs; i++)
                check_run(sim, i);
        for (unsigned i = 0; i < sim->n_memories; i++)
                if (sim->memories[i].stamps)
                        check_memory(sim, &sim->memories[i]);
        for (unsigned i = 0; i < sim->n_watches; i++)
                if (sim->watches[i].watch && rig_model_watch_must_end(&sim->model, &sim->watches[i].model))
                        rig_sim_broken(sim, sim->watches[i].model.kind == RIG_MODEL_WATCH_IDLE ? "L3" : "O6",
                                "watch %u is not told", i);
}

/* Closed devices whose work is over, and memories whose last watch is done. */
static void reap(struct rig_sim *sim)
{
        for (unsigned i = 0; i < sim->n_devices; i++) {
                struct rig_sim_device *d = &sim->devices[i];
                const struct rig_model_device *m = &sim->model.devices[i];

                if (!d->timeline || !d->closed)
                        continue;
                if (m->lost ? m->ended || m->reached >= m->last_handed : m->reached == m->submitted) {
                        rig_sim_trace(sim, "device %u goes", i);
                        d->timeline = rig_timeline_unref(d->timeline);
                        rig_sim_did(sim, RIG_SIM_CLOSED);
                }
        }
        for (unsigned i = 0; i < sim->n_memories; i++) {
                struct rig_sim_memory *memory = &sim->memories[i];

                if (memory->stamps && !memory->clients && !memory->retire && !memory->n_watches)
                        rig_sim_release(memory);
        }
}

void rig_sim_run(struct rig_sim *sim)
{
        bool again = true;

        while (again && !sim->law) {
                rig_sim_trace(sim, "  the order runs");
                sim->running = true;
                rig_order_run(&sim->order);
                sim->running = false;
                again = false;
                if (!sim->law)
                        check_all(sim);
                for (unsigned i = 0; i < sim->n_devices && !sim->law; i++)
                        if (sim->devices[i].config.sync && sim->devices[i].timeline &&
                                sim->devices[i].word > sim->model.devices[i].reached) {
                                rig_sim_poll(sim, i);
                                again = true;
                        }
        }
        if (!sim->law)
                reap(sim);
}

/* ---- the end */

/* Completes everything that can. Each round completes a run, or is the last. */
static void drain(struct rig_sim *sim)
{
        uint64_t before, after = UINT64_MAX;

        do {
                before = after;
                after = 0;
                rig_sim_run(sim);
                for (unsigned i = 0; i < sim->n_devices; i++) {
                        rig_sim_complete(sim, i, UINT32_MAX);
                        rig_sim_poll(sim, i);
                        after += sim->devices[i].word + sim->model.devices[i].handed;
                }
        } while (before != after && !sim->law);
        rig_sim_run(sim);
}

static void check_drained(struct rig_sim *sim)
{
        for (unsigned i = 0; i < sim->n_devices; i++)
                if (!sim->model.devices[i].lost &&
                        sim->model.devices[i].reached != sim->model.devices[i].submitted)
                        rig_sim_broken(sim, "O8", "device %u stays at %" PRIu64 " of %" PRIu64, i,
                                sim->model.devices[i].reached, sim->model.devices[i].submitted);
        for (unsigned i = 0; i < sim->n_watches; i++)
                if (sim->watches[i].watch && sim->watches[i].model.kind != RIG_MODEL_WATCH_IDLE)
                        rig_sim_broken(sim, "O6", "watch %u is never told", i);
}

void rig_sim_finish(struct rig_sim *sim)
{
        for (unsigned i = 0; i < sim->n_devices; i++)
                sim->devices[i].fail_next = false;
        drain(sim);
        check_drained(sim);
        for (unsigned i = 0; i < sim->n_memories; i++)
                sim->memories[i].held = sim->memories[i].retire;
        for (unsigned i = 0; i < sim->n_devices && !sim->law; i++)
                if (sim->devices[i].timeline && sim->model.devices[i].lost && !sim->model.devices[i].ended)
                        rig_sim_lose(sim, i, true);
        for (unsigned i = 0; i < sim->n_memories; i++)
                rig_sim_retire(sim, i);
        rig_sim_run(sim);
        for (unsigned i = 0; i < sim->n_memories; i++)
                if (sim->memories[i].stamps)
                        rig_sim_broken(sim, "M1", "memory %u never returns", i);
        for (unsigned i = 0; i < sim->n_watches; i++)
                if (sim->watches[i].watch)
                        rig_sim_broken(sim, "M1", "watch %u is never told", i);
        if (sim->law)
                return;
        for (unsigned i = 0; i < sim->n_devices; i++)
                sim->devices[i].timeline = rig_timeline_unref(sim->devices[i].timeline);
        for (unsigned i = 0; i < sim->model.n_runs; i++)
                if (sim->runs[i].has_record && sim->runs[i].over != 1)
                        rig_sim_broken(sim, "record", "device %u: %" PRIu64 " was over %u times",
                                sim->model.runs[i].device, sim->model.runs[i].value, sim->runs[i].over);
}
