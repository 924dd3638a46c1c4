/* SPDX-License-Identifier: ISC */
/*
 * Random programs: short lists of steps against the simulation. A step's numbers are mapped onto whatever
 * exists when it comes, so that every sublist of a program is a program, and a failing one can be shrunk.
 */
#ifndef RIG_TEST_PROGRAM_H
#define RIG_TEST_PROGRAM_H

#include "tests/order/simulate.h"

#define RIG_PROGRAM_STEPS   112
#define RIG_PROGRAM_ARGS    11
#define RIG_PROGRAM_CLIENTS 3

enum rig_step_kind {
        RIG_STEP_OPEN,
        RIG_STEP_MEMORY,
        RIG_STEP_ACCEPT,
        RIG_STEP_COMPLETE,
        RIG_STEP_POLL,
        RIG_STEP_LOSE,
        RIG_STEP_END,
        RIG_STEP_FAIL,
        RIG_STEP_WATCH,
        RIG_STEP_WATCH_VALUE,
        RIG_STEP_CANCEL,
        RIG_STEP_RETIRE,
        RIG_STEP_CLOSE,
        RIG_STEP_KILL,
        RIG_STEP_TICK,
        _RIG_STEP_MAX,
};

struct rig_step {
        uint8_t kind;
        bool run; /* the order runs after it */
        uint16_t args[RIG_PROGRAM_ARGS];
};

struct rig_program {
        unsigned n_steps;
        struct rig_step steps[RIG_PROGRAM_STEPS];
};

void rig_program_generate(struct rig_program *program, uint64_t seed);

/* Runs the program in `sim`, which it initialises. Return: NULL, or the law that broke. */
const char *rig_program_run(const struct rig_program *program, struct rig_sim *sim, FILE *trace);

#endif
