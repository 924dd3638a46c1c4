/* SPDX-License-Identifier: ISC */
/*
 * Staging memory: host memory that a device addresses too, for bytes that no device copies in one step.
 */
#ifndef RIG_CLIENT_STAGING_H
#define RIG_CLIENT_STAGING_H

#include "libclient/once.h"

struct rig_stage;

/* The host-addressed buffers through which the bytes of `buffer` go. Made when first needed. */
int rig_stage_for(const struct rig_buffer *buffer, struct rig_stage **ret_stage);
struct rig_stage *rig_stage_free(struct rig_stage *stage);

/*
 * Takes a slot for the caller alone: NULL where all are taken and `wait` is false. Work that others
 * submitted on it before may still be using it: it is ordered by its memory as any buffer.
 */
struct rig_buffer *rig_stage_take(struct rig_stage *stage, bool wait);
void rig_stage_give(struct rig_stage *stage, struct rig_buffer *slot);
uint64_t rig_stage_bytes(const struct rig_stage *stage); /* of a slot */

/* One step between a slot and a buffer, on whichever device can. */
int rig_stage_step(const struct rig_range *dst, const struct rig_range *src, struct rig_point *ret_point);

/* As rig_buffer_copy() and rig_buffer_fill(), for checked ranges that no device does in one step. */
int rig_stage_copy(const struct rig_range *dst, const struct rig_range *src, struct rig_point *ret_point);
int rig_stage_fill(const struct rig_range *dst, uint32_t pattern, struct rig_point *ret_point);

#endif
