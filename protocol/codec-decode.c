/* SPDX-License-Identifier: ISC */
/*
 * Reading messages by their field tables.
 *
 * libcbor reads one item at a time from where the reader stands and calls back with what it is; the reader
 * compares that with what the table says belongs there. Recursion follows the tables, whose depth the schema
 * fixes; a value that is skipped is walked with a counter for each of a fixed number of levels.
 *
 * Invariants: the reader never looks past the bytes it was given, nor past RIG_PROTO_PACKET_BYTES of them;
 * each step moves forward or fails; nothing is allocated. The verdict "ends inside the message" (-EAGAIN) is
 * given only where more bytes could still make a message.
 *
 * libcbor's versions differ in which tags and simple values they take. Those occur only in values that are
 * skipped, so they are read here, and the language accepted is the same with every version.
 *
 * It does not check what numbers mean: whether a buffer exists is the receiver's to know.
 */
#include "protocol/codec.h"

#include <cbor.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gen/rig-proto-fast.h"

#if CBOR_MAJOR_VERSION == 0 && CBOR_MINOR_VERSION < 9
typedef size_t cbor_count_t;
#else
typedef uint64_t cbor_count_t;
#endif

#define PATH_MAX_DEPTH 8

enum item_kind {
        ITEM_NUMBER,
        ITEM_TEXT,
        ITEM_BYTES,
        ITEM_ARRAY,
        ITEM_MAP,
        ITEM_TAG,
        ITEM_NEGATIVE,
        ITEM_SIMPLE,
        ITEM_INDEFINITE,
};

static const char *const item_names[] = {
        [ITEM_NUMBER] = "a number",
        [ITEM_TEXT] = "a text",
        [ITEM_BYTES] = "a byte string",
        [ITEM_ARRAY] = "an array",
        [ITEM_MAP] = "a map",
        [ITEM_TAG] = "a tag",
        [ITEM_NEGATIVE] = "a negative number",
        [ITEM_SIMPLE] = "a float or a simple value",
        [ITEM_INDEFINITE] = "an item of indefinite length",
};

struct item {
        enum item_kind kind;
        uint64_t value;      /* the number; of the others the length or the count */
        const uint8_t *data; /* of a text or a byte string */
        size_t head;         /* bytes of the item before those of `data` */
};

struct step {
        const char *name; /* a field; NULL for an element or an unknown key */
        uint64_t number;  /* the element's index, or the key */
        bool element;
};

struct reader {
        const uint8_t *data;
        size_t bytes, at;
        struct item item; /* the last one read */
        struct rig_error *e;

        /* Where in the message the reader is, for the sentence. */
        const char *message;
        struct step path[PATH_MAX_DEPTH];
        size_t depth;
};

/* ------------------------------------------------------------------------------------------ sentences */

static void push(struct reader *r, struct step s)
{
        rig_assert(r->depth < PATH_MAX_DEPTH);
        r->path[r->depth++] = s;
}

static size_t step_print(const struct step *s, bool first, char *out, size_t room)
{
        int n;

        if (s->name)
                n = snprintf(out, room, "%s%s", first ? "" : ".", s->name);
        else if (s->element)
                n = snprintf(out, room, "[%" PRIu64 "]", s->number);
        else
                n = snprintf(out, room, "%skey %" PRIu64, first ? "" : ".", s->number);
        return RIG_MIN((size_t)n, room - 1);
}

static int refuse(struct reader *r, int code, const char *fmt, ...) _printf_(3, 4);
static int refuse(struct reader *r, int code, const char *fmt, ...)
{
        char where[128], what[128];
        size_t n = 0;
        va_list ap;

        if (!r->e)
                return code;
        where[0] = '\0';
        for (size_t i = 0; i < r->depth; i++)
                n += step_print(&r->path[i], i == 0, where + n, sizeof(where) - n);
        va_start(ap, fmt);
        vsnprintf(what, sizeof(what), fmt, ap);
        va_end(ap);
        return rig_error_set(r->e, code, "%s: %s%s%s", r->message, where, n ? ": " : "", what);
}

/* ------------------------------------------------------------------------------------------ items */

static void on_number(void *item, uint64_t value)
{
        *(struct item *)item = (struct item){.kind = ITEM_NUMBER, .value = value};
}

static void on_uint8(void *item, uint8_t value)
{
        on_number(item, value);
}

static void on_uint16(void *item, uint16_t value)
{
        on_number(item, value);
}

static void on_uint32(void *item, uint32_t value)
{
        on_number(item, value);
}

static void on_negative8(void *item, uint8_t value)
{
        *(struct item *)item = (struct item){.kind = ITEM_NEGATIVE, .value = value};
}

static void on_negative16(void *item, uint16_t value)
{
        *(struct item *)item = (struct item){.kind = ITEM_NEGATIVE, .value = value};
}

static void on_negative32(void *item, uint32_t value)
{
        *(struct item *)item = (struct item){.kind = ITEM_NEGATIVE, .value = value};
}

static void on_negative64(void *item, uint64_t value)
{
        *(struct item *)item = (struct item){.kind = ITEM_NEGATIVE, .value = value};
}

static void on_text(void *item, cbor_data data, cbor_count_t bytes)
{
        *(struct item *)item = (struct item){.kind = ITEM_TEXT, .value = bytes, .data = data};
}

static void on_bytes(void *item, cbor_data data, cbor_count_t bytes)
{
        *(struct item *)item = (struct item){.kind = ITEM_BYTES, .value = bytes, .data = data};
}

static void on_array(void *item, cbor_count_t count)
{
        *(struct item *)item = (struct item){.kind = ITEM_ARRAY, .value = count};
}

static void on_map(void *item, cbor_count_t count)
{
        *(struct item *)item = (struct item){.kind = ITEM_MAP, .value = count};
}

static void on_indefinite(void *item)
{
        *(struct item *)item = (struct item){.kind = ITEM_INDEFINITE};
}

/* Tags, floats and simple values never reach libcbor. */
static const struct cbor_callbacks callbacks = {
        .uint8 = on_uint8,
        .uint16 = on_uint16,
        .uint32 = on_uint32,
        .uint64 = on_number,
        .negint8 = on_negative8,
        .negint16 = on_negative16,
        .negint32 = on_negative32,
        .negint64 = on_negative64,
        .byte_string = on_bytes,
        .byte_string_start = on_indefinite,
        .string = on_text,
        .string_start = on_indefinite,
        .array_start = on_array,
        .indef_array_start = on_indefinite,
        .map_start = on_map,
        .indef_map_start = on_indefinite,
};

static int too_long(struct reader *r)
{
        return refuse(r, -EBADMSG, "the message is longer than %u bytes", RIG_PROTO_PACKET_BYTES);
}

/* The item at `at` needs `bytes`, which are not there. */
static int incomplete(struct reader *r, size_t bytes)
{
        if (bytes > RIG_PROTO_PACKET_BYTES - r->at)
                return too_long(r);
        return refuse(r, -EAGAIN, "the bytes end inside the message");
}

/* A tag, a float or a simple value. */
static int next_other(struct reader *r)
{
        const uint8_t *p = r->data + r->at;
        uint8_t low = p[0] & 31;
        size_t bytes = 1;

        if (low >= 24 && low <= 27)
                bytes += (size_t)1 << (low - 24);
        if (p[0] == 0xff)
                return refuse(r, -EBADMSG, "the end of an item of indefinite length");
        if (low > 27)
                return refuse(r, -EBADMSG, "no item starts with the byte 0x%02x", p[0]);
        if (bytes > r->bytes - r->at)
                return incomplete(r, bytes);
        if (p[0] == 0xf8 && p[1] < 32)
                return refuse(r, -EBADMSG, "the simple value %u is one byte, not two", p[1]);
        r->item = (struct item){.kind = p[0] >> 5 == 6 ? ITEM_TAG : ITEM_SIMPLE, .head = bytes};
        r->at += bytes;
        return 0;
}

/* Reads one item, with the bytes of a string and without the elements of an array or a map. */
static int next(struct reader *r)
{
        struct cbor_decoder_result result;
        const uint8_t *p = r->data + r->at;
        size_t left = r->bytes - r->at;

        if (left == 0)
                return incomplete(r, 1);
        if (p[0] >> 5 >= 6)
                return next_other(r);
        result = cbor_stream_decode(p, left, &callbacks, &r->item);
        if (result.status == CBOR_DECODER_ERROR)
                return refuse(r, -EBADMSG, "no item starts with the byte 0x%02x", p[0]);
        if (result.status == CBOR_DECODER_NEDATA) /* what is asked for is there: the sum overflowed */
                return result.required <= left ? too_long(r) : incomplete(r, result.required);
        r->item.head = result.read;
        if (r->item.kind == ITEM_TEXT || r->item.kind == ITEM_BYTES)
                r->item.head -= r->item.value;
        r->at += result.read;
        return 0;
}

/* Bytes of the shortest head that says `value`. */
static size_t shortest(uint64_t value)
{
        if (value < 24)
                return 1;
        return value <= UINT8_MAX ? 2 : value <= UINT16_MAX ? 3 : value <= UINT32_MAX ? 5 : 9;
}

/* Reads one item, which must be of that kind and in its shortest form. */
static int expect(struct reader *r, enum item_kind kind)
{
        int res;

        res = next(r);
        if (res < 0)
                return res;
        if (r->item.kind != kind)
                return refuse(
                        r, -EBADMSG, "%s where %s belongs", item_names[r->item.kind], item_names[kind]);
        if (r->item.head != shortest(r->item.value))
                return refuse(r, -EBADMSG, "%s that is not in its shortest form", item_names[kind]);
        return 0;
}

/* Passes over one value of any type. */
static int skip(struct reader *r)
{
        uint64_t left[RIG_CODEC_SKIP_DEPTH + 1] = {1}; /* values still to come, on each level */
        size_t depth = 0;
        int res;

        while (depth > 0 || left[0] > 0) {
                if (left[depth] == 0) {
                        depth--;
                        continue;
                }
                left[depth]--;
                res = next(r);
                if (res < 0)
                        return res;
                if (r->item.kind == ITEM_INDEFINITE)
                        return refuse(r, -EBADMSG, "an item of indefinite length");
                if (r->item.kind == ITEM_TAG)
                        left[depth]++; /* the value it tags */
                if (r->item.kind != ITEM_ARRAY && r->item.kind != ITEM_MAP)
                        continue;
                if (depth == RIG_CODEC_SKIP_DEPTH)
                        return refuse(r, -EBADMSG, "nested deeper than %d levels", RIG_CODEC_SKIP_DEPTH);
                if (r->item.value > RIG_PROTO_PACKET_BYTES) /* each takes a byte at least */
                        return too_long(r);
                left[++depth] = r->item.kind == ITEM_MAP ? 2 * r->item.value : r->item.value;
        }
        return 0;
}

/* ------------------------------------------------------------------------------------------ values */

static int decode_value(struct reader *r, const struct rig_codec_type *type, char *to);

static int decode_number(struct reader *r, const struct rig_codec_type *type, char *to)
{
        uint32_t narrow;
        int res;

        res = expect(r, ITEM_NUMBER);
        if (res < 0)
                return res;
        if (r->item.value > type->max)
                return refuse(r, -EBADMSG, "%" PRIu64 " is above %" PRIu64, r->item.value, type->max);
        narrow = (uint32_t)r->item.value;
        if (type->kind == RIG_CODEC_U32)
                memcpy(to, &narrow, sizeof(narrow));
        else
                memcpy(to, &r->item.value, sizeof(r->item.value));
        return 0;
}

static int decode_bytes(struct reader *r, const struct rig_codec_type *type, char *to)
{
        struct rig_bytes b;
        int res;

        res = expect(r, type->kind == RIG_CODEC_TEXT ? ITEM_TEXT : ITEM_BYTES);
        if (res < 0)
                return res;
        b = (struct rig_bytes){r->item.data, (size_t)r->item.value};
        if (b.bytes < type->min || b.bytes > type->max)
                return refuse(r, -EBADMSG, "%zu bytes, where %" PRIu64 " to %" PRIu64 " belong", b.bytes,
                        type->min, type->max);
        if (type->kind == RIG_CODEC_TEXT && !rig_text_valid(b.data, b.bytes))
                return refuse(r, -EBADMSG, "the text is not UTF-8, or holds a NUL");
        memcpy(to, &b, sizeof(b));
        return 0;
}

static int decode_array(struct reader *r, const struct rig_codec_type *type, char *to, char *to_count)
{
        uint32_t count;
        int res;

        res = expect(r, ITEM_ARRAY);
        if (res < 0)
                return res;
        if (r->item.value < type->min || r->item.value > type->max)
                return refuse(r, -EBADMSG, "%" PRIu64 " elements, where %" PRIu64 " to %" PRIu64 " belong",
                        r->item.value, type->min, type->max);
        count = (uint32_t)r->item.value;
        for (uint32_t i = 0; i < count; i++) {
                push(r, (struct step){.number = i, .element = true});
                res = decode_value(r, type->element, to + (size_t)i * type->element->bytes);
                if (res < 0)
                        return res;
                r->depth--;
        }
        memcpy(to_count, &count, sizeof(count));
        return 0;
}

static int decode_field(struct reader *r, const struct rig_codec_field *field, char *to)
{
        int res;

        push(r, (struct step){.name = field->name});
        if (field->type.kind == RIG_CODEC_ARRAY)
                res = decode_array(r, &field->type, to + field->offset, to + field->count);
        else
                res = decode_value(r, &field->type, to + field->offset);
        if (res < 0)
                return res;
        if (!field->required)
                *(bool *)(to + field->has) = true;
        r->depth--;
        return 0;
}

static int decode_tuple(struct reader *r, const struct rig_codec_shape *shape, char *to)
{
        int res;

        res = expect(r, ITEM_ARRAY);
        if (res < 0)
                return res;
        if (r->item.value != shape->n_fields)
                return refuse(r, -EBADMSG, "%" PRIu64 " elements, where %s has %" PRIu32, r->item.value,
                        shape->name, shape->n_fields);
        for (uint32_t i = 0; i < shape->n_fields; i++) {
                res = decode_field(r, &shape->fields[i], to);
                if (res < 0)
                        return res;
        }
        return 0;
}

static uint32_t field_find(const struct rig_codec_shape *shape, uint64_t key)
{
        uint32_t i = 0;

        while (i < shape->n_fields && shape->fields[i].key != key)
                i++;
        return i;
}

/* Passes over the value of a key that is not known, and refuses one that came before. */
static int decode_unknown(struct reader *r, uint64_t key, uint64_t *keys, size_t *n_keys)
{
        int res;

        for (size_t i = 0; i < *n_keys; i++)
                if (keys[i] == key)
                        return refuse(r, -EBADMSG, "key %" PRIu64 " comes twice", key);
        if (*n_keys == RIG_CODEC_UNKNOWN_MAX)
                return refuse(r, -EBADMSG, "more than %d keys that are not known", RIG_CODEC_UNKNOWN_MAX);
        keys[(*n_keys)++] = key;
        push(r, (struct step){.number = key});
        res = skip(r);
        if (res < 0)
                return res;
        r->depth--;
        return 0;
}

/* The fields that did not come. */
static int decode_absent(struct reader *r, const struct rig_codec_shape *shape, uint32_t seen, char *to)
{
        for (uint32_t i = 0; i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];

                if (seen & (1u << i))
                        continue;
                if (f->required)
                        return refuse(r, -EBADMSG, "%s, key %" PRIu32 ", is missing", f->name, f->key);
                *(bool *)(to + f->has) = false;
                if (f->type.kind == RIG_CODEC_ARRAY)
                        memset(to + f->count, 0, sizeof(uint32_t));
                else
                        memset(to + f->offset, 0, f->type.bytes);
        }
        return 0;
}

static int decode_map(struct reader *r, const struct rig_codec_shape *shape, char *to)
{
        uint64_t unknown[RIG_CODEC_UNKNOWN_MAX], n, key;
        size_t n_unknown = 0;
        uint32_t seen = 0, at;
        int res;

        res = expect(r, ITEM_MAP);
        if (res < 0)
                return res;
        n = r->item.value;
        if (n > shape->n_fields + RIG_CODEC_UNKNOWN_MAX)
                return refuse(r, -EBADMSG, "more than %d keys that are not known", RIG_CODEC_UNKNOWN_MAX);
        for (uint64_t i = 0; i < n; i++) {
                res = expect(r, ITEM_NUMBER);
                if (res < 0)
                        return res;
                key = r->item.value;
                at = field_find(shape, key);
                if (at == shape->n_fields)
                        res = decode_unknown(r, key, unknown, &n_unknown);
                else if (seen & (1u << at))
                        res = refuse(r, -EBADMSG, "%s, key %" PRIu64 ", comes twice", shape->fields[at].name,
                                key);
                else
                        res = decode_field(r, &shape->fields[at], to);
                if (res < 0)
                        return res;
                if (at < shape->n_fields)
                        seen |= 1u << at;
        }
        return decode_absent(r, shape, seen, to);
}

static int decode_value(struct reader *r, const struct rig_codec_type *type, char *to)
{
        switch (type->kind) {
        case RIG_CODEC_U32:
        case RIG_CODEC_U64:
                return decode_number(r, type, to);
        case RIG_CODEC_TEXT:
        case RIG_CODEC_BYTES:
                return decode_bytes(r, type, to);
        case RIG_CODEC_TUPLE:
                return decode_tuple(r, type->shape, to);
        case RIG_CODEC_MAP:
                return decode_map(r, type->shape, to);
        default:
                /* An array is a field, whose count is elsewhere: decode_field() reads it. */
                rig_assert(false);
                return -EINVAL;
        }
}

/* ------------------------------------------------------------------------------------------ messages */

static struct reader reader_of(const uint8_t *data, size_t bytes, struct rig_error *e)
{
        return (struct reader){.data = data,
                .bytes = RIG_MIN(bytes, RIG_PROTO_PACKET_BYTES),
                .e = e,
                .message = "a message"};
}

static int read_type(struct reader *r, uint64_t *ret_type)
{
        int res;

        res = expect(r, ITEM_ARRAY);
        if (res < 0)
                return res;
        if (r->item.value != 2)
                return refuse(r, -EBADMSG, "an array of %" PRIu64 ", where its type and a map belong",
                        r->item.value);
        res = expect(r, ITEM_NUMBER);
        if (res < 0)
                return res;
        *ret_type = r->item.value;
        return 0;
}

int rig_codec_peek(const uint8_t *data, size_t bytes, uint32_t *ret_type, struct rig_error *e)
{
        struct reader r = reader_of(data, bytes, e);
        uint64_t type = 0;
        int res;

        res = read_type(&r, &type);
        if (res < 0)
                return res;
        *ret_type = (uint32_t)RIG_MIN(type, (uint64_t)UINT32_MAX);
        return 0;
}

ssize_t rig_codec_decode_table(const uint8_t *data, size_t bytes, union rig_msg *msg,
        enum rig_msg_type *ret_type, struct rig_error *e)
{
        struct reader r = reader_of(data, bytes, e);
        const struct rig_codec_shape *shape;
        uint64_t type = 0;
        int res;

        res = read_type(&r, &type);
        if (res < 0)
                return res;
        shape = type < _RIG_MSG_TYPE_MAX ? rig_codec_shape((uint32_t)type) : NULL;
        if (!shape)
                return refuse(&r, -EOPNOTSUPP, "type %" PRIu64 " is not known", type);
        r.message = shape->name;
        res = decode_map(&r, shape, (char *)msg);
        if (res < 0)
                return res;
        *ret_type = (enum rig_msg_type)type;
        return (ssize_t)r.at;
}

ssize_t rig_codec_decode(const uint8_t *data, size_t bytes, union rig_msg *msg, enum rig_msg_type *ret_type,
        struct rig_error *e)
{
        size_t n;

        n = rig_fast_decode(data, bytes, msg, ret_type);
        if (n > 0)
                return (ssize_t)n;
        return rig_codec_decode_table(data, bytes, msg, ret_type, e);
}
