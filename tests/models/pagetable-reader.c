/* SPDX-License-Identifier: ISC */
/*
 * See pagetable-reader.h. One function for each format, straight down its levels, in the words of its
 * document; the only thing they share is how a bit field is taken out of a word.
 */
#include "tests/models/pagetable-reader.h"

/* Bits high:low of a word, as documents write them. */
static uint64_t field(uint64_t word, unsigned high, unsigned low)
{
        return word << (63 - high) >> (63 - high + low);
}

static int fail(struct rig_walk *walk, int error, uint64_t hole_bytes, const char *fault)
{
        walk->page_bytes = hole_bytes;
        walk->fault = fault;
        return error;
}

/* ---------------------------------------------------------------- x86-64 */

/*
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3A, section 4.5, "4-level paging and
 * 5-level paging": the use of the linear address, the formats of the PML4E, the PDPTE that maps 1 GiB or
 * references a page directory, the PDE that maps 2 MiB or references a page table, the PTE; section 4.6 for
 * access rights, which all levels must grant.
 */
int rig_walk_x86_64(const struct rig_walk_memory *memory, uint64_t cr3, unsigned physical_bits, uint64_t va,
        struct rig_walk *ret_walk)
{
        /* the PML4E, the PDPTE, the PDE, the PTE: which bit of the address their index starts at */
        static const unsigned low[] = {39, 30, 21, 12};
        static const char *const absent[] = {
                "PML4E: not present", "PDPTE: not present", "PDE: not present", "PTE: not present"};
        struct rig_walk *walk = ret_walk;
        uint64_t table = cr3, entry, bytes;

        *walk = (struct rig_walk){.place = RIG_WALK_SYSTEM,
                .read = true,
                .write = true,
                .user = true,
                .execute = true,
                .snooped = true};
        if (field(va, 63, 47) != 0 && field(va, 63, 47) != 0x1ffff)
                return fail(walk, -EPROTO, 0, "the linear address is not canonical");
        for (unsigned i = 0; i < 4; i++) {
                bytes = UINT64_C(1) << low[i];
                if (!memory->read(memory->context, RIG_WALK_SYSTEM,
                            table + 8 * field(va, low[i] + 8, low[i]), &entry))
                        return fail(walk, -EIO, bytes, "a paging structure is not in memory");
                if (!(entry & 1))
                        return fail(walk, -EFAULT, bytes, absent[i]);
                if (field(entry, 51, 12) >> (physical_bits - 12))
                        return fail(walk, -EPROTO, bytes, "reserved: bits 51:M");
                walk->write &= field(entry, 1, 1);
                walk->user &= field(entry, 2, 2);
                walk->uncached = field(entry, 4, 4);
                walk->execute &= !field(entry, 63, 63);
                table = field(entry, 51, 12) << 12;
                if (low[i] == 12)
                        break;
                if (!field(entry, 7, 7)) /* PS */
                        continue;
                if (low[i] == 39)
                        return fail(walk, -EPROTO, bytes, "reserved: bit 7 of a PML4E");
                table &= ~(UINT64_C(1) << 12); /* PAT */
                if (table & (bytes - 1))
                        return fail(walk, -EPROTO, bytes, "reserved: address bits below a large page");
                break;
        }
        walk->page_bytes = bytes;
        walk->address = table | (va & (bytes - 1));
        return 0;
}

/* ---------------------------------------------------------------- NVIDIA */

/*
 * NVIDIA open-gpu-kernel-modules: src/common/inc/swref/published/pascal/gp100/dev_mmu.h for the fields
 * NV_MMU_VER2_*, kernel-open/nvidia-uvm/hwref/turing/tu102/dev_mmu.h for bit 0 of a PDE (IS_PTE) and the
 * apertures' values, kernel-open/nvidia-uvm/uvm_turing_mmu.c for the levels' address bits and for what the
 * fields of an invalid PTE mean. Pages of 512 MiB are of Ampere and later (uvm_ampere_mmu.c).
 */
#define NV_GENERIC_KIND 0x06 /* NV_MMU_PTE_KIND_GENERIC_MEMORY */

/* The address of a PDE or PTE: SYS 53:8, VID 32:8, both << 12. */
static int nv_address(struct rig_walk *walk, uint64_t entry, uint64_t *ret_address)
{
        if (walk->place == RIG_WALK_SYSTEM)
                *ret_address = field(entry, 53, 8) << 12;
        else
                *ret_address = field(entry, 32, 8) << 12;
        return field(entry, 55, 54) || (walk->place != RIG_WALK_SYSTEM && field(entry, 53, 36)) ? -EPROTO
                                                                                                : 0;
}

static int nv_leaf(struct rig_walk *walk, uint64_t pte, uint64_t va, uint64_t bytes)
{
        static const enum rig_walk_place places[] = {
                RIG_WALK_DEVICE, RIG_WALK_PEER, RIG_WALK_SYSTEM, RIG_WALK_SYSTEM};
        uint64_t address;

        if (!field(pte, 0, 0)) {
                walk->sparse = field(pte, 3, 3);
                return fail(walk, -EFAULT, bytes, walk->sparse ? "PTE: sparse" : "PTE: not valid");
        }
        walk->place = places[field(pte, 2, 1)];
        if (nv_address(walk, pte, &address) < 0)
                return fail(walk, -EPROTO, bytes, "PTE: address bits beyond its aperture's");
        if (walk->place == RIG_WALK_DEVICE && field(pte, 35, 33))
                return fail(walk, -EPROTO, bytes, "PTE: a peer in an address of video memory");
        if (field(pte, 4, 4))
                return fail(walk, -EPROTO, bytes, "PTE: encrypted");
        if (address & (bytes - 1))
                return fail(walk, -EPROTO, bytes, "PTE: address bits below a large page");
        walk->snooped = field(pte, 2, 1) == 2;
        walk->uncached = field(pte, 3, 3);
        walk->user = !field(pte, 5, 5);
        walk->read = walk->execute = true;
        walk->write = !field(pte, 6, 6);
        walk->kind = (uint8_t)field(pte, 63, 56);
        if (walk->kind != 0 && walk->kind != NV_GENERIC_KIND)
                return fail(walk, -EPROTO, bytes, "PTE: a kind that this model does not know");
        walk->page_bytes = bytes;
        walk->address = address | (va & (bytes - 1));
        return 0;
}

/* The table that an aperture field and an address field lead to. 0: it leads nowhere. */
static int nv_table(struct rig_walk *walk, uint64_t aperture, uint64_t address_vid, uint64_t address_sys,
        uint64_t *ret_table)
{
        walk->place = aperture == 1 ? RIG_WALK_DEVICE : RIG_WALK_SYSTEM;
        *ret_table = aperture == 1 ? address_vid : address_sys;
        return aperture != 0;
}

static int nv_read(const struct rig_walk_memory *memory, struct rig_walk *walk, uint64_t at, uint64_t bytes,
        uint64_t *ret_entry)
{
        if (!memory->read(memory->context, walk->place, at, ret_entry))
                return fail(walk, -EIO, bytes, "a table is not in memory");
        return 0;
}

/* PDE0, 28:21, of 16 bytes: a page of 2 MiB, or a table of big pages, of small pages, or both. */
static int nv_pde0(const struct rig_walk_memory *memory, struct rig_walk *walk, uint64_t table, uint64_t va)
{
        uint64_t at = table + 16 * field(va, 28, 21), big, small, pte, next;
        enum rig_walk_place place = walk->place;

        if (nv_read(memory, walk, at, UINT64_C(1) << 21, &big) < 0)
                return -EIO;
        if (field(big, 0, 0))
                return nv_leaf(walk, big, va, UINT64_C(1) << 21);
        if (nv_read(memory, walk, at + 8, UINT64_C(1) << 21, &small) < 0)
                return -EIO;
        if (field(big, 63, 54) || field(small, 63, 54) || field(small, 4, 4) || field(small, 7, 6))
                return fail(walk, -EPROTO, UINT64_C(1) << 21, "PDE0: bits that are no field's");
        /* big pages of 64 KiB: 20:16; its table is named in steps of 256 bytes */
        if (nv_table(walk, field(big, 2, 1), field(big, 32, 4) << 8, field(big, 53, 4) << 8, &next)) {
                if (nv_read(memory, walk, next + 8 * field(va, 20, 16), UINT64_C(1) << 16, &pte) < 0)
                        return -EIO;
                /* one that is not valid leaves it to the small page, unless PRIVILEGE is set */
                if (field(pte, 0, 0) || field(pte, 3, 3) || field(pte, 5, 5))
                        return nv_leaf(walk, pte, va, UINT64_C(1) << 16);
        }
        walk->place = place;
        if (!nv_table(walk, field(small, 2, 1), field(small, 32, 8) << 12, field(small, 53, 8) << 12, &next))
                return fail(walk, -EFAULT, UINT64_C(1) << 21, "PDE0: no aperture");
        if (nv_read(memory, walk, next + 8 * field(va, 20, 12), UINT64_C(1) << 12, &pte) < 0)
                return -EIO;
        return nv_leaf(walk, pte, va, UINT64_C(1) << 12);
}

int rig_walk_nvidia_v2(const struct rig_walk_memory *memory, enum rig_walk_place place, uint64_t root,
        uint64_t va, struct rig_walk *ret_walk)
{
        /* PDE3 48:47, PDE2 46:38, PDE1 37:29 */
        static const unsigned high[] = {48, 46, 37}, low[] = {47, 38, 29};
        static const char *const absent[] = {"PDE3: no aperture", "PDE2: no aperture", "PDE1: no aperture"};
        uint64_t table = root, entry, bytes;

        *ret_walk = (struct rig_walk){.place = place};
        if (field(va, 63, 49))
                return fail(ret_walk, -EPROTO, 0, "the virtual address has more than 49 bits");
        for (unsigned i = 0; i < 3; i++) {
                bytes = UINT64_C(1) << low[i];
                if (nv_read(memory, ret_walk, table + 8 * field(va, high[i], low[i]), bytes, &entry) < 0)
                        return -EIO;
                if (field(entry, 0, 0) && i == 2)
                        return nv_leaf(ret_walk, entry, va, bytes);
                if (field(entry, 0, 0))
                        return fail(ret_walk, -EPROTO, bytes, "a page larger than 512 MiB");
                if (field(entry, 63, 54) || field(entry, 7, 6) || field(entry, 4, 4))
                        return fail(ret_walk, -EPROTO, bytes, "PDE: bits that are no field's");
                if (!nv_table(ret_walk, field(entry, 2, 1), field(entry, 32, 8) << 12,
                            field(entry, 53, 8) << 12, &table))
                        return fail(ret_walk, -EFAULT, bytes, absent[i]);
        }
        return nv_pde0(memory, ret_walk, table, va);
}

/* ---------------------------------------------------------------- AMD */

/*
 * Linux, drivers/gpu/drm/amd/amdgpu/gmc_v12_0.c: the comment "PTE format" and "PDE format", which says what
 * each bit is and which are reserved; amdgpu_vm.h: the bits AMDGPU_PTE_*, those for gfx12 by their suffix,
 * AMDGPU_PTE_IS_PTE and AMDGPU_PDE_PTE_GFX12 (bit 63 of every leaf, at any level), and the levels PDB2,
 * PDB1, PDB0, PTB, of 9 bits each above pages of 4 KiB.
 */
static int gfx12_leaf(struct rig_walk *walk, uint64_t pte, uint64_t offset, uint64_t bytes)
{
        uint64_t address = field(pte, 47, 12) << 12;

        if (address & (bytes - 1))
                return fail(walk, -EPROTO, bytes, "PTE: address bits below a large page");
        if (field(pte, 51, 48) || field(pte, 62, 59))
                return fail(walk, -EPROTO, bytes, "PTE: reserved bits");
        walk->place = field(pte, 1, 1) ? RIG_WALK_SYSTEM : RIG_WALK_DEVICE;
        walk->snooped = field(pte, 2, 2);
        walk->user = true;
        walk->execute = field(pte, 4, 4);
        walk->read = field(pte, 5, 5);
        walk->write = field(pte, 6, 6);
        walk->fragment = (uint8_t)field(pte, 11, 7);
        walk->uncached = field(pte, 55, 54) == 3; /* MTYPE: UC */
        walk->page_bytes = bytes;
        walk->address = address | (offset & (bytes - 1));
        return 0;
}

int rig_walk_gfx12(
        const struct rig_walk_memory *memory, uint64_t root, uint64_t offset, struct rig_walk *ret_walk)
{
        static const unsigned low[] = {39, 30, 21, 12}; /* PDB2, PDB1, PDB0, PTB */
        static const char *const absent[] = {
                "PDB2: not valid", "PDB1: not valid", "PDB0: not valid", "PTB: not valid"};
        uint64_t table = root, entry, bytes;
        struct rig_walk *walk = ret_walk;

        *walk = (struct rig_walk){.place = RIG_WALK_DEVICE};
        if (field(offset, 63, 48))
                return fail(walk, -EPROTO, 0, "the virtual address has more than 48 bits");
        for (unsigned i = 0;; i++) {
                bytes = UINT64_C(1) << low[i];
                if (!memory->read(memory->context, walk->place,
                            table + 8 * field(offset, low[i] + 8, low[i]), &entry))
                        return fail(walk, -EIO, bytes, "a table is not in memory");
                if (!field(entry, 0, 0)) {
                        walk->sparse = field(entry, 56, 56); /* PRT */
                        return fail(walk, -EFAULT, bytes, absent[i]);
                }
                if (field(entry, 63, 63))
                        return gfx12_leaf(walk, entry, offset, bytes);
                if (low[i] == 12)
                        return fail(walk, -EPROTO, bytes, "PTB: an entry without IS_PTE");
                if (field(entry, 57, 57) || field(entry, 53, 48) || field(entry, 5, 3))
                        return fail(walk, -EPROTO, bytes, "PDE: reserved bits");
                walk->place = field(entry, 1, 1) ? RIG_WALK_SYSTEM : RIG_WALK_DEVICE;
                table = field(entry, 47, 6) << 6;
        }
}
