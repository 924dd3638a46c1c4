/* SPDX-License-Identifier: ISC */
/* Host devices: the program's functions as ordered work, on all workers. */
#include <stdatomic.h>

#include "tests/api/api.h"

static struct rig *rig;
static struct rig_device *host, *m;

static void open_all(void)
{
        rig = test_connect();
        OK(rig_device_open(rig, "host", &host));
        OK(rig_device_open(rig, "memory:M,async", &m));
}

static void close_all(void)
{
        rig_device_unref(m);
        rig_device_unref(host);
        rig_unref(rig);
}

static struct rig_buffer *new_buffer(struct rig_device *device, uint64_t bytes)
{
        struct rig_buffer *b;

        OK(rig_buffer_new(device, bytes, RIG_MEMORY_DEVICE, &b));
        return b;
}

static struct rig_launch launch_of(rig_host_function function, uint64_t *params, uint32_t n_params,
        const struct rig_patch *patches, uint32_t n_patches)
{
        struct rig_launch launch = RIG_LAUNCH_INIT;

        launch.function = function;
        launch.params = params;
        launch.params_bytes = (uint32_t)(n_params * sizeof(*params));
        launch.patches = patches;
        launch.n_patches = n_patches;
        return launch;
}

static void count_group(const struct rig_group *g, const void *params)
{
        uint32_t *cells = *(uint32_t *const *)params;
        uint32_t i = g->group[0] + g->groups[0] * (g->group[1] + g->groups[1] * g->group[2]);

        memset(g->shared, (int)g->worker, 1000); /* it is this group's alone */
        atomic_fetch_add((_Atomic uint32_t *)&cells[i], g->threads[0] * g->threads[1] * g->threads[2]);
}

static void every_group_runs_once(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0, .addend = 4};
        const uint32_t access = RIG_READ_WRITE;
        struct rig_buffer *cells;
        struct rig_launch launch;
        uint64_t params[1] = {0};
        uint32_t *words;
        void *address;

        open_all();
        cells = new_buffer(host, 4 + 4 * 7 * 11 * 13);
        launch = launch_of(count_group, params, 1, &patch, 1);
        memcpy(launch.grid, (uint32_t[]){7, 11, 13}, sizeof(launch.grid));
        memcpy(launch.group, (uint32_t[]){2, 3, 4}, sizeof(launch.group));
        launch.shared_bytes = 1000;
        for (int i = 0; i < 100; i++)
                OK(rig_launch_once(host, &launch, &cells, &access, 1, NULL));
        OK(rig_buffer_wait(cells, RIG_READ, RIG_INFINITY));
        OK(rig_buffer_map(cells, &address));
        words = address;
        CHECK(words[0] == 0);
        for (uint32_t i = 1; i <= 7 * 11 * 13; i++)
                CHECK(words[i] == 100 * 24);
        rig_buffer_unref(cells);
        close_all();
}

static void append(const struct rig_group *g, const void *params)
{
        const uint64_t *p = params;
        uint64_t *sum = (uint64_t *)(uintptr_t)p[0];

        *sum = *sum * 31 + p[1];
}

/* Runs that only commute in their order: any other gives another sum. */
static void order_O1_runs_are_done_in_the_order_they_were_submitted(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        struct rig_work *works[10];
        struct rig_buffer *sum;
        uint64_t expected = 0, got;

        open_all();
        sum = new_buffer(m, 8); /* the host names any memory that it addresses */
        for (uint64_t i = 0; i < 10; i++) {
                uint64_t params[2] = {0, i + 1};
                struct rig_launch launch = launch_of(append, params, 2, &patch, 1);

                OK(rig_work_new(host, &works[i]));
                OK(rig_work_slot(works[i], RIG_READ_WRITE));
                OK(rig_work_launch(works[i], 0, &launch));
                OK(rig_work_prepare(works[i]));
        }
        for (uint64_t i = 0; i < 20000; i++) {
                expected = expected * 31 + i * 7 % 10 + 1;
                OK(rig_submit(works[i * 7 % 10], &sum, 1, NULL, 0, NULL));
        }
        OK(rig_buffer_read(sum, 0, &got, 8));
        CHECK(got == expected);
        for (size_t i = 0; i < 10; i++)
                rig_work_unref(works[i]);
        rig_buffer_unref(sum);
        close_all();
}

static void add_one(const struct rig_group *g, const void *params)
{
        uint32_t *words = *(uint32_t *const *)params;

        for (uint32_t i = 0; i < 256; i++)
                words[g->group[0] * 256 + i]++;
}

static void order_O2_host_code_and_other_devices_follow_each_other(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        struct rig_buffer *a, *b;
        struct rig_launch launch;
        uint64_t params[1] = {0};
        struct rig_work *w;
        uint32_t *words;
        void *address;

        open_all();
        a = new_buffer(m, 65536);
        b = new_buffer(m, 65536);
        launch = launch_of(add_one, params, 1, &patch, 1);
        launch.grid[0] = 64;
        OK(rig_work_new(host, &w));
        OK(rig_work_slot(w, RIG_READ_WRITE));
        OK(rig_work_launch(w, 1, &launch));
        OK(rig_work_prepare(w));
        for (int i = 0; i < 300; i++) {
                OK(rig_submit(w, &a, 1, NULL, 0, NULL));
                OK(rig_buffer_copy(b, 0, a, 0, 65536, NULL)); /* on m */
                OK(rig_submit(w, &b, 1, NULL, 0, NULL));
                OK(rig_buffer_copy(a, 0, b, 0, 65536, NULL));
        }
        OK(rig_buffer_wait(a, RIG_READ, RIG_INFINITY));
        OK(rig_buffer_map(a, &address));
        words = address;
        for (uint32_t i = 0; i < 16384; i++)
                CHECK(words[i] == 600);
        rig_work_unref(w);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        close_all();
}

static void copies_and_fills_of_the_host_move_every_byte(void)
{
        const uint64_t bytes = 5 << 20;
        struct rig_buffer *a, *b, *odd;
        uint8_t *p = malloc(bytes), *q = malloc(bytes);
        int fd = test_memfd(bytes + 4096);

        open_all();
        CHECK(p && q);
        for (uint64_t i = 0; i < bytes; i++)
                p[i] = test_byte(i, 5);
        a = new_buffer(host, bytes);
        b = new_buffer(host, bytes);
        OK(rig_buffer_adopt(host, fd, 3, bytes, &odd)); /* at an odd address */
        OK(rig_buffer_write(a, 0, p, bytes));
        OK(rig_buffer_copy(b, 0, a, 0, bytes, NULL));
        OK(rig_buffer_copy(odd, 1, b, 1, bytes - 1, NULL));
        OK(rig_buffer_read(odd, 1, q, bytes - 1));
        CHECK(memcmp(p + 1, q, bytes - 1) == 0);
        OK(rig_buffer_copy(a, 1, a, 0, bytes - 1, NULL)); /* ranges that overlap */
        OK(rig_buffer_read(a, 1, q, bytes - 1));
        CHECK(memcmp(p, q, bytes - 1) == 0);
        OK(rig_buffer_fill(odd, 0, bytes, 0x01020304, NULL));
        OK(rig_buffer_read(odd, 0, q, bytes));
        for (uint64_t i = 0; i < bytes; i += 4)
                CHECK(memcmp(q + i, &(uint32_t){0x01020304}, 4) == 0);
        rig_buffer_unref(odd);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        close(fd);
        free(p);
        free(q);
        close_all();
}

static _Atomic uint32_t slow_runs;

static void slow(const struct rig_group *g, const void *params)
{
        for (int i = 0; i < 1000000; i++)
                atomic_signal_fence(memory_order_seq_cst);
        atomic_fetch_add(&slow_runs, 1);
}

static void accepted_work_completes_after_everything_was_dropped(void)
{
        struct rig_launch launch = launch_of(slow, NULL, 0, NULL, 0);
        const uint32_t access = RIG_WRITE;
        struct rig_buffer *b;

        open_all();
        slow_runs = 0;
        b = new_buffer(host, 4096);
        for (int i = 0; i < 20; i++)
                OK(rig_launch_once(host, &launch, &b, &access, 1, NULL));
        rig_buffer_unref(b);
        close_all(); /* waits for what runs in this process */
        CHECK(slow_runs == 20);
}

static struct rig_device *dropped;
static _Atomic bool may_drop;

static void drop_own_device(const struct rig_group *g, const void *params)
{
        while (!atomic_load(&may_drop))
                ;
        rig_device_unref(dropped); /* the last reference */
        atomic_fetch_add(&slow_runs, 1);
}

static void a_device_may_be_dropped_by_its_own_code(void)
{
        struct rig_launch launch = launch_of(drop_own_device, NULL, 0, NULL, 0);
        struct rig_launch after = launch_of(slow, NULL, 0, NULL, 0);

        open_all();
        slow_runs = 0;
        may_drop = false;
        OK(rig_device_open(rig, "host", &dropped));
        OK(rig_launch_once(dropped, &launch, NULL, NULL, 0, NULL));
        OK(rig_launch_once(dropped, &after, NULL, NULL, 0, NULL));
        atomic_store(&may_drop, true);
        while (atomic_load(&slow_runs) < 2)
                OK(rig_sync(rig));
        close_all();
}

static void submit_from_code(const struct rig_group *g, const void *params)
{
        struct rig_buffer *b = *(struct rig_buffer *const *)params;

        OK(rig_buffer_fill(b, 0, 4096, 99, NULL));
}

static void code_may_submit_work(void)
{
        struct rig_buffer *b;
        struct rig_launch launch;
        struct rig_point p;
        uint32_t word;

        open_all();
        b = new_buffer(m, 4096);
        launch = launch_of(submit_from_code, (uint64_t *)&b, 1, NULL, 0);
        OK(rig_launch_once(host, &launch, NULL, NULL, 0, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_buffer_read(b, 100, &word, 4));
        CHECK(word == 99);
        rig_buffer_unref(b);
        close_all();
}

static uint32_t worker_max;

static void note_worker(const struct rig_group *g, const void *params)
{
        CHECK(g->worker < 3);
        __atomic_fetch_or(&worker_max, 1u << g->worker, __ATOMIC_RELAXED);
}

static void workers_are_as_many_as_asked_for(void)
{
        struct rig_launch launch = launch_of(note_worker, NULL, 0, NULL, 0);
        struct rig_point p;

        open_all();
        launch.grid[0] = 10000;
        CHECK_RETURNS(-EINVAL, rig_host_set_workers(m, 3));
        CHECK_RETURNS(-EINVAL, rig_host_set_workers(host, 0));
        OK(rig_host_set_workers(host, 3));
        OK(rig_launch_once(host, &launch, NULL, NULL, 0, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        CHECK(worker_max != 0);
        CHECK_RETURNS(-EINVAL, rig_host_set_workers(host, 2)); /* they run already */
        close_all();
}

static void launches_that_cannot_be_are_refused(void)
{
        struct {
                struct rig_launch launch;
                uint64_t newer;
        } large = {.launch = RIG_LAUNCH_INIT};
        uint64_t params[2] = {0};
        struct rig_patch patch = {.at = 8, .slot = 0};
        struct rig_launch launch = launch_of(slow, params, 2, &patch, 1);
        const uint32_t access = RIG_READ;
        struct rig_buffer *b;

        open_all();
        b = new_buffer(host, 8);
        OK(rig_launch_once(host, &launch, &b, &access, 1, NULL));
        patch.at = 9;
        CHECK_RETURNS(-EINVAL, rig_launch_once(host, &launch, &b, &access, 1, NULL));
        patch = (struct rig_patch){.at = 0, .slot = 1};
        CHECK_RETURNS(-EINVAL, rig_launch_once(host, &launch, &b, &access, 1, NULL));
        patch = (struct rig_patch){.at = 0, .slot = 0, .addend = 9};
        CHECK_RETURNS(-ERANGE, rig_launch_once(host, &launch, &b, &access, 1, NULL));
        patch.addend = 8;
        launch.grid[1] = 0;
        CHECK_RETURNS(-EINVAL, rig_launch_once(host, &launch, &b, &access, 1, NULL));
        launch.grid[1] = 1;
        launch.function = NULL;
        CHECK_RETURNS(-EINVAL, rig_launch_once(host, &launch, &b, &access, 1, NULL));
        launch.function = slow;
        launch.params_bytes = 5000;
        CHECK_RETURNS(-EINVAL, rig_launch_once(host, &launch, &b, &access, 1, NULL));
        large.launch.function = slow;
        large.launch.size = sizeof(large);
        OK(rig_launch_once(host, &large.launch, NULL, NULL, 0, NULL));
        large.newer = 1;
        CHECK_RETURNS(-E2BIG, rig_launch_once(host, &large.launch, NULL, NULL, 0, NULL));
        rig_buffer_unref(b);
        close_all();
}

static size_t read_file(const char *name, uint8_t **ret_bytes)
{
        FILE *f = fopen(name, "re");
        size_t room = 1 << 20, n;

        CHECK(f);
        *ret_bytes = malloc(room);
        CHECK(*ret_bytes);
        n = fread(*ret_bytes, 1, room, f);
        CHECK(n > 0 && n < room);
        fclose(f);
        return n;
}

static void images_are_shared_objects_loaded_from_bytes(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t access = RIG_READ_WRITE;
        struct rig_image *image, *second;
        uint64_t params[1] = {0}, entry;
        struct rig_launch launch;
        struct rig_buffer *b;
        uint8_t *bytes;
        uint32_t word;
        size_t n;

        open_all();
        n = read_file(getenv("RIG_TEST_IMAGE"), &bytes);
        CHECK_RETURNS(-ENOEXEC, rig_image_load(host, "not an object", 13, &image));
        OK(rig_image_load(host, bytes, n, &image));
        OK(rig_image_load(host, bytes, n, &second));
        free(bytes);
        CHECK_RETURNS(-ENOENT, rig_image_entry(image, "no_such_function", &entry));
        OK(rig_image_entry(image, "test_image_double", &entry));
        b = new_buffer(host, 4);
        word = 21;
        OK(rig_buffer_write(b, 0, &word, 4));
        launch = launch_of(NULL, params, 1, &patch, 1);
        launch.image = image;
        launch.entry = entry;
        OK(rig_launch_once(host, &launch, &b, &access, 1, NULL));
        rig_image_unref(image); /* what was submitted keeps the code */
        rig_image_unref(second);
        OK(rig_buffer_read(b, 0, &word, 4));
        CHECK(word == 42);
        rig_buffer_unref(b);
        close_all();
}

/* A host run that follows lost work is passed: its code is not called. */
static void loss_L2_host_code_that_follows_lost_work_does_not_run(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t access = RIG_READ_WRITE;
        struct rig_device *one;
        struct rig_buffer *spoiled, *own;
        struct rig_image *image;
        struct rig_launch fault = RIG_LAUNCH_INIT, launch;
        uint64_t params[1] = {0};
        struct rig_point p, q;

        open_all();
        slow_runs = 0;
        OK(rig_device_open(rig, "steered:0", &one));
        OK(rig_image_load(one, "steered-image\nfault\n", 20, &image));
        OK(rig_image_entry(image, "fault", &fault.entry));
        fault.image = image;
        OK(rig_buffer_new(one, 64, RIG_MEMORY_PINNED, &spoiled));
        own = new_buffer(host, 64);
        launch = launch_of(slow, params, 1, &patch, 1);
        OK(rig_launch_once(one, &fault, &spoiled, &access, 1, NULL));
        OK(rig_launch_once(host, &launch, &own, &access, 1, NULL));
        OK(rig_launch_once(host, &launch, &spoiled, &access, 1, &p));
        OK(rig_launch_once(host, &launch, &own, &access, 1, &q));
        CHECK_RETURNS(-ENODEV, rig_point_wait(&q, RIG_INFINITY));
        CHECK_RETURNS(0, rig_point_wait(&q, RIG_INFINITY));
        CHECK(atomic_load(&slow_runs) == 2);
        CHECK_RETURNS(0, rig_device_lost(host));
        rig_buffer_unref(own);
        rig_buffer_unref(spoiled);
        rig_image_unref(image);
        rig_device_unref(one);
        close_all();
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(every_group_runs_once),
                TEST(order_O1_runs_are_done_in_the_order_they_were_submitted),
                TEST(order_O2_host_code_and_other_devices_follow_each_other),
                TEST(copies_and_fills_of_the_host_move_every_byte),
                TEST(accepted_work_completes_after_everything_was_dropped),
                TEST(a_device_may_be_dropped_by_its_own_code),
                TEST(code_may_submit_work),
                TEST(workers_are_as_many_as_asked_for),
                TEST(launches_that_cannot_be_are_refused),
                TEST(images_are_shared_objects_loaded_from_bytes),
                TEST(loss_L2_host_code_that_follows_lost_work_does_not_run),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
