/* SPDX-License-Identifier: ISC */
/*
 * Configuration space of a model: built from its description, with a mask beside it of the bits that
 * software may change. It has a header of type 0, and as capabilities power management, PCI Express with a
 * function level reset, MSI, MSI-X, and resizable BARs. (PCI Local Bus 3.0, 6; PCI Express Base 5.0, 7.)
 *
 * A BAR's register takes the bits of an address at which the BAR can lie, so that writing ones tells its
 * size. The control of a resizable BAR changes that size at once, as hardware does while memory is not
 * decoded.
 *
 * Deliberately not here: what bits do that a model has no use for (errors, power states, link control). They
 * keep what is written, or are read-only.
 */
#include <string.h>

#include "tests/models/model-internal.h"

#define COMMAND       0x04u
#define STATUS        0x06u
#define COMMAND_BITS  0x0546u /* memory, master, parity, SERR, INTx disable */
#define DECODE_MEMORY 0x0002u
#define BUS_MASTER    0x0004u
#define FIRST_LIST    0x34u
#define PCIE_CONTROL  8u
#define FLR           0x8000u
#define MSI_CONTROL   2u
#define MSIX_CONTROL  2u
#define REBAR_CONTROL 8u
#define MIB           (UINT64_C(1) << 20)

static void put16(uint8_t *p, uint32_t v)
{
        p[0] = (uint8_t)v;
        p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
        put16(p, v);
        put16(p + 2, v >> 16);
}

static uint32_t get16(const uint8_t *p)
{
        return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const uint8_t *p)
{
        return get16(p) | get16(p + 2) << 16;
}

static void put_bar_masks(struct model *m)
{
        for (unsigned i = 0; i < MODEL_BARS; i++) {
                const struct model_bar *bar = &m->description->bars[i];
                uint64_t mask = ~(m->bar_bytes[i] - 1);

                if (!bar->bytes)
                        continue;
                put32(m->writable + 0x10 + 4 * i, (uint32_t)mask & ~15u);
                if (bar->wide)
                        put32(m->writable + 0x14 + 4 * i, (uint32_t)(mask >> 32));
        }
}

/* A capability of the first list, at `*at`, after the one whose pointer is at `*pointer`. */
static uint8_t *add(struct model *m, uint32_t *pointer, uint32_t *at, uint8_t id, uint32_t bytes)
{
        uint8_t *c = m->config + *at;

        m->config[*pointer] = (uint8_t)*at;
        c[0] = id;
        *pointer = *at + 1;
        *at += (uint32_t)rig_round_up(bytes, 4);
        return c;
}

static void add_pcie(struct model *m, uint32_t *pointer, uint32_t *at)
{
        uint8_t *c = add(m, pointer, at, 0x10, 0x3c);

        m->pcie_at = (uint32_t)(c - m->config);
        put16(c + 2, 2);                             /* an endpoint, version 2 */
        put32(c + 4, 1u << 28 | 1u << 15 | 1u << 5); /* FLR, role-based errors, extended tags */
        put16(m->writable + m->pcie_at + PCIE_CONTROL, 0x7fff | FLR);
        put32(c + 12, 0x104); /* 16 lanes at 16 GT/s */
        put16(c + 18, 0x104);
        put16(m->writable + m->pcie_at + 0x28, 0x0040); /* may ask for atomics */
        put32(c + 0x2c, 0x1e);
}

static void add_msi(struct model *m, uint32_t *pointer, uint32_t *at)
{
        unsigned log2 = (unsigned)__builtin_ctz(m->description->n_msi);
        uint8_t *c = add(m, pointer, at, 0x05, 14);

        m->msi_at = (uint32_t)(c - m->config);
        put16(c + MSI_CONTROL, 0x80 | log2 << 1); /* addresses of 64 bits */
        put16(m->writable + m->msi_at + MSI_CONTROL, 0x71);
        put32(m->writable + m->msi_at + 4, ~3u);
        put32(m->writable + m->msi_at + 8, ~0u);
        put16(m->writable + m->msi_at + 12, 0xffff);
}

static void add_msix(struct model *m, uint32_t *pointer, uint32_t *at)
{
        const struct model_description *d = m->description;
        uint8_t *c = add(m, pointer, at, 0x11, 12);

        m->msix_at = (uint32_t)(c - m->config);
        put16(c + MSIX_CONTROL, d->n_msix - 1);
        put16(m->writable + m->msix_at + MSIX_CONTROL, 0xc000);
        put32(c + 4, d->msix_table | d->msix_bar);
        put32(c + 8, d->msix_pending | d->msix_bar);
}

static void add_capabilities(struct model *m)
{
        const struct model_description *d = m->description;
        uint32_t pointer = FIRST_LIST, at = 0x40;

        if (d->pm) {
                uint8_t *c = add(m, &pointer, &at, 0x01, 8);

                put16(c + 2, 3);
                put16(c + 4, 8); /* D3 to D0 loses nothing */
                put16(m->writable + (c - m->config) + 4, 3);
        }
        if (d->pcie)
                add_pcie(m, &pointer, &at);
        if (d->n_msi)
                add_msi(m, &pointer, &at);
        if (d->n_msix)
                add_msix(m, &pointer, &at);
        if (m->config[FIRST_LIST])
                put16(m->config + STATUS, 0x10);
}

static void add_rebar(struct model *m)
{
        unsigned n = 0;

        for (unsigned i = 0; i < MODEL_BARS; i++)
                n += m->description->bars[i].sizes != 0;
        if (!n || !m->description->pcie)
                return;
        m->rebar_at = 0x100;
        put32(m->config + m->rebar_at, 0x15 | 1u << 16);
        for (unsigned i = 0, k = 0; i < MODEL_BARS; i++) {
                const struct model_bar *bar = &m->description->bars[i];
                uint8_t *c = m->config + m->rebar_at + 8 * k;
                unsigned size = 63u - (unsigned)__builtin_clzll(m->bar_bytes[i] / MIB | 1);

                if (!bar->sizes)
                        continue;
                put32(c + 4, bar->sizes << 4);
                put32(c + REBAR_CONTROL, i | n << 5 | size << 8);
                put32(m->writable + (c - m->config) + REBAR_CONTROL, 0x3f00);
                k++;
        }
}

void config_reset(struct model *m)
{
        const struct model_description *d = m->description;

        memset(m->config, 0, sizeof(m->config));
        memset(m->writable, 0, sizeof(m->writable));
        put16(m->config, d->vendor);
        put16(m->config + 2, d->device);
        put16(m->writable + COMMAND, COMMAND_BITS);
        m->config[0x08] = d->revision;
        put16(m->config + 0x09, d->class);
        m->config[0x0b] = (uint8_t)(d->class >> 16);
        m->writable[0x0c] = m->writable[0x3c] = 0xff; /* cache line, interrupt line */
        put16(m->config + 0x2c, d->subvendor);
        put16(m->config + 0x2e, d->subdevice);
        for (unsigned i = 0; i < MODEL_BARS; i++) {
                const struct model_bar *bar = &d->bars[i];

                if (bar->bytes)
                        m->config[0x10 + 4 * i] =
                                (uint8_t)((bar->wide ? 4 : 0) | (bar->prefetchable ? 8 : 0));
        }
        add_capabilities(m);
        add_rebar(m);
        put_bar_masks(m);
}

/* -EINVAL: a description that no function can have. */
int config_init(struct model *m)
{
        const struct model_description *d = m->description;

        if (d->n_msi > 32 || d->n_msi & (d->n_msi - 1) || d->n_msix > MAX_VECTORS ||
                d->msix_bar >= MODEL_BARS || (d->n_msix && (d->msix_table | d->msix_pending) & 7))
                return -EINVAL;
        for (unsigned i = 0; i < MODEL_BARS; i++) {
                const struct model_bar *bar = &d->bars[i];

                if (bar->bytes & (bar->bytes - 1) || (bar->bytes && bar->bytes < 16))
                        return -EINVAL;
                if (bar->wide && (i + 1 == MODEL_BARS || d->bars[i + 1].bytes))
                        return -EINVAL;
                m->bar_bytes[i] = m->most_bytes[i] = bar->bytes;
                for (unsigned size = 0; size < 28; size++)
                        if (bar->sizes >> size & 1)
                                m->most_bytes[i] = RIG_MAX(m->most_bytes[i], MIB << size);
        }
        if (d->n_msix && (uint64_t)d->msix_table + 16 * d->n_msix > d->bars[d->msix_bar].bytes)
                return -EINVAL;
        config_reset(m);
        return 0;
}

void config_read(const struct model *m, uint32_t at, uint8_t *data, uint32_t bytes)
{
        memcpy(data, m->config + at, bytes);
}

/* Follows the controls of resizable BARs. */
static void resize_bars(struct model *m)
{
        unsigned n = m->rebar_at ? get32(m->config + m->rebar_at + REBAR_CONTROL) >> 5 & 7 : 0;

        for (unsigned k = 0; k < n; k++) {
                uint32_t control = get32(m->config + m->rebar_at + 8 * k + REBAR_CONTROL);
                unsigned bar = control & 7, size = control >> 8 & 63;

                if (size > 27 || !(m->description->bars[bar].sizes >> size & 1))
                        model_fault(m, "BAR %u cannot be of 2^%u MiB", bar, size);
                else
                        m->bar_bytes[bar] = MIB << size;
        }
        put_bar_masks(m);
}

bool config_write(struct model *m, uint32_t at, const uint8_t *data, uint32_t bytes)
{
        uint8_t *control = m->config + m->pcie_at + PCIE_CONTROL;

        for (uint32_t i = 0; i < bytes; i++)
                m->config[at + i] = (uint8_t)((m->config[at + i] & ~m->writable[at + i]) |
                                              (data[i] & m->writable[at + i]));
        if (m->rebar_at && at >= m->rebar_at && at < m->rebar_at + 0x40)
                resize_bars(m);
        if (!m->pcie_at || !(get16(control) & FLR))
                return false;
        put16(control, get16(control) & ~FLR); /* it always reads as zero */
        return true;
}

bool config_decodes(const struct model *m)
{
        return get16(m->config + COMMAND) & DECODE_MEMORY;
}

bool model_is_master(const struct model *m)
{
        return get16(m->config + COMMAND) & BUS_MASTER;
}

bool config_msi_enabled(const struct model *m)
{
        return m->msi_at && m->config[m->msi_at + MSI_CONTROL] & 1;
}

bool config_msix_enabled(const struct model *m)
{
        return m->msix_at && m->config[m->msix_at + MSIX_CONTROL + 1] & 0x80;
}
