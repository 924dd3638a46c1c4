/* SPDX-License-Identifier: ISC */
/*
 * Callbacks, and the descriptor that says when there are some.
 *
 * A callback waits in its device's list until an event makes it due, and in the connection's list until
 * rig_dispatch() takes it. Which thread read the event does not matter: the descriptor is an epoll instance
 * over the socket (something arrived that nobody read) and an eventfd (something was read that is due). It
 * is made when it is first asked for.
 *
 * A pending callback keeps nothing alive: a device that closes drops its own. One that runs holds its
 * device.
 */
#include "libclient/notify.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "libclient/wire.h"

static void make_due(struct rig_due *due, int error)
{
        struct rig *rig = due->device->rig;

        due->error = error;
        rig_list_remove(&due->link);
        rig_list_append(&rig->due, &due->link);
        if (rig->due_fd >= 0)
                eventfd_write(rig->due_fd, 1);
}

static void on_lost_due(struct rig_device *device, int error)
{
        if (!device->on_lost)
                return;
        make_due(device->on_lost, error);
        device->on_lost = NULL;
}

void rig_notify_reached(struct rig_device *device, uint64_t value)
{
        rig_list_for_each_safe (i, &device->notifies) {
                struct rig_due *due = rig_list_entry(i, struct rig_due, link);

                if (due->value <= value)
                        make_due(due, 0);
        }
}

void rig_notify_lost(struct rig_device *device, int error)
{
        uint64_t reached = rig_device_now(device);

        rig_notify_reached(device, reached);
        rig_list_for_each_safe (i, &device->notifies)
                make_due(rig_list_entry(i, struct rig_due, link), error);
        on_lost_due(device, error);
}

void rig_notify_broken(struct rig *rig, int error, const char *text)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(rig->devices); i++) {
                struct rig_device *device = rig->devices[i];

                if (!device)
                        continue;
                if (!atomic_load_explicit(&device->lost, memory_order_relaxed))
                        snprintf(device->lost_text, sizeof(device->lost_text), "%s", text);
                rig_notify_lost(device, error);
        }
}

static void forget(struct rig_list *list, const struct rig_device *device)
{
        rig_list_for_each_safe (i, list) {
                struct rig_due *due = rig_list_entry(i, struct rig_due, link);

                if (due->device == device) {
                        rig_list_remove(&due->link);
                        free(due);
                }
        }
}

void rig_notify_forget(struct rig_device *device)
{
        forget(&device->notifies, device);
        forget(&device->rig->due, device);
        free(device->on_lost);
        device->on_lost = NULL;
}

void rig_notify_deinit(struct rig *rig)
{
        rig_assert(rig_list_empty(&rig->due));
        rig->due_fd = rig_close(rig->due_fd);
        rig->poll_fd = rig_close(rig->poll_fd);
}

/* ---------------------------------------------------------------- asking */

static int due_new(struct rig_device *device, struct rig_due **ret_due)
{
        struct rig_due *due = calloc(1, sizeof(*due));

        if (!due)
                return rig_fail_memory();
        due->device = device;
        rig_list_init(&due->link);
        *ret_due = due;
        return 0;
}

/* With the lock held; `due` is consumed. */
static int ask_reached(struct rig_device *device, struct rig_due *due, struct rig_call *call)
{
        struct rig_msg_notify m = {.device = device->id, .value = due->value};
        struct rig_request request = RIG_REQUEST(RIG_MSG_NOTIFY, m);
        int r;

        if (rig_device_now(device) >= due->value || rig_device_lost_now(device)) {
                make_due(due, rig_device_now(device) >= due->value ? 0 : -ENODEV);
                free(call);
                return 0;
        }
        r = rig_wire_ask(device->rig, &request, call);
        if (r < 0) {
                free(due);
                free(call);
                return r;
        }
        /* The event cannot have been handled yet: the lock was held since the request was sent. */
        rig_list_append(&device->notifies, &due->link);
        return 0;
}

RIG_API int rig_notify(struct rig_device *device, uint64_t value,
        void (*callback)(struct rig_device *device, uint64_t value, int error, void *data), void *data)
{
        struct rig_due *due = NULL;
        struct rig_call *call;
        int r;

        if (!device || !callback)
                return rig_fail(-EINVAL, "a notification needs a device and a callback");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        if (value > rig_device_submitted(device))
                return rig_fail(
                        -EINVAL, "%llu is not submitted to %s", (unsigned long long)value, device->name);
        r = due_new(device, &due);
        if (r < 0)
                return r;
        call = calloc(1, sizeof(*call));
        if (!call) {
                free(due);
                return rig_fail_memory();
        }
        due->value = value;
        due->reached = callback;
        due->data = data;
        call->expect = RIG_MSG_DONE;
        call->orphan = true;
        rig_lock_take(&device->rig->lock);
        r = ask_reached(device, due, call);
        rig_lock_drop(&device->rig->lock);
        return r;
}

/* Takes back what was asked and did not run. */
static void drop_on_lost(struct rig_device *device)
{
        free(device->on_lost);
        device->on_lost = NULL;
        rig_list_for_each_safe (i, &device->rig->due) {
                struct rig_due *due = rig_list_entry(i, struct rig_due, link);

                if (due->device == device && due->lost) {
                        rig_list_remove(&due->link);
                        free(due);
                }
        }
}

RIG_API int rig_device_on_lost(struct rig_device *device,
        void (*callback)(struct rig_device *device, const char *reason, void *data), void *data)
{
        struct rig_due *due = NULL;
        int r;

        if (!device)
                return rig_fail(-EINVAL, "no device");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        if (callback) {
                r = due_new(device, &due);
                if (r < 0)
                        return r;
                due->lost = callback;
                due->data = data;
        }
        rig_lock_take(&device->rig->lock);
        drop_on_lost(device);
        device->on_lost = due;
        if (due && atomic_load_explicit(&device->lost, memory_order_relaxed))
                on_lost_due(device, -ENODEV);
        rig_lock_drop(&device->rig->lock);
        return 0;
}

RIG_API int rig_notify_eventfd(struct rig_device *device, uint64_t value, int eventfd)
{
        struct rig_msg_notify_eventfd m = {.value = value};
        struct rig_request request = RIG_REQUEST(RIG_MSG_NOTIFY_EVENTFD, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DONE);
        int r;

        if (!device)
                return rig_fail(-EINVAL, "no device");
        r = rig_check(device->rig);
        if (r < 0)
                return r;
        if (value > rig_device_submitted(device))
                return rig_fail(
                        -EINVAL, "%llu is not submitted to %s", (unsigned long long)value, device->name);
        m.device = device->id;
        request.fds = &eventfd;
        request.n_fds = 1;
        return rig_wire_call(device->rig, &request, &call);
}

/* ---------------------------------------------------------------- running */

static int open_poll_fd(struct rig *rig)
{
        struct epoll_event e = {.events = EPOLLIN};
        int due_fd, poll_fd;

        due_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        poll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (due_fd < 0 || poll_fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, rig->fd, &e) < 0 ||
                epoll_ctl(poll_fd, EPOLL_CTL_ADD, due_fd, &e) < 0) {
                int r = -errno;

                rig_close(due_fd);
                rig_close(poll_fd);
                return rig_fail(r, "cannot make a descriptor to poll: %s", rig_strerror(r));
        }
        rig->due_fd = due_fd;
        rig->poll_fd = poll_fd;
        if (!rig_list_empty(&rig->due))
                eventfd_write(due_fd, 1);
        return 0;
}

RIG_API int rig_get_fd(struct rig *rig)
{
        int r = 0;

        if (!rig)
                return rig_fail(-EINVAL, "no connection");
        if (rig_forked(rig))
                return rig_check(rig);
        rig_lock_take(&rig->lock);
        if (rig->poll_fd < 0)
                r = open_poll_fd(rig);
        if (r == 0)
                r = rig->poll_fd;
        rig_lock_drop(&rig->lock);
        return r;
}

/* The next callback that can run, with a reference on its device; or NULL. With the lock held. */
static struct rig_due *next_due(struct rig *rig)
{
        eventfd_t count;

        rig_list_for_each (i, &rig->due) {
                struct rig_due *due = rig_list_entry(i, struct rig_due, link);

                if (!rig_device_hold(due->device))
                        continue;
                rig_list_remove(&due->link);
                return due;
        }
        if (rig->due_fd >= 0)
                (void)eventfd_read(rig->due_fd, &count); /* empty already where nothing was due */
        return NULL;
}

static void run_due(struct rig_due *due)
{
        if (due->reached)
                due->reached(due->device, due->value, due->error, due->data);
        else
                due->lost(due->device, due->device->lost_text, due->data);
        rig_device_unref(due->device);
        free(due);
}

static int run_all(struct rig *rig)
{
        struct rig_due *due;
        int n = 0;

        for (;;) {
                rig_lock_take(&rig->lock);
                due = next_due(rig);
                rig_lock_drop(&rig->lock);
                if (!due)
                        return n;
                run_due(due);
                n++;
        }
}

static bool some_due(void *data)
{
        const struct rig *rig = data;

        return !rig_list_empty(&rig->due);
}

RIG_API int rig_dispatch(struct rig *rig, uint64_t timeout_usec)
{
        int n, r;

        if (!rig)
                return rig_fail(-EINVAL, "no connection");
        if (rig_forked(rig))
                return rig_check(rig);
        rig_ref(rig); /* a callback may drop the last reference but this */
        rig_lock_take(&rig->lock);
        rig_wire_drain(rig);
        r = 0;
        if (timeout_usec > 0 && !some_due(rig))
                r = rig_wire_wait(rig, some_due, rig, rig_deadline_usec(timeout_usec), 0);
        rig_lock_drop(&rig->lock);
        n = run_all(rig);
        if (n == 0)
                n = r == -ETIMEDOUT ? 0 : rig_check(rig);
        rig_unref(rig);
        return n;
}
