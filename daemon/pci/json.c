/* SPDX-License-Identifier: ISC */
/*
 * A reader of JSON (RFC 8259) that calls back for each scalar, for texts of another program that are short
 * and not to be trusted.
 *
 * The text need not end in a NUL; no byte outside is looked at. Nesting is bounded, and so is the path: a
 * key that would not fit is cut, so that its value is reported under a path that nobody asks for. Keys and
 * strings are taken as their bytes: escapes are checked for their backslash and otherwise left, since no key
 * that is asked for has any.
 */
#include "daemon/pci/json.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH  8u
#define PATH_BYTES 128u

struct reader {
        const char *p, *end;
        rig_json_scalar scalar;
        void *own;
        char path[PATH_BYTES];
};

static void skip_blanks(struct reader *r)
{
        while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
                r->p++;
}

static bool take(struct reader *r, char c)
{
        skip_blanks(r);
        if (r->p == r->end || *r->p != c)
                return false;
        r->p++;
        return true;
}

static bool take_word(struct reader *r, const char *word)
{
        size_t n = strlen(word);

        if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
                return false;
        r->p += n;
        return true;
}

/* Its opening quote is taken. */
static int read_string(struct reader *r, const char **ret_text, size_t *ret_bytes)
{
        const char *start = r->p;

        for (; r->p < r->end && *r->p != '"'; r->p++) {
                if ((unsigned char)*r->p < ' ')
                        return -EINVAL;
                if (*r->p == '\\' && ++r->p == r->end)
                        return -EINVAL;
        }
        if (r->p == r->end)
                return -EINVAL;
        *ret_text = start;
        *ret_bytes = (size_t)(r->p++ - start);
        return 0;
}

static int read_number(struct reader *r)
{
        static const char others[] = "+-.eE";
        enum rig_json_kind kind = JSON_NUMBER;
        const char *start = r->p;
        uint64_t value = 0;

        for (; r->p < r->end; r->p++) {
                if (*r->p >= '0' && *r->p <= '9') {
                        if (rig_mul_overflow(value, UINT64_C(10), &value) ||
                                rig_add_overflow(value, (uint64_t)(*r->p - '0'), &value))
                                kind = JSON_OTHER;
                } else if (*r->p && strchr(others, *r->p)) {
                        kind = JSON_OTHER;
                } else {
                        break;
                }
        }
        if (r->p == start)
                return -EINVAL;
        r->scalar(r->own, r->path, kind, kind == JSON_NUMBER ? value : 0);
        return 0;
}

static int read_value(struct reader *r, unsigned depth);

/* A value below `key`, whose path is undone after it. */
static int read_member(struct reader *r, const char *key, size_t bytes, unsigned depth)
{
        size_t length = strlen(r->path);
        int e;

        snprintf(r->path + length, sizeof(r->path) - length, "%s%.*s", length ? "." : "",
                (int)RIG_MIN(bytes, sizeof(r->path)), key);
        e = read_value(r, depth + 1);
        r->path[length] = '\0';
        return e;
}

/* An object or an array, whose bracket is taken. */
static int read_members(struct reader *r, bool object, unsigned depth)
{
        char close = object ? '}' : ']';

        if (depth == MAX_DEPTH)
                return -EINVAL;
        if (take(r, close))
                return 0;
        do {
                const char *key = "";
                size_t bytes = 0;
                int e;

                if (object && (!take(r, '"') || read_string(r, &key, &bytes) < 0 || !take(r, ':')))
                        return -EINVAL;
                e = read_member(r, key, bytes, depth);
                if (e < 0)
                        return e;
        } while (take(r, ','));
        return take(r, close) ? 0 : -EINVAL;
}

static int read_value(struct reader *r, unsigned depth)
{
        const char *text;
        size_t bytes;

        if (take(r, '{'))
                return read_members(r, true, depth);
        if (take(r, '['))
                return read_members(r, false, depth);
        if (take(r, '"')) {
                if (read_string(r, &text, &bytes) < 0)
                        return -EINVAL;
                r->scalar(r->own, r->path, JSON_OTHER, 0);
        } else if (take_word(r, "true")) {
                r->scalar(r->own, r->path, JSON_BOOL, 1);
        } else if (take_word(r, "false")) {
                r->scalar(r->own, r->path, JSON_BOOL, 0);
        } else if (take_word(r, "null")) {
                r->scalar(r->own, r->path, JSON_OTHER, 0);
        } else {
                return read_number(r);
        }
        return 0;
}

int rig_json_read(const char *text, size_t bytes, rig_json_scalar scalar, void *own)
{
        struct reader r = {text, text + bytes, scalar, own, {0}};
        int e = read_value(&r, 0);

        skip_blanks(&r);
        return e < 0 ? e : r.p == r.end ? 0 : -EINVAL;
}
