/* SPDX-License-Identifier: ISC */
/*
 * rigd's log: one line for each thing an admin may act on, on standard error, which the journal reads with
 * its priority. The core loop never waits for it: a line that cannot be written at once is dropped and
 * counted.
 */
#ifndef RIG_LOG_H
#define RIG_LOG_H

#include <syslog.h>

#include "base/base.h"

/* Lines less important than `level` (LOG_ERR ... LOG_DEBUG) are not written. */
void rig_log_set_level(int level);
/* A level by its name, "err", "warning", "notice", "info", "debug"; -EINVAL. */
int rig_log_level_from_string(const char *name);

void rig_log(int level, const char *fmt, ...) _printf_(2, 3);

#endif
