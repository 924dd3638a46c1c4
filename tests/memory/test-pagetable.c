/* SPDX-License-Identifier: ISC */
/*
 * Page tables by hand: which leaves are taken, what is refused, what a split leaves, what is held. Each test
 * runs in all three formats of tests/memory/pagetable-world.h, and believes only what the reader finds.
 */
#include <criterion/criterion.h>

#include "tests/memory/pagetable-world.h"
#include "tests/memory/random.h"

#define PAGE UINT64_C(4096)
#define MIB  (UINT64_C(1) << 20)

static struct world world;
static struct rig_pagetable_touched touched;

static void begin(const struct world_format *format)
{
        world_begin(&world, format);
        touched = (struct rig_pagetable_touched){0};
}

static void end(void)
{
        world_end(&world);
}

#define FOR_EACH_FORMAT(test_name)                                                                          \
        static void test_name(void);                                                                        \
        Test(pagetable, test_name)                                                                          \
        {                                                                                                   \
                for (unsigned i_ = 0; i_ < _WORLD_FORMAT_MAX; i_++) {                                       \
                        begin(&world_formats[i_]);                                                          \
                        test_name();                                                                        \
                        end();                                                                              \
                }                                                                                           \
        }                                                                                                   \
        static void test_name(void)

static int map(uint64_t va, uint64_t address, uint64_t bytes)
{
        struct rig_pagetable_run run = {address, bytes};

        return rig_pagetable_map(world.pagetable, va, &run, 1, WORLD_WRITE, &touched);
}

static int unmap(uint64_t va, uint64_t bytes)
{
        return rig_pagetable_unmap(world.pagetable, va, bytes, &touched);
}

static void maps(uint64_t va, uint64_t address, uint64_t page_bytes)
{
        struct rig_walk walk;
        int r = world_walk(&world, va, &walk);

        cr_assert_eq(r, 0, "%s: %#lx: %s", world.format->name, va, walk.fault);
        cr_assert_eq(walk.address, address, "%s: %#lx: at %#lx", world.format->name, va, walk.address);
        cr_assert_eq(walk.page_bytes, page_bytes, "%s: %#lx: by a leaf of %#lx", world.format->name, va,
                walk.page_bytes);
}

static void maps_nothing(uint64_t va)
{
        struct rig_walk walk;

        cr_assert_eq(world_walk(&world, va, &walk), -EFAULT, "%s: %#lx", world.format->name, va);
}

/* Something that is refused, with nothing changed. */
#define refuses(error, call)                                                                                \
        do {                                                                                                \
                uint64_t digest_ = world_digest(&world), tables_ = rig_pagetable_tables(world.pagetable);   \
                struct rig_pagetable_touched before_ = touched;                                             \
                int r_ = (call);                                                                            \
                cr_assert_eq(r_, error, "%s: %s: %d", world.format->name, #call, r_);                       \
                cr_assert_eq(world_digest(&world), digest_, #call ": a refusal changed tables");            \
                cr_assert_eq(rig_pagetable_tables(world.pagetable), tables_, #call ": tables were kept");   \
                cr_assert_eq(touched.n, before_.n, #call ": a refusal touched something");                  \
        } while (0)

/* ---------------------------------------------------------------- map */

FOR_EACH_FORMAT(the_largest_leaves_that_both_addresses_admit_are_taken)
{
        const uint64_t *pages = world.format->page_bytes, va = world.format->crossing;

        /* one of each size, one after the other, and the same addresses off by a page */
        cr_assert_eq(map(va - PAGE, 3 * pages[0] - PAGE, PAGE + pages[0] + pages[1] + PAGE), 0);
        maps(va - PAGE, 3 * pages[0] - PAGE, PAGE);
        maps(va, 3 * pages[0], pages[0]);
        maps(va + pages[0] - 1, 4 * pages[0] - 1, pages[0]);
        maps(va + pages[0], 4 * pages[0], pages[1]);
        maps(va + pages[0] + pages[1], 4 * pages[0] + pages[1], PAGE);
        maps_nothing(va - PAGE - 1);
        maps_nothing(va + pages[0] + pages[1] + PAGE);
        cr_assert_eq(map(va + 4 * pages[0], PAGE, 2 * pages[1]), 0);
        maps(va + 4 * pages[0] + 17, PAGE + 17, PAGE);
        maps(va + 4 * pages[0] + 2 * pages[1] - 1, 2 * pages[1] + PAGE - 1, PAGE);
}

FOR_EACH_FORMAT(runs_that_continue_each_other_are_one)
{
        uint64_t va = world.format->crossing;
        const struct rig_pagetable_run runs[] = {{4 * MIB, PAGE}, {4 * MIB + PAGE, MIB - PAGE},
                {5 * MIB, MIB}, {32 * MIB, PAGE}, {16 * MIB, 2 * MIB - PAGE}};

        cr_assert_eq(rig_pagetable_map(world.pagetable, va, runs, 5, WORLD_WRITE, NULL), 0);
        maps(va + MIB, 5 * MIB, 2 * MIB);
        maps(va + 2 * MIB, 32 * MIB, PAGE);
        maps(va + 2 * MIB + PAGE, 16 * MIB, PAGE);
        maps(va + 4 * MIB - 1, 18 * MIB - PAGE - 1, PAGE);
        maps_nothing(va + 4 * MIB);
}

FOR_EACH_FORMAT(flags_are_those_that_were_asked_for)
{
        uint64_t va = world.format->crossing;
        struct rig_walk walk;

        for (uint64_t flags = 0; flags < 16; flags++) {
                struct rig_pagetable_run run = {flags % 2 ? 2 * MIB : PAGE, 2 * MIB};

                cr_assert_eq(
                        rig_pagetable_map(world.pagetable, va + flags * 2 * MIB, &run, 1, flags, NULL), 0);
                cr_assert_eq(world_walk(&world, va + flags * 2 * MIB, &walk), 0);
                cr_assert_eq(world_flags(&world, &walk), flags & world.format->flags);
                cr_assert(walk.read);
        }
}

FOR_EACH_FORMAT(a_map_over_something_mapped_is_refused_and_changes_nothing)
{
        uint64_t va = world.format->crossing, large = world.format->page_bytes[1];

        cr_assert_eq(map(va + 8 * large, 0, large), 0);
        cr_assert_eq(map(va + 10 * large, PAGE, 2 * PAGE), 0);
        refuses(-EEXIST, map(va, 0, 9 * large));
        refuses(-EEXIST, map(va + 9 * large - PAGE, 0, PAGE));
        refuses(-EEXIST, map(va + 8 * large - PAGE, PAGE, 2 * PAGE));
        refuses(-EEXIST, map(va + 9 * large, 0, 2 * large));
        refuses(-EEXIST, map(va + 10 * large + PAGE, 0, PAGE));
        refuses(-EEXIST, map(va, 0, world.format->page_bytes[0]));
        cr_assert_eq(map(va + 9 * large, 0, large), 0);
        cr_assert_eq(map(va + 10 * large + 2 * PAGE, 0, PAGE), 0);
}

FOR_EACH_FORMAT(what_is_no_whole_pages_or_not_there_is_refused)
{
        const struct rig_pagetable_format *f = world.format->format;
        uint64_t va = world.format->crossing, top = f->levels[0].shift + f->levels[0].bits;
        uint64_t last = f->start + (UINT64_C(1) << top);
        const struct rig_pagetable_run wraps[] = {{0, UINT64_MAX - 4095}, {0, 2 * PAGE}};

        refuses(-EINVAL, map(va + 1, 0, PAGE));
        refuses(-EINVAL, map(va, 1, PAGE));
        refuses(-EINVAL, map(va, 0, PAGE - 1));
        refuses(-EINVAL, map(va, 0, 0));
        refuses(-EINVAL, rig_pagetable_map(world.pagetable, va, NULL, 0, 0, &touched));
        refuses(-EINVAL, rig_pagetable_map(world.pagetable, va, wraps, 2, 0, &touched));
        refuses(-EINVAL, map(va, -PAGE, 2 * PAGE));
        refuses(-EINVAL, map(last, 0, PAGE));
        refuses(-EINVAL, map(last - PAGE, 0, 2 * PAGE));
        refuses(-EINVAL, map(va, UINT64_C(1) << 60, PAGE)); /* the format has no such addresses */
        refuses(-EINVAL, map(va, (UINT64_C(1) << 36) - PAGE, UINT64_C(1) << 49));
        refuses(-EINVAL, unmap(last, PAGE));
        refuses(-EINVAL, unmap(va, 0));
        refuses(-EINVAL, unmap(va, PAGE + 1));
        refuses(-EINVAL, unmap(va, UINT64_MAX - 4095));
        if (f->start) {
                refuses(-EINVAL, map(f->start - PAGE, 0, PAGE));
                refuses(-EINVAL, unmap(0, PAGE));
        }
        cr_assert_eq(map(last - PAGE, 0, PAGE), 0);
        maps(last - 1, PAGE - 1, PAGE);
        cr_assert_eq(map(f->start, PAGE, PAGE), 0);
        maps(f->start, PAGE, PAGE);
}

/* ---------------------------------------------------------------- unmap */

FOR_EACH_FORMAT(unmapping_gives_back_each_table_that_became_empty_once_invalidated)
{
        const uint64_t *pages = world.format->page_bytes, va = world.format->crossing - PAGE;
        uint64_t bytes = 2 * PAGE + pages[1];

        for (unsigned i = 0; i < 3; i++) {
                cr_assert_eq(map(va, PAGE, bytes), 0);
                cr_assert_gt(rig_pagetable_tables(world.pagetable), 4);
                cr_assert(touched.tables);
                touched = (struct rig_pagetable_touched){0};
                cr_assert_eq(unmap(va, bytes), 0);
                maps_nothing(va);
                maps_nothing(va + bytes - 1);
                cr_assert_eq(world.n_freed, 0, "a table was freed that the device may still walk");
                cr_assert(touched.tables);
                rig_pagetable_reclaim(world.pagetable);
                cr_assert_eq(rig_pagetable_tables(world.pagetable), 1);
                cr_assert_eq(world.n_tables, 1);
                world.n_freed = 0;
        }
}

FOR_EACH_FORMAT(unmapping_what_is_not_mapped_is_refused_and_changes_nothing)
{
        uint64_t va = world.format->crossing;

        refuses(-ENOENT, unmap(va, PAGE));
        cr_assert_eq(map(va, 0, 4 * MIB), 0);
        cr_assert_eq(map(va + 6 * MIB, PAGE, PAGE), 0);
        refuses(-ENOENT, unmap(va - PAGE, 2 * PAGE));
        refuses(-ENOENT, unmap(va + PAGE, 4 * MIB));
        refuses(-ENOENT, unmap(va, 6 * MIB + PAGE));
        refuses(-ENOENT, unmap(va + 6 * MIB, 2 * PAGE));
        cr_assert_eq(unmap(va + 6 * MIB, PAGE), 0);
}

FOR_EACH_FORMAT(unmapping_a_part_of_a_leaf_splits_it)
{
        const uint64_t *pages = world.format->page_bytes, va = world.format->crossing;
        uint64_t hole = 5 * pages[1] + 7 * PAGE;

        cr_assert_eq(map(va, 0, pages[0]), 0);
        maps(va, 0, pages[0]);
        touched = (struct rig_pagetable_touched){0};
        cr_assert_eq(unmap(va + hole, 2 * PAGE), 0);
        maps(va, 0, pages[1]);
        maps(va + 5 * pages[1] - 1, 5 * pages[1] - 1, pages[1]);
        maps(va + 5 * pages[1], 5 * pages[1], PAGE);
        maps(va + hole - 1, hole - 1, PAGE);
        maps_nothing(va + hole);
        maps_nothing(va + hole + 2 * PAGE - 1);
        maps(va + hole + 2 * PAGE, hole + 2 * PAGE, PAGE);
        maps(va + 6 * pages[1], 6 * pages[1], pages[1]);
        maps(va + pages[0] - 1, pages[0] - 1, pages[1]);
        cr_assert_eq(touched.n, 1);
        cr_assert_eq(touched.ranges[0].va, va, "the device may still have the large leaf");
        cr_assert_eq(touched.ranges[0].bytes, pages[0]);
        cr_assert_eq(rig_pagetable_tables(world.pagetable), (size_t)world.format->format->n_levels);
        /* the hole filled, and everything unmapped by one call */
        cr_assert_eq(map(va + hole, 0, 2 * PAGE), 0);
        cr_assert_eq(unmap(va, pages[0]), 0);
        rig_pagetable_reclaim(world.pagetable);
        cr_assert_eq(world.n_tables, 1);
}

FOR_EACH_FORMAT(unmapping_what_was_mapped_needs_no_memory)
{
        const uint64_t *pages = world.format->page_bytes, va = world.format->crossing - 3 * PAGE;

        cr_assert_eq(map(va, 4 * pages[0] - 3 * PAGE, pages[0] + pages[1] + 5 * PAGE), 0);
        cr_assert_eq(map(va + 4 * pages[0], 0, 17 * PAGE), 0);
        world.fail_at = 0;
        cr_assert_eq(unmap(va, pages[0] + pages[1] + 5 * PAGE), 0);
        cr_assert_eq(unmap(va + 4 * pages[0], 17 * PAGE), 0);
}

FOR_EACH_FORMAT(a_table_that_empties_is_unlinked_in_one_write)
{
        uint64_t va = world.format->crossing, writes;

        cr_assert_eq(map(va, PAGE, 2 * MIB), 0); /* 512 leaves of a page */
        cr_assert_eq(map(va + 2 * MIB, PAGE, PAGE), 0);
        writes = world.n_all_writes;
        cr_assert_eq(unmap(va, 2 * MIB), 0);
        cr_assert_leq(world.n_all_writes - writes, 2); /* of an entry of 16 bytes */
}

/* ---------------------------------------------------------------- memory that runs out */

/* Runs `step` with the k-th allocation of a table refused, for each k there is. Return: how many there were.
 */
static unsigned fail_each(int (*step)(uint64_t va))
{
        uint64_t va = world.format->crossing;

        for (unsigned k = 0;; k++) {
                uint64_t digest = world_digest(&world), tables = rig_pagetable_tables(world.pagetable);
                int r;

                world.fail_at = k;
                r = step(va);
                world.fail_at = -1;
                if (r == 0)
                        return k;
                cr_assert_eq(r, -ENOSPC, "%s: %d", world.format->name, r);
                cr_assert_eq(world_digest(&world), digest, "allocation %u failed, and tables changed", k);
                cr_assert_eq(rig_pagetable_tables(world.pagetable), tables);
                cr_assert_eq(world.n_tables, tables, "allocation %u failed, and tables were kept", k);
        }
}

static int step_map(uint64_t va)
{
        return map(va - 3 * PAGE, PAGE, 8 * MIB);
}

static int step_unmap(uint64_t va)
{
        /* a leaf of the largest size is at va: cut in its middle, so on both sides leaves are split */
        return unmap(va + 9 * PAGE, 9 * MIB);
}

static int step_hold(uint64_t va)
{
        uint64_t table;

        return rig_pagetable_hold(
                world.pagetable, va + MIB, world.format->format->n_levels - 1, &touched, &table);
}

FOR_EACH_FORMAT(memory_M3_each_table_that_cannot_be_had_changes_nothing)
{
        unsigned levels = world.format->format->n_levels;

        cr_assert_eq(fail_each(step_hold), levels - 1);
        cr_assert_eq(fail_each(step_map), levels - 1 + 3,
                "all on one side of the crossing, and 3 of 4 on the other");
        cr_assert_eq(map(world.format->crossing + 8 * MIB, 0, PAGE), 0);
        cr_assert_eq(unmap(world.format->crossing - 3 * PAGE, 8 * MIB), 0);
        cr_assert_eq(unmap(world.format->crossing + 8 * MIB, PAGE), 0);
        rig_pagetable_reclaim(world.pagetable);
        cr_assert_eq(rig_pagetable_tables(world.pagetable), levels, "what is held was given back");
}

FOR_EACH_FORMAT(memory_M3_a_split_that_cannot_be_had_changes_nothing)
{
        uint64_t va = world.format->crossing, bytes = world.format->page_bytes[0];

        cr_assert_eq(map(va, 0, bytes), 0);
        cr_assert_eq(fail_each(step_unmap), 3, "one below the leaf, one at each end of the hole");
        maps(va + 9 * PAGE - 1, 9 * PAGE - 1, PAGE);
        maps_nothing(va + 9 * PAGE);
        maps(va + 9 * MIB + 9 * PAGE, 9 * MIB + 9 * PAGE, PAGE);
        maps(va + 10 * MIB, 10 * MIB, 2 * MIB);
}

/* ---------------------------------------------------------------- tables of others */

FOR_EACH_FORMAT(tables_that_are_held_stay)
{
        uint64_t va = world.format->crossing, table, again;
        unsigned levels = world.format->format->n_levels;

        cr_assert_eq(
                rig_pagetable_hold(world.pagetable, va + 5 * MIB + 17, levels - 1, &touched, &table), 0);
        cr_assert_eq(rig_pagetable_tables(world.pagetable), levels);
        cr_assert(touched.n == 1 && touched.tables);
        cr_assert_eq(rig_pagetable_hold(world.pagetable, va + 4 * MIB, levels - 1, NULL, &again), 0);
        cr_assert_eq(again, table);
        cr_assert_eq(rig_pagetable_hold(world.pagetable, va, 0, NULL, &again), 0);
        cr_assert_eq(again, rig_pagetable_root(world.pagetable));
        maps_nothing(va + 4 * MIB);
        cr_assert_eq(map(va + 4 * MIB, 4 * MIB, 2 * MIB), 0);
        maps(va + 4 * MIB, 4 * MIB, PAGE); /* below the table that is there */
        cr_assert_eq(unmap(va + 4 * MIB, 2 * MIB), 0);
        maps_nothing(va + 4 * MIB);
        rig_pagetable_reclaim(world.pagetable);
        cr_assert_eq(rig_pagetable_tables(world.pagetable), levels);
        cr_assert_eq(map(va, 0, 2 * MIB), 0);
        refuses(-EEXIST, rig_pagetable_hold(world.pagetable, va, levels - 1, &touched, &again));
        refuses(-EINVAL, rig_pagetable_hold(world.pagetable, va, levels, &touched, &again));
        refuses(-EINVAL, rig_pagetable_hold(world.pagetable, UINT64_MAX, 1, &touched, &again));
}

FOR_EACH_FORMAT(a_tree_that_still_maps_gives_back_all_its_tables)
{
        cr_assert_eq(map(world.format->crossing - PAGE, PAGE, 3 * MIB), 0);
        cr_assert_eq(map(world.format->crossing + 8 * MIB, PAGE, 3 * MIB), 0);
        cr_assert_eq(unmap(world.format->crossing + 8 * MIB, 3 * MIB), 0); /* and is not reclaimed */
}

static void all_invalid(uint64_t table, const struct rig_pagetable_level *level)
{
        for (unsigned i = 0; i < 1u << level->bits; i++)
                cr_assert_eq(world_word(&world, table, (uint64_t)i * level->entry_bytes),
                        level->invalid.words[0], "%s: entry %u", world.format->name, i);
}

FOR_EACH_FORMAT(what_maps_nothing_is_the_invalid_entry_of_its_level)
{
        const struct rig_pagetable_format *f = world.format->format;
        uint64_t va = world.format->crossing, table;

        cr_assert_eq(rig_pagetable_hold(world.pagetable, va, f->n_levels - 1, NULL, &table), 0);
        all_invalid(table, &f->levels[f->n_levels - 1]);
        cr_assert_eq(map(va, 0, 2 * MIB), 0);
        cr_assert_eq(world_word(&world, table, 8) & 1, 1);
        cr_assert_eq(unmap(va, 2 * MIB), 0);
        all_invalid(table, &f->levels[f->n_levels - 1]);
}

/* ---------------------------------------------------------------- formats */

static int new_of(const struct rig_pagetable_format *format)
{
        struct rig_pagetable *pagetable = NULL;
        int r = rig_pagetable_new(format, &world_ops, &world, &pagetable);

        cr_assert_null(pagetable);
        return r;
}

Test(pagetable, what_is_no_format_is_refused)
{
        struct rig_pagetable_format good, f;

        begin(&world_formats[WORLD_X86_64]);
        good = *world.format->format;
        for (unsigned i = 0; i < 9; i++) {
                f = good;
                switch (i) {
                case 0:
                        f.n_levels = 0;
                        break;
                case 1:
                        f.n_levels = RIG_PAGETABLE_LEVELS + 1;
                        break;
                case 2:
                        f.levels[1].shift = 31;
                        break;
                case 3:
                        f.levels[2].bits = 8;
                        break;
                case 4:
                        f.levels[0].entry_bytes = 4;
                        break;
                case 5:
                        f.levels[3].leaves = false;
                        break;
                case 6:
                        f.levels[0].bits = 25;
                        break;
                case 7:
                        f.start = 17;
                        break;
                case 8:
                        f.start = -(UINT64_C(1) << 47);
                        break;
                }
                cr_assert_eq(new_of(&f), -EINVAL, "mistake %u", i);
        }
        world.fail_at = 0;
        cr_assert_eq(new_of(&good), -ENOSPC);
        world.fail_at = -1;
        end();
}

/* ---------------------------------------------------------------- what to invalidate */

Test(touched, ranges_that_meet_are_one_and_stay_in_order)
{
        struct rig_pagetable_touched t = {0};

        rig_pagetable_touch(&t, 8 * PAGE, PAGE);
        rig_pagetable_touch(&t, 2 * PAGE, PAGE);
        rig_pagetable_touch(&t, 4 * PAGE, PAGE);
        rig_pagetable_touch(&t, 3 * PAGE, 0);
        cr_assert_eq(t.n, 3);
        rig_pagetable_touch(&t, 3 * PAGE, PAGE);
        cr_assert_eq(t.n, 2);
        cr_assert(t.ranges[0].va == 2 * PAGE && t.ranges[0].bytes == 3 * PAGE);
        rig_pagetable_touch(&t, PAGE, 100 * PAGE);
        cr_assert_eq(t.n, 1);
        cr_assert(t.ranges[0].va == PAGE && t.ranges[0].bytes == 100 * PAGE);
        rig_pagetable_touch(&t, -PAGE, PAGE);
        rig_pagetable_touch(&t, -(2 * PAGE), PAGE);
        cr_assert_eq(t.n, 2);
        cr_assert(t.ranges[1].va == -(2 * PAGE) && t.ranges[1].bytes == 2 * PAGE);
}

Test(touched, the_nearest_become_one_where_there_is_no_room)
{
        struct rig_pagetable_touched t = {0};

        for (uint64_t i = 0; i <= RIG_PAGETABLE_TOUCHED; i++)
                rig_pagetable_touch(&t, (10 * i + (i == 9 ? 3 : 0)) * PAGE, PAGE);
        cr_assert_eq(t.n, RIG_PAGETABLE_TOUCHED);
        for (unsigned i = 0; i < t.n; i++)
                cr_assert_eq(t.ranges[i].bytes, i == 9 ? 8 * PAGE : PAGE, "range %u", i);
}

Test(touched, what_was_touched_is_covered_however_much_it_is)
{
        enum { PAGES = 500 };
        uint64_t random = 4711;

        for (unsigned round = 0; round < 200; round++) {
                struct rig_pagetable_touched t = {0};
                bool pages[PAGES] = {0}, covered[PAGES] = {0};

                for (unsigned i = 0; i < 60; i++) {
                        unsigned from = (unsigned)random_below(&random, PAGES - 4),
                                 n = 1 + (unsigned)random_below(&random, 4);

                        rig_pagetable_touch(&t, from * PAGE, n * PAGE);
                        for (unsigned p = from; p < from + n; p++)
                                pages[p] = true;
                }
                cr_assert_leq(t.n, RIG_PAGETABLE_TOUCHED);
                for (unsigned i = 0; i < t.n; i++) {
                        cr_assert(i == 0 || t.ranges[i].va > t.ranges[i - 1].va + t.ranges[i - 1].bytes);
                        for (unsigned p = 0; p < t.ranges[i].bytes / PAGE; p++)
                                covered[t.ranges[i].va / PAGE + p] = true;
                }
                for (unsigned p = 0; p < PAGES; p++)
                        cr_assert(covered[p] || !pages[p], "page %u is not covered", p);
        }
}
