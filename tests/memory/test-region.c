/* SPDX-License-Identifier: ISC */
/* Host memory, ours and a client's: M2, M4. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/driver.h"
#include "daemon/memory/guard.h"
#include "daemon/order/order.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_SEAL)

static int memfd(off_t bytes, int seals)
{
        int fd = memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, bytes), 0);
        if (seals)
                cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

static int reopen(int fd, int flags)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, flags | O_CLOEXEC);
        cr_assert_geq(again, 0);
        return again;
}

/* Expects a refusal whose sentence has a word in it. */
static void refused(int fd, int error, const char *word)
{
        struct rig_region region = {0};
        struct rig_error e = RIG_ERROR_NULL;
        int r = rig_region_adopt_memfd(fd, &region, &e);

        cr_assert_eq(r, error, "%d: %s", r, e.text);
        cr_assert(strstr(e.text, word), "\"%s\" does not say %s", e.text, word);
        cr_assert_null(region.host, "a refusal changed something");
        if (fd >= 0)
                cr_assert_eq(close(fd), 0, "a refusal consumed the descriptor");
}

static struct rig_region adopted(int fd)
{
        struct rig_region region = {0};
        struct rig_error e = RIG_ERROR_NULL;

        cr_assert_eq(rig_region_adopt_memfd(fd, &region, &e), 0, "%s", e.text);
        return region;
}

/* ---------------------------------------------------------------- ours */

Test(region, memory_M2_a_new_region_is_zeros_sealed_and_whole_pages)
{
        struct rig_region region;
        struct rig_error e;

        cr_assert_eq(rig_region_alloc_host(5000, &region, &e), 0);
        cr_assert_eq(region.bytes, 8192);
        cr_assert_eq(region.address, (uintptr_t)region.host);
        cr_assert_eq(region.access, RIG_ACCESS_READ | RIG_ACCESS_WRITE);
        for (unsigned i = 0; i < 8192; i++)
                cr_assert_eq(((uint8_t *)region.host)[i], 0);
        cr_assert_eq(ftruncate(region.fd, 4096), -1);
        cr_assert_eq(ftruncate(region.fd, 16384), -1);
        cr_assert_eq(fcntl(region.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
        cr_assert_neq(fcntl(region.fd, F_GETFD) & FD_CLOEXEC, 0);
        rig_region_free_host(&region);
        cr_assert_eq(region.fd, -EBADF);
}

Test(region, freeing_gives_the_pages_back_even_where_a_client_keeps_the_descriptor)
{
        struct rig_region region;
        struct stat before, after;
        int kept;

        cr_assert_eq(rig_region_alloc_host(1 << 20, &region, NULL), 0);
        memset(region.host, 1, 1 << 20);
        kept = fcntl(region.fd, F_DUPFD_CLOEXEC, 0);
        cr_assert_eq(fstat(kept, &before), 0);
        rig_region_free_host(&region);
        cr_assert_eq(fstat(kept, &after), 0);
        cr_assert(before.st_blocks > 0 && after.st_blocks == 0, "%ld blocks, then %ld",
                (long)before.st_blocks, (long)after.st_blocks);
        close(kept);
}

Test(region, sizes_that_no_memory_has_are_refused)
{
        struct rig_region region;
        struct rig_error e = RIG_ERROR_NULL;

        cr_assert_eq(rig_region_alloc_host(UINT64_MAX, &region, &e), -ENOMEM);
        cr_assert_eq(rig_region_alloc_host(UINT64_C(1) << 62, &region, &e), -ENOMEM);
        cr_assert(e.text[0]);
}

/* ---------------------------------------------------------------- a client's */

Test(region, memory_M4_a_sealed_memfd_is_adopted_and_shared)
{
        int fd = memfd(10000, SEALS), own = reopen(fd, O_RDWR);
        struct rig_region region = adopted(fd);
        uint8_t byte = 0x42;

        cr_assert_eq(region.bytes, 10000);
        cr_assert_eq(region.fd, fd);
        cr_assert_eq(region.access, RIG_ACCESS_READ | RIG_ACCESS_WRITE);
        cr_assert_eq(pwrite(own, &byte, 1, 9999), 1);
        cr_assert_eq(((uint8_t *)region.host)[9999], 0x42);
        ((uint8_t *)region.host)[0] = 0x24;
        cr_assert_eq(pread(own, &byte, 1, 0), 1);
        cr_assert_eq(byte, 0x24);
        rig_region_free_host(&region);
        cr_assert_eq(pread(own, &byte, 1, 0), 1);
        cr_assert_eq(byte, 0x24, "a client's bytes were taken with the region");
        close(own);
}

Test(region, memory_M4_memfds_that_could_shrink_are_refused)
{
        refused(memfd(4096, 0), -EPERM, "F_SEAL_SHRINK");
        refused(memfd(4096, F_SEAL_GROW), -EPERM, "F_SEAL_SHRINK");
        refused(memfd(4096, F_SEAL_SHRINK), -EPERM, "F_SEAL_SEAL");
        refused(memfd(4096, F_SEAL_SEAL), -EPERM, "MFD_ALLOW_SEALING");
        refused(memfd_create("client", MFD_CLOEXEC), -EPERM, "MFD_ALLOW_SEALING");
}

Test(region, memory_M4_what_is_no_memfd_is_refused)
{
        int pipes[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
        refused(file, -EBADF, "memfd");
        refused(pipes[0], -EBADF, "memfd");
        refused(pipes[1], -EBADF, "memfd");
        refused(open("/dev/null", O_RDWR | O_CLOEXEC), -EBADF, "memfd");
        refused(open("/", O_RDONLY | O_CLOEXEC), -EBADF, "memfd");
        refused(-1, -EBADF, "memfd");
        refused(memfd(0, SEALS), -EINVAL, "ftruncate");
}

Test(region, memory_M4_access_is_how_it_was_opened_and_sealed)
{
        int fd = memfd(4096, SEALS), sealed = memfd(4096, SEALS | F_SEAL_WRITE),
            future = memfd(4096, SEALS | F_SEAL_FUTURE_WRITE);
        int read_only = reopen(fd, O_RDONLY), write_only = reopen(fd, O_WRONLY), path = reopen(fd, O_PATH);
        struct rig_region region;

        refused(write_only, -EPERM, "write only");
        refused(path, -EBADF, "memfd");
        for (unsigned i = 0; i < 3; i++) {
                region = adopted(i == 0 ? read_only : i == 1 ? sealed : future);
                cr_assert_eq(region.access, RIG_ACCESS_READ, "memfd %u", i);
                cr_assert_eq(*(volatile uint8_t *)region.host, 0);
                rig_region_free_host(&region);
        }
        close(fd);
}

Test(region, memory_M4_huge_pages_are_refused)
{
        int fd = memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

        if (fd < 0)
                cr_skip_test("this kernel makes no memfd of huge pages");
        cr_assert_eq(ftruncate(fd, 0), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
        refused(fd, -EPERM, "MFD_HUGETLB");
}

Test(region, memory_M4_a_hole_punched_by_the_client_reads_as_zeros)
{
        int fd = memfd(1 << 20, SEALS), own = reopen(fd, O_RDWR);
        struct rig_region region = adopted(fd);

        memset(region.host, 0xff, 1 << 20);
        cr_assert_eq(fallocate(own, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20), 0);
        for (unsigned i = 0; i < 1 << 20; i += 4096)
                cr_assert_eq(((volatile uint8_t *)region.host)[i], 0);
        ((volatile uint8_t *)region.host)[5000] = 1;
        rig_region_free_host(&region);
        close(own);
}

/* ---------------------------------------------------------------- the guard */

/* A mapping whose pages are gone: what a failed page of a memfd looks like, on demand. */
static uint8_t *torn_mapping(size_t bytes, int *ret_fd)
{
        int fd = memfd_create("torn", MFD_CLOEXEC);
        uint8_t *host;

        cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
        host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert_neq(host, (uint8_t *)MAP_FAILED);
        memset(host, 0xee, bytes);
        cr_assert_eq(ftruncate(fd, 4096), 0);
        *ret_fd = fd;
        return host;
}

Test(guard, memory_M4_a_page_that_fails_becomes_zeros_and_nothing_ends)
{
        struct rig_guard *guard;
        int fd;
        volatile uint8_t *host = torn_mapping(4 * 4096, &fd);

        cr_assert_eq(rig_guard_add((void *)(uintptr_t)host, 4 * 4096, &guard), 0);
        cr_assert_eq(host[0], 0xee, "a page that is there was taken");
        cr_assert_eq(host[4096 + 17], 0);
        host[2 * 4096 + 5] = 7;
        cr_assert_eq(host[2 * 4096 + 5], 7);
        memset((void *)(uintptr_t)(host + 4096), 1, 3 * 4096);
        cr_assert_eq(host[0], 0xee);
        rig_guard_remove(guard);
        munmap((void *)(uintptr_t)host, 4 * 4096);
        close(fd);
}

Test(guard, a_page_that_is_not_guarded_ends_the_process_as_ever, .signal = SIGBUS)
{
        struct rig_guard *guard;
        int fd, other;
        volatile uint8_t *host = torn_mapping(2 * 4096, &fd), *guarded = torn_mapping(2 * 4096, &other);

        signal(SIGBUS, SIG_DFL); /* a sanitizer has a handler of its own, which would be found */
        cr_assert_eq(rig_guard_add((void *)(uintptr_t)guarded, 2 * 4096, &guard), 0);
        cr_assert_eq(guarded[4096], 0);
        (void)host[4096];
}

Test(guard, a_mapping_is_guarded_no_longer_than_it_says, .signal = SIGBUS)
{
        struct rig_guard *guard;
        int fd;
        volatile uint8_t *host = torn_mapping(3 * 4096, &fd);

        signal(SIGBUS, SIG_DFL);
        cr_assert_eq(rig_guard_add((void *)(uintptr_t)host, 3 * 4096, &guard), 0);
        cr_assert_eq(host[4096], 0);
        rig_guard_remove(guard);
        (void)host[2 * 4096];
}

Test(guard, many_mappings_are_guarded)
{
        enum { MAPPINGS = 2500 };
        static struct rig_guard *guards[MAPPINGS];
        static uint8_t *hosts[MAPPINGS];
        int fd;

        for (unsigned i = 0; i < MAPPINGS; i++) {
                hosts[i] = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                cr_assert_eq(rig_guard_add(hosts[i], 4096, &guards[i]), 0);
        }
        for (unsigned i = 0; i < MAPPINGS; i += 2)
                rig_guard_remove(guards[i]);
        for (unsigned i = 0; i < MAPPINGS; i += 2)
                cr_assert_eq(rig_guard_add(hosts[i], 4096, &guards[i]), 0);
        for (unsigned i = 0; i < MAPPINGS; i++) {
                rig_guard_remove(guards[i]);
                munmap(hosts[i], 4096);
        }
        hosts[0] = torn_mapping(2 * 4096, &fd);
        cr_assert_eq(rig_guard_add(hosts[0], 2 * 4096, &guards[0]), 0);
        cr_assert_eq(*(volatile uint8_t *)(hosts[0] + 4096), 0);
        rig_guard_remove(guards[0]);
        munmap(hosts[0], 2 * 4096);
        close(fd);
}
