/* SPDX-License-Identifier: ISC */
/*
 * Memory that is the host's: a memfd, sealed and mapped, that a client can map as well. The last section of
 * driver.h. Two kinds: a region we made, and one over a memfd that a client made (M4).
 *
 * What a client's memfd could do to rigd, and what stands against it:
 *
 *   - Shrink under a copy, a SIGBUS: refused unless F_SEAL_SHRINK and F_SEAL_SEAL are set, so that it only
 *     grows and keeps its seals. A region is as long as the memfd was when it was adopted.
 *   - Lack a huge page when one is touched, a SIGBUS: memory of hugetlbfs is refused.
 *   - Be a file on a file system that stalls or lies: only files with seals are taken, which are the
 *     kernel's own. (A file on a tmpfs, which may be full, is born with F_SEAL_SEAL and never gets to
 *     F_SEAL_SHRINK.)
 *   - Have holes: legal, and so is punching more. A hole reads as zeros, and takes a page when it is
 *     touched, which counts in the memory cgroup of whoever touches it first: that may be rigd.
 *   - Fail a touched page for want of commit, swap or hardware, a SIGBUS: mappings are guarded (guard.h).
 *   - Be write-sealed or opened to read only: it is mapped so, and the region admits reads alone.
 *
 * A region we made is sealed against resizing; what a client writes beside its work, or punches out, is its
 * own. Its pages start as zeros because the kernel makes them so. When it goes, its pages are given back
 * even where a client kept the descriptor: what the client touches after that is the client's own memory.
 *
 * Deliberately not here: budgets and shares. Whoever adopts bounds the lengths, and with them the pages and
 * the addresses, that one client can make rigd hold. Nor caches, nor huge pages.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "daemon/driver.h"
#include "daemon/memory/guard.h"
#include "daemon/order/order.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* region->drv */
struct host_region {
        struct rig_guard *guard; /* of its mapping */
        bool ours;               /* we made the memfd; else a client did */
};

static uint64_t page_round_up(uint64_t bytes)
{
        return rig_round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Old kernels do not know MFD_NOEXEC_SEAL, and refuse what they do not know. */
static int create_memfd(void)
{
        int fd = memfd_create("rig", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("rig", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        return fd < 0 ? -errno : fd;
}

/* Maps `bytes` of a memfd, guarded, as a region. `fd` is consumed on success. */
static int map_region(
        int fd, uint64_t bytes, uint32_t access, bool write_sealed, bool ours, struct rig_region *ret_region)
{
        _cleanup_(rig_freep) struct host_region *own = malloc(sizeof(*own));
        int protection = PROT_READ | (access & RIG_ACCESS_WRITE ? PROT_WRITE : 0);
        /* a shared mapping of what F_SEAL_WRITE sealed is refused by kernels before 6.7: it could be made
         * writable. Nobody can write it, so that a private mapping shows the same bytes */
        int flags = write_sealed ? MAP_PRIVATE : MAP_SHARED;
        void *host;

        if (!own)
                return -ENOMEM;
        own->ours = ours;
        host = mmap(NULL, bytes, protection, flags | MAP_NORESERVE, fd, 0);
        if (host == MAP_FAILED)
                return -errno;
        if (rig_guard_add(host, page_round_up(bytes), &own->guard) < 0) {
                munmap(host, bytes);
                return -ENOMEM;
        }
        *ret_region = (struct rig_region){
                .bytes = bytes,
                .address = (uintptr_t)host,
                .host = host,
                .fd = fd,
                .access = access,
                .drv = RIG_STEAL(own),
        };
        return 0;
}

int rig_region_alloc_host(uint64_t bytes, struct rig_region *ret_region, struct rig_error *e)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        uint64_t whole = page_round_up(bytes);
        int r;

        rig_assert(bytes > 0);
        if (whole < bytes || whole > INT64_MAX)
                return rig_error_set(e, -ENOMEM, "%" PRIu64 " bytes are more than a memory can have", bytes);
        fd = create_memfd();
        if (fd < 0)
                return rig_error_set(e, fd, "a memfd could not be made: %s", strerror(-fd));
        if (ftruncate(fd, (off_t)whole) < 0 ||
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
                r = -errno;
                return rig_error_set(
                        e, r, "a memfd of %" PRIu64 " bytes could not be set up: %s", whole, strerror(-r));
        }
        r = map_region(fd, whole, RIG_ACCESS_READ | RIG_ACCESS_WRITE, false, true, ret_region);
        if (r < 0)
                return rig_error_set(e, r, "%" PRIu64 " bytes could not be mapped: %s", whole, strerror(-r));
        rig_steal_fd(&fd);
        return 0;
}

/* What a memfd that cannot be resized admits, from its seals and from how it was opened. */
static int check_seals(int fd, uint32_t *ret_access, bool *ret_write_sealed, struct rig_error *e)
{
        int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);

        if (seals < 0 || mode < 0)
                return rig_error_set(
                        e, -EBADF, "the descriptor is no memfd: memory is adopted from memfd_create()");
        if ((seals & (F_SEAL_SHRINK | F_SEAL_SEAL)) == F_SEAL_SEAL)
                return rig_error_set(e, -EPERM,
                        "the memfd may shrink and takes no more seals: make it with MFD_ALLOW_SEALING, and "
                        "set "
                        "F_SEAL_SHRINK with F_SEAL_SEAL or before it");
        if (!(seals & F_SEAL_SHRINK))
                return rig_error_set(e, -EPERM,
                        "the memfd may shrink: set F_SEAL_SHRINK and F_SEAL_SEAL with fcntl(fd, "
                        "F_ADD_SEALS, ...)");
        if (!(seals & F_SEAL_SEAL))
                return rig_error_set(e, -EPERM,
                        "the memfd's seals may change: set F_SEAL_SEAL with fcntl(fd, F_ADD_SEALS, ...)");
        if ((mode & O_ACCMODE) == O_WRONLY)
                return rig_error_set(
                        e, -EPERM, "the memfd was opened to write only: memory must be readable");
        *ret_access = RIG_ACCESS_READ;
        if ((mode & O_ACCMODE) == O_RDWR && !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
                *ret_access |= RIG_ACCESS_WRITE;
        *ret_write_sealed = seals & F_SEAL_WRITE;
        return 0;
}

int rig_region_adopt_memfd(int fd, struct rig_region *ret_region, struct rig_error *e)
{
        bool write_sealed = false;
        uint32_t access = 0;
        struct statfs fs;
        struct stat file;
        int r;

        r = check_seals(fd, &access, &write_sealed, e);
        if (r < 0)
                return r;
        if (fstat(fd, &file) < 0 || fstatfs(fd, &fs) < 0)
                return rig_error_set(e, -EBADF, "the descriptor cannot be looked at: %s", strerror(errno));
        if (fs.f_type == HUGETLBFS_MAGIC)
                return rig_error_set(e, -EPERM,
                        "the memfd is of huge pages, which may run out when they are touched: make it "
                        "without "
                        "MFD_HUGETLB");
        if (!S_ISREG(file.st_mode))
                return rig_error_set(
                        e, -EBADF, "the descriptor is no memfd: memory is adopted from memfd_create()");
        if (file.st_size == 0)
                return rig_error_set(
                        e, -EINVAL, "the memfd has no bytes: set its length with ftruncate() first");
        r = map_region(fd, (uint64_t)file.st_size, access, write_sealed, false, ret_region);
        if (r < 0)
                return rig_error_set(e, r, "the memfd's %" PRIu64 " bytes could not be mapped: %s",
                        (uint64_t)file.st_size, strerror(-r));
        return 0;
}

void rig_region_free_host(struct rig_region *region)
{
        struct host_region *own = region->drv;

        rig_guard_remove(own->guard);
        munmap(region->host, page_round_up(region->bytes));
        /* a failure leaves the pages to the client that holds them, where its memory cgroup counts them */
        if (own->ours)
                (void)!fallocate(
                        region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)region->bytes);
        free(own);
        region->fd = rig_close(region->fd);
        region->host = NULL;
        region->drv = NULL;
}
