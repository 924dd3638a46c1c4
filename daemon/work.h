/* SPDX-License-Identifier: ISC */
/* A prepared work and a loaded image: what a client made once for many runs. */
#ifndef RIG_WORK_H
#define RIG_WORK_H

#include "daemon/buffer.h"

struct rig_image {
        unsigned refs;             /* the client's, and of works that launch it */
        struct rig_client *client; /* referenced */
        struct rig_device *device; /* referenced */
        struct rig_driver_image driver;
        uint32_t id;
        bool loaded;
};

struct rig_work {
        unsigned refs;             /* the client's, and of runs that are not over */
        struct rig_client *client; /* referenced */
        struct rig_device *device; /* referenced */
        uint32_t id;
        bool prepared; /* the driver has work->drv */
        bool closed;   /* its device is closed: it runs no more */

        uint32_t n_open;                         /* slots that runs fill */
        uint8_t open[RIG_SLOTS_MAX];             /* which */
        uint64_t least[RIG_SLOTS_MAX];           /* bytes that each slot's buffer has at least */
        struct rig_buffer *bound[RIG_SLOTS_MAX]; /* referenced, or NULL */
        uint64_t pairs; /* bit p: part p copies all of both its slots, which must be as long */
        char name[RIG_PROTO_LABEL_MAX + 1];
        struct rig_image *images[RIG_PARTS_MAX]; /* referenced, or NULL */
        struct rig_driver_work driver;
};

/*
 * Makes a work from a message, checked against its device. Does not prepare it. Return: 0 or a negative
 * errno value with a sentence.
 */
int rig_work_new(struct rig_client *client, struct rig_device *device, const struct rig_msg_work_new *msg,
        struct rig_work **ret_work, struct rig_error *e);
struct rig_work *rig_work_ref(struct rig_work *work);
struct rig_work *rig_work_unref(struct rig_work *work);

struct rig_image *rig_image_new(struct rig_client *client, struct rig_device *device, uint32_t id);
struct rig_image *rig_image_ref(struct rig_image *image);
struct rig_image *rig_image_unref(struct rig_image *image);

/* Whether the buffer can fill the slot: long enough, admitting its access, reached. -ERANGE, -EACCES,
 * -EXDEV. */
int rig_work_check_slot(
        const struct rig_work *work, uint32_t slot, const struct rig_buffer *buffer, struct rig_error *e);

#endif
