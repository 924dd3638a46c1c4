/* SPDX-License-Identifier: ISC */
/*
 * What is told of the process behind a connection, by the kernel's own answers about this one. A process
 * that started after the connection was made has the number by chance.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "daemon/process.h"

TestSuite(process, .timeout = 60);

static void command_is(pid_t pid, uint64_t since_usec, const char *expected)
{
        char command[16] = "none";

        rig_process_command(pid, since_usec, command);
        cr_assert_str_eq(command, expected);
}

Test(process, its_name_is_the_kernels_whatever_is_in_it)
{
        static const char *const names[] = {"plain", "a) R 1 (b", "(", ")", ") (", "fifteen bytes.."};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(names); i++) {
                cr_assert_eq(prctl(PR_SET_NAME, names[i], 0, 0, 0), 0);
                command_is(getpid(), rig_clock_usec(CLOCK_BOOTTIME), names[i]);
        }
}

Test(process, one_that_started_after_the_connection_is_another_one)
{
        char unit[RIG_UNIT_MAX] = "none";

        command_is(getpid(), 0, "");
        rig_process_unit(getpid(), 0, unit);
        cr_assert_str_eq(unit, "");
}

Test(process, one_that_is_gone_has_no_name)
{
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        cr_assert_gt(pid, 0);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        command_is(pid, rig_clock_usec(CLOCK_BOOTTIME), "");
        command_is(0, rig_clock_usec(CLOCK_BOOTTIME), "");
        command_is(-1, rig_clock_usec(CLOCK_BOOTTIME), "");
}
