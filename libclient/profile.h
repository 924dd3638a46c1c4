/* SPDX-License-Identifier: ISC */
/*
 * A profile: what profile.c records and profile-read.c reads.
 */
#ifndef RIG_CLIENT_PROFILE_H
#define RIG_CLIENT_PROFILE_H

#include <pthread.h>

#include "libclient/wire.h"
#include "trace/trace.h"

#define RIG_PROFILE_BUCKETS 64u

struct rig_span {
        char name[64];
        uint32_t thread;
        uint64_t begin_nsec;
        uint64_t end_nsec; /* 0: it is open */
};

struct rig_profile {
        _Atomic uint32_t refs;
        struct rig *rig; /* a reference */
        struct rig_trace_ring ring;

        pthread_mutex_t stop_mutex;
        _Atomic bool stopped; /* nothing below changes any more, but for where reading is */

        /* under `lock` until it has stopped */
        struct rig_lock lock;
        bool closed; /* no span begins or ends any more */
        struct rig_span *spans;
        uint64_t n_spans, spans_room, spans_dropped;
        struct rig_list threads[RIG_PROFILE_BUCKETS];

        /* who reads */
        struct rig_trace_record *devices; /* by ascending number, one of each */
        uint64_t n_devices;
        uint64_t next_span;
};

/* Makes the records be read from the first one. Nobody writes any more, whatever the page says. */
static inline void rig_profile_from_start(struct rig_profile *profile)
{
        profile->ring.head = profile->ring.tail = 0;
        profile->next_span = 0;
}

/* Collects the devices that the records tell of, so that their names are known. -ENOMEM. */
int rig_profile_collect_devices(struct rig_profile *profile);

#endif
