/* SPDX-License-Identifier: ISC */
/* Works: what is checked when they are built and submitted, and what their runs do. */
#include "tests/api/api.h"

static struct rig *rig;
static struct rig_device *m;

static void open_all(void)
{
        rig = test_connect();
        OK(rig_device_open(rig, "memory:M,async", &m));
}

static void close_all(void)
{
        rig_device_unref(m);
        rig_unref(rig);
}

static struct rig_buffer *new_buffer(struct rig_device *device, uint64_t bytes)
{
        struct rig_buffer *b;

        OK(rig_buffer_new(device, bytes, RIG_MEMORY_DEVICE, &b));
        return b;
}

static struct rig_work *new_work(struct rig_device *device)
{
        struct rig_work *w;

        OK(rig_work_new(device, &w));
        return w;
}

static uint32_t word_of(struct rig_buffer *b, uint64_t i)
{
        uint32_t word;

        OK(rig_buffer_read(b, 4 * i, &word, 4));
        return word;
}

static void a_part_that_cannot_be_is_refused_when_it_is_added(void)
{
        struct rig_launch launch = RIG_LAUNCH_INIT;
        struct rig_work *w;
        int in, out;

        open_all();
        w = new_work(m);
        CHECK_RETURNS(-EINVAL, rig_work_slot(w, 0));
        CHECK_RETURNS(-EINVAL, rig_work_slot(w, 4));
        in = OK(rig_work_slot(w, RIG_READ));
        out = OK(rig_work_slot(w, RIG_WRITE));
        CHECK(in == 0 && out == 1);
        CHECK_RETURNS(-EINVAL, rig_work_copy(w, 0, in, 0, out, 0, 4)); /* writes what is read */
        CHECK_RETURNS(-EINVAL, rig_work_copy(w, 0, 2, 0, in, 0, 4));
        CHECK_RETURNS(-EINVAL, rig_work_copy(w, 9, out, 0, in, 0, 4)); /* no such queue */
        CHECK_RETURNS(-EINVAL, rig_work_fill(w, 0, out, 1, 4, 0));
        CHECK_RETURNS(-ERANGE, rig_work_copy(w, 0, out, UINT64_MAX, in, 0, 4));
        CHECK_RETURNS(-EOPNOTSUPP, rig_work_sync(w, 0, in));
        CHECK_RETURNS(-EOPNOTSUPP, rig_work_launch(w, 0, &launch));
        CHECK(rig_work_copy(w, 0, out, 0, in, 0, 4) == 0);
        CHECK_RETURNS(-EINVAL, rig_work_after(w, 0, 0));
        CHECK_RETURNS(-EINVAL, rig_work_after(w, 1, 0));
        for (int i = 1; i < 32; i++)
                CHECK(rig_work_fill(w, 0, out, 0, 4, 0) == i);
        CHECK_RETURNS(-EINVAL, rig_work_fill(w, 0, out, 0, 4, 0));
        for (int i = 2; i < 64; i++)
                CHECK(rig_work_slot(w, RIG_READ_WRITE) == i);
        CHECK_RETURNS(-EINVAL, rig_work_slot(w, RIG_READ));
        OK(rig_work_prepare(w));
        CHECK_RETURNS(-EINVAL, rig_work_prepare(w));
        CHECK_RETURNS(-EINVAL, rig_work_slot(w, RIG_READ));
        CHECK(rig_work_ref(w) == w && rig_work_unref(w) == NULL && rig_work_unref(NULL) == NULL);
        rig_work_unref(w);
        close_all();
}

static void buffers_that_do_not_fit_are_refused_when_submitted(void)
{
        struct rig *other = test_connect();
        struct rig_buffer *a, *b, *foreign, *far, *none[1] = {NULL};
        struct rig_device *there, *steered;
        struct rig_point point = {0};
        struct rig_work *w, *unprepared;

        open_all();
        OK(rig_device_open(other, "memory:M", &there));
        OK(rig_device_open(rig, "steered:0", &steered));
        a = new_buffer(m, 64);
        b = new_buffer(m, 32);
        foreign = new_buffer(there, 64);
        far = new_buffer(steered, 64);
        unprepared = new_work(m);
        w = new_work(m);
        OK(rig_work_slot(w, RIG_WRITE));
        OK(rig_work_slot(w, RIG_READ));
        OK(rig_work_copy(w, 0, 0, 8, 1, 0, 32));
        OK(rig_work_prepare(w));
        CHECK_RETURNS(-EINVAL, rig_submit(unprepared, NULL, 0, NULL, 0, NULL));
        CHECK_RETURNS(-EINVAL, rig_submit(w, (struct rig_buffer *[]){a}, 1, NULL, 0, NULL));
        CHECK_RETURNS(-EINVAL, rig_submit(w, (struct rig_buffer *[]){a, none[0]}, 2, NULL, 0, NULL));
        CHECK_RETURNS(-ERANGE, rig_submit(w, (struct rig_buffer *[]){b, a}, 2, NULL, 0, NULL));
        CHECK_RETURNS(-EXDEV, rig_submit(w, (struct rig_buffer *[]){a, foreign}, 2, NULL, 0, NULL));
        CHECK_RETURNS(-EXDEV, rig_submit(w, (struct rig_buffer *[]){a, far}, 2, NULL, 0, NULL));
        CHECK_RETURNS(-EINVAL, rig_submit(w, (struct rig_buffer *[]){a, b}, 2, &point, 1, NULL));
        point = (struct rig_point){.device = m, .value = 1};
        CHECK_RETURNS(-EINVAL, rig_submit(w, (struct rig_buffer *[]){a, b}, 2, &point, 1, NULL));
        point = (struct rig_point){.device = there, .value = 0};
        CHECK_RETURNS(-EXDEV, rig_submit(w, (struct rig_buffer *[]){a, b}, 2, &point, 1, NULL));
        CHECK(rig_device_submitted(m) == 0); /* a refusal changes nothing */
        OK(rig_submit(w, (struct rig_buffer *[]){a, b}, 2, NULL, 0, &point));
        CHECK(point.device == m && point.value == 1 && rig_device_submitted(m) == 1);
        OK(rig_point_wait(&point, RIG_INFINITY));
        rig_work_unref(w);
        rig_work_unref(unprepared);
        rig_buffer_unref(far);
        rig_buffer_unref(foreign);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        rig_device_unref(steered);
        rig_device_unref(there);
        rig_unref(other);
        close_all();
}

static void whole_buffers_must_be_as_long(void)
{
        struct rig_buffer *a, *b, *c;
        struct rig_work *copy, *fill;

        open_all();
        a = new_buffer(m, 64);
        b = new_buffer(m, 60);
        c = new_buffer(m, 30);
        copy = new_work(m);
        OK(rig_work_slot(copy, RIG_WRITE));
        OK(rig_work_slot(copy, RIG_READ));
        OK(rig_work_copy(copy, 0, 0, 4, 1, 0, RIG_WHOLE));
        OK(rig_work_prepare(copy));
        fill = new_work(m);
        OK(rig_work_slot(fill, RIG_WRITE));
        OK(rig_work_fill(fill, 0, 0, 0, RIG_WHOLE, 5));
        OK(rig_work_prepare(fill));
        OK(rig_submit(fill, &b, 1, NULL, 0, NULL));
        CHECK_RETURNS(-ERANGE, rig_submit(fill, &c, 1, NULL, 0, NULL));
        OK(rig_submit(copy, (struct rig_buffer *[]){a, b}, 2, NULL, 0, NULL)); /* 64 - 4 == 60 */
        CHECK_RETURNS(-ERANGE, rig_submit(copy, (struct rig_buffer *[]){a, a}, 2, NULL, 0, NULL));
        CHECK(word_of(a, 0) == 0 && word_of(a, 1) == 5 && word_of(a, 15) == 5);
        rig_work_unref(fill);
        rig_work_unref(copy);
        rig_buffer_unref(c);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        close_all();
}

static void bound_slots_are_filled_once(void)
{
        struct rig_buffer *a, *b, *small;
        struct rig_work *w;

        open_all();
        a = new_buffer(m, 64);
        b = new_buffer(m, 64);
        small = new_buffer(m, 8);
        w = new_work(m);
        OK(rig_work_slot(w, RIG_WRITE));
        OK(rig_work_slot(w, RIG_READ));
        OK(rig_work_copy(w, 0, 0, 0, 1, 0, 64));
        CHECK_RETURNS(-EINVAL, rig_work_bind(w, 2, b));
        OK(rig_work_bind(w, 1, small));
        CHECK_RETURNS(-ERANGE, rig_work_prepare(w));
        OK(rig_work_bind(w, 1, b)); /* in the place of the one that is too short */
        OK(rig_work_prepare(w));
        rig_buffer_unref(small);
        OK(rig_buffer_fill(b, 0, 64, 9, NULL));
        OK(rig_submit(w, &a, 1, NULL, 0, NULL));
        rig_buffer_unref(b); /* the work keeps it */
        CHECK(word_of(a, 3) == 9);
        OK(rig_submit(w, &a, 1, NULL, 0, NULL));
        OK(rig_buffer_wait(a, RIG_READ_WRITE, RIG_INFINITY));
        rig_work_unref(w);
        rig_buffer_unref(a);
        close_all();
}

static void order_O1_values_are_numbered_and_reached_in_order(void)
{
        struct rig_point p;
        struct rig_buffer *a;
        struct rig_work *w;

        open_all();
        a = new_buffer(m, 64);
        w = new_work(m);
        OK(rig_work_slot(w, RIG_WRITE));
        OK(rig_work_fill(w, 0, 0, 0, 64, 1));
        OK(rig_work_prepare(w));
        for (uint64_t i = 1; i <= 1000; i++) {
                OK(rig_submit(w, &a, 1, NULL, 0, &p));
                CHECK(p.value == i && rig_device_submitted(m) == i && rig_device_signaled(m) <= i);
        }
        OK(rig_wait(m, 500, RIG_INFINITY));
        CHECK(rig_device_signaled(m) >= 500);
        OK(rig_point_wait(&p, RIG_INFINITY));
        CHECK(rig_device_signaled(m) == 1000);
        rig_work_unref(w);
        rig_buffer_unref(a);
        close_all();
}

static void more_runs_than_rigd_takes_at_once_are_submitted(void)
{
        struct rig_point p;
        struct rig_buffer *a;
        struct rig_work *w;

        open_all();
        a = new_buffer(m, 64);
        w = new_work(m);
        OK(rig_work_slot(w, RIG_READ_WRITE));
        OK(rig_work_fill(w, 0, 0, 0, 4, 1));
        OK(rig_work_prepare(w));
        for (int i = 0; i < 50000; i++)
                OK(rig_submit(w, &a, 1, NULL, 0, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        CHECK(rig_device_signaled(m) == 50000);
        rig_work_unref(w);
        rig_buffer_unref(a);
        close_all();
}

static void order_O7_a_run_follows_the_points_it_is_given(void)
{
        struct rig_device *held;
        struct rig_buffer *gate, *a;
        struct rig_image *image;
        struct rig_launch launch = RIG_LAUNCH_INIT;
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t access = RIG_READ;
        uint64_t params[1] = {0};
        struct rig_point first, second;
        struct rig_work *w;
        void *address;

        open_all();
        OK(rig_device_open(rig, "steered:0", &held));
        OK(rig_image_load(held, "steered-image\nhold\n", 19, &image));
        OK(rig_image_entry(image, "hold", &launch.entry));
        OK(rig_buffer_new(held, 4, RIG_MEMORY_PINNED, &gate));
        OK(rig_buffer_map(gate, &address));
        launch.image = image;
        launch.params = params;
        launch.params_bytes = sizeof(params);
        launch.patches = &patch;
        launch.n_patches = 1;
        OK(rig_launch_once(held, &launch, &gate, &access, 1, &first)); /* is done once the gate opens */
        a = new_buffer(m, 64);
        w = new_work(m);
        OK(rig_work_slot(w, RIG_WRITE));
        OK(rig_work_fill(w, 0, 0, 0, 64, 1));
        OK(rig_work_prepare(w));
        OK(rig_submit(w, &a, 1, &first, 1, &second));
        OK(rig_sync(rig));
        CHECK_RETURNS(-ETIMEDOUT, rig_point_wait(&second, 2000));
        CHECK_RETURNS(-ETIMEDOUT, rig_buffer_wait(a, RIG_READ, 0));
        CHECK(rig_device_signaled(m) == 0);
        __atomic_store_n((uint32_t *)address, 1, __ATOMIC_RELEASE);
        OK(rig_point_wait(&second, RIG_INFINITY));
        CHECK(rig_device_signaled(held) == 1);
        rig_work_unref(w);
        rig_buffer_unref(a);
        rig_buffer_unref(gate);
        CHECK(rig_image_ref(image) == image && rig_image_unref(image) == NULL &&
                rig_image_unref(NULL) == NULL);
        rig_image_unref(image);
        rig_device_unref(held);
        close_all();
}

static void images_are_refused_by_who_cannot_load_them(void)
{
        struct rig_device *one;
        struct rig_image *image;
        uint64_t entry;

        open_all();
        OK(rig_device_open(rig, "steered:0", &one));
        CHECK_RETURNS(-EOPNOTSUPP, rig_image_load(m, "x", 1, &image));
        CHECK_RETURNS(-ENOEXEC, rig_image_load(one, "not an image", 12, &image));
        CHECK_RETURNS(-EINVAL, rig_image_load(one, "", 0, &image));
        OK(rig_image_load(one, "steered-image\nnop\n", 18, &image));
        CHECK_RETURNS(-ENOENT, rig_image_entry(image, "sin", &entry));
        rig_image_unref(image);
        rig_device_unref(one);
        close_all();
}

static void parts_follow_the_edges_between_their_queues(void)
{
        struct rig_device *one;
        struct rig_buffer *a, *b, *c;
        struct rig_work *w;

        open_all();
        OK(rig_device_open(rig, "steered:0", &one));
        a = new_buffer(one, 4096);
        b = new_buffer(one, 4096);
        c = new_buffer(one, 4096);
        w = new_work(one);
        for (int i = 0; i < 3; i++)
                OK(rig_work_slot(w, RIG_READ_WRITE));
        CHECK(rig_work_fill(w, 0, 0, 0, RIG_WHOLE, 21) == 0);
        CHECK(rig_work_copy(w, 1, 1, 0, 0, 0, RIG_WHOLE) == 1);
        CHECK(rig_work_copy(w, 0, 2, 0, 1, 0, RIG_WHOLE) == 2);
        OK(rig_work_after(w, 1, 0));
        OK(rig_work_after(w, 2, 1));
        OK(rig_work_prepare(w));
        for (int i = 0; i < 50; i++) {
                OK(rig_buffer_fill(c, 0, 4096, 0, NULL));
                OK(rig_submit(w, (struct rig_buffer *[]){a, b, c}, 3, NULL, 0, NULL));
                CHECK(word_of(c, 1023) == 21);
        }
        rig_work_unref(w);
        rig_buffer_unref(c);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        rig_device_unref(one);
        close_all();
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(a_part_that_cannot_be_is_refused_when_it_is_added),
                TEST(buffers_that_do_not_fit_are_refused_when_submitted),
                TEST(whole_buffers_must_be_as_long),
                TEST(bound_slots_are_filled_once),
                TEST(order_O1_values_are_numbered_and_reached_in_order),
                TEST(more_runs_than_rigd_takes_at_once_are_submitted),
                TEST(order_O7_a_run_follows_the_points_it_is_given),
                TEST(images_are_refused_by_who_cannot_load_them),
                TEST(parts_follow_the_edges_between_their_queues),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
