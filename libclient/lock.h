/* SPDX-License-Identifier: ISC */
/*
 * The lock of a connection: one word, taken and dropped without a call where nobody contends, because it is
 * on the way of every submission. Threads that contend spin for a moment, then sleep in a futex. It is not
 * recursive and not fair, and no thread waits for anything else while it holds one.
 */
#ifndef RIG_CLIENT_LOCK_H
#define RIG_CLIENT_LOCK_H

#include <stdatomic.h>

#include "base/base.h"

enum {
        RIG_LOCK_FREE,
        RIG_LOCK_TAKEN,
        RIG_LOCK_AWAITED, /* taken, and somebody may sleep for it */
};

struct rig_lock {
        _Atomic uint32_t state;
};

void rig_lock_take_slowly(struct rig_lock *lock);
void rig_lock_wake(struct rig_lock *lock);

static inline void rig_lock_take(struct rig_lock *lock)
{
        uint32_t seen = RIG_LOCK_FREE;

        /* acquire: pairs with the exchange of the thread that dropped it */
        if (rig_unlikely(!atomic_compare_exchange_strong_explicit(
                    &lock->state, &seen, RIG_LOCK_TAKEN, memory_order_acquire, memory_order_relaxed)))
                rig_lock_take_slowly(lock);
}

static inline void rig_lock_drop(struct rig_lock *lock)
{
        /* release: what was done under the lock is seen by whoever takes it next */
        if (rig_unlikely(atomic_exchange_explicit(&lock->state, RIG_LOCK_FREE, memory_order_release) ==
                         RIG_LOCK_AWAITED))
                rig_lock_wake(lock);
}

#endif
