/* SPDX-License-Identifier: ISC */
/*
 * The steps that the generated straight-line coders are made of: CBOR heads (RFC 8949, section 3) in their
 * shortest form, written and read without a call.
 *
 * A reader returns where the next item starts, or NULL where this one is not an unsigned number in its
 * shortest form, exceeds its bound or is cut: its caller then leaves the message to the table coder, which
 * finds out which of these it was and says so.
 */
#ifndef RIG_FAST_H
#define RIG_FAST_H

#include <string.h>
#include <sys/types.h>

#include "base/base.h"
#include "gen/rig-proto.h"

static inline uint16_t rig_fast_big16(uint16_t v)
{
        return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap16(v) : v;
}

static inline uint32_t rig_fast_big32(uint32_t v)
{
        return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap32(v) : v;
}

static inline uint64_t rig_fast_big64(uint64_t v)
{
        return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(v) : v;
}

/* Appends a head of the major type in the top three bits of `major`. Return: what follows it. */
static inline uint8_t *rig_fast_put(uint8_t *p, uint8_t major, uint64_t v)
{
        if (v < 24) {
                p[0] = (uint8_t)(major | v);
                return p + 1;
        }
        if (v <= UINT8_MAX) {
                p[0] = major | 24;
                p[1] = (uint8_t)v;
                return p + 2;
        }
        if (v <= UINT16_MAX) {
                uint16_t big = rig_fast_big16((uint16_t)v);
                p[0] = major | 25;
                memcpy(p + 1, &big, sizeof(big));
                return p + 3;
        }
        if (v <= UINT32_MAX) {
                uint32_t big = rig_fast_big32((uint32_t)v);
                p[0] = major | 26;
                memcpy(p + 1, &big, sizeof(big));
                return p + 5;
        }
        v = rig_fast_big64(v);
        p[0] = major | 27;
        memcpy(p + 1, &v, sizeof(v));
        return p + 9;
}

/* Appends a text or a byte string, as `major` says. */
static inline uint8_t *rig_fast_put_bytes(uint8_t *p, uint8_t major, struct rig_bytes b)
{
        p = rig_fast_put(p, major, b.bytes);
        if (b.bytes > 0)
                memcpy(p, b.data, b.bytes);
        return p + b.bytes;
}

/* The number of a head of more than one byte, of `bytes` after the first; false where that is not the
 * shortest. */
static inline bool rig_fast_get_wide(const uint8_t *p, size_t bytes, uint64_t *ret)
{
        uint16_t v16;
        uint32_t v32;
        uint64_t v64;

        switch (bytes) {
        case 1:
                *ret = p[1];
                return p[1] >= 24;
        case 2:
                memcpy(&v16, p + 1, sizeof(v16));
                *ret = rig_fast_big16(v16);
                return *ret > UINT8_MAX;
        case 4:
                memcpy(&v32, p + 1, sizeof(v32));
                *ret = rig_fast_big32(v32);
                return *ret > UINT16_MAX;
        default:
                memcpy(&v64, p + 1, sizeof(v64));
                *ret = rig_fast_big64(v64);
                return *ret > UINT32_MAX;
        }
}

static inline const uint8_t *rig_fast_get_head(
        const uint8_t *p, const uint8_t *end, uint8_t major, uint64_t max, uint64_t *ret)
{
        uint8_t low;
        size_t bytes;

        if (rig_unlikely(p == end))
                return NULL;
        low = (uint8_t)(*p ^ major);
        if (low < 24) {
                *ret = low;
                return low <= max ? p + 1 : NULL;
        }
        if (rig_unlikely(low > 27))
                return NULL;
        bytes = (size_t)1 << (low - 24);
        if (rig_unlikely((size_t)(end - p) <= bytes || !rig_fast_get_wide(p, bytes, ret) || *ret > max))
                return NULL;
        return p + 1 + bytes;
}

static inline const uint8_t *rig_fast_get_u64(
        const uint8_t *p, const uint8_t *end, uint64_t max, uint64_t *ret)
{
        return rig_fast_get_head(p, end, 0, max, ret);
}

static inline const uint8_t *rig_fast_get_u32(
        const uint8_t *p, const uint8_t *end, uint32_t max, uint32_t *ret)
{
        uint64_t v;

        p = rig_fast_get_head(p, end, 0, max, &v);
        if (p)
                *ret = (uint32_t)v;
        return p;
}

/* The number of elements of an array. */
static inline const uint8_t *rig_fast_get_count(
        const uint8_t *p, const uint8_t *end, uint32_t max, uint32_t *ret)
{
        uint64_t v;

        p = rig_fast_get_head(p, end, 0x80, max, &v);
        if (p)
                *ret = (uint32_t)v;
        return p;
}

#endif
