/* SPDX-License-Identifier: ISC */
/*
 * Buffers: bytes on a device. A view is a buffer over a part of another's memory; a copy or a fill is work,
 * which a device runs in its turn; where the host addresses the memory, a program may look at it in place.
 */
#include "check.h"

#include <stdint.h>
#include <string.h>

int main(void)
{
        struct rig *rig;
        struct rig_device *a, *b;
        struct rig_buffer *text, *world, *copy;
        char back[13] = {0};
        void *address;

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "memory:A", &a));
        check(rig_device_open(rig, "memory:B,async", &b));

        /* Memory starts as zeros, never as what another program left in it. */
        check(rig_buffer_new(a, 12, RIG_MEMORY_DEVICE, &text));
        check(rig_buffer_read(text, 0, back, 12));
        printf("fresh memory: %d %d ... %d\n", back[0], back[1], back[11]);

        check(rig_buffer_write(text, 0, "hello, world", 12));
        check(rig_buffer_view(text, 7, 5, &world));
        check(rig_buffer_write(world, 0, "there", 5));
        check(rig_buffer_read(text, 0, back, 12));
        printf("written through a view: %s\n", back);

        /* Neither call waits: the fill and the copy follow each other because both name the memory of
         * `copy`. */
        check(rig_buffer_new(b, 12, RIG_MEMORY_DEVICE, &copy));
        check(rig_buffer_fill(copy, 0, 12, 0x2e2e2e2e, NULL));
        check(rig_buffer_copy(copy, 3, world, 0, 5, NULL));

        /* A program that looks at memory in place says so first: it waits for the last write. */
        check(rig_buffer_map(copy, &address));
        check(rig_buffer_wait(copy, RIG_READ, RIG_INFINITY));
        printf("filled, then copied into: %.12s\n", (const char *)address);

        /* A mistake is an error with a sentence, and changes nothing. */
        if (rig_buffer_write(world, 1, "there", 5) < 0)
                printf("past the end of a view: refused\n");

        rig_buffer_unref(copy);
        rig_buffer_unref(world);
        rig_buffer_unref(text);
        rig_device_unref(b);
        rig_device_unref(a);
        rig_unref(rig);
        return 0;
}
