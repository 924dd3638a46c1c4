/* SPDX-License-Identifier: ISC */
/*
 * Requests: many in flight, many in a packet, each with its own answer and its own descriptors, and sync
 * behind all that came before it. And between clients: one that floods rigd does not keep another one
 * waiting.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

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

TestSuite(requests, .init = set_up, .fini = tear_down, .timeout = 300);

static void open_usual(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        wire_device(w, 1, "memory:M");
}

/* ---------------------------------------------------------------- adapters */

BOTH(requests, adapters_are_listed_with_what_they_are)
{
        static const char *const names[] = {"memory", "host", "disk"};
        unsigned found = 0;
        struct wire w;

        open_usual(&w, transport);
        for (uint32_t i = 0;; i++) {
                struct rig_msg_adapter_list m = {.serial = wire_serial(&w), .index = i};
                struct heard h;
                char name[64], driver[64], about[256];

                wire_send(&w, RIG_MSG_ADAPTER_LIST, &m);
                if (wire_any_answer(&w, m.serial, &h) == RIG_MSG_FAILED) {
                        cr_assert_eq(h.msg.failed.error, (uint32_t)ENOENT);
                        break;
                }
                cr_assert_eq(h.type, RIG_MSG_ADAPTER_DONE);
                rig_text_copy(h.msg.adapter_done.name, name, sizeof(name));
                rig_text_copy(h.msg.adapter_done.driver, driver, sizeof(driver));
                rig_text_copy(h.msg.adapter_done.about, about, sizeof(about));
                cr_assert_str_eq(name, driver);
                cr_assert_neq(about[0], '\0');
                for (size_t k = 0; k < RIG_ARRAY_SIZE(names); k++)
                        found |= strcmp(name, names[k]) == 0 ? 1u << k : 0;
                if (strcmp(name, "memory") == 0) {
                        cr_assert_eq(h.msg.adapter_done.devices, 1u);
                        cr_assert_gt(h.msg.adapter_done.budget, 0u);
                }
        }
        cr_assert_eq(found, 7u);
        wire_close(&w);
}

/* ---------------------------------------------------------------- many at once */

/* Allocations of all sizes are asked for at once; the answers may come in any order. */
BOTH(requests, many_in_flight)
{
        uint32_t serials[200];
        struct wire w;

        open_usual(&w, transport);
        for (uint32_t i = 0; i < 200; i++)
                serials[i] = wire_ask_buffer(&w, i + 1, 1, (uint64_t)i * 1000);
        for (uint32_t i = 200; i-- > 0;) {
                struct heard h;

                wire_answer(&w, serials[i], RIG_MSG_BUFFER_DONE, &h);
                cr_assert_eq(h.msg.buffer_done.bytes, (uint64_t)i * 1000);
                cr_assert_geq(h.msg.buffer_done.memory, h.msg.buffer_done.bytes);
                cr_assert_eq(h.msg.buffer_done.has_fd, i > 0);
                heard_done(&h);
        }
        wire_close(&w);
}

/* A packet full of messages: each is taken, in order. */
BOTH(requests, a_packet_of_many_messages)
{
        static uint8_t data[RIG_PROTO_PACKET_BYTES];
        size_t n = 0;
        uint32_t first, last;
        struct wire w;

        open_usual(&w, transport);
        first = w.serial + 1;
        while (n + 16 < sizeof(data)) {
                struct rig_msg_sync m = {.serial = wire_serial(&w)};

                n = wire_encode(data, n, sizeof(data), RIG_MSG_SYNC, &m);
        }
        last = w.serial;
        cr_assert_gt(last - first, 4000u);
        wire_send_raw(&w, data, n, NULL, 0);
        for (uint32_t s = first; s <= last; s++) {
                struct heard h;

                wire_answer(&w, s, RIG_MSG_DONE, &h);
        }
        wire_close(&w);
}

/* Runs, a view that is used behind them, and drops, in one packet or one publication. */
BOTH(requests, ordered_messages_in_one_go)
{
        struct rig_msg_buffer_view view = {.buffer = 2, .of = 1, .offset = 32, .bytes = 16};
        struct rig_msg_run run = {.work = 1, .n_buffers = 1, .buffers = {2}};
        struct rig_msg_buffer_drop drop = {.buffer = 2};
        uint8_t data[4096], *p;
        size_t n = 0;
        struct wire w;

        open_usual(&w, transport);
        p = wire_buffer(&w, 1, 1, 64);
        wire_fill(&w, 1, 1, 0x0f0f0f0f);
        for (unsigned i = 0; i < 50; i++) {
                n = wire_encode(data, n, sizeof(data), RIG_MSG_BUFFER_VIEW, &view);
                n = wire_encode(data, n, sizeof(data), RIG_MSG_RUN, &run);
                n = wire_encode(data, n, sizeof(data), RIG_MSG_BUFFER_DROP, &drop);
        }
        wire_raw(&w, data, n);
        wire_wait(&w, 1, 1);
        cr_assert(p[31] == 0 && p[32] == 0x0f && p[47] == 0x0f && p[48] == 0);
        wire_value(&w, 1, 50);
        munmap(p, 64);
        wire_close(&w);
}

/* The descriptors of a packet go to the messages that name them, in whichever order they are. */
BOTH(requests, descriptors_belong_to_the_message_that_names_them)
{
        struct rig_msg_buffer_adopt adopt = {.device = 1};
        int fds[4];
        uint8_t *p[4], data[512];
        size_t n = 0;
        struct wire w;

        open_usual(&w, transport);
        wire_fill(&w, 1, 1, 0x31313131);
        for (unsigned i = 0; i < 4; i++) {
                fds[i] = sealed_memfd(4096 * (i + 1), F_SEAL_SHRINK | F_SEAL_SEAL);
                p[i] = map_fd(fds[i], 4096);
        }
        for (uint32_t i = 0; i < 4; i++) {
                adopt.serial = 100 + i;
                adopt.buffer = i + 1;
                adopt.fd = 3 - i;
                adopt.bytes = 4096 * (4 - i); /* as long as that one, and no other is */
                n = wire_encode(data, n, sizeof(data), RIG_MSG_BUFFER_ADOPT, &adopt);
        }
        wire_send_raw(&w, data, n, fds, 4);
        for (uint32_t i = 0; i < 4; i++) {
                struct heard h;

                wire_answer(&w, 100 + i, RIG_MSG_BUFFER_DONE, &h);
                cr_assert_eq(h.msg.buffer_done.memory, UINT64_C(4096) * (4 - i));
        }
        wire_run(&w, 1, 1, 0);
        wire_wait(&w, 1, 1);
        cr_assert(p[3][0] == 0x31 && p[2][0] == 0 && p[1][0] == 0 && p[0][0] == 0);
        for (unsigned i = 0; i < 4; i++) {
                munmap(p[i], 4096);
                close(fds[i]);
        }
        wire_close(&w);
}

/* Unknown keys are skipped, whatever is in them; the message counts. */
BOTH(requests, keys_of_a_later_version_are_skipped)
{
        /* [33, {0: 100, 40: [1, {2: h'00'}], 41: "x", 42: true}] */
        static const uint8_t sync[] = {0x82, 0x18, 0x21, 0xa4, 0x00, 0x18, 0x64, 0x18, 0x28, 0x82, 0x01,
                0xa1, 0x02, 0x41, 0x00, 0x18, 0x29, 0x61, 0x78, 0x18, 0x2a, 0xf5};
        struct heard h;
        struct wire w;

        open_usual(&w, transport);
        wire_send_raw(&w, sync, sizeof(sync), NULL, 0);
        wire_answer(&w, 100, RIG_MSG_DONE, &h);
        wire_close(&w);
}

/* Features that this rigd does not know are not agreed on. */
Test(requests, features_of_a_later_version_are_declined)
{
        static const struct {
                uint32_t asked, agreed;
        } rows[] = {{0xffffffff, 3}, {0x80000000, 0}, {2, 0}, {1, 1}, {3, 3}};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(rows); i++) {
                struct rig_msg_hello m = {
                        .serial = 1, .version = RIG_PROTOCOL_VERSION, .features = rows[i].asked};
                struct heard h;
                struct wire w;

                wire_open_fd(&w, rigd_connect(&rigd), WIRE_SOCKET);
                wire_send(&w, RIG_MSG_HELLO, &m);
                wire_answer(&w, 1, RIG_MSG_HELLO_DONE, &h);
                cr_assert_eq(h.msg.hello_done.features, rows[i].agreed);
                cr_assert_eq(h.fds.n, rows[i].agreed == 3 ? 3u : rows[i].agreed);
                heard_done(&h);
                wire_close(&w);
        }
}

/* ---------------------------------------------------------------- sync */

/* What was published before a sync is accepted when it is answered: another client's wait follows it. */
BOTH(requests, sync_is_answered_after_everything_before_it)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
        uint8_t *p = map_fd(fd, 4096);
        struct wire w, other;

        open_usual(&w, transport);
        open_usual(&other, transport);
        wire_adopt(&w, 1, 1, fd, 0, 4096);
        wire_adopt(&other, 1, 1, fd, 0, 4096);
        for (uint32_t i = 1; i <= 200; i++) {
                struct rig_msg_buffer_wait m = {
                        .buffer = 1, .access = 1, .time = 0}; /* follows what was accepted */
                struct heard h;

                wire_fill(&w, i, 1, i % 250 * UINT32_C(0x01010101));
                for (unsigned k = 0; k < 20; k++)
                        wire_run(&w, i, 1, 0);
                wire_sync(&w);
                m.serial = wire_serial(&other);
                wire_send(&other, RIG_MSG_BUFFER_WAIT, &m);
                wire_answer(&other, m.serial, RIG_MSG_DONE, &h);
                cr_assert_eq(p[0], i % 250);
                wire_drop_work(&w, i);
        }
        munmap(p, 4096);
        close(fd);
        wire_close(&w);
        wire_close(&other);
}

/* ---------------------------------------------------------------- fairness */

/* Says as much as it can until it is killed. */
static void _noreturn_ flood(enum wire_transport transport)
{
        static uint8_t data[RIG_PROTO_PACKET_BYTES / 2];
        struct rig_msg_run run = {.work = 1, .n_buffers = 1, .buffers = {1}};
        size_t n = 0;
        struct wire w;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        open_usual(&w, transport);
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        wire_fill(&w, 1, 1, 1);
        while (n + 32 < sizeof(data))
                n = wire_encode(data, n, sizeof(data), RIG_MSG_RUN, &run);
        for (;;) {
                struct rig_packet_fds none = RIG_PACKET_FDS_NULL;
                uint8_t event[4096];

                wire_raw(&w, data, n);
                while (rig_packet_recv(w.fd, event, sizeof(event), RIG_PACKET_DONTWAIT, &none) > 0)
                        rig_packet_fds_close(&none);
        }
}

BOTH(requests, a_client_that_floods_does_not_keep_others_waiting)
{
        pid_t pids[3];
        struct wire w;

        fflush(NULL);
        for (unsigned i = 0; i < 3; i++) {
                pids[i] = fork();
                cr_assert_geq(pids[i], 0);
                if (pids[i] == 0)
                        flood(transport);
        }
        open_usual(&w, transport);
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        wire_fill(&w, 1, 1, 1);
        for (unsigned i = 1; i <= 500; i++) { /* each a round trip; bounded by the test's time alone */
                wire_run(&w, 1, 1, 0);
                wire_wait(&w, 1, 1);
        }
        for (unsigned i = 0; i < 3; i++) {
                cr_assert_eq(waitpid(pids[i], NULL, WNOHANG), 0, "the flood had ended before");
                kill(pids[i], SIGKILL);
                cr_assert_eq(waitpid(pids[i], NULL, 0), pids[i]);
        }
        wire_sync(&w);
        wire_close(&w);
}
