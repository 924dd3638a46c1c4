/* SPDX-License-Identifier: ISC */
/*
 * See log-limit.h. A few keys in an array that is searched from end to end: only lines that clients cause
 * come here, and they are rare or not welcome. It reads no clock and writes nothing, so that a test can say
 * what time it is.
 */
#include "daemon/log/limit.h"

#include <string.h>

/* Its place: where it is, or where nothing is, or of the one whose interval began first. */
static struct rig_log_key *place(struct rig_log_limits *limits, const char *message_id, uid_t uid)
{
        struct rig_log_key *oldest = &limits->keys[0];

        for (size_t i = 0; i < RIG_LOG_KEYS_MAX; i++) {
                struct rig_log_key *k = &limits->keys[i];

                if (!k->message_id || (k->uid == uid && strcmp(k->message_id, message_id) == 0))
                        return k;
                if (k->start_usec < oldest->start_usec)
                        oldest = k;
        }
        return oldest;
}

bool rig_log_limit_take(struct rig_log_limits *limits, const char *message_id, uid_t uid, uint64_t now_usec,
        unsigned *ret_left_out, struct rig_log_key *ret_other)
{
        struct rig_log_key *k = place(limits, message_id, uid);

        *ret_left_out = 0;
        *ret_other = (struct rig_log_key){0};
        if (!k->message_id || k->uid != uid || strcmp(k->message_id, message_id) != 0) {
                if (k->message_id && k->left_out)
                        *ret_other = *k;
                *k = (struct rig_log_key){.message_id = message_id, .uid = uid, .start_usec = now_usec};
        }
        if (now_usec - k->start_usec >= RIG_LOG_INTERVAL_USEC) {
                k->start_usec = now_usec;
                k->written = 0;
        }
        if (k->written >= RIG_LOG_BURST) {
                k->left_out++;
                return false;
        }
        k->written++;
        *ret_left_out = k->left_out;
        k->left_out = 0;
        return true;
}

bool rig_log_limit_next(struct rig_log_limits *limits, struct rig_log_key *ret_key)
{
        for (size_t i = 0; i < RIG_LOG_KEYS_MAX; i++)
                if (limits->keys[i].message_id && limits->keys[i].left_out) {
                        *ret_key = limits->keys[i];
                        limits->keys[i].left_out = 0;
                        return true;
                }
        return false;
}
