/* SPDX-License-Identifier: ISC */
/*
 * Page tables by chance: random maps and unmaps against a flat model, which has for each page of a window
 * where it is and with which flags. After each step everything the reader finds must be as the model has it,
 * in each format; allocations fail at random and must change nothing; what changed must be in the list of
 * what to invalidate; nothing is given back before it may be; and at the end all tables are back.
 *
 * The other half looks from the device: at each barrier, with any part of the writes since the last one seen
 * and the rest not yet, each page must be as it was or as it will be.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/memory/pagetable-world.h"
#include "tests/memory/random.h"

#define PAGE   UINT64_C(4096)
#define WINDOW 327680u           /* pages: 1.25 GiB */
#define BELOW  (WINDOW * 3 / 5u) /* of them below the crossing */
#define NONE   UINT64_MAX

struct page {
        uint64_t address; /* NONE: not mapped */
        uint64_t flags;
};

struct trial {
        struct world world;
        struct rig_pagetable_touched touched;
        struct page *pages, *before; /* before the step that is being made */
        uint64_t random;
        unsigned first, n; /* pages of that step */
        unsigned n_maps, n_unmaps, n_refused;
};

static uint64_t va_of(const struct trial *t, unsigned page)
{
        return t->world.format->crossing + page * PAGE - BELOW * PAGE;
}

static bool same(const struct page *page, int r, uint64_t address, uint64_t flags)
{
        return r == 0 ? page->address == address && page->flags == flags : page->address == NONE;
}

/* Everything in [first, first + n) is as the model has it. */
static void check(const struct trial *t, unsigned first, unsigned n)
{
        for (unsigned p = first; p < first + n;) {
                uint64_t va = va_of(t, p);
                struct rig_walk walk;
                int r = world_walk(&t->world, va, &walk);
                uint64_t flags = world_flags(&t->world, &walk);

                cr_assert(r == 0 || r == -EFAULT, "%s: %#lx: %s", t->world.format->name, va, walk.fault);
                /* what one entry says of all pages it stands for */
                do {
                        cr_assert(same(&t->pages[p], r, walk.address, flags),
                                "%s: page %u: found %#lx (%d), not %#lx", t->world.format->name, p,
                                walk.address, r, t->pages[p].address);
                        walk.address += PAGE;
                        va += PAGE;
                        p++;
                } while (p < first + n && va & (walk.page_bytes - 1));
        }
}

/* ---------------------------------------------------------------- steps */

/* Part of the window: often aligned as large leaves are. */
static void pick_pages(struct trial *t)
{
        static const unsigned units[] = {1, 16, 512, 512, 131072};
        unsigned unit = units[random_below(&t->random, 5)];

        t->first = (unsigned)random_below(&t->random, WINDOW) / unit * unit;
        t->first += BELOW % unit; /* the crossing is aligned, the window is not */
        if (t->first >= WINDOW)
                t->first = WINDOW - 1;
        t->n = 1 + (unsigned)random_skewed(&t->random, WINDOW);
        if (random_below(&t->random, 2))
                t->n = RIG_MAX(t->n / unit * unit, 1u);
        t->n = RIG_MIN(t->n, WINDOW - t->first);
}

/* Physical runs for the pages that were picked: often as aligned as their addresses. */
static size_t pick_runs(struct trial *t, struct rig_pagetable_run runs[4], uint64_t flags)
{
        size_t n = 0;

        for (unsigned p = 0; p < t->n; n++) {
                unsigned pages = n == 3 ? t->n - p : 1 + (unsigned)random_skewed(&t->random, t->n - p);
                uint64_t va = va_of(t, t->first + p);
                uint64_t address = random_below(&t->random, UINT64_C(1) << 35) / PAGE * PAGE;

                if (random_below(&t->random, 4))
                        address = (address & ~((UINT64_C(1) << 30) - 1)) | (va & ((UINT64_C(1) << 30) - 1));
                if (n > 0 && random_below(&t->random, 3) == 0)
                        address = runs[n - 1].address + runs[n - 1].bytes;
                runs[n] = (struct rig_pagetable_run){address, pages * PAGE};
                for (unsigned i = 0; i < pages; i++)
                        t->pages[t->first + p + i] = (struct page){address + i * PAGE, flags};
                p += pages;
        }
        return n;
}

static bool any_mapped(const struct trial *t, bool mapped)
{
        for (unsigned p = t->first; p < t->first + t->n; p++)
                if ((t->before[p].address != NONE) == mapped)
                        return true;
        return false;
}

/* Makes a step, now and then first with an allocation that fails. Return: what it said. */
static int make(struct trial *t, const struct rig_pagetable_run *runs, size_t n_runs, uint64_t flags)
{
        uint64_t va = va_of(t, t->first), digest, tables = rig_pagetable_tables(t->world.pagetable);
        struct rig_pagetable *pt = t->world.pagetable;
        unsigned n_freed = t->world.n_freed;
        int r;

        if (random_below(&t->random, 4) == 0) {
                t->world.fail_at = (long)random_below(&t->random, 4);
                digest = world_digest(&t->world);
                r = n_runs ? rig_pagetable_map(pt, va, runs, n_runs, flags, &t->touched)
                           : rig_pagetable_unmap(pt, va, t->n * PAGE, &t->touched);
                t->world.fail_at = -1;
                if (r != -ENOSPC)
                        return r;
                cr_assert_eq(world_digest(&t->world), digest);
                cr_assert_eq(rig_pagetable_tables(pt), tables);
                n_freed = t->world.n_freed; /* of those that were made in vain */
        }
        r = n_runs ? rig_pagetable_map(pt, va, runs, n_runs, flags, &t->touched)
                   : rig_pagetable_unmap(pt, va, t->n * PAGE, &t->touched);
        cr_assert_eq(t->world.n_freed, n_freed, "a table was freed that the device may still walk");
        return r;
}

static void step_map(struct trial *t)
{
        uint64_t flags = random_below(&t->random, 16) & t->world.format->flags;
        struct rig_pagetable_run runs[4];
        size_t n_runs;
        int r;

        pick_pages(t);
        n_runs = pick_runs(t, runs, flags);
        r = make(t, runs, n_runs, flags);
        cr_assert_eq(r, any_mapped(t, true) ? -EEXIST : 0, "map: %d", r);
        t->n_maps += r == 0;
}

/* Unmaps what is mapped from some page on, or a part of it, or whatever there is. */
static void step_unmap(struct trial *t)
{
        unsigned how = (unsigned)random_below(&t->random, 4), end;
        int r;

        pick_pages(t);
        if (how) {
                while (t->first < WINDOW && t->before[t->first].address == NONE)
                        t->first++;
                if (t->first == WINDOW) {
                        t->first = t->n = 0;
                        return;
                }
                for (end = t->first; end < WINDOW && t->before[end].address != NONE; end++)
                        ;
                t->n = how == 1 ? end - t->first : RIG_MIN(t->n, end - t->first);
        }
        for (unsigned p = t->first; p < t->first + t->n; p++)
                t->pages[p].address = NONE;
        r = make(t, NULL, 0, 0);
        cr_assert_eq(r, any_mapped(t, false) ? -ENOENT : 0, "unmap: %d", r);
        t->n_unmaps += r == 0;
}

/* ---------------------------------------------------------------- what is found, and what is touched */

enum { SAMPLES = 64 };

/* Walks of some pages around those of a step, which is not made yet. */
struct samples {
        unsigned pages[SAMPLES];
        struct rig_walk walks[SAMPLES];
        int results[SAMPLES];
};

static void sample(struct trial *t, struct samples *s)
{
        for (unsigned i = 0; i < SAMPLES; i++) {
                s->pages[i] = (unsigned)random_below(&t->random, WINDOW);
                s->results[i] = world_walk(&t->world, va_of(t, s->pages[i]), &s->walks[i]);
        }
}

static bool is_touched(const struct trial *t, uint64_t va)
{
        for (unsigned i = 0; i < t->touched.n; i++)
                if (va >= t->touched.ranges[i].va &&
                        va - t->touched.ranges[i].va < t->touched.ranges[i].bytes)
                        return true;
        return false;
}

/* What a device kept from before a step is either as it is now, or among what is to be invalidated. */
static void check_touched(struct trial *t, const struct samples *s)
{
        for (unsigned i = 0; i < SAMPLES; i++) {
                uint64_t va = va_of(t, s->pages[i]);
                struct rig_walk now;
                int r = world_walk(&t->world, va, &now);

                if (is_touched(t, va))
                        continue;
                cr_assert_eq(r, s->results[i]);
                cr_assert(r < 0 || (now.page_bytes == s->walks[i].page_bytes &&
                                           now.address == s->walks[i].address),
                        "%#lx changed and is not touched", va);
        }
        for (unsigned p = t->first; p < t->first + t->n; p++)
                if (t->pages[p].address != t->before[p].address)
                        cr_assert(is_touched(t, va_of(t, p)), "page %u is not touched", p);
}

static void one_step(struct trial *t)
{
        unsigned n_done = t->n_maps + t->n_unmaps;
        struct samples samples;

        memcpy(t->before, t->pages, WINDOW * sizeof(*t->pages));
        sample(t, &samples);
        if (random_below(&t->random, 100) < 55)
                step_map(t);
        else
                step_unmap(t);
        if (t->n_maps + t->n_unmaps == n_done) {
                memcpy(t->pages, t->before, WINDOW * sizeof(*t->pages));
                t->n_refused++;
        }
        check(t, t->first, t->n);
        check_touched(t, &samples);
        if (random_below(&t->random, 3) == 0) { /* the device has invalidated all that */
                t->touched = (struct rig_pagetable_touched){0};
                rig_pagetable_reclaim(t->world.pagetable);
                cr_assert_eq(t->world.n_tables, rig_pagetable_tables(t->world.pagetable));
        }
}

/* Unmaps all that is mapped, by calls that take whole stretches of it. */
static void unmap_all(struct trial *t)
{
        for (unsigned p = 0, end; p < WINDOW; p = end) {
                bool mapped = t->pages[p].address != NONE;

                for (end = p; end < WINDOW && (t->pages[end].address != NONE) == mapped; end++)
                        ;
                if (mapped)
                        cr_assert_eq(
                                rig_pagetable_unmap(t->world.pagetable, va_of(t, p), (end - p) * PAGE, NULL),
                                0);
        }
        rig_pagetable_reclaim(t->world.pagetable);
        cr_assert_eq(t->world.n_tables, 1, "%u tables were left", t->world.n_tables);
}

static void trial_begin(struct trial *t, const struct world_format *format, uint64_t seed)
{
        *t = (struct trial){.random = seed};
        world_begin(&t->world, format);
        t->pages = calloc(WINDOW, sizeof(*t->pages));
        t->before = calloc(WINDOW, sizeof(*t->before));
        cr_assert(t->pages && t->before);
        for (unsigned p = 0; p < WINDOW; p++)
                t->pages[p].address = t->before[p].address = NONE;
}

static void trial_end(struct trial *t)
{
        world_end(&t->world);
        free(t->pages);
        free(t->before);
}

static void run_programs(unsigned which)
{
        static struct trial t;

        for (uint64_t seed = 1; seed <= 6; seed++) {
                trial_begin(&t, &world_formats[which], seed);
                for (unsigned i = 1; i <= 200; i++) {
                        one_step(&t);
                        if (i % 25 == 0)
                                check(&t, 0, WINDOW);
                }
                cr_log_info("%s, seed %lu: %u maps, %u unmaps, %u refused", t.world.format->name, seed,
                        t.n_maps, t.n_unmaps, t.n_refused);
                cr_assert(t.n_maps > 20 && t.n_unmaps > 20, "this seed tests nothing");
                unmap_all(&t);
                trial_end(&t);
        }
}

Test(pagetable_property, random_programs_are_as_the_model_in_x86_64, .timeout = 120)
{
        run_programs(WORLD_X86_64);
}

Test(pagetable_property, random_programs_are_as_the_model_in_nvidia_v2, .timeout = 120)
{
        run_programs(WORLD_NVIDIA_V2);
}

Test(pagetable_property, random_programs_are_as_the_model_in_gfx12, .timeout = 120)
{
        run_programs(WORLD_GFX12);
}

/* ---------------------------------------------------------------- what the device sees */

static struct trial *watched;

/* A page is as it was, or as it will be; one that the step is not about is both. */
static void check_half_way(struct trial *t, unsigned page)
{
        struct rig_walk walk;
        int r = world_walk(&t->world, va_of(t, page), &walk);
        uint64_t flags = world_flags(&t->world, &walk);

        cr_assert(r == 0 || r == -EFAULT, "%s: page %u: half-way: %s", t->world.format->name, page,
                walk.fault);
        cr_assert(same(&t->before[page], r, walk.address, flags) ||
                          same(&t->pages[page], r, walk.address, flags),
                "%s: page %u: half-way at %#lx (%d)", t->world.format->name, page, walk.address, r);
}

/* At a barrier: some of the writes since the last one have not been seen. */
static void watch(struct world *world)
{
        struct trial *t = watched;

        for (unsigned round = 0; round < 12; round++) {
                world_hide(world, &t->random, random_below(&t->random, 5));
                for (unsigned i = 0; i < 24; i++) {
                        unsigned around = t->first + (unsigned)random_below(&t->random, t->n + 8);

                        check_half_way(t, RIG_MIN(around < 4 ? 0 : around - 4, WINDOW - 1));
                        check_half_way(t, (unsigned)random_below(&t->random, WINDOW));
                }
                check_half_way(t, t->first);
                check_half_way(t, t->first + t->n - 1);
                world_show(world);
        }
}

/* Of a step that is refused nothing may be seen at all, so the model goes back before anyone looks. */
static void one_watched_step(struct trial *t)
{
        struct rig_pagetable_run runs[4];
        uint64_t flags = random_below(&t->random, 16) & t->world.format->flags;
        bool map = random_below(&t->random, 2);
        size_t n_runs;
        int r;

        memcpy(t->before, t->pages, WINDOW * sizeof(*t->pages));
        pick_pages(t);
        t->n = RIG_MIN(t->n, 3000u);
        if (any_mapped(t, map))
                map = !map;
        if (any_mapped(t, map))
                return;
        n_runs = map ? pick_runs(t, runs, flags) : 0;
        for (unsigned p = t->first; !map && p < t->first + t->n; p++)
                t->pages[p].address = NONE;
        r = n_runs ? rig_pagetable_map(t->world.pagetable, va_of(t, t->first), runs, n_runs, flags, NULL)
                   : rig_pagetable_unmap(t->world.pagetable, va_of(t, t->first), t->n * PAGE, NULL);
        cr_assert_eq(r, 0);
        t->n_maps += map;
        t->n_unmaps += !map;
        if (random_below(&t->random, 2))
                rig_pagetable_reclaim(t->world.pagetable);
}

/* Tables are held in a tree that maps nothing, and goes on mapping nothing. */
static void watched_holds(struct trial *t)
{
        uint64_t table;

        for (unsigned p = 0; p < WINDOW; p++)
                t->pages[p].address = t->before[p].address = NONE;
        t->n = 8;
        t->world.watch = watch;
        for (unsigned i = 0; i < 30; i++) {
                unsigned level = (unsigned)random_below(&t->random, t->world.format->format->n_levels);

                t->first = (unsigned)random_below(&t->random, WINDOW - t->n);
                cr_assert_eq(
                        rig_pagetable_hold(t->world.pagetable, va_of(t, t->first), level, NULL, &table), 0);
        }
        t->world.watch = NULL;
}

Test(pagetable_property, a_device_that_sees_writes_in_any_order_never_sees_half_a_step, .timeout = 120)
{
        static struct trial t;

        watched = &t;
        for (unsigned which = 0; which < _WORLD_FORMAT_MAX; which++) {
                trial_begin(&t, &world_formats[which], 4711 + which);
                t.world.watch = watch;
                for (unsigned i = 0; i < 250; i++)
                        one_watched_step(&t);
                cr_log_info("%s: %u maps, %u unmaps", t.world.format->name, t.n_maps, t.n_unmaps);
                cr_assert(t.n_maps > 20 && t.n_unmaps > 10, "this seed tests nothing");
                t.world.watch = NULL;
                unmap_all(&t);
                watched_holds(&t);
                trial_end(&t);
        }
}
