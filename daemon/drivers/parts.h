/* SPDX-License-Identifier: ISC */
/*
 * For drivers whose work the host's processor moves along: which parts of a run may start next, and the
 * bytes that a copy and a fill are about.
 */
#ifndef RIG_PARTS_H
#define RIG_PARTS_H

#include "daemon/driver.h"

/* The parts of one run of a work. */
struct rig_parts {
        uint32_t n;
        uint32_t started, done;         /* bit i: part i */
        uint32_t before[RIG_PARTS_MAX]; /* of each, the parts that must be done first */
};

/* Starts anew, for a run of `work`: a part follows the one before it on its queue, and those of its `after`.
 */
void rig_parts_init(struct rig_parts *parts, const struct rig_driver_work *work);

/* Bit i: part i was not started, and nothing is left that it follows. */
static inline uint32_t rig_parts_ready(const struct rig_parts *parts)
{
        uint32_t ready = 0;

        for (uint32_t i = 0; i < parts->n; i++)
                if (!(parts->started & (1u << i)) && !(parts->before[i] & ~parts->done))
                        ready |= 1u << i;
        return ready;
}

static inline bool rig_parts_all_done(const struct rig_parts *parts)
{
        return parts->done == (uint32_t)((UINT64_C(1) << parts->n) - 1);
}

/* Where the host addresses an operand of a run; NULL for a buffer of no bytes and for memory it does not
 * address. */
static inline uint8_t *rig_operand_host(const struct rig_operand *operand, const struct rig_filled *slots)
{
        const struct rig_filled *f = &slots[operand->slot];

        return f->region && f->region->host ? (uint8_t *)f->region->host + f->offset + operand->offset
                                            : NULL;
}

/* Fills `bytes` at `dst`, of any alignment, with the pattern's four bytes over and over, as the host stores
 * them. */
void rig_fill(void *dst, uint32_t pattern, uint64_t bytes);

#endif
