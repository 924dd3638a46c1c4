/* SPDX-License-Identifier: ISC */
/*
 * Sleeping on a word of memory that processes share (futex(2)). Shared futexes only: the kernel finds the
 * word by its page, so a waiter may hold a read-only mapping of it.
 */
#ifndef RIG_FUTEX_H
#define RIG_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "base/clock.h"

/*
 * Sleeps while *word is `seen`, at most `timeout_usec`. Return: 0 after a wake or where *word differs
 * already, -ETIMEDOUT, -EINTR.
 */
static inline int rig_futex_wait(const _Atomic uint32_t *word, uint32_t seen, uint64_t timeout_usec)
{
        struct timespec t = {.tv_sec = (time_t)(timeout_usec / RIG_USEC_PER_SEC),
                .tv_nsec = (long)(timeout_usec % RIG_USEC_PER_SEC * RIG_NSEC_PER_USEC)};
        struct timespec *limit = timeout_usec == RIG_USEC_INFINITY ? NULL : &t;

        if (syscall(SYS_futex, word, FUTEX_WAIT, seen, limit, NULL, 0) == 0 || errno == EAGAIN)
                return 0;
        return -errno;
}

/* Wakes everyone who sleeps on *word. */
static inline void rig_futex_wake(_Atomic uint32_t *word)
{
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
