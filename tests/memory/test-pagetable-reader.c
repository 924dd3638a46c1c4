/* SPDX-License-Identifier: ISC */
/*
 * The reader of page tables, on entries put together by hand from the documents that it names: so that what
 * holds the writer to its word is held to something itself.
 */
#include <criterion/criterion.h>

#include "tests/models/pagetable-reader.h"

/* Words of memory by address; an address that is not there cannot be read. */
struct word {
        uint64_t address, value;
};

static struct word words[32];
static unsigned n_words;
static enum rig_walk_place last_place;

static bool read_word(void *context, enum rig_walk_place place, uint64_t address, uint64_t *ret_value)
{
        last_place = place;
        for (unsigned i = 0; i < n_words; i++) {
                if (words[i].address == address) {
                        *ret_value = words[i].value;
                        return true;
                }
        }
        return false;
}

static const struct rig_walk_memory memory = {.read = read_word};
static struct rig_walk walk;

static void set(uint64_t address, uint64_t value)
{
        unsigned i = 0;

        while (i < n_words && words[i].address != address)
                i++;
        words[i] = (struct word){address, value};
        n_words = RIG_MAX(n_words, i + 1);
}

static void found(int r, uint64_t address, uint64_t page_bytes)
{
        cr_assert_eq(r, 0, "%d: %s", r, walk.fault);
        cr_assert_eq(walk.address, address, "at %#lx", walk.address);
        cr_assert_eq(walk.page_bytes, page_bytes);
        cr_assert_null(walk.fault);
}

static void not_found(int r, int error, uint64_t hole_bytes)
{
        cr_assert_eq(r, error, "%d: %s", r, walk.fault);
        cr_assert_eq(walk.page_bytes, hole_bytes);
        cr_assert_not_null(walk.fault);
}

/* ---------------------------------------------------------------- x86-64 */

/* Indexes 1, 2, 3, 4. */
#define X86_VA (UINT64_C(1) << 39 | UINT64_C(2) << 30 | UINT64_C(3) << 21 | UINT64_C(4) << 12 | 0x567)

static int x86(uint64_t va)
{
        return rig_walk_x86_64(&memory, 0x1000, 40, va, &walk);
}

static void x86_tables(void)
{
        set(0x1000 + 8 * 1, 0x2007);
        set(0x2000 + 8 * 2, 0x3007);
        set(0x3000 + 8 * 3, 0x4007);
        set(0x4000 + 8 * 4, 0xabcde12007);
}

TestSuite(x86_64, .init = x86_tables);

Test(x86_64, a_page_of_each_size)
{
        found(x86(X86_VA), 0xabcde12567, 4096);
        cr_assert(walk.read && walk.write && walk.user && walk.execute && !walk.uncached);
        set(0x3000 + 8 * 3, 0xabcde00000 | 0x87);
        found(x86(X86_VA), 0xabcde04567, 1 << 21);
        set(0x3000 + 8 * 3, 0xabcde00000 | 0x1087); /* PAT is bit 12 */
        found(x86(X86_VA), 0xabcde04567, 1 << 21);
        set(0x2000 + 8 * 2, 0xab80000000 | 0x87);
        found(x86(X86_VA), 0xab80604567, 1 << 30);
}

Test(x86_64, rights_are_those_that_all_levels_grant)
{
        set(0x2000 + 8 * 2, 0x3005); /* no R/W */
        found(x86(X86_VA), 0xabcde12567, 4096);
        cr_assert(!walk.write && walk.user && walk.execute);
        set(0x1000 + 8 * 1, 0x2003 | UINT64_C(1) << 63); /* no U/S, XD */
        found(x86(X86_VA), 0xabcde12567, 4096);
        cr_assert(!walk.write && !walk.user && !walk.execute);
        set(0x4000 + 8 * 4, 0xabcde12017); /* PCD */
        found(x86(X86_VA), 0xabcde12567, 4096);
        cr_assert(walk.uncached);
}

Test(x86_64, what_is_not_present_or_not_allowed_is_a_fault)
{
        set(0x4000 + 8 * 4, 0xabcde12006);
        not_found(x86(X86_VA), -EFAULT, 4096);
        set(0x4000 + 8 * 4, 0x1abcde12007); /* 41 bits */
        not_found(x86(X86_VA), -EPROTO, 4096);
        set(0x3000 + 8 * 3, 0xabcde02087); /* bit 13 */
        not_found(x86(X86_VA), -EPROTO, 1 << 21);
        set(0x3000 + 8 * 3, 0x9007);
        not_found(x86(X86_VA), -EIO, 4096);
        set(0x3000 + 8 * 3, 0);
        not_found(x86(X86_VA), -EFAULT, 1 << 21);
        set(0x1000 + 8 * 1, 0x2087); /* PS in a PML4E */
        not_found(x86(X86_VA), -EPROTO, UINT64_C(1) << 39);
        not_found(x86(X86_VA | UINT64_C(1) << 47), -EPROTO, 0);
        not_found(x86(X86_VA | UINT64_C(1) << 63), -EPROTO, 0);
}

Test(x86_64, the_upper_half_is_reached_with_its_sign)
{
        set(0x1000 + 8 * 511, 0x2007);
        found(x86(X86_VA | UINT64_MAX << 39), 0xabcde12567, 4096);
}

/* ---------------------------------------------------------------- NVIDIA */

/* PDE3 1, PDE2 2, PDE1 3, PDE0 4, small page 5: so big page 0. */
#define NV_VA                                                                                               \
        (UINT64_C(1) << 47 | UINT64_C(2) << 38 | UINT64_C(3) << 29 | UINT64_C(4) << 21 | 5u << 12 | 0x678)

static int nv(uint64_t va)
{
        return rig_walk_nvidia_v2(&memory, RIG_WALK_DEVICE, 0, va, &walk);
}

/* Address 0x1000 is 1 at bit 8; video memory is aperture 1 of a PDE, and 0 of a PTE. */
static void nv_tables(void)
{
        set(0x0000 + 8 * 1, 0x102);
        set(0x1000 + 8 * 2, 0x202);
        set(0x2000 + 8 * 3, 0x302);
        set(0x3000 + 16 * 4, 0);
        set(0x3000 + 16 * 4 + 8, 0x402);
        set(0x4000 + 8 * 5, UINT64_C(0x0600000000123401));
}

TestSuite(nvidia_v2, .init = nv_tables);

Test(nvidia_v2, a_page_of_each_size)
{
        found(nv(NV_VA), 0x1234678, 4096);
        cr_assert(walk.place == RIG_WALK_DEVICE && walk.write && walk.user && walk.kind == 6);
        set(0x3000 + 16 * 4, UINT64_C(0x0600000000020001)); /* 0x200 pages: 2 MiB */
        found(nv(NV_VA), 0x205678, 1 << 21);
        set(0x2000 + 8 * 3, UINT64_C(0x0600000004000001)); /* 0x40000 pages: 1 GiB */
        found(nv(NV_VA), 0x40000000 + (4u << 21) + 0x5678, 1 << 29);
}

Test(nvidia_v2, a_big_page_comes_before_a_small_one)
{
        set(0x3000 + 16 * 4, 0x502 | 0x50 << 4); /* 0x5550 in steps of 256: VID bits 32:4 */
        set(((0x502 | 0x50 << 4) >> 4) << 8, UINT64_C(0x0600000000001001)); /* 0x10 pages: 64 KiB */
        found(nv(NV_VA), 0x15678, 1 << 16);
        set(((0x502 | 0x50 << 4) >> 4) << 8, 0);
        found(nv(NV_VA), 0x1234678, 4096);
        set(((0x502 | 0x50 << 4) >> 4) << 8, 1 << 5); /* PRIVILEGE: the small pages do not count */
        not_found(nv(NV_VA), -EFAULT, 1 << 16);
        cr_assert_not(walk.sparse);
        set(((0x502 | 0x50 << 4) >> 4) << 8, 1 << 3); /* VOL */
        not_found(nv(NV_VA), -EFAULT, 1 << 16);
        cr_assert(walk.sparse);
}

Test(nvidia_v2, system_memory_has_an_aperture_and_more_bits)
{
        set(0x4000 + 8 * 5,
                UINT64_C(0x0600000000000001) | 2 << 1 | 1 << 3 | 1 << 6 | UINT64_C(0x3ffffffffff) << 8);
        found(nv(NV_VA), (UINT64_C(0x3ffffffffff) << 12) + 0x678, 4096);
        cr_assert(walk.place == RIG_WALK_SYSTEM && walk.snooped && walk.uncached && !walk.write);
        set(0x3000 + 16 * 4 + 8, 0x404); /* a table in coherent system memory */
        found(nv(NV_VA), (UINT64_C(0x3ffffffffff) << 12) + 0x678, 4096);
        cr_assert_eq(last_place, RIG_WALK_SYSTEM);
}

Test(nvidia_v2, what_is_not_valid_or_not_allowed_is_a_fault)
{
        set(0x4000 + 8 * 5, UINT64_C(0x0600000000123401) | UINT64_C(1) << 36); /* compression tags */
        not_found(nv(NV_VA), -EPROTO, 4096);
        set(0x4000 + 8 * 5, UINT64_C(0xff00000000123401)); /* KIND_INVALID */
        not_found(nv(NV_VA), -EPROTO, 4096);
        set(0x4000 + 8 * 5, UINT64_C(0x0600000000123411)); /* ENCRYPTED */
        not_found(nv(NV_VA), -EPROTO, 4096);
        set(0x4000 + 8 * 5, UINT64_C(0x0600000000123400));
        not_found(nv(NV_VA), -EFAULT, 4096);
        set(0x3000 + 16 * 4, UINT64_C(0x0600000000020101)); /* 2 MiB at an odd page */
        not_found(nv(NV_VA), -EPROTO, 1 << 21);
        set(0x3000 + 16 * 4, 0);
        set(0x3000 + 16 * 4 + 8, 0);
        not_found(nv(NV_VA), -EFAULT, 1 << 21);
        set(0x2000 + 8 * 3, 0x300);
        not_found(nv(NV_VA), -EFAULT, 1 << 29);
        set(0x1000 + 8 * 2, 0x203); /* IS_PTE above 512 MiB */
        not_found(nv(NV_VA), -EPROTO, UINT64_C(1) << 38);
        set(0x0000 + 8 * 1, 0x100000102); /* another table, which is not there */
        not_found(nv(NV_VA), -EIO, UINT64_C(1) << 38);
        set(0x0000 + 8 * 1, 0);
        not_found(nv(NV_VA), -EFAULT, UINT64_C(1) << 47);
        not_found(nv(NV_VA | UINT64_C(1) << 49), -EPROTO, 0);
}

/* ---------------------------------------------------------------- AMD */

#define GFX12_OFFSET X86_VA

static int gfx12(uint64_t offset)
{
        return rig_walk_gfx12(&memory, 0x1000, offset, &walk);
}

/* Words as a driver that works was seen to write them, with addresses put in. */
static void gfx12_tables(void)
{
        set(0x1000 + 8 * 1, 0x2001);
        set(0x2000 + 8 * 2, 0x3001);
        set(0x3000 + 8 * 3, 0x4001);
        set(0x4000 + 8 * 4, UINT64_C(0x8000000000000071) | 0x7654321000);
}

TestSuite(gfx12, .init = gfx12_tables);

Test(gfx12, a_page_of_each_size)
{
        found(gfx12(GFX12_OFFSET), 0x7654321567, 4096);
        cr_assert(walk.read && walk.write && walk.execute && walk.place == RIG_WALK_DEVICE);
        set(0x3000 + 8 * 3, UINT64_C(0x80000000000005f1) | 0x7654200000);
        found(gfx12(GFX12_OFFSET), 0x7654204567, 1 << 21);
        cr_assert_eq(walk.fragment, 11);
        set(0x3000 + 8 * 3, UINT64_C(0x8000000000000671) | 0x7654200000);
        found(gfx12(GFX12_OFFSET), 0x7654204567, 1 << 21);
        cr_assert_eq(walk.fragment, 12);
        set(0x2000 + 8 * 2, UINT64_C(0x8000000000000071) | 0x7640000000);
        found(gfx12(GFX12_OFFSET), 0x7640604567, 1 << 30);
        set(0x1000 + 8 * 1, UINT64_C(0x8000000000000071) | UINT64_C(1) << 40);
        found(gfx12(GFX12_OFFSET), (UINT64_C(1) << 40) + 0x80604567, UINT64_C(1) << 39);
}

Test(gfx12, system_memory_is_snooped_and_uncached)
{
        set(0x4000 + 8 * 4, UINT64_C(0x80c0000000000077) | 0x7654321000);
        found(gfx12(GFX12_OFFSET), 0x7654321567, 4096);
        cr_assert(walk.place == RIG_WALK_SYSTEM && walk.snooped && walk.uncached);
        set(0x3000 + 8 * 3, 0x4007); /* a table there */
        found(gfx12(GFX12_OFFSET), 0x7654321567, 4096);
        cr_assert_eq(last_place, RIG_WALK_SYSTEM);
        set(0x4000 + 8 * 4, UINT64_C(0x8000000000000021) | 0x7654321000);
        found(gfx12(GFX12_OFFSET), 0x7654321567, 4096);
        cr_assert(walk.read && !walk.write && !walk.execute);
}

Test(gfx12, what_is_not_valid_or_not_allowed_is_a_fault)
{
        set(0x4000 + 8 * 4, 0x7654321071); /* a PTE without bit 63 */
        not_found(gfx12(GFX12_OFFSET), -EPROTO, 4096);
        set(0x4000 + 8 * 4, UINT64_C(0x8000000000000070));
        not_found(gfx12(GFX12_OFFSET), -EFAULT, 4096);
        set(0x4000 + 8 * 4, UINT64_C(1) << 56); /* PRT */
        not_found(gfx12(GFX12_OFFSET), -EFAULT, 4096);
        cr_assert(walk.sparse);
        set(0x4000 + 8 * 4, UINT64_C(0x8001000000000071));
        not_found(gfx12(GFX12_OFFSET), -EPROTO, 4096);
        set(0x3000 + 8 * 3, UINT64_C(0x8000000000001071)); /* 2 MiB at an odd page */
        not_found(gfx12(GFX12_OFFSET), -EPROTO, 1 << 21);
        set(0x3000 + 8 * 3, 0x4009);
        not_found(gfx12(GFX12_OFFSET), -EPROTO, 1 << 21);
        set(0x3000 + 8 * 3, 0x9001);
        not_found(gfx12(GFX12_OFFSET), -EIO, 4096);
        set(0x2000 + 8 * 2, 0);
        not_found(gfx12(GFX12_OFFSET), -EFAULT, 1 << 30);
        not_found(gfx12(GFX12_OFFSET | UINT64_C(1) << 48), -EPROTO, 0);
}
