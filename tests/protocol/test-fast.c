/* SPDX-License-Identifier: ISC */
/*
 * The two coders of the hot messages held to each other: on random messages, and on bytes that were changed
 * at random. Seeds are fixed; RIG_TEST_MESSAGES sets how many messages instead of the default.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gen/rig-proto-fast.h"
#include "tests/protocol/walk.h"

static const enum rig_msg_type hot[] = {
        RIG_MSG_RUN, RIG_MSG_HOST_DONE, RIG_MSG_BUFFER_DROP, RIG_MSG_BUFFER_VIEW};

static union rig_msg made, by_fast, by_table;
static uint8_t bytes[4096], other[4096];

static uint64_t n_messages(void)
{
        const char *n = getenv("RIG_TEST_MESSAGES");

        return n ? strtoull(n, NULL, 10) : 200000;
}

static size_t fast_encode(enum rig_msg_type type, const union rig_msg *msg, uint8_t *out)
{
        switch (type) {
        case RIG_MSG_RUN:
                return rig_fast_run_encode(&msg->run, out);
        case RIG_MSG_HOST_DONE:
                return rig_fast_host_done_encode(&msg->host_done, out);
        case RIG_MSG_BUFFER_DROP:
                return rig_fast_buffer_drop_encode(&msg->buffer_drop, out);
        default:
                return rig_fast_buffer_view_encode(&msg->buffer_view, out);
        }
}

static size_t fast_bytes_max(enum rig_msg_type type)
{
        switch (type) {
        case RIG_MSG_RUN:
                return RIG_FAST_RUN_BYTES_MAX;
        case RIG_MSG_HOST_DONE:
                return RIG_FAST_HOST_DONE_BYTES_MAX;
        case RIG_MSG_BUFFER_DROP:
                return RIG_FAST_BUFFER_DROP_BYTES_MAX;
        default:
                return RIG_FAST_BUFFER_VIEW_BYTES_MAX;
        }
}

static void assert_same(
        enum rig_msg_type type, const union rig_msg *a, const union rig_msg *b, uint64_t seed)
{
        static uint8_t one[4096], two[4096];
        size_t n = rig_raw_encode(type, a, NULL, one, sizeof(one));
        size_t m = rig_raw_encode(type, b, NULL, two, sizeof(two));

        cr_assert(n == m && memcmp(one, two, n) == 0, "seed %lu: %s differs", (unsigned long)seed,
                rig_msg_type_to_string(type));
}

static enum rig_msg_type make(struct rig_random *r)
{
        enum rig_msg_type type = hot[rig_random_below(r, RIG_ARRAY_SIZE(hot))];

        rig_random_message(r, type, rig_random_below(r, 8) ? 5 : 64, &made);
        return type;
}

Test(fast, both_coders_write_the_same_and_read_it)
{
        for (uint64_t seed = 0; seed < n_messages(); seed++) {
                struct rig_random r = {seed};
                enum rig_msg_type type = make(&r), got = 0;
                size_t n = fast_encode(type, &made, bytes), m;

                cr_assert_leq(n, fast_bytes_max(type));
                cr_assert_eq(rig_codec_encode(type, &made, other, sizeof(other)), (ssize_t)n);
                cr_assert_arr_eq(bytes, other, n, "seed %lu", (unsigned long)seed);
                bytes[n] = (uint8_t)rig_random_next(&r); /* what follows is not looked at */

                cr_assert_eq(rig_codec_decode_table(bytes, n + 1, &by_table, &got, NULL), (ssize_t)n);
                cr_assert_eq(got, type);
                assert_same(type, &made, &by_table, seed);

                memset(&by_fast, 0x5a, sizeof(by_fast));
                got = 0;
                m = rig_fast_decode(bytes, n + 1, &by_fast, &got);
                if (type == RIG_MSG_HOST_DONE && made.host_done.has_text) {
                        cr_assert_eq(m, 0); /* left to the table coder */
                        continue;
                }
                cr_assert_eq(m, n, "seed %lu", (unsigned long)seed);
                cr_assert_eq(got, type);
                assert_same(type, &made, &by_fast, seed);
                if (type == RIG_MSG_RUN) {
                        cr_assert(made.run.has_time || by_fast.run.time == 0);
                        cr_assert(made.run.has_points || by_fast.run.n_points == 0);
                }
                if (type == RIG_MSG_HOST_DONE) {
                        cr_assert(made.host_done.has_failed || by_fast.host_done.failed == 0);
                        cr_assert(!by_fast.host_done.has_text && by_fast.host_done.text.bytes == 0);
                }
        }
}

/* Changes some bytes: flips, sets to what matters to CBOR, removes, inserts, cuts. Return: the new length.
 */
static size_t mutate(struct rig_random *r, uint8_t *data, size_t n)
{
        static const uint8_t heads[] = {0x00, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x40, 0x60, 0x80, 0x82, 0x98,
                0xa0, 0xa2, 0xa3, 0xb8, 0xc0, 0xf5, 0xff};
        size_t at;

        for (uint64_t times = 1 + rig_random_below(r, 3); times > 0 && n > 0; times--) {
                at = rig_random_below(r, n);
                switch (rig_random_below(r, 6)) {
                case 0:
                        data[at] ^= (uint8_t)(1u << rig_random_below(r, 8));
                        break;
                case 1:
                        data[at] = heads[rig_random_below(r, sizeof(heads))];
                        break;
                case 2:
                        data[at] = (uint8_t)rig_random_next(r);
                        break;
                case 3:
                        memmove(data + at, data + at + 1, n - at - 1);
                        n--;
                        break;
                case 4:
                        memmove(data + at + 1, data + at, n - at);
                        data[at] = (uint8_t)rig_random_below(r, 32);
                        n++;
                        break;
                default:
                        n = at;
                        break;
                }
        }
        return n;
}

Test(fast, both_coders_accept_the_same_of_changed_bytes)
{
        uint64_t accepted = 0, refused = 0;

        for (uint64_t seed = 0; seed < n_messages(); seed++) {
                struct rig_random r = {~seed};
                enum rig_msg_type type = make(&r), by = 0, got = 0;
                size_t n = mutate(&r, bytes, fast_encode(type, &made, bytes)), m;
                uint8_t *copy = malloc(n + !n); /* of that size, so that a read past it is seen */
                ssize_t res;

                memcpy(copy, bytes, n);
                m = rig_fast_decode(copy, n, &by_fast, &by);
                res = rig_codec_decode_table(copy, n, &by_table, &got, NULL);
                if (m > 0) {
                        cr_assert_eq((ssize_t)m, res, "seed %lu: %zd, by the table %zd", (unsigned long)seed,
                                (ssize_t)m, res);
                        cr_assert_eq(by, got);
                        assert_same(by, &by_fast, &by_table, seed);
                }
                cr_assert_eq(rig_codec_decode(copy, n, &by_fast, &by, NULL), res);
                accepted += res > 0;
                refused += res <= 0;
                free(copy);
        }
        cr_assert_gt(accepted, n_messages() / 20);
        cr_assert_gt(refused, n_messages() / 20);
}

Test(fast, bounds_are_kept_by_the_straight_line_code)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(hot); i++)
                for (enum rig_sabotage what = 1; what < _RIG_SABOTAGE_MAX; what++) {
                        struct rig_sabotaged s = {.what = what};

                        rig_random_message(&(struct rig_random){i}, hot[i], 3, &made);
                        if (hot[i] == RIG_MSG_RUN)
                                made.run.n_buffers = 2;
                        if (hot[i] == RIG_MSG_HOST_DONE)
                                made.host_done.has_text = false; /* one is left to the table coder anyway */
                        for (;; s.nth++) {
                                enum rig_msg_type got;
                                size_t n = rig_raw_encode(hot[i], &made, &s, bytes, sizeof(bytes));

                                if (!s.hit)
                                        break;
                                cr_assert_eq(rig_fast_decode(bytes, n, &by_fast, &got), 0,
                                        "%s: sabotage %d of %s is accepted", rig_msg_type_to_string(hot[i]),
                                        what, s.field);
                        }
                }
}
