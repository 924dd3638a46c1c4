/* SPDX-License-Identifier: ISC */
/*
 * What a client may say besides runs: the dispatch, and the requests that are answered on the spot. Those
 * about memory are in requests-memory.c, about code and works in requests-work.c, about waiting in waits.c.
 *
 * A message that names what is not the client's ends the connection: the library never sends one. What can
 * honestly fail (no memory, no such adapter, over a limit) is answered with `failed`, and changed nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/log/log.h"
#include "daemon/memory/closer.h"
#include "daemon/request.h"
#include "daemon/signals.h"
#include "daemon/trace.h"

#define RIG_VERSION_TEXT "rigd " RIG_VERSION

/* ---------------------------------------------------------------- requests that are answered later */

void *rig_request_new(
        struct rig_client *client, struct rig_device *device, uint32_t serial, uint32_t id, size_t bytes)
{
        struct rig_request *q = calloc(1, bytes);

        if (!q)
                return NULL;
        q->client = rig_client_ref(client);
        q->device = device ? rig_device_ref(device) : NULL;
        q->serial = serial;
        q->id = id;
        return q;
}

void rig_request_free(struct rig_request *request)
{
        rig_device_unref(request->device);
        rig_client_unref(request->client);
        free(request);
}

void rig_request_defer(struct rig_request *request, void (*run)(struct rig_slow_job *job),
        void (*done)(struct rig_slow_job *job))
{
        request->job.run = run;
        request->job.done = done;
        rig_adapter_defer(&request->device->adapter->driver, &request->job);
}

void rig_request_fail(struct rig_request *request)
{
        request->error.code = request->r;
        rig_client_failed(request->client, request->serial, &request->error);
        rig_request_free(request);
}

int rig_client_refuse(struct rig_client *client, uint32_t serial, int r, struct rig_error *e)
{
        e->code = r;
        rig_client_failed(client, serial, e);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- what messages name */

struct rig_device *rig_client_device(struct rig_client *client, uint32_t id)
{
        struct rig_device *d = rig_table_get(&client->devices, id);

        if (!d || !d->open) {
                rig_client_break(client, -ENOENT, "there is no device %u", id);
                return NULL;
        }
        return d;
}

struct rig_buffer *rig_client_buffer(struct rig_client *client, uint32_t id)
{
        struct rig_buffer *b = rig_table_get(&client->buffers, id);

        if (!b)
                rig_client_break(client, -ENOENT, "there is no buffer %u", id);
        return b;
}

int rig_client_check_free(
        struct rig_client *client, const struct rig_table *table, uint32_t id, const char *what)
{
        if (!id)
                return rig_client_break(client, -EINVAL, "%s numbers start at 1", what);
        if (rig_table_get(table, id))
                return rig_client_break(client, -EEXIST, "there is a %s %u already", what, id);
        return 0;
}

int rig_client_enter(
        struct rig_client *client, struct rig_table *table, uint32_t id, void *object, const char *what)
{
        if (client->state == RIG_CLIENT_ENDED)
                return -ECONNRESET;
        if (rig_table_get(table, id))
                return rig_client_break(client, -EEXIST, "there is a %s %u already", what, id);
        return rig_table_set(table, id, object);
}

/* ---------------------------------------------------------------- hello */

static int doorbell(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        rig_client_activate(userdata);
        return 0;
}

/* Makes the ring and its doorbell. The descriptors are the caller's to send and close. */
static int make_ring(struct rig_client *c, int *ret_fd)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        int r = rig_ring_new(&fd);

        if (r >= 0)
                r = rig_ring_map(fd, &c->ring, &c->ring_bytes);
        if (r < 0)
                return r;
        c->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (c->doorbell < 0)
                return -errno;
        /* Edge-triggered, and never read: the client could make a read block. */
        r = sd_event_add_io(
                c->core->event, &c->doorbell_source, c->doorbell, EPOLLIN | EPOLLET, doorbell, c);
        if (r < 0)
                return r;
        sd_event_source_set_description(c->doorbell_source, "doorbell");
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

static int take_hello(struct rig_client *c, const struct rig_msg_hello *msg)
{
        _cleanup_(rig_closep) int words_fd = -EBADF;
        _cleanup_(rig_closep) int ring_fd = -EBADF;
        struct rig_msg_hello_done m = {.serial = msg->serial, .version = RIG_PROTOCOL_VERSION};
        int fds[3], r = 0;
        size_t n = 0;

        if (c->state != RIG_CLIENT_GREETING)
                return rig_client_break(c, -EPROTO, "a second hello");
        if (msg->version != RIG_PROTOCOL_VERSION)
                return rig_client_break(c, -EPROTONOSUPPORT,
                        "the library speaks version %u of the protocol, and this rigd %d", msg->version,
                        RIG_PROTOCOL_VERSION);
        m.features = msg->features & (RIG_FEATURE_WORDS | RIG_FEATURE_RING);
        if (!(m.features & RIG_FEATURE_WORDS))
                m.features = 0; /* a ring needs words */
        if (m.features & RIG_FEATURE_WORDS)
                r = rig_words_new(&words_fd, &c->words);
        if (r >= 0 && m.features & RIG_FEATURE_RING)
                r = make_ring(c, &ring_fd);
        if (r < 0)
                return rig_client_break(c, r, "no shared pages can be had: %s", strerror(-r));
        if (c->words) {
                m.has_words = true;
                m.words = (uint32_t)n;
                fds[n++] = words_fd;
        }
        if (c->ring) {
                m.has_ring = m.has_doorbell = true;
                m.ring = (uint32_t)n;
                fds[n++] = ring_fd;
                m.doorbell = (uint32_t)n;
                fds[n++] = c->doorbell;
        }
        c->features = m.features;
        c->state = RIG_CLIENT_OPEN;
        m.daemon = rig_text(RIG_VERSION_TEXT, RIG_PROTO_NAME_MAX);
        rig_text_copy(msg->library, c->library, sizeof(c->library));
        m.objects = RIG_MIN(c->limits.objects, RIG_PROTO_BYTES_MAX);
        m.memory = RIG_MIN(c->limits.memory, RIG_PROTO_BYTES_MAX);
        m.runs = RIG_MIN(c->limits.runs, RIG_PROTO_BYTES_MAX);
        rig_client_send(c, RIG_MSG_HELLO_DONE, &m, fds, n);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- adapters and devices */

static int take_adapter_list(struct rig_client *c, const struct rig_msg_adapter_list *msg)
{
        uint32_t left = msg->index;

        rig_list_for_each (l, &c->core->adapters) {
                struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);
                const char *unavailable = a->state == RIG_ADAPTER_READY ? a->driver.unavailable : a->reason;
                struct rig_msg_adapter_done m = {.serial = msg->serial};

                if (left--)
                        continue;
                m.name = rig_text(a->driver.name, RIG_PROTO_NAME_MAX);
                m.driver = rig_text(a->driver.driver->name, RIG_PROTO_NAME_MAX);
                m.about = rig_text(a->driver.about, RIG_PROTO_TEXT_MAX);
                m.budget = RIG_MIN(a->budget.limit_bytes, RIG_PROTO_BYTES_MAX);
                m.devices = RIG_MIN(a->n_devices, 65535u);
                m.has_unavailable = unavailable[0];
                m.unavailable = rig_text(unavailable, RIG_PROTO_TEXT_MAX);
                rig_client_send(c, RIG_MSG_ADAPTER_DONE, &m, NULL, 0);
                return RIG_TAKEN;
        }
        rig_client_failed(
                c, msg->serial, &(struct rig_error){.code = -ENOENT, .text = "there is no further adapter"});
        return RIG_TAKEN;
}

struct open_request {
        struct rig_request q;
        struct rig_parked parked;
        char name[RIG_PROTO_NAME_MAX + 1];
        const char *instance, *options; /* into name */
};

static void open_run(struct rig_slow_job *job)
{
        struct open_request *o = RIG_CONTAINER_OF(job, struct open_request, q.job);
        struct rig_device *d = o->q.device;

        o->q.r = d->adapter->driver.driver->device_open(&d->driver, o->instance, o->options, &o->q.error);
}

static void answer_open(struct rig_request *q)
{
        const struct rig_facts *f = &q->device->driver.facts;
        uint64_t share = RIG_MIN(q->client->limits.memory, RIG_PROTO_BYTES_MAX);
        struct rig_msg_device_done m = {.serial = q->serial,
                .arch = rig_text(f->arch, RIG_PROTO_NAME_MAX),
                .budget = RIG_MIN(q->device->adapter->budget.limit_bytes, share),
                .n_queues = f->n_queues,
                .flags = f->flags,
                .memory = share,
                .hang = f->hang_usec};

        memcpy(m.queues, f->queues, f->n_queues * sizeof(m.queues[0]));
        if (q->client->words)
                memset(&q->client->words->word[q->id - 1], 0, sizeof(struct rig_word));
        rig_client_send(q->client, RIG_MSG_DEVICE_DONE, &m, NULL, 0);
}

/* The device does not come to be: the request has the error, or nobody hears it. */
static void open_undo(struct open_request *o)
{
        struct rig_request *q = &o->q;
        struct rig_device *d = q->device;

        if (rig_table_get(&q->client->devices, q->id) == d) {
                rig_table_take(&q->client->devices, q->id);
                rig_device_leave(d, false);
                rig_device_unref(d);
        }
        if (q->r < 0)
                rig_request_fail(q);
        else
                rig_request_free(q);
}

static void open_done(struct rig_slow_job *job)
{
        struct open_request *o = RIG_CONTAINER_OF(job, struct open_request, q.job);
        struct rig_request *q = &o->q;
        struct rig_device *d = q->device;

        if (q->r >= 0)
                q->r = rig_device_opened(d);
        if (q->r >= 0 && d->lost)
                q->r = rig_error_set(
                        &q->error, -ENODEV, "%s was lost meanwhile: %s", rig_device_describe(d), d->reason);
        if (q->r < 0 || !rig_request_heard(q)) {
                open_undo(o);
                return;
        }
        answer_open(q);
        rig_request_free(q);
}

static void open_start(struct open_request *o);

static void open_retry(struct rig_parked *parked)
{
        open_start(RIG_CONTAINER_OF(parked, struct open_request, parked));
}

/* Opens the device, once an adapter that was lost and is being brought back is ready (L1). */
static void open_start(struct open_request *o)
{
        struct rig_adapter *a = o->q.device->adapter;

        if (rig_adapter_recovers(a) && rig_request_heard(&o->q)) {
                o->parked.retry = open_retry;
                rig_list_append(&a->parked, &o->parked.link);
                return;
        }
        if (a->state != RIG_ADAPTER_READY)
                o->q.r = rig_error_set(&o->q.error, -ENODEV, "%s is lost: %s", o->name, a->reason);
        if (o->q.r < 0 || !rig_request_heard(&o->q))
                open_undo(o);
        else
                rig_request_defer(&o->q, open_run, open_done);
}

static int take_device_open(struct rig_client *c, const struct rig_msg_device_open *msg)
{
        struct open_request *o;
        struct rig_adapter *a;
        struct rig_device *d;
        struct rig_error e = RIG_ERROR_NULL;
        char asked[RIG_PROTO_NAME_MAX + 1], name[RIG_PROTO_NAME_MAX + 1];
        const char *instance, *options;

        if (rig_client_check_free(c, &c->devices, msg->device, "device") < 0)
                return -EPROTO;
        rig_text_copy(msg->name, asked, sizeof(asked));
        memcpy(name, asked, sizeof(name));
        a = rig_adapter_find(c->core, name, &instance, &options);
        if (!a)
                rig_error_set(&e, -ENOENT, "there is no adapter \"%s\"", asked);
        else if (a->driver.unavailable[0])
                rig_error_set(&e, -ENODEV, "%s cannot be opened: %s", asked, a->driver.unavailable);
        if (e.code) {
                rig_client_failed(c, msg->serial, &e);
                return RIG_TAKEN;
        }
        d = rig_device_new(a, c, msg->device, asked);
        o = d ? rig_request_new(c, d, msg->serial, msg->device, sizeof(*o)) : NULL;
        if (!o || rig_table_set(&c->devices, msg->device, d) < 0) {
                if (o)
                        rig_request_free(&o->q);
                rig_device_unref(d);
                rig_client_failed(c, msg->serial, &(struct rig_error){.code = -ENOMEM});
                return RIG_TAKEN;
        }
        memcpy(o->name, name, sizeof(name));
        o->instance = o->name + (instance[0] ? instance - name : (ptrdiff_t)strlen(name));
        o->options = o->name + (options[0] ? options - name : (ptrdiff_t)strlen(name));
        rig_list_init(&o->parked.link);
        open_start(o);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- traces */

static int take_trace_start(
        struct rig_client *c, const struct rig_msg_trace_start *msg, struct rig_packet_fds *fds)
{
        _cleanup_(rig_foreign_closep) int fd = rig_packet_fds_take(fds, msg->fd);
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        if (fd < 0)
                return rig_client_break(
                        c, -EBADMSG, "trace-start names descriptor %u, which its packet has not", msg->fd);
        if (c->trace)
                r = rig_error_set(&e, -EBUSY, "%s is traced by itself already", c->name);
        else
                r = rig_trace_start(c->core, fd, c->core->config.client_trace_max, c->number, &c->trace, &e);
        if (r == -E2BIG)
                r = rig_error_set(&e, -EDQUOT,
                        "the ring is longer than a client's may be: ClientTraceMax is %llu bytes",
                        (unsigned long long)c->core->config.client_trace_max);
        if (r < 0)
                return rig_client_refuse(c, msg->serial, r, &e);
        rig_client_done(c, msg->serial);
        return RIG_TAKEN;
}

static int take_trace_stop(struct rig_client *c, uint32_t serial)
{
        c->trace = rig_trace_stop(c->trace);
        rig_client_done(c, serial);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- dropping, and the client's own code */

static int take_host_done(struct rig_client *c, const struct rig_msg_host_done *msg)
{
        struct rig_device *d = rig_client_device(c, msg->device);
        struct rig_error e = RIG_ERROR_NULL;
        char text[RIG_PROTO_TEXT_MAX + 1];

        if (!d)
                return -EPROTO;
        rig_text_copy(msg->text, text, sizeof(text));
        if (rig_device_client_done(d, msg->value, msg->has_failed ? -(int)msg->failed : 0, text, &e) < 0)
                return rig_client_break(c, -EINVAL, "%s", e.text);
        return RIG_TAKEN;
}

static int take_buffer_drop(struct rig_client *c, uint32_t id)
{
        struct rig_buffer *b = rig_client_buffer(c, id);

        if (!b)
                return -EPROTO;
        rig_table_take(&c->buffers, id);
        b->id = 0;
        rig_buffer_unref(b);
        return RIG_TAKEN;
}

static int take_work_drop(struct rig_client *c, uint32_t id)
{
        struct rig_work *w = rig_table_get(&c->works, id);

        if (!w)
                return rig_client_break(c, -ENOENT, "there is no work %u", id);
        rig_table_take(&c->works, id);
        rig_work_unref(w);
        return RIG_TAKEN;
}

static int take_image_drop(struct rig_client *c, uint32_t id)
{
        struct rig_image *i = rig_table_get(&c->images, id);

        if (!i)
                return rig_client_break(c, -ENOENT, "there is no image %u", id);
        rig_table_take(&c->images, id);
        rig_image_unref(i);
        return RIG_TAKEN;
}

static int take_device_close(struct rig_client *c, uint32_t id)
{
        struct rig_device *d = rig_client_device(c, id);

        if (!d)
                return -EPROTO;
        rig_table_take(&c->devices, id);
        for (uint32_t i = 0; i < c->works.room; i++) {
                struct rig_work *w = rig_table_get(&c->works, i);

                if (w && w->device == d)
                        w->closed = true;
        }
        rig_device_leave(d, false);
        rig_device_unref(d);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- dispatch */

static int take_ordered(
        struct rig_client *c, enum rig_msg_type type, const union rig_msg *msg, bool on_socket)
{
        if (on_socket && c->ring)
                return rig_client_break(c, -EPROTO, "%s came on the socket: it belongs on the ring",
                        rig_msg_type_to_string(type));
        switch (type) {
        case RIG_MSG_HOST_DONE:
                return take_host_done(c, &msg->host_done);
        case RIG_MSG_BUFFER_DROP:
                return take_buffer_drop(c, msg->buffer_drop.buffer);
        case RIG_MSG_BUFFER_VIEW:
                return rig_request_buffer_view(c, &msg->buffer_view);
        case RIG_MSG_WORK_DROP:
                return take_work_drop(c, msg->work_drop.work);
        case RIG_MSG_IMAGE_DROP:
                return take_image_drop(c, msg->image_drop.image);
        default:
                return take_device_close(c, msg->device_close.device);
        }
}

static int take_request(
        struct rig_client *c, enum rig_msg_type type, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        switch (type) {
        case RIG_MSG_HELLO:
                return take_hello(c, &msg->hello);
        case RIG_MSG_SYNC:
                rig_client_done(c, msg->sync.serial);
                return RIG_TAKEN;
        case RIG_MSG_ADAPTER_LIST:
                return take_adapter_list(c, &msg->adapter_list);
        case RIG_MSG_DEVICE_OPEN:
                return take_device_open(c, &msg->device_open);
        case RIG_MSG_BUFFER_NEW:
                return rig_request_buffer_new(c, &msg->buffer_new);
        case RIG_MSG_BUFFER_ADOPT:
                return rig_request_buffer_adopt(c, &msg->buffer_adopt, fds);
        case RIG_MSG_BUFFER_BORROW:
                return rig_request_buffer_borrow(c, &msg->buffer_borrow);
        case RIG_MSG_BUFFER_EXPORT:
                return rig_request_buffer_export(c, &msg->buffer_export);
        case RIG_MSG_BUFFER_IMPORT:
                return rig_request_buffer_import(c, &msg->buffer_import, fds);
        case RIG_MSG_BUFFER_WAIT:
                return rig_request_buffer_wait(c, &msg->buffer_wait);
        case RIG_MSG_IMAGE_LOAD:
                return rig_request_image_load(c, &msg->image_load, fds);
        case RIG_MSG_IMAGE_ENTRY:
                return rig_request_image_entry(c, &msg->image_entry);
        case RIG_MSG_WORK_NEW:
                return rig_request_work_new(c, &msg->work_new);
        case RIG_MSG_NOTIFY:
                return rig_request_notify(c, &msg->notify);
        case RIG_MSG_TRACE_START:
                return take_trace_start(c, &msg->trace_start, fds);
        case RIG_MSG_TRACE_STOP:
                return take_trace_stop(c, msg->trace_stop.serial);
        default:
                return rig_request_notify_eventfd(c, &msg->notify_eventfd, fds);
        }
}

int rig_client_request(
        struct rig_client *client, enum rig_msg_type type, union rig_msg *msg, struct rig_packet_fds *fds)
{
        struct rig_client *c = client;
        enum rig_msg_class class = rig_msg_class(type);
        uint64_t *follows;
        bool *has;

        if (class != RIG_MSG_CLASS_ORDERED && class != RIG_MSG_CLASS_REQUEST)
                return rig_client_break(c, -EPROTO, "%s is for rigd to say", rig_msg_type_to_string(type));
        if (c->state == RIG_CLIENT_GREETING && type != RIG_MSG_HELLO)
                return rig_client_break(c, -EPROTO, "the first message is %s: it must be hello",
                        rig_msg_type_to_string(type));
        if (class == RIG_MSG_CLASS_ORDERED)
                return take_ordered(c, type, msg, fds != NULL);
        if (!fds)
                return rig_client_break(c, -EPROTO, "%s came on the ring: it belongs on the socket",
                        rig_msg_type_to_string(type));
        follows = rig_msg_follows(type, msg, &has);
        if (c->ring && follows && *has && *follows > c->head) {
                uint64_t tail = atomic_load_explicit(&c->ring->tail, memory_order_acquire);

                if (*follows > tail)
                        return rig_client_break(c, -EPROTO,
                                "%s follows byte %llu of a ring published up to %llu",
                                rig_msg_type_to_string(type), (unsigned long long)*follows,
                                (unsigned long long)tail);
                return RIG_LEFT; /* the ring comes first */
        }
        return take_request(c, type, msg, fds);
}
