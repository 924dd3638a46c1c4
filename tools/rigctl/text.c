/* SPDX-License-Identifier: ISC */
/*
 * Untrusted text. A program chooses its own name, and a name may hold escape sequences that retitle,
 * recolour or answer for a terminal, or characters that reverse what follows. So nothing that came over the
 * bus is printed before ctl_text_clean() wrote such bytes as \x1b; one backslash is left as it is, since
 * nobody reads this back: for that there is --json.
 *
 * UTF-8 is decoded here and not by the locale, because the bus always speaks it. In a locale of another
 * encoding everything beyond ASCII is written as bytes.
 *
 * It also has the few allocations that all files share. A tool that finds no memory for a line of a table
 * has nothing better to do than to say so and to end, with the terminal as it was.
 */
#include "tools/rigctl/text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "tools/rigctl/screen.h"

static bool utf8;

void ctl_text_init(void)
{
        utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *ctl_text_ellipsis(void)
{
        return utf8 ? "…" : "...";
}

/* ---------------------------------------------------------------- characters */

/* Bytes of the sequence that a first byte starts, its bits, and the least code that needs so many. 0: none.
 */
static int sequence(unsigned char first, int32_t *ret_bits, int32_t *ret_least)
{
        static const struct {
                unsigned char mask, value;
                int32_t least;
        } lengths[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

        for (int n = 0; n < (int)RIG_ARRAY_SIZE(lengths); n++)
                if ((first & lengths[n].mask) == lengths[n].value) {
                        *ret_bits = first & (unsigned char)~lengths[n].mask;
                        *ret_least = lengths[n].least;
                        return n + 1;
                }
        return 0;
}

int32_t ctl_text_next(const char **s)
{
        const unsigned char *p = (const unsigned char *)*s;
        int32_t code = 0, least = 0;
        int n = sequence(p[0], &code, &least);

        (*s)++;
        if (n == 0)
                return -1;
        for (int i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return -1;
                code = code << 6 | (p[i] & 0x3f);
        }
        if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
                return -1;
        *s += n - 1;
        return code;
}

bool ctl_text_hidden(int32_t code)
{
        static const struct {
                int32_t first, last;
        } ranges[] = {
                {0, 0x1f},
                {0x7f, 0x9f},
                {0xad, 0xad},     /* the soft hyphen */
                {0x61c, 0x61c},   /* these change the direction */
                {0x200b, 0x200f}, /* and have no width */
                {0x2028, 0x202e},
                {0x2060, 0x206f},
                {0xd800, 0xf8ff}, /* halves, and what everybody may define */
                {0xfeff, 0xfeff},
                {0xfff0, 0xfffb},
                {0xe0000, 0x10ffff},
        };

        for (size_t i = 0; i < RIG_ARRAY_SIZE(ranges); i++)
                if (code >= ranges[i].first && code <= ranges[i].last)
                        return true;
        return false;
}

/* Columns of a character on the terminal, or -1. */
static int columns_of(int32_t code)
{
        if (code < 0 || ctl_text_hidden(code))
                return -1;
        if (code < 0x80)
                return 1;
        return utf8 ? wcwidth((wchar_t)code) : -1;
}

char *ctl_text_clean(const char *s)
{
        char *clean = ctl_grow(NULL, strlen(s) + 1, 4), *to = clean;

        while (*s) {
                const char *from = s;

                if (columns_of(ctl_text_next(&s)) >= 0)
                        to = mempcpy(to, from, (size_t)(s - from));
                else
                        for (; from < s; from++)
                                to += sprintf(to, "\\x%02x", (unsigned char)*from);
        }
        *to = '\0';
        return clean;
}

size_t ctl_text_width(const char *s)
{
        size_t columns = 0;

        while (*s) {
                int n = columns_of(ctl_text_next(&s));

                columns += n > 0 ? (size_t)n : 0;
        }
        return columns;
}

size_t ctl_text_fit(const char *s, size_t columns)
{
        const char *start = s;
        size_t used = 0;

        while (*s) {
                const char *from = s;
                int n = columns_of(ctl_text_next(&s));

                used += n > 0 ? (size_t)n : 0;
                if (used > columns)
                        return (size_t)(from - start);
        }
        return (size_t)(s - start);
}

/* ---------------------------------------------------------------- memory */

void ctl_out_of_memory(void)
{
        ctl_screen_leave();
        fputs("rigctl: out of memory\n", stderr);
        _exit(EXIT_FAILURE);
}

char *ctl_printf(const char *fmt, ...)
{
        va_list ap;
        char *s;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&s, fmt, ap);
        va_end(ap);
        if (r < 0)
                ctl_out_of_memory();
        return s;
}

char *ctl_copy(const char *s)
{
        char *copy = strdup(s);

        if (!copy)
                ctl_out_of_memory();
        return copy;
}

void *ctl_grow(void *array, size_t n, size_t bytes_each)
{
        void *grown = reallocarray(array, n, bytes_each);

        if (!grown)
                ctl_out_of_memory();
        return grown;
}
