/* SPDX-License-Identifier: ISC */
/* Work without preparing: what the one-shot calls and staging are made of. */
#ifndef RIG_CLIENT_ONCE_H
#define RIG_CLIENT_ONCE_H

#include "libclient/work.h"

/* True where the device can copy from one memory to the other. */
bool rig_once_can_copy(
        const struct rig_device *device, const struct rig_buffer *dst, const struct rig_buffer *src);

/* A range of a buffer. */
struct rig_range {
        struct rig_buffer *buffer;
        uint64_t offset, bytes;
};

/* Copies one range to another of the same length, on a device that can. As rig_submit(). */
int rig_once_copy(struct rig_device *device, const struct rig_range *dst, const struct rig_range *src,
        struct rig_point *ret_point);

/* Fills a range, on a device that can. */
int rig_once_fill(struct rig_device *device, const struct rig_range *dst, uint32_t pattern,
        struct rig_point *ret_point);

/* Waits for a point and tells, and forgets, the failure of that run alone. */
int rig_once_settle(const struct rig_point *point);

#endif
