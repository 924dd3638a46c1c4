/* SPDX-License-Identifier: ISC */
/*
 * The ring of a trace.
 *
 * The reader makes the file, gives it all of its memory, and seals its length, so that the writer's stores
 * find pages that are there. The writer believes nothing that the reader can write: it counts the records it
 * wrote itself, and of the page it reads `tail` alone, which can cost the reader records and nobody else
 * anything. The reader does not trust the writer with more: positions that no ring has read as an empty one,
 * and texts end within their record.
 *
 * Each side keeps the other's position as it last saw it, and looks again when that one leaves it nothing to
 * do, so that the line of a counter moves between cores once in a while and not with each record.
 *
 * Deliberately not done: a file whose reader makes a hole in it, or that the kernel has no memory for, can
 * fault (SIGBUS) where the writer stores. The writer guards its stores where that is not its end
 * (daemon/memory/guard.h). Nobody waits, and nobody is woken: a reader looks when it likes.
 */
#include "trace/trace.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define RING_SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define RECORDS_MIN UINT64_C(256)
#define RECORDS_MAX (UINT64_C(1) << 22) /* 512 MiB: more than rigd takes of anyone */

/* ---------------------------------------------------------------- making and mapping */

static int ring_file(uint64_t n_records, int *ret_fd)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        int r;

        fd = memfd_create("rig-trace", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
                fd = memfd_create("rig-trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)rig_trace_file_bytes(n_records)) < 0)
                return errno == EFBIG || errno == EINVAL ? -ENOMEM : -errno;
        /* All of its memory now, on the reader's account; tmpfs has no space where the kernel has no memory.
         */
        do
                r = posix_fallocate(fd, 0, (off_t)rig_trace_file_bytes(n_records));
        while (r == EINTR);
        if (r != 0)
                return r == ENOSPC || r == EFBIG ? -ENOMEM : -r;
        if (fcntl(fd, F_ADD_SEALS, RING_SEALS) < 0)
                return -errno;
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

static int map(int fd, uint64_t n_records, int flags, struct rig_trace_ring *ret_ring)
{
        uint8_t *p;

        p = mmap(NULL, rig_trace_file_bytes(n_records), PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        *ret_ring = (struct rig_trace_ring){
                .page = (struct rig_trace_page *)(void *)p,
                .records = (struct rig_trace_record *)(void *)(p + RIG_TRACE_PAGE_BYTES),
                .n_records = n_records,
        };
        return 0;
}

int rig_trace_ring_new(uint64_t n_records, struct rig_trace_ring *ret_ring, int *ret_fd)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        uint64_t n = RECORDS_MIN;
        int r;

        if (n_records > RECORDS_MAX)
                return -E2BIG;
        while (n < n_records)
                n *= 2;
        r = ring_file(n, &fd);
        if (r < 0)
                return r;
        r = map(fd, n, MAP_POPULATE, ret_ring);
        if (r < 0)
                return r;
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

/* How many records a file of that length has; 0: it is no ring. */
static uint64_t count_records(uint64_t bytes)
{
        uint64_t n;

        if (bytes < rig_trace_file_bytes(RECORDS_MIN))
                return 0;
        n = (bytes - RIG_TRACE_PAGE_BYTES) / RIG_TRACE_RECORD_BYTES;
        return (n & (n - 1)) == 0 && rig_trace_file_bytes(n) == bytes ? n : 0;
}

int rig_trace_ring_map(int fd, uint64_t max_bytes, struct rig_trace_ring *ret_ring)
{
        struct stat st;
        uint64_t n;
        int seals;

        seals = fcntl(fd, F_GET_SEALS);
        if (seals < 0 || (seals & RING_SEALS) != RING_SEALS)
                return -EPERM;
        if (fstat(fd, &st) < 0)
                return -errno;
        n = count_records((uint64_t)st.st_size);
        if (n == 0)
                return -EINVAL;
        if ((uint64_t)st.st_size > max_bytes)
                return -E2BIG;
        /*
         * Not populated: where its maker left out pages, they are touched as records come, or not at all.
         * One that is sealed against writing cannot be mapped so: -EPERM.
         */
        return map(fd, n, 0, ret_ring);
}

void rig_trace_ring_unmap(struct rig_trace_ring *ring)
{
        if (ring->page)
                munmap(ring->page, rig_trace_file_bytes(ring->n_records));
        *ring = (struct rig_trace_ring){0};
}

/* ---------------------------------------------------------------- writing */

static bool full(struct rig_trace_ring *ring)
{
        uint64_t tail;

        if (rig_likely(ring->head - ring->tail < ring->n_records))
                return false;
        /* acquire: pairs with the store in rig_trace_ring_read(); what is written over was copied out */
        tail = atomic_load_explicit(&ring->page->tail, memory_order_acquire);
        /* A tail past the head, or further behind it than records are, is a lie: it frees nothing. */
        if (ring->head - tail >= ring->n_records)
                return true;
        ring->tail = tail;
        return false;
}

void rig_trace_ring_write(struct rig_trace_ring *ring, const struct rig_trace_record *record)
{
        if (rig_unlikely(full(ring))) {
                ring->dropped++;
                /* relaxed: a count for people, which orders nothing */
                atomic_store_explicit(&ring->page->dropped, ring->dropped, memory_order_relaxed);
                return;
        }
        ring->records[ring->head & (ring->n_records - 1)] = *record;
        ring->head++;
        /* release: pairs with the load in rig_trace_ring_read(); the record is there before it counts */
        atomic_store_explicit(&ring->page->head, ring->head, memory_order_release);
}

/* ---------------------------------------------------------------- reading */

static bool empty(struct rig_trace_ring *ring)
{
        uint64_t head;

        if (ring->head != ring->tail)
                return false;
        /* acquire: pairs with the store in rig_trace_ring_write() */
        head = atomic_load_explicit(&ring->page->head, memory_order_acquire);
        /* A head that no writer of this ring can have reached has no records before it. */
        if (head - ring->tail > ring->n_records)
                return true;
        ring->head = head;
        return head == ring->tail;
}

/* Texts end within their record, whoever wrote it. */
static void end_texts(struct rig_trace_record *record)
{
        switch (record->kind) {
        case RIG_TRACE_DEVICE:
                record->opened.name[sizeof(record->opened.name) - 1] = '\0';
                record->opened.command[sizeof(record->opened.command) - 1] = '\0';
                break;
        case RIG_TRACE_RUN:
                record->run.name[sizeof(record->run.name) - 1] = '\0';
                break;
        case RIG_TRACE_MEMORY:
                record->memory.adapter[sizeof(record->memory.adapter) - 1] = '\0';
                break;
        default:
                break;
        }
}

bool rig_trace_ring_read(struct rig_trace_ring *ring, struct rig_trace_record *ret_record)
{
        if (empty(ring))
                return false;
        *ret_record = ring->records[ring->tail & (ring->n_records - 1)];
        ring->tail++;
        /* release: pairs with the load in full(); the record was copied out before it is given back */
        atomic_store_explicit(&ring->page->tail, ring->tail, memory_order_release);
        end_texts(ret_record);
        return true;
}

uint64_t rig_trace_ring_dropped(const struct rig_trace_ring *ring)
{
        /* relaxed: a count for people, which orders nothing */
        return atomic_load_explicit(&ring->page->dropped, memory_order_relaxed);
}
