/* SPDX-License-Identifier: ISC */
/*
 * Callbacks: what rig_notify() and rig_device_on_lost() asked for, until rig_dispatch() runs it.
 */
#ifndef RIG_CLIENT_NOTIFY_H
#define RIG_CLIENT_NOTIFY_H

#include "libclient/device.h"

struct rig_due {
        struct rig_list link;      /* in device->notifies, then in rig->due */
        struct rig_device *device; /* no reference: a device that ends drops what is due of it */
        uint64_t value;
        int error;
        /* one of the two */
        void (*reached)(struct rig_device *device, uint64_t value, int error, void *data);
        void (*lost)(struct rig_device *device, const char *reason, void *data);
        void *data;
};

/* The device reached a value, or is lost; the connection broke. With the lock held. */
void rig_notify_reached(struct rig_device *device, uint64_t value);
void rig_notify_lost(struct rig_device *device, int error);
void rig_notify_broken(struct rig *rig, int error, const char *text);

/* Drops what a device that ends still has. With the lock held. */
void rig_notify_forget(struct rig_device *device);

/* Ends what rig_notify_reached() and the others fill. */
void rig_notify_deinit(struct rig *rig);

#endif
