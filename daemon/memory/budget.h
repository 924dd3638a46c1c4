/* SPDX-License-Identifier: ISC */
/*
 * What may be held (M3): an adapter's budget bounds what all its clients hold together, live and cached; a
 * client's share bounds what it holds live of one adapter. Everything is charged before it is made, and a
 * charge that cannot be had changes nothing.
 */
#ifndef RIG_BUDGET_H
#define RIG_BUDGET_H

#include "base/error.h"

struct rig_budget {
        uint64_t limit_bytes;
        uint64_t live_bytes;
        uint64_t cached_bytes; /* in clients' caches: given back when something else needs it */
};

struct rig_share {
        struct rig_budget *budget; /* borrowed */
        const char *client;        /* for the sentence of a refusal: "client 12 (pid 345)"; borrowed */
        uint64_t limit_bytes;
        uint64_t live_bytes;
};

/* -EDQUOT: more than the share has left. The sentence says who asked, how much, what was left, and the
 * setting. */
int rig_share_charge(struct rig_share *share, uint64_t bytes, struct rig_error *e);
void rig_share_return(struct rig_share *share, uint64_t bytes);

/* -ENOMEM: live and cached bytes leave no room; dropping caches may make some. */
int rig_budget_charge(struct rig_budget *budget, uint64_t bytes, struct rig_error *e);
void rig_budget_return(struct rig_budget *budget, uint64_t bytes);

/* A live charge becomes a cached one, and back. */
void rig_budget_cache(struct rig_budget *budget, uint64_t bytes);
void rig_budget_uncache(struct rig_budget *budget, uint64_t bytes);
/* Cached bytes are gone. */
void rig_budget_drop(struct rig_budget *budget, uint64_t bytes);

#endif
