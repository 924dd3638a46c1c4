/* SPDX-License-Identifier: ISC */
/*
 * Order: which run may start when, from the memory it reads and writes.
 *
 * Pure C with no I/O. The daemon drives it with real devices, tests with simulated ones. One thread owns an
 * order and everything in it.
 *
 *   order      what its timelines share: the count of accepted runs, and who has something to do
 *   timeline   a device's runs, 1, 2, 3 ...: accepted, handed over, reached (timeline.h)
 *   stamps     of one memory: the point of its last write and, per timeline, of its last use (stamps.h)
 *   watch      a wait of the host's, or of memory that returns, for the points of some stamps (watch.h)
 *
 * A run is accepted at once: it gets its value, takes from its memory's stamps the foreign points it must
 * follow, and stamps them. It then waits in its timeline's queue. Only the head of a queue ever waits, for
 * one point at a time, so whatever waits is a node embedded in its waiter, and reaching a value wakes
 * exactly those that wait for it.
 *
 * Loss. Runs are also numbered in the order they were accepted, over all timelines: their seq. A run that is
 * lost spoils the memory it would have written, from its seq on: a later run (a larger seq) that names the
 * memory is lost in turn, with the same culprit, and an earlier one is not.
 */
#ifndef RIG_ORDER_H
#define RIG_ORDER_H

#include "base/access.h"
#include "base/list.h"

struct rig_order {
        uint64_t seq;              /* runs accepted so far */
        uint64_t epoch;            /* of the dedup marks that timelines carry */
        struct rig_list due;       /* timelines to schedule: their head may be able to go */
        struct rig_list woken;     /* watches whose next point was reached */
        struct rig_list timelines; /* all of them */
        unsigned n_timelines;
};

void rig_order_init(struct rig_order *order);

/*
 * Schedules every timeline that is due and completes every watch that is done, until none is. The daemon
 * calls it after it accepted runs and after values were reached. Calls back into the timelines' ops.
 */
void rig_order_run(struct rig_order *order);

#endif
