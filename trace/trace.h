/* SPDX-License-Identifier: ISC */
/*
 * Traces: what rigd records of devices, for whoever asked, as it happens.
 *
 * A trace is a ring of records in a memfd that its reader made: a page that says how far each side is, then
 * the records, all of one size. rigd writes, the reader reads, and neither waits for the other: a record
 * that finds no room is dropped and counted. Positions count records ever written and never wrap.
 *
 * Each record stands for itself, so that dropping some makes none of the others meaningless. Times are
 * CLOCK_MONOTONIC in nanoseconds. Numbers of devices are rigd's own, never reused while it runs.
 */
#ifndef RIG_TRACE_H
#define RIG_TRACE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIG_TRACE_VERSION      1
#define RIG_TRACE_PAGE_BYTES   4096u
#define RIG_TRACE_RECORD_BYTES 128u
#define RIG_TRACE_NAME_BYTES   48u /* of a run's name, with its NUL */

enum rig_trace_kind {
        RIG_TRACE_DEVICE = 1, /* a device: when it opens, and at the start of a trace for those open then */
        RIG_TRACE_RUN,        /* a run, once it is over */
        RIG_TRACE_WAIT,       /* a run waited for another device's value; before that run's own record */
        RIG_TRACE_MEMORY,     /* bytes held, at most once a millisecond while they change */
};

struct rig_trace_device {
        uint64_t client; /* the connection's number */
        uint32_t pid;
        uint32_t id;       /* the client's own number for it */
        uint32_t n_queues; /* of the device */
        uint32_t reserved;
        char name[64];    /* what it was opened as: "memory:M" */
        char command[16]; /* the program's, as the kernel names it (proc(5), comm) */
};

/* The queues, bytes and launches are of all parts of the run. */
struct rig_trace_run {
        uint64_t value;
        uint64_t accepted_nsec; /* rigd took it */
        uint64_t started_nsec;  /* it was the device's, and the value before it was reached */
        uint64_t ended_nsec;    /* its value was seen reached */
        uint64_t copied_bytes, filled_bytes;
        uint32_t launches;
        uint32_t queues; /* bit q: it has parts on queue q */
        int32_t error;   /* 0; -ENODEV where it was lost; what its failure said */
        uint32_t reserved;
        char name[RIG_TRACE_NAME_BYTES]; /* rig_work_set_name()'s, or "" */
};

struct rig_trace_wait {
        uint64_t value;    /* of the run that waited */
        uint64_t on_value; /* for this value */
        uint32_t on;       /* of this device; 0: of a device that the reader may not see */
        uint32_t reserved;
};

struct rig_trace_memory {
        uint64_t nsec;
        uint64_t live_bytes;   /* allocated; in a program's own trace, by it */
        uint64_t cached_bytes; /* returned, and kept for reuse */
        char adapter[64];
};

struct rig_trace_record {
        uint32_t kind;   /* enum rig_trace_kind: others are skipped */
        uint32_t device; /* rigd's number; 0 where it is about none */
        union {
                struct rig_trace_device opened;
                struct rig_trace_run run;
                struct rig_trace_wait wait;
                struct rig_trace_memory memory;
                uint8_t bytes[RIG_TRACE_RECORD_BYTES - 8];
        };
};

/*
 * The first page. A ring starts with all of it 0, and a writer with it: one is written by one mapping, once.
 * Records are written before `head` counts them, and read before `tail` does (release and acquire).
 */
struct rig_trace_page {
        _Atomic uint64_t head;    /* rigd's: records written */
        _Atomic uint64_t dropped; /* rigd's: records that found no room */
        uint64_t reserved0[6];
        _Atomic uint64_t tail; /* the reader's: records it is done with */
        uint64_t reserved1[7];
};

static_assert(sizeof(struct rig_trace_record) == RIG_TRACE_RECORD_BYTES, "all records have one size");
static_assert(offsetof(struct rig_trace_record, run) == 8, "the union follows two words");
static_assert(offsetof(struct rig_trace_page, tail) == 64 && sizeof(struct rig_trace_page) == 128,
        "each side writes a cache line of its own");

/* ---------------------------------------------------------------- either side's mapping (ring.c) */

struct rig_trace_ring {
        struct rig_trace_page *page;
        struct rig_trace_record *records;
        uint64_t n_records; /* a power of two */
        uint64_t head;      /* the writer's own; to the reader, what it saw last of the page's */
        uint64_t tail;      /* the reader's own; to the writer, what it saw last of the page's */
        uint64_t dropped;   /* the writer's own */
};

/* Bytes of the file of a ring of `n_records`. */
static inline uint64_t rig_trace_file_bytes(uint64_t n_records)
{
        return RIG_TRACE_PAGE_BYTES + n_records * RIG_TRACE_RECORD_BYTES;
}

/**
 * rig_trace_ring_new() - make a ring, for its reader
 * @n_records: rounded up to a power of two, at least 256
 * @ret_ring:  mapped
 * @ret_fd:    its memfd, sealed against another length; for rigd
 *
 * All of its memory is allocated here, on the account of who calls. Return: 0; -E2BIG (more than 4194304
 * records, which rigd takes of nobody), -EMFILE, -ENFILE, -ENOMEM.
 */
int rig_trace_ring_new(uint64_t n_records, struct rig_trace_ring *ret_ring, int *ret_fd);

/**
 * rig_trace_ring_map() - map a ring that a reader made, to write
 * @fd:        borrowed
 * @max_bytes: the longest file that is taken
 *
 * Return: 0; -EPERM (no memfd, without the seals F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL, or sealed
 * against writing), -EINVAL (its length is not a ring's), -E2BIG, -ENOMEM.
 */
int rig_trace_ring_map(int fd, uint64_t max_bytes, struct rig_trace_ring *ret_ring);
void rig_trace_ring_unmap(struct rig_trace_ring *ring);

/*
 * Writes a record, or drops it. What the reader wrote in the page is not trusted; that its pages are there
 * is the caller's to guard (SIGBUS), where the reader is not the caller.
 */
void rig_trace_ring_write(struct rig_trace_ring *ring, const struct rig_trace_record *record);

/* Reads the next record; its texts end within it, whoever wrote it. Return: whether there was one. */
bool rig_trace_ring_read(struct rig_trace_ring *ring, struct rig_trace_record *ret_record);
/* Records dropped so far, as the page says: for the reader. */
uint64_t rig_trace_ring_dropped(const struct rig_trace_ring *ring);

#endif
