/* SPDX-License-Identifier: ISC */
/*
 * Ranges handed out: M3. Random programs run beside a model, an array with a number for each unit, which
 * knows nothing of classes and indexes: what it holds free is free, and a request it has no place for is
 * the only one that may be refused.
 */
#include <criterion/criterion.h>

#include "daemon/memory/ranges.h"
#include "tests/memory/random.h"

#define PAGE  UINT64_C(4096)
#define MIB   (UINT64_C(1) << 20)
#define UNITS 1024 /* most that a model has */

static struct rig_ranges *ranges;

static void new (uint64_t start, uint64_t bytes, uint64_t granularity)
{
        cr_assert_eq(rig_ranges_new(start, bytes, granularity, &ranges), 0);
}

static void teardown(void)
{
        ranges = rig_ranges_free(ranges);
}

TestSuite(ranges, .fini = teardown);

static struct rig_ranges_stats stats(void)
{
        struct rig_ranges_stats s;

        rig_ranges_stats(ranges, &s);
        return s;
}

static uint64_t alloc(uint64_t bytes, uint64_t alignment)
{
        uint64_t address;
        int r = rig_ranges_alloc(ranges, bytes, alignment, &address);

        cr_assert_eq(r, 0, "%lu bytes at %lu: %d", bytes, alignment, r);
        return address;
}

static void same_stats(const struct rig_ranges_stats *before)
{
        struct rig_ranges_stats after = stats();

        cr_assert_eq(after.free_bytes, before->free_bytes);
        cr_assert_eq(after.largest_free_bytes, before->largest_free_bytes);
        cr_assert_eq(after.n_allocations, before->n_allocations);
        cr_assert_eq(after.n_holes, before->n_holes);
}

/* ---------------------------------------------------------------- by hand */

Test(ranges, a_range_that_cannot_be_is_refused)
{
        cr_assert_eq(rig_ranges_new(0, 0, 1, &ranges), -EINVAL);
        cr_assert_eq(rig_ranges_new(0, PAGE, 0, &ranges), -EINVAL);
        cr_assert_eq(rig_ranges_new(0, 3 * PAGE, 3 * PAGE, &ranges), -EINVAL);
        cr_assert_eq(rig_ranges_new(1, PAGE, PAGE, &ranges), -EINVAL);
        cr_assert_eq(rig_ranges_new(0, PAGE + 1, PAGE, &ranges), -EINVAL);
        cr_assert_eq(rig_ranges_new(-PAGE, 2 * PAGE, PAGE, &ranges), -EINVAL, "it wraps at 2^64");
        cr_assert_null(ranges);
}

Test(ranges, a_range_may_end_at_2_to_the_64)
{
        new (-(4 * PAGE), 4 * PAGE, PAGE);
        for (unsigned i = 0; i < 4; i++)
                cr_assert_geq(alloc(PAGE, 1), -(4 * PAGE));
        cr_assert_eq(rig_ranges_alloc(ranges, 1, 1, &(uint64_t){0}), -ENOMEM);
        cr_assert_eq(rig_ranges_return(ranges, -PAGE), 0);
        cr_assert_eq(alloc(PAGE, PAGE), -PAGE);
        cr_assert_eq(rig_ranges_return(ranges, -PAGE), 0);
        cr_assert_eq(rig_ranges_alloc_at(ranges, -PAGE, 2 * PAGE), -EINVAL);
        cr_assert_eq(rig_ranges_alloc_at(ranges, -PAGE, PAGE), 0);
}

Test(ranges, the_whole_of_64_bits_less_one_is_a_range)
{
        new (0, UINT64_MAX, 1);
        cr_assert_eq(alloc(UINT64_C(1) << 63, UINT64_C(1) << 63), 0);
        cr_assert_eq(rig_ranges_alloc(ranges, 1, UINT64_C(1) << 63, &(uint64_t){0}), 0);
        cr_assert_eq(rig_ranges_alloc(ranges, 1, UINT64_C(1) << 63, &(uint64_t){0}), -ENOMEM);
        cr_assert_eq(rig_ranges_alloc(ranges, UINT64_MAX, 1, &(uint64_t){0}), -ENOMEM);
        cr_assert_eq(rig_ranges_alloc_at(ranges, UINT64_MAX, 1), -EINVAL);
        cr_assert_eq(rig_ranges_alloc_at(ranges, UINT64_MAX - 1, 1), 0);
        cr_assert_eq(stats().n_allocations, 3);
}

Test(ranges, a_range_of_one_unit_is_taken_and_given_back)
{
        new (7 * PAGE, PAGE, PAGE);
        cr_assert_eq(alloc(1, 1), 7 * PAGE);
        cr_assert_eq(rig_ranges_alloc(ranges, 1, 1, &(uint64_t){0}), -ENOMEM);
        cr_assert_eq(stats().n_holes, 0);
        cr_assert_eq(stats().largest_free_bytes, 0);
        cr_assert_eq(rig_ranges_return(ranges, 7 * PAGE), 0);
        cr_assert_eq(stats().largest_free_bytes, PAGE);
}

Test(ranges, requests_that_mean_nothing_are_refused)
{
        struct rig_ranges_stats before;
        uint64_t address = 0x4711;

        new (16 * PAGE, 16 * PAGE, PAGE);
        before = stats();
        cr_assert_eq(rig_ranges_alloc(ranges, 0, 1, &address), -EINVAL);
        cr_assert_eq(rig_ranges_alloc(ranges, PAGE, 0, &address), -EINVAL);
        cr_assert_eq(rig_ranges_alloc(ranges, PAGE, 3 * PAGE, &address), -EINVAL);
        cr_assert_eq(rig_ranges_alloc(ranges, 17 * PAGE, 1, &address), -ENOMEM);
        cr_assert_eq(rig_ranges_alloc(ranges, UINT64_MAX, 1, &address), -ENOMEM);
        cr_assert_eq(rig_ranges_alloc(ranges, UINT64_MAX, UINT64_C(1) << 63, &address), -ENOMEM);
        cr_assert_eq(rig_ranges_alloc(ranges, PAGE, 64 * PAGE, &address), -ENOMEM, "no multiple is in it");
        cr_assert_eq(rig_ranges_alloc_at(ranges, 16 * PAGE, 0), -EINVAL);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 15 * PAGE, PAGE), -EINVAL);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 16 * PAGE + 1, 1), -EINVAL);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 31 * PAGE, PAGE + 1), -EINVAL);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 16 * PAGE, UINT64_MAX), -EINVAL);
        cr_assert_eq(address, 0x4711);
        same_stats(&before);
}

Test(ranges, an_alignment_larger_than_the_range_is_met_where_a_multiple_lies_in_it)
{
        new (64 * PAGE, 16 * PAGE, PAGE);
        cr_assert_eq(alloc(PAGE, 64 * PAGE), 64 * PAGE);
        cr_assert_eq(rig_ranges_alloc(ranges, PAGE, 64 * PAGE, &(uint64_t){0}), -ENOMEM);
}

Test(ranges, what_was_not_taken_is_not_given_back)
{
        uint64_t address;

        new (PAGE, 64 * PAGE, PAGE);
        address = alloc(4 * PAGE, 1);
        cr_assert_eq(rig_ranges_return(ranges, address + PAGE), -EINVAL, "its middle");
        cr_assert_eq(rig_ranges_return(ranges, address + 1), -EINVAL);
        cr_assert_eq(rig_ranges_return(ranges, address + 4 * PAGE), -EINVAL, "a hole");
        cr_assert_eq(rig_ranges_return(ranges, 0), -EINVAL);
        cr_assert_eq(rig_ranges_return(ranges, 65 * PAGE), -EINVAL);
        cr_assert_eq(rig_ranges_return(ranges, UINT64_MAX), -EINVAL);
        cr_assert_eq(stats().free_bytes, 60 * PAGE);
        cr_assert_eq(rig_ranges_return(ranges, address), 0);
        cr_assert_eq(rig_ranges_return(ranges, address), -EINVAL, "twice");
        cr_assert_eq(stats().free_bytes, 64 * PAGE);
}

Test(ranges, an_address_leads_to_the_allocation_it_lies_in)
{
        uint64_t address, found = 0, bytes = 0;

        new (PAGE, 64 * PAGE, PAGE);
        address = alloc(3 * PAGE - 5, 1);
        cr_assert_eq(rig_ranges_find(ranges, address + 2 * PAGE + 17, &found, &bytes), 0);
        cr_assert_eq(found, address);
        cr_assert_eq(bytes, 3 * PAGE);
        cr_assert_eq(rig_ranges_find(ranges, address + 3 * PAGE, &found, &bytes), -ENOENT);
        cr_assert_eq(rig_ranges_find(ranges, 0, &found, &bytes), -ENOENT);
        cr_assert_eq(rig_ranges_find(ranges, 65 * PAGE, &found, &bytes), -ENOENT);
}

Test(ranges, a_hole_is_filled_again_by_what_it_was_cut_for)
{
        uint64_t buffers[16];

        new (0, 1024 * MIB, PAGE);
        for (unsigned i = 0; i < 16; i++)
                buffers[i] = alloc(2 * MIB, 2 * MIB);
        cr_assert_eq(rig_ranges_return(ranges, buffers[5]), 0);
        cr_assert_eq(rig_ranges_return(ranges, buffers[9]), 0);
        for (unsigned i = 0; i < 2; i++)
                cr_assert_leq(alloc(2 * MIB, 2 * MIB), buffers[9], "the end was cut while holes were there");
        cr_assert_eq(stats().n_holes, 1);
}

Test(ranges, what_alignment_skips_stays_free)
{
        new (PAGE, 1024 * MIB - PAGE, PAGE);
        cr_assert_eq(alloc(2 * MIB, 2 * MIB), 2 * MIB);
        cr_assert_eq(stats().free_bytes, 1022 * MIB - PAGE);
        cr_assert_eq(alloc(2 * MIB - PAGE, 1), PAGE);
        cr_assert_eq(stats().n_holes, 1);
}

Test(ranges, memory_M3_the_last_hole_that_fits_is_found_among_those_that_do_not)
{
        uint64_t gaps[40];

        /* holes of one class (64 units have two sizes to a class): 40 of 1000 units, one of 1003 */
        new (0, 100000, 1);
        for (unsigned i = 0; i < 40; i++) {
                gaps[i] = alloc(i == 7 ? 1003 : 1000, 1);
                alloc(1, 1);
        }
        alloc(stats().largest_free_bytes, 1);
        for (unsigned i = 0; i < 40; i++)
                cr_assert_eq(rig_ranges_return(ranges, gaps[i]), 0);
        cr_assert_eq(stats().largest_free_bytes, 1003);
        cr_assert_eq(rig_ranges_alloc(ranges, 1004, 1, &(uint64_t){0}), -ENOMEM);
        cr_assert_eq(alloc(1001, 1), gaps[7]);
        cr_assert_eq(rig_ranges_alloc(ranges, 1001, 1, &(uint64_t){0}), -ENOMEM);
}

Test(ranges, without_a_bound_for_its_books_a_request_changes_nothing)
{
        struct rig_ranges_stats before;

        new (0, 64 * PAGE, PAGE);
        rig_ranges_limit(ranges, 3);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 8 * PAGE, PAGE), 0); /* hole, allocation, hole */
        before = stats();
        cr_assert_eq(rig_ranges_alloc(ranges, PAGE, 1, &(uint64_t){0}), -ENOMEM);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 20 * PAGE, PAGE), -ENOMEM);
        same_stats(&before);
        cr_assert_eq(alloc(8 * PAGE, 1), 0, "a hole that is filled needs no books");
        cr_assert_eq(rig_ranges_return(ranges, 0), 0);
        rig_ranges_limit(ranges, 4);
        cr_assert_eq(rig_ranges_alloc_at(ranges, 20 * PAGE, PAGE), -ENOMEM, "it needs two");
        cr_assert_eq(rig_ranges_alloc_at(ranges, 0, PAGE), 0);
        cr_assert_eq(rig_ranges_return(ranges, 0), 0);
        cr_assert_eq(rig_ranges_return(ranges, 8 * PAGE), 0);
        rig_ranges_limit(ranges, 1);
        cr_assert_eq(alloc(64 * PAGE, 1), 0);
}

/* ---------------------------------------------------------------- the model */

struct model {
        uint64_t start, granularity;
        unsigned units;
        unsigned owner[UNITS]; /* 0: free */
        unsigned last_owner;
        uint64_t live[UNITS]; /* addresses */
        unsigned n_live;
};

static uint64_t model_address(const struct model *m, unsigned unit)
{
        return m->start + unit * m->granularity;
}

static bool model_free(const struct model *m, unsigned from, uint64_t units)
{
        for (unsigned u = from; u < from + units; u++)
                if (m->owner[u])
                        return false;
        return true;
}

/* Whether there is any place for a request. */
static bool model_fits(const struct model *m, uint64_t units, uint64_t alignment)
{
        for (unsigned u = 0; units <= m->units && u <= m->units - units; u++)
                if (model_address(m, u) % alignment == 0 && model_free(m, u, units))
                        return true;
        return false;
}

static void model_take(struct model *m, uint64_t address, uint64_t units)
{
        uint64_t unit = (address - m->start) / m->granularity;

        cr_assert(address >= m->start && (address - m->start) % m->granularity == 0);
        cr_assert(unit < m->units && units <= m->units - unit, "out of the range");
        cr_assert(model_free(m, (unsigned)unit, units), "what was taken was given again");
        m->last_owner++;
        for (unsigned u = 0; u < units; u++)
                m->owner[unit + u] = m->last_owner;
        m->live[m->n_live++] = address;
}

static void model_return(struct model *m, unsigned which)
{
        uint64_t unit = (m->live[which] - m->start) / m->granularity;
        unsigned owner = m->owner[unit];

        for (uint64_t u = unit; u < m->units && m->owner[u] == owner; u++)
                m->owner[u] = 0;
        m->live[which] = m->live[--m->n_live];
}

/* The books say what the model has: nothing lost, and holes that touch are one. */
static void model_check(const struct model *m)
{
        struct rig_ranges_stats s = stats();
        unsigned holes = 0, free_units = 0, largest = 0, run = 0;

        for (unsigned u = 0; u < m->units; u++) {
                run = m->owner[u] ? 0 : run + 1;
                free_units += run > 0;
                holes += run == 1;
                largest = RIG_MAX(largest, run);
        }
        cr_assert_eq(s.bytes, m->units * m->granularity);
        cr_assert_eq(s.free_bytes, free_units * m->granularity);
        cr_assert_eq(s.largest_free_bytes, largest * m->granularity);
        cr_assert_eq(s.n_holes, holes);
        cr_assert_eq(s.n_allocations, m->n_live);
}

static void step_alloc(struct model *m, uint64_t *random)
{
        uint64_t bytes = 1 + random_skewed(random, m->units * m->granularity * 9 / 8), address;
        uint64_t alignment = UINT64_C(1) << random_below(random, random_below(random, 3) ? 4 : 24);
        uint64_t units = (bytes + m->granularity - 1) / m->granularity;
        int r = rig_ranges_alloc(ranges, bytes, alignment, &address);

        if (r == 0) {
                cr_assert_eq(address % alignment, 0);
                model_take(m, address, units);
                return;
        }
        cr_assert_eq(r, -ENOMEM);
        cr_assert_not(model_fits(m, units, alignment), "%lu units at %lu have a place", units, alignment);
}

static void step_alloc_at(struct model *m, uint64_t *random)
{
        unsigned unit = (unsigned)random_below(random, m->units);
        uint64_t units = 1 + random_skewed(random, m->units);
        uint64_t bytes = units * m->granularity - random_below(random, m->granularity);
        bool inside = units <= m->units - unit;
        int r = rig_ranges_alloc_at(ranges, model_address(m, unit), bytes);

        cr_assert_eq(r, !inside ? -EINVAL : model_free(m, unit, units) ? 0 : -EBUSY);
        if (r == 0)
                model_take(m, model_address(m, unit), units);
}

/* Gives back something, or asks for that of an address where nothing begins. */
static void step_return(struct model *m, uint64_t *random)
{
        unsigned unit = (unsigned)random_below(random, m->units), which;
        bool begins = m->owner[unit] && (unit == 0 || m->owner[unit - 1] != m->owner[unit]);

        if (!begins)
                cr_assert_eq(rig_ranges_return(ranges, model_address(m, unit)), -EINVAL);
        if (m->n_live == 0)
                return;
        which = (unsigned)random_below(random, m->n_live);
        cr_assert_eq(rig_ranges_return(ranges, m->live[which]), 0);
        model_return(m, which);
}

static void step_find(const struct model *m, uint64_t *random)
{
        unsigned unit = (unsigned)random_below(random, m->units), from = unit, to = unit;
        uint64_t within = random_below(random, m->granularity), address, bytes;
        int r = rig_ranges_find(ranges, model_address(m, unit) + within, &address, &bytes);

        cr_assert_eq(r, m->owner[unit] ? 0 : -ENOENT);
        if (r < 0)
                return;
        while (from > 0 && m->owner[from - 1] == m->owner[unit])
                from--;
        while (to < m->units && m->owner[to] == m->owner[unit])
                to++;
        cr_assert_eq(address, model_address(m, from));
        cr_assert_eq(bytes, (to - from) * m->granularity);
}

static void model_begin(struct model *m, uint64_t *random)
{
        uint64_t bytes;

        m->granularity = UINT64_C(1) << random_below(random, 14);
        m->units = 1 + (unsigned)random_skewed(random, UNITS);
        bytes = m->units * m->granularity;
        switch (random_below(random, 3)) {
        case 0:
                m->start = -bytes; /* to 2^64 */
                break;
        case 1:
                m->start = 0;
                break;
        default:
                m->start = random_next(random) / 2 / m->granularity * m->granularity;
        }
        new (m->start, bytes, m->granularity);
}

static void run_program(uint64_t seed)
{
        static struct model m;
        uint64_t random = seed, takes;

        m = (struct model){0};
        model_begin(&m, &random);
        for (unsigned i = 0; i < 600; i++) {
                takes = i / 100 % 2 ? 3 : 6; /* it fills, it empties */
                if (random_below(&random, 10) < takes)
                        random_below(&random, 4) ? step_alloc(&m, &random) : step_alloc_at(&m, &random);
                else
                        step_return(&m, &random);
                step_find(&m, &random);
                model_check(&m);
        }
        while (m.n_live) {
                cr_assert_eq(rig_ranges_return(ranges, m.live[0]), 0);
                model_return(&m, 0);
                model_check(&m);
        }
        cr_assert_eq(stats().n_holes, 1, "seed %lu: not one hole at the end", seed);
        ranges = rig_ranges_free(ranges);
}

Test(ranges, memory_M3_random_programs_are_as_the_model, .timeout = 120)
{
        for (uint64_t seed = 1; seed <= 1500; seed++)
                run_program(seed);
}

/* ---------------------------------------------------------------- what it costs */

/* The most steps that any call took with `n` allocations of 1 to 64 pages there, every other one given back.
 */
static uint64_t most_steps(unsigned n)
{
        uint64_t *live = calloc(n, sizeof(*live)), random = n, most = 0, steps;

        cr_assert_not_null(live);
        new (0, UINT64_C(1) << 40, PAGE); /* 28 bits of place, whatever n is */
        for (unsigned i = 0; i < n; i++)
                live[i] = alloc(PAGE * (1 + random_below(&random, 64)), 1);
        for (unsigned i = 0; i < n; i += 2)
                cr_assert_eq(rig_ranges_return(ranges, live[i]), 0);
        for (unsigned i = 0; i < 20000; i++) {
                unsigned which = (unsigned)random_below(&random, n) | 1;

                steps = stats().steps;
                cr_assert_eq(rig_ranges_return(ranges, live[which]), 0);
                most = RIG_MAX(most, stats().steps - steps);
                steps = stats().steps;
                live[which] = alloc(PAGE * (1 + random_below(&random, 64)),
                        UINT64_C(1) << (12 + random_below(&random, 10)));
                most = RIG_MAX(most, stats().steps - steps);
        }
        free(live);
        ranges = rig_ranges_free(ranges);
        return most;
}

/*
 * The timeout is that of the test before: Criterion 2.4.1 loses memory where two differ.
 *
 * A call walks the index at most four times (it finds a block, and makes or unmakes two), each walk with two
 * legs, and looks at 9 holes. 28 bits make 28 steps of a leg at most.
 */
Test(ranges, what_a_call_costs_is_bounded_by_the_bits_of_an_address, .timeout = 120)
{
        static const unsigned counts[] = {10, 1000, 100000, 400000};

        for (unsigned i = 0; i < RIG_ARRAY_SIZE(counts); i++) {
                uint64_t most = most_steps(counts[i]);

                cr_log_info("%u allocations: at most %lu steps", counts[i], most);
                cr_assert_leq(most, 4 * 2 * 28 + 9, "%u allocations: %lu steps", counts[i], most);
        }
}
