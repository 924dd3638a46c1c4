/* SPDX-License-Identifier: ISC */
/*
 * Capability lists of configuration space, as a device gives them: not to be trusted.
 *
 * A list is right when each of its capabilities lies inside the space, and no two share a word. That no word
 * is shared also ends every walk: a list that comes back to itself meets the header it has been at. Lengths
 * are the least that each kind has, where the kind is known, and one word else. (PCI Local Bus 3.0, 6.7; PCI
 * Express Base 5.0, 7.6 and 7.8.6; the sizes of MSI are in 6.8.1.)
 *
 * Deliberately not here: what capabilities say. Nor repair: a list that is wrong is wrong from its first
 * entry, since nothing says where it went wrong.
 */
#include "daemon/pci/transport.h"

#define SPACE_BYTES    4096u
#define LEGACY_BYTES   256u
#define HEADER_BYTES   64u /* of a function: the first list lies behind it */
#define LIST_POINTER   0x34u
#define ID_VPD         0x03u
#define ID_VENDOR      0x09u
#define EXT_DSN        0x03u
#define REBAR_MAX_BARS 6u

struct walk {
        rig_pci_config_reader reader;
        void *own;
        uint32_t start, end; /* where capabilities may lie */
        uint64_t taken[SPACE_BYTES / 4 / 64];
};

/* Marks the words of a capability as taken. -EPROTO: one was, or they leave the space. */
static int take(struct walk *walk, uint32_t at, uint32_t bytes)
{
        if (at < walk->start || rig_range_outside(at, bytes, walk->end))
                return -EPROTO;
        for (uint32_t word = at / 4; word < (at + bytes + 3) / 4; word++) {
                uint64_t bit = UINT64_C(1) << word % 64;

                if (walk->taken[word / 64] & bit)
                        return -EPROTO;
                walk->taken[word / 64] |= bit;
        }
        return 0;
}

/* How long a capability of the first list is at least. `header` is its first word. */
static uint32_t least_bytes(uint32_t header)
{
        uint32_t more = header >> 16;

        switch (header & 0xff) {
        case RIG_PCI_CAP_PM:
        case ID_VPD:
                return 8;
        case RIG_PCI_CAP_MSI: /* bit 7: addresses of 64 bits; bit 8: masks of vectors */
                return 10 + (more & 0x80 ? 4 : 0) + (more & 0x100 ? 10 : 0);
        case ID_VENDOR:
                return RIG_MAX(more & 0xff, 4u);
        case RIG_PCI_CAP_PCIE: /* its version is in bits 0 to 3 */
                return (more & 0xf) < 2 ? 0x14 : 0x2c;
        case RIG_PCI_CAP_MSIX:
                return 12;
        default:
                return 4;
        }
}

static int read_word(struct walk *walk, uint32_t at, uint32_t *ret_value)
{
        if (at < walk->start || at + 4 > walk->end)
                return -EPROTO;
        return walk->reader(walk->own, at, ret_value);
}

int rig_pci_capability_find(
        rig_pci_config_reader reader, void *own, uint32_t bytes, uint32_t id, uint32_t *ret_at)
{
        struct walk walk = {reader, own, HEADER_BYTES, RIG_MIN(bytes, LEGACY_BYTES), {0}};
        uint32_t word, at, found = 0;
        int r;

        r = reader(own, RIG_PCI_COMMAND, &word);
        if (r < 0)
                return r;
        if (!(word >> 16 & RIG_PCI_STATUS_LIST))
                return id == RIG_PCI_ANY ? 0 : -ENOENT;
        r = reader(own, LIST_POINTER, &word);
        if (r < 0)
                return r;
        for (at = word & 0xfc; at; at = word >> 8 & 0xfc) {
                r = read_word(&walk, at, &word);
                if (r < 0)
                        return r;
                r = take(&walk, at, least_bytes(word));
                if (r < 0)
                        return r;
                if ((word & 0xff) == id && !found)
                        found = at;
        }
        if (id == RIG_PCI_ANY)
                return 0;
        if (!found)
                return -ENOENT;
        *ret_at = found;
        return 0;
}

/* How long an extended capability is at least: resizable BARs say how many they are in their first control.
 */
static int extended_least_bytes(struct walk *walk, uint32_t at, uint32_t header, uint32_t *ret_bytes)
{
        uint32_t id = header & 0xffff, control;
        int r;

        *ret_bytes = id == EXT_DSN ? 12 : 4;
        if (id != RIG_PCI_EXT_REBAR && id != RIG_PCI_EXT_VFREBAR)
                return 0;
        r = read_word(walk, at + 8, &control);
        if (r < 0)
                return r;
        control = control >> 5 & 7;
        if (control < 1 || control > REBAR_MAX_BARS)
                return -EPROTO;
        *ret_bytes = 4 + 8 * control;
        return 0;
}

int rig_pci_extended_capability_find(
        rig_pci_config_reader reader, void *own, uint32_t bytes, uint32_t id, uint32_t *ret_at)
{
        struct walk walk = {reader, own, LEGACY_BYTES, RIG_MIN(bytes, SPACE_BYTES), {0}};
        uint32_t word, at, length, found = 0;
        int r;

        for (at = bytes > LEGACY_BYTES ? LEGACY_BYTES : 0; at; at = word >> 20 & 0xffc) {
                r = read_word(&walk, at, &word);
                if (r < 0)
                        return r;
                /* a first word of all zeros or all ones: there is no list. (PCI Express Base 5.0, 7.9.1) */
                if (at == LEGACY_BYTES && (word == 0 || word == UINT32_MAX))
                        break;
                r = extended_least_bytes(&walk, at, word, &length);
                if (r == 0)
                        r = take(&walk, at, length);
                if (r < 0)
                        return r;
                if ((word & 0xffff) == id && !found)
                        found = at;
        }
        if (id == RIG_PCI_ANY)
                return 0;
        if (!found)
                return -ENOENT;
        *ret_at = found;
        return 0;
}
