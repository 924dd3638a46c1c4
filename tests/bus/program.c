/* SPDX-License-Identifier: ISC */
/*
 * A program that holds what it is told to, for the bus tests: a line on its standard input says what to do,
 * and a line on its standard output what came of it: "ok NUMBER", or "error CODE SENTENCE". It ends with its
 * input.
 *
 *   device NAME            its index
 *   buffer DEVICE BYTES    its index
 *   drop BUFFER
 *   fill BUFFER NAME       a run with a name; the value it reaches, and is waited for
 *   copy BUFFER BUFFER     likewise
 *   block DEVICE           a run on a host device that is under way until "release"; its value
 *   queue N                runs behind it, submitted from now on and not waited for
 *   release
 *   hang DEVICE            work on a steered device that never ends; its value
 */
#include <pthread.h>
#include <rig/rig.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096

static struct rig *rig;
static struct rig_device *devices[MOST];
static struct rig_buffer *buffers[MOST];
static struct rig_image *image;
static struct rig_work *blocks, *follows;
static pthread_t queuer;
static unsigned n_queued;
static unsigned n_devices, n_buffers;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool released;

static void blocked(const struct rig_group *group, const void *params)
{
        pthread_mutex_lock(&lock);
        while (!released)
                pthread_cond_wait(&wake, &lock);
        pthread_mutex_unlock(&lock);
}

static void passes(const struct rig_group *group, const void *params)
{
        (void)*(volatile const struct rig_group *)group;
}

static int release(void)
{
        pthread_mutex_lock(&lock);
        released = true;
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&lock);
        return 0;
}

/* A work of one part on one or two buffers, submitted once under a name and waited for. */
static int64_t run(struct rig_buffer *dst, struct rig_buffer *src, const char *name)
{
        struct rig_device *device = rig_buffer_device(dst);
        struct rig_buffer *slots[] = {dst, src};
        struct rig_work *work = NULL;
        struct rig_point point;
        int to, from, r = rig_work_new(device, &work);

        if (r < 0)
                return r;
        to = rig_work_slot(work, RIG_WRITE);
        from = src ? rig_work_slot(work, RIG_READ) : 0;
        r = to < 0 || from < 0 ? -1
            : src              ? rig_work_copy(work, 0, to, 0, from, 0, RIG_WHOLE)
                               : rig_work_fill(work, 0, to, 0, rig_buffer_bytes(dst), 7);
        if (r >= 0)
                r = rig_work_set_name(work, name);
        if (r >= 0)
                r = rig_work_prepare(work);
        if (r >= 0)
                r = rig_submit(work, slots, src ? 2 : 1, NULL, 0, &point);
        if (r >= 0)
                r = rig_point_wait(&point, RIG_INFINITY);
        rig_work_unref(work);
        return r < 0 ? r : (int64_t)point.value;
}

/* A work of one launch, prepared. */
static int prepare(struct rig_device *device, rig_host_function function, struct rig_work **ret_work)
{
        struct rig_launch l = RIG_LAUNCH_INIT;
        int r = rig_work_new(device, ret_work);

        l.function = function;
        if (r >= 0)
                r = rig_work_launch(*ret_work, 0, &l);
        return r < 0 ? r : rig_work_prepare(*ret_work);
}

/* Both works are prepared before the first stands still: a client that is throttled gets no answers. */
static int64_t block(struct rig_device *device)
{
        struct rig_point point;
        int r = prepare(device, blocked, &blocks);

        if (r >= 0)
                r = prepare(device, passes, &follows);
        if (r >= 0)
                r = rig_submit(blocks, NULL, 0, NULL, 0, &point);
        return r < 0 ? r : (int64_t)point.value;
}

static void *submit(void *data)
{
        for (unsigned i = *(unsigned *)data; i; i--)
                if (rig_submit(follows, NULL, 0, NULL, 0, NULL) < 0) {
                        fprintf(stderr, "program: %s\n", rig_error());
                        exit(EXIT_FAILURE);
                }
        return NULL;
}

/* In a thread: the library waits where as many are in flight as may be. */
static int queue(unsigned n)
{
        n_queued = n;
        return -pthread_create(&queuer, NULL, submit, &n_queued);
}

/* The image stays until the program ends. */
static int64_t hang(struct rig_device *device)
{
        static const char text[] = "steered-image\nhang\n";
        struct rig_launch l = RIG_LAUNCH_INIT;
        struct rig_point point;
        int r = rig_image_load(device, text, strlen(text), &image);

        if (r >= 0)
                r = rig_image_entry(image, "hang", &l.entry);
        l.image = image;
        if (r >= 0)
                r = rig_launch_once(device, &l, NULL, NULL, 0, &point);
        return r < 0 ? r : (int64_t)point.value;
}

static int64_t obey(char *line)
{
        char verb[16] = "", name[64] = "";
        unsigned a = 0, b = 0;
        int r;

        if (sscanf(line, "device %63s", name) == 1) {
                r = rig_device_open(rig, name, &devices[n_devices]);
                return r < 0 ? r : (int64_t)n_devices++;
        }
        if (sscanf(line, "buffer %u %u", &a, &b) == 2 && n_buffers < MOST) {
                r = rig_buffer_new(devices[a], b, RIG_MEMORY_DEVICE, &buffers[n_buffers]);
                return r < 0 ? r : (int64_t)n_buffers++;
        }
        if (sscanf(line, "drop %u", &a) == 1) {
                buffers[a] = rig_buffer_unref(buffers[a]);
                return rig_sync(rig);
        }
        if (sscanf(line, "fill %u %63s", &a, name) == 2)
                return run(buffers[a], NULL, name);
        if (sscanf(line, "copy %u %u %63s", &a, &b, name) == 3)
                return run(buffers[a], buffers[b], name);
        if (sscanf(line, "block %u", &a) == 1)
                return block(devices[a]);
        if (sscanf(line, "queue %u", &a) == 1)
                return queue(a);
        if (sscanf(line, "hang %u", &a) == 1)
                return hang(devices[a]);
        if (sscanf(line, "%15s", verb) == 1 && strcmp(verb, "release") == 0)
                return release();
        fprintf(stderr, "program: it does not know: %s\n", line);
        exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
        char line[256];
        int64_t r;

        if (argc != 2 || rig_connect(argv[1], &rig) < 0) {
                fprintf(stderr, "program: %s\n", rig_error());
                return EXIT_FAILURE;
        }
        setvbuf(stdout, NULL, _IOLBF, 0);
        puts("ready");
        while (fgets(line, sizeof(line), stdin)) {
                r = obey(line);
                if (r < 0)
                        printf("error %d %s\n", (int)-r, rig_error());
                else
                        printf("ok %lld\n", (long long)r);
        }
        release();
        if (n_queued)
                pthread_join(queuer, NULL);
        rig_image_unref(image);
        rig_work_unref(blocks);
        rig_work_unref(follows);
        for (unsigned i = 0; i < n_buffers; i++)
                rig_buffer_unref(buffers[i]);
        for (unsigned i = 0; i < n_devices; i++)
                rig_device_unref(devices[i]);
        rig_unref(rig);
        return EXIT_SUCCESS;
}
