/* SPDX-License-Identifier: ISC */
/*
 * Parts of an abstract range of 64-bit addresses, handed out and taken back: a GPU's virtual addresses, its
 * memory, the addresses its DMA uses. Nothing is stored in the range itself, which may not be there at all.
 *
 * The rule of fit. A request is looked for in three steps, and the first hole that holds it is cut at the
 * first address in it that is aligned; what is left before and after stays free.
 *   1. The smallest holes that could hold it, a few of them: so that a hole is filled again by what it was
 *      cut for.
 *   2. The size classes whose every hole holds it, alignment included (good fit): always one hole looked at.
 *   3. Every hole of the classes between, of which some may hold it, each looked at.
 * So -ENOMEM is honest: no hole holds the request. Steps 1 and 2 cost the same whatever is allocated; step 3
 * comes only where no hole is as large as the request and its alignment together, rounded up to a class, and
 * costs a look at each of the holes of about that size. Giving back, finding, and taking at an address cost
 * a walk of at most one step for each bit of an address.
 *
 * One caller at a time.
 */
#ifndef RIG_RANGES_H
#define RIG_RANGES_H

#include "base/base.h"

struct rig_ranges;

struct rig_ranges_stats {
        uint64_t bytes, free_bytes;
        uint64_t largest_free_bytes; /* of one hole */
        size_t n_allocations, n_holes;
        uint64_t
                steps; /* blocks looked at since the beginning, in lists and in the index: what calls cost */
};

/**
 * rig_ranges_new() - a range, all of it free
 * @start:       its first address
 * @bytes:       its length; it may end at 2^64
 * @granularity: a power of two; @start and @bytes are multiples of it, and all sizes are rounded up to one
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int rig_ranges_new(uint64_t start, uint64_t bytes, uint64_t granularity, struct rig_ranges **ret_ranges);
/* What is still allocated is forgotten. Return: NULL. */
struct rig_ranges *rig_ranges_free(struct rig_ranges *ranges);

/* Bounds the blocks (allocations and holes together) that are kept; 0: no bound, as it begins. */
void rig_ranges_limit(struct rig_ranges *ranges, size_t max_blocks);

/*
 * Takes `bytes` at a multiple of `alignment`, a power of two; 1: the granularity is enough. -EINVAL: no
 * bytes, or no power of two. -ENOMEM: no hole holds it, or no memory or no bound for the books. A refusal
 * changes nothing.
 */
int rig_ranges_alloc(struct rig_ranges *ranges, uint64_t bytes, uint64_t alignment, uint64_t *ret_address);
/*
 * Takes `bytes` at `address`. -EINVAL: no bytes, outside of the range, or no multiple of the granularity.
 * -EBUSY: not all of it is free. -ENOMEM: no memory or no bound for the books. A refusal changes nothing.
 */
int rig_ranges_alloc_at(struct rig_ranges *ranges, uint64_t address, uint64_t bytes);
/*
 * Gives back what was taken at `address`, whole; it joins the holes around it. Takes no memory, so it fails
 * only with -EINVAL: nothing that was taken begins there. That is a mistake of the caller's, which it may
 * assert.
 */
int rig_ranges_return(struct rig_ranges *ranges, uint64_t address);
/* The allocation that `address` lies in: for one who knows an address that faulted. -ENOENT. */
int rig_ranges_find(struct rig_ranges *ranges, uint64_t address, uint64_t *ret_address, uint64_t *ret_bytes);

/* The largest hole is looked for among those of the highest class that has any. */
void rig_ranges_stats(const struct rig_ranges *ranges, struct rig_ranges_stats *ret_stats);

#endif
