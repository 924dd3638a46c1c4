/* SPDX-License-Identifier: ISC */
/*
 * A client that keeps a device busy for as long as it may: fills 1 MiB again and again, waits for each
 * twentieth run. It says "busy" once work was done, and ends with 0 and the library's sentence when the
 * connection breaks, which is what a stopped rigd is to a program. Anything else that ends it is a failure.
 *
 * Usage: load [PAUSE_MSEC]: does nothing for so long after each wait. Ends with 3 if nothing broke for 600
 * s.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rig/rig.h>

#define BYTES (1u << 20)

static int fail(const char *what)
{
        fprintf(stderr, "load: %s: %s\n", what, rig_error());
        return 1;
}

int main(int argc, char **argv)
{
        const time_t end = time(NULL) + 600;
        const useconds_t pause_usec = argc > 1 ? (useconds_t)atoi(argv[1]) * 1000 : 0;
        struct rig *rig;
        struct rig_device *m;
        struct rig_buffer *b;
        uint64_t n;
        int r;

        if (rig_connect(NULL, &rig) < 0)
                return fail("rig_connect");
        if (rig_device_open(rig, "memory:M", &m) < 0)
                return fail("rig_device_open");
        if (rig_buffer_new(m, BYTES, 0, &b) < 0)
                return fail("rig_buffer_new");
        for (n = 1; time(NULL) < end; n++) {
                r = rig_buffer_fill(b, 0, BYTES, (uint32_t)n, NULL);
                if (r >= 0 && n % 20 == 0)
                        r = rig_wait(m, n, RIG_INFINITY);
                if (n % 20 == 0)
                        usleep(pause_usec);
                if (r >= 0 && n == 20)
                        puts("busy"), fflush(stdout);
                if (r < 0) {
                        printf("ended after %llu runs: %s\n", (unsigned long long)n, rig_error());
                        return rig_failed(rig) < 0 ? 0 : fail("the connection is whole, but");
                }
        }
        fprintf(stderr, "load: nothing ended it\n");
        return 3;
}
