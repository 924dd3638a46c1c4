/* SPDX-License-Identifier: ISC */
/* Doing the parts of a run of a host device. */
#ifndef RIG_CLIENT_PART_H
#define RIG_CLIENT_PART_H

#include "libclient/crew.h"
#include "libclient/host.h"
#include "libclient/work.h"

/* What the workers of a host device have for the part that is being done. */
struct rig_part_run;

int rig_part_run_new(uint32_t n_workers, struct rig_part_run **ret_run);
struct rig_part_run *rig_part_run_free(struct rig_part_run *run);

/*
 * Does all parts of a run, in the order they were added, each on all workers where it is large. The
 * leader's, as worker `worker`. Return: 0, or -ENOMEM where a launch's shared memory cannot be had.
 */
int rig_part_run_all(struct rig_part_run *run, struct rig_crew *crew, uint32_t worker,
        const struct rig_work *work, const struct rig_host_slot *slots);

/* True in a thread that is running the program's code for it. */
bool rig_part_is_inside(const struct rig_part_run *run);

#endif
