/* SPDX-License-Identifier: ISC */
/*
 * JSON. Numbers are written with all their digits, also beyond 2^53, where some readers round: a limit of
 * 18446744073709551615 is none. What a terminal would not show is escaped, which JSON allows for any
 * character, so that JSON may be looked at as well.
 */
#include "tools/rigctl/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/rigctl/text.h"

static void write_text(FILE *f, const char *s)
{
        fputc('"', f);
        while (*s) {
                const char *from = s;
                int32_t code = ctl_text_next(&s);

                if (code < 0)
                        fputs("\\ufffd", f);
                else if (code == '"' || code == '\\')
                        fprintf(f, "\\%c", (char)code);
                else if (code == '\n')
                        fputs("\\n", f);
                else if (ctl_text_hidden(code) && code > 0xffff)
                        fprintf(f, "\\u%04x\\u%04x", 0xd7c0u + ((unsigned)code >> 10),
                                0xdc00u + ((unsigned)code & 0x3ff));
                else if (ctl_text_hidden(code))
                        fprintf(f, "\\u%04x", (unsigned)code);
                else
                        fwrite(from, 1, (size_t)(s - from), f);
        }
        fputc('"', f);
}

static void newline(FILE *f, bool pretty, unsigned depth)
{
        if (pretty)
                fprintf(f, "\n%*s", (int)depth * 2, "");
}

/* The shorter of two precisions that reads back as the same number. */
static void write_real(FILE *f, double real)
{
        char text[32];

        if (!isfinite(real)) {
                fputs("null", f);
                return;
        }
        snprintf(text, sizeof(text), "%.15g", real);
        if (strtod(text, NULL) < real || strtod(text, NULL) > real)
                snprintf(text, sizeof(text), "%.17g", real);
        fputs(text, f);
}

static void write_value(FILE *f, const struct ctl_value *v, bool pretty, unsigned depth);

static void write_items(FILE *f, const struct ctl_value *v, bool pretty, unsigned depth)
{
        bool map = v->kind == CTL_MAP;

        fputc(map ? '{' : '[', f);
        for (size_t i = 0; i < v->n; i++) {
                fputs(i ? "," : "", f);
                newline(f, pretty, depth + 1);
                if (map) {
                        write_text(f, v->keys[i]);
                        fputs(pretty ? ": " : ":", f);
                }
                write_value(f, &v->items[i], pretty, depth + 1);
        }
        if (v->n)
                newline(f, pretty, depth);
        fputc(map ? '}' : ']', f);
}

static void write_value(FILE *f, const struct ctl_value *v, bool pretty, unsigned depth)
{
        switch (v->kind) {
        case CTL_NOTHING:
                fputs("null", f);
                break;
        case CTL_TRUTH:
                fputs(v->truth ? "true" : "false", f);
                break;
        case CTL_NUMBER:
                fprintf(f, "%" PRIu64, v->number);
                break;
        case CTL_SIGNED:
                fprintf(f, "%" PRId64, v->integer);
                break;
        case CTL_REAL:
                write_real(f, v->real);
                break;
        case CTL_TEXT:
                write_text(f, v->text);
                break;
        case CTL_LIST:
        case CTL_MAP:
                write_items(f, v, pretty, depth);
                break;
        }
}

void ctl_json_write(FILE *f, const struct ctl_value *value, bool pretty)
{
        write_value(f, value, pretty, 0);
        fputc('\n', f);
}
