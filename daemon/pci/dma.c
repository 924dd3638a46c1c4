/* SPDX-License-Identifier: ISC */
/*
 * What is mapped for a function: where its IOMMU, or its model, is told of memfds.
 *
 * Two books. Addresses that nobody asked for come from an allocator of ranges; every mapping, wherever it
 * is, is in a tree ordered by address, in which two that overlap compare as equal: so it finds what is in
 * the way of a new one, and which one an access falls into, in time that grows with the logarithm of their
 * number.
 *
 * The tree has a lock, because models read and write by messages on a thread of their own. A mapping leaves
 * the tree before the way is told and before its memory goes, so that no such access finds memory that is
 * gone.
 *
 * Memory is a sealed memfd of our own, or the caller's. Deliberately not here: pinning, which the kernel
 * does for an IOMMU, and physical addresses.
 */
#include "daemon/pci/dma.h"

#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/memory/ranges.h"
#include "daemon/pci/transport.h"

#define FIRST_ADDRESS (UINT64_C(1) << 32)
#define END_ADDRESS   (UINT64_C(1) << 38)
#define DMA_PAGE      UINT64_C(4096) /* of addresses: every IOMMU has it */

struct rig_dma_space {
        pthread_mutex_t lock;
        void *tree;                /* under it: of struct mapping */
        struct rig_ranges *ranges; /* of [start, end): what is taken of it */
        uint64_t start, end;
};

struct mapping {
        uint64_t first, last; /* addresses */
        uint8_t *host;
        bool read_only;
        bool placed; /* `first` came from the ranges, or was taken there */
        struct rig_dma_range range;
};

/* Mappings that overlap are equal, so the tree never has two of them. */
static int compare(const void *a, const void *b)
{
        const struct mapping *x = a, *y = b;

        return x->last < y->first ? -1 : x->first > y->last ? 1 : 0;
}

struct rig_dma_space *rig_dma_space_new(void)
{
        struct rig_dma_space *space = calloc(1, sizeof(*space));

        if (!space)
                return NULL;
        pthread_mutex_init(&space->lock, NULL);
        if (rig_dma_space_bounds(space, FIRST_ADDRESS, END_ADDRESS) < 0)
                return rig_dma_space_free(space);
        return space;
}

struct rig_dma_space *rig_dma_space_free(struct rig_dma_space *space)
{
        if (!space)
                return NULL;
        rig_assert(!space->tree);
        rig_ranges_free(space->ranges);
        pthread_mutex_destroy(&space->lock);
        free(space);
        return NULL;
}

int rig_dma_space_bounds(struct rig_dma_space *space, uint64_t start, uint64_t end)
{
        struct rig_ranges *ranges;
        int r;

        rig_assert(!space->tree);
        r = rig_ranges_new(start, end - start, DMA_PAGE, &ranges);
        if (r < 0)
                return r;
        rig_ranges_free(space->ranges);
        space->ranges = ranges;
        space->start = start;
        space->end = end;
        return 0;
}

/* ---------------------------------------------------------------- addresses */

/* The part of a mapping that lies where addresses are handed out is taken there. */
static int take_place(struct rig_dma_space *space, struct mapping *m)
{
        uint64_t first = RIG_MAX(m->first, space->start), last = RIG_MIN(m->last, space->end - 1);
        int r;

        if (first > last)
                return 0;
        r = rig_ranges_alloc_at(space->ranges, first, last - first + 1);
        m->placed = r == 0;
        return r == -EBUSY ? -EEXIST : r;
}

static void give_place(struct rig_dma_space *space, struct mapping *m)
{
        if (m->placed)
                rig_ranges_return(space->ranges, RIG_MAX(m->first, space->start));
        m->placed = false;
}

static int choose_address(struct rig_pci *pci, struct mapping *m, uint64_t bytes, unsigned flags,
        uint64_t address, struct rig_error *e)
{
        struct rig_dma_space *space = pci->space;
        /* a buffer of whole large pages gets an address at which they can be mapped as such */
        uint64_t alignment = bytes % (2u << 20) == 0 ? 2u << 20 : DMA_PAGE;
        int r = 0;

        if (!(flags & RIG_DMA_AT)) {
                r = rig_ranges_alloc(space->ranges, bytes, alignment, &address);
                if (r < 0)
                        return rig_error_set(e, -ENOSPC,
                                "%s: no 0x%" PRIx64 " addresses are left for it between 0x%" PRIx64
                                " and 0x%" PRIx64,
                                pci->name, bytes, space->start, space->end);
                m->placed = true;
        }
        m->first = address;
        if (rig_add_overflow(address, bytes - 1, &m->last))
                return rig_error_set(e, -EINVAL, "%s: 0x%" PRIx64 " bytes at 0x%" PRIx64 " leave 64 bits",
                        pci->name, bytes, address);
        if (!m->placed)
                r = take_place(space, m);
        if (r < 0)
                return rig_error_set(
                        e, r, "%s: something is mapped for it at 0x%" PRIx64 " already", pci->name, address);
        return 0;
}

/* ---------------------------------------------------------------- the tree */

/* -EEXIST: another one overlaps. */
static int enter(struct rig_dma_space *space, struct mapping *m)
{
        struct mapping **found;

        pthread_mutex_lock(&space->lock);
        found = tsearch(m, &space->tree, compare);
        pthread_mutex_unlock(&space->lock);
        return !found ? -ENOMEM : *found != m ? -EEXIST : 0;
}

static void leave(struct rig_dma_space *space, struct mapping *m)
{
        pthread_mutex_lock(&space->lock);
        tdelete(m, &space->tree, compare);
        pthread_mutex_unlock(&space->lock);
}

/* Under the lock. */
static struct mapping *mapping_at(struct rig_dma_space *space, uint64_t address)
{
        struct mapping key = {.first = address, .last = address},
                       **found = tfind(&key, &space->tree, compare);

        return found ? *found : NULL;
}

/* Under the lock: whether the function may do it to all of [address, address + bytes). */
static bool may_access(struct rig_dma_space *space, bool write, uint64_t address, uint64_t bytes)
{
        uint64_t last;

        if (!bytes)
                return true;
        if (rig_add_overflow(address, bytes - 1, &last))
                return false;
        for (;;) {
                const struct mapping *m = mapping_at(space, address);

                if (!m || (write && m->read_only))
                        return false;
                if (m->last >= last)
                        return true;
                address = m->last + 1;
        }
}

/*
 * As a device's accesses are: each aligned word of memory at once, so that one who polls it sees all of the
 * word or none, and in ascending order. They are ordered with the program's by messages on a socket, which
 * is outside what a sanitizer of threads knows of.
 */
__attribute__((no_sanitize("thread"))) static void copy_as_device(
        uint8_t *memory, uint8_t *data, bool write, uint64_t bytes)
{
        uint64_t word;

        while (bytes && ((uintptr_t)memory % sizeof(word) || bytes < sizeof(word))) {
                if (write)
                        *(volatile uint8_t *)memory = *data;
                else
                        *data = *(volatile uint8_t *)memory;
                memory++;
                data++;
                bytes--;
        }
        for (; bytes >= sizeof(word); memory += sizeof(word), data += sizeof(word), bytes -= sizeof(word)) {
                if (write) {
                        __builtin_memcpy(&word, data, sizeof(word));
                        *(volatile uint64_t *)(void *)memory = word;
                } else {
                        word = *(volatile uint64_t *)(void *)memory;
                        __builtin_memcpy(data, &word, sizeof(word));
                }
        }
        if (bytes)
                copy_as_device(memory, data, write, bytes);
}

int rig_dma_space_copy(struct rig_dma_space *space, bool write, uint64_t address, void *data, uint64_t bytes)
{
        int r = 0;

        pthread_mutex_lock(&space->lock);
        if (!may_access(space, write, address, bytes))
                r = -EFAULT;
        for (uint8_t *p = data; r == 0 && bytes;) {
                const struct mapping *m = mapping_at(space, address);
                uint64_t part = RIG_MIN(bytes, m->last - address + 1);

                copy_as_device(m->host + (address - m->first), p, write, part);
                p += part;
                address += part;
                bytes -= part;
        }
        pthread_mutex_unlock(&space->lock);
        return r;
}

/* ---------------------------------------------------------------- mapping */

static int enter_and_tell(struct rig_pci *pci, struct mapping *m, const struct rig_dma *dma, int fd,
        uint64_t offset, unsigned flags, struct rig_error *e)
{
        int r = enter(pci->space, m);

        if (r == -EEXIST)
                return rig_error_set(e, r, "%s: something is mapped for it at 0x%" PRIx64 " already",
                        pci->name, m->first);
        if (r < 0)
                return rig_error_set(e, r, "%s: no memory to remember a mapping", pci->name);
        r = pci->ops->dma_map(pci, dma, fd, offset, flags, e);
        if (r < 0)
                leave(pci->space, m);
        return r;
}

static int map(struct rig_pci *pci, int fd, uint64_t offset, uint64_t bytes, unsigned flags,
        uint64_t address, struct rig_dma *ret_dma, struct rig_error *e)
{
        _cleanup_(rig_freep) struct mapping *m = calloc(1, sizeof(*m));
        struct rig_dma dma = {.bytes = bytes, .n_ranges = 1, .pci = pci, .own = m};
        int r;

        if (!m)
                return rig_error_set(e, -ENOMEM, "%s: no memory to remember a mapping", pci->name);
        dma.host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
        if (dma.host == MAP_FAILED)
                return rig_error_set(e, -errno,
                        "%s: %" PRIu64 " bytes of memory could not be mapped here: %s", pci->name, bytes,
                        strerror(errno));
        m->host = dma.host;
        m->read_only = flags & RIG_DMA_READ_ONLY;
        r = choose_address(pci, m, bytes, flags, address, e);
        if (r == 0) {
                m->range = (struct rig_dma_range){m->first, bytes};
                dma.ranges = &m->range;
                r = enter_and_tell(pci, m, &dma, fd, offset, flags, e);
        }
        if (r < 0) {
                give_place(pci->space, m);
                munmap(dma.host, bytes);
                return r;
        }
        RIG_STEAL(m);
        *ret_dma = dma;
        return 0;
}

static int check(const struct rig_pci *pci, uint64_t offset, uint64_t bytes, unsigned flags,
        uint64_t address, struct rig_error *e)
{
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        if (!bytes || bytes > INT64_MAX - page || offset > INT64_MAX - bytes || offset % page ||
                (flags & RIG_DMA_AT && address % page))
                return rig_error_set(e, -EINVAL,
                        "%s: memory is mapped for it in whole pages, and not 0x%" PRIx64
                        " bytes from 0x%" PRIx64 " on",
                        pci->name, bytes, flags & RIG_DMA_AT ? address : offset);
        return 0;
}

int rig_dma_map(struct rig_pci *pci, int fd, uint64_t offset, uint64_t bytes, unsigned flags,
        uint64_t address, struct rig_dma *ret_dma, struct rig_error *e)
{
        int r = check(pci, offset, bytes, flags, address, e);

        if (r == 0 && bytes % (uint64_t)sysconf(_SC_PAGESIZE))
                r = rig_error_set(
                        e, -EINVAL, "%s: 0x%" PRIx64 " bytes are not whole pages", pci->name, bytes);
        if (r < 0)
                return r;
        if (pci->ops->dma_new)
                return rig_error_set(e, -EOPNOTSUPP,
                        "%s is taken physically: memory that was not made for it has no address for it",
                        pci->name);
        return map(pci, fd, offset, bytes, flags, address, ret_dma, e);
}

static int make_memfd(const struct rig_pci *pci, uint64_t bytes, struct rig_error *e)
{
        int fd = memfd_create("rig-dma", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

        if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
                return fd;
        r = errno == EFBIG ? -ENOMEM : -errno;
        rig_close(fd);
        return rig_error_set(e, r, "%s: a memfd of %" PRIu64 " bytes could not be made: %s", pci->name,
                bytes, strerror(-r));
}

int rig_dma_new(struct rig_pci *pci, uint64_t bytes, unsigned flags, uint64_t address,
        struct rig_dma *ret_dma, struct rig_error *e)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        int r = check(pci, 0, bytes, flags, address, e);

        if (r < 0)
                return r;
        if (pci->ops->dma_new && flags & RIG_DMA_AT)
                return rig_error_set(e, -EOPNOTSUPP,
                        "%s is taken physically: its memory is where the machine has it", pci->name);
        if (pci->ops->dma_new)
                return pci->ops->dma_new(pci, bytes, flags, ret_dma, e);
        bytes = rig_round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
        fd = make_memfd(pci, bytes, e);
        return fd < 0 ? fd : map(pci, fd, 0, bytes, flags, address, ret_dma, e);
}

void rig_dma_free(struct rig_dma *dma)
{
        struct rig_pci *pci = dma->pci;
        struct mapping *m = dma->own;

        if (!pci)
                return;
        if (pci->ops->dma_free) {
                pci->ops->dma_free(pci, dma);
        } else {
                leave(pci->space, m);
                pci->ops->dma_unmap(pci, dma);
                give_place(pci->space, m);
                munmap(dma->host, dma->bytes);
                free(m);
        }
        *dma = (struct rig_dma){0};
}
