/* SPDX-License-Identifier: ISC */
/*
 * Capability lists, right and wrong: by hand, and random ones beside a reference that is slow and plain. It
 * follows the list into an array, then compares every two of its entries; it ends because it counts.
 */
#include <criterion/criterion.h>

#include "daemon/pci/transport.h"
#include "tests/memory/random.h"

#define LEGACY 256u
#define SPACE  4096u

struct space {
        uint8_t data[SPACE];
        uint32_t reads;
};

static struct space space;

static int reader(void *own, uint32_t at, uint32_t *ret_value)
{
        struct space *s = own;

        cr_assert(at % 4 == 0 && at + 4 <= SPACE);
        cr_assert_lt(++s->reads, 5000u, "it goes on and on");
        memcpy(ret_value, s->data + at, 4);
        return 0;
}

static void put(uint32_t at, uint32_t value)
{
        memcpy(space.data + at, &value, 4);
}

static uint32_t get(uint32_t at)
{
        uint32_t value;

        memcpy(&value, space.data + at, 4);
        return value;
}

static int find(uint32_t bytes, uint32_t id, uint32_t *ret_at)
{
        space.reads = 0;
        return rig_pci_capability_find(reader, &space, bytes, id, ret_at);
}

static int find_extended(uint32_t bytes, uint32_t id, uint32_t *ret_at)
{
        space.reads = 0;
        return rig_pci_extended_capability_find(reader, &space, bytes, id, ret_at);
}

static void begin(uint8_t first)
{
        memset(&space, 0, sizeof(space));
        put(4, 0x100000); /* status: there is a list */
        put(0x34, first);
}

static void link_to(uint8_t at, uint8_t id, uint8_t next, uint16_t more)
{
        put(at, id | (uint32_t)next << 8 | (uint32_t)more << 16);
}

/* ---------------------------------------------------------------- by hand */

Test(capability, each_is_found_and_the_first_of_two_alike)
{
        uint32_t at = 0;

        begin(0x40);
        link_to(0x40, 0x01, 0x50, 3);
        link_to(0x50, 0x09, 0xf0, 4);
        link_to(0xf0, 0x11, 0x80, 7);
        link_to(0x80, 0x09, 0, 16);
        cr_assert_eq(find(SPACE, 0x01, &at), 0);
        cr_assert_eq(at, 0x40);
        cr_assert_eq(find(LEGACY, 0x11, &at), 0);
        cr_assert_eq(at, 0xf0);
        cr_assert_eq(find(SPACE, 0x09, &at), 0);
        cr_assert_eq(at, 0x50);
        cr_assert_eq(find(SPACE, 0x10, &at), -ENOENT);
        cr_assert_eq(find(SPACE, RIG_PCI_ANY, NULL), 0);
}

Test(capability, without_the_bit_in_its_status_there_is_no_list)
{
        uint32_t at;

        begin(0x40);
        link_to(0x40, 0x01, 0x40, 3);
        put(4, 0);
        cr_assert_eq(find(SPACE, 0x01, &at), -ENOENT);
        cr_assert_eq(find(SPACE, RIG_PCI_ANY, NULL), 0);
}

Test(capability, the_low_bits_of_pointers_are_reserved)
{
        uint32_t at;

        begin(0x43);
        link_to(0x40, 0x01, 0x52, 3);
        link_to(0x50, 0x11, 3, 0);
        cr_assert_eq(find(SPACE, 0x11, &at), 0);
        cr_assert_eq(at, 0x50);
}

Test(capability, loops_overlaps_and_what_leaves_the_space_are_refused)
{
        uint32_t at;

        begin(0x40);
        link_to(0x40, 0x01, 0x40, 3); /* to itself */
        cr_assert_eq(find(SPACE, 0x01, &at), -EPROTO);
        link_to(0x40, 0x01, 0x50, 3);
        link_to(0x50, 0x05, 0x40, 0); /* back */
        cr_assert_eq(find(SPACE, 0x01, &at), -EPROTO);
        link_to(0x40, 0x01, 0x44, 3); /* power management has 8 bytes */
        link_to(0x44, 0x11, 0, 0);
        cr_assert_eq(find(SPACE, 0x01, &at), -EPROTO);
        link_to(0x40, 0x01, 0xf8, 3);
        link_to(0xf8, 0x11, 0, 0); /* 12 bytes, 8 are left */
        cr_assert_eq(find(SPACE, 0x01, &at), -EPROTO);
        begin(0x10); /* in the header */
        cr_assert_eq(find(SPACE, 0x01, &at), -EPROTO);
        begin(0x40);
        link_to(0x40, 0x01, 0, 3);
        cr_assert_eq(find(64, 0x01, &at), -EPROTO); /* one who may read no more than the header */
        memset(space.data, 0xff, sizeof(space.data));
        cr_assert_eq(find(SPACE, 0x01, &at), -EPROTO);
}

Test(capability, an_extended_one_is_found)
{
        uint32_t at;

        begin(0);
        put(0x100, 0x0003 | 1u << 16 | 0x200u << 20);
        put(0x200, RIG_PCI_EXT_REBAR | 1u << 16 | 0xff0u << 20);
        put(0x208, 2u << 5);
        put(0xff0, 0x0019 | 1u << 16);
        cr_assert_eq(find_extended(SPACE, RIG_PCI_EXT_REBAR, &at), 0);
        cr_assert_eq(at, 0x200);
        cr_assert_eq(find_extended(SPACE, 0x0019, &at), 0);
        cr_assert_eq(find_extended(LEGACY, 0x0019, &at), -ENOENT);
        put(0x208, 7u << 5); /* no function has seven BARs */
        cr_assert_eq(find_extended(SPACE, 0x0019, &at), -EPROTO);
}

Test(capability, an_extended_space_of_zeros_or_ones_has_no_list)
{
        uint32_t at;

        begin(0);
        cr_assert_eq(find_extended(SPACE, 0x0019, &at), -ENOENT);
        put(0x100, UINT32_MAX);
        cr_assert_eq(find_extended(SPACE, 0x0019, &at), -ENOENT);
        cr_assert_eq(find_extended(SPACE, RIG_PCI_ANY, NULL), 0);
}

/* ---------------------------------------------------------------- beside the reference */

struct entry {
        uint32_t at, bytes, id;
};

/* The least bytes of an entry, from the tables of PCI Local Bus 3.0, 6.7 and 6.8, and PCI Express
 * Base 5.0, 7.5.3. */
static uint32_t reference_bytes(uint32_t word)
{
        uint32_t id = word & 0xff, more = word >> 16;

        if (id == 0x01 || id == 0x03)
                return 8;
        if (id == 0x11)
                return 12;
        if (id == 0x10)
                return (more & 15) >= 2 ? 44 : 20;
        if (id == 0x09)
                return (more & 255) > 4 ? more & 255 : 4;
        if (id == 0x05)
                return more & 0x100 ? (more & 0x80 ? 24 : 20) : (more & 0x80 ? 14 : 10);
        return 4;
}

/* Whether `n` entries are inside [start, end) and apart, by words of 4 bytes. */
static bool apart(const struct entry *entries, unsigned n, uint32_t start, uint32_t end)
{
        for (unsigned i = 0; i < n; i++) {
                uint32_t i_end = (entries[i].at + entries[i].bytes + 3) / 4 * 4;

                if (entries[i].at < start || entries[i].at + entries[i].bytes > end)
                        return false;
                for (unsigned k = 0; k < i; k++) {
                        uint32_t k_end = (entries[k].at + entries[k].bytes + 3) / 4 * 4;

                        if (entries[i].at < k_end && entries[k].at < i_end)
                                return false;
                }
        }
        return true;
}

static int reference_find(uint32_t id, uint32_t *ret_at)
{
        struct entry entries[100];
        unsigned n = 0;

        if (!(get(4) & 0x100000))
                return -ENOENT;
        for (uint32_t at = get(0x34) & 0xfc; at; at = get(at) >> 8 & 0xfc) {
                if (at < 0x40 || n == 100)
                        return -EPROTO;
                entries[n++] = (struct entry){at, reference_bytes(get(at)), get(at) & 0xff};
        }
        if (!apart(entries, n, 0x40, LEGACY))
                return -EPROTO;
        for (unsigned i = 0; i < n; i++) {
                if (entries[i].id == id) {
                        *ret_at = entries[i].at;
                        return 0;
                }
        }
        return -ENOENT;
}

static int reference_find_extended(uint32_t id, uint32_t *ret_at)
{
        struct entry entries[1100];
        unsigned n = 0;

        for (uint32_t at = 0x100; at; at = get(at) >> 20 & 0xffc) {
                uint32_t word, bytes = 4;

                if (at < 0x100 || n == 1100)
                        return -EPROTO;
                word = get(at);
                if (at == 0x100 && (word == 0 || word == UINT32_MAX))
                        break;
                if ((word & 0xffff) == 0x0003)
                        bytes = 12;
                if ((word & 0xffff) == 0x0015 || (word & 0xffff) == 0x0024) {
                        uint32_t bars = at + 12 <= SPACE ? get(at + 8) >> 5 & 7 : 0;

                        if (bars < 1 || bars > 6)
                                return -EPROTO;
                        bytes = 4 + 8 * bars;
                }
                entries[n++] = (struct entry){at, bytes, word & 0xffff};
        }
        if (!apart(entries, n, 0x100, SPACE))
                return -EPROTO;
        for (unsigned i = 0; i < n; i++) {
                if (entries[i].id == id) {
                        *ret_at = entries[i].at;
                        return 0;
                }
        }
        return -ENOENT;
}

/* A list of a few entries at random places, mostly right, sometimes with a byte changed. */
static void scatter(uint64_t *seed)
{
        static const uint8_t ids[] = {0x01, 0x03, 0x05, 0x09, 0x10, 0x11, 0x14, 0xff};
        uint32_t at = 0x34;

        begin(0);
        for (uint64_t n = random_below(seed, 9); n; n--) {
                uint32_t next = 0x40 + 4 * (uint32_t)random_below(seed, 48);

                space.data[at == 0x34 ? at : at + 1] = (uint8_t)(next | random_below(seed, 4));
                link_to((uint8_t)next, ids[random_below(seed, sizeof(ids))], 0,
                        (uint16_t)(random_below(seed, 3) ? random_below(seed, 20) : random_next(seed)));
                at = next;
        }
        if (random_below(seed, 4) == 0)
                space.data[random_below(seed, LEGACY)] = (uint8_t)random_next(seed);
}

static void scatter_extended(uint64_t *seed)
{
        static const uint16_t ids[] = {0x0003, 0x0015, 0x0024, 0x0001, 0x0019, 0xffff, 0};
        uint32_t at = 0x100;

        begin(0);
        for (uint64_t n = random_below(seed, 12); n; n--) {
                uint32_t next = 0x100 + 4 * (uint32_t)random_below(seed, 960);

                put(at, ids[random_below(seed, 7)] | 1u << 16 | next << 20);
                if (at + 12 <= SPACE)
                        put(at + 8, (uint32_t)random_below(seed, 8) << 5);
                at = next;
        }
        if (at != 0x100)
                put(at, ids[random_below(seed, 7)] | 1u << 16 |
                                (uint32_t)(random_below(seed, 4) ? 0 : 0x100) << 20);
        if (random_below(seed, 4) == 0)
                space.data[0x100 + random_below(seed, SPACE - 0x100)] = (uint8_t)random_next(seed);
}

Test(capability, random_lists_are_judged_as_the_reference_judges_them)
{
        unsigned seen[3] = {0}; /* right and found, right and not found, wrong */
        uint64_t seed = 20;

        for (unsigned i = 0; i < 40000; i++) {
                uint32_t id, at = 0, expected_at = 0;
                int r, expected;

                scatter(&seed);
                id = (uint32_t)random_below(&seed, 0x14);
                r = find(LEGACY, id, &at);
                expected = reference_find(id, &expected_at);
                cr_assert_eq(r, expected, "list %u, id 0x%x: %d, not %d", i, id, r, expected);
                cr_assert_eq(at, expected_at);
                seen[expected == 0 ? 0 : expected == -ENOENT ? 1 : 2]++;
        }
        cr_assert(seen[0] > 500 && seen[1] > 500 && seen[2] > 500, "%u %u %u", seen[0], seen[1], seen[2]);
}

Test(capability, random_extended_lists_are_judged_as_the_reference_judges_them)
{
        unsigned seen[3] = {0};
        uint64_t seed = 21;

        for (unsigned i = 0; i < 40000; i++) {
                uint32_t id, at = 0, expected_at = 0;
                int r, expected;

                scatter_extended(&seed);
                id = random_below(&seed, 2) ? 0x0003 : 0x0019;
                r = find_extended(SPACE, id, &at);
                expected = reference_find_extended(id, &expected_at);
                cr_assert_eq(r, expected, "list %u, id 0x%x: %d, not %d", i, id, r, expected);
                cr_assert_eq(at, expected_at);
                seen[expected == 0 ? 0 : expected == -ENOENT ? 1 : 2]++;
        }
        cr_assert(seen[0] > 500 && seen[1] > 500 && seen[2] > 500, "%u %u %u", seen[0], seen[1], seen[2]);
}
