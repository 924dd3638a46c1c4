/* SPDX-License-Identifier: ISC */
/* One connection used by many threads at once: its promises hold for each of them. */
#include <pthread.h>

#include "tests/api/api.h"

#define THREADS 6

static struct rig *rig;
static struct rig_device *m, *host, *steered;
static _Atomic int callbacks;

static void noted(struct rig_device *device, uint64_t value, int error, void *data)
{
        callbacks++;
}

static void add(const struct rig_group *group, const void *params)
{
        ++**(uint64_t *const *)params;
}

static uint32_t next(uint32_t *state)
{
        *state = *state * 1664525 + 1013904223;
        return *state >> 8;
}

/* What one thread does with memory of its own, on devices that all use. */
static void fill_and_read(struct rig_buffer *b, uint32_t value)
{
        struct rig_point p;
        uint32_t word;

        OK(rig_buffer_fill(b, 64, 4032, value, &p));
        if (value % 3 == 0)
                OK(rig_point_wait(&p, RIG_INFINITY));
        if (value % 7 == 0)
                OK(rig_notify(p.device, p.value, noted, NULL));
        OK(rig_buffer_read(b, 4092, &word, 4));
        CHECK(word == value);
}

static void count_on_host(struct rig_buffer *b, uint64_t times)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        struct rig_launch launch = RIG_LAUNCH_INIT;
        uint64_t params[1] = {0}, before, after;
        struct rig_work *w;

        launch.function = add;
        launch.params = params;
        launch.params_bytes = sizeof(params);
        launch.patches = &patch;
        launch.n_patches = 1;
        OK(rig_work_new(host, &w));
        OK(rig_work_slot(w, RIG_READ_WRITE));
        OK(rig_work_launch(w, 0, &launch));
        OK(rig_work_prepare(w));
        OK(rig_buffer_read(b, 0, &before, 8));
        for (uint64_t i = 0; i < times; i++)
                OK(rig_submit(w, &b, 1, NULL, 0, NULL));
        rig_work_unref(w);
        OK(rig_buffer_read(b, 0, &after, 8));
        CHECK(after == before + times);
}

static void *work(void *data)
{
        uint32_t state = (uint32_t)(uintptr_t)data;
        struct rig_buffer *b, *far;

        OK(rig_buffer_new(m, 4096, RIG_MEMORY_DEVICE, &b));
        OK(rig_buffer_new(steered, 4096, RIG_MEMORY_DEVICE, &far));
        for (uint32_t i = 1; i <= 120; i++) {
                switch (next(&state) % 4) {
                case 0:
                        count_on_host(b, next(&state) % 50);
                        break;
                case 1:
                        fill_and_read(far, i);
                        break;
                case 2:
                        OK(rig_buffer_copy(
                                far, 0, b, 0, 4096, NULL)); /* through staging slots that all use */
                        OK(rig_buffer_copy(b, 0, far, 0, 4096, NULL));
                        break;
                default:
                        fill_and_read(b, i);
                }
                if (next(&state) % 16 == 0)
                        OK(rig_dispatch(rig, 0));
        }
        OK(rig_sync(rig));
        rig_buffer_unref(far);
        rig_buffer_unref(b);
        return NULL;
}

static void threads_share_a_connection(void)
{
        pthread_t threads[THREADS];

        rig = test_connect();
        OK(rig_device_open(rig, "memory:M,async", &m));
        OK(rig_device_open(rig, "host", &host));
        OK(rig_device_open(rig, "steered:0", &steered));
        OK(rig_host_set_workers(host, 3));
        for (size_t i = 0; i < THREADS; i++)
                CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
        for (size_t i = 0; i < THREADS; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        rig_device_unref(steered);
        rig_device_unref(host);
        rig_device_unref(m);
        rig_unref(rig);
}

static void *churn(void *data)
{
        struct rig_device *device;
        struct rig_buffer *b;
        uint32_t word;

        for (uint32_t i = 1; i <= 40; i++) {
                OK(rig_device_open(rig, (uintptr_t)data % 2 ? "memory:M,async" : "host", &device));
                OK(rig_buffer_new(device, 4096, RIG_MEMORY_DEVICE, &b));
                OK(rig_buffer_fill(b, 0, 4096, i, NULL));
                OK(rig_buffer_read(b, 4092, &word, 4));
                CHECK(word == i);
                rig_buffer_unref(b);
                rig_device_unref(device);
        }
        return NULL;
}

static void devices_come_and_go_in_all_threads(void)
{
        pthread_t threads[THREADS];

        rig = test_connect();
        for (size_t i = 0; i < THREADS; i++)
                CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
        for (size_t i = 0; i < THREADS; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        rig_unref(rig);
}

static void *wait_for_ever(void *data)
{
        int r = rig_dispatch(rig, RIG_INFINITY);

        CHECK(r == -ECONNRESET || r == 1);
        return NULL;
}

static void every_waiting_thread_hears_that_rigd_is_gone(void)
{
        pthread_t threads[THREADS];

        test_rigd_start();
        OK(rig_connect(NULL, &rig));
        for (size_t i = 0; i < THREADS; i++)
                CHECK(pthread_create(&threads[i], NULL, wait_for_ever, NULL) == 0);
        OK(rig_sync(rig));
        test_rigd_kill();
        for (size_t i = 0; i < THREADS; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK_RETURNS(-ECONNRESET, rig_failed(rig));
        rig_unref(rig);
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(threads_share_a_connection),
                TEST(devices_come_and_go_in_all_threads),
                TEST(every_waiting_thread_hears_that_rigd_is_gone),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
