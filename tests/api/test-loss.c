/* SPDX-License-Identifier: ISC */
/* Waiting, being called back, and loss. */
#include <poll.h>
#include <sys/eventfd.h>

#include "tests/api/api.h"

static struct rig *rig;
static struct rig_device *m, *held;
static struct rig_buffer *gate;
static struct rig_image *image;
static uint32_t *gate_word;

/* A device whose work does not go on before open_gate(). */
static void open_all(void)
{
        static const char names[] = "steered-image\nhold\nfail\nfault\nnop\n";
        void *address;

        rig = test_connect();
        OK(rig_device_open(rig, "memory:M", &m));
        OK(rig_device_open(rig, "steered:0", &held));
        OK(rig_image_load(held, names, sizeof(names) - 1, &image));
        OK(rig_buffer_new(held, 4, RIG_MEMORY_PINNED, &gate));
        OK(rig_buffer_map(gate, &address));
        gate_word = address;
}

static void close_all(void)
{
        rig_buffer_unref(gate);
        rig_image_unref(image);
        rig_device_unref(held);
        rig_device_unref(m);
        rig_unref(rig);
}

static void open_gate(void)
{
        __atomic_store_n(gate_word, 1, __ATOMIC_RELEASE);
}

/* Runs a function of the image that reads the gate and, where there is one, writes `out`. */
static struct rig_point run(const char *name, struct rig_buffer *out)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t accesses[] = {RIG_READ, RIG_WRITE};
        struct rig_buffer *buffers[] = {gate, out};
        struct rig_launch launch = RIG_LAUNCH_INIT;
        uint64_t params[1] = {0};
        struct rig_point p;

        OK(rig_image_entry(image, name, &launch.entry));
        launch.image = image;
        launch.params = params;
        launch.params_bytes = sizeof(params);
        launch.patches = &patch;
        launch.n_patches = 1;
        OK(rig_launch_once(held, &launch, buffers, accesses, out ? 2 : 1, &p));
        return p;
}

static void waits_end_at_their_timeout(void)
{
        struct rig_buffer *b;
        struct rig_point p;

        open_all();
        OK(rig_buffer_new(held, 64, RIG_MEMORY_DEVICE, &b));
        p = run("hold", b);
        CHECK_RETURNS(-ETIMEDOUT, rig_point_wait(&p, 0));
        CHECK_RETURNS(-ETIMEDOUT, rig_point_wait(&p, 1000));
        CHECK_RETURNS(-ETIMEDOUT, rig_wait(held, 1, 70000)); /* longer than it polls, and than it naps */
        CHECK_RETURNS(-ETIMEDOUT, rig_buffer_wait(b, RIG_READ, 0));
        CHECK_RETURNS(-ETIMEDOUT, rig_buffer_wait(b, RIG_READ, 1000));
        CHECK_RETURNS(-EINVAL, rig_wait(held, 2, 0)); /* not submitted */
        CHECK_RETURNS(-EINVAL, rig_buffer_wait(b, 0, 0));
        CHECK_RETURNS(0, rig_wait(held, 0, 0));
        CHECK_RETURNS(0, rig_dispatch(rig, 0));
        CHECK_RETURNS(0, rig_dispatch(rig, 1000));
        open_gate();
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_buffer_wait(b, RIG_READ, RIG_INFINITY));
        rig_buffer_unref(b);
        close_all();
}

static void a_shared_buffers_wait_ends_at_its_timeout_and_answers_late(void)
{
        struct rig_buffer *b;
        int fd;

        open_all();
        OK(rig_buffer_new(held, 64, RIG_MEMORY_PINNED, &b));
        OK(rig_buffer_export(b, &fd));
        run("hold", b);
        for (int i = 0; i < 20; i++)
                CHECK_RETURNS(-ETIMEDOUT, rig_buffer_wait(b, RIG_READ, 100));
        open_gate();
        OK(rig_buffer_wait(b, RIG_READ, RIG_INFINITY));
        OK(rig_sync(rig)); /* after the late answers */
        close(fd);
        rig_buffer_unref(b);
        close_all();
}

struct heard {
        int n;
        uint64_t value;
        int error;
        char reason[256];
};

static void reached(struct rig_device *device, uint64_t value, int error, void *data)
{
        struct heard *heard = data;

        heard->n++;
        heard->value = value;
        heard->error = error;
}

static void lost(struct rig_device *device, const char *reason, void *data)
{
        struct heard *heard = data;

        heard->n++;
        snprintf(heard->reason, sizeof(heard->reason), "%s", reason);
}

static void callbacks_run_from_dispatch_alone(void)
{
        struct heard heard = {0}, later = {0};
        struct rig_point p;

        open_all();
        p = run("hold", NULL);
        OK(rig_notify(held, p.value, reached, &heard));
        OK(rig_notify(held, 0, reached, &later));
        CHECK(heard.n == 0 && later.n == 0);
        CHECK_RETURNS(1, rig_dispatch(rig, RIG_INFINITY));
        CHECK(heard.n == 0 && later.n == 1 && later.value == 0 && later.error == 0);
        open_gate();
        OK(rig_point_wait(&p, RIG_INFINITY));
        CHECK(heard.n == 0);
        CHECK_RETURNS(1, rig_dispatch(rig, RIG_INFINITY));
        CHECK(heard.n == 1 && heard.value == p.value && heard.error == 0);
        CHECK_RETURNS(-EINVAL, rig_notify(held, p.value + 1, reached, &heard));
        CHECK_RETURNS(-EINVAL, rig_notify(held, p.value, NULL, NULL));
        close_all();
}

static void the_descriptor_polls_readable_when_something_is_due(void)
{
        struct pollfd p = {.events = POLLIN};
        struct heard heard = {0};
        struct rig_point point;

        open_all();
        point = run("hold", NULL);
        OK(rig_notify(held, point.value, reached, &heard));
        p.fd = OK(rig_get_fd(rig));
        while (poll(&p, 1, 0) > 0) /* the answer of the notification may have been left to read */
                CHECK_RETURNS(0, rig_dispatch(rig, 0));
        open_gate();
        while (heard.n == 0) {
                CHECK(poll(&p, 1, -1) == 1 && p.revents & POLLIN);
                OK(rig_dispatch(rig, 0));
        }
        /* also where another call read the event */
        OK(rig_notify(held, point.value, reached, &heard));
        OK(rig_sync(rig));
        CHECK(poll(&p, 1, -1) == 1);
        CHECK_RETURNS(1, rig_dispatch(rig, 0));
        CHECK(poll(&p, 1, 0) == 0);
        close_all();
}

static void a_callback_that_is_pending_ends_with_its_device(void)
{
        struct heard heard = {0};
        struct rig_point p;

        open_all();
        p = run("hold", NULL);
        OK(rig_notify(held, p.value, reached, &heard));
        OK(rig_device_on_lost(held, lost, &heard));
        open_gate();
        OK(rig_point_wait(&p, RIG_INFINITY)); /* so one may be due, and nobody dispatches it */
        close_all();
        CHECK(heard.n == 0);
}

static void an_eventfd_is_signalled(void)
{
        int fd = eventfd(0, EFD_CLOEXEC);
        struct rig_point p;
        eventfd_t count;

        open_all();
        p = run("hold", NULL);
        OK(rig_notify_eventfd(held, p.value, fd));
        CHECK_RETURNS(-EBADF, rig_notify_eventfd(held, p.value, 1000));
        CHECK_RETURNS(-EBADF, rig_notify_eventfd(held, p.value, 0));
        CHECK_RETURNS(-EINVAL, rig_notify_eventfd(held, p.value + 1, fd));
        open_gate();
        CHECK(eventfd_read(fd, &count) == 0 && count == 1);
        close(fd);
        close_all();
}

static void a_run_that_fails_is_passed_and_told_once(void)
{
        struct rig_point p, q;

        open_all();
        p = run("fail", NULL);
        q = run("nop", NULL);
        CHECK_RETURNS(-EIO, rig_point_wait(&q, RIG_INFINITY));
        CHECK_RETURNS(0, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(0, rig_point_wait(&q, RIG_INFINITY));
        p = run("fail", NULL);
        run("fail", NULL);
        q = run("nop", NULL);
        CHECK_RETURNS(-EIO, rig_point_wait(&p, RIG_INFINITY)); /* the earliest first */
        CHECK_RETURNS(0, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(-EIO, rig_point_wait(&q, RIG_INFINITY));
        CHECK_RETURNS(0, rig_point_wait(&q, RIG_INFINITY));
        CHECK_RETURNS(0, rig_device_lost(held));
        close_all();
}

static void loss_L1_a_device_is_lost_once_with_its_reason(void)
{
        struct heard heard = {0}, notified = {0}, removed = {0};
        struct rig_device *again;
        struct rig_buffer *none;
        struct rig_device_facts facts = RIG_DEVICE_FACTS_INIT;
        struct rig_point p;

        open_all();
        OK(rig_device_on_lost(held, lost, &removed));
        OK(rig_device_on_lost(held, NULL, NULL));
        OK(rig_device_on_lost(held, lost, &heard));
        p = run("nop", NULL);
        OK(rig_point_wait(&p, RIG_INFINITY));
        p = run("fault", NULL);
        (void)rig_notify(held, p.value, reached, &notified); /* it may be lost already */
        CHECK_RETURNS(-ENODEV, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(-ENODEV, rig_device_lost(held));
        CHECK(strstr(rig_error(), "steered:0 is lost: "));
        while (heard.n == 0)
                OK(rig_dispatch(rig, RIG_INFINITY));
        CHECK(heard.n == 1 && heard.reason[0] && removed.n == 0);
        CHECK(notified.n == 0 || notified.error == -ENODEV);
        CHECK_RETURNS(0, rig_wait(held, p.value - 1, RIG_INFINITY)); /* what was reached stays so */
        OK(rig_device_get_facts(held, &facts));                      /* L3: it still answers */
        CHECK(facts.n_queues == 3 && rig_device_signaled(held) == p.value - 1);
        CHECK_RETURNS(-ENODEV, rig_buffer_new(held, 4, RIG_MEMORY_DEVICE, &none));
        CHECK_RETURNS(-ENODEV, rig_buffer_fill(gate, 0, 4, 0, NULL));
        OK(rig_device_on_lost(held, lost, &removed)); /* lost already: due at once */
        CHECK_RETURNS(1, rig_dispatch(rig, 0));
        CHECK(removed.n == 1);
        /* everything else goes on */
        OK(rig_buffer_new(m, 4, RIG_MEMORY_DEVICE, &none));
        OK(rig_buffer_write(none, 0, "goes", 4));
        rig_buffer_unref(none);
        OK(rig_device_open(rig, "steered:0", &again));
        CHECK_RETURNS(0, rig_device_lost(again));
        rig_device_unref(again);
        close_all();
}

static void loss_L2_what_waits_for_lost_work_is_lost_with_it(void)
{
        struct rig_buffer *b, *on_m, *other;
        struct rig_point p, q;

        open_all();
        OK(rig_buffer_new(held, 64, RIG_MEMORY_PINNED, &b));
        OK(rig_buffer_new(m, 64, RIG_MEMORY_DEVICE, &on_m));
        OK(rig_buffer_new(m, 64, RIG_MEMORY_DEVICE, &other));
        run("hold", NULL);
        p = run("fault", b);
        OK(rig_buffer_copy(on_m, 0, b, 0, 64, &q)); /* on m: it reads what is lost */
        CHECK(q.device == m);
        OK(rig_buffer_fill(other, 0, 64, 3, NULL));
        OK(rig_sync(rig));
        open_gate();
        CHECK_RETURNS(-ENODEV, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(-ENODEV, rig_point_wait(&q, RIG_INFINITY)); /* told once */
        CHECK_RETURNS(0, rig_point_wait(&q, RIG_INFINITY));
        CHECK_RETURNS(0, rig_device_lost(m)); /* m itself goes on */
        CHECK_RETURNS(-ENODEV, rig_buffer_wait(on_m, RIG_READ, RIG_INFINITY));
        OK(rig_buffer_wait(other, RIG_READ, RIG_INFINITY));
        rig_buffer_unref(other);
        rig_buffer_unref(on_m);
        rig_buffer_unref(b);
        close_all();
}

static void a_rigd_that_is_killed_ends_every_wait(void)
{
        struct heard heard = {0};
        struct rig_point p;

        test_rigd_start();
        OK(rig_connect(NULL, &rig));
        OK(rig_device_open(rig, "steered:0", &held));
        OK(rig_device_open(rig, "memory:M", &m));
        OK(rig_image_load(held, "steered-image\nhold\n", 19, &image));
        OK(rig_buffer_new(held, 4, RIG_MEMORY_PINNED, &gate));
        p = run("hold", NULL);
        OK(rig_notify(held, p.value, reached, &heard));
        test_rigd_kill();
        CHECK_RETURNS(-ECONNRESET, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_wait(gate, RIG_WRITE, RIG_INFINITY));
        CHECK_RETURNS(1, rig_dispatch(rig, RIG_INFINITY));
        CHECK(heard.n == 1 && heard.error == -ECONNRESET);
        CHECK_RETURNS(-ECONNRESET, rig_dispatch(rig, RIG_INFINITY));
        close_all();
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(waits_end_at_their_timeout),
                TEST(a_shared_buffers_wait_ends_at_its_timeout_and_answers_late),
                TEST(callbacks_run_from_dispatch_alone),
                TEST(the_descriptor_polls_readable_when_something_is_due),
                TEST(a_callback_that_is_pending_ends_with_its_device),
                TEST(an_eventfd_is_signalled),
                TEST(a_run_that_fails_is_passed_and_told_once),
                TEST(loss_L1_a_device_is_lost_once_with_its_reason),
                TEST(loss_L2_what_waits_for_lost_work_is_lost_with_it),
                TEST(a_rigd_that_is_killed_ends_every_wait),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
