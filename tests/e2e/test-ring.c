/* SPDX-License-Identifier: ISC */
/*
 * A ring whose other side lies: indices that cannot be, messages that do not end, bytes that change while
 * rigd reads them. rigd ends that connection, says what was wrong, and serves the others.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/e2e/wire.h"

static struct rigd rigd;
static struct wire other;
static uint8_t *others_bytes;

static void set_up(void)
{
        rigd_start(&rigd, "--log-level", "err", NULL);
        wire_open(&other, &rigd, WIRE_RING);
        wire_device(&other, 1, "memory:O");
        others_bytes = wire_buffer(&other, 1, 1, 4096);
        wire_fill(&other, 1, 1, 0x51515151);
}

static void tear_down(void)
{
        wire_run(&other, 1, 1, 0);
        wire_wait(&other, 1, 1);
        for (size_t i = 0; i < 4096; i++)
                cr_assert_eq(others_bytes[i], 0x51);
        munmap(others_bytes, 4096);
        wire_close(&other);
        rigd_stop(&rigd);
}

TestSuite(ring, .init = set_up, .fini = tear_down, .timeout = 300);

static void open_usual(struct wire *w)
{
        wire_open(w, &rigd, WIRE_RING);
        wire_device(w, 1, "memory:M");
        munmap(wire_buffer(w, 1, 1, 4096), 4096);
        wire_fill(w, 1, 1, 0x01020304);
        wire_run(w, 1, 1, 0);
        wire_sync(w);
}

Test(ring, a_tail_behind_the_head)
{
        struct wire w;

        open_usual(&w);
        cr_assert_gt(w.tail, 0u);
        wire_ring_publish(&w, w.tail - 1);
        wire_broken(&w, EBADMSG, "the ring's tail is");

        open_usual(&w);
        wire_ring_publish(&w, 0);
        wire_broken(&w, EBADMSG, "the ring's tail is 0 and its head");
}

Test(ring, a_tail_beyond_the_ring)
{
        static const uint64_t too_far[] = {
                RIG_RING_BYTES + 1, UINT64_C(1) << 32, UINT64_MAX / 2, UINT64_MAX - 65536};
        struct wire w;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(too_far); i++) {
                open_usual(&w);
                wire_ring_publish(&w, w.tail + too_far[i]);
                wire_broken(&w, EBADMSG, "the ring's tail is");
        }
}

/* A whole ring of zeros is published: the first byte is no message. */
Test(ring, a_tail_over_bytes_that_were_never_written)
{
        struct wire w;

        open_usual(&w);
        wire_ring_publish(&w, w.tail + RIG_RING_BYTES);
        wire_broken(&w, EBADMSG, "");
}

Test(ring, a_ring_that_ends_inside_a_message)
{
        struct rig_msg_run run = {.work = 1, .n_buffers = 1, .buffers = {1}, .has_time = true, .time = 1};
        uint8_t data[64];
        size_t n = wire_encode(data, 0, sizeof(data), RIG_MSG_RUN, &run);

        for (size_t i = 1; i < n; i++) {
                struct wire w;

                open_usual(&w);
                wire_ring_raw(&w, data, i);
                wire_broken(&w, EBADMSG, "the ring ends inside a message");
        }
}

/* Messages of all lengths around the end of the ring, and around the ends of what rigd takes at once. */
Test(ring, messages_wherever_they_lie_in_the_ring)
{
        struct wire w;

        open_usual(&w);
        for (unsigned i = 0; i < 30000; i++)
                wire_run_at(&w, i % 7 ? i : RIG_PROTO_NSEC_MAX - i, 1, &(uint32_t){1}, 1);
        wire_value(&w, 1, 30001);
        cr_assert_eq(atomic_load(&w.words->word[0].signaled), UINT64_C(30001));
        wire_close(&w);
}

/* An unknown key makes a message as long as one wants. */
static size_t long_drop(uint8_t *data, size_t extra)
{
        /* [3, {1: 1, 40: bytes}] */
        static const uint8_t head[] = {0x82, 0x03, 0xa2, 0x01, 0x01, 0x18, 0x28, 0x59};

        memcpy(data, head, sizeof(head));
        data[sizeof(head)] = (uint8_t)(extra >> 8);
        data[sizeof(head) + 1] = (uint8_t)extra;
        memset(data + sizeof(head) + 2, 0x5a, extra);
        return sizeof(head) + 2 + extra;
}

Test(ring, a_message_longer_than_rigd_takes_at_once)
{
        static uint8_t data[RIG_RING_BYTES];
        struct wire w;

        open_usual(&w);
        wire_ring_raw(&w, data, long_drop(data, 4000));
        wire_sync(&w); /* that is well: buffer 1 is gone */
        wire_ring_raw(&w, data, long_drop(data, 40000));
        wire_broken(&w, EBADMSG, "a message in the ring has more than");
}

Test(ring, a_request_that_follows_what_was_not_published)
{
        struct wire w;

        open_usual(&w);
        wire_send(&w, RIG_MSG_SYNC,
                &(struct rig_msg_sync){.serial = 1, .has_follows = true, .follows = w.tail + 1});
        wire_broken(&w, EPROTO, "sync follows byte");

        open_usual(&w);
        wire_send(&w, RIG_MSG_SYNC,
                &(struct rig_msg_sync){.serial = 1, .has_follows = true, .follows = RIG_PROTO_BYTES_MAX});
        wire_broken(&w, EPROTO, "of a ring published up to");
}

/* What a client writes to the page that says who sleeps is its own affair. */
Test(ring, sleepers_that_are_no_number_of_threads)
{
        struct wire w;

        open_usual(&w);
        atomic_store(&w.ring->sleepers, UINT32_MAX);
        memset(w.ring->reserved0, 0xff, sizeof(w.ring->reserved0));
        memset(w.ring->reserved1, 0xff, sizeof(w.ring->reserved1));
        for (unsigned i = 0; i < 100; i++)
                wire_run(&w, 1, 1, 0);
        wire_sync(&w);
        wire_close(&w);
}

Test(ring, the_words_cannot_be_written)
{
        struct heard h;
        struct wire w;
        int fd;

        wire_open_fd(&w, rigd_connect(&rigd), WIRE_RING);
        wire_send(&w, RIG_MSG_HELLO,
                &(struct rig_msg_hello){.serial = 1, .version = RIG_PROTOCOL_VERSION, .features = 3});
        wire_answer(&w, 1, RIG_MSG_HELLO_DONE, &h);
        fd = h.fds.fd[h.msg.hello_done.words];
        cr_assert_eq(mmap(NULL, RIG_WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        cr_assert_lt(write(fd, "x", 1), 0);
        cr_assert_neq(ftruncate(fd, 0), 0);
        cr_assert_neq(ftruncate(h.fds.fd[h.msg.hello_done.ring], 0), 0, "the ring can be cut short");
        heard_done(&h);
        wire_close(&w);
}

/* ---------------------------------------------------------------- bytes that change */

/* Writes to the ring's pages as fast as it can, until it is killed; the ring's tail too where `lies`. */
static void _noreturn_ flip(struct wire *w, unsigned seed, bool lies)
{
        uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                w->bytes[x % RIG_RING_BYTES] ^= (uint8_t)(x >> 32);
                if (lies && x % 64 == 0)
                        atomic_store(&w->ring->tail, w->tail + (x >> 40) % (2 * RIG_RING_BYTES));
        }
}

/* Publishes runs until rigd has had enough. */
static void publish_until_broken(struct wire *w)
{
        struct rig_msg_run run = {.work = 1, .n_buffers = 1, .buffers = {1}};
        uint8_t data[64];
        size_t n = wire_encode(data, 0, sizeof(data), RIG_MSG_RUN, &run);
        struct pollfd p = {.fd = w->fd, .events = POLLIN};

        for (unsigned i = 0; i < 20000 && poll(&p, 1, 0) == 0; i++) {
                if (rig_ring_room(atomic_load(&w->words->head), w->tail) < n)
                        continue;
                memcpy(rig_ring_at(w->bytes, w->tail), data, n);
                wire_ring_publish(w, w->tail + n);
        }
}

static void bytes_change(bool lies)
{
        for (unsigned seed = 0; seed < 40; seed++) {
                struct wire w;
                pid_t pid;

                open_usual(&w);
                pid = fork();
                cr_assert_geq(pid, 0);
                if (pid == 0)
                        flip(&w, seed, lies);
                publish_until_broken(&w);
                cr_assert_eq(kill(pid, SIGKILL), 0);
                cr_assert_eq(waitpid(pid, NULL, 0), pid);
                wire_close(&w);
                wire_sync(&other);
        }
}

Test(ring, bytes_that_change_while_they_are_read)
{
        bytes_change(false);
}

Test(ring, indices_that_change_while_they_are_read)
{
        bytes_change(true);
}
