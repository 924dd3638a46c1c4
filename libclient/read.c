/* SPDX-License-Identifier: ISC */
/*
 * Receiving.
 *
 * Any thread may need something from the socket: an answer, an event, or to learn that rigd is gone. One of
 * the waiting threads leads: it polls and receives without the lock, then handles the packet under it. The
 * others follow: they sleep until the leader has read something, look whether it was theirs, and one of them
 * leads once it leaves. A thread that does not wait may read what has arrived, where nobody leads.
 *
 * What rigd sends is trusted to be honest but not to be right: what cannot be decoded, answers nothing that
 * was asked or is of another type ends the connection with a sentence, and everyone who waits is told.
 *
 * Descriptors of a packet belong to the answer in it; those that nothing took are closed with the packet.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/futex.h"
#include "libclient/device.h"
#include "libclient/notify.h"
#include "libclient/wire.h"

#define FOLLOW_USEC RIG_USEC_PER_SEC         /* a follower looks for itself this often */
#define OUT_USEC    (50 * RIG_USEC_PER_MSEC) /* the same where it polls for room to send */
#define DRAIN_MAX   64                       /* packets read in one turn */

static void wake_followers(struct rig *rig)
{
        /* relaxed: both sides of `turns` are ordered by the lock; the futex only compares it */
        atomic_fetch_add_explicit(&rig->turns, 1, memory_order_relaxed);
        if (rig->followers > 0)
                rig_futex_wake(&rig->turns);
}

static void free_orphans(struct rig *rig)
{
        rig_list_for_each_safe (i, &rig->calls) {
                struct rig_call *call = rig_list_entry(i, struct rig_call, link);

                if (call->orphan) {
                        rig_list_remove(&call->link);
                        free(call);
                }
        }
}

int rig_break(struct rig *rig, int code, const char *fmt, ...)
{
        struct rig_error e = RIG_ERROR_NULL;
        va_list ap;

        if (atomic_load_explicit(&rig->broken, memory_order_relaxed) < 0)
                return atomic_load_explicit(&rig->broken, memory_order_relaxed);
        va_start(ap, fmt);
        rig_error_setv(&e, code, fmt, ap);
        va_end(ap);
        memcpy(rig->broken_text, e.text, sizeof(rig->broken_text));
        /* release: pairs with the load in rig_check() */
        atomic_store_explicit(&rig->broken, code, memory_order_release);
        shutdown(rig->fd, SHUT_RDWR);
        free_orphans(rig);
        rig_notify_broken(rig, code, rig->broken_text);
        wake_followers(rig);
        return code;
}

static struct rig_call *find_call(struct rig *rig, uint32_t serial)
{
        rig_list_for_each (i, &rig->calls) {
                struct rig_call *call = rig_list_entry(i, struct rig_call, link);

                if (call->serial == serial)
                        return call;
        }
        return NULL;
}

static int take_answer(struct rig *rig, struct rig_call *call, enum rig_msg_type type,
        const union rig_msg *msg, struct rig_packet_fds *fds)
{
        const char *name = rig_msg_type_to_string(type);

        if (type == RIG_MSG_FAILED) {
                if (msg->failed.error == 0)
                        return rig_break(rig, -EPROTO, "rigd refused a request without an error");
                call->error = -(int)msg->failed.error;
                rig_text_copy(msg->failed.text, call->text, sizeof(call->text));
                return 0;
        }
        if (type != call->expect)
                return rig_break(rig, -EPROTO, "rigd answered with %s where %s was due", name,
                        rig_msg_type_to_string(call->expect));
        if (call->take && call->take(call, msg, fds) < 0)
                return rig_break(rig, -EPROTO, "rigd answered with a %s that makes no sense", name);
        return 0;
}

static int handle_answer(
        struct rig *rig, enum rig_msg_type type, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        uint32_t serial = rig_msg_serial(type, msg);
        struct rig_call *call = find_call(rig, serial);
        int r;

        if (!call)
                return rig_break(rig, -EPROTO, "rigd answered request %u, which was not made", serial);
        rig_list_remove(&call->link);
        r = take_answer(rig, call, type, msg, fds);
        call->answered = r == 0;
        if (call->orphan)
                free(call);
        return r;
}

static struct rig_device *find_device(struct rig *rig, uint32_t id)
{
        return id <= RIG_PROTO_DEVICES_MAX ? rig->devices[id] : NULL;
}

/* An event of a device that was closed meanwhile has nobody to go to. */
static int handle_event(struct rig *rig, enum rig_msg_type type, const union rig_msg *msg)
{
        struct rig_device *device;
        char text[RIG_PROTO_TEXT_MAX + 1];

        switch (type) {
        case RIG_MSG_BROKEN:
                rig_text_copy(msg->broken.text, text, sizeof(text));
                return rig_break(rig, -EPROTO, "%s", text);
        case RIG_MSG_REACHED:
                device = find_device(rig, msg->reached.device);
                if (device)
                        rig_device_reached(device, msg->reached.value);
                return 0;
        case RIG_MSG_READY:
                device = find_device(rig, msg->ready.device);
                if (device)
                        rig_device_ready(device, msg->ready.value);
                return 0;
        case RIG_MSG_RUN_FAILED:
                device = find_device(rig, msg->run_failed.device);
                if (device)
                        rig_device_run_failed(device, &msg->run_failed);
                return 0;
        case RIG_MSG_DEVICE_LOST:
                device = find_device(rig, msg->device_lost.device);
                if (device)
                        rig_device_told_lost(device, &msg->device_lost);
                return 0;
        case RIG_MSG_LIMITS:
                rig_take_limits(rig, msg->limits.objects, msg->limits.runs);
                return 0;
        default:
                return rig_break(rig, -EPROTO, "rigd sent a %s, which is not its to send",
                        rig_msg_type_to_string(type));
        }
}

static int handle_packet(struct rig *rig, size_t bytes, struct rig_packet_fds *fds)
{
        struct rig_error e = RIG_ERROR_NULL;
        const uint8_t *data = rig->inbox;

        while (bytes > 0) {
                enum rig_msg_type type;
                ssize_t n;
                int r;

                n = rig_codec_decode(data, bytes, rig->msg, &type, &e);
                if (n == -EAGAIN)
                        return rig_break(rig, -EPROTO, "rigd sent a packet that ends inside a message");
                if (n < 0)
                        return rig_break(rig, -EPROTO, "rigd sent %s", e.text);
                if (rig_msg_class(type) == RIG_MSG_CLASS_ANSWER)
                        r = handle_answer(rig, type, rig->msg, fds);
                else
                        r = handle_event(rig, type, rig->msg);
                if (r < 0)
                        return r;
                data += n;
                bytes -= (size_t)n;
        }
        return 0;
}

/* What a receive gave. With the lock held. Return: true where there may be more. */
static bool arrived(struct rig *rig, ssize_t n, struct rig_packet_fds *fds)
{
        if (n == -EAGAIN || n == -EINTR)
                return false;
        if (n > 0)
                handle_packet(rig, (size_t)n, fds);
        else if (n == 0 || n == -ECONNRESET || n == -EPIPE)
                rig_break(rig, -ECONNRESET, "rigd is gone");
        else if (n == -EBADMSG)
                rig_break(rig, -EPROTO, "rigd sent a packet beyond the bounds of the protocol");
        else
                rig_break(rig, (int)n, "cannot receive from rigd: %s", rig_strerror((int)n));
        rig_packet_fds_close(fds);
        return atomic_load_explicit(&rig->broken, memory_order_relaxed) == 0;
}

/*
 * A socket whose other side closed with something unread says so once, before it gives what was sent
 * earlier: that may be the sentence that says why.
 */
static ssize_t receive(struct rig *rig, struct rig_packet_fds *ret_fds)
{
        ssize_t n =
                rig_packet_recv(rig->fd, rig->inbox, RIG_PROTO_PACKET_BYTES, RIG_PACKET_DONTWAIT, ret_fds);

        if (n == -ECONNRESET)
                n = rig_packet_recv(
                        rig->fd, rig->inbox, RIG_PROTO_PACKET_BYTES, RIG_PACKET_DONTWAIT, ret_fds);
        return n;
}

static void read_all(struct rig *rig)
{
        struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;

        for (int i = 0; i < DRAIN_MAX && arrived(rig, receive(rig, &fds), &fds); i++)
                fds = (struct rig_packet_fds)RIG_PACKET_FDS_NULL;
}

void rig_wire_drain(struct rig *rig)
{
        if (!rig->reading && atomic_load_explicit(&rig->broken, memory_order_relaxed) == 0)
                read_all(rig);
}

static void sleep_on_socket(struct rig *rig, short events, uint64_t at_most_usec)
{
        struct pollfd p = {.fd = rig->fd, .events = events};
        struct timespec t = {.tv_sec = (time_t)(at_most_usec / RIG_USEC_PER_SEC),
                .tv_nsec = (long)(at_most_usec % RIG_USEC_PER_SEC * RIG_NSEC_PER_USEC)};

        /* An interrupted poll is a short turn: the caller looks at its clock. */
        (void)ppoll(&p, 1, at_most_usec == RIG_USEC_INFINITY ? NULL : &t, NULL);
}

/* Polls and receives as the leader, without the lock. */
static ssize_t lead(struct rig *rig, uint64_t at_most_usec, uint64_t spin_usec, short events,
        struct rig_packet_fds *ret_fds)
{
        uint64_t until = 0;
        ssize_t n;

        if (spin_usec > 0)
                until = rig_now_usec() + RIG_MIN(spin_usec, at_most_usec);
        do {
                n = receive(rig, ret_fds);
                if (n != -EAGAIN)
                        return n;
        } while (until > 0 && rig_now_usec() < until);
        sleep_on_socket(rig, POLLIN | events, at_most_usec);
        return receive(rig, ret_fds);
}

static void follow(struct rig *rig, uint64_t at_most_usec, short events)
{
        uint32_t seen = atomic_load_explicit(&rig->turns, memory_order_relaxed);

        rig->followers++;
        rig_lock_drop(&rig->lock);
        if (events != 0)
                sleep_on_socket(rig, events, RIG_MIN(at_most_usec, OUT_USEC));
        else
                rig_futex_wait(&rig->turns, seen, RIG_MIN(at_most_usec, FOLLOW_USEC));
        rig_lock_take(&rig->lock);
        rig->followers--;
}

bool rig_wire_turn(struct rig *rig, uint64_t at_most_usec, uint64_t spin_usec, short events)
{
        struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;
        ssize_t n;

        if (rig->reading) {
                follow(rig, at_most_usec, events);
                return false;
        }
        rig->reading = true;
        rig_lock_drop(&rig->lock);
        n = lead(rig, at_most_usec, spin_usec, events, &fds);
        rig_lock_take(&rig->lock);
        if (arrived(rig, n, &fds))
                read_all(rig);
        rig->reading = false;
        wake_followers(rig);
        return n > 0;
}

int rig_wire_wait(
        struct rig *rig, bool (*done)(void *data), void *data, uint64_t deadline_usec, uint64_t spin_usec)
{
        for (;;) {
                uint64_t now, left = RIG_USEC_INFINITY;
                int r;

                if (done(data))
                        return 0;
                r = rig_check(rig);
                if (r < 0)
                        return r;
                if (deadline_usec != RIG_USEC_INFINITY) {
                        now = rig_now_usec();
                        if (now >= deadline_usec)
                                return rig_fail(-ETIMEDOUT, "it did not happen in the time given");
                        left = deadline_usec - now;
                }
                /* While there is news it is worth polling for more. */
                if (!rig_wire_turn(rig, left, spin_usec, 0))
                        spin_usec = 0;
        }
}
