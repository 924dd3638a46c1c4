/* SPDX-License-Identifier: ISC */
/*
 * What /proc says of the process behind a connection, read when somebody asks.
 *
 * A connection outlives the process that made it, where it was inherited or passed on, and the kernel gives
 * the number to another one some day. That one started after the connection was made, while the one that
 * made it started before; whatever started later is not told of. Where that is looked at last, it holds for
 * what was read before.
 */
#include "daemon/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-login.h>

#include "base/clock.h"

/* Reads the start of a file of /proc/PID. Return: how many bytes, 0 where there are none. */
static size_t read_proc(pid_t pid, const char *name, char *text, size_t room)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        n = fd < 0 ? -1 : read(fd, text, room - 1);
        text[n < 0 ? 0 : n] = '\0';
        return n < 0 ? 0 : (size_t)n;
}

/* Whether the process is the one that was there at `since_boot_usec` (CLOCK_BOOTTIME); and its name. */
static bool same_process(pid_t pid, uint64_t since_boot_usec, char ret_command[16])
{
        char stat[1024], *name, *end;
        unsigned long long ticks;

        if (pid <= 0 || !read_proc(pid, "stat", stat, sizeof(stat)))
                return false;
        /* "PID (NAME) S ...": the name may have anything in it, also a parenthesis. */
        name = strchr(stat, '(');
        end = strrchr(stat, ')');
        if (!name || !end || end <= name ||
                sscanf(end + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &ticks) != 1)
                return false;
        *end = '\0';
        if (ticks * RIG_USEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK) > since_boot_usec)
                return false;
        snprintf(ret_command, 16, "%s", name + 1);
        return true;
}

void rig_process_command(pid_t pid, uint64_t since_boot_usec, char ret[16])
{
        if (!same_process(pid, since_boot_usec, ret))
                *ret = '\0';
}

void rig_process_unit(pid_t pid, uint64_t since_boot_usec, char ret[RIG_UNIT_MAX])
{
        _cleanup_(rig_freep) char *unit = NULL;
        char command[16];

        /* Of a user's manager, which is a unit itself, the unit inside says more. */
        if (pid <= 0 || (sd_pid_get_user_unit(pid, &unit) < 0 && sd_pid_get_unit(pid, &unit) < 0) ||
                !same_process(pid, since_boot_usec, command))
                *ret = '\0';
        else
                snprintf(ret, RIG_UNIT_MAX, "%s", unit);
}
