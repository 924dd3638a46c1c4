/* SPDX-License-Identifier: ISC */
/*
 * The ring of a trace, against a queue that does what a ring promises, and against pages that no honest side
 * writes.
 *
 * The model is a plain queue of numbers: a record is taken where fewer than n are unread, else counted as
 * dropped; what is read is what was written, in its order. Seeds of the random runs are printed with what
 * fails.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"
#include "trace/trace.h"

#define RECORDS 256u

static uint64_t random_state;

static uint64_t roll(uint64_t n)
{
        uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);

        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (x ^ (x >> 31)) % n;
}

static struct rig_trace_ring reader, writer;
static int fd;

static void open_both(void)
{
        cr_assert_eq(rig_trace_ring_new(RECORDS, &reader, &fd), 0);
        cr_assert_eq(rig_trace_ring_map(fd, UINT64_MAX, &writer), 0);
        cr_assert(reader.n_records == RECORDS && writer.n_records == RECORDS);
        cr_assert_neq(reader.page, writer.page);
}

static void close_both(void)
{
        rig_trace_ring_unmap(&writer);
        rig_trace_ring_unmap(&reader);
        cr_assert_null(reader.page);
        close(fd);
}

/* A record all of whose bytes follow from a number. */
static struct rig_trace_record record_of(uint64_t number)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_WAIT, .device = (uint32_t)number};

        for (size_t i = 0; i < sizeof(record.bytes); i++)
                record.bytes[i] = (uint8_t)(number * 31 + i);
        return record;
}

static void write_number(uint64_t number)
{
        struct rig_trace_record record = record_of(number);

        rig_trace_ring_write(&writer, &record);
}

/* ---------------------------------------------------------------- making and mapping */

Test(ring, lengths_are_powers_of_two_and_at_least_256)
{
        static const uint64_t cases[][2] = {
                {0, 256}, {1, 256}, {256, 256}, {257, 512}, {65535, 65536}, {65536, 65536}};
        struct rig_trace_ring ring;
        struct stat st;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(cases); i++) {
                cr_assert_eq(rig_trace_ring_new(cases[i][0], &ring, &fd), 0);
                cr_assert_eq(ring.n_records, cases[i][1]);
                cr_assert_eq(fstat(fd, &st), 0);
                cr_assert_eq((uint64_t)st.st_size, rig_trace_file_bytes(cases[i][1]));
                rig_trace_ring_unmap(&ring);
                close(fd);
        }
        cr_assert_eq(rig_trace_ring_new(UINT64_MAX, &ring, &fd), -E2BIG);
        cr_assert_eq(rig_trace_ring_new((UINT64_C(1) << 22) + 1, &ring, &fd), -E2BIG);
}

Test(ring, a_new_one_has_all_of_its_memory_and_keeps_its_length)
{
        struct stat st;

        open_both();
        cr_assert_eq(fstat(fd, &st), 0);
        cr_assert_geq(st.st_blocks * 512, st.st_size);
        cr_assert(ftruncate(fd, 4096) < 0 && errno == EPERM);
        cr_assert(ftruncate(fd, st.st_size * 2) < 0 && errno == EPERM);
        cr_assert(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 && errno == EPERM);
        close_both();
}

static int memfd(uint64_t bytes, int seals)
{
        int made = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        cr_assert(made >= 0 && ftruncate(made, (off_t)bytes) == 0 && fcntl(made, F_ADD_SEALS, seals) == 0);
        return made;
}

static int map_of(uint64_t bytes, int seals, uint64_t max)
{
        _cleanup_(rig_closep) int made = memfd(bytes, seals);
        struct rig_trace_ring ring = {0};
        int r = rig_trace_ring_map(made, max, &ring);

        cr_assert_eq(ring.page != NULL, r == 0);
        rig_trace_ring_unmap(&ring);
        return r;
}

Test(ring, only_what_is_sealed_as_a_ring_is_mapped)
{
        const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        const uint64_t bytes = rig_trace_file_bytes(RECORDS);
        struct rig_trace_ring ring;
        int file;

        cr_assert_eq(map_of(bytes, all, bytes), 0);
        cr_assert_eq(map_of(bytes, 0, bytes), -EPERM);
        cr_assert_eq(map_of(bytes, all & ~F_SEAL_SHRINK, bytes), -EPERM);
        cr_assert_eq(map_of(bytes, all & ~F_SEAL_GROW, bytes), -EPERM);
        cr_assert_eq(map_of(bytes, all & ~F_SEAL_SEAL, bytes), -EPERM);
        cr_assert_eq(map_of(bytes, all | F_SEAL_WRITE, bytes), -EPERM);
        cr_assert_eq(map_of(bytes, all | 0x10 /* F_SEAL_FUTURE_WRITE */, bytes), -EPERM);

        file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        cr_assert(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
        cr_assert_eq(rig_trace_ring_map(file, bytes, &ring), -EPERM);
        close(file);
        cr_assert_eq(rig_trace_ring_map(-EBADF, bytes, &ring), -EPERM);
}

Test(ring, only_the_lengths_of_rings_are_mapped)
{
        const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        static const uint64_t wrong[] = {0, 1, 4095, 4096, 4096 + 128 * 128, 4096 + 255 * 128,
                4096 + 257 * 128, 4096 + 256 * 128 + 1, 4096 + 384 * 128, 8192};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(wrong); i++)
                cr_assert_eq(map_of(wrong[i], all, UINT64_MAX), -EINVAL, "%zu", i);
        cr_assert_eq(map_of(rig_trace_file_bytes(512), all, rig_trace_file_bytes(512)), 0);
        cr_assert_eq(map_of(rig_trace_file_bytes(512), all, rig_trace_file_bytes(512) - 1), -E2BIG);
        cr_assert_eq(map_of(rig_trace_file_bytes(512), all, 0), -E2BIG);
        /* Its length is what was given, and no memory: it is mapped without being touched. */
        cr_assert_eq(map_of(rig_trace_file_bytes(UINT64_C(1) << 24), all, UINT64_MAX), 0);
}

/* ---------------------------------------------------------------- against the model */

struct model {
        uint64_t unread[RECORDS];
        uint64_t first, n, dropped, next;
};

static void model_write(struct model *m)
{
        write_number(m->next);
        if (m->n == RECORDS)
                m->dropped++;
        else
                m->unread[(m->first + m->n++) % RECORDS] = m->next;
        m->next++;
}

static void model_read(struct model *m, uint64_t seed)
{
        struct rig_trace_record got, want;
        bool there = rig_trace_ring_read(&reader, &got);

        cr_assert_eq(there, m->n > 0, "seed %llu", (unsigned long long)seed);
        if (!there)
                return;
        want = record_of(m->unread[m->first % RECORDS]);
        cr_assert_arr_eq(
                (uint8_t *)&got, (uint8_t *)&want, sizeof(got), "seed %llu", (unsigned long long)seed);
        m->first++;
        m->n--;
}

Test(ring, reads_what_was_written_and_drops_what_found_no_room)
{
        for (uint64_t seed = 1; seed <= 50; seed++) {
                static struct model m;
                uint64_t start;

                random_state = seed;
                start = UINT64_MAX - roll(2000);
                m = (struct model){0};
                open_both();
                if (seed % 2) { /* positions that come to where they begin again */
                        writer.head = writer.tail = reader.head = reader.tail = start;
                        reader.page->head = reader.page->tail = start;
                }
                for (int step = 0; step < 400; step++) {
                        uint64_t n = roll(roll(4) ? 20 : 2 * RECORDS);
                        bool writes = roll(100) < 50 + (seed % 3) * 10;

                        while (n-- > 0) {
                                if (writes)
                                        model_write(&m);
                                else
                                        model_read(&m, seed);
                        }
                }
                while (m.n > 0)
                        model_read(&m, seed);
                model_read(&m, seed);
                cr_assert_eq(rig_trace_ring_dropped(&reader), m.dropped);
                cr_assert_eq(writer.dropped, m.dropped);
                close_both();
        }
}

/* ---------------------------------------------------------------- hostile pages */

static uint64_t lie(uint64_t around)
{
        static const uint64_t far[] = {0, 1, RECORDS, UINT64_MAX, UINT64_C(1) << 63};

        return roll(2) ? around + roll(4 * RECORDS) - 2 * RECORDS : far[roll(RIG_ARRAY_SIZE(far))];
}

/*
 * Whatever the reader says, the writer drops exactly where the last tail that made sense leaves no room, and
 * its own counts are of what it did.
 */
Test(ring, a_writer_believes_no_tail_that_cannot_be)
{
        for (uint64_t seed = 1; seed <= 50; seed++) {
                uint64_t head = 0, tail = 0, dropped = 0, said = 0;

                random_state = seed;
                open_both();
                for (int step = 0; step < 20000; step++) {
                        if (roll(50) == 0) {
                                said = lie(head);
                                reader.page->tail = said;
                                reader.page->head = lie(head);
                                reader.page->dropped = roll(UINT64_MAX);
                        }
                        if (head - tail == RECORDS && said - tail <= RECORDS && said != tail)
                                tail = said;
                        write_number(step);
                        if (head - tail == RECORDS)
                                dropped++;
                        else
                                head++;
                        cr_assert(writer.head == head && writer.dropped == dropped, "seed %llu step %d",
                                (unsigned long long)seed, step);
                }
                close_both();
        }
}

Test(ring, a_reader_takes_no_more_than_a_ring_from_any_head)
{
        struct rig_trace_record record;
        uint64_t n;

        for (uint64_t seed = 1; seed <= 200; seed++) {
                random_state = seed;
                open_both();
                for (int step = 0; step < 20; step++) {
                        uint64_t tail = reader.tail, head = lie(tail), want;

                        memset(writer.records, (int)roll(256), RECORDS * sizeof(record));
                        writer.page->head = head;
                        want = head - tail <= RECORDS ? head - tail : 0;
                        for (n = 0; rig_trace_ring_read(&reader, &record); n++)
                                cr_assert_lt(n, RECORDS);
                        cr_assert_eq(n, want, "seed %llu", (unsigned long long)seed);
                }
                close_both();
        }
}

Test(ring, texts_end_within_their_record_whoever_wrote_them)
{
        struct rig_trace_record record;

        open_both();
        for (uint32_t kind = 0; kind < 6; kind++) {
                memset(&record, 'x', sizeof(record));
                record.kind = kind;
                rig_trace_ring_write(&writer, &record);
        }
        for (uint32_t kind = 0; kind < 6; kind++) {
                cr_assert(rig_trace_ring_read(&reader, &record));
                cr_assert_eq(record.kind, kind);
                if (kind == RIG_TRACE_DEVICE) {
                        cr_assert_eq(strnlen(record.opened.name, 64), 63);
                        cr_assert_eq(strnlen(record.opened.command, 16), 15);
                } else if (kind == RIG_TRACE_RUN) {
                        cr_assert_eq(
                                strnlen(record.run.name, RIG_TRACE_NAME_BYTES), RIG_TRACE_NAME_BYTES - 1);
                } else if (kind == RIG_TRACE_MEMORY) {
                        cr_assert_eq(strnlen(record.memory.adapter, 64), 63);
                }
        }
        close_both();
}
