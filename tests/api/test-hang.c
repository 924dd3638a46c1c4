/* SPDX-License-Identifier: ISC */
/*
 * Hangs (L4, L5): work that stands still for the bound that its device states loses the adapter, never
 * early, and long work elsewhere is no fault. The bounds are short, and every wait for one to pass is a wait
 * of rig's.
 */
#include "tests/api/api.h"

#define BOUND_USEC 60000u           /* the hang bound of these devices */
#define LONG_USEC  (4 * BOUND_USEC) /* longer than it */

static const char image_text[] = "steered-image\nhang\nhold\nnop\n";

struct side {
        struct rig *rig;
        struct rig_device *device;
        struct rig_image *image;
};

static void open_side(struct side *s, const char *name)
{
        if (!s->rig)
                OK(rig_connect(NULL, &s->rig));
        OK(rig_device_open(s->rig, name, &s->device));
        OK(rig_image_load(s->device, image_text, sizeof(image_text) - 1, &s->image));
}

static void close_side(struct side *s)
{
        rig_image_unref(s->image);
        rig_device_unref(s->device);
        rig_unref(s->rig);
        *s = (struct side){0};
}

/* Launches a function that gets the address of `buffer`, which it uses as `access` says. */
static struct rig_point launch(struct side *s, const char *name, struct rig_buffer *buffer, uint32_t access)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        struct rig_launch l = RIG_LAUNCH_INIT;
        uint64_t params[1] = {0};
        struct rig_point p;

        OK(rig_image_entry(s->image, name, &l.entry));
        l.image = s->image;
        l.params = params;
        l.params_bytes = sizeof(params);
        l.patches = &patch;
        l.n_patches = buffer ? 1 : 0;
        OK(rig_launch_once(s->device, &l, &buffer, &access, buffer ? 1 : 0, &p));
        return p;
}

static void loss_L4_work_that_stands_still_loses_its_adapter(void)
{
        struct side a = {0}, b = {0}, again = {0};
        struct rig_device *m;
        struct rig_buffer *on_m;
        struct rig_point p;
        char back[4];

        test_rigd_start();
        open_side(&a, "steered:0,hang=60000");
        open_side(&b, "steered:0,hang=60000");
        OK(rig_device_open(b.rig, "memory:M", &m));
        OK(rig_buffer_new(m, 4, RIG_MEMORY_DEVICE, &on_m));
        p = launch(&a, "hang", NULL, 0);
        CHECK_RETURNS(-ENODEV, rig_point_wait(&p, RIG_INFINITY));
        CHECK(strstr(rig_error(), "stood still for 60 ms"));
        CHECK_RETURNS(-ENODEV, rig_device_lost(a.device));
        /* the adapter is lost: so is whoever else has a device on it, and knows why */
        OK(rig_sync(b.rig));
        CHECK_RETURNS(-ENODEV, rig_device_lost(b.device));
        CHECK(strstr(rig_error(), "stood still for 60 ms"));
        /* everything else goes on, and so does the adapter, with new devices (L1) */
        OK(rig_buffer_write(on_m, 0, "goes", 4));
        OK(rig_buffer_read(on_m, 0, back, 4));
        CHECK(memcmp(back, "goes", 4) == 0);
        open_side(&again, "steered:0,hang=60000");
        p = launch(&again, "nop", NULL, 0);
        OK(rig_point_wait(&p, RIG_INFINITY));
        close_side(&again);
        rig_buffer_unref(on_m);
        rig_device_unref(m);
        close_side(&b);
        close_side(&a);
        test_rigd_stop();
}

static void loss_L3_memory_of_work_that_only_a_reset_ends_returns_after_it(void)
{
        struct side a = {0};
        struct rig_buffer *b;
        struct rig_point p;

        open_side(&a, "steered:1,hang=60000,sticky");
        OK(rig_buffer_new(a.device, 1 << 20, RIG_MEMORY_PINNED, &b));
        p = launch(&a, "hang", b, RIG_WRITE);
        CHECK_RETURNS(-ENODEV, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(-ENODEV, rig_buffer_wait(b, RIG_READ, RIG_INFINITY)); /* L2: what it was writing */
        rig_buffer_unref(b);
        rig_image_unref(a.image);
        rig_device_unref(a.device);
        a.image = NULL;
        a.device = NULL;
        /* the open comes behind the reset */
        open_side(&a, "steered:1,hang=60000");
        OK(rig_buffer_new(a.device, 1 << 20, RIG_MEMORY_PINNED, &b));
        p = launch(&a, "nop", b, RIG_WRITE);
        OK(rig_point_wait(&p, RIG_INFINITY));
        rig_buffer_unref(b);
        close_side(&a);
}

/* `options` of a consumer whose hang bound passes several times over while it waits for another device. */
static void consumer_waits(const char *options)
{
        struct side producer = {0}, consumer = {0};
        struct rig_buffer *gate, *there;
        struct rig_point held, p;
        void *address;

        open_side(&producer, "steered:2");
        consumer.rig = rig_ref(producer.rig);
        open_side(&consumer, options);
        OK(rig_buffer_new(producer.device, 4, RIG_MEMORY_PINNED, &gate));
        OK(rig_buffer_map(gate, &address));
        OK(rig_buffer_borrow(consumer.device, gate, &there));
        held = launch(&producer, "hold", gate, RIG_READ_WRITE);
        p = launch(&consumer, "nop", there, RIG_WRITE);
        /* long work of a device without a bound is no fault (L5), and the clock of who waits for it stands
         */
        CHECK_RETURNS(-ETIMEDOUT, rig_point_wait(&p, LONG_USEC));
        CHECK_RETURNS(0, rig_device_lost(consumer.device));
        CHECK_RETURNS(0, rig_device_lost(producer.device));
        __atomic_store_n((uint32_t *)address, 1, __ATOMIC_RELEASE);
        OK(rig_point_wait(&held, RIG_INFINITY));
        OK(rig_point_wait(&p, RIG_INFINITY));
        rig_buffer_unref(there);
        rig_buffer_unref(gate);
        close_side(&consumer);
        close_side(&producer);
}

static void loss_L4_the_clock_stands_while_the_queue_waits_for_another_device(void)
{
        consumer_waits("steered:3,hang=60000,waits");
}

static void loss_L4_the_clock_stands_while_the_core_waits_for_another_device(void)
{
        consumer_waits("steered:3,hang=60000");
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(loss_L4_work_that_stands_still_loses_its_adapter),
                TEST(loss_L3_memory_of_work_that_only_a_reset_ends_returns_after_it),
                TEST(loss_L4_the_clock_stands_while_the_queue_waits_for_another_device),
                TEST(loss_L4_the_clock_stands_while_the_core_waits_for_another_device),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
