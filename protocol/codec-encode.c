/* SPDX-License-Identifier: ISC */
/*
 * Writing messages by their field tables, with libcbor's encoders, which choose the shortest form.
 *
 * Invariants: keys ascend, because the tables do; what does not fit or exceeds its bound stops the walk, and
 * the caller then has an error and bytes of no use. It writes no message that the decoder would refuse.
 *
 * It does not put a message together from several calls: a message is one struct, written once.
 */
#include "protocol/codec.h"

#include <cbor.h>
#include <string.h>

struct writer {
        uint8_t *out;
        size_t room, at;
};

/* Takes the `n` bytes that an encoder of libcbor just wrote at `at`; none means that they did not fit. */
static int put(struct writer *w, size_t n)
{
        if (n == 0)
                return -ENOBUFS;
        w->at += n;
        return 0;
}

static int put_number(struct writer *w, uint64_t value)
{
        return put(w, cbor_encode_uint(value, w->out + w->at, w->room - w->at));
}

static int put_array(struct writer *w, size_t count)
{
        return put(w, cbor_encode_array_start(count, w->out + w->at, w->room - w->at));
}

static int put_map(struct writer *w, size_t count)
{
        return put(w, cbor_encode_map_start(count, w->out + w->at, w->room - w->at));
}

static int encode_value(struct writer *w, const struct rig_codec_type *type, const char *from);

static int encode_number(struct writer *w, const struct rig_codec_type *type, const char *from)
{
        uint64_t value;
        uint32_t narrow;

        if (type->kind == RIG_CODEC_U32) {
                memcpy(&narrow, from, sizeof(narrow));
                value = narrow;
        } else {
                memcpy(&value, from, sizeof(value));
        }
        return value > type->max ? -EINVAL : put_number(w, value);
}

static int encode_bytes(struct writer *w, const struct rig_codec_type *type, const char *from)
{
        struct rig_bytes b;
        size_t n;
        int res;

        memcpy(&b, from, sizeof(b));
        if (b.bytes < type->min || b.bytes > type->max)
                return -EINVAL;
        if (type->kind == RIG_CODEC_TEXT && !rig_text_valid(b.data, b.bytes))
                return -EINVAL;
        if (type->kind == RIG_CODEC_TEXT)
                n = cbor_encode_string_start(b.bytes, w->out + w->at, w->room - w->at);
        else
                n = cbor_encode_bytestring_start(b.bytes, w->out + w->at, w->room - w->at);
        res = put(w, n);
        if (res < 0)
                return res;
        if (b.bytes > w->room - w->at)
                return -ENOBUFS;
        if (b.bytes > 0)
                memcpy(w->out + w->at, b.data, b.bytes);
        w->at += b.bytes;
        return 0;
}

static int encode_array(
        struct writer *w, const struct rig_codec_type *type, const char *from, const char *from_count)
{
        uint32_t count;
        int res;

        memcpy(&count, from_count, sizeof(count));
        if (count < type->min || count > type->max)
                return -EINVAL;
        res = put_array(w, count);
        for (uint32_t i = 0; res == 0 && i < count; i++)
                res = encode_value(w, type->element, from + (size_t)i * type->element->bytes);
        return res;
}

static int encode_field(struct writer *w, const struct rig_codec_field *field, const char *from)
{
        if (field->type.kind == RIG_CODEC_ARRAY)
                return encode_array(w, &field->type, from + field->offset, from + field->count);
        return encode_value(w, &field->type, from + field->offset);
}

static int encode_tuple(struct writer *w, const struct rig_codec_shape *shape, const char *from)
{
        int res;

        res = put_array(w, shape->n_fields);
        for (uint32_t i = 0; res == 0 && i < shape->n_fields; i++)
                res = encode_field(w, &shape->fields[i], from);
        return res;
}

static bool present(const struct rig_codec_field *field, const char *from)
{
        return field->required || *(const bool *)(from + field->has);
}

static int encode_map(struct writer *w, const struct rig_codec_shape *shape, const char *from)
{
        size_t keys = 0;
        int res;

        for (uint32_t i = 0; i < shape->n_fields; i++)
                keys += present(&shape->fields[i], from);
        res = put_map(w, keys);
        for (uint32_t i = 0; res == 0 && i < shape->n_fields; i++) {
                if (!present(&shape->fields[i], from))
                        continue;
                res = put_number(w, shape->fields[i].key);
                if (res == 0)
                        res = encode_field(w, &shape->fields[i], from);
        }
        return res;
}

static int encode_value(struct writer *w, const struct rig_codec_type *type, const char *from)
{
        switch (type->kind) {
        case RIG_CODEC_U32:
        case RIG_CODEC_U64:
                return encode_number(w, type, from);
        case RIG_CODEC_TEXT:
        case RIG_CODEC_BYTES:
                return encode_bytes(w, type, from);
        case RIG_CODEC_TUPLE:
                return encode_tuple(w, type->shape, from);
        case RIG_CODEC_MAP:
                return encode_map(w, type->shape, from);
        default:
                /* An array is a field, whose count is elsewhere: encode_field() writes it. */
                rig_assert(false);
                return -EINVAL;
        }
}

ssize_t rig_codec_encode(enum rig_msg_type type, const void *msg, uint8_t *out, size_t room)
{
        struct writer w = {.out = out, .room = RIG_MIN(room, RIG_PROTO_PACKET_BYTES)};
        const struct rig_codec_shape *shape = rig_codec_shape(type);
        int res;

        if (!shape)
                return -EINVAL;
        res = put_array(&w, 2);
        if (res == 0)
                res = put_number(&w, type);
        if (res == 0)
                res = encode_map(&w, shape, msg);
        return res < 0 ? res : (ssize_t)w.at;
}
