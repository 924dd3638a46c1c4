/* SPDX-License-Identifier: ISC */
/* Numbers that look random and are the same in every run: splitmix64, whose state is one number, the seed.
 */
#ifndef RIG_TEST_RANDOM_H
#define RIG_TEST_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
        return random_next(state) % n;
}

/* Below n, and as often small as large: the number of its bits is random first. */
static inline uint64_t random_skewed(uint64_t *state, uint64_t n)
{
        uint64_t shift = random_below(state, 64 - (uint64_t)__builtin_clzll(n));

        return random_below(state, n) >> shift;
}

#endif
