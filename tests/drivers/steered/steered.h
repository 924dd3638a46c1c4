/* SPDX-License-Identifier: ISC */
/*
 * For tests: a driver over host memory that does what a test tells it.
 *
 * It stands for a GPU: its memory has addresses of its own and the host does not address it (pinned memory
 * is the host's, and borrowed memory is, too); work runs on a thread of its own; parts run in a random order
 * as far as the contract allows, so that a missing edge shows; an access outside of its memory is a fault.
 *
 * Adapters: "steered:0" to "steered:3". Three queues: copy and fill; copy, fill and launch; launch. Options,
 * after a comma each:
 *
 *   manual          a run starts only once steered_complete() names its value or a later one
 *   room=N          it holds N runs at once (64 at most)
 *   waits           its queue waits for other steered devices' words, up to 4 a run
 *   hang=USEC       states this hang bound
 *   noborrow        borrows no memory
 *   sticky          where its work stands still, it ends by a reset of the adapter alone
 *   seed=N          of the random order
 *   fault-open      does not open
 *   slow-open=USEC  takes this long to open
 *
 * Images are text: the line "steered-image", then one name a line of
 *
 *   nop
 *   copy   parameters: u64 dst, u64 src, u64 bytes. Copies between two addresses
 *   store  u64 address, u32 value. Stores the 32-bit value
 *   hold   u64 address. Is done once the 32-bit word there is not 0, whoever stored it
 *   fail   fails its run, with -EIO
 *   fault  faults the device
 *   hang   is never done
 *
 * The functions below are for tests in the same process; from any thread.
 */
#ifndef STEERED_H
#define STEERED_H

#include "daemon/driver.h"

extern const struct rig_driver rig_driver_steered;

/* A manual device may run its work up to `value`. */
void steered_complete(struct rig_driver_device *device, uint64_t value);
/* The device faults now, whatever it does. */
void steered_fault(struct rig_driver_device *device, const char *reason);
/* The last value that was handed over, and the last that was committed. */
uint64_t steered_handed(struct rig_driver_device *device);
uint64_t steered_committed(struct rig_driver_device *device);

#endif
