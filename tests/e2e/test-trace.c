/* SPDX-License-Identifier: ISC */
/*
 * Traces that a client asks for: what is recorded of its runs, what of other programs it does not learn, and
 * rings that are none. What a run copies, and the order of its times, follow from what the test submitted.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/puppet.h"
#include "trace/trace.h"

#define RECORDS 256u

static struct rigd rigd;

static void set_up(void)
{
        rigd_start(&rigd, "--set", "ClientTraceMax=64K", NULL);
}

static void tear_down(void)
{
        rigd_stop(&rigd);
}

TestSuite(trace, .init = set_up, .fini = tear_down, .timeout = 120);

/* ---------------------------------------------------------------- asking */

static uint32_t ask_start(struct wire *w, int fd)
{
        struct rig_msg_trace_start m = {.serial = wire_serial(w), .fd = 0};

        wire_send_fds(w, RIG_MSG_TRACE_START, &m, &fd, 1);
        return m.serial;
}

static void start(struct wire *w, struct rig_trace_ring *ring)
{
        struct heard h;
        int fd;

        cr_assert_eq(rig_trace_ring_new(RECORDS, ring, &fd), 0);
        wire_answer(w, ask_start(w, fd), RIG_MSG_DONE, &h);
        close(fd);
}

static void stop(struct wire *w)
{
        struct rig_msg_trace_stop m = {.serial = wire_serial(w)};
        struct heard h;

        wire_send(w, RIG_MSG_TRACE_STOP, &m);
        wire_answer(w, m.serial, RIG_MSG_DONE, &h);
}

/* The next record of a kind; fails where there is none. */
static struct rig_trace_record next(struct rig_trace_ring *ring, uint32_t kind)
{
        struct rig_trace_record record;

        do
                cr_assert(rig_trace_ring_read(ring, &record), "no further record of kind %u", kind);
        while (record.kind != kind);
        return record;
}

static unsigned count(struct rig_trace_ring *ring, uint32_t kind)
{
        struct rig_trace_record record;
        unsigned n = 0;

        while (rig_trace_ring_read(ring, &record))
                n += record.kind == kind;
        return n;
}

/* Device 1 is memory M, 2 memory N; buffers 1 and 2 of 4096 bytes on 1, 3 on 2; works 1 fills and 2 copies
 * on 1, 3 copies on 2. */
static void open_usual(struct wire *w, enum wire_transport transport)
{
        wire_open(w, &rigd, transport);
        wire_device(w, 1, "memory:M");
        wire_device(w, 2, "memory:N");
        munmap(wire_buffer(w, 1, 1, 4096), 4096);
        munmap(wire_buffer(w, 2, 1, 4096), 4096);
        munmap(wire_buffer(w, 3, 2, 4096), 4096);
        wire_fill(w, 1, 1, 7);
        wire_copy(w, 2, 1);
        wire_copy(w, 3, 2);
}

/* ---------------------------------------------------------------- what is recorded */

BOTH(trace, runs_are_recorded_with_their_bytes_and_times)
{
        uint64_t before_nsec, after_nsec, ended_nsec = 0;
        struct rig_trace_ring ring;
        struct rig_trace_record r;
        struct wire w;

        open_usual(&w, transport);
        start(&w, &ring);
        before_nsec = rig_now_nsec();
        wire_run(&w, 1, 1, 0);
        wire_run(&w, 2, 2, 1, 0);
        wire_value(&w, 1, 2);
        after_nsec = rig_now_nsec();
        stop(&w);

        r = next(&ring, RIG_TRACE_DEVICE);
        cr_assert_str_eq(r.opened.name, "memory:M");
        cr_assert_eq(r.opened.pid, (uint32_t)getpid());
        cr_assert_eq(r.opened.id, 1);
        cr_assert_eq(r.opened.n_queues, 1);
        for (uint64_t value = 1; value <= 2; value++) {
                r = next(&ring, RIG_TRACE_RUN);
                cr_assert_eq(r.run.value, value);
                cr_assert_eq(r.run.copied_bytes, value == 2 ? 4096 : 0);
                cr_assert_eq(r.run.filled_bytes, value == 1 ? 4096 : 0);
                cr_assert_eq(r.run.error, 0);
                cr_assert_eq(r.run.queues, 1);
                cr_assert_eq(r.run.launches, 0);
                cr_assert_leq(before_nsec, r.run.accepted_nsec);
                cr_assert_leq(r.run.accepted_nsec, r.run.started_nsec);
                cr_assert_leq(ended_nsec, r.run.started_nsec, "runs of a device follow each other");
                cr_assert_leq(r.run.started_nsec, r.run.ended_nsec);
                cr_assert_leq(r.run.ended_nsec, after_nsec);
                ended_nsec = r.run.ended_nsec;
        }
        cr_assert_eq(count(&ring, RIG_TRACE_RUN), 0);
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
}

BOTH(trace, a_run_is_recorded_under_the_name_of_its_work)
{
        struct rig_msg_work_new m = {.work = 5, .device = 1, .n_slots = 1, .n_parts = 1, .has_name = true};
        struct rig_trace_ring ring;
        struct rig_trace_record r;
        struct wire w;

        open_usual(&w, transport);
        m.slots[0].access = 2;
        m.parts[0] = (struct rig_msg_part){.kind = 2, .has_dst = true};
        m.name = rig_text("a name of forty-seven bytes, the longest it has", RIG_PROTO_LABEL_MAX);
        m.serial = wire_ask_work(&w, &m);
        wire_answer(&w, m.serial, RIG_MSG_DONE, &(struct heard){0});
        start(&w, &ring);
        wire_run(&w, 5, 1, 0);
        wire_value(&w, 1, 1);
        stop(&w);
        r = next(&ring, RIG_TRACE_RUN);
        cr_assert_str_eq(r.run.name, "a name of forty-seven bytes, the longest it has");
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
}

BOTH(trace, nothing_is_recorded_after_its_end_and_another_may_follow)
{
        struct rig_trace_ring first, second;
        struct wire w;

        open_usual(&w, transport);
        start(&w, &first);
        wire_run(&w, 1, 1, 0);
        wire_value(&w, 1, 1);
        stop(&w);
        wire_run(&w, 1, 1, 0);
        wire_value(&w, 1, 2);
        start(&w, &second);
        wire_run(&w, 1, 1, 0);
        wire_run(&w, 1, 1, 0);
        wire_value(&w, 1, 4);
        stop(&w);
        cr_assert_eq(count(&first, RIG_TRACE_RUN), 1);
        cr_assert_eq(count(&second, RIG_TRACE_RUN), 2);
        rig_trace_ring_unmap(&first);
        rig_trace_ring_unmap(&second);
        wire_close(&w);
}

BOTH(trace, a_wait_for_another_device_is_recorded)
{
        struct rig_trace_ring ring;
        struct rig_trace_record r;
        uint32_t host;
        struct wire w;

        open_usual(&w, transport);
        wire_device(&w, 3, "host");
        wire_fill(&w, 4, 3, 9);
        start(&w, &ring);
        host = next(&ring, RIG_TRACE_DEVICE).device; /* of memory:M; the host's is the third */
        next(&ring, RIG_TRACE_DEVICE);
        host = next(&ring, RIG_TRACE_DEVICE).device;
        wire_run(&w, 4, 1, 0);    /* the client's own code, which is not done */
        wire_run(&w, 2, 2, 1, 0); /* reads what that writes */
        wire_sync(&w);
        wire_send(&w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = 3, .value = 1});
        wire_value(&w, 1, 1);
        stop(&w);
        r = next(&ring, RIG_TRACE_WAIT);
        cr_assert_eq(r.wait.value, 1);
        cr_assert_eq(r.wait.on, host);
        cr_assert_eq(r.wait.on_value, 1);
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
}

BOTH(trace, a_lost_run_is_recorded_as_lost)
{
        struct rig_trace_ring ring;
        struct rig_trace_record r;
        struct wire w;

        open_usual(&w, transport);
        wire_device(&w, 3, "host");
        wire_fill(&w, 4, 3, 9);
        start(&w, &ring);
        wire_run(&w, 4, 1, 0);
        wire_sync(&w);
        wire_close_device(&w, 3); /* before its code is done */
        wire_run(&w, 2, 2, 1, 0); /* what that was to write */
        wire_value(&w, 1, 1);
        stop(&w);
        r = next(&ring, RIG_TRACE_RUN);
        cr_assert_eq(r.run.error, -ENODEV);
        r = next(&ring, RIG_TRACE_RUN);
        cr_assert_eq(r.run.error, -ENODEV);
        cr_assert_eq(r.run.copied_bytes, 0, "what was lost copied nothing");
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
}

/* ---------------------------------------------------------------- what is not */

BOTH(trace, other_programs_are_not_in_a_clients_own)
{
        struct rig_trace_ring ring;
        struct wire w, other;

        open_usual(&w, transport);
        start(&w, &ring);
        open_usual(&other, transport);
        wire_run(&other, 1, 1, 0);
        wire_run(&other, 2, 2, 1, 0);
        wire_value(&other, 1, 2);
        stop(&w);
        cr_assert_eq(count(&ring, RIG_TRACE_RUN), 0);
        cr_assert_eq(ring.head - ring.tail, 0);
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
        wire_close(&other);
}

BOTH(trace, a_wait_for_another_programs_device_does_not_say_whose)
{
        int fd = sealed_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
        struct rig_trace_ring ring;
        struct rig_trace_record r;
        struct puppet p;
        struct wire w;

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_adopt(&w, 1, 1, fd, 0, 4096);
        wire_fill(&w, 1, 1, 7);
        puppet_start(&p, &rigd, transport);
        puppet_device(&p, 1, "host");
        puppet_adopt(&p, 1, 1, fd, 4096);
        puppet_fill(&p, 1, 1, 9);
        start(&w, &ring);
        puppet_run(&p, 1, 1, 0, false);
        puppet_sync(&p);
        wire_run(&w, 1, 1, 0);
        wire_sync(&w);
        puppet_host_done(&p, 1, 1);
        wire_value(&w, 1, 1);
        stop(&w);
        r = next(&ring, RIG_TRACE_WAIT);
        cr_assert_eq(r.wait.value, 1);
        cr_assert_eq(r.wait.on, 0);
        cr_assert_eq(r.wait.on_value, 0);
        rig_trace_ring_unmap(&ring);
        puppet_stop(&p);
        wire_close(&w);
        close(fd);
}

/* ---------------------------------------------------------------- rings that are none */

BOTH(trace, rings_that_are_none_are_refused_and_nothing_is_kept)
{
        const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        const uint64_t bytes = rig_trace_file_bytes(RECORDS);
        struct rig_trace_ring ring;
        size_t fds, maps;
        struct wire w;

        open_usual(&w, transport);
        fds = rigd_count_fds(&rigd);
        maps = rigd_count_maps(&rigd);
        const struct {
                int fd, error;
                const char *text;
        } bad[] = {
                {sealed_memfd(bytes, 0), EPERM, "sealed with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL"},
                {sealed_memfd(bytes, F_SEAL_SHRINK | F_SEAL_SEAL), EPERM, "F_SEAL_GROW"},
                {sealed_memfd(bytes, all | F_SEAL_WRITE), EPERM, "that can be written"},
                {sealed_memfd(bytes - 1, all), EINVAL, "a power of two of records"},
                {sealed_memfd(bytes + RIG_TRACE_RECORD_BYTES, all), EINVAL, "a power of two"},
                {sealed_memfd(0, all), EINVAL, "a power of two"},
                {sealed_memfd(rig_trace_file_bytes(RECORDS * 4), all), EDQUOT, "ClientTraceMax is 65536"},
                {open("/dev/null", O_RDWR | O_CLOEXEC), EPERM, "is a memfd"},
                {open("/", O_RDONLY | O_CLOEXEC), EPERM, "is a memfd"},
        };

        for (size_t i = 0; i < RIG_ARRAY_SIZE(bad); i++) {
                wire_failed(&w, ask_start(&w, bad[i].fd), bad[i].error, bad[i].text);
                close(bad[i].fd);
        }
        rigd_await_fds(&rigd, fds);
        rigd_await_maps(&rigd, maps);
        start(&w, &ring);
        wire_failed(&w, ask_start(&w, STDIN_FILENO), EBUSY, "traced by itself already");
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
}

BOTH(trace, a_start_without_its_descriptor_ends_the_connection)
{
        struct rig_msg_trace_start m = {.serial = 1, .fd = 2};
        struct wire w;

        wire_open(&w, &rigd, transport);
        wire_send(&w, RIG_MSG_TRACE_START, &m);
        wire_broken(&w, EBADMSG, "trace-start names descriptor 2");
}

/* The page is the client's to spoil, and the file's memory to take away: rigd and the others go on. */
BOTH(trace, a_ring_that_its_reader_spoils_harms_nobody)
{
        const uint64_t lies[] = {1, RECORDS, RECORDS + 1, UINT64_MAX, UINT64_C(1) << 63};
        struct rig_trace_ring ring;
        struct heard h;
        struct wire w;
        int fd;

        open_usual(&w, transport);
        cr_assert_eq(rig_trace_ring_new(RECORDS, &ring, &fd), 0);
        wire_answer(&w, ask_start(&w, fd), RIG_MSG_DONE, &h);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(lies); i++) {
                atomic_store(&ring.page->tail, lies[i]);
                atomic_store(&ring.page->head, lies[i] * 3);
                for (unsigned n = 0; n < RECORDS + 3; n++)
                        wire_run(&w, 1, 1, 0);
                wire_value(&w, 1, (i + 1) * (RECORDS + 3));
        }
        cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                             (off_t)rig_trace_file_bytes(RECORDS)),
                0);
        wire_run(&w, 1, 1, 0);
        wire_value(&w, 1, RIG_ARRAY_SIZE(lies) * (RECORDS + 3) + 1);
        stop(&w);
        rig_trace_ring_unmap(&ring);
        close(fd);
        wire_close(&w);
}

BOTH(trace, what_finds_no_room_is_counted)
{
        struct rig_trace_ring ring;
        struct wire w;

        open_usual(&w, transport);
        start(&w, &ring);
        for (unsigned n = 0; n < 2 * RECORDS; n++)
                wire_run(&w, 1, 1, 0);
        wire_value(&w, 1, 2 * RECORDS);
        stop(&w);
        cr_assert_geq(rig_trace_ring_dropped(&ring), RECORDS);
        cr_assert_eq(count(&ring, RIG_TRACE_RUN) + rig_trace_ring_dropped(&ring), 2 * RECORDS);
        rig_trace_ring_unmap(&ring);
        wire_close(&w);
}

BOTH(trace, a_client_that_dies_takes_its_trace_with_it)
{
        struct rig_trace_ring ring;
        struct wire other, w;
        size_t fds, maps;

        wire_open(&other, &rigd, transport); /* and rigd has done what it does when it starts */
        wire_sync(&other);
        fds = rigd_count_fds(&rigd);
        maps = rigd_count_maps(&rigd);
        open_usual(&w, transport);
        start(&w, &ring);
        wire_run(&w, 1, 1, 0);
        wire_close(&w);
        rigd_await_fds(&rigd, fds);
        rigd_await_maps(&rigd, maps);
        rig_trace_ring_unmap(&ring);
        wire_close(&other);
}
