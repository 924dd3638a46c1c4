/* SPDX-License-Identifier: ISC */
/*
 * Law L6 at every moment: a client that says everything there is to say is killed after its first message,
 * after its second, and so on, and at random instants. rigd then holds nothing of it: its descriptors and
 * mappings are as many as before, and its memory has not grown. What it had handed over is done.
 *
 * A killed client is gone when rigd comes to see it; until then the other client asks again and again, with
 * a bound.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/e2e/wire.h"

#define SHARED_BYTES 4096u
#define BIG_BYTES    (UINT64_C(4) << 20)
#define GROWTH_KIB   2048u

static struct rigd rigd;
static struct wire other;
static int shared_fd;
static uint8_t *shared;
static size_t fds_at_start, maps_at_start;

static void set_up(void)
{
        rigd_start(&rigd, "--log-level", "err", "--set", "AdapterMemoryMax=64M", NULL);
        shared_fd = sealed_memfd(SHARED_BYTES, F_SEAL_SHRINK | F_SEAL_SEAL);
        shared = map_fd(shared_fd, SHARED_BYTES);
        wire_open(&other, &rigd, WIRE_RING);
        wire_device(&other, 1, "memory:O");
        wire_adopt(&other, 1, 1, shared_fd, 0, SHARED_BYTES);
        wire_fill(&other, 1, 1, 0);
        wire_sync(&other);
        fds_at_start = rigd_count_fds(&rigd);
        maps_at_start = rigd_count_maps(&rigd);
}

static void tear_down(void)
{
        wire_close(&other);
        munmap(shared, SHARED_BYTES);
        close(shared_fd);
        rigd_stop(&rigd);
}

TestSuite(death, .init = set_up, .fini = tear_down, .timeout = 600);

/* ---------------------------------------------------------------- what it says */

enum { MEMORY = 1, ASYNC, DISK, HOST };
enum { FILL_SHARED = 1, COPY_ASYNC, COPY_DISK, FILL_HOST, FILL_ASYNC, FILL_HOST_ASYNC };

static void open_and_allocate(struct wire *w)
{
        wire_device(w, MEMORY, "memory:M");
        wire_device(w, ASYNC, "memory:A,async");
        wire_device(w, DISK, "disk");
        wire_device(w, HOST, "host");
        wire_send(w, RIG_MSG_ADAPTER_LIST,
                &(struct rig_msg_adapter_list){.serial = wire_serial(w), .index = 1});
        wire_adopt(w, 1, MEMORY, shared_fd, 0, SHARED_BYTES);
        munmap(wire_buffer(w, 2, MEMORY, SHARED_BYTES), SHARED_BYTES);
        wire_buffer(w, 3, ASYNC, BIG_BYTES);
        wire_buffer(w, 4, ASYNC, BIG_BYTES);
        wire_send(w, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 5, .of = 3, .offset = 4096, .bytes = BIG_BYTES / 2});
}

static void share(struct wire *w)
{
        struct rig_msg_buffer_borrow borrow = {
                .serial = wire_serial(w), .buffer = 6, .device = HOST, .of = 2};
        int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), fd;
        struct heard h;

        wire_adopt(w, 7, DISK, file, 0, BIG_BYTES);
        wire_send(w, RIG_MSG_BUFFER_BORROW, &borrow);
        wire_answer(w, borrow.serial, RIG_MSG_BUFFER_DONE, &h);
        fd = wire_export(w, 2);
        wire_import(w, 8, MEMORY, fd);
        wire_failed(w, wire_ask_import(w, 9, MEMORY, file), EOPNOTSUPP, "");
        wire_failed(w, wire_ask_buffer(w, 9, MEMORY, UINT64_C(1) << 40), ENOMEM, "");
        close(fd);
        close(file);
}

static void prepare(struct wire *w)
{
        wire_fill(w, FILL_SHARED, MEMORY, 0xeeeeeeee);
        wire_copy(w, COPY_ASYNC, ASYNC);
        wire_copy(w, COPY_DISK, DISK);
        wire_fill(w, FILL_HOST, HOST, 1);
        wire_fill(w, FILL_ASYNC, ASYNC, 0x01020304);
}

static unsigned sent, fill_sent_as; /* which message was the fill of the shared memory */

static void work(struct wire *w)
{
        int event = eventfd(0, EFD_CLOEXEC);
        struct rig_msg_notify_eventfd notify = {.serial = wire_serial(w), .device = ASYNC, .value = 1};

        fill_sent_as = sent + 1;
        wire_run(w, FILL_SHARED, 1, 0);
        wire_run(w, FILL_ASYNC, 3, 0);
        wire_run(w, COPY_ASYNC, 4, 3, 0);
        wire_run(w, COPY_DISK, 7, 4, 0);
        wire_run(w, FILL_HOST, 2, 0);
        wire_run(w, FILL_HOST, 6, 0);
        wire_run(w, COPY_ASYNC, 4, 3, 0);
        wire_send_fds(w, RIG_MSG_NOTIFY_EVENTFD, &notify, &event, 1);
        wire_ask_wait(w, 2, 3); /* for the host */
        wire_ask_wait(w, 7, 1);
        wire_sync(w);
        wire_send(w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = HOST, .value = 1});
        close(event);
}

static void drop(struct wire *w)
{
        wire_drop_buffer(w, 3);
        wire_drop_buffer(w, 4);
        wire_ask_buffer(w, 10, MEMORY, UINT64_C(60) << 20); /* waits until those have returned */
        wire_drop_work(w, COPY_ASYNC);
        wire_close_device(w, ASYNC);
        wire_close_device(w, HOST);
        wire_drop_buffer(w, 7);
        wire_close_device(w, DISK);
        wire_sync(w);
}

static void say_everything(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        open_and_allocate(w);
        share(w);
        prepare(w);
        work(w);
        drop(w);
}

/* ---------------------------------------------------------------- how it dies */

static unsigned die_after; /* messages; 0: not by itself */

static void count(void)
{
        if (++sent == die_after)
                kill(getpid(), SIGKILL);
}

/* Starts one that dies after so many messages. Return: its process. */
static pid_t start_victim(enum wire_transport transport, unsigned messages)
{
        static struct wire w;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sent = 0;
        die_after = messages;
        wire_sent = count;
        say_everything(&w, transport);
        _exit(0);
}

/* Until rigd holds as much as at the start. */
static void await_baseline(unsigned messages)
{
        uint64_t deadline = rig_deadline_usec(RIGD_WAIT_MS * RIG_USEC_PER_MSEC);
        size_t fds, maps;

        do {
                wire_sync(&other);
                fds = rigd_count_fds(&rigd);
                maps = rigd_count_maps(&rigd);
                cr_assert_lt(rig_now_usec(), deadline,
                        "killed after %u messages: %zu descriptors and %zu mappings; they were %zu and %zu",
                        messages, fds, maps, fds_at_start, maps_at_start);
        } while (fds != fds_at_start || maps != maps_at_start);
}

/* The shared memory as the other client may see it now, and zeros for the next one. */
static uint8_t take_shared(void)
{
        uint8_t byte;

        wire_wait(&other, 1, 1);
        byte = shared[0];
        for (unsigned i = 0; i < SHARED_BYTES; i++)
                cr_assert_eq(shared[i], byte, "half a run was done");
        wire_run(&other, 1, 1, 0);
        wire_wait(&other, 1, 1);
        return byte;
}

/* How many messages there are, and which is the fill. */
static unsigned count_messages(enum wire_transport transport, unsigned *ret_fill)
{
        struct wire w;

        sent = 0;
        die_after = 0;
        wire_sent = count;
        say_everything(&w, transport);
        wire_sent = NULL;
        wire_close(&w);
        *ret_fill = fill_sent_as;
        await_baseline(0);
        cr_assert_eq(take_shared(), 0xee);
        return sent;
}

static void die_at_each_message(enum wire_transport transport)
{
        unsigned fill, n = count_messages(transport, &fill);
        size_t kib = rigd_resident_kib(&rigd);

        for (unsigned k = 1; k <= n; k++) {
                pid_t pid = start_victim(transport, k);
                int status;

                cr_assert_eq(waitpid(pid, &status, 0), pid);
                cr_assert(WIFSIGNALED(status), "the client ended by itself before message %u of %u", k, n);
                /* It is dead, so whatever it published comes before what is asked now. */
                cr_assert_eq(take_shared(), k >= fill ? 0xee : 0,
                        "after %u messages, of which %u is the fill", k, fill);
                await_baseline(k);
        }
        if (!with_sanitizers())
                cr_assert_lt(rigd_resident_kib(&rigd), kib + GROWTH_KIB, "rigd grew");
}

Test(death, L6_killed_after_each_message_with_a_ring)
{
        for (unsigned i = 0; i < 2; i++)
                die_at_each_message(WIRE_RING);
}

Test(death, L6_killed_after_each_message_with_words)
{
        die_at_each_message(WIRE_WORDS);
}

Test(death, L6_killed_after_each_message_on_the_socket)
{
        for (unsigned i = 0; i < 2; i++)
                die_at_each_message(WIRE_SOCKET);
}

/* At any instant: the killer looks away for a random number of turns. */
static void die_at_random(enum wire_transport transport, unsigned rounds)
{
        uint32_t x = 12345;
        unsigned fill;
        size_t kib;

        count_messages(transport, &fill);
        kib = rigd_resident_kib(&rigd);
        for (unsigned i = 0; i < rounds; i++) {
                pid_t pid = start_victim(transport, 0);
                uint8_t byte;

                x = x * 1664525u + 1013904223u;
                for (unsigned turns = (x >> 16) % 400; turns; turns--)
                        sched_yield();
                kill(pid, SIGKILL);
                cr_assert_eq(waitpid(pid, NULL, 0), pid);
                byte = take_shared();
                cr_assert(byte == 0 || byte == 0xee);
                await_baseline(0);
        }
        if (!with_sanitizers())
                cr_assert_lt(rigd_resident_kib(&rigd), kib + GROWTH_KIB, "rigd grew");
}

Test(death, L6_killed_at_random_instants_with_a_ring)
{
        die_at_random(WIRE_RING, 200);
}

Test(death, L6_killed_at_random_instants_on_the_socket)
{
        die_at_random(WIRE_SOCKET, 200);
}

/* Nobody else says a word: rigd comes to see by itself that one is gone, and lets what it held return. */
static void go_unobserved(enum wire_transport transport)
{
        for (unsigned i = 0; i < 20; i++) {
                struct wire w;

                say_everything(&w, transport);
                wire_close(&w);
                rigd_await_fds(&rigd, fds_at_start);
                rigd_await_maps(&rigd, maps_at_start);
        }
}

Test(death, L6_what_it_held_returns_though_nobody_does_anything)
{
        go_unobserved(WIRE_RING);
        go_unobserved(WIRE_SOCKET);
}
