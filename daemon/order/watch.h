/* SPDX-License-Identifier: ISC */
/*
 * A watch: a wait for what an access of the host must follow (O6), or for a memory's uses to be over (M1),
 * or for one value. It takes its points when it starts, so work accepted later does not prolong it.
 */
#ifndef RIG_WATCH_H
#define RIG_WATCH_H

#include "daemon/order/stamps.h"
#include "daemon/order/waiter.h"

struct rig_watch;

/* `culprit` is NULL, or the timeline whose loss made an awaited value unreachable or spoiled the memory. */
typedef void (*rig_watch_done)(struct rig_watch *watch, struct rig_timeline *culprit);

struct rig_watch {
        struct rig_order *order;
        rig_watch_done done;
        void *userdata;

        bool until_over; /* loss is no end: wait until the work cannot touch the memory any more */
        bool armed;
        const struct rig_stamps
                *stamps; /* borrowed: they outlive the watch; NULL where it waits for a value */
        uint64_t seq;    /* of the last run accepted before it */
        struct rig_waiter waiter;
        struct rig_list woken; /* in order->woken */
        unsigned n_points, next;
        struct rig_point *points; /* `few`, or allocated; with references */
        struct rig_point few[2];
};

/**
 * rig_watch_access() - wait for what an access of the host to a memory must follow
 * @watch:  the caller's memory; not armed
 * @access: RIG_ACCESS_READ follows the last write, RIG_ACCESS_WRITE every use
 * @done:   called once from rig_order_run(), never from here
 * Return: 0 or -ENOMEM.
 */
int rig_watch_access(struct rig_watch *watch, struct rig_order *order, const struct rig_stamps *stamps,
        uint32_t access, rig_watch_done done, void *userdata);

/*
 * Wait until every use of a memory is over; uses accepted meanwhile may prolong it. `done` has no culprit.
 * Return: 0 or -ENOMEM.
 */
int rig_watch_idle(struct rig_watch *watch, struct rig_order *order, const struct rig_stamps *stamps,
        rig_watch_done done, void *userdata);

/* Wait for one value. */
void rig_watch_value(struct rig_watch *watch, struct rig_order *order, struct rig_timeline *timeline,
        uint64_t value, rig_watch_done done, void *userdata);

/* Forgets the wait; `done` is not called. One that is not armed stays so. */
void rig_watch_cancel(struct rig_watch *watch);

#endif
