/* SPDX-License-Identifier: ISC */
/*
 * Programs are drawn from a seed by a generator of our own (splitmix64), so that a seed names the same
 * program on every machine. Each first draws what kind of program it is: how many devices, how they wait and
 * complete, and how much goes wrong; about half of them lose nothing, for loss soon spoils everything there
 * is.
 *
 * A program keeps the rules that the daemon keeps: it names only memory of the device's own client that was
 * not dropped, closed devices accept nothing, a watch is of memory that is there. What cannot be done is
 * skipped.
 */
#include <string.h>

#include "tests/order/program.h"

#define ARG_EXTRA 10 /* of an accept: which size its record has */

/* ---- drawing */

static uint64_t draw(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

static uint16_t below(uint64_t *state, unsigned n)
{
        return (uint16_t)(draw(state) % n);
}

static struct rig_step *add(struct rig_program *program, enum rig_step_kind kind)
{
        struct rig_step *step = &program->steps[program->n_steps++];

        *step = (struct rig_step){.kind = kind};
        return step;
}

/* How a program is made; weights are out of the sum of those that are drawn. */
struct mood {
        uint16_t weights[_RIG_STEP_MAX];
        unsigned devices, memories, steps;
        unsigned run_percent;   /* of the steps after which the order runs */
        unsigned write_percent; /* of the uses */
        bool large;             /* some records are */
        unsigned queue_percent; /* of the devices that wait in their queue */
};

static void draw_mood(struct mood *mood, uint64_t *state)
{
        static const uint16_t calm[_RIG_STEP_MAX] = {[RIG_STEP_OPEN] = 1,
                [RIG_STEP_MEMORY] = 1,
                [RIG_STEP_ACCEPT] = 50,
                [RIG_STEP_COMPLETE] = 26,
                [RIG_STEP_POLL] = 8,
                [RIG_STEP_WATCH] = 7,
                [RIG_STEP_WATCH_VALUE] = 3,
                [RIG_STEP_CANCEL] = 1,
                [RIG_STEP_RETIRE] = 1,
                [RIG_STEP_CLOSE] = 1};

        memcpy(mood->weights, calm, sizeof(calm));
        mood->devices = 1 + below(state, 6);
        mood->memories = 1 + below(state, 6);
        mood->steps = 10 + below(state, below(state, 8) ? 50 : 90);
        mood->run_percent = 10 + below(state, 91);
        mood->write_percent = 10 + below(state, 60);
        mood->queue_percent = below(state, 3) * 45;
        mood->large = below(state, 16) == 0;
        if (below(state, 2)) {
                unsigned grief = 1 + below(state, 3);

                for (unsigned kind = RIG_STEP_LOSE; kind <= RIG_STEP_FAIL; kind++)
                        mood->weights[kind] = (uint16_t)grief;
                mood->weights[RIG_STEP_KILL] = 1;
                mood->weights[RIG_STEP_TICK] = (uint16_t)(2 * grief);
                mood->weights[RIG_STEP_RETIRE] = (uint16_t)grief;
        }
}

static enum rig_step_kind draw_kind(const struct mood *mood, uint64_t *state)
{
        unsigned sum = 0, at;

        for (unsigned i = 0; i < _RIG_STEP_MAX; i++)
                sum += mood->weights[i];
        at = below(state, sum);
        for (unsigned i = 0; i < _RIG_STEP_MAX; i++) {
                if (at < mood->weights[i])
                        return i;
                at -= mood->weights[i];
        }
        return RIG_STEP_POLL;
}

static void draw_args(struct rig_step *step, const struct mood *mood, uint64_t *state)
{
        for (unsigned i = 0; i < RIG_PROGRAM_ARGS; i++)
                step->args[i] = below(state, 64);
        step->run = below(state, 100) < mood->run_percent;
        if (step->kind == RIG_STEP_OPEN) {
                step->args[3] = below(state, 100) < mood->queue_percent ? below(state, 64) : 0;
                step->args[2] = step->args[2] < 10 ? 1 : 0;
        }
        if (step->kind == RIG_STEP_ACCEPT) {
                step->args[6] = 0;
                for (unsigned i = 0; i < 4; i++)
                        step->args[6] |=
                                (uint16_t)((below(state, 100) < mood->write_percent ? 2 + below(state, 2)
                                                                                    : 1)
                                           << (2 * i));
                step->args[7] = step->args[7] < 50 ? 0 : step->args[7];
                if (!mood->large)
                        step->args[ARG_EXTRA] = 0;
                else
                        step->args[ARG_EXTRA] %= 4;
        }
        if (step->kind == RIG_STEP_COMPLETE)
                step->args[2] = step->args[2] < 50;
}

void rig_program_generate(struct rig_program *program, uint64_t seed)
{
        uint64_t state = seed;
        struct mood mood;

        program->n_steps = 0;
        draw_mood(&mood, &state);
        for (unsigned i = 0; i < mood.devices; i++)
                draw_args(add(program, RIG_STEP_OPEN), &mood, &state);
        for (unsigned i = 0; i < mood.memories; i++)
                draw_args(add(program, RIG_STEP_MEMORY), &mood, &state);
        for (unsigned i = 0; i < mood.steps; i++)
                draw_args(add(program, draw_kind(&mood, &state)), &mood, &state);
}

/* ---- doing */

typedef bool (*filter)(const struct rig_sim *sim, unsigned device);

static bool takes_runs(const struct rig_sim *sim, unsigned device)
{
        return sim->devices[device].timeline && !sim->devices[device].closed;
}

static bool is_there(const struct rig_sim *sim, unsigned device)
{
        return sim->devices[device].timeline;
}

static bool is_alive(const struct rig_sim *sim, unsigned device)
{
        return sim->devices[device].timeline && !sim->model.devices[device].lost;
}

static bool is_lost_only(const struct rig_sim *sim, unsigned device)
{
        return sim->devices[device].timeline && sim->model.devices[device].lost &&
               !sim->model.devices[device].ended;
}

/* One of the devices that pass; -1: there is none. */
static int pick(const struct rig_sim *sim, filter passes, unsigned arg)
{
        unsigned n = 0;

        for (unsigned i = 0; i < sim->n_devices; i++)
                n += passes(sim, i);
        if (n == 0)
                return -1;
        arg %= n;
        for (unsigned i = 0;; i++)
                if (passes(sim, i) && arg-- == 0)
                        return (int)i;
}

/* One of the memories that any of the clients names; -1: there is none. */
static int pick_memory(const struct rig_sim *sim, uint32_t clients, unsigned arg)
{
        unsigned n = 0;

        for (unsigned i = 0; i < sim->n_memories; i++)
                n += (sim->memories[i].clients & clients) != 0;
        if (n == 0)
                return -1;
        arg %= n;
        for (unsigned i = 0;; i++)
                if ((sim->memories[i].clients & clients) && arg-- == 0)
                        return (int)i;
}

static void do_open(struct rig_sim *sim, const uint16_t *args)
{
        struct rig_sim_config config = {
                .client = args[0] % RIG_PROGRAM_CLIENTS,
                .capacity = args[1] % 4,
                .sync = args[2] == 1,
                .waits_for = args[3] * UINT32_C(0x04104104) | args[3], /* for devices opened later, too */
                .max_waits = args[3] ? 1 + args[4] % 3 : 0,
                .host_code = args[5] % 3 == 1,
                .ends = args[6] % 2 == 1,
        };

        if (!(sim->dead_clients & RIG_MODEL_BIT(config.client)))
                rig_sim_open(sim, &config);
}

static void do_accept(struct rig_sim *sim, const uint16_t *args)
{
        struct rig_sim_use uses[4];
        struct rig_model_point points[2];
        int device = pick(sim, takes_runs, args[0]);
        unsigned n_uses = 0, n_points = 0;

        if (device < 0)
                return;
        for (unsigned i = 0; i < args[1] % 5u; i++) {
                int memory =
                        pick_memory(sim, RIG_MODEL_BIT(sim->devices[device].config.client), args[2 + i]);
                uint32_t access = args[6] >> (2 * i) & 3;

                if (memory >= 0)
                        uses[n_uses++] =
                                (struct rig_sim_use){(unsigned)memory, access ? access : RIG_ACCESS_READ};
        }
        for (unsigned i = 0; i < args[7] % 3u; i++) {
                int of = pick(sim, is_there, args[8 + i]);
                uint64_t submitted = sim->model.devices[of].submitted;

                if (submitted > 0)
                        points[n_points++] = (struct rig_model_point){
                                (unsigned)of, submitted - args[8 + i] / 8 % RIG_MIN(submitted, UINT64_C(4))};
        }
        /* Large enough to fill a device's log of records now and then, or to not fit at all. */
        sim->extra_bytes = args[ARG_EXTRA] == 1 ? 7001 : args[ARG_EXTRA] == 2 ? 20002 : 0;
        rig_sim_accept(sim, (unsigned)device, uses, n_uses, points, n_points);
}

static void do_watch(struct rig_sim *sim, const uint16_t *args)
{
        int memory = pick_memory(sim, UINT32_MAX, args[0]);

        if (memory >= 0)
                rig_sim_watch(sim, args[1] % 3, (unsigned)memory, (struct rig_model_point){0});
}

static void do_watch_value(struct rig_sim *sim, const uint16_t *args)
{
        int device = pick(sim, is_there, args[0]);
        uint64_t submitted = device < 0 ? 0 : sim->model.devices[device].submitted;

        if (submitted > 0)
                rig_sim_watch(sim, RIG_MODEL_WATCH_VALUE, 0,
                        (struct rig_model_point){
                                (unsigned)device, submitted - args[1] % RIG_MIN(submitted, UINT64_C(4))});
}

static void do_cancel(struct rig_sim *sim, const uint16_t *args)
{
        unsigned n = 0, at;

        for (unsigned i = 0; i < sim->n_watches; i++)
                n += sim->watches[i].watch != NULL;
        at = n ? args[0] % n : 0;
        for (unsigned i = 0; i < sim->n_watches && n; i++)
                if (sim->watches[i].watch && at-- == 0) {
                        rig_sim_cancel(sim, i);
                        return;
                }
}

static void do_to_device(struct rig_sim *sim, const struct rig_step *step)
{
        static const filter filters[_RIG_STEP_MAX] = {[RIG_STEP_COMPLETE] = is_there,
                [RIG_STEP_POLL] = is_there,
                [RIG_STEP_LOSE] = is_alive,
                [RIG_STEP_END] = is_lost_only,
                [RIG_STEP_FAIL] = is_alive,
                [RIG_STEP_CLOSE] = takes_runs};
        int device = filters[step->kind] ? pick(sim, filters[step->kind], step->args[0]) : -1;

        if (device < 0)
                return;
        if (step->kind == RIG_STEP_COMPLETE) {
                rig_sim_complete(sim, (unsigned)device, 1 + step->args[1] % 4);
                if (step->args[2])
                        rig_sim_poll(sim, (unsigned)device);
        } else if (step->kind == RIG_STEP_POLL) {
                rig_sim_poll(sim, (unsigned)device);
        } else if (step->kind == RIG_STEP_FAIL) {
                rig_sim_fail_next(sim, (unsigned)device);
        } else if (step->kind == RIG_STEP_CLOSE) {
                rig_sim_close(sim, (unsigned)device);
        } else {
                rig_sim_lose(sim, (unsigned)device, step->kind == RIG_STEP_END || step->args[1] % 2);
        }
}

static void do_step(struct rig_sim *sim, const struct rig_step *step)
{
        int memory;

        switch (step->kind) {
        case RIG_STEP_OPEN:
                do_open(sim, step->args);
                break;
        case RIG_STEP_MEMORY:
                if (~sim->dead_clients & (1 + step->args[0] % 7u))
                        rig_sim_memory(sim, ~sim->dead_clients & (1 + step->args[0] % 7u));
                break;
        case RIG_STEP_ACCEPT:
                do_accept(sim, step->args);
                break;
        case RIG_STEP_WATCH:
                do_watch(sim, step->args);
                break;
        case RIG_STEP_WATCH_VALUE:
                do_watch_value(sim, step->args);
                break;
        case RIG_STEP_CANCEL:
                do_cancel(sim, step->args);
                break;
        case RIG_STEP_RETIRE:
                memory = pick_memory(sim, UINT32_MAX, step->args[0]);
                if (memory >= 0)
                        rig_sim_retire(sim, (unsigned)memory);
                break;
        case RIG_STEP_KILL:
                rig_sim_kill(sim, step->args[0] % RIG_PROGRAM_CLIENTS);
                break;
        case RIG_STEP_TICK:
                rig_sim_tick(sim, 1 + step->args[0] % 4 * 400);
                break;
        default:
                do_to_device(sim, step);
        }
}

const char *rig_program_run(const struct rig_program *program, struct rig_sim *sim, FILE *trace)
{
        rig_sim_init(sim, trace);
        for (unsigned i = 0; i < program->n_steps && !sim->law; i++) {
                do_step(sim, &program->steps[i]);
                if (program->steps[i].run)
                        rig_sim_run(sim);
        }
        if (!sim->law)
                rig_sim_finish(sim);
        return sim->law;
}
