/* SPDX-License-Identifier: ISC */
/* Which of many lines are written, with a clock of the test's own. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/log/limit.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct rig_log_limits limits;
static struct rig_log_key other;
static unsigned left_out;

static void init(void)
{
        memset(&limits, 0, sizeof(limits));
}

TestSuite(log_limit, .init = init);

static bool take(const char *id, uid_t uid, uint64_t now_usec)
{
        return rig_log_limit_take(&limits, id, uid, now_usec, &left_out, &other);
}

Test(log_limit, the_first_few_are_written_and_the_rest_is_counted)
{
        for (unsigned i = 0; i < 100; i++) {
                cr_assert_eq(take(A, 1000, i), i < RIG_LOG_BURST, "line %u", i);
                cr_assert_eq(left_out, 0u);
        }
}

Test(log_limit, the_next_one_that_is_written_says_how_many_there_were)
{
        for (unsigned i = 0; i < 100; i++)
                take(A, 1000, 5);
        cr_assert_not(take(A, 1000, 5 + RIG_LOG_INTERVAL_USEC - 1));
        cr_assert(take(A, 1000, 5 + RIG_LOG_INTERVAL_USEC));
        cr_assert_eq(left_out, 100 - RIG_LOG_BURST + 1);
        cr_assert(take(A, 1000, 5 + RIG_LOG_INTERVAL_USEC));
        cr_assert_eq(left_out, 0u, "it was told twice");
}

Test(log_limit, messages_and_users_do_not_silence_each_other)
{
        for (unsigned i = 0; i < 100; i++)
                take(A, 1000, 0);
        cr_assert(take(B, 1000, 0));
        cr_assert(take(A, 0, 0));
        cr_assert_not(take(A, 1000, 0));
}

Test(log_limit, every_line_is_written_or_told_of_once_however_many_users_there_are)
{
        unsigned written = 0, told = 0, asked = 0;
        struct rig_log_key key;

        for (unsigned round = 0; round < 20; round++)
                for (uid_t uid = 0; uid < 3 * RIG_LOG_KEYS_MAX; uid++)
                        for (unsigned i = 0; i < 3 * RIG_LOG_BURST; i++) {
                                written += take(uid % 2 ? A : B, uid, round * RIG_LOG_INTERVAL_USEC / 3);
                                told += left_out + other.left_out;
                                asked++;
                        }
        while (rig_log_limit_next(&limits, &key)) {
                cr_assert_gt(key.left_out, 0u);
                told += key.left_out;
        }
        cr_assert_eq(written + told, asked, "%u written, %u told of, of %u", written, told, asked);
        cr_assert_gt(told, 0u);
}

Test(log_limit, what_was_told_at_the_end_is_not_told_again)
{
        struct rig_log_key key;

        for (unsigned i = 0; i < RIG_LOG_BURST + 3; i++)
                take(A, 1000, 0);
        cr_assert(rig_log_limit_next(&limits, &key));
        cr_assert_str_eq(key.message_id, A);
        cr_assert_eq(key.uid, 1000u);
        cr_assert_eq(key.left_out, 3u);
        cr_assert_not(rig_log_limit_next(&limits, &key));
        cr_assert(take(A, 1000, RIG_LOG_INTERVAL_USEC));
        cr_assert_eq(left_out, 0u);
}
