/* SPDX-License-Identifier: ISC */
/*
 * Loss between processes: a client's own code dies with it, and with that the work that waits for it, for
 * one reason; everything else goes on. The dying ones are puppets, killed in the middle of a host run.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/puppet.h"

#define BYTES  4096u
#define REASON "the program whose code it runs has ended"

static struct rigd rigd;
static int fd[3];
static uint8_t *bytes[3];

static void set_up(void)
{
        rigd_start(&rigd, NULL);
        for (unsigned i = 0; i < 3; i++) {
                fd[i] = sealed_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_SEAL);
                bytes[i] = map_fd(fd[i], BYTES);
        }
}

static void tear_down(void)
{
        for (unsigned i = 0; i < 3; i++) {
                munmap(bytes[i], BYTES);
                close(fd[i]);
        }
        rigd_stop(&rigd);
}

TestSuite(loss, .init = set_up, .fini = tear_down, .timeout = 120);

/* Device 1 is memory, 2 the host; buffers 1 to 3 are the memories; works 1 and 2 copy and fill, 3 and 4 on
 * the host. */
static void prepare(struct puppet *p, enum wire_transport transport)
{
        puppet_start(p, &rigd, transport);
        puppet_device(p, 1, "memory:M");
        puppet_device(p, 2, "host");
        for (uint32_t i = 0; i < 3; i++)
                puppet_adopt(p, i + 1, 1, fd[i], BYTES);
        puppet_copy(p, 1, 1);
        puppet_fill(p, 2, 1, 0x22222222);
        puppet_copy(p, 3, 2);
        puppet_fill(p, 4, 2, 0x44444444);
}

BOTH(loss, L2_memory_that_dead_code_was_writing_is_lost_with_the_reason)
{
        struct puppet a, b;
        char text[256];

        prepare(&a, transport);
        prepare(&b, transport);
        puppet_run(&a, 4, 1, 0, false); /* a's code writes memory 1 */
        puppet_sync(&a);
        puppet_run(&b, 1, 2, 1, false); /* b copies it to 2 */
        puppet_ask_wait(&b, 2, 1);
        puppet_kill(&a);
        cr_assert_eq(puppet_answer(&b, text, sizeof(text)), ENODEV);
        cr_assert_not_null(strstr(text, REASON), "%s", text);
        cr_assert_eq(puppet_wait(&b, 1, 1, text, sizeof(text)), ENODEV);
        cr_assert_not_null(strstr(text, REASON), "%s", text);
        puppet_run(&b, 2, 3, 0, false); /* the device of b goes on */
        cr_assert_eq(puppet_wait(&b, 3, 1, NULL, 0), 0);
        cr_assert_eq(bytes[2][0], 0x22);
        puppet_stop(&b);
}

BOTH(loss, L2_memory_that_dead_code_only_read_is_not_lost)
{
        struct puppet a, b;

        prepare(&a, transport);
        prepare(&b, transport);
        puppet_run(&a, 3, 1, 2, false); /* a's code reads 2 and writes 1 */
        puppet_sync(&a);
        puppet_run(&b, 1, 3, 2, false); /* reading beside it is free */
        cr_assert_eq(puppet_wait(&b, 3, 1, NULL, 0), 0);
        puppet_run(&b, 2, 2, 0, false); /* writing waits until it is over */
        puppet_ask_wait(&b, 2, 1);
        cr_assert_eq(puppet_signaled(&a, 2), 0u);
        puppet_kill(&a);
        cr_assert_eq(puppet_answer(&b, NULL, 0), 0);
        cr_assert_eq(bytes[1][0], 0x22);
        puppet_stop(&b);
}

/* A run of another client that follows the dead one's work fails, and is passed: its value is reached. */
Test(loss, L2_runs_that_followed_it_fail_and_their_values_are_passed)
{
        struct puppet a;
        struct heard h;
        struct wire w;

        prepare(&a, WIRE_RING);
        wire_open(&w, &rigd, WIRE_RING);
        wire_device(&w, 1, "memory:M");
        wire_adopt(&w, 1, 1, fd[0], 0, BYTES);
        wire_adopt(&w, 2, 1, fd[1], 0, BYTES);
        wire_copy(&w, 1, 1);
        wire_fill(&w, 2, 1, 0x66666666);
        puppet_run(&a, 4, 1, 0, false);
        puppet_sync(&a);
        wire_run(&w, 1, 2, 1, 0);
        wire_sync(&w);
        puppet_kill(&a);
        wire_event(&w, RIG_MSG_RUN_FAILED, &h);
        cr_assert_eq(h.msg.run_failed.value, 1u);
        cr_assert_eq(h.msg.run_failed.error, (uint32_t)ENODEV);
        cr_assert_eq(h.msg.run_failed.lost, 1u);
        wire_value(&w, 1, 1);
        wire_close(&w);
}

/* As many runs as a client may have in flight fail at once: their client is told of each, and lives. */
BOTH(loss, L2_all_the_runs_that_a_client_may_have_fail_at_once)
{
        unsigned n = 16000, failed = 0;
        struct puppet a;
        struct wire w;

        prepare(&a, transport);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_adopt(&w, 1, 1, fd[0], 0, BYTES);
        wire_adopt(&w, 2, 1, fd[1], 0, BYTES);
        wire_copy(&w, 1, 1);
        puppet_run(&a, 4, 1, 0, false);
        puppet_sync(&a);
        for (unsigned i = 0; i < n; i++)
                wire_run(&w, 1, 2, 1, 0);
        wire_sync(&w);
        puppet_kill(&a);
        while (failed < n) {
                struct heard h;

                wire_event(&w, RIG_MSG_RUN_FAILED, &h);
                cr_assert_eq(h.msg.run_failed.value, ++failed);
        }
        wire_value(&w, 1, n);
        wire_close(&w);
}

/* One that closes its host device while its code runs loses that device, and keeps the others. */
BOTH(loss, L1_a_host_device_that_is_closed_while_its_code_runs)
{
        struct puppet b;
        struct wire w;
        char text[256];

        prepare(&b, transport);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_device(&w, 2, "host");
        wire_adopt(&w, 1, 1, fd[0], 0, BYTES);
        wire_fill(&w, 1, 2, 1);
        wire_fill(&w, 2, 1, 0x22222222);
        wire_run(&w, 1, 1, 0);
        wire_sync(&w);
        wire_close_device(&w, 2);
        wire_sync(&w);
        cr_assert_eq(puppet_wait(&b, 1, 1, text, sizeof(text)), ENODEV);
        cr_assert_not_null(strstr(text, "it was closed before its program's code was done"), "%s", text);
        munmap(wire_buffer(&w, 9, 1, BYTES), BYTES);
        wire_run(&w, 2, 9, 0);
        wire_wait(&w, 9, 1);
        wire_device(&w, 2, "host"); /* the number is free, and the device a new one */
        wire_fill(&w, 3, 2, 1);
        wire_run(&w, 3, 9, 0);
        wire_sync(&w);
        wire_send(&w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 2, .value = 1});
        wire_wait(&w, 9, 1);
        puppet_stop(&b);
        wire_close(&w);
}

/* A device with work in flight is closed, and then its client is gone too: the work completes. */
BOTH(loss, L6_a_device_that_is_closed_before_its_work_is_done)
{
        for (unsigned i = 0; i < 20; i++) {
                int big = sealed_memfd(1 << 20, F_SEAL_SHRINK | F_SEAL_SEAL);
                uint8_t *p = map_fd(big, 1 << 20);
                struct wire w, other;

                wire_open(&other, &rigd, WIRE_RING);
                wire_device(&other, 1, "memory:M");
                wire_adopt(&other, 1, 1, big, 0, 1 << 20);
                wire_open(&w, &rigd, transport);
                wire_device(&w, 1, "memory:M,async");
                wire_adopt(&w, 1, 1, big, 0, 1 << 20);
                wire_fill(&w, 1, 1, 0x01020304);
                wire_fill(&w, 2, 1, 0x77777777);
                for (unsigned k = 0; k < 8; k++)
                        wire_run(&w, 1, 1, 0);
                wire_run(&w, 2, 1, 0);
                wire_close_device(&w, 1);
                if (i % 2)
                        wire_sync(&w);
                wire_close(&w);
                wire_sync(&other);
                wire_wait(&other, 1, 1);
                if (i % 2) /* else the other may have asked before it was accepted: nobody told it */
                        cr_assert(p[0] == 0x77 && p[(1 << 20) - 1] == 0x77);
                wire_close(&other);
                munmap(p, 1 << 20);
                close(big);
        }
}

/* ---------------------------------------------------------------- what was published before the end */

/* A client that has unread answers and goes: the packets it sent before are still taken. */
static void goes_with_unread_answers(enum wire_transport transport, unsigned runs)
{
        struct puppet b;
        struct wire w;

        memset(bytes[0], 0, BYTES);
        prepare(&b, WIRE_RING);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_adopt(&w, 1, 1, fd[0], 0, BYTES);
        wire_fill(&w, 1, 1, 0x01010101);
        wire_fill(&w, 2, 1, 0x99999999);
        rigd_pause(&rigd);
        for (unsigned i = 0; i < 10; i++) /* answers that nobody reads */
                wire_send(&w, RIG_MSG_SYNC, &(struct rig_msg_sync){.serial = 1000 + i});
        for (unsigned i = 0; i < runs; i++)
                wire_run(&w, 1, 1, 0);
        wire_run(&w, 2, 1, 0);
        wire_close(&w);
        rigd_resume(&rigd);
        puppet_run(&b, 1, 2, 1, false);
        cr_assert_eq(puppet_wait(&b, 2, 1, NULL, 0), 0);
        cr_assert_eq(bytes[1][0], 0x99, "runs that were handed over are lost");
        puppet_stop(&b);
}

Test(loss, L6_what_was_sent_before_the_end_is_done_on_the_socket)
{
        for (unsigned i = 0; i < 20; i++)
                goes_with_unread_answers(WIRE_SOCKET, 100);
}

Test(loss, L6_what_was_published_before_the_end_is_done_on_the_ring)
{
        for (unsigned i = 0; i < 20; i++)
                goes_with_unread_answers(WIRE_RING, 3000);
}

/* The client reads its events as they come, and goes in the middle of what rigd tells it. */
Test(loss, L6_a_client_that_goes_while_it_is_told)
{
        for (unsigned i = 0; i < 20; i++) {
                struct puppet b;
                struct wire w;

                memset(bytes[0], 0, BYTES);
                prepare(&b, WIRE_SOCKET);
                wire_open(&w, &rigd, WIRE_SOCKET);
                wire_device(&w, 1, "memory:M");
                wire_adopt(&w, 1, 1, fd[0], 0, BYTES);
                wire_fill(&w, 1, 1, 0x01010101);
                wire_fill(&w, 2, 1, 0x99999999);
                for (unsigned k = 0; k < 150; k++)
                        wire_run(&w, 1, 1, 0);
                wire_run(&w, 2, 1, 0);
                wire_close(&w);
                puppet_run(&b, 1, 2, 1, false);
                cr_assert_eq(puppet_wait(&b, 2, 1, NULL, 0), 0);
                cr_assert_eq(bytes[1][0], 0x99, "runs that were handed over are lost");
                puppet_stop(&b);
        }
}
