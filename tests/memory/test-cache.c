/* SPDX-License-Identifier: ISC */
/* A client's cache of regions. */
#include <criterion/criterion.h>

#include "daemon/memory/cache.h"

#define PAGE UINT64_C(4096)

static struct rig_budget budget;
static struct rig_cache cache;

static void setup(void)
{
        budget = (struct rig_budget){.limit_bytes = UINT64_MAX};
        rig_cache_init(&cache, &budget, 1000 * PAGE);
}

/* A region that is live, as if it had been allocated; told apart by its address. */
static struct rig_region live(uint64_t bytes, uint64_t address)
{
        cr_assert_eq(rig_budget_charge(&budget, bytes, NULL), 0);
        return (struct rig_region){.bytes = bytes, .address = address, .fd = -EBADF};
}

static bool put(uint64_t bytes, uint64_t address)
{
        struct rig_region region = live(bytes, address);

        return rig_cache_put(&cache, &region, RIG_MEMORY_DEVICE);
}

static uint64_t take(uint64_t bytes)
{
        struct rig_region region;

        return rig_cache_take(&cache, bytes, RIG_MEMORY_DEVICE, &region) ? region.address : 0;
}

static void empty(void)
{
        struct rig_region region;

        while (rig_cache_drop(&cache, &region))
                ;
}

TestSuite(cache, .init = setup, .fini = empty);

Test(cache, classes_are_whole_pages_and_at_most_a_quarter_larger)
{
        uint64_t bytes, again, last = 0;

        for (uint64_t n = 1; n < 300 * PAGE; n += 509) {
                cr_assert_eq(rig_cache_class_bytes(n, &bytes), 0);
                cr_assert(bytes >= n && bytes % PAGE == 0 && bytes >= last, "%lu is of class %lu", n, bytes);
                cr_assert(bytes <= rig_round_up(n, PAGE) * 5 / 4, "%lu is of class %lu", n, bytes);
                cr_assert_eq(rig_cache_class_bytes(bytes, &again), 0);
                cr_assert_eq(again, bytes, "a class is not of itself");
                last = bytes;
        }
        for (unsigned shift = 12; shift < 62; shift++) {
                cr_assert_eq(rig_cache_class_bytes(UINT64_C(1) << shift, &bytes), 0);
                cr_assert_eq(bytes, UINT64_C(1) << shift);
                cr_assert_eq(rig_cache_class_bytes((UINT64_C(1) << shift) - 1, &bytes), 0);
                cr_assert_eq(bytes, UINT64_C(1) << shift);
        }
}

Test(cache, sizes_without_a_class_are_refused)
{
        uint64_t bytes;

        cr_assert_eq(rig_cache_class_bytes(0, &bytes), -EOVERFLOW);
        cr_assert_eq(rig_cache_class_bytes(UINT64_MAX, &bytes), -EOVERFLOW);
        cr_assert_eq(rig_cache_class_bytes(UINT64_C(1) << 62, &bytes), 0);
        cr_assert_eq(rig_cache_class_bytes((UINT64_C(1) << 62) + 1, &bytes), -EOVERFLOW);
        cr_assert_eq(take(0), 0);
        cr_assert_eq(take(UINT64_MAX), 0);
}

Test(cache, what_was_put_is_taken_newest_first)
{
        cr_assert(put(5 * PAGE, 1) && put(5 * PAGE, 2) && put(6 * PAGE, 3));
        cr_assert_eq(cache.bytes, 16 * PAGE);
        cr_assert_eq(take(4 * PAGE + 1), 2);
        cr_assert_eq(take(5 * PAGE), 1);
        cr_assert_eq(take(5 * PAGE), 0, "a class gave what it does not have");
        cr_assert_eq(take(6 * PAGE), 3);
        cr_assert_eq(cache.bytes, 0);
}

Test(cache, kinds_do_not_mix)
{
        struct rig_region region;

        cr_assert(put(PAGE, 1));
        cr_assert_not(rig_cache_take(&cache, PAGE, RIG_MEMORY_PINNED, &region));
        cr_assert_eq(take(PAGE), 1);
}

Test(cache, a_region_serves_only_what_fits_in_it)
{
        /* 9 pages are no class: they serve what 8 serve, and nothing that 10 would */
        cr_assert(put(9 * PAGE, 1));
        cr_assert_eq(take(9 * PAGE), 0);
        cr_assert_eq(take(8 * PAGE), 1);
        cr_assert_not(put(100, 2), "less than a page serves nothing");
}

Test(cache, memory_M3_the_books_follow_what_is_kept)
{
        cr_assert(put(5 * PAGE, 1) && put(7 * PAGE, 2));
        cr_assert_eq(budget.live_bytes, 0);
        cr_assert_eq(budget.cached_bytes, 12 * PAGE);
        cr_assert_eq(take(5 * PAGE), 1);
        cr_assert_eq(budget.live_bytes, 5 * PAGE);
        cr_assert_eq(budget.cached_bytes, 7 * PAGE);
}

Test(cache, it_keeps_no_more_than_its_limit)
{
        cr_assert(put(896 * PAGE, 1));
        cr_assert_not(put(112 * PAGE, 2));
        cr_assert_eq(budget.live_bytes, 112 * PAGE, "a refusal changed the books");
        cr_assert(put(80 * PAGE, 3));
        cr_assert_eq(cache.bytes, 976 * PAGE);
}

Test(cache, dropping_gives_up_the_oldest_first)
{
        struct rig_region region;

        cr_assert(put(PAGE, 1) && put(2 * PAGE, 2) && put(PAGE, 3) && put(3 * PAGE, 4));
        cr_assert_eq(take(2 * PAGE), 2);
        for (uint64_t expected = 1; expected <= 4; expected += expected == 1 ? 2 : 1) {
                cr_assert(rig_cache_drop(&cache, &region));
                cr_assert_eq(region.address, expected);
        }
        cr_assert_not(rig_cache_drop(&cache, &region));
        cr_assert_eq(budget.cached_bytes, 0);
        cr_assert_eq(cache.bytes, 0);
}
