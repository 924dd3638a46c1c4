/* SPDX-License-Identifier: ISC */
/*
 * Connections (daemon/client.h): how they start, what goes out, and how they end. What comes in is inbox.c.
 *
 * Out. A packet that the socket has no room for is queued, with its descriptors, up to ClientQueueMax bytes;
 * a client that leaves more unread is ended. All its runs in flight may fail at once through no fault of its
 * own: that much is queued beside it. Values are not queued at all: the newest is told when the client reads
 * on.
 *
 * The end. When the other side is gone, what it published is taken first: it had handed that work over (L6).
 */
#include "daemon/client.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/futex.h"
#include "daemon/log/log.h"
#include "daemon/memory/closer.h"
#include "daemon/trace.h"
#include "daemon/work.h"

#define MESSAGE_BYTES 4096u         /* more than any answer or event has */
#define FAILURE_BYTES UINT64_C(320) /* more than a run-failed has */

struct unsent {
        struct rig_list link;
        size_t bytes;
        bool failure; /* it tells of a run that failed */
        size_t n_fds;
        int fds[RIG_PROTO_PACKET_FDS];
        uint8_t data[];
};

static void unsent_free(struct unsent *u)
{
        rig_list_remove(&u->link);
        for (size_t i = 0; i < u->n_fds; i++)
                rig_foreign_close(u->fds[i]);
        free(u);
}

/* ---------------------------------------------------------------- life */

static int socket_event(sd_event_source *source, int fd, uint32_t events, void *userdata);

int rig_client_new(struct rig_core *core, int fd, struct rig_client **ret_client)
{
        struct rig_client *c = calloc(1, sizeof(*c));
        struct ucred cred = {0};
        socklen_t n = sizeof(cred);
        int r;

        if (!c) {
                rig_close(fd);
                return -ENOMEM;
        }
        c->core = core;
        c->refs = 1;
        c->fd = fd;
        c->doorbell = -EBADF;
        rig_list_init(&c->active);
        rig_list_init(&c->stalled);
        rig_list_init(&c->outbox);
        rig_list_init(&c->waits);
        rig_list_append(&core->clients, &c->link);
        core->n_clients++;
        c->number = ++core->last_client;
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n);
        c->pid = cred.pid;
        c->uid = cred.uid;
        snprintf(c->name, sizeof(c->name), "client %llu (pid %d, uid %u)", (unsigned long long)c->number,
                (int)c->pid, (unsigned)c->uid);
        c->connected_usec = rig_clock_usec(CLOCK_REALTIME);
        c->connected_boot_usec = rig_clock_usec(CLOCK_BOOTTIME);
        c->limits = (struct rig_limits){
                .objects = core->config.client_objects_max,
                .memory = core->config.client_memory_max,
                .runs = core->config.client_runs_max,
                .cache = core->config.client_cache_max,
                .queue = core->config.client_queue_max,
        };
        c->told_objects = c->limits.objects;
        c->readable = true;
        c->held.data = malloc(RIG_PROTO_PACKET_BYTES);
        r = c->held.data ? sd_event_add_io(core->event, &c->source, fd, EPOLLIN | EPOLLOUT | EPOLLET,
                                   socket_event, c)
                         : -ENOMEM;
        if (r < 0) {
                rig_client_end(c);
                return r;
        }
        sd_event_source_set_description(c->source, c->name);
        rig_log_about(LOG_DEBUG, &RIG_LOG_OF_CLIENT(c, NULL), "%s connected", c->name);
        rig_client_activate(c);
        *ret_client = c;
        return 0;
}

struct rig_client *rig_client_ref(struct rig_client *client)
{
        client->refs++;
        return client;
}

struct rig_client *rig_client_unref(struct rig_client *client)
{
        struct rig_client *c = client;

        if (!c || --c->refs)
                return NULL;
        rig_assert(c->state == RIG_CLIENT_ENDED);
        rig_table_deinit(&c->devices);
        rig_table_deinit(&c->buffers);
        rig_table_deinit(&c->works);
        rig_table_deinit(&c->images);
        rig_table_deinit(&c->accounts);
        free(c);
        return NULL;
}

void rig_client_close_fds(struct rig_packet_fds *fds)
{
        for (uint32_t i = 0; i < fds->n; i++)
                fds->fd[i] = rig_foreign_close(fds->fd[i]);
}

/* Closes what the connection itself is made of. */
static void disconnect(struct rig_client *c)
{
        sd_event_source_disable_unref(c->source);
        sd_event_source_disable_unref(c->doorbell_source);
        c->source = c->doorbell_source = NULL;
        while (!rig_list_empty(&c->outbox))
                unsent_free(rig_list_entry(c->outbox.next, struct unsent, link));
        rig_client_close_fds(&c->held.fds);
        free(c->held.data);
        c->held.data = NULL;
        c->fd = rig_close(c->fd);
        c->doorbell = rig_close(c->doorbell);
        rig_list_remove(&c->active);
        rig_list_remove(&c->stalled);
}

static void drop_objects(struct rig_client *c)
{
        void *o;

        for (uint32_t id = 0; id < c->works.room; id++)
                if ((o = rig_table_take(&c->works, id)))
                        rig_work_unref(o);
        for (uint32_t id = 0; id < c->images.room; id++)
                if ((o = rig_table_take(&c->images, id)))
                        rig_image_unref(o);
        for (uint32_t id = 0; id < c->buffers.room; id++)
                if ((o = rig_table_take(&c->buffers, id)))
                        rig_buffer_unref(o);
}

void rig_client_activate_stalled(struct rig_core *core)
{
        struct rig_list *l;

        while ((l = rig_list_pop(&core->stalled)))
                rig_client_activate(rig_list_entry(l, struct rig_client, stalled));
}

void rig_client_end(struct rig_client *client)
{
        struct rig_client *c = client;
        struct rig_core *core = c->core;
        void *o;

        if (c->state == RIG_CLIENT_ENDED)
                return;
        c->state = RIG_CLIENT_ENDED;
        rig_log_about(LOG_DEBUG, &RIG_LOG_OF_CLIENT(c, NULL), "%s ended", c->name);
        disconnect(c);
        c->trace = rig_trace_stop(c->trace);
        rig_client_cancel_waits(c);
        /* Its own code first: work that waited for it must find it lost, not see its buffers go. */
        for (uint32_t id = 0; id < c->devices.room; id++)
                if ((o = rig_table_take(&c->devices, id))) {
                        rig_device_leave(o, true);
                        rig_device_unref(o);
                }
        drop_objects(c);
        for (uint32_t i = 0; i < c->accounts.room; i++)
                if ((o = rig_table_take(&c->accounts, i)))
                        rig_account_close(o);
        if (c->words)
                rig_words_unmap(c->words);
        if (c->ring)
                rig_ring_unmap(c->ring);
        c->words = NULL;
        c->ring = NULL;
        rig_list_remove(&c->link);
        core->n_clients--;
        rig_client_activate_stalled(core);
        if (core->private_client)
                rig_core_stop(core);
        rig_client_unref(c);
}

int rig_client_break(struct rig_client *client, int error, const char *fmt, ...)
{
        struct rig_client *c = client;
        struct rig_msg_broken m = {.error = (uint32_t)-error};
        char text[RIG_ERROR_TEXT_MAX];
        va_list ap;

        if (c->state == RIG_CLIENT_ENDED)
                return -EPROTO;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        c->core->n_broken++;
        rig_log_about(
                LOG_WARNING, &RIG_LOG_OF_CLIENT(c, RIG_LOG_CLIENT_BROKEN), "%s is ended: %s", c->name, text);
        m.text = rig_text(text, RIG_PROTO_TEXT_MAX);
        rig_client_send(c, RIG_MSG_BROKEN, &m, NULL, 0);
        if (c->state == RIG_CLIENT_ENDED)
                return -EPROTO;
        rig_packet_hang_up(c->fd);
        rig_client_end(c);
        return -EPROTO;
}

/* ---------------------------------------------------------------- accounts and limits */

int rig_client_account(
        struct rig_client *client, struct rig_adapter *adapter, struct rig_account **ret_account)
{
        struct rig_account *account;
        int r;

        for (uint32_t i = 0; i < client->accounts.room; i++) {
                account = client->accounts.slots[i];
                if (account && account->adapter == adapter) {
                        *ret_account = account;
                        return 0;
                }
        }
        r = rig_account_new(adapter, client->name, client->limits.memory, client->limits.cache, &account);
        if (r < 0)
                return r;
        r = rig_table_set(&client->accounts, client->accounts.n, account);
        if (r < 0) {
                rig_account_unref(account);
                return r;
        }
        *ret_account = account;
        return 0;
}

/* Counts one more object where `held` are fewer than there may be. */
static int charge(struct rig_client *c, uint64_t held, uint64_t most, struct rig_error *e)
{
        if (held >= most)
                return rig_error_set(e, -EDQUOT,
                        "%s holds %llu buffers, works and images, and ClientObjectsMax is %llu", c->name,
                        (unsigned long long)held, (unsigned long long)most);
        c->n_objects++;
        return 0;
}

int rig_client_charge_object(struct rig_client *client, struct rig_error *e)
{
        return charge(client, client->n_objects, client->limits.objects, e);
}

int rig_client_charge_unasked(struct rig_client *client, struct rig_error *e)
{
        /* Its library held it to what it was told: a limit that came down since may not have reached it. */
        return charge(client, (uint64_t)client->buffers.n + client->works.n + client->images.n,
                client->told_objects, e);
}

void rig_client_return_object(struct rig_client *client)
{
        client->n_objects--;
}

static void tell_limits(struct rig_client *c)
{
        struct rig_msg_limits m = {
                .objects = RIG_MIN(c->limits.objects, RIG_PROTO_BYTES_MAX),
                .memory = RIG_MIN(c->limits.memory, RIG_PROTO_BYTES_MAX),
                .runs = RIG_MIN(c->limits.runs, RIG_PROTO_BYTES_MAX),
        };

        if (c->state == RIG_CLIENT_OPEN)
                rig_client_send(c, RIG_MSG_LIMITS, &m, NULL, 0);
}

void rig_client_set_limits(struct rig_client *client, const struct rig_limits *limits)
{
        struct rig_client *c = client;

        c->limits = *limits;
        c->told_objects = RIG_MAX(c->told_objects, limits->objects);
        for (uint32_t i = 0; i < c->accounts.room; i++)
                if (c->accounts.slots[i])
                        rig_account_set_limits(c->accounts.slots[i], limits->memory, limits->cache);
        if (c->throttled && c->runs < limits->runs) {
                c->throttled = false;
                rig_client_activate(c);
                rig_client_activate_stalled(c->core);
        }
        tell_limits(c);
}

void rig_client_run_over(struct rig_client *client)
{
        client->runs--;
        if (rig_unlikely(client->throttled)) {
                client->throttled = false;
                rig_client_activate(client);
                rig_client_activate_stalled(client->core);
        }
}

/* ---------------------------------------------------------------- out */

void rig_client_wake(struct rig_client *client, _Atomic uint64_t *word)
{
        /*
         * Pairs with the sleeper's count before its last look at the word: one of the two sees the other. A
         * client without a ring has no place to say that it sleeps.
         */
        if (!client->ring || atomic_load_explicit(&client->ring->sleepers, memory_order_seq_cst))
                rig_futex_wake(rig_word_low(word));
}

/* Queues what the socket has no room for. */
static int queue(
        struct rig_client *c, const uint8_t *data, size_t bytes, bool failure, const int *fds, size_t n_fds)
{
        uint64_t limit = c->limits.queue, failures;
        struct unsent *u;

        if (failure && (rig_mul_overflow(c->limits.runs, FAILURE_BYTES, &failures) ||
                               rig_add_overflow(limit, failures, &limit)))
                limit = UINT64_MAX;
        if ((failure ? c->outbox_failures : c->outbox_bytes - c->outbox_failures) + bytes > limit)
                return -EDQUOT;
        u = calloc(1, sizeof(*u) + bytes);
        if (!u)
                return -ENOMEM;
        rig_list_init(&u->link);
        u->bytes = bytes;
        u->failure = failure;
        memcpy(u->data, data, bytes);
        for (; u->n_fds < n_fds; u->n_fds++) {
                u->fds[u->n_fds] = fcntl(fds[u->n_fds], F_DUPFD_CLOEXEC, 3);
                if (u->fds[u->n_fds] < 0 || !rig_core_keeps_fd(c->core, u->fds[u->n_fds])) {
                        u->n_fds++;
                        unsent_free(u);
                        return -EMFILE;
                }
        }
        rig_list_append(&c->outbox, &u->link);
        c->outbox_bytes += bytes;
        c->outbox_failures += failure ? bytes : 0;
        return 0;
}

void rig_client_other_side_gone(struct rig_client *client)
{
        struct rig_client *c = client;

        c->end = true;
        c->readable = true;
        rig_client_activate(c);
        if (c->throttled) {
                c->throttled = false;
                rig_client_activate_stalled(c->core);
        }
}

/* Whoever sent what cannot be sent may be in the middle of the client's objects: it ends from the loop. */
static void cannot_send(struct rig_client *c, int r)
{
        if (r == -EPIPE || r == -ECONNRESET) {
                rig_client_other_side_gone(c);
                return;
        }
        c->core->n_broken++;
        if (r == -EDQUOT)
                rig_log_about(LOG_WARNING,
                        &RIG_LOG_OF_CLIENT(c, RIG_LOG_CLIENT_UNREAD, .setting = "ClientQueueMax"),
                        "%s is ended: it left %llu bytes of answers unread, and ClientQueueMax is %llu: the "
                        "next one does not fit",
                        c->name, (unsigned long long)c->outbox_bytes, (unsigned long long)c->limits.queue);
        else
                rig_log_about(LOG_WARNING, &RIG_LOG_OF_CLIENT(c, RIG_LOG_CLIENT_UNSERVED),
                        "%s is ended: an answer cannot be sent: %s", c->name, strerror(-r));
        c->end = true;
        c->unheard = true;
        rig_client_activate(c);
}

void rig_client_send(
        struct rig_client *client, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds)
{
        struct rig_client *c = client;
        uint8_t data[MESSAGE_BYTES];
        ssize_t n;
        int r = -EAGAIN;

        if (c->state == RIG_CLIENT_ENDED || c->unheard)
                return;
        n = rig_codec_encode(type, msg, data, sizeof(data));
        rig_assert(n > 0);
        if (rig_list_empty(&c->outbox))
                r = rig_packet_send(c->fd, data, (size_t)n, fds, n_fds, RIG_PACKET_DONTWAIT);
        if (r == -EAGAIN)
                r = queue(c, data, (size_t)n, type == RIG_MSG_RUN_FAILED, fds, n_fds);
        if (r < 0)
                cannot_send(c, r);
}

static void flush(struct rig_client *c)
{
        while (!rig_list_empty(&c->outbox)) {
                struct unsent *u = rig_list_entry(c->outbox.next, struct unsent, link);
                int r = rig_packet_send(c->fd, u->data, u->bytes, u->fds, u->n_fds, RIG_PACKET_DONTWAIT);

                if (r == -EAGAIN)
                        return;
                if (r < 0)
                        cannot_send(c, r);
                if (c->unheard)
                        return;
                c->outbox_bytes -= u->bytes;
                c->outbox_failures -= u->failure ? u->bytes : 0;
                unsent_free(u);
        }
        for (uint32_t id = 0; id < c->devices.room; id++)
                if (rig_table_get(&c->devices, id))
                        rig_device_catch_up(rig_table_get(&c->devices, id));
}

void rig_client_done(struct rig_client *client, uint32_t serial)
{
        struct rig_msg_done m = {.serial = serial};

        rig_client_send(client, RIG_MSG_DONE, &m, NULL, 0);
}

void rig_client_failed(struct rig_client *client, uint32_t serial, const struct rig_error *e)
{
        struct rig_msg_failed m = {.serial = serial,
                .error = (uint32_t)-e->code,
                .text = rig_text(e->text[0] ? e->text : strerror(-e->code), RIG_PROTO_TEXT_MAX)};

        rig_client_send(client, RIG_MSG_FAILED, &m, NULL, 0);
}

/* ---------------------------------------------------------------- awake and asleep */

void rig_client_activate(struct rig_client *client)
{
        if (client->state == RIG_CLIENT_ENDED)
                return;
        client->active_usec = client->core->now_usec;
        if (rig_list_empty(&client->active))
                rig_list_append(&client->core->active, &client->active);
}

bool rig_client_rest(struct rig_client *client)
{
        struct rig_client *c = client;
        bool waits = c->throttled || !rig_list_empty(&c->stalled);

        if ((c->end || c->readable || c->held.bytes) && !waits)
                return false;
        if (!c->ring)
                return true;
        c->resting = true;
        /* Pairs with the client's look at `sleeping` after it published: one of the two sees the other. */
        atomic_store_explicit(&c->words->sleeping, 1, memory_order_seq_cst);
        return waits || atomic_load_explicit(&c->ring->tail, memory_order_seq_cst) == c->head;
}

static int socket_event(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct rig_client *c = userdata;

        if (events & EPOLLOUT)
                flush(c);
        if (events & (EPOLLIN | EPOLLERR)) {
                c->readable = true;
                rig_client_activate(c);
        }
        if (events & EPOLLHUP)
                rig_client_other_side_gone(c);
        return 0;
}
