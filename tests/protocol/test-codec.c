/* SPDX-License-Identifier: ISC */
/*
 * What the codec accepts and what it refuses, walked over every field of every message. Each message is made
 * at random from a fixed seed, with arrays short enough that every place in it can be visited.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/protocol/walk.h"

#define ROOM (4 * RIG_PROTO_PACKET_BYTES)

static uint8_t bytes[ROOM], again[ROOM];
static union rig_msg made, read_back;

/* The next type that is a message's; 0 after the last. */
static uint32_t next_type(uint32_t type)
{
        do
                type++;
        while (type < _RIG_MSG_TYPE_MAX && !rig_codec_shape(type));
        return type < _RIG_MSG_TYPE_MAX ? type : 0;
}

/* A message with all its optional fields, or with none. */
static void set_optional(const struct rig_codec_shape *shape, bool has, char *msg)
{
        for (uint32_t i = 0; i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];
                const struct rig_codec_type *e = f->type.element ? f->type.element : &f->type;
                uint32_t n = 1;

                if (!f->required)
                        memcpy(msg + f->has, &has, sizeof(has));
                if (f->type.element)
                        memcpy(&n, msg + f->count, sizeof(n));
                for (uint32_t k = 0; e->shape && k < n; k++)
                        set_optional(e->shape, has, msg + f->offset + (size_t)k * e->bytes);
        }
}

static void make(enum rig_msg_type type, uint64_t seed, uint32_t elements)
{
        rig_random_message(&(struct rig_random){seed}, type, elements, &made);
}

/* One with something in every place: arrays of one or two elements, every optional field there. */
static void make_full(enum rig_msg_type type)
{
        const struct rig_codec_shape *shape = rig_codec_shape(type);
        uint32_t two = 2;

        rig_random_message(&(struct rig_random){type}, type, 2, &made);
        if (type == RIG_MSG_WORK_NEW) {
                made.work_new.n_parts = made.work_new.n_slots = two;
                for (uint32_t i = 0; i < two; i++)
                        made.work_new.parts[i].n_patches = two;
        }
        for (uint32_t i = 0; i < shape->n_fields; i++)
                if (shape->fields[i].type.element)
                        memcpy((char *)&made + shape->fields[i].count, &two, sizeof(two));
        set_optional(shape, true, (char *)&made);
}

/* `read_back`, as bytes, is what `made` is. */
static void assert_same(enum rig_msg_type type)
{
        static uint8_t one[ROOM], other[ROOM];
        size_t n = rig_raw_encode(type, &made, NULL, one, sizeof(one));
        size_t m = rig_raw_encode(type, &read_back, NULL, other, sizeof(other));

        cr_assert(n == m && memcmp(one, other, n) == 0, "%s reads back different",
                rig_msg_type_to_string(type));
}

Test(codec, every_message_is_the_same_after_both_ways)
{
        for (uint32_t type = next_type(0); type; type = next_type(type)) {
                size_t done = 0;

                for (uint64_t seed = 0; seed < 400; seed++) {
                        enum rig_msg_type got = 0;
                        ssize_t n, m;

                        make(type, seed, seed % 8 ? 3 : 64);
                        n = rig_codec_encode(type, &made, bytes, sizeof(bytes));
                        m = (ssize_t)rig_raw_encode(type, &made, NULL, again, sizeof(again));
                        if (n == -ENOBUFS) {
                                cr_assert_gt(m, RIG_PROTO_PACKET_BYTES);
                                continue;
                        }
                        done++;
                        cr_assert_eq(n, m, "%s: %zd bytes, not %zd", rig_msg_type_to_string(type), n, m);
                        cr_assert_arr_eq(bytes, again, n);
                        memset(&read_back, 0xaa, sizeof(read_back));
                        cr_assert_eq(rig_codec_decode_table(bytes, n, &read_back, &got, NULL), n);
                        cr_assert_eq(got, type);
                        assert_same(type);
                }
                cr_assert_gt(done, 300);
        }
}

/* What is absent is zero in all its bytes that a reader may look at. */
static void assert_zero(const struct rig_codec_shape *shape, const char *msg)
{
        static const char zeros[sizeof(struct rig_msg_dims) + 64];

        for (uint32_t i = 0; i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];
                const char *at = msg + (f->type.element ? f->count : f->offset);
                size_t n = f->type.element ? sizeof(uint32_t) : f->type.bytes;

                if (f->required)
                        continue;
                cr_assert_eq(msg[f->has], 0, "%s: has_%s", shape->name, f->name);
                cr_assert_leq(n, sizeof(zeros));
                cr_assert_arr_eq(at, zeros, n, "%s: %s is absent and not zero", shape->name, f->name);
        }
}

Test(codec, absent_fields_read_as_zero)
{
        for (uint32_t type = next_type(0); type; type = next_type(type)) {
                enum rig_msg_type got;
                ssize_t n;

                make(type, 7, 2);
                set_optional(rig_codec_shape(type), false, (char *)&made);
                n = rig_codec_encode(type, &made, bytes, sizeof(bytes));
                cr_assert_gt(n, 0);
                memset(&read_back, 0xaa, sizeof(read_back));
                cr_assert_eq(rig_codec_decode_table(bytes, n, &read_back, &got, NULL), n);
                assert_zero(rig_codec_shape(type), (const char *)&read_back);
                for (uint32_t i = 0; type == RIG_MSG_WORK_NEW && i < read_back.work_new.n_parts; i++)
                        assert_zero(rig_codec_shape(type)->fields[4].type.element->shape,
                                (const char *)&read_back.work_new.parts[i]);
        }
}

Test(codec, bytes_that_end_early_are_incomplete)
{
        for (uint32_t type = next_type(0); type; type = next_type(type)) {
                enum rig_msg_type got;
                struct rig_error e;
                ssize_t n;

                make_full(type);
                n = rig_codec_encode(type, &made, bytes, sizeof(bytes));
                cr_assert_gt(n, 0);
                for (ssize_t cut = 0; cut < n; cut++) {
                        /* A copy of that size on the heap, so that a read past it is seen. */
                        uint8_t *copy = malloc((size_t)cut + !cut);

                        memcpy(copy, bytes, cut);
                        cr_assert_eq(rig_codec_decode(copy, cut, &read_back, &got, &e), -EAGAIN,
                                "%s at %zd: %s", rig_msg_type_to_string(type), cut, e.text);
                        cr_assert_eq(e.code, -EAGAIN);
                        free(copy);
                }
        }
}

Test(codec, every_room_that_is_too_small_is_refused)
{
        for (uint32_t type = next_type(0); type; type = next_type(type)) {
                ssize_t n;

                make_full(type);
                n = rig_codec_encode(type, &made, bytes, sizeof(bytes));
                cr_assert_gt(n, 0);
                for (ssize_t room = 0; room < n; room++) {
                        uint8_t *out = malloc((size_t)room + !room);

                        cr_assert_eq(rig_codec_encode(type, &made, out, room), -ENOBUFS);
                        free(out);
                }
                cr_assert_eq(rig_codec_encode(type, &made, again, n), n);
        }
}

/* Every place at which `what` can go wrong in a message; each must be refused by a sentence that names it.
 */
static size_t sabotage_everywhere(enum rig_msg_type type, enum rig_sabotage what)
{
        struct rig_sabotaged s = {.what = what};
        struct rig_error e;

        make_full(type);
        for (;; s.nth++) {
                enum rig_msg_type got;
                size_t n = rig_raw_encode(type, &made, &s, bytes, sizeof(bytes));
                ssize_t res;

                if (!s.hit)
                        return s.nth;
                e = (struct rig_error){0};
                res = rig_codec_decode(bytes, n, &read_back, &got, &e);
                cr_assert_eq(res, -EBADMSG, "%s: %s: sabotage %d gives %zd: %s",
                        rig_msg_type_to_string(type), s.field, what, res, e.text);
                cr_assert_eq(e.code, -EBADMSG);
                cr_assert(strncmp(e.text, rig_msg_type_to_string(type),
                                  strlen(rig_msg_type_to_string(type))) == 0,
                        "\"%s\" starts with no %s", e.text, rig_msg_type_to_string(type));
                cr_assert(strstr(e.text, s.field), "\"%s\" names no %s", e.text, s.field);
        }
}

Test(codec, whatever_is_wrong_in_any_field_is_refused_by_its_name)
{
        size_t places[_RIG_SABOTAGE_MAX] = {0};

        for (uint32_t type = next_type(0); type; type = next_type(type))
                for (enum rig_sabotage what = 1; what < _RIG_SABOTAGE_MAX; what++)
                        places[what] += sabotage_everywhere(type, what);
        for (enum rig_sabotage what = 1; what < _RIG_SABOTAGE_MAX; what++)
                cr_assert_gt(places[what], 0, "sabotage %d found no place", what);
        cr_assert_gt(places[RIG_SABOTAGE_ABOVE], 100);
        cr_assert_gt(places[RIG_SABOTAGE_LONG], 150);
}

/* Every map of a message with one more key, or in another order, reads as without. */
static void accept_everywhere(
        enum rig_msg_type type, enum rig_sabotage what, const char *value, size_t n_value)
{
        struct rig_sabotaged s = {.what = what, .unknown = (const uint8_t *)value, .unknown_bytes = n_value};

        make_full(type);
        for (;; s.nth++) {
                size_t n = rig_raw_encode(type, &made, &s, bytes, sizeof(bytes));
                enum rig_msg_type got;
                struct rig_error e = {0};

                if (!s.hit)
                        break;
                cr_assert_eq(rig_codec_decode(bytes, n, &read_back, &got, &e), (ssize_t)n, "%s", e.text);
                assert_same(type);
                for (size_t cut = 0; cut < n; cut++)
                        cr_assert_eq(rig_codec_decode(bytes, cut, &read_back, &got, NULL), -EAGAIN);
        }
        cr_assert_gt(s.nth, 0);
}

static const struct {
        const char *bytes;
        size_t n;
} any_values[] = {
        /* numbers, in any form */
        {"\x00", 1},
        {"\x18\x18", 2},
        {"\x18\x01", 2},
        {"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 9},
        {"\x20", 1},
        {"\x38\x20", 2},
        {"\x39\x01\x00", 3},
        {"\x3a\x00\x01\x00\x00", 5},
        {"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", 9},
        /* strings, well-formed where they are not UTF-8 */
        {"\x40", 1},
        {"\x42\x00\xff", 3},
        {"\x58\x01x", 3},
        {"\x60", 1},
        {"\x63\xff\xff\xff", 4},
        {"\x78\x03xyz", 5},
        /* arrays and maps */
        {"\x80", 1},
        {"\x82\x80\x01", 3},
        {"\xa0", 1},
        {"\xa1\x61x\xa1\x01\x02", 6},
        {"\xa1\x80\xa0", 3},
        {"\xb8\x01\x01\x01", 4},
        /* tags, those that some versions of libcbor refuse among them */
        {"\xc0\x60", 2},
        {"\xd6\x41x", 3},
        {"\xd9\xd9\xf7\xc1\x1a\x00\x00\x00\x01", 9},
        {"\xdb\xff\xff\xff\xff\xff\xff\xff\xff\xf4", 10},
        {"\xd8\x18\xd8\x18\x80", 5},
        /* simple values and floats */
        {"\xe0", 1},
        {"\xf3", 1},
        {"\xf4", 1},
        {"\xf5", 1},
        {"\xf6", 1},
        {"\xf7", 1},
        {"\xf8\x20", 2},
        {"\xf8\xff", 2},
        {"\xf9\x7e\x00", 3},
        {"\xfa\x00\x00\x00\x01", 5},
        {"\xfb\x7f\xf0\x00\x00\x00\x00\x00\x01", 9},
        /* eight levels */
        {"\x81\x81\x81\x81\x81\x81\x81\x80", 8},
        {"\xa1\x01\xa1\x01\xa1\x01\xa1\x01\xa1\x01\xa1\x01\xa1\x01\xa1\x01\x02", 17},
};

Test(codec, unknown_keys_are_skipped_with_any_value)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(any_values); i++)
                for (uint32_t type = next_type(0); type; type = next_type(type)) {
                        accept_everywhere(
                                type, RIG_SABOTAGE_UNKNOWN_FIRST, any_values[i].bytes, any_values[i].n);
                        accept_everywhere(
                                type, RIG_SABOTAGE_UNKNOWN_LAST, any_values[i].bytes, any_values[i].n);
                }
}

Test(codec, keys_come_in_any_order)
{
        for (uint32_t type = next_type(0); type; type = next_type(type))
                accept_everywhere(type, RIG_SABOTAGE_REVERSED, NULL, 0);
}

/* A done message (which has one key) with `n` bytes more in its map of `keys`. */
static ssize_t decode_done_with(unsigned keys, const char *more, size_t n, struct rig_error *e)
{
        static const uint8_t start[] = {0x82, 0x18, 0x40, 0xa0, 0x00, 0x05};
        enum rig_msg_type got;

        memcpy(bytes, start, sizeof(start));
        bytes[3] = (uint8_t)(0xa0 + keys);
        memcpy(bytes + sizeof(start), more, n);
        *e = (struct rig_error){0};
        return rig_codec_decode(bytes, sizeof(start) + n, &read_back, &got, e);
}

#define assert_done_refused(keys, more, sentence)                                                           \
        do {                                                                                                \
                struct rig_error e_;                                                                        \
                cr_assert_eq(decode_done_with(keys, more, sizeof(more) - 1, &e_), -EBADMSG, "%s", e_.text); \
                cr_assert_str_eq(e_.text, sentence);                                                        \
        } while (0)

Test(codec, unknown_values_must_be_definite_and_well_formed)
{
        assert_done_refused(2, "\x10\x9f\xff", "done: key 16: an item of indefinite length");
        assert_done_refused(2, "\x10\xbf\xff", "done: key 16: an item of indefinite length");
        assert_done_refused(2, "\x10\x5f\xff", "done: key 16: an item of indefinite length");
        assert_done_refused(2, "\x10\x7f\xff", "done: key 16: an item of indefinite length");
        assert_done_refused(2, "\x10\x81\x9f\xff", "done: key 16: an item of indefinite length");
        assert_done_refused(2, "\x10\xff", "done: key 16: the end of an item of indefinite length");
        assert_done_refused(2, "\x10\x1c", "done: key 16: no item starts with the byte 0x1c");
        assert_done_refused(2, "\x10\xdd\x00", "done: key 16: no item starts with the byte 0xdd");
        assert_done_refused(2, "\x10\xfc", "done: key 16: no item starts with the byte 0xfc");
        assert_done_refused(2, "\x10\xf8\x14", "done: key 16: the simple value 20 is one byte, not two");
        assert_done_refused(
                2, "\x10\x81\x81\x81\x81\x81\x81\x81\x81\x80", "done: key 16: nested deeper than 8 levels");
        assert_done_refused(2, "\x10\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
                "done: key 16: the message is longer than 65536 bytes");
        assert_done_refused(2, "\x10\xbb\x80\x00\x00\x00\x00\x00\x00\x01",
                "done: key 16: the message is longer than 65536 bytes");
        assert_done_refused(2, "\x10\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
                "done: key 16: the message is longer than 65536 bytes");
        assert_done_refused(2, "\x10\x7b\xff\xff\xff\xff\xff\xff\xff\xf8",
                "done: key 16: the message is longer than 65536 bytes");
        assert_done_refused(
                2, "\x10\x5a\x00\x01\x00\x00", "done: key 16: the message is longer than 65536 bytes");
}

Test(codec, keys_are_numbers_in_their_shortest_form_and_come_once)
{
        assert_done_refused(2, "\x00\x06", "done: serial, key 0, comes twice");
        assert_done_refused(3, "\x10\x06\x10\x06", "done: key 16 comes twice");
        assert_done_refused(2, "\x61x\x06", "done: a text where a number belongs");
        assert_done_refused(2, "\x20\x06", "done: a negative number where a number belongs");
        assert_done_refused(2, "\x18\x05\x06", "done: a number that is not in its shortest form");
}

Test(codec, a_map_has_a_bounded_number_of_unknown_keys)
{
        uint8_t m[8 + 4 * RIG_CODEC_UNKNOWN_MAX] = {0x82, 0x18, 0x40, 0xb8};
        enum rig_msg_type got;
        struct rig_error e;
        size_t at = 5;

        for (unsigned i = 0; i <= RIG_CODEC_UNKNOWN_MAX; i++) {
                m[at++] = 0x18;
                m[at++] = (uint8_t)(100 + i);
                m[at++] = 0xf6;
        }
        m[4] = RIG_CODEC_UNKNOWN_MAX + 1; /* all but the last, and the serial in its place */
        m[at - 3] = 0x00;
        m[at - 2] = 0x05;
        cr_assert_eq(rig_codec_decode(m, at, &read_back, &got, &e), (ssize_t)at - 1, "%s", e.text);
        m[at - 3] = 0x18;
        m[at - 2] = 99;
        cr_assert_eq(rig_codec_decode(m, at, &read_back, &got, &e), -EBADMSG);
        cr_assert_str_eq(e.text, "done: more than 32 keys that are not known");
        m[4] = RIG_CODEC_UNKNOWN_MAX + 2;
        cr_assert_eq(rig_codec_decode(m, at, &read_back, &got, &e), -EBADMSG);
        cr_assert_str_eq(e.text, "done: more than 32 keys that are not known");
}

static ssize_t decode_hex(const char *data, size_t n, struct rig_error *e)
{
        enum rig_msg_type got;

        *e = (struct rig_error){0};
        return rig_codec_decode((const uint8_t *)data, n, &read_back, &got, e);
}

#define assert_refused(data, code, sentence)                                                                \
        do {                                                                                                \
                struct rig_error e_;                                                                        \
                cr_assert_eq(decode_hex(data, sizeof(data) - 1, &e_), code, "%s", e_.text);                 \
                cr_assert_str_eq(e_.text, sentence);                                                        \
        } while (0)

Test(codec, what_is_no_message_is_refused)
{
        assert_refused("", -EAGAIN, "a message: the bytes end inside the message");
        assert_refused("\x01", -EBADMSG, "a message: a number where an array belongs");
        assert_refused("\xa1\x01\x02", -EBADMSG, "a message: a map where an array belongs");
        assert_refused("\x81\x01", -EBADMSG, "a message: an array of 1, where its type and a map belong");
        assert_refused(
                "\x83\x01\xa0\x00", -EBADMSG, "a message: an array of 3, where its type and a map belong");
        assert_refused("\x9f\x01\xa0\xff", -EBADMSG,
                "a message: an item of indefinite length where an array belongs");
        assert_refused("\x98\x02\x01\xa0", -EBADMSG, "a message: an array that is not in its shortest form");
        assert_refused("\x82\x61x\xa0", -EBADMSG, "a message: a text where a number belongs");
        assert_refused("\x82\x18\x01\xa0", -EBADMSG, "a message: a number that is not in its shortest form");
        assert_refused("\xd9\xd9\xf7\x82\x01\xa0", -EBADMSG, "a message: a tag where an array belongs");
        assert_refused("\x82\x00\xa0", -EOPNOTSUPP, "a message: type 0 is not known");
        assert_refused("\x82\x08\xa0", -EOPNOTSUPP, "a message: type 8 is not known");
        assert_refused("\x82\x18\x66\xa0", -EOPNOTSUPP, "a message: type 102 is not known");
        assert_refused("\x82\x1b\x00\x00\x00\x01\x00\x00\x00\x01\xa0", -EOPNOTSUPP,
                "a message: type 4294967297 is not known");
        assert_refused("\x82\x01\x80", -EBADMSG, "run: an array where a map belongs");
        assert_refused("\x82\x01\xa0", -EBADMSG, "run: work, key 1, is missing");
        assert_refused("\x82\x01\xa2\x01\x01\x02\x81\x1a\x00\x10\x00\x00", -EBADMSG,
                "run: buffers[0]: 1048576 is above 1048575");
        assert_refused("\x82\x01\xa3\x01\x01\x02\x81\x01\x03\x82\x82\x01\x01\x82\x18\x3f\x01", -EBADMSG,
                "run: points[1].device-id: 63 is above 62");
}

Test(codec, types_are_peeked_without_the_rest)
{
        struct rig_error e;
        uint32_t type;

        cr_assert_eq(rig_codec_peek((const uint8_t *)"\x82\x18\x2c", 3, &type, NULL), 0);
        cr_assert_eq(type, RIG_MSG_WORK_NEW);
        cr_assert_eq(rig_codec_peek((const uint8_t *)"\x82\x18\xc8", 3, &type, NULL), 0);
        cr_assert_eq(type, 200);
        cr_assert_eq(rig_codec_peek((const uint8_t *)"\x82\x18", 2, &type, &e), -EAGAIN);
        cr_assert_eq(rig_codec_peek((const uint8_t *)"\x82\x20", 2, &type, &e), -EBADMSG);
        cr_assert_str_eq(e.text, "a message: a negative number where a number belongs");
}

Test(codec, a_message_longer_than_a_packet_is_refused_and_not_waited_for)
{
        const size_t long_value = RIG_PROTO_PACKET_BYTES - 12;
        enum rig_msg_type got;
        struct rig_error e;

        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes, "\x82\x18\x40\xa2\x00\x05\x10\x5a", 8);
        for (unsigned i = 0; i < 4; i++)
                bytes[8 + i] = (uint8_t)(long_value >> 8 * (3 - i));
        cr_assert_eq(rig_codec_decode(bytes, sizeof(bytes), &read_back, &got, NULL), RIG_PROTO_PACKET_BYTES);
        bytes[11]++;
        cr_assert_eq(rig_codec_decode(bytes, sizeof(bytes), &read_back, &got, &e), -EBADMSG);
        cr_assert_eq(rig_codec_decode(bytes, 100, &read_back, &got, &e), -EBADMSG);
        cr_assert_str_eq(e.text, "done: key 16: the message is longer than 65536 bytes");
}

/* Sets each number, count and length of a message one past its bound. Return: how many there were. */
static size_t exceed_each(const struct rig_codec_shape *shape, char *at, enum rig_msg_type type)
{
        static uint8_t out[ROOM];
        size_t n = 0;

        for (uint32_t i = 0; i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];
                const struct rig_codec_type *t = &f->type;
                uint64_t above = t->max + 1, wide;
                char saved[sizeof(struct rig_bytes)];
                size_t offset = t->element ? f->count : f->offset;
                size_t size = t->element || t->kind == RIG_CODEC_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
                uint32_t narrow = (uint32_t)above;

                if (t->element && t->element->shape)
                        n += exceed_each(t->element->shape, at + f->offset, type);
                if (t->shape) {
                        n += exceed_each(t->shape, at + f->offset, type);
                        continue;
                }
                wide = above;
                if (t->kind == RIG_CODEC_TEXT || t->kind == RIG_CODEC_BYTES)
                        offset += offsetof(struct rig_bytes, bytes);
                if (above == 0 || (size == sizeof(narrow) && narrow != above))
                        continue; /* every value of the C type is within the bound */
                memcpy(saved, at + offset, size);
                memcpy(at + offset, size == sizeof(narrow) ? (void *)&narrow : (void *)&wide, size);
                cr_assert_eq(rig_codec_encode(type, &made, out, sizeof(out)), -EINVAL, "%s: %s is written",
                        shape->name, f->name);
                memcpy(at + offset, saved, size);
                n++;
        }
        return n;
}

Test(codec, what_exceeds_a_bound_is_not_written)
{
        size_t n = 0;

        for (uint32_t type = next_type(0); type; type = next_type(type)) {
                make_full(type);
                n += exceed_each(rig_codec_shape(type), (char *)&made, type);
                cr_assert_gt(rig_codec_encode(type, &made, bytes, sizeof(bytes)), 0);
        }
        cr_assert_gt(n, 100);
        cr_assert_eq(rig_codec_encode(0, &made, bytes, sizeof(bytes)), -EINVAL);
        cr_assert_eq(rig_codec_encode(_RIG_MSG_TYPE_MAX, &made, bytes, sizeof(bytes)), -EINVAL);
        made.failed = (struct rig_msg_failed){.text = {(const uint8_t *)"\xff", 1}};
        cr_assert_eq(rig_codec_encode(RIG_MSG_FAILED, &made, bytes, sizeof(bytes)), -EINVAL);
        made.device_done = (struct rig_msg_device_done){.n_queues = 0}; /* there is at least one */
        cr_assert_eq(rig_codec_encode(RIG_MSG_DEVICE_DONE, &made, bytes, sizeof(bytes)), -EINVAL);
}

Test(codec, every_type_and_class_has_a_name)
{
        size_t n = 0, of_class[_RIG_MSG_CLASS_MAX] = {0};

        for (uint32_t type = 0; type < 2 * _RIG_MSG_TYPE_MAX; type++) {
                bool known = type < _RIG_MSG_TYPE_MAX && rig_codec_shape(type);
                const char *name = rig_msg_type_to_string(type);

                cr_assert_eq(name != NULL, known);
                cr_assert_eq(rig_msg_class(type) != RIG_MSG_CLASS_UNKNOWN, known);
                if (!known)
                        continue;
                cr_assert_str_eq(name, rig_codec_shape(type)->name);
                of_class[rig_msg_class(type)]++;
                for (uint32_t other = 0; other < type; other++)
                        cr_assert(!rig_msg_type_to_string(other) ||
                                  strcmp(rig_msg_type_to_string(other), name));
                n++;
        }
        cr_assert_geq(n, 34);
        for (uint32_t c = RIG_MSG_CLASS_UNKNOWN + 1; c < _RIG_MSG_CLASS_MAX; c++)
                cr_assert_gt(of_class[c], 0);
        cr_assert_eq(rig_msg_class(RIG_MSG_RUN), RIG_MSG_CLASS_ORDERED);
        cr_assert_eq(rig_msg_class(RIG_MSG_HELLO), RIG_MSG_CLASS_REQUEST);
        cr_assert_eq(rig_msg_class(RIG_MSG_FAILED), RIG_MSG_CLASS_ANSWER);
        cr_assert_eq(rig_msg_class(RIG_MSG_BROKEN), RIG_MSG_CLASS_EVENT);
        for (uint32_t c = 0; c < _RIG_MSG_CLASS_MAX; c++)
                cr_assert_not_null(rig_msg_class_to_string(c));
        cr_assert_null(rig_msg_class_to_string(_RIG_MSG_CLASS_MAX));
}

Test(codec, requests_and_answers_have_serials)
{
        for (uint32_t type = next_type(0); type; type = next_type(type)) {
                enum rig_msg_class c = rig_msg_class(type);

                memset(&made, 0, sizeof(made));
                made.sync.serial = 77;
                cr_assert_eq(rig_msg_serial(type, &made),
                        c == RIG_MSG_CLASS_REQUEST || c == RIG_MSG_CLASS_ANSWER ? 77 : 0);
        }
}

Test(codec, texts_are_cut_between_characters)
{
        char out[16];

        cr_assert_eq(rig_text("", 8).bytes, 0);
        cr_assert_eq(rig_text("abc", 8).bytes, 3);
        cr_assert_eq(rig_text("abc", 2).bytes, 2);
        cr_assert_eq(rig_text("a\xc3\xbc", 3).bytes, 3);
        cr_assert_eq(rig_text("a\xc3\xbc", 2).bytes, 1);
        cr_assert_eq(rig_text("\xf0\x9d\x84\x9e", 3).bytes, 0);
        cr_assert_eq(rig_text("ab\xff"
                              "cd",
                             8)
                             .bytes,
                2);
        cr_assert_str_eq(rig_text_copy(rig_text("a\xc3\xbc", 8), out, sizeof(out)), "a\xc3\xbc");
        cr_assert_str_eq(rig_text_copy((struct rig_bytes){0}, out, sizeof(out)), "");
}

Test(codec, texts_are_utf8_to_its_edges)
{
        static const struct {
                const char *s;
                size_t n;
                bool valid;
        } texts[] = {
                {"\x7f", 1, true},
                {"\x80", 1, false},
                {"\xc2\x80", 2, true},
                {"\xc1\xbf", 2, false},
                {"\xdf\xbf", 2, true},
                {"\xe0\xa0\x80", 3, true},
                {"\xe0\x9f\xbf", 3, false},
                {"\xed\x9f\xbf", 3, true},
                {"\xed\xa0\x80", 3, false},
                {"\xee\x80\x80", 3, true},
                {"\xef\xbf\xbf", 3, true},
                {"\xf0\x90\x80\x80", 4, true},
                {"\xf0\x8f\xbf\xbf", 4, false},
                {"\xf4\x8f\xbf\xbf", 4, true},
                {"\xf4\x90\x80\x80", 4, false},
                {"\xf5\x80\x80\x80", 4, false},
                {"\xe0\xa0", 2, false},
                {"\xc2", 1, false},
                {"\xf0\x90\x80", 3, false},
                {"\xe1\x80\x41", 3, false},
                {"\xf1\x80\x41\x80", 4, false},
                {"\0", 1, false},
                {"a\0", 2, false},
                {"", 0, true},
        };

        for (size_t i = 0; i < RIG_ARRAY_SIZE(texts); i++)
                cr_assert_eq(rig_text_valid((const uint8_t *)texts[i].s, texts[i].n), texts[i].valid,
                        "text %zu", i);
}

/* The schema's comment: key 15 of a request is the ring position that it follows; a hello comes before any
 * ring. */
Test(codec, every_request_but_hello_says_what_it_follows)
{
        for (uint32_t type = 0; type < _RIG_MSG_TYPE_MAX; type++) {
                bool request = rig_msg_class(type) == RIG_MSG_CLASS_REQUEST && type != RIG_MSG_HELLO;
                union rig_msg msg = {0};
                bool *has = NULL;
                uint64_t *follows = rig_msg_follows(type, &msg, &has);

                cr_assert((follows != NULL) == request, "%s", rig_msg_type_to_string(type));
                if (!follows)
                        continue;
                cr_assert(*follows == 0 && has && !*has);
                *has = true;
                *follows = 7;
        }
        /* ... and it is the field of that name */
        union rig_msg sync = {0};
        bool *has;

        *rig_msg_follows(RIG_MSG_SYNC, &sync, &has) = 7;
        *has = true;
        cr_assert(sync.sync.follows == 7 && sync.sync.has_follows);
}
