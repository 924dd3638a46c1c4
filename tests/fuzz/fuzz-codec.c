/* SPDX-License-Identifier: ISC */
/*
 * Any bytes, read as a packet: a sequence of messages. What may be said of them, whatever they are:
 *
 *   - the straight-line coders and the table coder give one verdict, and the same message where it is good;
 *   - a message that was read can be written, in no more bytes than it had, and reads the same again;
 *   - a refusal has a sentence, and the verdict is one of those that codec.h lists.
 *
 * Each input lies in a block of its own size, so that a sanitizer sees any look past its end.
 */
#include <stdio.h>
#include <string.h>

#include "gen/rig-proto-fast.h"
#include "protocol/codec.h"
#include "tests/fuzz/fuzz.h"

static union rig_msg by_all, by_table;
static uint8_t written[RIG_PROTO_PACKET_BYTES], again[RIG_PROTO_PACKET_BYTES];

static void check_refusal(ssize_t res, const struct rig_error *e)
{
        rig_assert(res == -EAGAIN || res == -EBADMSG || res == -EOPNOTSUPP);
        rig_assert(e->code == res && e->text[0] != '\0');
}

/* Writes what was read from `n` bytes, reads that, and writes it again. */
static void check_both_ways(enum rig_msg_type type, const union rig_msg *msg, size_t n)
{
        static union rig_msg back;
        enum rig_msg_type back_type;
        ssize_t len, len_again;

        len = rig_codec_encode(type, msg, written, sizeof(written));
        rig_assert(len > 0 && (size_t)len <= n);
        rig_assert(rig_codec_decode_table(written, (size_t)len, &back, &back_type, NULL) == len);
        rig_assert(back_type == type);
        len_again = rig_codec_encode(type, &back, again, sizeof(again));
        rig_assert(len_again == len && memcmp(written, again, (size_t)len) == 0);
}

/* Both readings of a message are the same, as bytes. */
static void check_same(enum rig_msg_type type)
{
        ssize_t n = rig_codec_encode(type, &by_all, written, sizeof(written));
        ssize_t m = rig_codec_encode(type, &by_table, again, sizeof(again));

        rig_assert(n > 0 && n == m && memcmp(written, again, (size_t)n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint8_t *packet = malloc(size + !size);
        size_t at = 0;

        rig_assert(packet);
        if (size > 0)
                memcpy(packet, data, size);
        while (at < size) {
                enum rig_msg_type type = 0, table_type = 0;
                struct rig_error e = RIG_ERROR_NULL;
                ssize_t n, m;

                memset(&by_all, 0xaa, sizeof(by_all));
                n = rig_codec_decode(packet + at, size - at, &by_all, &type, NULL);
                m = rig_codec_decode_table(packet + at, size - at, &by_table, &table_type, &e);
                rig_assert(n == m && type == table_type);
                if (n < 0) {
                        check_refusal(n, &e);
                        break;
                }
                rig_assert(n > 0 && (size_t)n <= size - at);
                check_same(type);
                check_both_ways(type, &by_table, (size_t)n);
                at += (size_t)n;
        }
        free(packet);
        return 0;
}
