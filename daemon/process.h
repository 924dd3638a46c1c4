/* SPDX-License-Identifier: ISC */
/* What the system says of the process behind a connection. */
#ifndef RIG_PROCESS_H
#define RIG_PROCESS_H

#include <sys/types.h>

#include "base/base.h"

#define RIG_UNIT_MAX 256

/*
 * The name of a process, and the systemd unit that it runs in. "" where it is not to be learnt: the process
 * is gone, and another one with its number, which started after `since_boot_usec` (CLOCK_BOOTTIME), is not
 * it.
 */
void rig_process_command(pid_t pid, uint64_t since_boot_usec, char ret[16]);
void rig_process_unit(pid_t pid, uint64_t since_boot_usec, char ret[RIG_UNIT_MAX]);

#endif
