/* SPDX-License-Identifier: ISC */
/*
 * The slow half of the lock.
 *
 * A thread that could not take the word at once spins while its holder is likely to be running, which for
 * the few hundred instructions under a connection's lock is nearly always enough. Then it writes AWAITED and
 * sleeps: whoever drops an AWAITED lock wakes one sleeper, and a sleeper that wakes takes it as AWAITED,
 * since it cannot know whether others still sleep.
 */
#include "libclient/lock.h"

#include "base/clock.h"
#include "base/futex.h"

#define SPINS 200

void rig_lock_take_slowly(struct rig_lock *lock)
{
        for (int i = 0; i < SPINS; i++) {
                uint32_t seen = RIG_LOCK_FREE;

                if (atomic_load_explicit(&lock->state, memory_order_relaxed) == RIG_LOCK_FREE &&
                        atomic_compare_exchange_strong_explicit(&lock->state, &seen, RIG_LOCK_TAKEN,
                                memory_order_acquire, memory_order_relaxed))
                        return;
                rig_cpu_relax();
        }
        while (atomic_exchange_explicit(&lock->state, RIG_LOCK_AWAITED, memory_order_acquire) !=
                RIG_LOCK_FREE)
                rig_futex_wait(&lock->state, RIG_LOCK_AWAITED, RIG_USEC_INFINITY);
}

void rig_lock_wake(struct rig_lock *lock)
{
        syscall(SYS_futex, &lock->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}
