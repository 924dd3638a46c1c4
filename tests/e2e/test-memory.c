/* SPDX-License-Identifier: ISC */
/*
 * Memory between clients: nobody sees another one's bytes, a memory is known by what its descriptor is, it
 * lives as long as somebody holds it, and a descriptor gives no more than it gave.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

#define BYTES 65536u

static struct rigd rigd;

static void set_up(void)
{
        rigd_start(&rigd, NULL);
}

static void tear_down(void)
{
        rigd_stop(&rigd);
}

TestSuite(memory, .init = set_up, .fini = tear_down, .timeout = 120);

static void open_usual(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        wire_device(w, 1, "memory:M");
        wire_fill(w, 1, 1, 0x5c5c5c5c);
        wire_copy(w, 2, 1);
}

static int reopen(int fd, int flags)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, flags | O_CLOEXEC);
        cr_assert_geq(again, 0, "%m");
        return again;
}

static int mode_of(int fd)
{
        return fcntl(fd, F_GETFL) & O_ACCMODE;
}

static void all_are(const uint8_t *p, uint8_t byte)
{
        for (size_t i = 0; i < BYTES; i++)
                cr_assert_eq(p[i], byte, "byte %zu is %#x, not %#x", i, p[i], byte);
}

/* ---------------------------------------------------------------- M2 */

BOTH(memory, M2_fresh_memory_reads_as_zero)
{
        struct wire w[3];
        uint8_t *p;

        for (unsigned round = 0; round < 20; round++) {
                for (unsigned i = 0; i < 3; i++) {
                        open_usual(&w[i], transport);
                        p = wire_buffer(&w[i], 1, 1, BYTES);
                        all_are(p, 0);
                        wire_run(&w[i], 1, 1, 0);
                        wire_wait(&w[i], 1, 1);
                        all_are(p, 0x5c);
                        munmap(p, BYTES);
                        wire_drop_buffer(&w[i], 1);
                        wire_sync(&w[i]);
                }
                for (unsigned i = 0; i < 3; i++)
                        wire_close(&w[i]);
        }
}

/* Its own earlier bytes, or zeros: what a client gets again is nobody else's. */
BOTH(memory, M2_memory_that_returns_is_its_clients_own_or_zero)
{
        struct wire w, other;
        uint8_t *p;

        open_usual(&w, transport);
        open_usual(&other, transport);
        for (unsigned i = 0; i < 50; i++) {
                p = wire_buffer(&w, 1, 1, BYTES);
                cr_assert(p[0] == 0 || p[0] == 0x11);
                memset(p, 0x11, BYTES);
                munmap(p, BYTES);
                wire_drop_buffer(&w, 1);
                p = wire_buffer(&other, 1, 1, BYTES);
                cr_assert(p[0] == 0 || p[0] == 0x22);
                memset(p, 0x22, BYTES);
                munmap(p, BYTES);
                wire_drop_buffer(&other, 1);
        }
        wire_close(&w);
        wire_close(&other);
}

/* Memory that was exported may be somebody else's too: it is not reused, even for the client that made it.
 */
BOTH(memory, M2_memory_that_was_shared_is_not_reused)
{
        struct wire w;
        uint8_t *p, *q;
        int fd;

        open_usual(&w, transport);
        p = wire_buffer(&w, 1, 1, BYTES);
        fd = wire_export(&w, 1);
        q = map_fd(fd, BYTES);
        wire_drop_buffer(&w, 1);
        wire_sync(&w);
        munmap(p, BYTES);
        for (uint32_t i = 2; i < 10; i++) {
                p = wire_buffer(&w, i, 1, BYTES);
                memset(q, 0x99, BYTES);
                all_are(p, 0);
                munmap(p, BYTES);
        }
        munmap(q, BYTES);
        close(fd);
        wire_close(&w);
}

/* ---------------------------------------------------------------- identity */

BOTH(memory, a_memory_is_known_by_what_its_descriptor_is)
{
        struct wire a, b;
        uint8_t *p;
        int fds[4];

        open_usual(&a, transport);
        open_usual(&b, transport);
        p = wire_buffer(&a, 1, 1, BYTES);
        fds[0] = wire_export(&a, 1);
        fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        fds[2] = reopen(fds[0], O_RDWR);
        fds[3] = wire_export(&a, 1);
        for (uint32_t i = 0; i < 4; i++) {
                wire_import(&b, i + 1, 1, fds[i]);
                memset(p, 0, BYTES);
                wire_run(&b, 1, i + 1, 0);
                wire_wait(&a, 1, 1); /* orders what b does: it is one memory */
                all_are(p, 0x5c);
                close(fds[i]);
        }
        munmap(p, BYTES);
        wire_close(&a);
        wire_close(&b);
}

/* A buffer of one is exported: what comes back is the whole memory, and where the buffer starts in it. */
BOTH(memory, a_view_exports_the_memory_it_is_of)
{
        struct rig_msg_buffer_export m = {.buffer = 2};
        struct heard h;
        struct wire w;

        open_usual(&w, transport);
        munmap(wire_buffer(&w, 1, 1, BYTES), BYTES);
        wire_send(&w, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 2, .of = 1, .offset = 100, .bytes = 50});
        m.serial = wire_serial(&w);
        wire_send(&w, RIG_MSG_BUFFER_EXPORT, &m);
        wire_answer(&w, m.serial, RIG_MSG_BUFFER_DONE, &h);
        cr_assert_eq(h.msg.buffer_done.bytes, 50u);
        cr_assert_eq(h.msg.buffer_done.offset, 100u);
        cr_assert_eq(h.msg.buffer_done.memory, BYTES);
        wire_import(&w, 3, 1, h.fds.fd[h.msg.buffer_done.fd]);
        wire_run(&w, 1, 3, 0);
        wire_wait(&w, 2, 1);
        heard_done(&h);
        wire_close(&w);
}

BOTH(memory, descriptors_that_nobody_exported)
{
        int fds[] = {sealed_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_SEAL), open("/dev/null", O_RDWR | O_CLOEXEC),
                eventfd(0, EFD_CLOEXEC)};
        struct wire w;

        open_usual(&w, transport);
        munmap(wire_buffer(&w, 1, 1, BYTES), BYTES);
        close(wire_export(&w, 1));
        for (size_t i = 0; i < RIG_ARRAY_SIZE(fds); i++) {
                wire_failed(&w, wire_ask_import(&w, 2, 1, fds[i]), ESTALE,
                        "no buffer here has the memory of this descriptor");
                close(fds[i]);
        }
        wire_close(&w);
}

/* Once the last buffer over it is gone, a descriptor is that of no memory, though it still has bytes. */
BOTH(memory, a_descriptor_that_outlived_its_memory)
{
        struct wire w;
        int fd;

        open_usual(&w, transport);
        munmap(wire_buffer(&w, 1, 1, BYTES), BYTES);
        fd = wire_export(&w, 1);
        wire_drop_buffer(&w, 1);
        wire_failed(&w, wire_ask_import(&w, 2, 1, fd), ESTALE, "export it first, and keep a buffer of it");
        close(fd);
        wire_close(&w);
}

BOTH(memory, a_memory_outlives_the_client_that_made_it)
{
        struct wire a, b, c;
        size_t maps;
        uint8_t *p;
        int fd;

        open_usual(&b, transport);
        maps = rigd_count_maps(&rigd);
        open_usual(&a, transport);
        munmap(wire_buffer(&a, 1, 1, BYTES), BYTES);
        fd = wire_export(&a, 1);
        wire_import(&b, 1, 1, fd);
        wire_run(&a, 1, 1, 0);
        wire_close(&a);
        rigd_await_maps(&rigd, maps + 1);
        p = map_fd(fd, BYTES);
        wire_wait(&b, 1, 1);
        all_are(p, 0x5c);
        open_usual(&c, transport);
        wire_import(&c, 1, 1, fd);
        wire_wait(&c, 1, 2);
        wire_close(&c);
        munmap(p, BYTES);
        close(fd);
        wire_drop_buffer(&b, 1);
        wire_sync(&b);
        rigd_await_maps(&rigd, maps);
        wire_close(&b);
}

/* Each that holds it is charged for it; the one that is left pays. */
BOTH(memory, whoever_holds_a_memory_is_charged)
{
        struct wire a, b;
        int fd;

        rigd_stop(&rigd);
        rigd_start(&rigd, "--set", "ClientMemoryMax=128K", "--set", "ClientCacheMax=0", NULL);
        open_usual(&a, transport);
        open_usual(&b, transport);
        munmap(wire_buffer(&a, 1, 1, 2 * BYTES), 2 * BYTES);
        munmap(wire_buffer(&b, 1, 1, BYTES), BYTES);
        fd = wire_export(&a, 1);
        wire_failed(&b, wire_ask_import(&b, 2, 1, fd), EDQUOT, "ClientMemoryMax");
        wire_failed(&b, wire_ask_adopt(&b, 2, 1, fd, 0, BYTES), EDQUOT, "ClientMemoryMax");
        wire_drop_buffer(&b, 1);
        wire_sync(&b);
        wire_import(&b, 2, 1, fd);
        wire_import(&b, 3, 1, fd); /* once is enough */
        wire_failed(&b, wire_ask_buffer(&b, 4, 1, BYTES), EDQUOT, "ClientMemoryMax");
        wire_drop_buffer(&a, 1);
        munmap(wire_buffer(&a, 2, 1, 2 * BYTES), 2 * BYTES); /* a holds it no more */
        close(fd);
        wire_close(&a);
        wire_close(&b);
}

/* ---------------------------------------------------------------- what a descriptor gives */

BOTH(memory, a_read_only_descriptor_admits_reads_alone)
{
        struct wire a, b;
        int fd, read_only, again;

        open_usual(&a, transport);
        open_usual(&b, transport);
        munmap(wire_buffer(&a, 1, 1, BYTES), BYTES);
        fd = wire_export(&a, 1);
        read_only = reopen(fd, O_RDONLY);
        munmap(wire_buffer(&b, 1, 1, BYTES), BYTES);
        wire_import(&b, 2, 1, read_only);
        wire_run(&b, 2, 1, 2, 0);
        wire_wait(&b, 1, 1);
        again = wire_export(&b, 2);
        cr_assert_eq(mode_of(again), O_RDONLY, "an export gives more than the import had");
        cr_assert_eq(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
        wire_import(&b, 3, 1, again);
        wire_run(&b, 2, 1, 3, 0);
        wire_wait(&b, 1, 1);
        wire_run(&b, 1, 3, 0);
        wire_broken(&b, EACCES, "whose memory is only read");
        close(again);
        close(read_only);
        close(fd);
        wire_close(&a);
}

/* A descriptor that was opened for neither gives nothing, and one to write only gives no more. */
BOTH(memory, descriptors_that_give_less)
{
        struct wire a, b;
        int fd, path, write_only, again;

        open_usual(&a, transport);
        open_usual(&b, transport);
        munmap(wire_buffer(&a, 1, 1, BYTES), BYTES);
        fd = wire_export(&a, 1);
        path = reopen(fd, O_PATH);
        write_only = reopen(fd, O_WRONLY);
        wire_failed(&b, wire_ask_import(&b, 1, 1, path), EPERM, "opened for neither");
        wire_import(&b, 2, 1, write_only);
        again = wire_export(&b, 2);
        cr_assert_eq(mode_of(again), O_WRONLY, "an export gives more than the import had");
        wire_run(&b, 1, 2, 0);
        wire_wait(&b, 2, 1);
        munmap(wire_buffer(&b, 3, 1, BYTES), BYTES);
        wire_run(&b, 2, 3, 2, 0);
        wire_broken(&b, EACCES, "whose memory is only written");
        close(path);
        close(write_only);
        close(again);
        close(fd);
        wire_close(&a);
}

/* An adopted memfd: each client reaches it as its own descriptor allows, and its work is ordered with the
 * others'. */
BOTH(memory, a_memfd_is_adopted_by_two_with_different_rights)
{
        int fd = sealed_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_SEAL), read_only = reopen(fd, O_RDONLY);
        uint8_t *p = map_fd(fd, BYTES), *q;
        struct wire a, b;

        open_usual(&a, transport);
        open_usual(&b, transport);
        wire_adopt(&a, 1, 1, read_only, 0, BYTES);
        wire_adopt(&b, 1, 1, fd, 0, BYTES);
        q = wire_buffer(&a, 2, 1, BYTES);
        wire_run(&b, 1, 1, 0);
        wire_run(&a, 2, 2, 1, 0);
        wire_wait(&a, 2, 1);
        all_are(p, 0x5c);
        all_are(q, 0x5c);
        wire_run(&a, 1, 1, 0);
        wire_broken(&a, EACCES, "whose memory is only read");
        wire_run(&b, 1, 1, 0);
        wire_wait(&b, 1, 1);
        munmap(p, BYTES);
        munmap(q, BYTES);
        close(fd);
        close(read_only);
        wire_close(&b);
}

/* ---------------------------------------------------------------- M1 */

/* A buffer and its work are dropped while they are used: the bytes arrive, and the memory returns. */
BOTH(memory, M1_memory_returns_after_its_last_use)
{
        int fd = sealed_memfd(4 << 20, F_SEAL_SHRINK | F_SEAL_SEAL);
        uint8_t *p = map_fd(fd, 4 << 20);
        struct wire w;
        size_t maps;

        open_usual(&w, transport);
        wire_device(&w, 2, "memory:A,async");
        wire_adopt(&w, 1, 1, fd, 0, 4 << 20);
        maps = rigd_count_maps(&rigd);
        for (unsigned i = 1; i <= 20; i++) {
                wire_fill(&w, 5, 2, i * 0x01010101);
                wire_copy(&w, 6, 2);
                munmap(wire_buffer(&w, 2, 2, 4 << 20), 4 << 20);
                wire_run(&w, 5, 2, 0);
                wire_run(&w, 6, 1, 2, 0);
                wire_drop_buffer(&w, 2);
                wire_drop_work(&w, 5);
                wire_drop_work(&w, 6);
                wire_wait(&w, 1, 1);
                cr_assert_eq(p[0], i);
                cr_assert_eq(p[(4 << 20) - 1], i);
        }
        wire_sync(&w);
        cr_assert_leq(rigd_count_maps(&rigd), maps + 2, "memory piles up");
        munmap(p, 4 << 20);
        close(fd);
        wire_close(&w);
}

/* ---------------------------------------------------------------- eventfds */

/* Full, and without EFD_NONBLOCK: a write would block rigd for ever. */
BOTH(memory, an_eventfd_that_would_block_is_signalled)
{
        uint64_t full = UINT64_MAX - 1;
        int fd = eventfd(0, EFD_CLOEXEC);
        struct wire w, other;

        cr_assert_eq(write(fd, &full, sizeof(full)), (ssize_t)sizeof(full));
        open_usual(&w, transport);
        open_usual(&other, transport);
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        for (unsigned i = 1; i <= 10; i++) {
                struct rig_msg_notify_eventfd m = {.serial = wire_serial(&w), .device = 1, .value = i};

                wire_run(&w, 1, 1, 0);
                wire_send_fds(&w, RIG_MSG_NOTIFY_EVENTFD, &m, &fd, 1);
                wire_value(&w, 1, i);
                wire_sync(&other);
        }
        close(fd);
        wire_close(&w);
        wire_close(&other);
}

BOTH(memory, an_eventfd_is_signalled_once_the_value_is_reached)
{
        int fds[2] = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
        struct rig_msg_notify_eventfd m = {.device = 2, .value = 1};
        uint64_t n;
        struct wire w;

        open_usual(&w, transport);
        wire_device(&w, 2, "host");
        wire_fill(&w, 5, 2, 1);
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        wire_run(&w, 5, 1, 0);
        for (unsigned i = 0; i < 2; i++) {
                m.serial = wire_serial(&w);
                wire_send_fds(&w, RIG_MSG_NOTIFY_EVENTFD, &m, &fds[i], 1);
        }
        wire_sync(&w);
        cr_assert_eq(poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, 0), 0, "it is early");
        wire_send(&w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 2, .value = 1});
        for (unsigned i = 0; i < 2; i++) {
                cr_assert(wait_for(fds[i], POLLIN));
                cr_assert_eq(read(fds[i], &n, sizeof(n)), (ssize_t)sizeof(n));
                cr_assert_eq(n, 1u);
                close(fds[i]);
        }
        wire_close(&w);
}

/* A lost device signals too: nobody waits for ever. */
BOTH(memory, an_eventfd_is_signalled_when_the_device_is_lost)
{
        int fd = eventfd(0, EFD_CLOEXEC);
        struct rig_msg_notify_eventfd m = {.device = 2, .value = 1};
        struct wire w;

        open_usual(&w, transport);
        wire_device(&w, 2, "host");
        wire_fill(&w, 5, 2, 1);
        munmap(wire_buffer(&w, 1, 1, 64), 64);
        wire_run(&w, 5, 1, 0);
        m.serial = wire_serial(&w);
        wire_send_fds(&w, RIG_MSG_NOTIFY_EVENTFD, &m, &fd, 1);
        wire_sync(&w);
        wire_close_device(&w, 2);
        cr_assert(wait_for(fd, POLLIN));
        close(fd);
        wire_close(&w);
}
