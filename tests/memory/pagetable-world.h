/* SPDX-License-Identifier: ISC */
/*
 * What page tables are tested in: the memory that tables lie in, with a device that sees writes in any order
 * between two barriers, and three formats as drivers describe them. Their encoders are written from the same
 * documents as the reader (tests/models/pagetable-reader.c), by which they are checked.
 */
#ifndef RIG_TEST_PAGETABLE_WORLD_H
#define RIG_TEST_PAGETABLE_WORLD_H

#include "daemon/memory/pagetable.h"
#include "tests/models/pagetable-reader.h"

#define WORLD_TABLES 4096
#define WORLD_BASE   UINT64_C(0x140000000) /* of the tables' addresses */

/* Flags of a mapping. */
#define WORLD_WRITE    1u
#define WORLD_EXECUTE  2u
#define WORLD_SYSTEM   4u
#define WORLD_UNCACHED 8u

struct world_format {
        const char *name;
        const struct rig_pagetable_format *format;
        int (*walk)(const struct rig_walk_memory *memory, uint64_t root, uint64_t va, struct rig_walk *ret);
        uint64_t flags;         /* of the above, those that it can say */
        uint64_t crossing;      /* a virtual address where entries of all levels begin */
        uint64_t page_bytes[4]; /* of its leaves, the largest first */
};

enum {
        WORLD_X86_64,
        WORLD_NVIDIA_V2,
        WORLD_GFX12,
        _WORLD_FORMAT_MAX,
};
extern const struct world_format world_formats[_WORLD_FORMAT_MAX];

struct world_write {
        uint64_t *where;
        uint64_t before, after;
};

struct world {
        const struct world_format *format;
        struct rig_pagetable *pagetable;

        uint64_t *memory; /* WORLD_TABLES of 4096 bytes */
        bool allocated[WORLD_TABLES];
        unsigned free_tables[WORLD_TABLES], n_free;
        unsigned n_tables, n_freed; /* freed: ever */
        long fail_at;               /* so many allocations succeed; negative: all do */

        /* what the device may or may not have seen yet */
        struct world_write *writes;
        size_t n_writes, room;
        uint32_t *seen, n_looks; /* for each word: the last look in which a write to it was seen */
        uint64_t n_all_writes, n_barriers;
        void (*watch)(struct world *world); /* before each barrier; may be NULL */
};

extern const struct rig_pagetable_ops world_ops;

void world_begin(struct world *world, const struct world_format *format);
/* Frees the tree, and expects all tables back. */
void world_end(struct world *world);
int world_walk(const struct world *world, uint64_t va, struct rig_walk *ret);
/*
 * Lets the device see only some of the writes since the last barrier, each missing with a probability of
 * `unseen` in 4; of two to the same word never the first alone. And lets it see all again.
 */
void world_hide(struct world *world, uint64_t *random, uint64_t unseen);
void world_show(struct world *world);
/* The word of a table that is there. */
uint64_t world_word(const struct world *world, uint64_t table, uint64_t offset);
/* What tables hold, in a number. */
uint64_t world_digest(const struct world *world);
/* The flags that a walk found. */
uint64_t world_flags(const struct world *world, const struct rig_walk *walk);

#endif
