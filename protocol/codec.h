/* SPDX-License-Identifier: ISC */
/*
 * The messages of protocol/rig.cddl, to bytes and back.
 *
 * The schema's structs, constants and names are in "gen/rig-proto.h", which this header includes; the coders
 * of the hot messages that a caller may inline are in "gen/rig-proto-fast.h". Both are generated and come
 * with protocol_dep.
 *
 * One coder, driven by the field tables that the schema becomes, does every message
 * (protocol/codec-decode.c, protocol/codec-encode.c). It allocates nothing; what it decodes holds texts and
 * byte strings as pointers into the packet.
 *
 * What is accepted: an array of two, a known type and a map; all lengths definite; every integer and length
 * in its shortest form; every required key there, no key twice, each value of its type and within its
 * bounds; a text that is UTF-8 and holds no NUL. Keys may come in any order. A key that is not known is
 * skipped with its value, which may be any definite item of at most RIG_CODEC_SKIP_DEPTH levels; a map has
 * at most RIG_CODEC_UNKNOWN_MAX of them. No message is longer than RIG_PROTO_PACKET_BYTES.
 *
 * What is written: the same, with keys ascending.
 */
#ifndef RIG_CODEC_H
#define RIG_CODEC_H

#include <sys/types.h>

#include "base/error.h"
#include "gen/rig-proto.h"

#define RIG_CODEC_SKIP_DEPTH  8
#define RIG_CODEC_UNKNOWN_MAX 32

/**
 * rig_codec_decode() - read the message at the start of some bytes
 * @data:     the bytes; what follows the message is not looked at
 * @bytes:    how many
 * @msg:      where to store it: the member that the type names
 * @ret_type: its type
 * @e:        what was wrong, with the message's and the field's name; or NULL
 *
 * Optional fields that are absent read as zero. On an error @msg holds nothing of use. Reading twice gives
 * the same only where nobody else writes the bytes: copy out of shared pages first.
 *
 * Return: the bytes of the message; -EAGAIN where @bytes end inside it; -EBADMSG where it is malformed or
 * exceeds a bound; -EOPNOTSUPP where no message has its type.
 */
ssize_t rig_codec_decode(const uint8_t *data, size_t bytes, union rig_msg *msg, enum rig_msg_type *ret_type,
        struct rig_error *e);

/* The same without the straight-line coders, which only makes it slower. */
ssize_t rig_codec_decode_table(const uint8_t *data, size_t bytes, union rig_msg *msg,
        enum rig_msg_type *ret_type, struct rig_error *e);

/**
 * rig_codec_peek() - the type of the message at the start of some bytes
 * @data:     the bytes
 * @bytes:    how many
 * @ret_type: the type, whether a message has it or not
 * @e:        what was wrong; or NULL
 *
 * Return: 0; -EAGAIN, -EBADMSG as rig_codec_decode().
 */
int rig_codec_peek(const uint8_t *data, size_t bytes, uint32_t *ret_type, struct rig_error *e);

/**
 * rig_codec_encode() - write a message
 * @type: its type
 * @msg:  its struct, such as struct rig_msg_buffer_new, or a union rig_msg of it
 * @out:  where to write
 * @room: how many bytes there are
 *
 * Return: the bytes written; -ENOBUFS where they do not fit in @room or in RIG_PROTO_PACKET_BYTES; -EINVAL
 * where a field exceeds its bound or @type is not known. On an error what @out holds is of no use.
 */
ssize_t rig_codec_encode(enum rig_msg_type type, const void *msg, uint8_t *out, size_t room);

#define RIG_MSG_KEY_FOLLOWS 15 /* of a request */

/*
 * Where a request's struct has the ring position that it follows, and in `ret_has` the flag that it is
 * there. NULL for a message that has no such field.
 */
uint64_t *rig_msg_follows(enum rig_msg_type type, union rig_msg *msg, bool **ret_has);

/* True for UTF-8 (RFC 3629) without a NUL. */
bool rig_text_valid(const uint8_t *data, size_t bytes);

/**
 * rig_text() - a text of a message from a C string
 * @s:   a string that outlives the message
 * @max: the most bytes the field takes, such as RIG_PROTO_TEXT_MAX
 *
 * Cuts what is longer, between characters, and ends it before the first byte that is not UTF-8: the result
 * can always be encoded, and an error's sentence is never lost for its length.
 */
struct rig_bytes rig_text(const char *s, size_t max);

/*
 * Copies a text of a message into `out` as a C string. `size` is more than the field's bound, so that
 * nothing is cut. Return: `out`.
 */
char *rig_text_copy(struct rig_bytes text, char *out, size_t size);

/* --------------------------------------------------------------------------------------- field tables
 *
 * What the generator makes of the schema, and the coders and their tests read.
 */

enum rig_codec_kind {
        RIG_CODEC_U32,   /* uint32_t, 0 to max */
        RIG_CODEC_U64,   /* uint64_t, 0 to max */
        RIG_CODEC_TEXT,  /* struct rig_bytes of min to max bytes, UTF-8 */
        RIG_CODEC_BYTES, /* struct rig_bytes of min to max bytes */
        RIG_CODEC_TUPLE, /* the struct of `shape`: all its fields as an array */
        RIG_CODEC_MAP,   /* the struct of `shape` */
        RIG_CODEC_ARRAY, /* min to max elements, in an array of max of them */
        _RIG_CODEC_KIND_MAX,
};

struct rig_codec_shape;

struct rig_codec_type {
        enum rig_codec_kind kind;
        uint32_t bytes; /* of the C type; of an array, see `element` */
        uint64_t min, max;
        const struct rig_codec_shape *shape;
        const struct rig_codec_type *element;
};

struct rig_codec_field {
        const char *name;
        uint32_t key;    /* in a tuple: the index */
        uint32_t offset; /* of the value in the struct */
        uint32_t has;    /* of its bool, unless it is required */
        uint32_t count;  /* of its uint32_t, where it is an array */
        bool required;
        struct rig_codec_type type;
};

struct rig_codec_shape {
        const char *name;
        const struct rig_codec_field *fields; /* keys ascend */
        uint32_t n_fields;                    /* at most 32 */
};

/* The fields of a message; NULL where no message has that type. */
const struct rig_codec_shape *rig_codec_shape(uint32_t type);

#endif
