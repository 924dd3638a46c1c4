/* SPDX-License-Identifier: ISC */
/*
 * Walks page tables as hardware does: what models of devices translate with, and what tests hold the writer
 * (daemon/memory/pagetable.h) to. Written from the vendors' documents, which are named at each format, and
 * sharing nothing with the writer. Stricter than hardware: a bit that a format reserves is a fault.
 */
#ifndef RIG_PAGETABLE_READER_H
#define RIG_PAGETABLE_READER_H

#include "base/base.h"

enum rig_walk_place {
        RIG_WALK_DEVICE, /* the device's own memory */
        RIG_WALK_SYSTEM, /* through the bus */
        RIG_WALK_PEER,   /* another device's */
};

struct rig_walk_memory {
        /* Reads the 8 bytes of a table, little-endian as tables are. False: nothing is there. */
        bool (*read)(void *context, enum rig_walk_place place, uint64_t address, uint64_t *ret_value);
        void *context;
};

/* Fields that a format does not have are zero. */
struct rig_walk {
        uint64_t address;    /* of the byte that was asked for */
        uint64_t page_bytes; /* that the leaf maps, or that the entry which maps nothing leaves unmapped */
        enum rig_walk_place place;
        bool read, write, execute, user;
        bool snooped;      /* the caches of the processor are asked */
        bool uncached;     /* by the device: volatile, or of an uncached memory type */
        bool sparse;       /* with -EFAULT: unmapped on purpose, reads as zeros */
        uint8_t fragment;  /* log2 of the pages of 4 KiB that one TLB entry may stand for */
        uint8_t kind;      /* how memory is laid out */
        const char *fault; /* what was wrong: static text */
};

/*
 * Each returns 0; -EFAULT: nothing is mapped there; -EPROTO: an entry that the format does not allow; -EIO:
 * a table that cannot be read. *ret_walk is written each time, its `fault` says which entry it was.
 */

/* 4 levels, 48 bits. `cr3` is the root's address; physical addresses have `physical_bits`. */
int rig_walk_x86_64(const struct rig_walk_memory *memory, uint64_t cr3, unsigned physical_bits, uint64_t va,
        struct rig_walk *ret_walk);
/* Version 2 of NVIDIA's MMU (Pascal to Ada), with the root in `place`; virtual addresses of 49 bits. */
int rig_walk_nvidia_v2(const struct rig_walk_memory *memory, enum rig_walk_place place, uint64_t root,
        uint64_t va, struct rig_walk *ret_walk);
/* AMD's gfx12, 4 levels; `offset` is from where the VM context starts. Device addresses start at 0. */
int rig_walk_gfx12(
        const struct rig_walk_memory *memory, uint64_t root, uint64_t offset, struct rig_walk *ret_walk);

#endif
