/* SPDX-License-Identifier: ISC */
/* Limits that rigd tells later than its hello: the library goes by the last ones. */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/api/api.h"
#include "tests/api/fake-rigd.h"

static struct rig_msg_limits limits; /* what the next sync is told before its answer */

static enum twisted tell_limits(struct fake *fake, struct fake_answer *answer)
{
        if (answer->asked == RIG_MSG_SYNC)
                fake_send(fake, RIG_MSG_LIMITS, &limits, NULL, 0);
        return TWISTED_SEND;
}

static struct rig *connect_fake(struct fake *fake, const char *transport)
{
        char address[64];
        struct rig *rig;

        fake->twist = tell_limits;
        fake_start(fake, address, sizeof(address), transport);
        OK(rig_connect(address, &rig));
        return rig;
}

static void set(struct rig *rig, uint64_t objects, uint64_t runs)
{
        limits = (struct rig_msg_limits){.objects = objects, .memory = RIG_PROTO_BYTES_MAX, .runs = runs};
        OK(rig_sync(rig));
}

static void objects(const char *transport)
{
        struct fake *fake = calloc(1, sizeof(*fake));
        struct rig *rig = connect_fake(fake, transport);
        struct rig_buffer *b, *views[4], *none;
        struct rig_device *m;

        OK(rig_device_open(rig, "memory", &m));
        OK(rig_buffer_new(m, 64, RIG_MEMORY_DEVICE, &b));
        OK(rig_buffer_view(b, 0, 8, &views[0]));
        set(rig, 3, 64);
        OK(rig_buffer_view(b, 0, 8, &views[1]));
        CHECK_RETURNS(-EDQUOT, rig_buffer_view(b, 0, 8, &none));
        CHECK(strstr(rig_error(), "may have 3 buffers"));
        set(rig, 1, 64); /* what there is beyond it stays */
        CHECK_RETURNS(-EDQUOT, rig_buffer_view(b, 0, 8, &none));
        set(rig, 5, 64);
        OK(rig_buffer_view(b, 0, 8, &views[2]));
        OK(rig_buffer_view(b, 0, 8, &views[3]));
        CHECK_RETURNS(-EDQUOT, rig_buffer_view(b, 0, 8, &none));
        for (int i = 0; i < 4; i++)
                rig_buffer_unref(views[i]);
        rig_buffer_unref(b);
        rig_device_unref(m);
        rig_unref(rig);
        fake_join(fake);
        free(fake);
}

static void objects_are_counted_against_the_last_limit_told(void)
{
        objects("ring");
        objects("words");
        objects("socket");
}

static _Atomic bool gate;

static void wait_for_gate(const struct rig_group *group, const void *params)
{
        while (!atomic_load(&gate))
                usleep(100);
}

static int launch(struct rig_device *host)
{
        struct rig_launch l = RIG_LAUNCH_INIT;

        l.function = wait_for_gate;
        return rig_launch_once(host, &l, NULL, NULL, 0, NULL);
}

static void *launch_one(void *host)
{
        OK(launch(host));
        return NULL;
}

/* Room for 64 runs is cut to what 2 leave, and is there again once more are admitted; nothing ends
 * meanwhile. */
static void runs(const char *transport)
{
        struct fake *fake = calloc(1, sizeof(*fake));
        struct rig_device *host;
        pthread_t thread;
        struct rig *rig;

        fake->device_flags = RIG_DEVICE_CLIENT_CODE | RIG_DEVICE_HOST_ADDRESSED | RIG_DEVICE_NAMES_HOST;
        rig = connect_fake(fake, transport);
        gate = false;
        OK(rig_device_open(rig, "host", &host));
        OK(rig_host_set_workers(host, 1));
        OK(launch(host));
        set(rig, 1024, 2);
        OK(launch(host));
        CHECK(pthread_create(&thread, NULL, launch_one, host) == 0);
        for (int i = 0; i < 300; i++) {
                set(rig, 1024, 2);
                CHECK(rig_device_submitted(host) == 2);
        }
        set(rig, 1024, 3);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(rig_device_submitted(host) == 3 && rig_device_signaled(host) == 0);
        set(rig, 1024, 0); /* any number */
        for (int i = 0; i < 200; i++)
                OK(launch(host));
        CHECK(rig_device_submitted(host) == 203 && rig_device_signaled(host) == 0);
        gate = true;
        OK(rig_wait(host, 203, RIG_INFINITY));
        rig_device_unref(host);
        rig_unref(rig);
        fake_join(fake);
        free(fake);
}

static void runs_in_flight_keep_to_the_last_limit_told(void)
{
        runs("ring");
        runs("words");
        runs("socket");
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(objects_are_counted_against_the_last_limit_told),
                TEST(runs_in_flight_keep_to_the_last_limit_told),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
