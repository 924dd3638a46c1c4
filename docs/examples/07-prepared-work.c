/* SPDX-License-Identifier: ISC */
/*
 * Prepared work: parts on the device's queues, checked and encoded once, then run as often as one likes with
 * other buffers in its slots. A run then costs no more than saying which.
 */
#include "check.h"

#include <inttypes.h>
#include <string.h>

#define RUNS 10000

/* One run: the frame becomes eight dots between the two halves of the input. */
static struct rig_work *frame_work(struct rig_device *device, struct rig_buffer *dots)
{
        struct rig_work *work;
        int frame, input, pattern, left, right, middle;

        check(rig_work_new(device, &work));
        frame = check(rig_work_slot(work, RIG_WRITE));
        input = check(rig_work_slot(work, RIG_READ));
        pattern = check(rig_work_slot(work, RIG_READ));
        check(rig_work_bind(work, pattern, dots)); /* every run reads the same dots */

        /* Two queues may work at the same time, here on parts that share no bytes. */
        left = check(rig_work_copy(work, 0, frame, 0, input, 0, 4));
        right = check(rig_work_copy(work, 1, frame, 12, input, 4, 4));
        /* This one is on queue 0, after `left` for that reason, and after `right` because we say so. */
        middle = check(rig_work_copy(work, 0, frame, 4, pattern, 0, 8));
        check(rig_work_after(work, middle, right));
        check(rig_work_prepare(work));
        return left == 0 ? work : rig_work_unref(work);
}

int main(void)
{
        struct rig *rig;
        struct rig_device *host;
        struct rig_buffer *frame[2], *input[2], *dots;
        struct rig_work *work;
        struct rig_point done;
        char back[17] = {0};
        int i;

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "host", &host));
        check(rig_buffer_new(host, 8, RIG_MEMORY_DEVICE, &dots));
        check(rig_buffer_fill(dots, 0, 8, 0x2e2e2e2e, NULL));
        for (i = 0; i < 2; i++) {
                check(rig_buffer_new(host, 16, RIG_MEMORY_DEVICE, &frame[i]));
                check(rig_buffer_new(host, 8, RIG_MEMORY_DEVICE, &input[i]));
                check(rig_buffer_write(input[i], 0, i ? "evenruns" : "odd runs", 8));
        }
        work = frame_work(host, dots);

        for (i = 0; i < RUNS; i++) {
                struct rig_buffer *slots[] = {frame[i % 2], input[i % 2]};

                check(rig_submit(work, slots, 2, NULL, 0, &done));
        }
        /* The work may go while its runs are under way. */
        work = rig_work_unref(work);
        check(rig_point_wait(&done, RIG_INFINITY));
        printf("runs: %d, the last one %s\n", RUNS,
                done.value == rig_device_submitted(host) ? "done" : "lost");
        for (i = 0; i < 2; i++) {
                check(rig_buffer_read(frame[i], 0, back, 16));
                printf("%s\n", back);
                rig_buffer_unref(frame[i]);
                rig_buffer_unref(input[i]);
        }
        rig_buffer_unref(dots);
        rig_device_unref(host);
        rig_unref(rig);
        return 0;
}
