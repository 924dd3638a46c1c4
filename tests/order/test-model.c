/* SPDX-License-Identifier: ISC */
/*
 * Schedules written by hand, a few for each law, with what the law says must come of them. The model and
 * daemon/order/ both go through each: the simulation stops at the first thing in which one of them differs
 * from the other, and the test says what both must answer.
 *
 * The tests named model_... are of the model alone: it must say no where a law is broken, or the random
 * programs would prove nothing.
 */
#include <criterion/criterion.h>

#include "tests/order/simulate.h"

static struct rig_sim *sim;

static void setup(void)
{
        sim = calloc(1, sizeof(*sim));
        cr_assert_not_null(sim);
        rig_sim_init(sim, NULL);
}

/* Everything completes and returns, and no law broke on the way. */
static void teardown(void)
{
        if (!sim->law)
                rig_sim_finish(sim);
        cr_assert_null(sim->law, "%s: %s", sim->law, sim->text);
        free(sim);
}

TestSuite(laws, .init = setup, .fini = teardown);
TestSuite(model, .init = setup);

/* Devices that complete when told, have room, and wait for nobody in their queue. */
static void devices(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                rig_sim_open(sim, &(struct rig_sim_config){.capacity = 8});
}

static void queue_device(uint32_t waits_for, unsigned max_waits)
{
        rig_sim_open(sim,
                &(struct rig_sim_config){.capacity = 8, .waits_for = waits_for, .max_waits = max_waits});
}

static void memories(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                rig_sim_memory(sim, 1);
}

/* Accepts a run and runs the order. Sets of memories are bits. */
static int submit(unsigned device, uint32_t reads, uint32_t writes)
{
        struct rig_sim_use uses[RIG_SIM_USES];
        unsigned n = 0;
        int run;

        for (unsigned i = 0; i < RIG_SIM_USES; i++) {
                if (reads & RIG_MODEL_BIT(i))
                        uses[n++] = (struct rig_sim_use){i, RIG_ACCESS_READ};
                if (writes & RIG_MODEL_BIT(i))
                        uses[n++] = (struct rig_sim_use){i, RIG_ACCESS_WRITE};
        }
        run = rig_sim_accept(sim, device, uses, n, NULL, 0);
        rig_sim_run(sim);
        return run;
}

static int submit_after(unsigned device, unsigned of, uint64_t value)
{
        struct rig_model_point point = {of, value};
        int run = rig_sim_accept(sim, device, NULL, 0, &point, 1);

        rig_sim_run(sim);
        return run;
}

static void complete(unsigned device)
{
        rig_sim_complete(sim, device, 1);
        rig_sim_poll(sim, device);
        rig_sim_run(sim);
}

static void lose(unsigned device, bool ended)
{
        rig_sim_lose(sim, device, ended);
        rig_sim_run(sim);
}

static int watch(enum rig_model_watch_kind kind, unsigned memory)
{
        int w = rig_sim_watch(sim, kind, memory, (struct rig_model_point){0});

        rig_sim_run(sim);
        return w;
}

static void expect(int run, enum rig_model_fate fate)
{
        cr_assert_null(sim->law, "%s: %s", sim->law, sim->text);
        cr_assert_eq(rig_sim_fate(sim, run), fate, "run %d has fate %d, not %d", run, rig_sim_fate(sim, run),
                fate);
}

static void expect_reached(unsigned device, uint64_t value)
{
        cr_assert_null(sim->law, "%s: %s", sim->law, sim->text);
        cr_assert_eq(sim->devices[device].timeline->reached, value);
        cr_assert_eq(sim->model.devices[device].reached, value);
}

static void expect_idle(unsigned memory, bool idle)
{
        cr_assert_null(sim->law, "%s: %s", sim->law, sim->text);
        cr_assert_eq(rig_stamps_idle(sim->memories[memory].stamps), idle);
        cr_assert_eq(rig_model_may_be_idle(&sim->model, memory, sim->model.n_runs), idle);
}

/* ---- order */

Test(laws, order_O1_values_count_and_runs_go_in_their_order)
{
        int a, b, blocked, behind;

        devices(2);
        memories(1);
        a = submit(0, 0, 1);
        blocked = submit(1, 0, 1);
        behind = submit(1, 0, 0);
        b = submit(0, 0, 0);
        cr_assert_eq(sim->model.runs[a].value, 1);
        cr_assert_eq(sim->model.runs[b].value, 2);
        expect(blocked, RIG_MODEL_WAITING);
        expect(behind, RIG_MODEL_WAITING);
        cr_assert_str_eq(rig_model_forbids_start(&sim->model, (unsigned)behind, NULL, 0),
                "O1: a run handed over out of its turn");
        complete(0);
        expect(blocked, RIG_MODEL_HANDED);
        expect(behind, RIG_MODEL_HANDED);
}

Test(laws, order_O2_a_read_follows_the_last_write_of_any_device)
{
        int read;

        devices(3);
        memories(1);
        submit(0, 0, 1);
        submit(1, 0, 1);
        read = submit(2, 1, 0);
        complete(0);
        expect(read, RIG_MODEL_WAITING);
        cr_assert_str_eq(rig_model_forbids_start(&sim->model, (unsigned)read, NULL, 0), "O2");
        complete(1);
        expect(read, RIG_MODEL_HANDED);
}

Test(laws, order_O2_two_reads_overlap)
{
        devices(2);
        memories(1);
        expect(submit(0, 1, 0), RIG_MODEL_HANDED);
        expect(submit(1, 1, 0), RIG_MODEL_HANDED);
}

Test(laws, order_O3_a_write_follows_every_read)
{
        int write;

        devices(4);
        memories(1);
        for (unsigned i = 0; i < 3; i++)
                submit(i, 1, 0);
        write = submit(3, 0, 1);
        complete(2);
        complete(0);
        expect(write, RIG_MODEL_WAITING);
        cr_assert_str_eq(rig_model_forbids_start(&sim->model, (unsigned)write, NULL, 0), "O3");
        complete(1);
        expect(write, RIG_MODEL_HANDED);
}

Test(laws, order_O3_memory_named_twice_in_one_run_is_written)
{
        int write;

        devices(2);
        memories(1);
        submit(0, 1, 0);
        write = submit(1, 1, 1); /* two views of one memory: one is read, one is written */
        expect(write, RIG_MODEL_WAITING);
        complete(0);
        expect(write, RIG_MODEL_HANDED);
}

Test(laws, order_O4_earlier_is_the_order_of_acceptance)
{
        struct rig_sim_use use = {0, RIG_ACCESS_WRITE};
        int first, second;

        devices(2);
        memories(1);
        first = rig_sim_accept(sim, 1, &use, 1, NULL, 0);
        second = rig_sim_accept(sim, 0, &use, 1, NULL, 0);
        rig_sim_run(sim);
        expect(first, RIG_MODEL_HANDED);
        expect(second, RIG_MODEL_WAITING);
}

Test(laws, order_O5_memory_that_is_not_named_is_not_ordered)
{
        devices(2);
        memories(2);
        submit(0, 1, 2);
        expect(submit(1, 0, 0), RIG_MODEL_HANDED);
}

Test(laws, order_O6_a_read_of_the_host_follows_the_last_write_only)
{
        int before, after;

        devices(2);
        memories(1);
        submit(0, 0, 1);
        before = watch(RIG_MODEL_WATCH_READ, 0);
        cr_assert_not(rig_sim_watch_done(sim, before));
        complete(0);
        cr_assert(rig_sim_watch_done(sim, before));
        submit(1, 1, 0);
        after = watch(RIG_MODEL_WATCH_READ, 0);
        cr_assert(rig_sim_watch_done(sim, after));
}

Test(laws, order_O6_a_write_of_the_host_follows_every_use_and_nothing_later)
{
        int w;

        devices(3);
        memories(1);
        submit(0, 1, 0);
        submit(1, 1, 0);
        w = watch(RIG_MODEL_WATCH_WRITE, 0);
        submit(2, 1, 0);
        complete(0);
        cr_assert_not(rig_sim_watch_done(sim, w));
        complete(1);
        cr_assert(rig_sim_watch_done(sim, w));
}

Test(laws, order_O7_a_run_follows_the_points_it_names)
{
        int run;

        devices(2);
        submit(0, 0, 0);
        submit(0, 0, 0);
        run = submit_after(1, 0, 1);
        expect(run, RIG_MODEL_WAITING);
        cr_assert_str_eq(rig_model_forbids_start(&sim->model, (unsigned)run, NULL, 0), "O7");
        complete(0);
        expect(run, RIG_MODEL_HANDED);
}

Test(laws, order_O8_devices_that_share_no_written_memory_overlap)
{
        devices(3);
        memories(3);
        expect(submit(0, 1, 2), RIG_MODEL_HANDED);
        expect(submit(1, 1, 4), RIG_MODEL_HANDED);
        expect(submit(2, 1, 0), RIG_MODEL_HANDED);
}

Test(laws, order_O8_a_queue_that_can_wait_is_handed_the_run)
{
        int read;

        devices(1);
        queue_device(1, 1);
        memories(1);
        submit(0, 0, 1);
        read = submit(1, 1, 0);
        expect(read, RIG_MODEL_HANDED);
        cr_assert_eq(sim->model.runs[read].n_waits, 1);
        rig_sim_complete(sim, 1, 1);
        cr_assert_eq(sim->devices[1].word, 0); /* it waits */
        complete(0);
        complete(1);
        expect_reached(1, 1);
}

Test(laws, order_O8_a_queue_waits_only_for_what_was_handed_over)
{
        int write, read;

        devices(2);
        queue_device(2, 1);
        memories(2);
        submit(0, 0, 1);
        write = submit(1, 1, 2); /* in the core, for device 0 */
        read = submit(2, 2, 0);
        expect(write, RIG_MODEL_WAITING);
        expect(read, RIG_MODEL_WAITING);
        complete(0);
        expect(write, RIG_MODEL_HANDED);
        expect(read, RIG_MODEL_HANDED);
        cr_assert_eq(sim->model.runs[read].n_waits, 1);
}

Test(laws, order_O2_what_a_completed_queue_waited_for_is_reached_with_it)
{
        int write;

        devices(1);
        queue_device(1, 1);
        devices(1);
        memories(1);
        submit(0, 1, 0);
        submit(1, 0, 1);
        write = submit(2, 0, 1);
        rig_sim_complete(sim, 0, 1);
        complete(1); /* device 0 was not polled */
        expect_reached(0, 1);
        expect(write, RIG_MODEL_HANDED);
}

Test(laws, order_O1_a_full_device_keeps_its_order)
{
        int second;

        rig_sim_open(sim, &(struct rig_sim_config){.capacity = 1});
        submit(0, 0, 0);
        second = submit(0, 0, 0);
        expect(second, RIG_MODEL_WAITING);
        complete(0);
        expect(second, RIG_MODEL_HANDED);
}

Test(laws, order_O1_a_word_ahead_of_the_work_is_not_believed)
{
        devices(2);
        memories(1);
        submit(0, 0, 1);
        submit(1, 0, 1);
        rig_timeline_reach(sim->devices[1].timeline, 9); /* it was handed nothing */
        rig_sim_run(sim);
        expect_reached(1, 0);
}

Test(laws, order_O2_follows_the_later_of_two_writes_of_a_device)
{
        int read;

        devices(2);
        memories(2);
        submit(0, 0, 1);
        submit(0, 0, 2);
        read = submit(1, 3, 0);
        complete(0);
        expect(read, RIG_MODEL_WAITING);
        complete(0);
        expect(read, RIG_MODEL_HANDED);
}

/* More readers than stamps have room for at first, each more than once. */
Test(laws, order_O3_a_write_follows_many_readers)
{
        int write;

        devices(12);
        memories(1);
        for (unsigned i = 0; i < 36; i++)
                submit(i % 11, 1, 0);
        write = submit(11, 0, 1);
        for (unsigned i = 0; i < 33; i++) {
                expect(write, RIG_MODEL_WAITING);
                complete(i % 11);
        }
        for (unsigned i = 0; i < 3; i++) {
                expect(write, RIG_MODEL_WAITING);
                complete(i);
        }
        expect(write, RIG_MODEL_HANDED);
}

/* ---- memory */

Test(laws, memory_M1_returns_after_its_last_use)
{
        devices(2);
        memories(1);
        submit(0, 0, 1);
        submit(1, 1, 0);
        rig_sim_retire(sim, 0);
        rig_sim_run(sim);
        cr_assert_not_null(sim->memories[0].stamps);
        complete(0);
        cr_assert_not_null(sim->memories[0].stamps);
        complete(1);
        cr_assert_null(sim->memories[0].stamps);
}

Test(laws, memory_M1_that_was_never_used_returns_at_once)
{
        memories(1);
        rig_sim_retire(sim, 0);
        rig_sim_run(sim);
        cr_assert_null(sim->memories[0].stamps);
}

Test(laws, memory_M1_a_write_dropped_by_a_loss_does_not_stand_for_a_read)
{
        devices(2);
        memories(1);
        submit(0, 1, 0);
        submit(1, 0, 1); /* waits for the read, and in the stamps stands for it */
        lose(1, true);
        expect_idle(0, false);
        complete(0);
        expect_idle(0, true);
}

Test(laws, memory_M1_a_dropped_run_does_not_hide_one_that_was_handed_over)
{
        devices(2);
        memories(2);
        submit(1, 0, 2);
        submit(0, 1, 0);
        submit(0, 1, 2); /* waits for device 1, and uses memory 0 after the run before */
        lose(0, false);
        complete(1);
        expect_idle(0, false);
        complete(0);
        expect_idle(0, true);
}

Test(laws, memory_M1_a_queue_wait_of_a_dead_device_does_not_hide_what_it_waited_for)
{
        devices(1);
        queue_device(1, 1);
        memories(1);
        submit(0, 1, 0);
        submit(1, 0, 1);
        lose(1, true);
        expect_idle(0, false);
        complete(0);
        expect_idle(0, true);
}

/* ---- loss */

Test(laws, loss_L1_a_lost_device_is_handed_nothing)
{
        int late;

        devices(1);
        memories(1);
        submit(0, 0, 1);
        lose(0, false);
        late = submit(0, 0, 1);
        expect(late, RIG_MODEL_DROPPED);
        cr_assert_eq(sim->devices[0].timeline->submitted, 2);
        complete(0);
        expect_reached(0, 1);
}

Test(laws, loss_L2_what_reads_a_lost_write_is_lost_and_its_device_goes_on)
{
        int first, second, third, w;

        devices(2);
        memories(3);
        submit(0, 0, 1);
        first = submit(1, 1, 2);
        second = submit(1, 2, 0);
        third = submit(1, 0, 4);
        lose(0, true);
        expect(first, RIG_MODEL_PASSED);
        expect(second, RIG_MODEL_PASSED);
        expect(third, RIG_MODEL_HANDED);
        w = watch(RIG_MODEL_WATCH_READ, 1);
        cr_assert(rig_sim_watch_done(sim, w));
        cr_assert_eq(sim->features[RIG_SIM_WATCHES_FAILED], 1);
        expect_reached(1, 2);
        complete(1);
        expect_reached(1, 3);
}

Test(laws, loss_L2_earlier_runs_are_not_lost)
{
        int read;

        devices(3);
        memories(1);
        submit(0, 0, 1);
        read = submit(1, 1, 0);
        submit(2, 0, 1); /* later than the read */
        lose(2, false);
        expect(read, RIG_MODEL_WAITING);
        complete(0);
        expect(read, RIG_MODEL_HANDED);
}

Test(laws, loss_L2_a_lost_read_spoils_unless_its_work_ended)
{
        int write, other;

        devices(4);
        memories(2);
        submit(0, 1, 0);
        write = submit(1, 0, 1);
        submit(2, 2, 0);
        other = submit(3, 0, 2);
        lose(0, false);
        lose(2, true);
        expect(write, RIG_MODEL_PASSED);
        expect(other, RIG_MODEL_HANDED);
}

Test(laws, loss_L2_a_point_of_a_lost_device_loses_the_run)
{
        int run, late;

        devices(2);
        submit(0, 0, 0);
        run = submit_after(1, 0, 1);
        lose(0, true);
        expect(run, RIG_MODEL_PASSED);
        late = submit_after(1, 0, 1);
        expect(late, RIG_MODEL_PASSED);
}

Test(laws, loss_L2_a_point_is_followed_by_a_run_that_waits_for_room)
{
        int run;

        devices(1);
        rig_sim_open(sim, &(struct rig_sim_config){.capacity = 1, .waits_for = 1, .max_waits = 1});
        submit(0, 0, 0);
        submit(1, 0, 0);
        run = submit_after(1, 0, 1);
        expect(run, RIG_MODEL_WAITING);
        lose(0, true);
        expect(run, RIG_MODEL_PASSED);
}

Test(laws, loss_L2_a_device_whose_queue_waits_for_a_lost_one_is_lost)
{
        devices(1);
        queue_device(1, 1);
        queue_device(2, 1);
        memories(2);
        submit(0, 0, 1);
        submit(1, 1, 2);
        submit(2, 2, 0);
        lose(0, false);
        cr_assert(sim->model.devices[1].lost);
        cr_assert(sim->model.devices[2].lost);
}

Test(laws, loss_L2_a_passed_value_is_reached_in_its_turn)
{
        int lost, run;

        devices(3);
        memories(2);
        submit(0, 0, 1);
        submit(1, 0, 0);
        lost = submit(1, 1, 0);
        run = submit_after(2, 1, 2);
        lose(0, true);
        expect(lost, RIG_MODEL_PASSED);
        expect_reached(1, 0);
        expect(run, RIG_MODEL_WAITING);
        complete(1);
        expect_reached(1, 2);
        expect(run, RIG_MODEL_HANDED);
}

Test(laws, loss_L2_a_failed_hand_over_loses_the_device)
{
        int run, other;

        devices(2);
        memories(1);
        rig_sim_fail_next(sim, 0);
        run = submit(0, 0, 1);
        other = submit(1, 1, 0);
        expect(run, RIG_MODEL_DROPPED);
        expect(other, RIG_MODEL_PASSED);
        cr_assert(sim->model.devices[0].lost);
}

Test(laws, loss_L3_memory_waits_for_the_word_of_a_lost_device)
{
        devices(1);
        memories(1);
        submit(0, 0, 1);
        submit(0, 1, 0);
        lose(0, false);
        expect_idle(0, false);
        complete(0);
        expect_idle(0, false);
        complete(0);
        expect_idle(0, true);
}

Test(laws, loss_L3_memory_returns_when_a_lost_device_was_reset)
{
        devices(1);
        memories(1);
        submit(0, 0, 1);
        lose(0, false);
        rig_sim_retire(sim, 0);
        rig_sim_run(sim);
        cr_assert_not_null(sim->memories[0].stamps);
        lose(0, true);
        cr_assert_null(sim->memories[0].stamps);
}

Test(laws, loss_L4_a_word_that_stands_still_is_a_hang_and_never_early)
{
        devices(1);
        submit(0, 0, 0);
        rig_sim_tick(sim, 100000); /* the first look starts the clock */
        rig_sim_tick(sim, RIG_SIM_HANG_BOUND - 1);
        cr_assert_not(sim->model.devices[0].lost);
        rig_sim_tick(sim, 1);
        cr_assert(sim->model.devices[0].lost);
}

Test(laws, loss_L4_the_clock_does_not_run_while_the_queue_waits)
{
        devices(1);
        queue_device(1, 1);
        memories(1);
        submit(0, 0, 0);
        submit(0, 0, 1);
        submit(1, 1, 0);
        for (unsigned i = 0; i < 2; i++) {
                rig_sim_tick(sim, RIG_SIM_HANG_BOUND / 2);
                complete(0);
        }
        rig_sim_tick(sim, RIG_SIM_HANG_BOUND);
        rig_sim_tick(sim, RIG_SIM_HANG_BOUND - 1);
        cr_assert_not(sim->model.devices[1].lost);
        rig_sim_tick(sim, 1);
        cr_assert(sim->model.devices[1].lost);
}

Test(laws, loss_L5_long_work_that_moves_is_no_fault)
{
        devices(1);
        for (unsigned i = 0; i < 20; i++) {
                submit(0, 0, 0);
                rig_sim_tick(sim, RIG_SIM_HANG_BOUND - 1);
                complete(0);
        }
        cr_assert_not(sim->model.devices[0].lost);
}

Test(laws, loss_L6_a_dead_client_harms_nobody)
{
        int theirs, ours;

        rig_sim_open(sim, &(struct rig_sim_config){.client = 1, .capacity = 8});
        rig_sim_open(sim, &(struct rig_sim_config){.client = 1, .capacity = 8, .host_code = true});
        devices(1);
        rig_sim_memory(sim, 3);
        theirs = submit(0, 0, 1);
        submit(1, 1, 0); /* code of the dying client reads it, too */
        ours = submit(2, 0, 1);
        rig_sim_kill(sim, 1);
        rig_sim_run(sim);
        expect(theirs, RIG_MODEL_HANDED);
        expect(ours, RIG_MODEL_WAITING);
        complete(0);
        expect(ours, RIG_MODEL_HANDED);
        complete(2);
        expect_reached(2, 1);
}

/* ---- the model says no */

static const struct rig_model_point no_points[1];

Test(model, refuses_what_each_law_of_order_forbids)
{
        struct rig_model *m = &sim->model;
        struct rig_model_point after = {0, 1};
        unsigned write, read, second, named;

        rig_model_open(m, 0, 0);
        rig_model_open(m, 1, 1);
        rig_model_open(m, 0, 0);
        write = rig_model_accept(m, 0, 0, 1, no_points, 0);
        read = rig_model_accept(m, 1, 1, 0, no_points, 0);
        second = rig_model_accept(m, 2, 0, 1, no_points, 0);
        named = rig_model_accept(m, 2, 0, 0, &after, 1);
        cr_assert_null(rig_model_forbids_start(m, write, NULL, 0));
        cr_assert_str_eq(rig_model_forbids_start(m, read, NULL, 0), "O2");
        cr_assert_str_eq(rig_model_forbids_start(m, second, NULL, 0), "O3");
        cr_assert_str_eq(
                rig_model_forbids_start(m, named, NULL, 0), "O1: a run handed over out of its turn");
        cr_assert_str_eq(rig_model_forbids_start(m, read, &after, 1),
                "O2: a wait in the queue for a value that was not handed over");
        rig_model_hand_over(m, write, NULL, 0);
        cr_assert_null(rig_model_forbids_start(m, read, &after, 1));
        cr_assert(rig_model_must_go(m, 1, true));
        cr_assert_not(rig_model_must_go(m, 1, false));
        rig_model_hand_over(m, read, &after, 1);
        cr_assert_str_eq(rig_model_forbids_start(m, second, &(struct rig_model_point){1, 1}, 1),
                "O8: more waits in the queue than the device can do");
        cr_assert_not(rig_model_must_go(m, 2, true));
        free(sim);
}

Test(model, refuses_a_start_of_what_is_lost_and_a_loss_of_what_is_not)
{
        struct rig_model *m = &sim->model;
        unsigned read, other;

        for (unsigned i = 0; i < 3; i++)
                rig_model_open(m, 0, 0);
        rig_model_accept(m, 0, 0, 1, no_points, 0);
        read = rig_model_accept(m, 1, 1, 2, no_points, 0);
        other = rig_model_accept(m, 2, 4, 0, no_points, 0);
        cr_assert_eq(rig_model_may_lose(m, read), 0);
        rig_model_lose(m, 0, true);
        cr_assert_eq(rig_model_must_lose(m, read), RIG_MODEL_BIT(0));
        cr_assert_str_eq(rig_model_forbids_start(m, read, NULL, 0), "L2: a run handed over that is lost");
        cr_assert_eq(rig_model_may_lose(m, other), 0);
        cr_assert_null(rig_model_forbids_start(m, other, NULL, 0));
        cr_assert_eq(rig_model_perhaps_spoiled(m, 1, m->n_runs), RIG_MODEL_BIT(0));
        cr_assert_eq(rig_model_spoiled(m, 1, m->n_runs), 0);
        rig_model_pass(m, read);
        cr_assert_eq(rig_model_spoiled(m, 1, m->n_runs), RIG_MODEL_BIT(0));
        free(sim);
}

Test(model, refuses_memory_that_returns_while_it_is_used)
{
        struct rig_model *m = &sim->model;
        unsigned run;

        rig_model_open(m, 0, 0);
        run = rig_model_accept(m, 0, 1, 0, no_points, 0);
        cr_assert_not(rig_model_may_be_idle(m, 0, m->n_runs));
        rig_model_hand_over(m, run, NULL, 0);
        rig_model_lose(m, 0, false);
        cr_assert_not(rig_model_may_be_idle(m, 0, m->n_runs));
        rig_model_lose(m, 0, true);
        cr_assert(rig_model_must_be_idle(m, 0, m->n_runs));
        free(sim);
}

Test(model, every_feature_has_a_name)
{
        for (unsigned i = 0; i < _RIG_SIM_FEATURE_MAX; i++)
                cr_assert_not_null(rig_sim_feature_to_string(i));
        free(sim);
}
