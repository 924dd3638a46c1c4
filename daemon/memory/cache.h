/* SPDX-License-Identifier: ISC */
/*
 * A client's cache of one adapter's regions that returned: the next allocation of a size takes one, with the
 * client's own earlier bytes in it (M2), and no page is faulted or zeroed again. Regions are rounded up to
 * size classes (four to each power of two, whole pages), so that sizes that are nearly equal share. A region
 * that was ever shared never gets here.
 */
#ifndef RIG_CACHE_H
#define RIG_CACHE_H

#include "base/list.h"
#include "daemon/driver.h"
#include "daemon/memory/budget.h"

struct rig_cache {
        struct rig_budget *budget; /* borrowed; cached bytes are charged there */
        uint64_t limit_bytes;      /* the most it keeps */
        uint64_t bytes;
        struct rig_list classes[RIG_MEMORY_KIND_MAX][256]; /* newest first */
        struct rig_list oldest;                            /* all of them, oldest first */
};

/* Bytes of the size class that `bytes` falls in; -EOVERFLOW where it has none. */
int rig_cache_class_bytes(uint64_t bytes, uint64_t *ret_bytes);

void rig_cache_init(struct rig_cache *cache, struct rig_budget *budget, uint64_t limit_bytes);

/* Takes a region of the class of `bytes`; its charge becomes live. False: none is there. */
bool rig_cache_take(
        struct rig_cache *cache, uint64_t bytes, enum rig_memory_kind kind, struct rig_region *ret);

/* Keeps a region, whose live charge becomes cached. False: it is over the limit, or -ENOMEM: the caller
 * frees it. */
bool rig_cache_put(struct rig_cache *cache, const struct rig_region *region, enum rig_memory_kind kind);

/* Gives up the oldest region, for the caller to free; its charge is gone. False: the cache is empty. */
bool rig_cache_drop(struct rig_cache *cache, struct rig_region *ret);

#endif
