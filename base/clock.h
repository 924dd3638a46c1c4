/* SPDX-License-Identifier: ISC */
/* Time: microseconds of CLOCK_MONOTONIC everywhere; nanoseconds only where a name says so. */
#ifndef RIG_CLOCK_H
#define RIG_CLOCK_H

#include <stdint.h>
#include <time.h>

#define RIG_USEC_PER_SEC  UINT64_C(1000000)
#define RIG_USEC_PER_MSEC UINT64_C(1000)
#define RIG_NSEC_PER_USEC UINT64_C(1000)
#define RIG_USEC_INFINITY UINT64_MAX

static inline uint64_t rig_now_nsec(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Another clock of clock_gettime(2), in microseconds. */
static inline uint64_t rig_clock_usec(clockid_t clock)
{
        struct timespec t;

        clock_gettime(clock, &t);
        return (uint64_t)t.tv_sec * RIG_USEC_PER_SEC + (uint64_t)t.tv_nsec / RIG_NSEC_PER_USEC;
}

static inline uint64_t rig_now_usec(void)
{
        return rig_now_nsec() / RIG_NSEC_PER_USEC;
}

/* The point `timeout_usec` from now; RIG_USEC_INFINITY stays that. */
static inline uint64_t rig_deadline_usec(uint64_t timeout_usec)
{
        uint64_t at;

        if (timeout_usec == RIG_USEC_INFINITY || __builtin_add_overflow(rig_now_usec(), timeout_usec, &at))
                return RIG_USEC_INFINITY;
        return at;
}

/* Tells the core that this thread spins, so that its sibling may have the pipeline. */
static inline void rig_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#else
        __asm__ volatile("" ::: "memory");
#endif
}

#endif
