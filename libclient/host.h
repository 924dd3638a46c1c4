/* SPDX-License-Identifier: ISC */
/*
 * A host device's workers: the part of the device that is in this process.
 */
#ifndef RIG_CLIENT_HOST_H
#define RIG_CLIENT_HOST_H

#include "libclient/device.h"

#define RIG_HOST_SKIP (UINT64_C(1) << 63) /* in the value of an entry of the list: it is passed */

struct rig_host;
struct rig_memory;
struct rig_work;

/* A slot of a run, in this process. */
struct rig_host_slot {
        uint8_t *address;
        uint64_t bytes;
        struct rig_memory *memory;
};

int rig_host_new(struct rig_device *device, struct rig_host **ret_host);
struct rig_host *rig_host_free(struct rig_host *host);

/*
 * Ends its workers once what was accepted is done, then calls `end` with the device. Waits for that, except
 * in a worker of its own: there it is left to the worker, after the run that is calling.
 */
void rig_host_end(struct rig_host *host, void (*end)(struct rig_device *device));

/* Starts the workers, the first time. 0 or a negative errno value. */
int rig_host_start(struct rig_host *host);

/* Makes room for a run of the work. With the connection's lock held. 0 or -ENOMEM. */
int rig_host_room(struct rig_host *host, const struct rig_work *work);

/* Queues a run, for which there is room; it keeps the work and the memories. With the connection's lock
 * held. */
void rig_host_push(
        struct rig_host *host, uint64_t value, struct rig_work *work, const struct rig_host_slot *slots);

/* Wakes a worker for what was queued. Without the lock. */
void rig_host_wake(struct rig_host *host);

/* rigd passed the run `value`, which must not be done. With the connection's lock held. */
void rig_host_skip(struct rig_host *host, uint64_t value);

#endif
