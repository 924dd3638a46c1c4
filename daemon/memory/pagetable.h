/* SPDX-License-Identifier: ISC */
/*
 * Writes the page tables that a device walks: trees of tables, whose formats differ in how many levels they
 * have, how wide those are, which of them may hold leaves, and what an entry looks like. A driver describes
 * its format and says how its tables are allocated and written; the rest is the same for all.
 *
 * Tables may lie in the device's memory behind a window, or in host memory: they are only ever written.
 * What they hold is also kept here, so a device that is gone, or that wrote into its own tables, leads
 * nobody astray.
 *
 * What a walk of the device may see. A table is complete before anything that the device can reach points
 * to it: what comes before `barrier` is seen before what comes after. An entry of 16 bytes is written second
 * word first, so its first word is what must make it valid. Entries that the device can reach go in one
 * write from what they were to what they become, in any order among themselves. When a call is back, all of
 * it was written and followed by a barrier.
 *
 * What the device keeps. Each call adds to a list the virtual addresses whose translations it changed; the
 * driver invalidates them. Tables that fell out of the tree may still be walked until then, so they go back
 * only by rig_pagetable_reclaim().
 *
 * One caller at a time.
 */
#ifndef RIG_PAGETABLE_H
#define RIG_PAGETABLE_H

#include "base/base.h"

#define RIG_PAGETABLE_LEVELS  6
#define RIG_PAGETABLE_TOUCHED 16

struct rig_pagetable;

/* By rising address; the second word is there where entries have 16 bytes. */
struct rig_pagetable_entry {
        uint64_t words[2];
};

struct rig_pagetable_level {
        uint8_t shift;       /* an entry stands for 2^shift bytes of virtual addresses */
        uint8_t bits;        /* a table has 2^bits entries; shift + bits is the shift of the level above */
        uint8_t entry_bytes; /* 8 or 16 */
        bool leaves;         /* whether an entry may map memory, 2^shift bytes of it; the last level's do */
        struct rig_pagetable_entry invalid; /* an entry that does neither */
};

struct rig_pagetable_format {
        unsigned n_levels;
        struct rig_pagetable_level levels[RIG_PAGETABLE_LEVELS]; /* the root's first */
        uint64_t start; /* the virtual address of the root's first entry */

        /*
         * An entry of a table of `level` that points to a table of the next, and one that maps memory. Any
         * negative value refuses: an address that the format has no room for, flags that it does not know.
         */
        int (*table)(void *context, unsigned level, uint64_t address, struct rig_pagetable_entry *ret_entry);
        int (*leaf)(void *context, unsigned level, uint64_t address, uint64_t flags,
                struct rig_pagetable_entry *ret_entry);
};

struct rig_pagetable_ops {
        /*
         * A table of a level, `bytes` of zeros: its address as entries have it. The zeros need be seen by
         * the device no sooner than the next barrier. May refuse.
         */
        int (*table_alloc)(void *context, unsigned level, uint64_t bytes, uint64_t *ret_address);
        void (*table_free)(void *context, unsigned level, uint64_t address);
        /* Writes 8 bytes of a table at once. */
        void (*write)(void *context, uint64_t table, uint64_t offset, uint64_t value);
        /* What was written before is seen by the device before what is written after. */
        void (*barrier)(void *context);
};

/* Memory that is mapped, as the device addresses it. */
struct rig_pagetable_run {
        uint64_t address, bytes;
};

struct rig_pagetable_range {
        uint64_t va, bytes;
};

/* What must be invalidated: apart from each other and in order. Begins as zeros. */
struct rig_pagetable_touched {
        unsigned n;
        bool tables; /* entries that point to tables changed, too */
        struct rig_pagetable_range ranges[RIG_PAGETABLE_TOUCHED];
};

/* Adds a range. Where there is no room for one more, the two nearest become one, with what is between. */
void rig_pagetable_touch(struct rig_pagetable_touched *touched, uint64_t va, uint64_t bytes);

/**
 * rig_pagetable_new() - a tree that maps nothing
 * @format:  borrowed until rig_pagetable_free()
 * @ops:     borrowed as well
 * @context: what the functions of both are given
 *
 * Return: 0, -EINVAL where the format is none, -ENOMEM, or what table_alloc() or table() said.
 */
int rig_pagetable_new(const struct rig_pagetable_format *format, const struct rig_pagetable_ops *ops,
        void *context, struct rig_pagetable **ret_pagetable);
/* Gives back all tables and writes nothing: nothing walks them by then. Return: NULL. */
struct rig_pagetable *rig_pagetable_free(struct rig_pagetable *pagetable);

uint64_t rig_pagetable_root(const struct rig_pagetable *pagetable);
/* Tables there are, with those that are not reclaimed yet. */
size_t rig_pagetable_tables(const struct rig_pagetable *pagetable);

/**
 * rig_pagetable_map() - map memory, run after run, at a virtual address
 * @runs:    what is mapped there; runs that continue each other are one
 * @flags:   for the format's leaf()
 * @touched: what to invalidate is added here; may be NULL
 *
 * Takes the largest leaves that the alignment of both addresses, the runs and the format admit.
 *
 * Return: 0; -EINVAL: no whole pages, or addresses that are not there; -EEXIST: some of it is mapped;
 * -ENOMEM, or what the format or table_alloc() said. A refusal changes nothing.
 */
int rig_pagetable_map(struct rig_pagetable *pagetable, uint64_t va, const struct rig_pagetable_run *runs,
        size_t n_runs, uint64_t flags, struct rig_pagetable_touched *touched);

/**
 * rig_pagetable_unmap() - unmap what is mapped at [@va, @va + @bytes)
 *
 * A leaf that lies in there with a part of its own is split: a table of smaller leaves with the same memory
 * and flags takes its place, and all of the old leaf's addresses are added to @touched. That takes tables.
 * Unmapping what one call mapped, or several did, splits nothing, and so is never refused for memory.
 * Tables that become empty fall out of the tree.
 *
 * Return: 0; -EINVAL: no whole pages, or addresses that are not there; -ENOENT: some of it is not mapped;
 * -ENOMEM, or what table_alloc() said. A refusal changes nothing.
 */
int rig_pagetable_unmap(
        struct rig_pagetable *pagetable, uint64_t va, uint64_t bytes, struct rig_pagetable_touched *touched);

/* Gives back the tables that fell out. An invalidation that began after they did has ended. */
void rig_pagetable_reclaim(struct rig_pagetable *pagetable);

/**
 * rig_pagetable_hold() - see to it that the tables on the way to a virtual address stay
 * @level: of the last of them; the root is of level 0
 *
 * For tables that somebody else writes entries into, a device's firmware for one: those entries are not
 * known here, and nothing may be mapped where they are. The tables stay until rig_pagetable_free().
 *
 * Return: 0; -EINVAL; -EEXIST: a leaf is in the way; -ENOMEM, or what table_alloc() said. A refusal changes
 * nothing.
 */
int rig_pagetable_hold(struct rig_pagetable *pagetable, uint64_t va, unsigned level,
        struct rig_pagetable_touched *touched, uint64_t *ret_table);

#endif
