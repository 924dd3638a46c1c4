/* SPDX-License-Identifier: ISC */
/*
 * Timelines: a device numbers its runs 1, 2, 3 ..., and a value is reached once every run up to it is done.
 * A program needs none of this to be in order; it is how it waits, or is told.
 */
#include "check.h"

#include <inttypes.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_reached(struct rig_device *device, uint64_t value, int error, void *data)
{
        int *called = data;

        printf("callback: value %" PRIu64 ", error %d\n", value, error);
        *called = 1;
}

int main(void)
{
        const uint64_t bytes = 1 << 20;
        struct rig *rig;
        struct rig_device *m;
        struct rig_buffer *b;
        struct rig_point second;
        uint64_t told = 0;
        int called = 0, event = eventfd(0, EFD_CLOEXEC);

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "memory:M,async", &m));
        check(rig_buffer_new(m, bytes, RIG_MEMORY_DEVICE, &b));

        check(rig_buffer_fill(b, 0, bytes, 1, NULL));
        check(rig_buffer_fill(b, 0, bytes, 2, &second));
        check(rig_buffer_fill(b, 0, bytes, 3, NULL));
        printf("submitted: %" PRIu64 "\n", rig_device_submitted(m));

        /* Wait for a run by its point ... */
        check(rig_point_wait(&second, RIG_INFINITY));
        printf("value %" PRIu64 " is reached: %s\n", second.value,
                rig_device_signaled(m) >= second.value ? "yes" : "no");

        /* ... or be called, from this thread, when it dispatches ... */
        check(rig_notify(m, 3, on_reached, &called));
        while (!called)
                check(rig_dispatch(rig, RIG_INFINITY));

        /* ... or let an event loop see it, as a descriptor that becomes readable. */
        check(rig_notify_eventfd(m, 3, event));
        if (read(event, &told, sizeof(told)) == (ssize_t)sizeof(told))
                printf("eventfd: %" PRIu64 "\n", told);

        /* A value that nobody submitted would never come: that is an error, not a wait. */
        if (rig_wait(m, 4, RIG_INFINITY) < 0)
                printf("value 4: not submitted yet\n");

        rig_buffer_unref(b);
        rig_device_unref(m);
        rig_unref(rig);
        close(event);
        return 0;
}
