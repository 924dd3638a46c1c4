/* SPDX-License-Identifier: ISC */
/*
 * order-laws: random programs hold daemon/order/ to the laws.
 *
 *     order-laws                    100,000 programs, from seed 1 on
 *     order-laws --programs N       N of them
 *     order-laws --from S           from seed S on
 *     order-laws --seed S           one, with everything that happens
 *
 * It prints what the programs did, and fails where one broke a law (with its seed, and shrunk) or where, in
 * a run long enough to tell, something that programs can do was done by none of them: then the test had a
 * hole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/order/shrink.h"

#define BATCH           UINT64_C(1000)
#define COVERED_BY_THEN 5000 /* so many programs do everything there is */

/* A child that failed only as it ended, as one that leaked does, may have failed by any program of its
 * batch. */
static void find_crash(struct rig_trial *trial)
{
        uint64_t last = trial->seed;

        if (strcmp(trial->law, "crash") != 0 || !rig_trial_run(trial, NULL))
                return;
        for (trial->seed = trial->first; trial->seed < last; trial->seed++) {
                rig_program_generate(&trial->program, trial->seed);
                if (!rig_trial_run(trial, NULL))
                        return;
        }
        snprintf(trial->law, sizeof(trial->law), "crash");
        snprintf(trial->text, sizeof(trial->text), "only together with the programs before it");
}

static int fail(struct rig_trial *trial)
{
        find_crash(trial);
        printf("order: seed %" PRIu64 " breaks %s: %s\n", trial->seed, trial->law, trial->text);
        printf("order: shrinking %u steps\n", trial->program.n_steps);
        rig_trial_shrink(trial);
        printf("order: a program of %u steps breaks %s: %s\n", trial->program.n_steps, trial->law,
                trial->text);
        rig_trial_run(trial, stdout);
        printf("order: replay it with --seed %" PRIu64 "\n", trial->seed);
        return 1;
}

static int replay(struct rig_trial *trial, uint64_t seed)
{
        trial->seed = seed;
        rig_program_generate(&trial->program, seed);
        if (!rig_trial_run(trial, stdout))
                return fail(trial);
        printf("order: seed %" PRIu64 " holds all laws\n", seed);
        return 0;
}

static int report(const struct rig_trial *trial)
{
        const uint64_t *f = trial->features;
        int r = 0;

        for (unsigned i = 0; i < _RIG_SIM_FEATURE_MAX; i++) {
                printf("  %10" PRIu64 " %s\n", f[i], rig_sim_feature_to_string(i));
                if (f[i] == 0 && trial->programs >= COVERED_BY_THEN) {
                        printf("order: no program saw: %s\n", rig_sim_feature_to_string(i));
                        r = 1;
                }
        }
        printf("order: %" PRIu64 " programs hold O1..O8, M1, L1..L6 (%" PRIu64 " runs, %" PRIu64
               " lost, %" PRIu64 " queue waits, %" PRIu64 " watches)\n",
                trial->programs, f[RIG_SIM_RUNS], f[RIG_SIM_LOST_RUNS], f[RIG_SIM_QUEUE_WAITS],
                f[RIG_SIM_WATCHES_READ] + f[RIG_SIM_WATCHES_WRITE] + f[RIG_SIM_WATCHES_IDLE] +
                        f[RIG_SIM_WATCHES_VALUE]);
        return r;
}

static int run(struct rig_trial *trial, uint64_t from, uint64_t programs)
{
        while (trial->programs < programs) {
                trial->first = from + trial->programs;
                trial->count = RIG_MIN(programs - trial->programs, BATCH);
                if (!rig_trial_batch(trial))
                        return fail(trial);
        }
        return report(trial);
}

int main(int argc, char **argv)
{
        struct rig_trial *trial = rig_trial_new();
        uint64_t from = 1, programs = 100000;

        for (int i = 1; i < argc; i += 2) {
                char *end = NULL;
                uint64_t n = i + 1 < argc ? strtoull(argv[i + 1], &end, 0) : 0;

                if (!end || end == argv[i + 1] || *end) {
                        fprintf(stderr, "%s: %s takes a number\n", argv[0], argv[i]);
                        return 2;
                }
                if (strcmp(argv[i], "--seed") == 0)
                        return replay(trial, n);
                if (strcmp(argv[i], "--programs") == 0)
                        programs = n;
                else if (strcmp(argv[i], "--from") == 0)
                        from = n;
                else {
                        fprintf(stderr, "usage: %s [--programs N] [--from SEED] [--seed SEED]\n", argv[0]);
                        return 2;
                }
        }
        return run(trial, from, programs);
}
