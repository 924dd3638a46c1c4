/* SPDX-License-Identifier: ISC */
/*
 * Limits of clients after a reload: connections that are there keep theirs, those made from then on have the
 * new ones. Seen from the wire: what hello says, and what is refused.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

TestSuite(reload, .timeout = 120);

static char path[64];

static void configure(const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
}

/* Has it read again, and waits for the line that says so. */
static void reload(const struct rigd *rigd, const char *says)
{
        uint64_t deadline_usec = rig_deadline_usec(RIGD_WAIT_MS * RIG_USEC_PER_MSEC);

        kill(rigd->pid, SIGHUP);
        while (!rigd_log_has(rigd, says)) {
                cr_assert_lt(rig_now_usec(), deadline_usec, "the log never says \"%s\"", says);
                usleep(1000);
        }
}

BOTH(reload, a_connection_keeps_the_limits_that_it_was_made_with)
{
        struct wire before, after;
        struct rigd rigd;

        snprintf(path, sizeof(path), "/tmp/rigd-limits-%d.conf", (int)getpid());
        configure("[Daemon]\nClientObjectsMax=2\nClientMemoryMax=1M\nClientRunsMax=5\n");
        rigd_start(&rigd, "--config", path, NULL);
        wire_open(&before, &rigd, transport);
        cr_assert_eq(before.hello.objects, 2u);
        wire_device(&before, 1, "memory:M");
        munmap(wire_buffer(&before, 1, 1, 4096), 4096);

        configure("[Daemon]\nClientObjectsMax=1\nClientMemoryMax=2M\nClientRunsMax=6\n");
        reload(&rigd,
                "ClientObjectsMax is 1, was 2, ClientMemoryMax is 2M, was 1M, ClientRunsMax is 6, was 5");
        wire_open(&after, &rigd, transport);
        cr_assert_eq(after.hello.objects, 1u);
        cr_assert_eq(after.hello.memory, UINT64_C(2) << 20);
        cr_assert_eq(after.hello.runs, 6u);
        wire_device(&after, 1, "memory:M");
        munmap(wire_buffer(&after, 1, 1, UINT64_C(3) << 19), UINT64_C(3) << 19); /* more than it was */
        wire_failed(&after, wire_ask_buffer(&after, 2, 1, 4096), EDQUOT, "ClientObjectsMax is 1");

        munmap(wire_buffer(&before, 2, 1, 4096), 4096);
        wire_failed(&before, wire_ask_buffer(&before, 3, 1, 4096), EDQUOT, "ClientObjectsMax is 2");
        wire_drop_buffer(&before, 2);
        wire_failed(&before, wire_ask_buffer(&before, 3, 1, UINT64_C(3) << 19), EDQUOT, "ClientMemoryMax");
        wire_close(&before);
        wire_close(&after);
        rigd_stop(&rigd);
        unlink(path);
}
