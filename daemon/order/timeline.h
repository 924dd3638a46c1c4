/* SPDX-License-Identifier: ISC */
/*
 * A timeline: one device's runs in the order its program made them.
 *
 *     accepted -> handed over -> reached        submitted >= handed >= reached
 *
 * Counted by references, since points and stamps name it after its device is gone.
 */
#ifndef RIG_TIMELINE_H
#define RIG_TIMELINE_H

#include "base/list.h"
#include "daemon/order/order.h"
#include "daemon/order/stamps.h"
#include "daemon/order/waiter.h"

struct rig_timeline;
struct rig_run_chunk;

struct rig_use {
        struct rig_stamps *stamps;
        uint32_t access; /* RIG_ACCESS_... */
};

/* One accepted run. Lives, and does not move, until run_over. */
struct rig_run {
        uint64_t value;
        uint64_t seq;
        uint32_t bytes; /* of the record, with what follows */
        uint16_t n_uses;
        uint16_t n_points;   /* foreign points it follows: those of its memory, then the extra ones */
        uint16_t n_implicit; /* of its memory */
        uint16_t n_waits;    /* the first n_waits of points are waited for in the device's own queue */
        uint16_t next_point; /* points before this one need no wait of the core's */
        bool lost;           /* passed without being handed over */
        bool marked;         /* the daemon's, false when accepted */
        struct rig_use *uses;
        struct rig_point *points;
        void *payload; /* the daemon's, `payload_bytes` as accepted, aligned to 8 */
};

/* What a timeline asks of whoever drives its device. Calls must not call back into the order. */
struct rig_timeline_ops {
        /* 1: the run fits the device now. 0: once a value of this timeline is reached. Optional: always 1.
         */
        int (*room)(struct rig_timeline *timeline, const struct rig_run *run);
        /* Whether the device's queue itself can wait for values of `producer`; optional: never. */
        bool (*queue_waits)(struct rig_timeline *timeline, const struct rig_timeline *producer);
        /* How many such waits a run may carry; optional where queue_waits is. */
        unsigned (*max_waits)(struct rig_timeline *timeline);
        /*
         * The run is the device's now, after the points run->points[0 .. n_waits). Negative: it could not be
         * handed over; the caller of rig_order_run() then loses the timeline, from `failed`.
         */
        int (*hand_over)(struct rig_timeline *timeline, struct rig_run *run);
        /* Runs were handed over since the last commit: start them. Optional. */
        void (*commit)(struct rig_timeline *timeline);
        /* The run is lost, because `culprit` is; its value is passed in its turn. */
        void (*run_lost)(struct rig_timeline *timeline, struct rig_run *run, struct rig_timeline *culprit);
        /*
         * The run's record goes: its value was reached or passed, or its timeline is lost and it never ran,
         * or lost and ended.
         */
        void (*run_over)(struct rig_timeline *timeline, struct rig_run *run);
        /* `reached` moved, once for any number of values. Optional. */
        void (*advanced)(struct rig_timeline *timeline);
        /* hand_over failed with `error`: called from rig_order_run() once it is safe to lose the timeline.
         */
        void (*failed)(struct rig_timeline *timeline, int error);
        /* A producer this timeline's queue waits for is lost, and so must this timeline be. As `failed`. */
        void (*stuck)(struct rig_timeline *timeline, struct rig_timeline *producer);
};

struct rig_timeline {
        struct rig_order *order;
        const struct rig_timeline_ops *ops;
        void *userdata;
        unsigned refs;

        uint64_t submitted; /* the last value given */
        uint64_t handed;    /* the last handed over, or passed */
        uint64_t reached;   /* the last reached */
        uint64_t last_lost; /* the last value whose run was passed without being handed over */

        char *remains;                 /* what is told of its loss once `userdata` is gone: freed with it */
        bool lost;                     /* no run is handed over any more */
        bool ended;                    /* lost, and no work of it runs any more */
        bool committed;                /* nothing was handed over since the last commit */
        struct rig_timeline *stuck_on; /* a lost producer its queue waits for; referenced */
        int error;                     /* hand_over's, until told */

        /* the record log: oldest chunk first */
        struct rig_run_chunk *oldest, *newest;
        struct rig_run_chunk *spare; /* empty ones */
        unsigned n_spares;
        struct rig_run_chunk *next_chunk;
        struct rig_run *next; /* the first run not handed over, or NULL */

        struct rig_waiter head;        /* the wait of `next` for a foreign point */
        struct rig_waiters on_reached; /* who waits for values of this timeline */
        struct rig_waiters on_handed;  /* who waits for them to be handed over */
        struct rig_list due;           /* in order->due */
        struct rig_list all;           /* in order->timelines */

        uint64_t mark_epoch; /* dedup of points while a run is accepted */
        uint32_t mark;

        bool still;                /* the hang clock runs */
        uint64_t still_since_usec; /* since when `reached` is what it is */
        uint64_t still_value;
};

/**
 * rig_timeline_new() - a timeline with no runs
 * @order:    borrowed; outlives it
 * @ops:      static
 * @userdata: the ops' own
 * Return: one reference, or NULL.
 */
struct rig_timeline *rig_timeline_new(
        struct rig_order *order, const struct rig_timeline_ops *ops, void *userdata);
struct rig_timeline *rig_timeline_ref(struct rig_timeline *timeline);
struct rig_timeline *rig_timeline_unref(struct rig_timeline *timeline);

/**
 * rig_timeline_accept() - accept a run: it gets the next value
 * @timeline:      whose
 * @uses:          the memory it names; the same memory may be named twice
 * @points:        further points to follow (O7), of timelines whose value is at most their `submitted`
 * @payload_bytes: of the daemon's own in the record
 * @ret_run:       the record; NULL on a timeline that is lost already, where the run is dropped: it has its
 *                 value, which is never reached, and the memory it would have written is spoiled
 *
 * Stamps the memory. The run is handed over by rig_order_run().
 * Return: 0 or -ENOMEM, which changes nothing.
 */
int rig_timeline_accept(struct rig_timeline *timeline, const struct rig_use *uses, unsigned n_uses,
        const struct rig_point *points, unsigned n_points, size_t payload_bytes, struct rig_run **ret_run);

/**
 * rig_timeline_reach() - the device completed every run handed over up to `value`
 *
 * Runs that were passed and come next are reached with it, and so is what its queue waited for. Still called
 * on a lost timeline whose word moves; ignored once its work ended.
 */
void rig_timeline_reach(struct rig_timeline *timeline, uint64_t value);

/**
 * rig_timeline_lose() - the device is lost (L1, L2)
 * @timeline: whose runs that were not reached are lost
 * @ended:    no work of it runs any more, nor will. Memory it only read is then not spoiled
 *
 * Once; a second call may only add `ended`, which lets memory that it used return (L3).
 */
void rig_timeline_lose(struct rig_timeline *timeline, bool ended);

/* True once the work of `value` cannot touch memory any more: it was reached, or is lost and ended. */
bool rig_timeline_over(const struct rig_timeline *timeline, uint64_t value);

/*
 * Hangs (L4). Work stands still while a value was handed over, is not reached, and waits in its queue for no
 * foreign point. True once it has, at every call since `bound_usec` before `now_usec`: so a call every so
 * often makes it late by that much, and it is never early.
 */
bool rig_timeline_hangs(struct rig_timeline *timeline, uint64_t now_usec, uint64_t bound_usec);

#endif
