/* SPDX-License-Identifier: ISC */
/*
 * An idle rigd makes no wake-up: while nobody does anything, none of its threads sleeps anew, which it would
 * have to had one woken. The count is the kernel's, over the second that the test lets pass.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

static struct rigd rigd;

static void set_up(void)
{
        rigd_start(&rigd, NULL);
}

static void tear_down(void)
{
        rigd_stop(&rigd);
}

TestSuite(idle, .init = set_up, .fini = tear_down, .timeout = 120);

/* Clients of all kinds that did all kinds of work, and wait for what does not come. */
static void busy_clients(struct wire *w)
{
        for (unsigned t = WIRE_RING; t <= WIRE_SOCKET; t++) {
                wire_open(&w[t], &rigd, t);
                wire_device(&w[t], 1, "memory:M");
                wire_device(&w[t], 2, "memory:A,async");
                wire_device(&w[t], 3, "host");
                wire_device(&w[t], 4, "disk");
                munmap(wire_buffer(&w[t], 1, 1, 1 << 20), 1 << 20);
                munmap(wire_buffer(&w[t], 2, 1, 64), 64);
                for (uint32_t d = 1; d <= 3; d++)
                        wire_fill(&w[t], d, d, 1);
                wire_run(&w[t], 1, 1, 0);
                wire_run(&w[t], 2, 1, 0);
                wire_wait(&w[t], 1, 2);
                wire_run(&w[t], 3, 2, 0); /* host code that takes its time */
                wire_ask_wait(&w[t], 2, 1);
                wire_sync(&w[t]);
        }
}

Test(idle, an_idle_rigd_makes_no_wake_up)
{
        uint64_t before, after;
        struct wire w[3];

        busy_clients(w);
        rigd_pause(&rigd); /* it sleeps: stopping it says so */
        rigd_resume(&rigd);
        poll(NULL, 0, 200); /* going on is a wake-up of its own */
        before = rigd_count_sleeps(&rigd);
        poll(NULL, 0, 1000); /* what is counted over */
        after = rigd_count_sleeps(&rigd);
        cr_assert_eq(after, before, "%llu wake-ups", (unsigned long long)(after - before));
        for (unsigned t = 0; t < 3; t++) {
                wire_sync(&w[t]);
                wire_close(&w[t]);
        }
        cr_assert_gt(rigd_count_sleeps(&rigd), before, "the count counts nothing");
}
