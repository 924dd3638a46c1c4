/* SPDX-License-Identifier: ISC */
/*
 * What is refused with an answer and changes nothing: descriptors that a program may honestly have got
 * wrong, works that a device cannot run, allocations there is no room for. The connection goes on, and
 * nothing is left of what was refused.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/e2e/wire.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 0x0004U
#endif

#define SEALED (F_SEAL_SHRINK | F_SEAL_SEAL)

static struct rigd rigd;

static void set_up(void)
{
        rigd_start(&rigd, NULL);
}

static void tear_down(void)
{
        rigd_stop(&rigd);
}

TestSuite(refused, .init = set_up, .fini = tear_down, .timeout = 120);

/* Device 1 is memory, 2 the disk, 3 the host; buffer 1 has 4096 bytes on 1. */
static void open_usual(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        wire_device(w, 1, "memory:M");
        wire_device(w, 2, "disk");
        wire_device(w, 3, "host");
        munmap(wire_buffer(w, 1, 1, 4096), 4096);
}

/* Adopting `fd`, which is then closed, is refused; the number is still free. */
static void adopt_fails(struct wire *w, uint32_t device, int fd, uint64_t offset, uint64_t bytes, int error,
        const char *text)
{
        size_t fds = rigd_count_fds(&rigd), maps = rigd_count_maps(&rigd);

        cr_assert_geq(fd, 0, "%m");
        wire_failed(w, wire_ask_adopt(w, 9, device, fd, offset, bytes), error, text);
        close(fd);
        wire_failed(w, wire_ask_buffer(w, 9, 2, 1), EOPNOTSUPP, "adopt a file"); /* a round trip behind it */
        wire_sync(w);
        /* What was mapped is given back on a slow thread, which may be behind the answer. */
        rigd_await_fds(&rigd, fds);
        rigd_await_maps(&rigd, maps);
}

static int some_file(int flags)
{
        int fd = open(rigd.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), again;
        char path[64];

        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, 8192), 0);
        if (flags == O_RDWR)
                return fd;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, flags | O_CLOEXEC);
        close(fd);
        return again;
}

static int reopened(int fd, int flags)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, flags | O_CLOEXEC);
        close(fd);
        return again;
}

/* ---------------------------------------------------------------- memory_M4 */

BOTH(refused, memory_M4_memfds_whose_pages_may_go)
{
        struct wire w;

        open_usual(&w, transport);
        adopt_fails(&w, 1, sealed_memfd(8192, 0), 0, 8192, EPERM, "the memfd may shrink: set F_SEAL_SHRINK");
        adopt_fails(&w, 1, sealed_memfd(8192, F_SEAL_GROW | F_SEAL_WRITE), 0, 8192, EPERM,
                "the memfd may shrink");
        adopt_fails(
                &w, 1, sealed_memfd(8192, F_SEAL_SHRINK), 0, 8192, EPERM, "the memfd's seals may change");
        adopt_fails(&w, 1, sealed_memfd(8192, F_SEAL_SEAL | F_SEAL_GROW), 0, 8192, EPERM,
                "may shrink and takes no more seals");
        adopt_fails(&w, 3, sealed_memfd(8192, 0), 0, 8192, EPERM, "the memfd may shrink: set F_SEAL_SHRINK");
        adopt_fails(&w, 1, sealed_memfd(0, SEALED), 0, 0, EINVAL, "the memfd has no bytes");
        adopt_fails(&w, 1, reopened(sealed_memfd(8192, SEALED), O_WRONLY), 0, 8192, EPERM,
                "opened to write only");
        adopt_fails(&w, 1, memfd_create("plain", MFD_CLOEXEC), 0, 0, EPERM,
                "the memfd may shrink and takes no more");
        wire_close(&w);
}

BOTH(refused, memory_M4_descriptors_that_are_no_memfd)
{
        struct wire w;
        int pair[2], pipes[2];

        open_usual(&w, transport);
        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
        adopt_fails(&w, 1, pair[0], 0, 1, EBADF, "the descriptor is no memfd");
        adopt_fails(&w, 1, pair[1], 0, 1, EBADF, "the descriptor is no memfd");
        adopt_fails(&w, 1, pipes[0], 0, 1, EBADF, "the descriptor is no memfd");
        adopt_fails(&w, 1, pipes[1], 0, 1, EBADF, "the descriptor is no memfd");
        adopt_fails(&w, 1, eventfd(0, EFD_CLOEXEC), 0, 1, EBADF, "the descriptor is no memfd");
        adopt_fails(&w, 1, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, 1, EBADF,
                "the descriptor is no memfd");
        adopt_fails(&w, 1, open("/dev/zero", O_RDWR | O_CLOEXEC), 0, 1, EBADF, "the descriptor is no memfd");
        adopt_fails(&w, 1, reopened(sealed_memfd(8192, SEALED), O_PATH), 0, 1, EBADF,
                "the descriptor is no memfd");
        wire_close(&w);
}

/* On a machine that has huge pages to give; else the descriptor alone shows it. */
Test(refused, memory_M4_memfds_of_huge_pages)
{
        int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
        struct wire w;

        if (fd < 0)
                cr_skip_test("this kernel gives no memfd of huge pages");
        cr_assert_eq(ftruncate(fd, 2 << 20), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALED), 0);
        open_usual(&w, WIRE_SOCKET);
        adopt_fails(&w, 1, fd, 0, 4096, EPERM, "the memfd is of huge pages");
        wire_close(&w);
}

BOTH(refused, bytes_past_the_end_of_a_memfd)
{
        static const struct {
                uint64_t offset, bytes;
        } rows[] = {{8192, 1}, {0, 8193}, {8193, 0}, {1, 8192}, {RIG_PROTO_BYTES_MAX, RIG_PROTO_BYTES_MAX},
                {4096, RIG_PROTO_BYTES_MAX}};
        struct wire w;

        open_usual(&w, transport);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(rows); i++)
                adopt_fails(&w, 1, sealed_memfd(8192, SEALED), rows[i].offset, rows[i].bytes, ERANGE,
                        "are not inside the descriptor's 8192");
        wire_close(&w);
}

/* ---------------------------------------------------------------- files */

BOTH(refused, descriptors_that_are_no_file)
{
        int pair[2];
        struct wire w;

        open_usual(&w, transport);
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        adopt_fails(&w, 2, pair[0], 0, 1, EBADF, "");
        adopt_fails(&w, 2, pair[1], 0, 1, EBADF, "");
        adopt_fails(&w, 2, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, 1, EBADF, "");
        adopt_fails(&w, 2, eventfd(0, EFD_CLOEXEC), 0, 1, EBADF, "");
        adopt_fails(&w, 2, open("/dev/null", O_RDWR | O_CLOEXEC), 0, 1, EBADF, "");
        adopt_fails(&w, 2, some_file(O_PATH), 0, 1, EPERM, "");
        wire_close(&w);
}

BOTH(refused, file_ranges_that_overflow)
{
        struct wire w;

        open_usual(&w, transport);
        adopt_fails(&w, 2, some_file(O_RDWR), RIG_PROTO_BYTES_MAX, RIG_PROTO_BYTES_MAX, ERANGE,
                "are not inside");
        adopt_fails(&w, 2, some_file(O_RDWR), RIG_PROTO_BYTES_MAX, 1, ERANGE, "are not inside");
        wire_close(&w);
}

/* Runs on files opened to write only or to read only do what the descriptor admits, and no more. */
BOTH(refused, files_admit_what_their_descriptor_admits)
{
        struct wire w;
        int fds[] = {some_file(O_RDONLY), some_file(O_WRONLY)};

        open_usual(&w, transport);
        munmap(wire_buffer(&w, 2, 1, 8192), 8192);
        wire_copy(&w, 1, 2);
        wire_adopt(&w, 10, 2, fds[0], 0, 8192);
        wire_adopt(&w, 11, 2, fds[1], 0, 8192);
        wire_run(&w, 1, 2, 10, 0);
        wire_run(&w, 1, 11, 2, 0);
        wire_wait(&w, 11, 2);
        wire_run(&w, 1, 10, 2, 0);
        wire_broken(&w, EACCES, "writes buffer 10, whose memory is only read");

        open_usual(&w, transport);
        munmap(wire_buffer(&w, 2, 1, 8192), 8192);
        wire_copy(&w, 1, 2);
        wire_adopt(&w, 11, 2, fds[1], 0, 8192);
        wire_run(&w, 1, 2, 11, 0);
        wire_broken(&w, EACCES, "reads buffer 11, whose memory is only written");
        close(fds[0]);
        close(fds[1]);
}

/* ---------------------------------------------------------------- devices, waits, images */

BOTH(refused, devices_that_are_no_device)
{
        static const struct {
                const char *name;
                int error;
                const char *text;
        } rows[] = {{"", ENOENT, "there is no adapter \"\""}, {"gpu", ENOENT, "there is no adapter \"gpu\""},
                {"memory:M,slow", EINVAL, "a memory device has no option \"slow\""},
                {"memoryM", ENOENT, "there is no adapter \"memoryM\""},
                {"host:1", ENOENT, "there is no adapter \"host:1\""},
                {"host,fast", EINVAL, "a host device has no options"}, {"disk,fast", EINVAL, ""},
                {",", ENOENT, "there is no adapter \",\""}, {":", ENOENT, "there is no adapter \":\""}};
        struct wire w;

        open_usual(&w, transport);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(rows); i++) {
                struct rig_msg_device_open m = {.serial = wire_serial(&w),
                        .device = 9,
                        .name = rig_text(rows[i].name, RIG_PROTO_NAME_MAX)};

                wire_send(&w, RIG_MSG_DEVICE_OPEN, &m);
                wire_failed(&w, m.serial, rows[i].error, rows[i].text);
        }
        wire_device(&w, 9, "memory:M");
        wire_close(&w);
}

BOTH(refused, eventfds_that_are_none)
{
        struct rig_msg_notify_eventfd m = {.device = 1};
        int pipes[2];
        struct wire w;

        open_usual(&w, transport);
        cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
        for (int i = 0; i < 2; i++) {
                m.serial = wire_serial(&w);
                wire_send_fds(&w, RIG_MSG_NOTIFY_EVENTFD, &m, &pipes[i], 1);
                wire_failed(&w, m.serial, EBADF, "the descriptor is no eventfd");
                close(pipes[i]);
        }
        wire_close(&w);
}

BOTH(refused, images_where_none_are_loaded)
{
        struct rig_msg_image_load m = {.image = 1, .device = 1, .bytes = 16};
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
        struct wire w;

        open_usual(&w, transport);
        m.serial = wire_serial(&w);
        wire_send_fds(&w, RIG_MSG_IMAGE_LOAD, &m, &fd, 1);
        wire_failed(&w, m.serial, EOPNOTSUPP, "memory loads no images");
        close(fd);
        wire_close(&w);
}

BOTH(refused, sharing_a_buffer_of_no_bytes)
{
        struct rig_msg_buffer_export m = {.buffer = 9};
        struct heard h;
        struct wire w;

        open_usual(&w, transport);
        wire_answer(&w, wire_ask_buffer(&w, 9, 1, 0), RIG_MSG_BUFFER_DONE, &h);
        cr_assert_not(h.msg.buffer_done.has_fd);
        m.serial = wire_serial(&w);
        wire_send(&w, RIG_MSG_BUFFER_EXPORT, &m);
        wire_failed(&w, m.serial, EINVAL, "a buffer of no bytes has no memory to share");
        wire_fill(&w, 1, 1, 5);
        wire_run(&w, 1, 9, 0); /* it can be filled, though */
        wire_wait(&w, 9, 2);
        wire_close(&w);
}

/* ---------------------------------------------------------------- works */

static void work_fails(struct wire *w, uint32_t slots, const struct rig_msg_part *parts, uint32_t n_parts,
        int error, const char *text)
{
        static struct rig_msg_work_new m;

        m = (struct rig_msg_work_new){.work = 9, .device = 1, .n_slots = slots, .n_parts = n_parts};
        for (uint32_t i = 0; i < slots; i++)
                m.slots[i].access = 3;
        memcpy(m.parts, parts, n_parts * sizeof(*parts));
        wire_failed(w, wire_ask_work(w, &m), error, text);
}

#define FILL                                                                                                \
        {                                                                                                   \
                .kind = 2, .has_dst = true                                                                  \
        }
#define COPY                                                                                                \
        {                                                                                                   \
                .kind = 1, .has_dst = true, .has_src = true                                                 \
        }

BOTH(refused, works_whose_parts_cannot_be)
{
        struct rig_msg_part after[] = {FILL, FILL}, part;
        struct wire w;

        open_usual(&w, transport);
        after[0].has_after = true;
        after[0].after = 2; /* the part behind it */
        work_fails(&w, 1, after, 2, EINVAL, "part 0 may come after earlier parts only");
        after[0].after = 1; /* itself */
        work_fails(&w, 1, after, 2, EINVAL, "part 0 may come after earlier parts only");
        after[0].after = UINT32_MAX;
        work_fails(&w, 1, after, 2, EINVAL, "part 0 may come after earlier parts only");

        part = (struct rig_msg_part)FILL;
        part.queue = 1;
        work_fails(&w, 1, &part, 1, EOPNOTSUPP, "part 0: queue 1 of memory runs no fill");
        part.queue = 7;
        work_fails(&w, 1, &part, 1, EOPNOTSUPP, "part 0: queue 7 of memory runs no fill");
        part = (struct rig_msg_part){.kind = 3};
        work_fails(&w, 1, &part, 1, EOPNOTSUPP, "part 0: queue 0 of memory runs no launch");
        part = (struct rig_msg_part){.kind = 4, .has_dst = true};
        work_fails(&w, 1, &part, 1, EOPNOTSUPP, "part 0: queue 0 of memory runs no sync");
        part = (struct rig_msg_part){.kind = 0};
        work_fails(&w, 1, &part, 1, EOPNOTSUPP, "runs no part of kind 0");
        part = (struct rig_msg_part){.kind = 2};
        work_fails(&w, 1, &part, 1, EINVAL, "part 0 has no destination");
        part = (struct rig_msg_part){.kind = 1, .has_dst = true};
        work_fails(&w, 1, &part, 1, EINVAL, "part 0 copies from nowhere");
        wire_close(&w);
}

BOTH(refused, works_whose_slots_cannot_be)
{
        static struct rig_msg_work_new m;
        struct rig_msg_part part = FILL;
        struct wire w;

        open_usual(&w, transport);
        part.dst.slot = 1;
        work_fails(&w, 1, &part, 1, EINVAL, "part 0 names slot 1 of 1");
        part.dst.slot = 63;
        work_fails(&w, 1, &part, 1, EINVAL, "part 0 names slot 63 of 1");
        part.dst.slot = 0;
        work_fails(&w, 0, &part, 1, EINVAL, "part 0 names slot 0 of 0");
        m = (struct rig_msg_work_new){.work = 9,
                .device = 1,
                .n_slots = 1,
                .slots = {{.access = 1}},
                .n_parts = 1,
                .parts = {FILL}};
        wire_failed(&w, wire_ask_work(&w, &m), EACCES, "part 0 writes slot 0, which does not declare it");
        m.slots[0].access = 0;
        wire_failed(&w, wire_ask_work(&w, &m), EINVAL, "slot 0 has no access");
        m = (struct rig_msg_work_new){.work = 9,
                .device = 1,
                .n_slots = 2,
                .slots = {{.access = 2}, {.access = 2}},
                .n_parts = 1,
                .parts = {COPY}};
        wire_failed(&w, wire_ask_work(&w, &m), EACCES, "part 0 reads slot 0, which does not declare it");
        wire_close(&w);
}

BOTH(refused, sizes_that_overflow)
{
        struct rig_msg_part part = FILL;
        struct wire w;

        open_usual(&w, transport);
        wire_failed(&w, wire_ask_buffer(&w, 9, 1, RIG_PROTO_BYTES_MAX), ENOMEM,
                "9223372036854775807 bytes are more");
        part.has_bytes = true;
        part.bytes = 6;
        work_fails(&w, 1, &part, 1, EINVAL, "6 bytes at 0 are not whole ones");
        part.bytes = 8;
        part.dst.offset = 2;
        work_fails(&w, 1, &part, 1, EINVAL, "8 bytes at 2 are not whole ones");
        wire_close(&w);
}

/* Offset and bytes that only together pass what there is. */
BOTH(refused, copies_that_end_past_every_buffer)
{
        struct rig_msg_work_new m = {.work = 9,
                .device = 1,
                .n_slots = 2,
                .slots = {{.access = 2}, {.access = 1}},
                .n_parts = 1,
                .parts = {{.kind = 1,
                        .has_dst = true,
                        .dst = {0, RIG_PROTO_BYTES_MAX},
                        .has_src = true,
                        .src = {1, 1},
                        .has_bytes = true,
                        .bytes = RIG_PROTO_BYTES_MAX}}};
        struct heard h;
        struct wire w;

        open_usual(&w, transport);
        wire_answer(&w, wire_ask_work(&w, &m), RIG_MSG_DONE, &h);
        wire_run(&w, 9, 1, 1, 0);
        wire_broken(&w, ERANGE, "slot 0 of work 9 needs 18446744073709551614 bytes, and buffer 1 has 4096");
}

BOTH(refused, bound_buffers_that_do_not_fit)
{
        static struct rig_msg_work_new m;
        struct wire w;

        open_usual(&w, transport);
        m = (struct rig_msg_work_new){.work = 9,
                .device = 1,
                .n_slots = 1,
                .n_parts = 1,
                .slots = {{.access = 2, .has_buffer = true, .buffer = 1}},
                .parts = {{.kind = 2, .has_dst = true, .has_bytes = true, .bytes = 8192}}};
        wire_failed(&w, wire_ask_work(&w, &m), ERANGE,
                "slot 0 of work 9 needs 8192 bytes, and buffer 1 has 4096");
        m.slots[0].buffer = 5;
        wire_ask_work(&w, &m);
        wire_broken(&w, ENOENT, "slot 0 is bound to buffer 5, which there is not");
}
