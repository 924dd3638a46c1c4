/* SPDX-License-Identifier: ISC */
/*
 * Windows: parts of BARs, and copies from and to them.
 *
 * A copy accesses each byte of the window once, in ascending order, by aligned words that are as wide as the
 * place allows, up to 8 bytes. memcpy() promises none of that: it may read a byte twice, go backwards, or
 * use words that lie across an alignment, each of which means something else to a device than to memory.
 * Into write combining, 16 bytes go by one streaming store where the processor has them, which fills its
 * buffers without reading anything in.
 *
 * A window without a host address sends messages; the way there splits long ones. What fails reads as all
 * ones, is written nowhere, and is kept as the function's failure.
 */
#include <inttypes.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "daemon/pci/transport.h"

#define WINDOW_PAGE 4096u

int rig_pci_window(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes,
        enum rig_caching caching, struct rig_window *ret_window, struct rig_error *e)
{
        struct rig_pci_bar b;
        void *host;
        int r = rig_pci_bar(pci, bar, &b, e);

        if (r < 0)
                return r;
        if (!bytes || rig_range_outside(offset, bytes, b.bytes) || offset % WINDOW_PAGE ||
                (bytes % WINDOW_PAGE && offset + bytes != b.bytes))
                return rig_error_set(e, -ERANGE,
                        "%s: no window of 0x%" PRIx64 " bytes fits at 0x%" PRIx64
                        " of BAR %u, which has 0x%" PRIx64 "; windows are of whole pages",
                        pci->name, bytes, offset, bar, b.bytes);
        if (caching == RIG_WRITE_COMBINING && !b.prefetchable)
                return rig_error_set(e, -EOPNOTSUPP,
                        "%s: writes to BAR %u may not be combined: it is not prefetchable", pci->name, bar);
        r = pci->ops->map(pci, bar, offset, bytes, caching, &host, e);
        if (r < 0)
                return r;
        rig_assert(!host || bytes % 8 == 0);
        *ret_window = (struct rig_window){.host = host,
                .mapped_bytes = host ? bytes : 0,
                .bytes = bytes,
                .pci = pci,
                .bar = bar,
                .offset = offset,
                .caching = caching};
        return 0;
}

void rig_window_close(struct rig_window *window)
{
        if (window->pci)
                window->pci->ops->unmap(window->pci, (void *)(uintptr_t)window->host, window->bytes);
        *window = (struct rig_window){0};
}

/* ---------------------------------------------------------------- by message */

static void message_read(const struct rig_window *window, uint64_t at, void *data, uint64_t bytes)
{
        struct rig_pci *pci = window->pci;
        struct rig_error e = RIG_ERROR_NULL;

        if (pci->ops->bar_read(pci, window->bar, window->offset + at, data, bytes, &e) == 0)
                return;
        rig_pci_note(pci, &e);
        memset(data, 0xff, bytes);
}

static void message_write(const struct rig_window *window, uint64_t at, const void *data, uint64_t bytes)
{
        struct rig_pci *pci = window->pci;
        struct rig_error e = RIG_ERROR_NULL;

        if (pci->ops->bar_write(pci, window->bar, window->offset + at, data, bytes, &e) < 0)
                rig_pci_note(pci, &e);
}

/* The inline accessors come here for what is not in the mapped part, which is all of the window or nothing.
 */
static void assert_trapped(const struct rig_window *window, uint64_t at, uint64_t bytes)
{
        rig_assert(!rig_range_outside(at, bytes, window->bytes));
        rig_assert(!window->host);
}

uint64_t rig_window_trapped_read(const struct rig_window *window, uint64_t at, uint32_t bytes)
{
        union {
                uint8_t u8;
                uint16_t u16;
                uint32_t u32;
                uint64_t u64;
        } value = {.u64 = 0};

        assert_trapped(window, at, bytes);
        message_read(window, at, &value, bytes);
        return bytes == 1 ? value.u8 : bytes == 2 ? value.u16 : bytes == 4 ? value.u32 : value.u64;
}

void rig_window_trapped_write(const struct rig_window *window, uint64_t at, uint32_t bytes, uint64_t value)
{
        uint8_t u8 = (uint8_t)value;
        uint16_t u16 = (uint16_t)value;
        uint32_t u32 = (uint32_t)value;
        const void *data = bytes == 1   ? (const void *)&u8
                           : bytes == 2 ? (const void *)&u16
                           : bytes == 4 ? (const void *)&u32
                                        : &value;

        assert_trapped(window, at, bytes);
        message_write(window, at, data, bytes);
}

/* ---------------------------------------------------------------- copies */

/* The widest word, up to 8 bytes, that is aligned at `host` and no longer than `bytes`. */
static unsigned word_bytes(const volatile uint8_t *host, uint64_t bytes)
{
        unsigned n = 8;

        while ((uintptr_t)host % n || n > bytes)
                n /= 2;
        return n;
}

static void load_word(const volatile uint8_t *host, uint8_t *data, unsigned n)
{
        uint64_t u64;
        uint32_t u32;
        uint16_t u16;

        switch (n) {
        case 8:
                u64 = *(const volatile uint64_t *)host;
                memcpy(data, &u64, 8);
                break;
        case 4:
                u32 = *(const volatile uint32_t *)host;
                memcpy(data, &u32, 4);
                break;
        case 2:
                u16 = *(const volatile uint16_t *)host;
                memcpy(data, &u16, 2);
                break;
        default:
                *data = *host;
        }
}

static void store_word(volatile uint8_t *host, const uint8_t *data, unsigned n)
{
        uint64_t u64;
        uint32_t u32;
        uint16_t u16;

        switch (n) {
        case 8:
                memcpy(&u64, data, 8);
                *(volatile uint64_t *)host = u64;
                break;
        case 4:
                memcpy(&u32, data, 4);
                *(volatile uint32_t *)host = u32;
                break;
        case 2:
                memcpy(&u16, data, 2);
                *(volatile uint16_t *)host = u16;
                break;
        default:
                *host = *data;
        }
}

static void load(const volatile uint8_t *host, uint8_t *data, uint64_t bytes)
{
        unsigned n;

        for (; bytes; host += n, data += n, bytes -= n) {
                n = word_bytes(host, bytes);
                for (; n == 8 && bytes >= 16; host += 8, data += 8, bytes -= 8)
                        load_word(host, data, 8);
                load_word(host, data, n);
        }
}

static void store(volatile uint8_t *host, const uint8_t *data, uint64_t bytes)
{
        unsigned n;

        for (; bytes; host += n, data += n, bytes -= n) {
                n = word_bytes(host, bytes);
                for (; n == 8 && bytes >= 16; host += 8, data += 8, bytes -= 8)
                        store_word(host, data, 8);
                store_word(host, data, n);
        }
}

/* Streams what is aligned to 16 bytes, and stores the ends. */
static void stream(volatile uint8_t *host, const uint8_t *data, uint64_t bytes)
{
#if defined(__SSE2__)
        uint64_t head = RIG_MIN((uint64_t)(-(uintptr_t)host % 16), bytes);

        store(host, data, head);
        host += head;
        data += head;
        bytes -= head;
        for (; bytes >= 64; host += 64, data += 64, bytes -= 64) {
                const __m128i *from = (const __m128i *)(const void *)data;
                __m128i *to = (__m128i *)(uintptr_t)host;
                __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
                __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

                _mm_stream_si128(to, a);
                _mm_stream_si128(to + 1, b);
                _mm_stream_si128(to + 2, c);
                _mm_stream_si128(to + 3, d);
        }
        for (; bytes >= 16; host += 16, data += 16, bytes -= 16)
                _mm_stream_si128(
                        (__m128i *)(uintptr_t)host, _mm_loadu_si128((const __m128i *)(const void *)data));
#endif
        store(host, data, bytes);
}

void rig_window_read(const struct rig_window *window, uint64_t at, void *data, uint64_t bytes)
{
        rig_assert(!rig_range_outside(at, bytes, window->bytes));
        if (!bytes)
                return;
        if (window->host)
                load(window->host + at, data, bytes);
        else
                message_read(window, at, data, bytes);
}

void rig_window_write(const struct rig_window *window, uint64_t at, const void *data, uint64_t bytes)
{
        rig_assert(!rig_range_outside(at, bytes, window->bytes));
        if (!bytes)
                return;
        if (!window->host)
                message_write(window, at, data, bytes);
        else if (window->caching == RIG_WRITE_COMBINING)
                stream(window->host + at, data, bytes);
        else
                store(window->host + at, data, bytes);
}
