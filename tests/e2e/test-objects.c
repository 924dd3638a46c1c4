/* SPDX-License-Identifier: ISC */
/*
 * What ends a connection because it names what it may not: objects that are not the client's, or are there
 * twice, numbers out of range, runs that do not fit their work. Each is sent where runs go, so on the ring
 * and on the socket.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

#define MAX_BYTES RIG_PROTO_BYTES_MAX

static struct rigd rigd;
static struct wire other; /* goes on, and has objects that are not the broken one's */

static void set_up(void)
{
        rigd_start(&rigd, NULL);
        wire_open(&other, &rigd, WIRE_SOCKET);
        wire_device(&other, 7, "memory:O");
        munmap(wire_buffer(&other, 70, 7, 4096), 4096);
        wire_fill(&other, 71, 7, 1);
}

static void tear_down(void)
{
        wire_run(&other, 71, 70, 0);
        wire_wait(&other, 70, 1);
        wire_close(&other);
        rigd_stop(&rigd);
}

TestSuite(objects, .init = set_up, .fini = tear_down, .timeout = 120);

/* A client with devices 1 (memory), 2 (host) and 3 (disk), buffers 1 and 2 of 4096 bytes, 3 of 64, works 1
 * and 2. */
static void open_usual(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        wire_device(w, 1, "memory:M");
        wire_device(w, 2, "host");
        wire_device(w, 3, "disk");
        munmap(wire_buffer(w, 1, 1, 4096), 4096);
        munmap(wire_buffer(w, 2, 1, 4096), 4096);
        munmap(wire_buffer(w, 3, 1, 64), 4096);
        wire_fill(w, 1, 1, 0x01020304);
        wire_copy(w, 2, 1);
}

static void breaks(
        enum wire_transport transport, enum rig_msg_type type, const void *msg, int error, const char *text)
{
        struct wire w;

        open_usual(&w, transport);
        wire_send(&w, type, msg);
        wire_broken(&w, error, text);
}

/* ---------------------------------------------------------------- names */

BOTH(objects, devices_that_are_not_there)
{
        static const uint32_t ids[] = {0, 4, 7, RIG_PROTO_DEVICE_ID_MAX};
        char text[64];

        for (size_t i = 0; i < RIG_ARRAY_SIZE(ids); i++) {
                uint32_t d = ids[i];

                snprintf(text, sizeof(text), "there is no device %u", d);
                breaks(transport, RIG_MSG_BUFFER_NEW,
                        &(struct rig_msg_buffer_new){.serial = 1, .buffer = 9, .device = d, .bytes = 1},
                        ENOENT, text);
                breaks(transport, RIG_MSG_NOTIFY, &(struct rig_msg_notify){.serial = 1, .device = d}, ENOENT,
                        text);
                breaks(transport, RIG_MSG_DEVICE_CLOSE, &(struct rig_msg_device_close){.device = d}, ENOENT,
                        text);
                breaks(transport, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = d, .value = 1},
                        ENOENT, text);
                breaks(transport, RIG_MSG_WORK_NEW,
                        &(struct rig_msg_work_new){.serial = 1, .work = 9, .device = d}, ENOENT, text);
                breaks(transport, RIG_MSG_BUFFER_BORROW,
                        &(struct rig_msg_buffer_borrow){.serial = 1, .buffer = 9, .device = d, .of = 1},
                        ENOENT, text);
        }
}

BOTH(objects, buffers_that_are_not_there)
{
        static const uint32_t ids[] = {0, 4, 70, RIG_PROTO_BUFFER_ID_MAX};
        char text[64], run[64];

        for (size_t i = 0; i < RIG_ARRAY_SIZE(ids); i++) {
                uint32_t b = ids[i];

                snprintf(text, sizeof(text), "there is no buffer %u", b);
                snprintf(run, sizeof(run), "names buffer %u, which there is not", b);
                breaks(transport, RIG_MSG_BUFFER_DROP, &(struct rig_msg_buffer_drop){.buffer = b}, ENOENT,
                        text);
                breaks(transport, RIG_MSG_BUFFER_VIEW, &(struct rig_msg_buffer_view){.buffer = 9, .of = b},
                        ENOENT, text);
                breaks(transport, RIG_MSG_BUFFER_EXPORT,
                        &(struct rig_msg_buffer_export){.serial = 1, .buffer = b}, ENOENT, text);
                breaks(transport, RIG_MSG_BUFFER_WAIT,
                        &(struct rig_msg_buffer_wait){.serial = 1, .buffer = b, .access = 1}, ENOENT, text);
                breaks(transport, RIG_MSG_RUN,
                        &(struct rig_msg_run){.work = 1, .n_buffers = 1, .buffers = {b}}, ENOENT, run);
                breaks(transport, RIG_MSG_BUFFER_BORROW,
                        &(struct rig_msg_buffer_borrow){.serial = 1, .buffer = 9, .device = 2, .of = b},
                        ENOENT, text);
        }
}

BOTH(objects, works_and_images_that_are_not_there)
{
        static const uint32_t ids[] = {0, 4, 71, RIG_PROTO_WORK_ID_MAX};
        char work[64], run[64], image[64];

        for (size_t i = 0; i < RIG_ARRAY_SIZE(ids); i++) {
                uint32_t n = ids[i];

                snprintf(work, sizeof(work), "there is no work %u", n);
                snprintf(run, sizeof(run), "there is no work %u to run", n);
                snprintf(image, sizeof(image), "there is no image %u", n);
                breaks(transport, RIG_MSG_WORK_DROP, &(struct rig_msg_work_drop){.work = n}, ENOENT, work);
                breaks(transport, RIG_MSG_RUN, &(struct rig_msg_run){.work = n}, ENOENT, run);
                breaks(transport, RIG_MSG_IMAGE_DROP, &(struct rig_msg_image_drop){.image = n}, ENOENT,
                        image);
                breaks(transport, RIG_MSG_IMAGE_ENTRY,
                        &(struct rig_msg_image_entry){.serial = 1, .image = n, .name = rig_text("f", 63)},
                        ENOENT, image);
        }
}

BOTH(objects, objects_that_are_there_already)
{
        breaks(transport, RIG_MSG_DEVICE_OPEN,
                &(struct rig_msg_device_open){.serial = 1, .device = 1, .name = rig_text("host", 63)},
                EEXIST, "there is a device 1 already");
        breaks(transport, RIG_MSG_BUFFER_NEW,
                &(struct rig_msg_buffer_new){.serial = 1, .buffer = 2, .device = 1, .bytes = 1}, EEXIST,
                "there is a buffer 2 already");
        breaks(transport, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 1, .of = 2, .bytes = 1}, EEXIST,
                "there is a buffer 1 already");
        breaks(transport, RIG_MSG_BUFFER_BORROW,
                &(struct rig_msg_buffer_borrow){.serial = 1, .buffer = 1, .device = 2, .of = 2}, EEXIST,
                "there is a buffer 1 already");
        breaks(transport, RIG_MSG_WORK_NEW, &(struct rig_msg_work_new){.serial = 1, .work = 2, .device = 1},
                EEXIST, "there is a work 2 already");
}

BOTH(objects, numbers_start_at_one)
{
        breaks(transport, RIG_MSG_DEVICE_OPEN,
                &(struct rig_msg_device_open){.serial = 1, .device = 0, .name = rig_text("host", 63)},
                EINVAL, "device numbers start at 1");
        breaks(transport, RIG_MSG_BUFFER_NEW,
                &(struct rig_msg_buffer_new){.serial = 1, .device = 1, .bytes = 1}, EINVAL,
                "buffer numbers start at 1");
        breaks(transport, RIG_MSG_BUFFER_VIEW, &(struct rig_msg_buffer_view){.of = 2, .bytes = 1}, EINVAL,
                "buffer numbers start at 1");
        breaks(transport, RIG_MSG_WORK_NEW, &(struct rig_msg_work_new){.serial = 1, .device = 1}, EINVAL,
                "work numbers start at 1");
}

/* Both requests come in one packet, so the second before the first can have been answered. */
static void both_at_once(enum wire_transport transport, enum rig_msg_type type, const void *first,
        const void *second, const int *fds, size_t n_fds, const char *text)
{
        uint8_t data[512];
        size_t n = wire_encode(data, 0, sizeof(data), type, first);
        struct wire w;

        n = wire_encode(data, n, sizeof(data), type, second);
        open_usual(&w, transport);
        wire_send_raw(&w, data, n, fds, n_fds);
        wire_broken(&w, EEXIST, text);
}

BOTH(objects, a_number_that_is_asked_for_twice_at_once)
{
        struct rig_msg_buffer_new new[] = {{.serial = 100, .buffer = 9, .device = 1, .bytes = 4096},
                {.serial = 101, .buffer = 9, .device = 1, .bytes = 8192}};
        struct rig_msg_buffer_adopt adopt[] = {{.serial = 100, .buffer = 9, .device = 1, .bytes = 4096},
                {.serial = 101, .buffer = 9, .device = 1, .bytes = 4096, .fd = 1}};
        struct rig_msg_device_open open[] = {{.serial = 100, .device = 9, .name = rig_text("host", 63)},
                {.serial = 101, .device = 9, .name = rig_text("memory:M", 63)}};
        struct rig_msg_work_new work[] = {
                {.serial = 100, .work = 9, .device = 1}, {.serial = 101, .work = 9, .device = 1}};
        int fds[2] = {sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL),
                sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL)};

        both_at_once(
                transport, RIG_MSG_BUFFER_NEW, &new[0], &new[1], NULL, 0, "there is a buffer 9 already");
        both_at_once(transport, RIG_MSG_BUFFER_ADOPT, &adopt[0], &adopt[1], fds, 2,
                "there is a buffer 9 already");
        both_at_once(
                transport, RIG_MSG_DEVICE_OPEN, &open[0], &open[1], NULL, 0, "there is a device 9 already");
        both_at_once(transport, RIG_MSG_WORK_NEW, &work[0], &work[1], NULL, 0, "there is a work 9 already");
        close(fds[0]);
        close(fds[1]);
}

/* A buffer that was asked for, and a view that takes its number before it is there. */
Test(objects, a_number_that_is_taken_while_it_is_asked_for)
{
        struct rig_msg_buffer_new new = {.serial = 100, .buffer = 9, .device = 1, .bytes = 4096};
        struct rig_msg_buffer_view view = {.buffer = 9, .of = 1, .bytes = 1};
        uint8_t data[512];
        size_t n = wire_encode(data, 0, sizeof(data), RIG_MSG_BUFFER_NEW, &new);
        struct wire w;

        n = wire_encode(data, n, sizeof(data), RIG_MSG_BUFFER_VIEW, &view);
        open_usual(&w, WIRE_SOCKET);
        wire_send_raw(&w, data, n, NULL, 0);
        wire_broken(&w, EEXIST, "there is a buffer 9 already");
}

/* ---------------------------------------------------------------- sizes */

BOTH(objects, views_that_are_not_inside)
{
        static const struct {
                uint64_t offset, bytes;
        } rows[] = {{4096, 1}, {4097, 0}, {0, 4097}, {1, 4096}, {MAX_BYTES, 1}, {1, MAX_BYTES},
                {MAX_BYTES, MAX_BYTES}};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(rows); i++)
                breaks(transport, RIG_MSG_BUFFER_VIEW,
                        &(struct rig_msg_buffer_view){
                                .buffer = 9, .of = 1, .offset = rows[i].offset, .bytes = rows[i].bytes},
                        ERANGE, "is not inside buffer 1, which has 4096");
}

/* A view of a view stays inside what it is of, not inside the memory. */
BOTH(objects, a_view_of_a_view_that_is_not_inside)
{
        struct wire w;

        open_usual(&w, transport);
        wire_send(&w, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 9, .of = 1, .offset = 1000, .bytes = 10});
        wire_send(&w, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 10, .of = 9, .offset = 5, .bytes = 5});
        wire_sync(&w);
        wire_send(&w, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 11, .of = 9, .offset = 5, .bytes = 6});
        wire_broken(&w, ERANGE, "a view of 6 bytes at 5 is not inside buffer 9, which has 10");
}

/* ---------------------------------------------------------------- runs */

BOTH(objects, runs_with_too_few_or_too_many_buffers)
{
        breaks(transport, RIG_MSG_RUN, &(struct rig_msg_run){.work = 1}, EINVAL,
                "0 buffers for 1 open slots");
        breaks(transport, RIG_MSG_RUN, &(struct rig_msg_run){.work = 1, .n_buffers = 2, .buffers = {1, 2}},
                EINVAL, "2 buffers for 1 open slots");
        breaks(transport, RIG_MSG_RUN, &(struct rig_msg_run){.work = 2, .n_buffers = 64, .buffers = {1}},
                EINVAL, "64 buffers for 2 open slots");
}

BOTH(objects, copies_of_slots_that_are_not_as_long)
{
        breaks(transport, RIG_MSG_RUN, &(struct rig_msg_run){.work = 2, .n_buffers = 2, .buffers = {1, 3}},
                ERANGE, "copies all of 64 bytes to 4096");
        breaks(transport, RIG_MSG_RUN, &(struct rig_msg_run){.work = 2, .n_buffers = 2, .buffers = {3, 1}},
                ERANGE, "copies all of 4096 bytes to 64");
}

/* A work that copies 32 bytes at 16 to 40: slot 0 needs 72 bytes, slot 1 48. */
static void offset_copy(struct wire *w)
{
        struct rig_msg_work_new m = {.work = 9,
                .device = 1,
                .n_slots = 2,
                .slots = {{.access = 2}, {.access = 1}},
                .n_parts = 1,
                .parts = {{.kind = 1,
                        .has_dst = true,
                        .dst = {0, 40},
                        .has_src = true,
                        .src = {1, 16},
                        .has_bytes = true,
                        .bytes = 32}}};
        struct heard h;

        wire_answer(w, wire_ask_work(w, &m), RIG_MSG_DONE, &h);
}

BOTH(objects, buffers_that_are_too_short_for_their_slot)
{
        struct wire w;

        open_usual(&w, transport);
        offset_copy(&w);
        wire_run(&w, 9, 1, 3, 0);
        wire_wait(&w, 1, 1);
        wire_run(&w, 9, 3, 1, 0);
        wire_broken(&w, ERANGE, "slot 0 of work 9 needs 72 bytes, and buffer 3 has 64");
}

BOTH(objects, writes_to_memory_that_is_only_read)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
        struct wire w;

        open_usual(&w, transport);
        wire_adopt(&w, 9, 1, fd, 0, 4096);
        wire_run(&w, 2, 1, 9, 0);
        wire_wait(&w, 1, 1);
        wire_run(&w, 2, 9, 1, 0);
        wire_broken(&w, EACCES, "slot 0 of work 2 writes buffer 9, whose memory is only read");
        close(fd);
}

BOTH(objects, buffers_that_a_device_does_not_reach)
{
        int fd = open(rigd.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        struct wire w;

        cr_assert_geq(fd, 0);
        open_usual(&w, transport);
        wire_adopt(&w, 9, 3, fd, 0, 4096);
        wire_run(&w, 2, 1, 9, 0);
        wire_broken(&w, EXDEV, "work 2 is on device 1, which does not reach buffer 9 on device 3");
        close(fd);
}

BOTH(objects, points_of_the_future_and_of_nobody)
{
        breaks(transport, RIG_MSG_RUN,
                &(struct rig_msg_run){.work = 1,
                        .n_buffers = 1,
                        .buffers = {1},
                        .has_points = true,
                        .n_points = 1,
                        .points = {{9, 0}}},
                ENOENT, "a run follows device 9, which there is not");
        breaks(transport, RIG_MSG_RUN,
                &(struct rig_msg_run){.work = 1,
                        .n_buffers = 1,
                        .buffers = {1},
                        .has_points = true,
                        .n_points = 1,
                        .points = {{1, 1}}},
                EINVAL, "a run follows value 1 of device 1, which gave 0 so far");
        breaks(transport, RIG_MSG_RUN,
                &(struct rig_msg_run){.work = 1,
                        .n_buffers = 1,
                        .buffers = {1},
                        .has_points = true,
                        .n_points = 1,
                        .points = {{2, RIG_PROTO_VALUE_MAX}}},
                EINVAL, "a run follows value 9223372036854775807 of device 2, which gave 0 so far");
}

BOTH(objects, waits_for_the_future)
{
        breaks(transport, RIG_MSG_NOTIFY, &(struct rig_msg_notify){.serial = 1, .device = 1, .value = 1},
                EINVAL, "a wait for value 1 of device 1, which gave 0 so far");
        breaks(transport, RIG_MSG_BUFFER_WAIT, &(struct rig_msg_buffer_wait){.serial = 1, .buffer = 1},
                EINVAL, "buffer-wait has no access");
}

/* Nobody could ever say that such a run of the host is done. */
BOTH(objects, runs_on_a_device_that_is_closed)
{
        static const uint32_t devices[] = {1, 2};
        struct wire w;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(devices); i++) {
                open_usual(&w, transport);
                wire_fill(&w, 9, devices[i], 7);
                wire_run(&w, 9, 1, 0);
                wire_close_device(&w, devices[i]);
                wire_sync(&w);
                wire_run(&w, 9, 2, 0);
                wire_broken(&w, ENOENT, "work 9 is of a device that is closed");
        }
}

/* ---------------------------------------------------------------- the client's own code */

BOTH(objects, code_that_was_not_to_run_is_not_done)
{
        struct wire w;

        breaks(transport, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 1, .value = 1}, EINVAL,
                "device 1 runs no work of the client's");
        breaks(transport, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 2, .value = 1}, EINVAL,
                "value 1 of device 2 was not to be run: it may run up to 0");

        open_usual(&w, transport);
        wire_fill(&w, 9, 2, 7);
        wire_run(&w, 9, 1, 0);
        wire_sync(&w); /* it was told to run by then */
        wire_send(&w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 2, .value = 1});
        wire_wait(&w, 1, 1);
        wire_send(&w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 2, .value = 1});
        wire_broken(&w, EINVAL, "value 1 of device 2 was not to be run: it may run up to 1");
}
