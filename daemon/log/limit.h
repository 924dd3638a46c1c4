/* SPDX-License-Identifier: ISC */
/*
 * Which of many lines that clients cause are written: of each message and user RIG_LOG_BURST in an interval,
 * and the first one after that says how many were left out.
 */
#ifndef RIG_LOG_LIMIT_H
#define RIG_LOG_LIMIT_H

#include <sys/types.h>

#include "base/base.h"

#define RIG_LOG_BURST         5u
#define RIG_LOG_INTERVAL_USEC (UINT64_C(10) * 1000000)
#define RIG_LOG_KEYS_MAX      32u /* messages and users told apart; more take the place of the oldest */

struct rig_log_key {
        const char *message_id; /* NULL: unused; else static text */
        uid_t uid;
        uint64_t start_usec; /* of its interval */
        unsigned written, left_out;
};

struct rig_log_limits {
        struct rig_log_key keys[RIG_LOG_KEYS_MAX];
};

/**
 * rig_log_limit_take() - whether a line is written
 * @ret_left_out: how many of its message and user were left out before it, and not yet told
 * @ret_other:    lines of another message that were left out, and that nobody will be told of later;
 * message_id NULL where there are none
 */
bool rig_log_limit_take(struct rig_log_limits *limits, const char *message_id, uid_t uid, uint64_t now_usec,
        unsigned *ret_left_out, struct rig_log_key *ret_other);

/* The next message of which lines were left out and not told; it counts as told then. Return: whether there
 * is one. */
bool rig_log_limit_next(struct rig_log_limits *limits, struct rig_log_key *ret_key);

#endif
