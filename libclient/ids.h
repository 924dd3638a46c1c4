/* SPDX-License-Identifier: ISC */
/*
 * Dense small numbers for a kind of object, from 1. Guarded by the connection's lock. Returning a number
 * never fails: the room for it was made when it was given.
 */
#ifndef RIG_CLIENT_IDS_H
#define RIG_CLIENT_IDS_H

#include "base/base.h"

struct rig_ids {
        uint32_t max;   /* the last number there is */
        uint32_t given; /* numbers up to this one were given at some time */
        uint32_t n_free, room;
        uint32_t *free;
};

/* 0, -ENOMEM, or -EDQUOT where all numbers are in use. */
int rig_ids_take(struct rig_ids *ids, uint32_t *ret_id);
void rig_ids_put(struct rig_ids *ids, uint32_t id);
static inline uint64_t rig_ids_in_use(const struct rig_ids *ids)
{
        return ids->given - ids->n_free;
}
void rig_ids_deinit(struct rig_ids *ids);

#endif
