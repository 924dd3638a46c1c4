/* SPDX-License-Identifier: ISC */
/*
 * Waits of a client's that rigd keeps: for a buffer (O6), for a value to be told in an event, for a value to
 * signal an eventfd. Each is a watch in the order, and ends with its client.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/memory/closer.h"
#include "daemon/request.h"
#include "daemon/signals.h"

#define WAITS_MAX 4096u /* of one client at once */

struct rig_wait_request {
        struct rig_list link;      /* in client->waits */
        struct rig_client *client; /* referenced */
        struct rig_watch watch;
        struct rig_buffer *buffer; /* of a wait for a buffer: referenced, and with it the memory */
        struct rig_device *device; /* of a wait for a value: referenced */
        uint64_t value;
        uint32_t serial;
        int fd; /* the eventfd to signal, or -EBADF */
};

static void wait_free(struct rig_wait_request *w)
{
        rig_watch_cancel(&w->watch);
        rig_list_remove(&w->link);
        rig_close(w->fd);
        rig_buffer_unref(w->buffer);
        rig_device_unref(w->device);
        rig_client_unref(w->client);
        free(w);
}

/* A wait of the client's; NULL, with an answer, where none can be had. */
static struct rig_wait_request *wait_new(struct rig_client *c, uint32_t serial)
{
        struct rig_error e = {.code = -ENOMEM};
        struct rig_wait_request *w = NULL;
        unsigned n = 0;

        rig_list_for_each (l, &c->waits)
                n++;
        if (n >= WAITS_MAX)
                rig_error_set(&e, -EDQUOT, "%s waits for %u things already", c->name, n);
        else
                w = calloc(1, sizeof(*w));
        if (!w) {
                rig_client_failed(c, serial, &e);
                return NULL;
        }
        w->client = rig_client_ref(c);
        w->serial = serial;
        w->fd = -EBADF;
        rig_list_append(&c->waits, &w->link);
        return w;
}

void rig_client_cancel_waits(struct rig_client *client)
{
        while (!rig_list_empty(&client->waits))
                wait_free(rig_list_entry(client->waits.next, struct rig_wait_request, link));
}

static void buffer_waited(struct rig_watch *watch, struct rig_timeline *culprit)
{
        struct rig_wait_request *w = watch->userdata;
        struct rig_error e;

        if (culprit) {
                rig_error_set(&e, -ENODEV, "the memory was last used by work that is lost with %s",
                        rig_device_loss(culprit));
                rig_client_failed(w->client, w->serial, &e);
        } else {
                rig_client_done(w->client, w->serial);
        }
        wait_free(w);
}

int rig_request_buffer_wait(struct rig_client *client, const struct rig_msg_buffer_wait *msg)
{
        const struct rig_msg_buffer_wait m = *msg; /* following others reads other messages */
        struct rig_buffer *b = rig_client_buffer(client, m.buffer);
        struct rig_wait_request *w;

        if (!b)
                return -EPROTO;
        if (!m.access)
                return rig_client_break(
                        client, -EINVAL, "buffer-wait has no access: 1 reads, 2 writes, 3 both");
        if (!b->memory) {
                rig_client_done(client, m.serial);
                return RIG_TAKEN;
        }
        if (b->memory->n_holders > 1 && rig_client_follow(client, b->memory, m.time) == RIG_LEFT)
                return RIG_LEFT;
        w = wait_new(client, m.serial);
        if (!w)
                return RIG_TAKEN;
        w->buffer = rig_buffer_ref(b);
        if (rig_watch_access(
                    &w->watch, &client->core->order, &b->memory->stamps, m.access, buffer_waited, w) < 0) {
                rig_client_failed(client, m.serial, &(struct rig_error){.code = -ENOMEM});
                wait_free(w);
        }
        return RIG_TAKEN;
}

static void value_reached(struct rig_watch *watch, struct rig_timeline *culprit)
{
        struct rig_wait_request *w = watch->userdata;
        struct rig_msg_reached m = {.device = w->device->id, .value = w->value};

        if (w->fd >= 0)
                (void)rig_signals_send(w->client->core->signals, w->fd);
        else if (!culprit && w->device->id)
                rig_client_send(w->client, RIG_MSG_REACHED, &m, NULL, 0);
        wait_free(w);
}

/* Starts a wait for a value; the caller has checked it. */
static int wait_for_value(
        struct rig_client *c, uint32_t serial, struct rig_device *d, uint64_t value, int fd)
{
        struct rig_wait_request *w = wait_new(c, serial);

        if (!w) {
                rig_close(fd);
                return RIG_TAKEN;
        }
        w->device = rig_device_ref(d);
        w->value = value;
        w->fd = fd;
        rig_client_done(c, serial);
        rig_watch_value(&w->watch, &c->core->order, d->timeline, value, value_reached, w);
        return RIG_TAKEN;
}

static int check_value(struct rig_client *c, const struct rig_device *d, uint64_t value)
{
        if (value > d->timeline->submitted)
                return rig_client_break(c, -EINVAL,
                        "a wait for value %llu of device %u, which gave %llu so far",
                        (unsigned long long)value, d->id, (unsigned long long)d->timeline->submitted);
        return 0;
}

int rig_request_notify(struct rig_client *client, const struct rig_msg_notify *msg)
{
        struct rig_device *d = rig_client_device(client, msg->device);

        if (!d || check_value(client, d, msg->value) < 0)
                return -EPROTO;
        return wait_for_value(client, msg->serial, d, msg->value, -EBADF);
}

int rig_request_notify_eventfd(
        struct rig_client *client, const struct rig_msg_notify_eventfd *msg, struct rig_packet_fds *fds)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        struct rig_error e = RIG_ERROR_NULL;
        int fd;

        if (!d || check_value(client, d, msg->value) < 0)
                return -EPROTO;
        fd = rig_packet_fds_take(fds, msg->fd);
        if (fd < 0)
                return rig_client_break(client, -EBADMSG,
                        "notify-eventfd names descriptor %u, which its packet has not", msg->fd);
        if (!rig_core_keeps_fd(client->core, fd))
                rig_error_set(&e, -EMFILE, RIG_NO_FDS);
        else if (rig_signals_check(fd) < 0)
                rig_error_set(&e, -EBADF, "the descriptor is no eventfd");
        if (e.code) {
                rig_foreign_close(fd);
                rig_client_failed(client, msg->serial, &e);
                return RIG_TAKEN;
        }
        return wait_for_value(client, msg->serial, d, msg->value, fd);
}
