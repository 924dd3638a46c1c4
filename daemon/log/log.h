/* SPDX-License-Identifier: ISC */
/*
 * rigd's log: one line for each thing an admin may act on. Where standard error is the journal, lines go to
 * it in its own protocol, with fields to select by; else they are text on standard error. The core loop
 * never waits for it: a line that finds no room is dropped and counted.
 *
 * Fields, beside MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, CODE_FILE, CODE_LINE and CODE_FUNC: MESSAGE_ID
 * (log-ids.h), RIG_ADAPTER, RIG_DEVICE (what it was opened as), RIG_CLIENT (its number), RIG_PID and RIG_UID
 * (of the process that connected), RIG_SETTING (of rigd.conf, where one decided).
 *
 * For the core loop's thread alone.
 */
#ifndef RIG_LOG_H
#define RIG_LOG_H

#include <sys/types.h>
#include <syslog.h>

#include "base/base.h"
#include "daemon/log/ids.h"

/* What a line is about; whatever is NULL or 0 is not said. All borrowed. */
struct rig_log_about {
        const char *message_id; /* RIG_LOG_... */
        const char *adapter;
        const char *device;
        const char *setting;
        uint64_t client; /* its number */
        pid_t pid; /* of the process behind it, or behind a connection that has no number yet; 0: unknown */
        uid_t uid; /* where there is a pid */
        /* A client can cause it as often as it likes: of a message id and user only the first few in a while
         * are written, and the next one says how many were left out. */
        bool limited;
};

/* What a line about an adapter, or about a client, is about: &RIG_LOG_OF_CLIENT(c, RIG_LOG_..., .setting =
 * "..."). */
#define RIG_LOG_OF_ADAPTER(a, id) ((struct rig_log_about){.message_id = (id), .adapter = (a)->driver.name})
#define RIG_LOG_OF_CLIENT(c, id, ...)                                                                       \
        ((struct rig_log_about){.message_id = (id),                                                         \
                .client = (c)->number,                                                                      \
                .pid = (c)->pid,                                                                            \
                .uid = (c)->uid,                                                                            \
                .limited = true,                                                                            \
                __VA_ARGS__})

/* The process behind a connection that is no client yet, without a message id. */
struct rig_log_about rig_log_of_peer(int fd);

/* Lines less important than `level` (LOG_ERR ... LOG_DEBUG) are not written. */
void rig_log_set_level(int level);
int rig_log_get_level(void);
/* A level by its name, "err", "warning", "notice", "info", "debug"; -EINVAL. */
int rig_log_level_from_string(const char *name);
/* NULL where it is none of them. */
const char *rig_log_level_to_string(int level);

/* How many lines were dropped since rigd started, because the log had no room. */
uint64_t rig_log_dropped(void);

/* Replaces control characters of a text that others made, so that a line stays one line. */
void rig_log_clean(char *text);

/* Says what was left out and not said yet: the last thing before the end. */
void rig_log_finish(void);

/* The arguments are a level, a const struct rig_log_about * or NULL, and what printf() takes. */
#define rig_log_about(...)  rig_log_write(__FILE__, __LINE__, __func__, __VA_ARGS__)
#define rig_log(level, ...) rig_log_write(__FILE__, __LINE__, __func__, level, NULL, __VA_ARGS__)

void rig_log_write(const char *file, int line, const char *func, int level,
        const struct rig_log_about *about, const char *fmt, ...) _printf_(6, 7);

#endif
