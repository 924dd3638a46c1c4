/* SPDX-License-Identifier: ISC */
/*
 * Memory for a function that addresses it physically: huge pages of a file of hugetlbfs, which the kernel
 * neither swaps out nor moves while nobody asks it to compact them, and whose addresses /proc/self/pagemap
 * tells root.
 *
 * The file has the function's name and outlives this process: while it is there its pages are nobody else's,
 * so that a function which goes on writing after its process was killed writes into memory of no one. It
 * goes once the function was reset.
 *
 * The file grows by whole huge pages, at the end of one range of addresses of this process that is reserved
 * for it. Parts of 4096 bytes are handed out of it by a range allocator over offsets in the file. Contiguous
 * memory lies in one huge page, or in several of which the kernel happened to give one after the other:
 * fresh ones are asked for, and looked at.
 *
 * Deliberately not here: giving huge pages back before the reset, and moving anything.
 */
#include "daemon/pci/physical-memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "daemon/memory/ranges.h"
#include "daemon/pci/pci.h"

#define MAX_BYTES     (UINT64_C(1) << 38) /* of one function */
#define PART_BYTES    UINT64_C(4096)
#define PAGEMAP_FRAME ((UINT64_C(1) << 55) - 1)
#define PAGEMAP_HERE  (UINT64_C(1) << 63)

struct rig_physical_memory {
        char path[384], pagemap[320], name[RIG_PCI_ADDRESS_TEXT_MAX];
        int fd;
        uint8_t *host;  /* MAX_BYTES are reserved, `bytes` of them mapped */
        uint64_t bytes; /* of the file */
        uint64_t page_bytes;
        uint64_t *addresses;       /* of each huge page */
        struct rig_ranges *ranges; /* over [0, MAX_BYTES): what is beyond the file is taken, as one */
};

int rig_physical_memory_new(const char *root, const char *name, struct rig_physical_memory **ret_memory,
        bool *ret_left, struct rig_error *e)
{
        struct rig_physical_memory *m = calloc(1, sizeof(*m));
        struct stat st;

        if (!m)
                return rig_error_set(e, -ENOMEM, "%s: no memory to open it", name);
        snprintf(m->path, sizeof(m->path), "%.256s/dev/hugepages/rig-%s", root, name);
        snprintf(m->pagemap, sizeof(m->pagemap), "%.256s/proc/self/pagemap", root);
        snprintf(m->name, sizeof(m->name), "%s", name);
        m->fd = -EBADF;
        *ret_left = stat(m->path, &st) == 0;
        *ret_memory = m;
        return 0;
}

void rig_physical_memory_forget(struct rig_physical_memory *m)
{
        unlink(m->path);
}

struct rig_physical_memory *rig_physical_memory_free(struct rig_physical_memory *m, bool forget)
{
        if (!m)
                return NULL;
        if (forget && m->fd >= 0)
                rig_physical_memory_forget(m);
        if (m->host)
                munmap(m->host, MAX_BYTES);
        rig_close(m->fd);
        rig_ranges_free(m->ranges);
        free(m->addresses);
        free(m);
        return NULL;
}

/* ---------------------------------------------------------------- growing */

/* Opens the file, and reserves addresses for it. */
static int start(struct rig_physical_memory *m, struct rig_error *e)
{
        struct statfs fs;
        void *host;
        int r;

        if (m->fd >= 0)
                return 0;
        m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (m->fd < 0)
                return rig_error_set(e, errno == ENOENT ? -ENOMEM : -errno, "%s: %s: %s", m->name, m->path,
                        errno == ENOENT ? "no hugetlbfs is mounted there" : strerror(errno));
        if (fstatfs(m->fd, &fs) < 0 || fs.f_type != HUGETLBFS_MAGIC || fs.f_bsize < (long)PART_BYTES) {
                rig_physical_memory_forget(m);
                m->fd = rig_close(m->fd);
                return rig_error_set(e, -ENOMEM,
                        "%s: %s is on no hugetlbfs: huge pages are what it can be given", m->name, m->path);
        }
        m->page_bytes = (uint64_t)fs.f_bsize;
        host = mmap(NULL, MAX_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (host == MAP_FAILED)
                return rig_error_set(
                        e, -errno, "%s: no addresses for its memory: %s", m->name, strerror(errno));
        m->host = host;
        r = rig_ranges_new(0, MAX_BYTES, PART_BYTES, &m->ranges);
        if (r == 0)
                r = rig_ranges_alloc_at(m->ranges, 0, MAX_BYTES);
        return r < 0 ? rig_error_set(e, r, "%s: no memory for its books", m->name) : 0;
}

/* The physical address of the huge page at `host`, which is mapped and touched. */
static int look_up(
        const struct rig_physical_memory *m, const uint8_t *host, uint64_t *ret_address, struct rig_error *e)
{
        _cleanup_(rig_closep) int fd = open(m->pagemap, O_RDONLY | O_CLOEXEC);
        uint64_t small = (uint64_t)sysconf(_SC_PAGESIZE), entry;

        if (fd < 0)
                return rig_error_set(e, -errno, "%s: %s: %s", m->name, m->pagemap, strerror(errno));
        if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)host / small * sizeof(entry))) !=
                sizeof(entry))
                return rig_error_set(e, -EIO, "%s: %s could not be read", m->name, m->pagemap);
        if (!(entry & PAGEMAP_HERE))
                return rig_error_set(e, -EIO, "%s: a huge page is not in memory", m->name);
        if (!(entry & PAGEMAP_FRAME))
                return rig_error_set(e, -EPERM,
                        "%s: physical addresses are not told to this process: it needs CAP_SYS_ADMIN",
                        m->name);
        *ret_address = (entry & PAGEMAP_FRAME) * small;
        return 0;
}

/* One more huge page, at the end: mapped, zeroed, its address known; not free yet. */
static int grow_by_page(struct rig_physical_memory *m, struct rig_error *e)
{
        uint8_t *at = m->host + m->bytes;
        uint64_t n = m->bytes / m->page_bytes, *addresses;
        int r;

        if (m->bytes + m->page_bytes > MAX_BYTES)
                return rig_error_set(e, -ENOMEM, "%s: it has %" PRIu64 " bytes already", m->name, m->bytes);
        addresses = realloc(m->addresses, (n + 1) * sizeof(*addresses));
        if (!addresses)
                return rig_error_set(e, -ENOMEM, "%s: no memory for its books", m->name);
        m->addresses = addresses;
        /* fallocate() takes the page now, so that touching it cannot end in a SIGBUS */
        if (fallocate(m->fd, 0, (off_t)m->bytes, (off_t)m->page_bytes) < 0)
                return rig_error_set(e, errno == ENOSPC ? -ENOMEM : -errno,
                        "%s: no huge page of %" PRIu64 " KiB is free; `sysctl vm.nr_hugepages=N` makes more",
                        m->name, m->page_bytes / 1024);
        if (mmap(at, m->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, m->fd,
                    (off_t)m->bytes) == MAP_FAILED)
                return rig_error_set(e, -errno, "%s: mapping a huge page: %s", m->name, strerror(errno));
        memset(at, 0, m->page_bytes);
        r = look_up(m, at, &m->addresses[n], e);
        if (r < 0)
                return r;
        m->bytes += m->page_bytes;
        return 0;
}

/* Makes what lies in [from, m->bytes) free: what was beyond the file was taken as one, and what still is, is
 * again. */
static int publish(struct rig_physical_memory *m, uint64_t from)
{
        int r = rig_ranges_return(m->ranges, from);

        if (r == 0 && m->bytes < MAX_BYTES)
                r = rig_ranges_alloc_at(m->ranges, m->bytes, MAX_BYTES - m->bytes);
        return r;
}

/* Huge pages for `bytes` more. What was had before a failure stays had. */
static int grow(struct rig_physical_memory *m, uint64_t bytes, struct rig_error *e)
{
        uint64_t from = m->bytes, end = from + rig_round_up(bytes, m->page_bytes);
        int r = 0, p;

        while (r == 0 && m->bytes < end)
                r = grow_by_page(m, e);
        p = m->bytes > from ? publish(m, from) : 0;
        if (r == 0 && p < 0)
                r = rig_error_set(e, p, "%s: no memory for its books", m->name);
        return r;
}

/* ---------------------------------------------------------------- handing out */

/* Fills `ranges` with the physical runs of [at, at + bytes). Return: how many there are; NULL: they are
 * counted. */
static unsigned collect(
        const struct rig_physical_memory *m, uint64_t at, uint64_t bytes, struct rig_dma_range *ranges)
{
        struct rig_dma_range last = {0};
        unsigned n = 0;

        while (bytes) {
                uint64_t inside = at % m->page_bytes, part = RIG_MIN(bytes, m->page_bytes - inside);
                uint64_t address = m->addresses[at / m->page_bytes] + inside;

                if (n && last.address + last.bytes == address)
                        last.bytes += part;
                else
                        last = (struct rig_dma_range){address, part}, n++;
                if (ranges)
                        ranges[n - 1] = last;
                at += part;
                bytes -= part;
        }
        return n;
}

static uint64_t alignment_of(const struct rig_physical_memory *m, uint64_t bytes, unsigned flags)
{
        uint64_t alignment = PART_BYTES;

        if (flags &
                RIG_DMA_CONTIGUOUS) /* what is aligned to its own size, rounded up, crosses no huge page */
                while (alignment < bytes && alignment < m->page_bytes)
                        alignment *= 2;
        return alignment;
}

/* Takes a place; a contiguous one that is not is given back. */
static int take(struct rig_physical_memory *m, uint64_t bytes, unsigned flags, uint64_t *ret_at)
{
        int r = rig_ranges_alloc(m->ranges, bytes, alignment_of(m, bytes, flags), ret_at);

        if (r < 0 || !(flags & RIG_DMA_CONTIGUOUS) || collect(m, *ret_at, bytes, NULL) == 1)
                return r;
        rig_ranges_return(m->ranges, *ret_at);
        return -ENOSPC;
}

int rig_physical_memory_alloc(struct rig_physical_memory *m, uint64_t bytes, unsigned flags,
        struct rig_dma *ret_dma, struct rig_error *e)
{
        struct rig_dma_range *ranges;
        uint64_t at;
        unsigned n;
        int r = start(m, e);

        if (r < 0)
                return r;
        bytes = rig_round_up(bytes, PART_BYTES);
        r = take(m, bytes, flags, &at);
        if (r < 0) {
                r = grow(m, bytes, e);
                if (r < 0)
                        return r;
                r = take(m, bytes, flags, &at);
        }
        if (r < 0)
                return rig_error_set(e, r == -ENOSPC ? r : -ENOMEM,
                        "%s: no %" PRIu64 " bytes of memory in one piece: huge pages have %" PRIu64
                        ", and none that follow each other were free",
                        m->name, bytes, m->page_bytes);
        n = collect(m, at, bytes, NULL);
        ranges = calloc(n, sizeof(*ranges));
        if (!ranges) {
                rig_ranges_return(m->ranges, at);
                return rig_error_set(e, -ENOMEM, "%s: no memory for its books", m->name);
        }
        collect(m, at, bytes, ranges);
        memset(m->host + at, 0, bytes);
        *ret_dma = (struct rig_dma){.host = m->host + at, .bytes = bytes, .n_ranges = n, .ranges = ranges};
        return 0;
}

void rig_physical_memory_return(struct rig_physical_memory *m, struct rig_dma *dma)
{
        int r = rig_ranges_return(m->ranges, (uint64_t)((uint8_t *)dma->host - m->host));

        rig_assert(r == 0);
        free(dma->ranges);
}
