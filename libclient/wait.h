/* SPDX-License-Identifier: ISC */
/* Waiting for values of timelines. */
#ifndef RIG_CLIENT_WAIT_H
#define RIG_CLIENT_WAIT_H

#include "libclient/device.h"

/**
 * rig_await() - wait until a device reached a value
 * @device:        the device
 * @value:         at most what was submitted
 * @deadline_usec: when to give up
 *
 * Failures of runs are left to be told by others.
 * Return: 0; -ETIMEDOUT; -ENODEV with the reason; what broke the connection.
 */
int rig_await(struct rig_device *device, uint64_t value, uint64_t deadline_usec);

/* Sleeps a moment on a word of the shared page while it is `seen`, then looks whether rigd still lives. */
void rig_nap(struct rig *rig, const _Atomic uint64_t *word, uint64_t seen, uint64_t at_most_usec);

#endif
