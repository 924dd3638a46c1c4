/* SPDX-License-Identifier: ISC */
/*
 * Figures, asserted by nobody: nanoseconds of an allocation and of a return, with so many allocations there.
 * `meson test --benchmark` runs it.
 */
#include <stdio.h>

#include "base/clock.h"
#include "daemon/memory/ranges.h"
#include "tests/memory/random.h"

#define ROUNDS 400000

static int measure(size_t n)
{
        _cleanup_(rig_freep) uint64_t *live = calloc(n, sizeof(*live));
        struct rig_ranges *ranges;
        uint64_t random = 1, start, allocs = 0, returns = 0;
        int r = -ENOMEM;

        if (!live || rig_ranges_new(0, UINT64_C(1) << 47, 4096, &ranges) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (rig_ranges_alloc(ranges, 4096 * (1 + random_below(&random, 512)), 4096, &live[i]) < 0)
                        goto end;
        for (size_t i = 0; i < ROUNDS; i++) {
                uint64_t which = random_below(&random, n), bytes = 4096 * (1 + random_below(&random, 512));

                start = rig_now_nsec();
                rig_ranges_return(ranges, live[which]);
                returns += rig_now_nsec() - start;
                start = rig_now_nsec();
                if (rig_ranges_alloc(ranges, bytes, 4096, &live[which]) < 0)
                        goto end;
                allocs += rig_now_nsec() - start;
        }
        printf("%8zu allocations: alloc %4lu ns, return %4lu ns (a clock read included)\n", n,
                (unsigned long)(allocs / ROUNDS), (unsigned long)(returns / ROUNDS));
        r = 0;
end:
        rig_ranges_free(ranges);
        return r;
}

int main(void)
{
        for (size_t n = 100; n <= 1000000; n *= 10)
                if (measure(n) < 0) {
                        printf("%zu allocations: no memory\n", n);
                        return 1;
                }
        return 0;
}
