/* SPDX-License-Identifier: ISC */
/* See tests/memory/pagetable-world.h. */
#include "tests/memory/pagetable-world.h"

#include <criterion/criterion.h>

#include "tests/memory/random.h"

#define PAGE_WORDS 512
#define POISON                                                                                              \
        UINT64_C(0x5a5a5a5a5a5a5a5b) /* of tables that are free: valid in each format, and nonsense         \
                                      */

/* ---------------------------------------------------------------- x86-64 */

/* Intel SDM, volume 3A, section 4.5: P, R/W, U/S, PCD, PS, XD; physical addresses of 46 bits here. */
static int x86_table(void *context, unsigned level, uint64_t address, struct rig_pagetable_entry *ret)
{
        ret->words[0] = address | 0x7;
        return address >> 46 ? -EINVAL : 0;
}

static int x86_leaf(
        void *context, unsigned level, uint64_t address, uint64_t flags, struct rig_pagetable_entry *ret)
{
        if (address >> 46)
                return -EINVAL;
        ret->words[0] = address | 0x5 | (flags & WORLD_WRITE ? 0x2 : 0) |
                        (flags & WORLD_UNCACHED ? 0x10 : 0) | (level < 3 ? 0x80 : 0) |
                        (flags & WORLD_EXECUTE ? 0 : UINT64_C(1) << 63);
        return 0;
}

static const struct rig_pagetable_format x86_format = {
        .n_levels = 4,
        .levels = {{39, 9, 8, false}, {30, 9, 8, true}, {21, 9, 8, true}, {12, 9, 8, true}},
        .table = x86_table,
        .leaf = x86_leaf,
};

static int x86_walk(const struct rig_walk_memory *memory, uint64_t root, uint64_t va, struct rig_walk *ret)
{
        return rig_walk_x86_64(memory, root, 46, va >> 47 ? va | UINT64_MAX << 48 : va, ret);
}

/* ---------------------------------------------------------------- NVIDIA */

/* open-gpu-kernel-modules, dev_mmu.h, NV_MMU_VER2_PDE and _DUAL_PDE: APERTURE 1 is video memory. */
static int nv_table(void *context, unsigned level, uint64_t address, struct rig_pagetable_entry *ret)
{
        ret->words[0] = ret->words[1] = 0;
        ret->words[level == 3 ? 1 : 0] = 1u << 1 | address >> 12 << 8; /* level 3: ADDRESS_SMALL */
        return address >> 37 ? -EINVAL : 0;
}

/* NV_MMU_VER2_PTE: VALID, APERTURE 0 video and 2 coherent system, VOL, READ_ONLY, KIND 6. */
static int nv_leaf(
        void *context, unsigned level, uint64_t address, uint64_t flags, struct rig_pagetable_entry *ret)
{
        if (address >> (flags & WORLD_SYSTEM ? 47 : 37))
                return -EINVAL;
        ret->words[0] = 1 | (flags & WORLD_SYSTEM ? 2u << 1 : 0) | (flags & WORLD_UNCACHED ? 1u << 3 : 0) |
                        (flags & WORLD_WRITE ? 0 : 1u << 6) | address >> 12 << 8 | UINT64_C(6) << 56;
        ret->words[1] = 0;
        return 0;
}

/* A PTE that is not valid and has PRIVILEGE: an invalid entry that is not 0, as NVIDIA's own driver has it.
 */
static const struct rig_pagetable_format nv_format = {
        .n_levels = 5,
        .levels = {{47, 2, 8, false}, {38, 9, 8, false}, {29, 9, 8, true}, {21, 8, 16, true},
                {12, 9, 8, true, {{1u << 5, 0}}}},
        .table = nv_table,
        .leaf = nv_leaf,
};

static int nv_walk(const struct rig_walk_memory *memory, uint64_t root, uint64_t va, struct rig_walk *ret)
{
        return rig_walk_nvidia_v2(memory, RIG_WALK_DEVICE, root, va, ret);
}

/* ---------------------------------------------------------------- AMD */

#define GFX12_START UINT64_C(0x200000000000)

/* gmc_v12_0.c, "PDE format" and "PTE format". */
static int gfx12_table(void *context, unsigned level, uint64_t address, struct rig_pagetable_entry *ret)
{
        ret->words[0] = address | 1;
        return address >> 48 ? -EINVAL : 0;
}

static int gfx12_leaf(
        void *context, unsigned level, uint64_t address, uint64_t flags, struct rig_pagetable_entry *ret)
{
        if (address >> 48)
                return -EINVAL;
        ret->words[0] = UINT64_C(1) << 63 | (flags & WORLD_UNCACHED ? UINT64_C(3) << 54 : 0) | address |
                        (flags & WORLD_WRITE ? 1u << 6 : 0) | 1u << 5 |
                        (flags & WORLD_EXECUTE ? 1u << 4 : 0) | (flags & WORLD_SYSTEM ? 3u << 1 : 0) | 1;
        return 0;
}

static const struct rig_pagetable_format gfx12_format = {
        .n_levels = 4,
        .levels = {{39, 9, 8, false}, {30, 9, 8, true}, {21, 9, 8, true}, {12, 9, 8, true}},
        .start = GFX12_START,
        .table = gfx12_table,
        .leaf = gfx12_leaf,
};

static int gfx12_walk(const struct rig_walk_memory *memory, uint64_t root, uint64_t va, struct rig_walk *ret)
{
        return rig_walk_gfx12(memory, root, va - GFX12_START, ret);
}

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

const struct world_format world_formats[_WORLD_FORMAT_MAX] = {
        [WORLD_X86_64] = {"x86-64", &x86_format, x86_walk, WORLD_WRITE | WORLD_EXECUTE | WORLD_UNCACHED,
                UINT64_C(1) << 39, {GIB, 2 * MIB, 4096}},
        [WORLD_NVIDIA_V2] = {"nvidia-v2", &nv_format, nv_walk, WORLD_WRITE | WORLD_SYSTEM | WORLD_UNCACHED,
                UINT64_C(1) << 47, {512 * MIB, 2 * MIB, 4096}},
        [WORLD_GFX12] = {"gfx12", &gfx12_format, gfx12_walk,
                WORLD_WRITE | WORLD_EXECUTE | WORLD_SYSTEM | WORLD_UNCACHED,
                GFX12_START + (UINT64_C(1) << 39), {GIB, 2 * MIB, 4096}},
};

/* ---------------------------------------------------------------- memory */

static uint64_t *table_at(const struct world *world, uint64_t address)
{
        uint64_t index = (address - WORLD_BASE) / 4096;

        cr_assert(address >= WORLD_BASE && index < WORLD_TABLES, "%#lx is no table", address);
        return world->memory + index * PAGE_WORDS;
}

static void log_write(struct world *world, uint64_t *where, uint64_t value)
{
        if (world->n_writes == world->room) {
                world->room = RIG_MAX(world->room * 2, (size_t)1024);
                world->writes = realloc(world->writes, world->room * sizeof(*world->writes));
                cr_assert_not_null(world->writes);
        }
        world->writes[world->n_writes++] = (struct world_write){where, *where, value};
        *where = value;
}

/* Its zeros are written as all else is: before a barrier, a device may see what was there. */
static int table_alloc(void *context, unsigned level, uint64_t bytes, uint64_t *ret_address)
{
        struct world *world = context;
        const struct rig_pagetable_level *l = &world->format->format->levels[level];
        unsigned index;

        cr_assert_eq(bytes, (uint64_t)l->entry_bytes << l->bits);
        cr_assert_leq(bytes, 4096);
        if (world->fail_at == 0)
                return -ENOSPC;
        if (world->fail_at > 0)
                world->fail_at--;
        cr_assert_gt(world->n_free, 0);
        index = world->free_tables[--world->n_free];
        world->allocated[index] = true;
        world->n_tables++;
        for (unsigned i = 0; i < PAGE_WORDS; i++)
                log_write(world, world->memory + index * PAGE_WORDS + i, 0);
        *ret_address = WORLD_BASE + index * UINT64_C(4096);
        return 0;
}

static void table_free(void *context, unsigned level, uint64_t address)
{
        struct world *world = context;
        uint64_t *table = table_at(world, address);
        unsigned index = (unsigned)((address - WORLD_BASE) / 4096);

        cr_assert(world->allocated[index], "a table was freed twice");
        world->allocated[index] = false;
        world->free_tables[world->n_free++] = index;
        world->n_tables--;
        world->n_freed++;
        for (unsigned i = 0; i < PAGE_WORDS; i++)
                table[i] = POISON;
}

static void write_word(void *context, uint64_t address, uint64_t offset, uint64_t value)
{
        struct world *world = context;

        cr_assert(offset % 8 == 0 && offset < 4096);
        cr_assert(world->allocated[(address - WORLD_BASE) / 4096], "a table that is free was written");
        log_write(world, table_at(world, address) + offset / 8, value);
        world->n_all_writes++;
}

static void barrier(void *context)
{
        struct world *world = context;

        if (world->watch)
                world->watch(world);
        world->n_writes = 0;
        world->n_barriers++;
}

const struct rig_pagetable_ops world_ops = {
        .barrier = barrier,
        .table_alloc = table_alloc,
        .table_free = table_free,
        .write = write_word,
};

void world_begin(struct world *world, const struct world_format *format)
{
        *world = (struct world){.format = format, .fail_at = -1};
        world->memory = malloc(WORLD_TABLES * UINT64_C(4096));
        world->seen = calloc(WORLD_TABLES * PAGE_WORDS, sizeof(*world->seen));
        cr_assert(world->memory && world->seen);
        for (unsigned i = 0; i < WORLD_TABLES * PAGE_WORDS; i++)
                world->memory[i] = POISON;
        for (unsigned i = 0; i < WORLD_TABLES; i++) /* 1619 and 4096 have no common divisor: all come once */
                world->free_tables[world->n_free++] = i * 1619 % WORLD_TABLES;
        cr_assert_eq(rig_pagetable_new(format->format, &world_ops, world, &world->pagetable), 0);
}

void world_end(struct world *world)
{
        rig_pagetable_free(world->pagetable);
        cr_assert_eq(world->n_tables, 0, "%u tables did not come back", world->n_tables);
        cr_assert_eq(world->n_free, WORLD_TABLES);
        free(world->writes);
        free(world->seen);
        free(world->memory);
}

static bool walk_read(void *context, enum rig_walk_place place, uint64_t address, uint64_t *ret_value)
{
        const struct world *world = context;
        uint64_t index = (address - WORLD_BASE) / 4096;

        if (address < WORLD_BASE || index >= WORLD_TABLES || address % 8)
                return false;
        *ret_value = world->memory[(address - WORLD_BASE) / 8];
        return true;
}

int world_walk(const struct world *world, uint64_t va, struct rig_walk *ret)
{
        struct world *mine = (struct world *)(uintptr_t)world;
        struct rig_walk_memory memory = {walk_read, mine};

        return world->format->walk(&memory, rig_pagetable_root(world->pagetable), va, ret);
}

void world_hide(struct world *world, uint64_t *random, uint64_t unseen)
{
        world->n_looks++;
        for (size_t i = world->n_writes; i-- > 0;) {
                const struct world_write *w = &world->writes[i];
                uint32_t *seen = &world->seen[w->where - world->memory];

                if (*seen != world->n_looks && random_below(random, 4) < unseen)
                        *w->where = w->before;
                else
                        *seen = world->n_looks;
        }
}

void world_show(struct world *world)
{
        for (size_t i = 0; i < world->n_writes; i++)
                *world->writes[i].where = world->writes[i].after;
}

uint64_t world_word(const struct world *world, uint64_t table, uint64_t offset)
{
        cr_assert(world->allocated[(table - WORLD_BASE) / 4096]);
        return table_at(world, table)[offset / 8];
}

uint64_t world_digest(const struct world *world)
{
        uint64_t digest = world->n_tables;

        for (unsigned t = 0; t < WORLD_TABLES; t++)
                for (unsigned i = 0; world->allocated[t] && i < PAGE_WORDS; i++)
                        digest = (digest ^ world->memory[t * PAGE_WORDS + i]) * UINT64_C(0x100000001b3) + t;
        return digest;
}

uint64_t world_flags(const struct world *world, const struct rig_walk *walk)
{
        uint64_t flags = (walk->write ? WORLD_WRITE : 0) | (walk->execute ? WORLD_EXECUTE : 0) |
                         (walk->place == RIG_WALK_SYSTEM ? WORLD_SYSTEM : 0) |
                         (walk->uncached ? WORLD_UNCACHED : 0);

        return flags & world->format->flags;
}
