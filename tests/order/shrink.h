/* SPDX-License-Identifier: ISC */
/*
 * Programs run in children, so that one that crashes or never ends is a failure like any other, and a
 * failing one is shrunk to the few steps that matter.
 */
#ifndef RIG_TEST_SHRINK_H
#define RIG_TEST_SHRINK_H

#include "tests/order/program.h"

/* What children and their parent share. */
struct rig_trial {
        struct rig_program program;
        uint64_t seed, first, count; /* seeds of a batch: the one that runs, and which there are */
        uint64_t programs;           /* that held */
        uint64_t features[_RIG_SIM_FEATURE_MAX];
        char law[128], text[256]; /* "" where all laws held */
        struct rig_sim sim;
};

/* Shared with children that fork later; never NULL. */
struct rig_trial *rig_trial_new(void);

/* Runs the batch's programs in a child. Return: true where all laws held; else seed, law and text say more.
 */
bool rig_trial_batch(struct rig_trial *trial);

/* Runs trial->program in a child, tracing to `trace` where that is not NULL. Return: as above. */
bool rig_trial_run(struct rig_trial *trial, FILE *trace);

/* Makes trial->program, which fails, as short and plain as it can be while it breaks the same law. */
void rig_trial_shrink(struct rig_trial *trial);

#endif
