/* SPDX-License-Identifier: ISC */
/*
 * Waiters for values of one timeline: a pairing heap through nodes embedded in whoever waits, ordered by
 * value. Adding is constant, taking the least is logarithmic, and neither allocates.
 */
#ifndef RIG_WAITER_H
#define RIG_WAITER_H

#include "base/base.h"

struct rig_waiter;
typedef void (*rig_waiter_wake)(struct rig_waiter *waiter);

struct rig_waiter {
        uint64_t value;           /* what it waits for */
        struct rig_waiters *of;   /* the heap it is in, or NULL */
        struct rig_waiter *child; /* the first of those below */
        struct rig_waiter *next;  /* the next beside it */
        struct rig_waiter *prev; /* the one before it, or its parent where it is the first; NULL: the root */
        rig_waiter_wake wake;
};

struct rig_waiters {
        struct rig_waiter *root;
};

/* Adds a waiter that is in no heap. */
void rig_waiters_add(struct rig_waiters *heap, struct rig_waiter *waiter, uint64_t value);

/* Takes a waiter out of the heap it is in; one that waits for nothing stays so. */
void rig_waiter_remove(struct rig_waiter *waiter);

/* Takes out and wakes every waiter for a value up to `value`. A woken waiter may wait again, for a larger
 * one. */
void rig_waiters_reached(struct rig_waiters *heap, uint64_t value);

#endif
