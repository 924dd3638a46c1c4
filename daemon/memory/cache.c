/* SPDX-License-Identifier: ISC */
/*
 * See cache.h. A region that is kept sits in two lists: its class, newest first, from which it is taken, and
 * the age list, from whose old end the cache is emptied. Invariants: `bytes` is the sum of what is kept, and
 * the budget's cached bytes contain it.
 *
 * Classes. A power of two of pages has four classes, evenly spaced: 5, 6, 7, 8, 10, 12, 14, 16, 20 ...
 * pages; below that each count of pages is one. So a region is at most a quarter larger than what was asked
 * for. A driver may round further up: its region is kept in the largest class it serves.
 *
 * The cache frees no region, since that is a slow call of the driver's: it gives them back to its caller.
 */
#include "daemon/memory/cache.h"

#define PAGE_BYTES UINT64_C(4096)
#define PAGES_MAX  (UINT64_C(1) << 50)

struct entry {
        struct rig_list class_link, age_link;
        struct rig_region region;
};

static unsigned log2_floor(uint64_t n)
{
        return 63 - (unsigned)__builtin_clzll(n);
}

/* The index of the least class of at least `pages` pages, and how many it has. */
static unsigned class_of(uint64_t pages, uint64_t *ret_pages)
{
        unsigned power, step_shift;
        uint64_t base, steps;

        if (pages <= 4) {
                *ret_pages = pages;
                return (unsigned)pages - 1;
        }
        power = log2_floor(pages - 1); /* pages is in (2^power, 2^(power + 1)] */
        base = UINT64_C(1) << power;
        step_shift = power - 2;
        steps = (pages - base + (UINT64_C(1) << step_shift) - 1) >> step_shift;
        *ret_pages = base + (steps << step_shift);
        return 4 * (power - 1) + (unsigned)steps - 1;
}

/* The class that `bytes` falls in. False: it has none. */
static bool find_class(uint64_t bytes, unsigned *ret_index, uint64_t *ret_bytes)
{
        uint64_t pages;

        if (bytes == 0 || bytes > PAGES_MAX * PAGE_BYTES)
                return false;
        *ret_index = class_of(rig_round_up(bytes, PAGE_BYTES) / PAGE_BYTES, &pages);
        *ret_bytes = pages * PAGE_BYTES;
        return true;
}

int rig_cache_class_bytes(uint64_t bytes, uint64_t *ret_bytes)
{
        unsigned index;

        return find_class(bytes, &index, ret_bytes) ? 0 : -EOVERFLOW;
}

void rig_cache_init(struct rig_cache *cache, struct rig_budget *budget, uint64_t limit_bytes)
{
        cache->budget = budget;
        cache->limit_bytes = limit_bytes;
        cache->bytes = 0;
        for (unsigned k = 0; k < RIG_MEMORY_KIND_MAX; k++)
                for (unsigned i = 0; i < RIG_ARRAY_SIZE(cache->classes[k]); i++)
                        rig_list_init(&cache->classes[k][i]);
        rig_list_init(&cache->oldest);
}

/* Takes `entry` out of the cache, and its bytes off the cache's. */
static void take_out(struct rig_cache *cache, struct entry *entry, struct rig_region *ret)
{
        rig_list_remove(&entry->class_link);
        rig_list_remove(&entry->age_link);
        cache->bytes -= entry->region.bytes;
        *ret = entry->region;
        free(entry);
}

bool rig_cache_take(
        struct rig_cache *cache, uint64_t bytes, enum rig_memory_kind kind, struct rig_region *ret)
{
        struct rig_list *class;
        uint64_t class_bytes;
        unsigned index;

        rig_assert(kind < RIG_MEMORY_KIND_MAX);
        if (!find_class(bytes, &index, &class_bytes))
                return false;
        class = &cache->classes[kind][index];
        if (rig_list_empty(class))
                return false;
        take_out(cache, rig_list_entry(class->next, struct entry, class_link), ret);
        rig_budget_uncache(cache->budget, ret->bytes);
        return true;
}

bool rig_cache_put(struct rig_cache *cache, const struct rig_region *region, enum rig_memory_kind kind)
{
        struct entry *entry;
        uint64_t class_bytes;
        unsigned index;

        rig_assert(kind < RIG_MEMORY_KIND_MAX);
        if (region->bytes > cache->limit_bytes - cache->bytes ||
                !find_class(region->bytes, &index, &class_bytes))
                return false;
        if (class_bytes > region->bytes) {
                if (index == 0) /* less than a page serves none */
                        return false;
                index--;
        }
        entry = malloc(sizeof(*entry));
        if (!entry)
                return false;
        *entry = (struct entry){.region = *region};
        rig_list_append(cache->classes[kind][index].next, &entry->class_link); /* before the first: newest */
        rig_list_append(&cache->oldest, &entry->age_link);
        cache->bytes += region->bytes;
        rig_budget_cache(cache->budget, region->bytes);
        return true;
}

bool rig_cache_drop(struct rig_cache *cache, struct rig_region *ret)
{
        if (rig_list_empty(&cache->oldest))
                return false;
        take_out(cache, rig_list_entry(cache->oldest.next, struct entry, age_link), ret);
        rig_budget_drop(cache->budget, ret->bytes);
        return true;
}
