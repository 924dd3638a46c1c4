/* SPDX-License-Identifier: ISC */
/*
 * Making and mapping shared pages.
 *
 * Invariants: pages are sealed before their descriptor leaves this process, so that no access to them can
 * fault; and what is mapped was checked to be that long and so sealed. The words are mapped to write before
 * F_SEAL_FUTURE_WRITE, which leaves that mapping the only one of its kind.
 *
 * It does not read or write the pages: their protocol is in shared.h and is their users' to keep.
 */
#include "protocol/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define RING_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define WORDS_SEALS  (RING_SEALS | F_SEAL_FUTURE_WRITE)
#define HEADER_BYTES (RIG_RING_FILE_BYTES - RIG_RING_BYTES)

static int memfd_new(const char *name, size_t bytes)
{
        _cleanup_(rig_closep) int fd = -EBADF;

        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
                fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)bytes) < 0)
                return -errno;
        return rig_steal_fd(&fd);
}

/* Maps `bytes` of `fd` from `offset`; at `at` where that is not NULL, in place of what is there. */
static int map(void *at, int fd, size_t offset, size_t bytes, int prot, void **ret)
{
        int flags = MAP_SHARED | MAP_POPULATE | (at ? MAP_FIXED : 0);
        void *p;

        p = mmap(at, bytes, prot, flags, fd, (off_t)offset);
        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        return 0;
}

static int check_sealed(int fd, int seals, size_t bytes)
{
        struct stat st;
        int have;

        have = fcntl(fd, F_GET_SEALS);
        if (have < 0 || (have & seals) != seals)
                return -EPERM;
        if (fstat(fd, &st) < 0)
                return -errno;
        return st.st_size == (off_t)bytes ? 0 : -EPERM;
}

int rig_words_new(int *ret_fd, struct rig_words **ret_words)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        void *words = NULL;
        int res;

        fd = memfd_new("rig-words", RIG_WORDS_BYTES);
        if (fd < 0)
                return fd;
        res = map(NULL, fd, 0, RIG_WORDS_BYTES, PROT_READ | PROT_WRITE, &words);
        if (res < 0)
                return res;
        if (fcntl(fd, F_ADD_SEALS, WORDS_SEALS) < 0) {
                res = errno == EINVAL ? -EOPNOTSUPP : -errno;
                munmap(words, RIG_WORDS_BYTES);
                return res;
        }
        *ret_fd = rig_steal_fd(&fd);
        *ret_words = words;
        return 0;
}

int rig_words_map(int fd, const struct rig_words **ret_words)
{
        void *words = NULL;
        int res;

        res = check_sealed(fd, WORDS_SEALS, RIG_WORDS_BYTES);
        if (res < 0)
                return res;
        res = map(NULL, fd, 0, RIG_WORDS_BYTES, PROT_READ, &words);
        if (res < 0)
                return res;
        *ret_words = words;
        return 0;
}

void rig_words_unmap(const struct rig_words *words)
{
        void *p;

        if (!words)
                return;
        memcpy(&p, &words, sizeof(p)); /* munmap() wants it without const */
        munmap(p, RIG_WORDS_BYTES);
}

int rig_ring_new(int *ret_fd)
{
        _cleanup_(rig_closep) int fd = -EBADF;

        fd = memfd_new("rig-ring", RIG_RING_FILE_BYTES);
        if (fd < 0)
                return fd;
        if (fcntl(fd, F_ADD_SEALS, RING_SEALS) < 0)
                return -errno;
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

int rig_ring_map(int fd, struct rig_ring **ret_header, uint8_t **ret_bytes)
{
        const int prot = PROT_READ | PROT_WRITE;
        char *base;
        void *p;
        int res;

        if (sysconf(_SC_PAGESIZE) > (long)HEADER_BYTES)
                return -EOPNOTSUPP;
        res = check_sealed(fd, RING_SEALS, RIG_RING_FILE_BYTES);
        if (res < 0)
                return res;
        /* Reserve the whole, so that the two halves have a place beside each other. */
        p = mmap(NULL, RIG_RING_FILE_BYTES + RIG_RING_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return -errno;
        base = p;
        res = map(base, fd, 0, RIG_RING_FILE_BYTES, prot, &p);
        if (res == 0)
                res = map(base + RIG_RING_FILE_BYTES, fd, HEADER_BYTES, RIG_RING_BYTES, prot, &p);
        if (res < 0) {
                munmap(base, RIG_RING_FILE_BYTES + RIG_RING_BYTES);
                return res;
        }
        *ret_header = (struct rig_ring *)(void *)base;
        *ret_bytes = (uint8_t *)base + HEADER_BYTES;
        return 0;
}

void rig_ring_unmap(struct rig_ring *header)
{
        if (header)
                munmap(header, RIG_RING_FILE_BYTES + RIG_RING_BYTES);
}
