/* SPDX-License-Identifier: ISC */
/*
 * Texts of messages: UTF-8 (RFC 3629, section 4) of which no character is NUL, so that a text and a C string
 * say the same. Every other character is admitted; whoever prints a text decides what is printable.
 */
#include "protocol/codec.h"

#include <string.h>

/* The bytes of the character at `p`, of `left` that there are; 0 where it is none or NUL. */
static size_t character(const uint8_t *p, size_t left)
{
        uint8_t low = 0x80, high = 0xbf; /* bounds of the second byte */
        size_t n;

        if (p[0] < 0x80)
                return p[0] != 0;
        if (p[0] < 0xc2 || p[0] > 0xf4)
                return 0;
        n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
        if (p[0] == 0xe0)
                low = 0xa0; /* below: longer than needed */
        else if (p[0] == 0xed)
                high = 0x9f; /* above: surrogates */
        else if (p[0] == 0xf0)
                low = 0x90; /* below: longer than needed */
        else if (p[0] == 0xf4)
                high = 0x8f; /* above: past the last character */
        if (left < n || p[1] < low || p[1] > high)
                return 0;
        for (size_t i = 2; i < n; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        return n;
}

/* How many of the bytes are whole characters, up to the first that is not one. */
static size_t text_length(const uint8_t *data, size_t bytes)
{
        size_t at = 0, n;

        while (at < bytes) {
                n = character(data + at, bytes - at);
                if (n == 0)
                        break;
                at += n;
        }
        return at;
}

bool rig_text_valid(const uint8_t *data, size_t bytes)
{
        return text_length(data, bytes) == bytes;
}

struct rig_bytes rig_text(const char *s, size_t max)
{
        const uint8_t *data = (const uint8_t *)s;

        return (struct rig_bytes){data, text_length(data, strnlen(s, max))};
}

char *rig_text_copy(struct rig_bytes text, char *out, size_t size)
{
        rig_assert(text.bytes < size);
        if (text.bytes > 0)
                memcpy(out, text.data, text.bytes);
        out[text.bytes] = '\0';
        return out;
}
