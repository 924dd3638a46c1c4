/* SPDX-License-Identifier: ISC */
/*
 * Order and memory between the devices of one client: memory that completes at once, memory that completes
 * on its own, the disk, and the host, whose code is the test's: it runs nothing before rigd said so, and is
 * done when the test says so. That makes a device that stands still for as long as a test wants, without a
 * clock.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

enum { MEMORY = 1, ASYNC, DISK, HOST };

static struct rigd rigd;

static void set_up(void)
{
        rigd_start(&rigd, NULL);
}

static void tear_down(void)
{
        rigd_stop(&rigd);
}

TestSuite(devices, .init = set_up, .fini = tear_down, .timeout = 300);

static void open_all(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        wire_device(w, MEMORY, "memory:M");
        wire_device(w, ASYNC, "memory:A,async");
        wire_device(w, DISK, "disk");
        wire_device(w, HOST, "host");
}

static int some_file(uint64_t bytes)
{
        int fd = open(rigd.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
        return fd;
}

/* What a device reached, by the word or by the events that came before the answer to a sync. */
static uint64_t reached(struct wire *w, uint32_t device)
{
        wire_sync(w);
        if (w->words)
                return atomic_load(&w->words->word[device - 1].signaled);
        for (size_t i = 0; i < w->n_kept; i++)
                if (w->kept[i]->type == RIG_MSG_REACHED && w->kept[i]->msg.reached.device == device)
                        return w->kept[i]->msg.reached.value;
        return 0;
}

/* Waits until the host device may run its work up to a value. */
static void await_ready(struct wire *w, uint64_t value)
{
        uint64_t deadline = rig_deadline_usec(RIGD_WAIT_MS * RIG_USEC_PER_MSEC);
        struct heard h;

        if (!w->words) {
                do {
                        wire_event(w, RIG_MSG_READY, &h);
                } while (h.msg.ready.value < value);
                return;
        }
        while (atomic_load(&w->words->word[HOST - 1].ready) < value) {
                cr_assert_lt(rig_now_usec(), deadline, "the host is not told to run");
                wire_sync(w);
        }
}

static void host_done(struct wire *w, uint64_t value)
{
        wire_send(w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = HOST, .value = value});
}

/* A run of the host that uses one buffer. */
static void host_work(struct wire *w, uint32_t work, uint32_t access)
{
        struct rig_msg_work_new m = {.work = work,
                .device = HOST,
                .n_slots = 1,
                .slots = {{.access = access}},
                .n_parts = 1,
                .parts = {{.kind = 3, .has_entry = true, .entry = 1}}};
        struct heard h;

        wire_answer(w, wire_ask_work(w, &m), RIG_MSG_DONE, &h);
}

/* ---------------------------------------------------------------- laws */

BOTH(devices, order_O2_a_read_follows_the_last_write_on_another_device)
{
        static const uint32_t on[] = {MEMORY, ASYNC};
        struct wire w;
        uint8_t *a, *b;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(on); i++) {
                open_all(&w, transport);
                a = wire_buffer(&w, 1, HOST, 4096);
                b = wire_buffer(&w, 2, on[i], 4096);
                host_work(&w, 1, 2);
                wire_copy(&w, 2, on[i]);
                wire_run(&w, 1, 1, 0);
                wire_run(&w, 2, 2, 1, 0);
                await_ready(&w, 1);
                cr_assert_eq(reached(&w, on[i]), 0u, "it read before the write was done");
                memset(a, 0x42, 4096);
                host_done(&w, 1);
                wire_wait(&w, 2, 1);
                cr_assert_eq(b[0], 0x42);
                cr_assert_eq(b[4095], 0x42);
                munmap(a, 4096);
                munmap(b, 4096);
                wire_close(&w);
        }
}

BOTH(devices, order_O3_a_write_follows_every_use_on_another_device)
{
        struct wire w;
        uint8_t *a;

        open_all(&w, transport);
        a = wire_buffer(&w, 1, MEMORY, 4096);
        host_work(&w, 1, 1);
        wire_fill(&w, 2, ASYNC, 0x01010101);
        wire_run(&w, 1, 1, 0); /* the host reads */
        wire_run(&w, 2, 1, 0); /* what the device is to overwrite */
        await_ready(&w, 1);
        cr_assert_eq(reached(&w, ASYNC), 0u, "it wrote while another device read");
        cr_assert_eq(a[0], 0);
        host_done(&w, 1);
        wire_wait(&w, 1, 1);
        cr_assert_eq(a[0], 1);
        munmap(a, 4096);
        wire_close(&w);
}

BOTH(devices, order_O1_values_come_in_the_order_of_the_calls)
{
        struct wire w;

        open_all(&w, transport);
        munmap(wire_buffer(&w, 1, MEMORY, 4096), 4096);
        munmap(wire_buffer(&w, 2, MEMORY, 4096), 4096);
        host_work(&w, 1, 2);
        wire_fill(&w, 2, ASYNC, 1);
        wire_run(&w, 1, 1, 0);
        wire_run(&w, 2, 1, 0); /* waits for the host */
        wire_run(&w, 2, 2, 0); /* has nothing to wait for but the run before it */
        await_ready(&w, 1);
        cr_assert_eq(reached(&w, ASYNC), 0u);
        host_done(&w, 1);
        wire_value(&w, ASYNC, 2);
        wire_close(&w);
}

BOTH(devices, order_O6_the_host_waits_like_work)
{
        uint32_t read, write;
        struct heard h;
        struct wire w;

        open_all(&w, transport);
        munmap(wire_buffer(&w, 1, MEMORY, 4096), 4096);
        host_work(&w, 1, 1);
        wire_run(&w, 1, 1, 0);
        await_ready(&w, 1);
        wire_wait(&w, 1, 1); /* nobody writes: reading is free at once */
        write = wire_ask_wait(&w, 1, 2);
        read = wire_ask_wait(&w, 1, 1);
        wire_answer(&w, read, RIG_MSG_DONE, &h);
        wire_sync(&w);
        for (size_t i = 0; i < w.n_kept; i++)
                cr_assert_neq(w.kept[i]->type, RIG_MSG_DONE, "the host may write what is being read");
        host_done(&w, 1);
        wire_answer(&w, write, RIG_MSG_DONE, &h);
        wire_close(&w);
}

BOTH(devices, order_O7_a_run_follows_the_points_it_names)
{
        struct rig_msg_run run = {.work = 2,
                .n_buffers = 1,
                .buffers = {2},
                .has_points = true,
                .n_points = 2,
                .points = {{MEMORY, 0}, {HOST, 1}}};
        struct wire w;

        open_all(&w, transport);
        munmap(wire_buffer(&w, 1, MEMORY, 4096), 4096);
        munmap(wire_buffer(&w, 2, MEMORY, 4096), 4096);
        host_work(&w, 1, 3);
        wire_fill(&w, 2, MEMORY, 1);
        wire_run(&w, 1, 1, 0);
        wire_send(&w, RIG_MSG_RUN, &run);
        await_ready(&w, 1);
        cr_assert_eq(reached(&w, MEMORY), 0u, "it did not follow the point");
        host_done(&w, 1);
        wire_value(&w, MEMORY, 1);
        wire_close(&w);
}

BOTH(devices, order_O8_what_shares_no_memory_does_not_wait)
{
        struct wire w;

        open_all(&w, transport);
        munmap(wire_buffer(&w, 1, MEMORY, 4096), 4096);
        munmap(wire_buffer(&w, 2, MEMORY, 4096), 4096);
        host_work(&w, 1, 3);
        wire_fill(&w, 2, MEMORY, 1);
        wire_fill(&w, 3, ASYNC, 1);
        wire_run(&w, 1, 1, 0);
        wire_run(&w, 2, 2, 0);
        wire_value(&w, MEMORY, 1); /* though the host stands still */
        wire_run(&w, 3, 2, 0);
        wire_value(&w, ASYNC, 1);
        cr_assert_eq(reached(&w, HOST), 0u);
        await_ready(&w, 1);
        host_done(&w, 1);
        wire_value(&w, HOST, 1);
        wire_close(&w);
}

/* Views of one memory are ordered as the memory is. */
BOTH(devices, order_O3_views_are_the_memory_they_are_of)
{
        struct wire w;
        uint8_t *a;

        open_all(&w, transport);
        a = wire_buffer(&w, 1, MEMORY, 4096);
        wire_send(&w, RIG_MSG_BUFFER_VIEW, &(struct rig_msg_buffer_view){.buffer = 2, .of = 1, .bytes = 16});
        wire_send(&w, RIG_MSG_BUFFER_VIEW,
                &(struct rig_msg_buffer_view){.buffer = 3, .of = 1, .offset = 3001, .bytes = 77});
        host_work(&w, 1, 1);
        wire_fill(&w, 2, MEMORY, 0x09090909);
        wire_run(&w, 1, 2, 0);
        wire_run(&w, 2, 3, 0);
        await_ready(&w, 1);
        cr_assert_eq(reached(&w, MEMORY), 0u);
        host_done(&w, 1);
        wire_wait(&w, 1, 1);
        cr_assert(a[3000] == 0 && a[3001] == 9 && a[3077] == 9 && a[3078] == 0);
        munmap(a, 4096);
        wire_close(&w);
}

/* Consecutive runs of the host are told at once: no round trip for each. */
BOTH(devices, host_runs_are_handed_over_together)
{
        struct wire w;

        open_all(&w, transport);
        munmap(wire_buffer(&w, 1, MEMORY, 4096), 4096);
        host_work(&w, 1, 3);
        for (unsigned i = 0; i < 100; i++)
                wire_run(&w, 1, 1, 0);
        await_ready(&w, 100);
        cr_assert_eq(reached(&w, HOST), 0u);
        host_done(&w, 40);
        wire_value(&w, HOST, 40);
        host_done(&w, 100);
        wire_value(&w, HOST, 100);
        wire_close(&w);
}

/* A host run that fails, fails alone. */
BOTH(devices, a_host_run_that_fails_loses_nothing)
{
        struct heard h;
        struct wire w;
        char text[64];

        open_all(&w, transport);
        munmap(wire_buffer(&w, 1, MEMORY, 4096), 4096);
        host_work(&w, 1, 3);
        wire_fill(&w, 2, MEMORY, 1);
        wire_run(&w, 1, 1, 0);
        wire_run(&w, 2, 1, 0);
        await_ready(&w, 1);
        wire_send(&w, RIG_MSG_HOST_DONE,
                &(struct rig_msg_host_done){.device = HOST,
                        .value = 1,
                        .has_failed = true,
                        .failed = EDOM,
                        .has_text = true,
                        .text = rig_text("no such number", RIG_PROTO_TEXT_MAX)});
        wire_event(&w, RIG_MSG_RUN_FAILED, &h);
        cr_assert_eq(h.msg.run_failed.device, (uint32_t)HOST);
        cr_assert_eq(h.msg.run_failed.value, 1u);
        cr_assert_eq(h.msg.run_failed.error, (uint32_t)EDOM);
        cr_assert_eq(h.msg.run_failed.lost, 0u);
        cr_assert_str_eq(rig_text_copy(h.msg.run_failed.text, text, sizeof(text)), "no such number");
        wire_wait(&w, 1, 2);
        cr_assert_eq(reached(&w, MEMORY), 1u);
        if (w.words)
                cr_assert_eq(atomic_load(&w.words->word[HOST - 1].failures), 1u);
        wire_close(&w);
}

/* ---------------------------------------------------------------- random programs */

#define BUFFERS 6      /* 0, 1 on MEMORY; 2, 3 on ASYNC; 4, 5 files */
#define BYTES   70000u /* more than the disk and memory do at once */
#define RUNS    400

static uint32_t random_state;

static unsigned roll(unsigned n)
{
        random_state = random_state * 1664525u + 1013904223u;
        return (random_state >> 16) % n;
}

static bool is_file(unsigned b)
{
        return b >= 4;
}

/* Makes the buffers 1 to BUFFERS, the works, and returns where their bytes are. */
static void make_all(struct wire *w, uint8_t **bytes)
{
        for (unsigned b = 0; b < BUFFERS; b++) {
                int fd;

                if (!is_file(b)) {
                        bytes[b] = wire_buffer(w, b + 1, b / 2 + 1, BYTES);
                        continue;
                }
                fd = some_file(BYTES);
                wire_adopt(w, b + 1, DISK, fd, 0, BYTES);
                bytes[b] = map_fd(fd, BYTES);
                close(fd);
        }
        for (uint32_t d = MEMORY; d <= DISK; d++)
                wire_copy(w, d, d);
        for (uint32_t v = 0; v < 16; v++)
                wire_fill(w, 10 + v, v % 2 ? MEMORY : ASYNC, 0x10101010 + v * 0x01010101);
}

/* One run on some device that can, and its effect on the model. */
static void random_run(struct wire *w, uint8_t *model)
{
        unsigned dst = roll(BUFFERS), src = roll(BUFFERS), v = roll(16);

        if (dst == src && !is_file(dst)) {
                wire_run(w, 10 + v, dst + 1, 0);
                model[dst] = (uint8_t)(0x10 + v);
        } else if (is_file(dst) != is_file(src)) {
                wire_run(w, DISK, dst + 1, src + 1, 0);
                model[dst] = model[src];
        } else if (!is_file(dst)) {
                wire_run(w, roll(2) ? MEMORY : ASYNC, dst + 1, src + 1, 0);
                model[dst] = model[src];
        }
}

BOTH(devices, order_between_memory_async_memory_and_files)
{
        for (unsigned seed = 1; seed <= 5; seed++) {
                uint8_t *bytes[BUFFERS], model[BUFFERS] = {0};
                struct wire w;

                random_state = seed;
                open_all(&w, transport);
                make_all(&w, bytes);
                for (unsigned i = 0; i < RUNS; i++)
                        random_run(&w, model);
                for (unsigned b = 0; b < BUFFERS; b++) {
                        wire_wait(&w, b + 1, 1);
                        for (unsigned i = 0; i < BYTES; i++)
                                cr_assert_eq(
                                        bytes[b][i], model[b], "seed %u, buffer %u, byte %u", seed, b, i);
                }
                for (unsigned b = 0; b < BUFFERS; b++)
                        munmap(bytes[b], BYTES);
                wire_close(&w);
        }
}

/* ---------------------------------------------------------------- files */

BOTH(devices, a_copy_from_past_the_end_of_a_file_fails_alone)
{
        int fd = some_file(10);
        struct heard h;
        struct wire w;
        uint8_t *b;

        open_all(&w, transport);
        b = wire_buffer(&w, 1, MEMORY, 100);
        wire_adopt(&w, 2, DISK, fd, 0, 100);
        wire_copy(&w, 1, DISK);
        wire_run(&w, 1, 1, 2, 0);
        wire_event(&w, RIG_MSG_RUN_FAILED, &h);
        cr_assert_eq(h.msg.run_failed.error, (uint32_t)ENODATA);
        cr_assert_eq(h.msg.run_failed.lost, 0u);
        cr_assert_eq(ftruncate(fd, 100), 0);
        cr_assert_eq(pwrite(fd, "x", 1, 99), 1);
        wire_run(&w, 1, 1, 2, 0);
        wire_wait(&w, 1, 1);
        cr_assert_eq(b[99], 'x');
        munmap(b, 100);
        close(fd);
        wire_close(&w);
}
