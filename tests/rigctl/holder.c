/* SPDX-License-Identifier: ISC */
/*
 * A program whose holdings and doings a test knows: two devices, three buffers, and what a line on its
 * standard input says; each is answered by a line.
 *
 *   copies N     N runs named "copy-it", each of COPY_BYTES, one after the other; "done"
 *   gate         a run on the host named "think" that stays under way, and one named "follow" on the memory
 * device that waits for it; "gated HOST-VALUE MEMORY-VALUE" open         lets them go on and waits for both;
 * "opened" more BYTES   another buffer; "ok", or "refused ERRNO"
 *
 * Usage: rigctl-holder ADDRESS. Prints "holding" once it does, and ends with its input.
 */
#include <pthread.h>
#include <rig/rig.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (1u << 20)
#define COPY_BYTES   4096u
#define FOLLOW_BYTES 65536u

static struct rig *rig;
static struct rig_device *memory, *host;
static struct rig_buffer *from, *to, *counted;
static struct rig_work *copy, *think, *follow;
static struct rig_point thought, followed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool is_open;

static void check(int r)
{
        if (r >= 0)
                return;
        fprintf(stderr, "rigctl-holder: %s\n", rig_error());
        exit(EXIT_FAILURE);
}

static void wait_for_gate(const struct rig_group *group, const void *params)
{
        pthread_mutex_lock(&lock);
        while (!is_open)
                pthread_cond_wait(&wake, &lock);
        pthread_mutex_unlock(&lock);
}

static struct rig_work *copy_work(const char *name, uint64_t bytes)
{
        struct rig_work *work;
        int dst, src;

        check(rig_work_new(memory, &work));
        check(dst = rig_work_slot(work, RIG_WRITE));
        check(src = rig_work_slot(work, RIG_READ));
        check(rig_work_bind(work, dst, to));
        check(rig_work_bind(work, src, from));
        check(rig_work_copy(work, 0, dst, 0, src, 0, bytes));
        check(rig_work_set_name(work, name));
        check(rig_work_prepare(work));
        return work;
}

static void hold(const char *address)
{
        struct rig_launch launch = RIG_LAUNCH_INIT;

        check(rig_connect(address, &rig));
        check(rig_device_open(rig, "memory:M", &memory));
        check(rig_device_open(rig, "host", &host));
        check(rig_buffer_new(memory, BUFFER_BYTES, 0, &from));
        check(rig_buffer_new(memory, BUFFER_BYTES, 0, &to));
        check(rig_buffer_new(host, BUFFER_BYTES, 0, &counted));
        copy = copy_work("copy-it", COPY_BYTES);
        follow = copy_work("follow", FOLLOW_BYTES);
        check(rig_work_new(host, &think));
        launch.function = wait_for_gate;
        check(rig_work_launch(think, 0, &launch));
        check(rig_work_set_name(think, "think"));
        check(rig_work_prepare(think));
}

static void do_copies(unsigned n)
{
        for (; n; n--) {
                struct rig_point point;

                check(rig_submit(copy, NULL, 0, NULL, 0, &point));
                check(rig_point_wait(&point, RIG_INFINITY));
        }
        puts("done");
}

static void gate(void)
{
        is_open = false; /* nobody waits at it now */
        check(rig_submit(think, NULL, 0, NULL, 0, &thought));
        check(rig_submit(follow, NULL, 0, &thought, 1, &followed));
        printf("gated %llu %llu\n", (unsigned long long)thought.value, (unsigned long long)followed.value);
}

static void open_gate(void)
{
        pthread_mutex_lock(&lock);
        is_open = true;
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&lock);
        check(rig_point_wait(&thought, RIG_INFINITY));
        check(rig_point_wait(&followed, RIG_INFINITY));
        puts("opened");
}

static void hold_more(unsigned bytes)
{
        struct rig_buffer *buffer; /* held to the end */
        int r = rig_buffer_new(memory, bytes, 0, &buffer);

        if (r < 0)
                printf("refused %d\n", -r);
        else
                puts("ok");
}

int main(int argc, char **argv)
{
        char line[64];
        unsigned n;

        if (argc != 2)
                return 2;
        hold(argv[1]);
        puts("holding");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                if (sscanf(line, "copies %u", &n) == 1)
                        do_copies(n);
                else if (sscanf(line, "more %u", &n) == 1)
                        hold_more(n);
                else if (strcmp(line, "gate\n") == 0)
                        gate();
                else if (strcmp(line, "open\n") == 0)
                        open_gate();
                else
                        return 2;
                fflush(stdout);
        }
        return 0;
}
