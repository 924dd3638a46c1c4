/* SPDX-License-Identifier: ISC */
/*
 * See walk.h. Heads are written here from RFC 8949, section 3, and not by libcbor, so that a test which
 * compares these bytes with the coders' compares two encoders.
 */
#include "tests/protocol/walk.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------ at random */

uint64_t rig_random_next(struct rig_random *r)
{
        uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

uint64_t rig_random_below(struct rig_random *r, uint64_t n)
{
        return rig_random_next(r) % n;
}

static uint64_t random_number(struct rig_random *r, uint64_t max)
{
        static const uint64_t edges[] = {
                0, 1, 23, 24, 255, 256, 65535, 65536, UINT32_MAX, UINT64_C(1) << 32};
        uint64_t v = max;

        switch (rig_random_below(r, 4)) {
        case 0:
                v = edges[rig_random_below(r, RIG_ARRAY_SIZE(edges))];
                break;
        case 1:
                v = max - rig_random_below(r, 2);
                break;
        default:
                v = rig_random_next(r) >> rig_random_below(r, 64);
                break;
        }
        return v <= max ? v : max == UINT64_MAX ? v : v % (max + 1);
}

static struct rig_bytes random_bytes(struct rig_random *r, const struct rig_codec_type *type)
{
        static const char *const texts[] = {
                "", "a", "memory:M,async", "grün", "日本語", "𝄞 clef", "\x7f\x01"};
        static char long_text[4096];
        uint64_t n;

        if (long_text[0] == '\0')
                memset(long_text, 'x', sizeof(long_text));
        if (type->kind == RIG_CODEC_TEXT && rig_random_below(r, 4) > 0)
                return rig_text(texts[rig_random_below(r, RIG_ARRAY_SIZE(texts))], type->max);
        n = type->min + random_number(r, type->max - type->min);
        return (struct rig_bytes){(const uint8_t *)long_text, n};
}

static void random_shape(
        struct rig_random *r, const struct rig_codec_shape *shape, uint32_t elements, char *to);

static void random_value(
        struct rig_random *r, const struct rig_codec_type *type, uint32_t elements, char *to)
{
        struct rig_bytes b;
        uint64_t wide;
        uint32_t narrow;

        switch (type->kind) {
        case RIG_CODEC_U32:
                narrow = (uint32_t)random_number(r, type->max);
                memcpy(to, &narrow, sizeof(narrow));
                break;
        case RIG_CODEC_U64:
                wide = random_number(r, type->max);
                memcpy(to, &wide, sizeof(wide));
                break;
        case RIG_CODEC_TEXT:
        case RIG_CODEC_BYTES:
                b = random_bytes(r, type);
                memcpy(to, &b, sizeof(b));
                break;
        default:
                random_shape(r, type->shape, elements, to);
                break;
        }
}

static void random_shape(
        struct rig_random *r, const struct rig_codec_shape *shape, uint32_t elements, char *to)
{
        for (uint32_t i = 0; i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];
                const struct rig_codec_type *e = f->type.element;
                uint32_t n;

                if (!f->required) {
                        bool has = rig_random_below(r, 2);
                        memcpy(to + f->has, &has, sizeof(has));
                        if (!has)
                                continue;
                }
                if (!e) {
                        random_value(r, &f->type, elements, to + f->offset);
                        continue;
                }
                n = (uint32_t)random_number(r, RIG_MIN(f->type.max, (uint64_t)elements));
                n = RIG_MAX(n, (uint32_t)f->type.min);
                for (uint32_t k = 0; k < n; k++)
                        random_value(r, e, elements, to + f->offset + (size_t)k * e->bytes);
                memcpy(to + f->count, &n, sizeof(n));
        }
}

void rig_random_message(struct rig_random *r, enum rig_msg_type type, uint32_t elements, union rig_msg *msg)
{
        memset(msg, 0, sizeof(*msg));
        random_shape(r, rig_codec_shape(type), elements, (char *)msg);
}

/* ------------------------------------------------------------------------------------------ as bytes */

struct raw {
        uint8_t *out;
        size_t room, at;
        struct rig_sabotaged *s;
};

static void raw_copy(struct raw *w, const void *data, size_t n)
{
        rig_assert(n <= w->room - w->at);
        if (n > 0)
                memcpy(w->out + w->at, data, n);
        w->at += n;
}

static void raw_byte(struct raw *w, unsigned b)
{
        uint8_t byte = (uint8_t)b;

        raw_copy(w, &byte, 1);
}

/* A head whose number takes `n` bytes after the first: 0, 1, 2, 4 or 8. */
static void raw_head_of(struct raw *w, unsigned major, uint64_t v, unsigned n)
{
        static const uint8_t low[] = {[1] = 24, [2] = 25, [4] = 26, [8] = 27};

        raw_byte(w, major << 5 | (n == 0 ? (unsigned)v : low[n]));
        for (unsigned i = n; i > 0; i--)
                raw_byte(w, v >> 8 * (i - 1) & 0xff);
}

static unsigned head_size(uint64_t v)
{
        return v < 24 ? 0 : v < 1u << 8 ? 1 : v < 1u << 16 ? 2 : v < UINT64_C(1) << 32 ? 4 : 8;
}

static void raw_head(struct raw *w, unsigned major, uint64_t v)
{
        raw_head_of(w, major, v, head_size(v));
}

/* True where what is to go wrong is `what`, and this is its place. */
static bool here(struct raw *w, enum rig_sabotage what, const char *field)
{
        struct rig_sabotaged *s = w->s;

        if (!s || s->what != what || s->seen++ != s->nth)
                return false;
        s->hit = true;
        s->field = field;
        return true;
}

static unsigned major_of(const struct rig_codec_type *type)
{
        static const unsigned majors[] = {
                [RIG_CODEC_U32] = 0,
                [RIG_CODEC_U64] = 0,
                [RIG_CODEC_BYTES] = 2,
                [RIG_CODEC_TEXT] = 3,
                [RIG_CODEC_TUPLE] = 4,
                [RIG_CODEC_ARRAY] = 4,
                [RIG_CODEC_MAP] = 5,
        };

        return majors[type->kind];
}

/* Puts another item where one of `major` belongs. Return: true where it did. */
static bool replace(struct raw *w, unsigned major, const char *field)
{
        static const struct {
                unsigned major; /* of what it puts there; 8: of nothing that belongs anywhere */
                const char *bytes;
                size_t n;
        } others[_RIG_SABOTAGE_MAX] = {
                [RIG_SABOTAGE_NEGATIVE] = {8, "\x20", 1},
                [RIG_SABOTAGE_NUMBER] = {0, "\x01", 1},
                [RIG_SABOTAGE_BYTES] = {2, "\x41x", 2},
                [RIG_SABOTAGE_TEXT] = {3, "\x61x", 2},
                [RIG_SABOTAGE_ARRAY] = {4, "\x80", 1},
                [RIG_SABOTAGE_MAP] = {5, "\xa0", 1},
                [RIG_SABOTAGE_TAG] = {8, "\xd8\x40\x01", 3},
                [RIG_SABOTAGE_FLOAT] = {8, "\xf9\x3c\x00", 3},
                [RIG_SABOTAGE_TRUE] = {8, "\xf5", 1},
                [RIG_SABOTAGE_RESERVED] = {8, "\x1c", 1},
        };

        for (unsigned what = 0; what < _RIG_SABOTAGE_MAX; what++)
                if (others[what].n > 0 && others[what].major != major && here(w, what, field)) {
                        raw_copy(w, others[what].bytes, others[what].n);
                        return true;
                }
        if (!here(w, RIG_SABOTAGE_INDEFINITE, field))
                return false;
        raw_byte(w, (major == 0 ? 4 : major) << 5 | 31);
        raw_byte(w, 0xff);
        return true;
}

static void raw_number(struct raw *w, const struct rig_codec_type *type, const char *field, const char *from)
{
        uint64_t v;
        uint32_t narrow;

        memcpy(&narrow, from, sizeof(narrow));
        v = narrow;
        if (type->kind == RIG_CODEC_U64)
                memcpy(&v, from, sizeof(v));
        if (type->max < UINT64_MAX && here(w, RIG_SABOTAGE_ABOVE, field))
                raw_head(w, 0, type->max + 1);
        else if (here(w, RIG_SABOTAGE_LONG, field))
                raw_head_of(w, 0, 1, 1u << rig_random_below(&(struct rig_random){v}, 4));
        else
                raw_head(w, 0, v);
}

static void raw_filled(struct raw *w, unsigned major, size_t n)
{
        raw_head(w, major, n);
        while (n-- > 0)
                raw_byte(w, 'x');
}

/* Writes a text with something in it that no text may have. Return: true where it did. */
static bool raw_bad_text(struct raw *w, const char *field)
{
        static const struct {
                const char *bytes;
                size_t n;
        } bad[_RIG_SABOTAGE_MAX] = {
                [RIG_SABOTAGE_NUL] = {"a\0b", 3},
                [RIG_SABOTAGE_LATIN1] = {"gr\xfcn", 4},
                [RIG_SABOTAGE_SURROGATE] = {"\xed\xa0\x80", 3},
                [RIG_SABOTAGE_OVERLONG] = {"\xc0\xaf", 2},
        };

        for (unsigned what = 0; what < _RIG_SABOTAGE_MAX; what++)
                if (bad[what].n > 0 && here(w, what, field)) {
                        raw_head(w, 3, bad[what].n);
                        raw_copy(w, bad[what].bytes, bad[what].n);
                        return true;
                }
        return false;
}

static void raw_bytes(struct raw *w, const struct rig_codec_type *type, const char *field, const char *from)
{
        unsigned major = major_of(type);
        struct rig_bytes b;

        memcpy(&b, from, sizeof(b));
        if (here(w, RIG_SABOTAGE_MORE, field)) {
                raw_filled(w, major, type->max + 1);
                return;
        }
        if (type->min > 0 && here(w, RIG_SABOTAGE_FEWER, field)) {
                raw_filled(w, major, type->min - 1);
                return;
        }
        if (type->kind == RIG_CODEC_TEXT && raw_bad_text(w, field))
                return;
        if (here(w, RIG_SABOTAGE_LONG, field))
                raw_head_of(w, major, b.bytes, 8);
        else
                raw_head(w, major, b.bytes);
        raw_copy(w, b.data, b.bytes);
}

static void raw_shape(struct raw *w, const struct rig_codec_type *type, const char *field, const char *from);

static void raw_value(struct raw *w, const struct rig_codec_type *type, const char *field, const char *from)
{
        if (replace(w, major_of(type), field))
                return;
        if (type->kind == RIG_CODEC_U32 || type->kind == RIG_CODEC_U64)
                raw_number(w, type, field, from);
        else if (type->kind == RIG_CODEC_TEXT || type->kind == RIG_CODEC_BYTES)
                raw_bytes(w, type, field, from);
        else
                raw_shape(w, type, field, from);
}

static void raw_array(struct raw *w, const struct rig_codec_field *f, const char *from)
{
        const struct rig_codec_type *e = f->type.element;
        uint32_t n;

        memcpy(&n, from + f->count, sizeof(n));
        if (replace(w, 4, f->name))
                return;
        if (here(w, RIG_SABOTAGE_MORE, f->name))
                raw_head(w, 4, f->type.max + 1); /* refused for its count: what follows does not matter */
        else if (f->type.min > 0 && here(w, RIG_SABOTAGE_FEWER, f->name))
                raw_head(w, 4, f->type.min - 1);
        else if (here(w, RIG_SABOTAGE_LONG, f->name))
                raw_head_of(w, 4, n, 4);
        else
                raw_head(w, 4, n);
        for (uint32_t i = 0; i < n; i++)
                raw_value(w, e, f->name, from + f->offset + (size_t)i * e->bytes);
}

static void raw_field(struct raw *w, const struct rig_codec_field *f, const char *from)
{
        if (f->type.kind == RIG_CODEC_ARRAY)
                raw_array(w, f, from);
        else
                raw_value(w, &f->type, f->name, from + f->offset);
}

static void raw_tuple(
        struct raw *w, const struct rig_codec_shape *shape, const char *field, const char *from)
{
        uint64_t n = shape->n_fields;

        if (here(w, RIG_SABOTAGE_MORE, field))
                n++;
        else if (here(w, RIG_SABOTAGE_FEWER, field))
                n--;
        if (here(w, RIG_SABOTAGE_LONG, field))
                raw_head_of(w, 4, n, 2);
        else
                raw_head(w, 4, n);
        for (uint32_t i = 0; i < shape->n_fields; i++)
                raw_field(w, &shape->fields[i], from);
}

static bool is_present(const struct rig_codec_field *f, const char *from)
{
        bool has = true;

        if (!f->required)
                memcpy(&has, from + f->has, sizeof(has));
        return has;
}

/* What goes wrong with the keys of a map, all decided before its head is written. */
struct map_plan {
        uint32_t missing, twice; /* an index of a field; UINT32_MAX: none */
        bool unknown_first, unknown_last, reversed;
        uint64_t keys;
};

static struct map_plan map_plan(
        struct raw *w, const struct rig_codec_shape *shape, const char *field, const char *from)
{
        struct map_plan p = {.missing = UINT32_MAX, .twice = UINT32_MAX};

        for (uint32_t i = 0; i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];

                if (!is_present(f, from))
                        continue;
                if (f->required && here(w, RIG_SABOTAGE_MISSING, f->name))
                        p.missing = i;
                else
                        p.keys++;
                if (here(w, RIG_SABOTAGE_TWICE, f->name)) {
                        p.twice = i;
                        p.keys++;
                }
        }
        p.unknown_first = here(w, RIG_SABOTAGE_UNKNOWN_FIRST, field);
        p.unknown_last = here(w, RIG_SABOTAGE_UNKNOWN_LAST, field);
        p.reversed = here(w, RIG_SABOTAGE_REVERSED, field);
        p.keys += (uint64_t)p.unknown_first + p.unknown_last;
        return p;
}

static void raw_unknown(struct raw *w, uint64_t key)
{
        raw_head(w, 0, key);
        raw_copy(w, w->s->unknown, w->s->unknown_bytes);
}

static void raw_map(struct raw *w, const struct rig_codec_shape *shape, const char *field, const char *from)
{
        struct map_plan p = map_plan(w, shape, field, from);

        if (here(w, RIG_SABOTAGE_LONG, field))
                raw_head_of(w, 5, p.keys, 1);
        else
                raw_head(w, 5, p.keys);
        if (p.unknown_first)
                raw_unknown(w, 16);
        for (uint32_t k = 0; k < shape->n_fields; k++) {
                uint32_t i = p.reversed ? shape->n_fields - 1 - k : k;
                const struct rig_codec_field *f = &shape->fields[i];

                if (!is_present(f, from) || i == p.missing)
                        continue;
                for (int times = i == p.twice ? 2 : 1; times > 0; times--) {
                        raw_head(w, 0, f->key);
                        raw_field(w, f, from);
                }
        }
        if (p.unknown_last)
                raw_unknown(w, UINT64_MAX);
}

static void raw_shape(struct raw *w, const struct rig_codec_type *type, const char *field, const char *from)
{
        if (type->kind == RIG_CODEC_TUPLE)
                raw_tuple(w, type->shape, field, from);
        else
                raw_map(w, type->shape, field, from);
}

size_t rig_raw_encode(
        enum rig_msg_type type, const union rig_msg *msg, struct rig_sabotaged *s, uint8_t *out, size_t room)
{
        const struct rig_codec_shape *shape = rig_codec_shape(type);
        struct raw w = {.out = out, .room = room, .s = s};

        if (s) {
                s->seen = 0;
                s->hit = false;
        }
        raw_head(&w, 4, 2);
        raw_head(&w, 0, type);
        if (!replace(&w, 5, shape->name))
                raw_map(&w, shape, shape->name, (const char *)msg);
        return w.at;
}
