/* SPDX-License-Identifier: ISC */
/* What was used, counted since rigd started: of a device, of a client, of an adapter, of all. */
#ifndef RIG_USAGE_H
#define RIG_USAGE_H

#include <stdint.h>

struct rig_usage {
        uint64_t accepted;     /* runs */
        uint64_t reached;      /* values */
        uint64_t failed;       /* of them, runs that failed by themselves */
        uint64_t lost;         /* runs that were lost */
        uint64_t copied_bytes; /* copied and filled, by runs that are over */
        uint64_t busy_nsec;    /* in which work was under way */
};

static inline void rig_usage_add(struct rig_usage *to, const struct rig_usage *more)
{
        to->accepted += more->accepted;
        to->reached += more->reached;
        to->failed += more->failed;
        to->lost += more->lost;
        to->copied_bytes += more->copied_bytes;
        to->busy_nsec += more->busy_nsec;
}

#endif
