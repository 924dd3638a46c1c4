/* SPDX-License-Identifier: ISC */
/*
 * The shared pages: what their seals keep, that the ring's bytes come twice in a row, and the arithmetic of
 * its positions. Descriptors and mappings are counted before and after.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "protocol/ring.h"

static size_t resources_at_start;

static size_t resources(void)
{
        char line[512];
        size_t n = 0;
        DIR *d = opendir("/proc/self/fd");
        FILE *f;

        cr_assert_not_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        f = fopen("/proc/self/maps", "re");
        cr_assert_not_null(f);
        while (fgets(line, sizeof(line), f))
                n += strstr(line, "memfd:rig-") != NULL;
        fclose(f);
        return n;
}

static void set_up(void)
{
        resources_at_start = resources();
}

static void tear_down(void)
{
        cr_assert_eq(resources(), resources_at_start, "a descriptor or a mapping leaks");
}

TestSuite(ring, .init = set_up, .fini = tear_down);

static int memfd_with(size_t bytes, int seals)
{
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

Test(ring, words_are_written_by_one_side_and_read_by_the_other)
{
        const struct rig_words *reader;
        struct rig_words *words;
        int fd;

        cr_assert_eq(rig_words_new(&fd, &words), 0);
        cr_assert_eq(rig_words_map(fd, &reader), 0);
        cr_assert_eq(atomic_load(&reader->word[61].signaled), 0);
        atomic_store(&words->word[61].signaled, 7);
        atomic_store(&words->head, 9);
        cr_assert_eq(atomic_load(&reader->word[61].signaled), 7);
        cr_assert_eq(atomic_load(&reader->head), 9);
        rig_words_unmap(reader);
        rig_words_unmap(words);
        close(fd);
}

Test(ring, M4_words_cannot_be_written_or_cut_through_their_descriptor)
{
        struct rig_words *words;
        int fd;

        cr_assert_eq(rig_words_new(&fd, &words), 0);
        cr_assert_eq(mmap(NULL, RIG_WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        cr_assert_eq(errno, EPERM);
        cr_assert_eq(pwrite(fd, "x", 1, 0), -1);
        cr_assert_eq(ftruncate(fd, 0), -1);
        cr_assert_eq(ftruncate(fd, 2 * RIG_WORDS_BYTES), -1);
        cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, RIG_WORDS_BYTES), -1);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
        atomic_store(&words->head, 1); /* the first mapping still can */
        rig_words_unmap(words);
        close(fd);
}

Test(ring, M4_a_mapping_of_words_cannot_be_made_writable)
{
        const struct rig_words *reader;
        struct rig_words *words;
        int fd;

        cr_assert_eq(rig_words_new(&fd, &words), 0);
        cr_assert_eq(rig_words_map(fd, &reader), 0);
        cr_assert_eq(mprotect((void *)(uintptr_t)reader, RIG_WORDS_BYTES, PROT_READ | PROT_WRITE), -1);
        rig_words_unmap(reader);
        rig_words_unmap(words);
        close(fd);
}

Test(ring, M4_a_ring_keeps_its_length)
{
        struct rig_ring *header;
        uint8_t *bytes;
        int fd;

        cr_assert_eq(rig_ring_new(&fd), 0);
        cr_assert_eq(ftruncate(fd, 4096), -1);
        cr_assert_eq(ftruncate(fd, 2 * RIG_RING_FILE_BYTES), -1);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
        cr_assert_eq(rig_ring_map(fd, &header, &bytes), 0);
        rig_ring_unmap(header);
        close(fd);
}

Test(ring, M4_pages_without_their_seals_or_of_another_length_are_not_mapped)
{
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, future_write = 0x0010;
        const struct rig_words *words;
        struct rig_ring *header;
        uint8_t *bytes;
        int fd, pipes[2];

        fd = memfd_with(RIG_RING_FILE_BYTES, F_SEAL_GROW | F_SEAL_SEAL);
        cr_assert_eq(rig_ring_map(fd, &header, &bytes), -EPERM);
        close(fd);
        fd = memfd_with(RIG_RING_FILE_BYTES - 4096, seals);
        cr_assert_eq(rig_ring_map(fd, &header, &bytes), -EPERM);
        close(fd);
        fd = memfd_with(RIG_RING_FILE_BYTES, seals);
        cr_assert_eq(rig_ring_map(fd, &header, &bytes), 0);
        rig_ring_unmap(header);
        close(fd);
        fd = memfd_with(RIG_WORDS_BYTES, seals);
        cr_assert_eq(rig_words_map(fd, &words), -EPERM);
        close(fd);
        fd = memfd_with(RIG_WORDS_BYTES + 4096, seals | future_write);
        cr_assert_eq(rig_words_map(fd, &words), -EPERM);
        close(fd);
        cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
        cr_assert_eq(rig_words_map(pipes[0], &words), -EPERM);
        cr_assert_eq(rig_ring_map(pipes[0], &header, &bytes), -EPERM);
        close(pipes[0]);
        close(pipes[1]);
}

Test(ring, the_bytes_come_twice_in_a_row_on_both_sides)
{
        struct rig_ring *mine, *yours;
        uint8_t *my_bytes, *your_bytes, out[64];
        int fd;

        cr_assert_eq(rig_ring_new(&fd), 0);
        cr_assert_eq(rig_ring_map(fd, &mine, &my_bytes), 0);
        cr_assert_eq(rig_ring_map(fd, &yours, &your_bytes), 0);
        close(fd);
        for (size_t i = 0; i < sizeof(out); i++) /* across the end */
                rig_ring_at(my_bytes, RIG_RING_BYTES - 32)[i] = (uint8_t)(i + 1);
        cr_assert_eq(my_bytes[0], 33);
        cr_assert_eq(your_bytes[RIG_RING_BYTES], 33);
        rig_ring_copy(your_bytes, 5 * (uint64_t)RIG_RING_BYTES - 32, sizeof(out), out);
        for (size_t i = 0; i < sizeof(out); i++)
                cr_assert_eq(out[i], i + 1);
        my_bytes[2 * RIG_RING_BYTES - 1] = 0xee; /* the last byte there is */
        cr_assert_eq(your_bytes[RIG_RING_BYTES - 1], 0xee);
        cr_assert_eq(atomic_load(&yours->tail), 0, "the header is no part of the bytes");
        atomic_store(&mine->tail, 64);
        cr_assert_eq(atomic_load(&yours->tail), 64);
        rig_ring_unmap(mine);
        rig_ring_unmap(yours);
}

Test(ring, S1_positions_that_lie_are_seen)
{
        cr_assert_not(rig_ring_lies(0, 0));
        cr_assert_not(rig_ring_lies(100, 100 + RIG_RING_BYTES));
        cr_assert(rig_ring_lies(100, 101 + RIG_RING_BYTES));
        cr_assert(rig_ring_lies(100, 99), "backwards");
        cr_assert(rig_ring_lies(0, UINT64_MAX));
        cr_assert(rig_ring_lies(UINT64_MAX, UINT64_MAX - 1));
}

Test(ring, room_is_what_is_not_taken_yet)
{
        cr_assert_eq(rig_ring_room(0, 0), RIG_RING_BYTES);
        cr_assert_eq(rig_ring_room(10, 30), RIG_RING_BYTES - 20);
        cr_assert_eq(rig_ring_room(10, 10 + (uint64_t)RIG_RING_BYTES), 0);
}

Test(ring, sleepers_sleep_on_the_half_that_changes)
{
        _Atomic uint64_t word = UINT64_C(0x1122334455667788);

        cr_assert_eq(atomic_load(rig_word_low(&word)), 0x55667788);
        cr_assert(rig_word_low_const(&word) == rig_word_low(&word));
        atomic_fetch_add(&word, 1);
        cr_assert_eq(atomic_load(rig_word_low(&word)), 0x55667789);
}

Test(ring, nothing_is_unmapped_of_nothing)
{
        rig_words_unmap(NULL);
        rig_ring_unmap(NULL);
}
