/* SPDX-License-Identifier: ISC */
/*
 * Limits: what a client may hold, and what it is told when it may not have more: who, which limit, how much
 * was asked for and left, and the setting. Nobody is ended for being fast, and nobody's limit is another's
 * trouble.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

#define MIB (UINT64_C(1) << 20)

TestSuite(limits, .timeout = 300);

static struct rigd rigd;

/* ---------------------------------------------------------------- objects */

BOTH(limits, objects)
{
        struct wire w, other;

        rigd_start(&rigd, "--set", "ClientObjectsMax=4", NULL);
        wire_open(&w, &rigd, transport);
        wire_open(&other, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_device(&other, 1, "memory:M");
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        munmap(wire_buffer(&w, 2, 1, 64), 64);
        wire_fill(&w, 1, 1, 1);
        wire_fill(&w, 2, 1, 1);
        wire_failed(&w, wire_ask_buffer(&w, 3, 1, 64), EDQUOT,
                "holds 4 buffers, works and images, and ClientObjectsMax is 4");
        wire_failed(&w, wire_ask_work(&w, &(struct rig_msg_work_new){.work = 3, .device = 1}), EDQUOT,
                "ClientObjectsMax is 4");
        munmap(wire_buffer(&other, 1, 1, 64), 64); /* it has its own */
        wire_drop_work(&w, 2);
        munmap(wire_buffer(&w, 3, 1, 64), 64);
        wire_drop_buffer(&w, 3);
        wire_send(&w, RIG_MSG_BUFFER_VIEW, &(struct rig_msg_buffer_view){.buffer = 4, .of = 1, .bytes = 1});
        wire_sync(&w);
        wire_send(&w, RIG_MSG_BUFFER_VIEW, &(struct rig_msg_buffer_view){.buffer = 5, .of = 1, .bytes = 1});
        wire_broken(&w, EDQUOT, "ClientObjectsMax is 4"); /* a view has no answer that could say so */
        wire_sync(&other);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* Refused objects are not counted. */
BOTH(limits, what_is_refused_is_not_held)
{
        int fd = sealed_memfd(4096, 0);
        struct wire w;

        rigd_start(&rigd, "--set", "ClientObjectsMax=3", NULL);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        for (unsigned i = 0; i < 20; i++) {
                struct rig_msg_work_new m = {.work = 1, .device = 1, .n_parts = 1, .parts = {{.kind = 3}}};

                wire_failed(&w, wire_ask_adopt(&w, 1, 1, fd, 0, 4096), EPERM, "");
                wire_failed(&w, wire_ask_work(&w, &m), EOPNOTSUPP, "");
                wire_failed(&w, wire_ask_buffer(&w, 1, 1, UINT64_C(1) << 60), ENOMEM, "");
                wire_failed(&w, wire_ask_import(&w, 1, 1, fd), ESTALE, "");
        }
        for (uint32_t i = 1; i <= 3; i++)
                munmap(wire_buffer(&w, i, 1, 64), 64);
        close(fd);
        wire_close(&w);
        rigd_stop(&rigd);
}

/* ---------------------------------------------------------------- memory_M3 */

BOTH(limits, memory_M3_a_client_has_a_share_it_cannot_exceed)
{
        struct wire w, other;
        struct heard h;

        rigd_start(&rigd, "--set", "ClientMemoryMax=8M", "--set", "ClientCacheMax=0", NULL);
        wire_open(&w, &rigd, transport);
        wire_open(&other, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_device(&w, 2, "memory:N");
        wire_device(&other, 1, "memory:M");
        munmap(wire_buffer(&w, 1, 1, 6 * MIB), 6 * MIB);
        wire_answer(&w, wire_ask_buffer(&w, 2, 2, 4 * MIB), RIG_MSG_FAILED, &h);
        cr_assert_eq(h.msg.failed.error, (uint32_t)EDQUOT);
        {
                char text[256];

                rig_text_copy(h.msg.failed.text, text, sizeof(text));
                cr_assert(strstr(text, "client 1 (pid ") && strstr(text, "4194304") &&
                                  strstr(text, "2097152") && strstr(text, "ClientMemoryMax"),
                        "%s", text);
        }
        munmap(wire_buffer(&w, 2, 2, 2 * MIB), 2 * MIB);
        munmap(wire_buffer(&other, 1, 1, 8 * MIB), 8 * MIB);
        wire_drop_buffer(&w, 1);
        munmap(wire_buffer(&w, 3, 1, 6 * MIB), 6 * MIB);
        wire_close(&w);
        wire_close(&other);
        rigd_stop(&rigd);
}

BOTH(limits, memory_M3_a_budget_bounds_what_all_hold)
{
        struct wire w, other;
        size_t maps;

        rigd_start(&rigd, "--set", "AdapterMemoryMax=8M", NULL);
        wire_open(&other, &rigd, transport);
        maps = rigd_count_maps(&rigd);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_device(&other, 1, "memory:M");
        wire_failed(&w, wire_ask_buffer(&w, 1, 1, 9 * MIB), ENOMEM,
                "9437184 bytes are more than memory has (8388608)");
        munmap(wire_buffer(&w, 1, 1, 6 * MIB), 6 * MIB);
        wire_failed(&other, wire_ask_buffer(&other, 1, 1, 4 * MIB), ENOMEM, "");
        munmap(wire_buffer(&other, 1, 1, 2 * MIB), 2 * MIB);
        wire_close(&w); /* what it held returns, and is not cached for it */
        rigd_await_maps(&rigd, maps + 1);
        munmap(wire_buffer(&other, 2, 1, 6 * MIB), 6 * MIB);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* Memory that is on its way back is waited for. */
BOTH(limits, memory_M3_an_allocation_waits_for_memory_in_flight)
{
        struct wire w;

        rigd_start(&rigd, "--set", "AdapterMemoryMax=48M", NULL);
        for (unsigned round = 0; round < 10; round++) {
                uint8_t *p;

                wire_open(&w, &rigd, transport);
                wire_device(&w, 1, "memory:M,async");
                munmap(wire_buffer(&w, 1, 1, 20 * MIB), 20 * MIB);
                munmap(wire_buffer(&w, 2, 1, 20 * MIB), 20 * MIB);
                wire_copy(&w, 1, 1);
                for (unsigned i = 0; i < 5; i++)
                        wire_run(&w, 1, 1, 2, 0);
                wire_drop_buffer(&w, 1);
                wire_drop_buffer(&w, 2);
                p = wire_buffer(&w, 3, 1, 40 * MIB);
                cr_assert_not_null(p);
                munmap(p, 40 * MIB);
                wire_close(&w);
        }
        rigd_stop(&rigd);
}

/* One that stands still does not hold up what can be had, and fails when nothing is on its way any more. */
BOTH(limits, memory_M3_an_allocation_that_waits_fails_when_nothing_returns)
{
        uint32_t serial;
        struct heard h;
        struct wire w, other;

        rigd_start(&rigd, "--set", "AdapterMemoryMax=8M", NULL);
        wire_open(&w, &rigd, transport);
        wire_open(&other, &rigd, transport);
        wire_device(&w, 1, "host");
        wire_device(&other, 1, "host");
        munmap(wire_buffer(&w, 1, 1, 2 * MIB), 2 * MIB);
        munmap(wire_buffer(&other, 1, 1, 4 * MIB), 4 * MIB);
        wire_fill(&w, 1, 1, 1);
        wire_run(&w, 1, 1, 0); /* runs until it is said to be done */
        wire_drop_buffer(&w, 1);
        serial = wire_ask_buffer(&w, 2, 1, 7 * MIB); /* more than returns */
        munmap(wire_buffer(&w, 3, 1, 1 * MIB), 1 * MIB);
        wire_sync(&w);
        for (size_t i = 0; i < w.n_kept; i++)
                cr_assert_neq(w.kept[i]->type, RIG_MSG_FAILED, "it does not wait");
        wire_send(&w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 1, .value = 1});
        wire_failed(&w, serial, ENOMEM, "");
        wire_drop_buffer(&other, 1);
        wire_drop_buffer(&w, 3);
        wire_sync(&other);
        wire_answer(&w, wire_ask_buffer(&w, 2, 1, 7 * MIB), RIG_MSG_BUFFER_DONE, &h);
        heard_done(&h);
        wire_close(&w);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* A parked allocation whose client goes is nobody's. */
BOTH(limits, memory_M3_a_client_that_goes_while_it_waits)
{
        struct wire w, other;
        size_t fds;

        rigd_start(&rigd, "--set", "AdapterMemoryMax=8M", NULL);
        wire_open(&other, &rigd, transport);
        wire_device(&other, 1, "host");
        munmap(wire_buffer(&other, 1, 1, 6 * MIB), 6 * MIB);
        wire_fill(&other, 1, 1, 1);
        wire_run(&other, 1, 1, 0);
        wire_drop_buffer(&other, 1); /* returns when it is done */
        wire_sync(&other);
        fds = rigd_count_fds(&rigd);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "host");
        wire_ask_buffer(&w, 1, 1, 4 * MIB);
        wire_sync(&w);
        wire_close(&w);
        rigd_await_fds(&rigd, fds);
        wire_send(&other, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 1, .value = 1});
        munmap(wire_buffer(&other, 2, 1, 8 * MIB), 8 * MIB);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* Cached memory is given up for whoever needs it, before anything fails. */
BOTH(limits, memory_M3_caches_are_dropped_first)
{
        struct wire w, other;

        rigd_start(&rigd, "--set", "AdapterMemoryMax=16M", NULL);
        wire_open(&w, &rigd, transport);
        wire_open(&other, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_device(&other, 1, "memory:M");
        for (uint32_t i = 1; i <= 3; i++)
                munmap(wire_buffer(&w, i, 1, 4 * MIB), 4 * MIB);
        for (uint32_t i = 1; i <= 3; i++)
                wire_drop_buffer(&w, i);
        wire_sync(&w);
        munmap(wire_buffer(&other, 1, 1, 14 * MIB), 14 * MIB);
        wire_failed(&w, wire_ask_buffer(&w, 1, 1, 4 * MIB), ENOMEM, "");
        wire_close(&w);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* ---------------------------------------------------------------- runs in flight */

/* Far more runs than may be in flight: the client is not read until some are done, and all complete. */
BOTH(limits, runs_in_flight_throttle_and_never_kill)
{
        struct wire w, other;
        uint8_t *p;

        rigd_start(&rigd, "--set", "ClientRunsMax=4", NULL);
        wire_open(&w, &rigd, transport);
        wire_open(&other, &rigd, transport);
        wire_device(&w, 1, "memory:M,async");
        wire_device(&other, 1, "memory:M");
        p = wire_buffer(&w, 1, 1, 65536);
        munmap(wire_buffer(&other, 1, 1, 64), 64);
        wire_fill(&w, 1, 1, 0x01020304);
        wire_fill(&w, 2, 1, 0x5a5a5a5a);
        wire_fill(&other, 1, 1, 1);
        for (unsigned i = 0; i < 20000; i++) {
                wire_run(&w, 1, 1, 0);
                if (i % 1000 == 0) {
                        wire_run(&other, 1, 1, 0);
                        wire_wait(&other, 1, 1);
                }
        }
        wire_run(&w, 2, 1, 0);
        wire_wait(&w, 1, 1);
        cr_assert_eq(p[0], 0x5a);
        cr_assert_eq(p[65535], 0x5a);
        munmap(p, 65536);
        wire_close(&w);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* One that has as many runs in flight as it may, of its own code, dies: rigd comes to know. */
BOTH(limits, a_throttled_client_that_dies)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
        struct heard h;
        struct wire w, other;
        size_t fds;

        rigd_start(&rigd, "--set", "ClientRunsMax=4", NULL);
        wire_open(&other, &rigd, transport);
        wire_device(&other, 1, "memory:M");
        wire_adopt(&other, 1, 1, fd, 0, 4096);
        wire_sync(&other);
        fds = rigd_count_fds(&rigd);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "host");
        wire_adopt(&w, 1, 1, fd, 0, 4096);
        wire_fill(&w, 1, 1, 1);
        for (unsigned i = 0; i < 4; i++)
                wire_run(&w, 1, 1, 0);
        wire_sync(&w);
        for (unsigned i = 0; i < 4; i++)
                wire_run(&w, 1, 1, 0); /* these stay where they are */
        wire_close(&w);
        rigd_await_fds(&rigd, fds); /* before anybody makes rigd look at it */
        wire_answer(&other, wire_ask_wait(&other, 1, 1), RIG_MSG_FAILED, &h);
        cr_assert_eq(h.msg.failed.error, (uint32_t)ENODEV);
        wire_close(&other);
        close(fd);
        rigd_stop(&rigd);
}

/* And a client that must be accepted after it is not left behind for ever. */
BOTH(limits, a_client_that_follows_a_throttled_one_that_dies)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
        struct heard h;
        struct wire w, other;

        rigd_start(&rigd, "--set", "ClientRunsMax=4", NULL);
        wire_open(&other, &rigd, transport);
        wire_device(&other, 1, "memory:M");
        wire_adopt(&other, 1, 1, fd, 0, 4096);
        wire_fill(&other, 1, 1, 1);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "host");
        munmap(wire_buffer(&w, 2, 1, 4096), 4096);
        wire_adopt(&w, 1, 1, fd, 0, 4096);
        wire_fill(&w, 1, 1, 1);
        for (unsigned i = 0; i < 4; i++)
                wire_run(&w, 1, 2, 0); /* of its own memory */
        wire_sync(&w);
        wire_run(&w, 1, 1, 0); /* waits, and is before whatever comes now */
        wire_run(&other, 1, 1, 0);
        wire_send(&other, RIG_MSG_BUFFER_WAIT,
                &(struct rig_msg_buffer_wait){
                        .serial = 500, .buffer = 1, .access = 1, .time = rig_now_nsec()});
        wire_close(&w);
        wire_answer(&other, 500, RIG_MSG_FAILED, &h); /* what w wrote last is lost with its code */
        cr_assert_eq(h.msg.failed.error, (uint32_t)ENODEV);
        wire_sync(&other);
        wire_close(&other);
        close(fd);
        rigd_stop(&rigd);
}

/* Its own code stands still, and it has more to run than it may: that is no matter to those it shares memory
 * with. */
BOTH(limits, L6_a_throttled_client_does_not_hold_up_those_it_shares_memory_with)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
        uint8_t *p = map_fd(fd, 4096);
        struct wire w, other;

        rigd_start(&rigd, "--set", "ClientRunsMax=4", NULL);
        wire_open(&other, &rigd, transport);
        wire_device(&other, 1, "memory:M");
        wire_adopt(&other, 1, 1, fd, 0, 4096);
        wire_fill(&other, 1, 1, 0x34343434);
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "host");
        wire_device(&w, 2, "memory:M");
        munmap(wire_buffer(&w, 2, 1, 4096), 4096);
        wire_adopt(&w, 1, 1, fd, 0, 4096);
        wire_fill(&w, 1, 1, 1);
        wire_fill(&w, 2, 2, 0x56565656);
        for (unsigned i = 0; i < 10; i++)
                wire_run(&w, 1, 2, 0); /* of its own memory, and never done */
        wire_run(&w, 2, 1, 0);         /* and behind them one that others see */
        wire_wait(&other, 1, 1);
        cr_assert_eq(p[0], 0x56, "what it published before is not there");
        wire_run(&other, 1, 1, 0);
        wire_wait(&other, 1, 1);
        cr_assert_eq(p[0], 0x34);
        munmap(p, 4096);
        wire_close(&w);
        wire_close(&other);
        close(fd);
        rigd_stop(&rigd);
}

/* ---------------------------------------------------------------- answers that nobody reads */

BOTH(limits, a_client_that_never_reads_its_answers_is_ended)
{
        struct rig_msg_adapter_list m = {.serial = 1, .index = 0};
        static uint8_t data[RIG_PROTO_PACKET_BYTES];
        size_t n = 0;
        struct wire w, other;

        rigd_start(&rigd, "--set", "ClientQueueMax=64K", NULL);
        wire_open(&w, &rigd, transport);
        wire_open(&other, &rigd, transport);
        while (n + 64 < sizeof(data))
                n = wire_encode(data, n, sizeof(data), RIG_MSG_ADAPTER_LIST, &m);
        for (unsigned i = 0; i < 4 && rig_packet_send(w.fd, data, n, NULL, 0, 0) == 0; i++)
                wire_sync(&other);
        wire_end(&w);
        cr_assert(rigd_log_has(&rigd, "is ended: it left "));
        cr_assert(rigd_log_has(&rigd, "bytes of answers unread, and ClientQueueMax is 65536"));
        wire_sync(&other);
        wire_close(&other);
        rigd_stop(&rigd);
}

/* Values are no answers: a client on the socket that submits and does not read is told the last one. */
Test(limits, values_that_nobody_reads_are_not_queued)
{
        struct wire w;

        rigd_start(&rigd, "--set", "ClientQueueMax=64K", NULL);
        wire_open(&w, &rigd, WIRE_SOCKET);
        wire_device(&w, 1, "memory:M");
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        wire_fill(&w, 1, 1, 1);
        for (unsigned i = 0; i < 50000; i++)
                wire_run(&w, 1, 1, 0);
        wire_value(&w, 1, 50000);
        wire_close(&w);
        rigd_stop(&rigd);
}

/* ---------------------------------------------------------------- descriptors */

/* One client takes all the descriptors there are to have. It is told; others go on, and come when it lets
 * go. */
BOTH(limits, L6_a_client_that_holds_all_descriptors_ends_nobody)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
        struct wire w, other, third;
        uint32_t held = 0;
        struct heard h;

        rigd_fds_max = 256;
        rigd_start(&rigd, NULL);
        wire_open(&other, &rigd, transport);
        wire_device(&other, 1, "memory:M");
        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        while (wire_any_answer(&w, wire_ask_buffer(&w, ++held, 1, 64), &h) == RIG_MSG_BUFFER_DONE)
                heard_done(&h);
        cr_assert_eq(h.msg.failed.error, (uint32_t)EMFILE);
        wire_failed(&w, wire_ask_adopt(&w, held, 1, fd, 0, 4096), EMFILE, "rigd has no descriptors left");
        wire_failed(
                &other, wire_ask_adopt(&other, 1, 1, fd, 0, 4096), EMFILE, "rigd has no descriptors left");
        for (unsigned i = 0; i < 20; i++)
                wire_failed(&other, wire_ask_import(&other, 1, 1, fd), ESTALE, "");
        wire_open_fd(&third, rigd_connect(&rigd), transport);
        wire_broken(&third, EMFILE, "rigd has no descriptors left");
        for (uint32_t b = 1; b < held; b++)
                wire_drop_buffer(&w, b);
        wire_close(&w); /* and what is cached for it */
        do {
                uint32_t serial = wire_ask_adopt(&other, 1, 1, fd, 0, 4096);

                if (wire_any_answer(&other, serial, &h) == RIG_MSG_FAILED)
                        cr_assert_eq(h.msg.failed.error, (uint32_t)EMFILE);
        } while (h.type == RIG_MSG_FAILED);
        heard_done(&h);
        wire_open(&third, &rigd, transport);
        wire_close(&third);
        wire_close(&other);
        close(fd);
        rigd_stop(&rigd);
}

/* ---------------------------------------------------------------- connections */

Test(limits, connections)
{
        struct wire w[3], one_more;

        rigd_start(&rigd, "--set", "ClientsMax=3", NULL);
        for (unsigned i = 0; i < 3; i++)
                wire_open(&w[i], &rigd, WIRE_RING);
        wire_open_fd(&one_more, rigd_connect(&rigd), WIRE_RING);
        wire_broken(&one_more, EUSERS, "there are 3 connections, and ClientsMax is 3");
        for (unsigned i = 0; i < 3; i++)
                wire_sync(&w[i]);
        cr_assert(rigd_log_has(
                &rigd, "a connection was refused: there are 3 connections, and ClientsMax is 3"));
        for (unsigned i = 0; i < 3; i++)
                wire_close(&w[i]);
        rigd_stop(&rigd);
}

/* As many devices as the word page has words. */
BOTH(limits, devices)
{
        struct wire w;

        rigd_start(&rigd, NULL);
        wire_open(&w, &rigd, transport);
        for (uint32_t d = 1; d <= RIG_PROTO_DEVICES_MAX; d++)
                wire_device(&w, d, d % 2 ? "memory:M" : "host");
        munmap(wire_buffer(&w, 1, 61, 64), 64);
        wire_fill(&w, 1, 61, 1);
        wire_run(&w, 1, 1, 0);
        wire_value(&w, 61, 1);
        for (uint32_t d = 1; d <= RIG_PROTO_DEVICES_MAX; d++)
                wire_close_device(&w, d);
        wire_device(&w, 61, "memory:M"); /* a new one: its word starts again */
        wire_value(&w, 61, 0);
        if (w.words)
                cr_assert_eq(atomic_load(&w.words->word[60].signaled), 0u);
        wire_close(&w);
        rigd_stop(&rigd);
}
