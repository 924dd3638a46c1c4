/* SPDX-License-Identifier: ISC */
/*
 * Traces that are being recorded: rings of trace/trace.h that clients (their own devices) or admins
 * (everyone's) gave. The core writes what happens into each that may see it, and costs nothing but a test
 * where there is none.
 */
#ifndef RIG_DAEMON_TRACE_H
#define RIG_DAEMON_TRACE_H

#include "base/error.h"
#include "base/list.h"
#include "daemon/device.h"
#include "trace/trace.h"

struct rig_guard;
struct rig_traced_memory;

struct rig_trace {
        struct rig_list link; /* in core->traces */
        struct rig_core *core;
        uint64_t client; /* whose devices, by number; 0: everyone's */
        struct rig_trace_ring ring;
        struct rig_guard *guard;          /* of its memory, which is its reader's */
        uint64_t memory_nsec;             /* when memory was last recorded */
        struct rig_traced_memory *memory; /* what was recorded then, of each adapter */
        unsigned n_memory;
};

#define RIG_ADMIN_TRACES_MAX  8u
#define RIG_ADMIN_TRACE_BYTES (UINT64_C(256) << 20) /* of an admin's ring, at most */

/**
 * rig_trace_start() - record into a ring
 * @core:      whose devices
 * @fd:        the ring's memfd, borrowed
 * @max_bytes: the longest file that is taken
 * @client:    a client's number, or 0: everyone's
 *
 * Writes a record of each device that is open. Return: 0; what rig_trace_ring_map() gives, with a sentence.
 */
int rig_trace_start(struct rig_core *core, int fd, uint64_t max_bytes, uint64_t client,
        struct rig_trace **ret_trace, struct rig_error *e);
/* Writes what is still to be told, and ends it. NULL is taken. Return: NULL. */
struct rig_trace *rig_trace_stop(struct rig_trace *trace);

static inline bool rig_traced(const struct rig_core *core)
{
        return rig_unlikely(!rig_list_empty(&core->traces));
}

/* What the core tells, where it is traced. */
void rig_trace_opened(struct rig_device *device);
/* Sets the run's times, and writes what it waits for. */
void rig_trace_accepted(struct rig_device *device, const struct rig_run *run);
/* `lost`: its work was not done. */
void rig_trace_over(struct rig_device *device, const struct rig_run *run, bool lost);
/* The memory that adapters hold, where it changed: at most every millisecond, unless it is the last look for
 * now. */
void rig_trace_memory(struct rig_core *core, bool last);

#endif
