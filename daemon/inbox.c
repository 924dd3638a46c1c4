/* SPDX-License-Identifier: ISC */
/*
 * What clients published, taken in their programs' order.
 *
 * The ring is copied out a bite at a time and looked at afterwards, never in place, and its head moves when
 * the bite was taken. A packet stays with its client until its last message was taken. Both are left where
 * they are when a message must wait.
 *
 * Following (O4). A run that names memory which other connections hold is accepted once what those published
 * before it was, and so on for the runs among that. The time of the call in each such run says what was
 * before: the rings alone do not, since rigd reads them one after the other. Following is bounded in depth;
 * what is left goes on in the next turn.
 */
#include <limits.h>

#include "daemon/client.h"
#include "gen/rig-proto-fast.h"

#define FOLLOWING_MAX 1024u /* connections taken from, one because of another: each takes some stack */

/* ---------------------------------------------------------------- one message */

static int take_run(struct rig_client *c, const struct rig_msg_run *run, bool on_socket, uint64_t time)
{
        if (rig_unlikely(on_socket && c->ring))
                return rig_client_break(c, -EPROTO, "run came on the socket: it belongs on the ring");
        if (run->has_time && run->time >= time)
                return RIG_LEFT;
        return rig_client_run(c, run);
}

/* Takes one message. Return: its bytes; 0 where it is left; -EAGAIN where they end inside it; else it was
 * wrong. */
static ssize_t take_message(
        struct rig_client *c, const uint8_t *data, size_t bytes, struct rig_packet_fds *fds, uint64_t time)
{
        union rig_msg *msg = c->core->msg;
        enum rig_msg_type type;
        struct rig_error e;
        ssize_t n;
        int r;

        if (rig_likely(bytes > 1 && data[1] == RIG_MSG_RUN)) {
                struct rig_msg_run run;

                n = (ssize_t)rig_fast_run_decode(data, bytes, &run);
                if (rig_likely(n > 0)) {
                        r = take_run(c, &run, fds != NULL, time);
                        return r == RIG_TAKEN ? n : r;
                }
        }
        e = (struct rig_error)RIG_ERROR_NULL;
        n = rig_codec_decode(data, bytes, msg, &type, &e);
        if (n == -EAGAIN)
                return n;
        if (n < 0)
                return rig_client_break(c, (int)n, "%s", e.text);
        if (type == RIG_MSG_RUN) {
                struct rig_msg_run run = msg->run; /* following others reads other messages */

                r = take_run(c, &run, fds != NULL, time);
        } else if (type == RIG_MSG_BUFFER_WAIT && msg->buffer_wait.time >= time) {
                return 0; /* a wait has its place in the order as a run does (O6) */
        } else {
                r = rig_client_request(c, type, msg, fds);
        }
        return r == RIG_TAKEN ? n : r;
}

/* ---------------------------------------------------------------- the ring */

/* Takes a bite of the ring. Return: messages taken; negative: the client ended. */
static int take_bite(struct rig_client *c, uint64_t tail, uint64_t time)
{
        struct rig_bite *bite = rig_core_bite(c->core);
        size_t bytes = (size_t)RIG_MIN(tail - c->head, RIG_BITE_BYTES), at = 0;
        unsigned taken = 0;
        ssize_t n = 0;

        if (!bite)
                return 0;
        rig_ring_copy(c->ring_bytes, c->head, bytes, bite->data);
        for (; at < bytes; taken++) {
                n = take_message(c, bite->data + at, bytes - at, NULL, time);
                if (n <= 0)
                        break;
                at += (size_t)n;
        }
        rig_core_bite_done(c->core, bite);
        if (n == -EAGAIN && at == 0 && bytes == RIG_BITE_BYTES)
                n = rig_client_break(
                        c, -EBADMSG, "a message in the ring has more than %u bytes", RIG_BITE_BYTES);
        else if (n == -EAGAIN && bytes == tail - c->head)
                n = rig_client_break(c, -EBADMSG, "the ring ends inside a message of %zu bytes", bytes - at);
        if (n < 0 && n != -EAGAIN)
                return (int)n;
        c->head += at;
        atomic_store_explicit(&c->words->head, c->head, memory_order_seq_cst);
        if (at)
                rig_client_wake(c, &c->words->head);
        return (int)taken;
}

/* Takes up to `bites` bites of the ring up to `end`. Return: messages taken; negative: the client ended. */
static int take_ring(struct rig_client *c, uint64_t end, uint64_t time, unsigned bites)
{
        unsigned taken = 0;

        while (c->head < end && bites--) {
                int n = take_bite(c, end, time);

                if (n < 0)
                        return n;
                taken += (unsigned)n;
                if (n == 0)
                        break;
        }
        return (int)taken;
}

/* How far the ring is published; negative: the client ended, for it lies. */
static int ring_tail(struct rig_client *c, uint64_t *ret_tail)
{
        uint64_t tail = atomic_load_explicit(&c->ring->tail, memory_order_acquire);

        if (rig_unlikely(rig_ring_lies(c->head, tail)))
                return rig_client_break(c, -EBADMSG,
                        "the ring's tail is %llu and its head %llu: it has %u bytes",
                        (unsigned long long)tail, (unsigned long long)c->head, RIG_RING_BYTES);
        *ret_tail = tail;
        return 0;
}

/* ---------------------------------------------------------------- the socket */

/* Receives the next packet. Return: 1; 0 where there is none; negative: the client ended. */
static int receive(struct rig_client *c)
{
        ssize_t n;

        /* A reset is told once, before the packets that the other side sent before it went. */
        while ((n = rig_packet_recv(c->fd, c->held.data, RIG_PROTO_PACKET_BYTES, RIG_PACKET_DONTWAIT,
                        &c->held.fds)) == -ECONNRESET)
                rig_client_other_side_gone(c);
        if (n == -EAGAIN) {
                c->readable = false;
                return 0;
        }
        if (n == 0) {
                c->readable = false;
                c->end = true;
                return 0;
        }
        if (n < 0)
                return rig_client_break(c, (int)n,
                        n == -EBADMSG
                                ? "a packet is empty, has more than %u bytes or more than %u descriptors"
                                : "a packet cannot be received (%u bytes, %u descriptors at most)",
                        RIG_PROTO_PACKET_BYTES, RIG_PROTO_PACKET_FDS);
        c->held.at = 0;
        c->held.bytes = (size_t)n;
        return 1;
}

/* Takes what is left of the packet at hand. Return: messages taken; negative: the client ended. */
static int take_held(struct rig_client *c, uint64_t time)
{
        unsigned taken = 0;

        while (c->held.at < c->held.bytes) {
                ssize_t n = take_message(
                        c, c->held.data + c->held.at, c->held.bytes - c->held.at, &c->held.fds, time);

                if (n == -EAGAIN)
                        return rig_client_break(c, -EBADMSG, "a packet ends inside a message");
                if (n < 0)
                        return (int)n;
                if (n == 0)
                        return (int)taken;
                c->held.at += (size_t)n;
                taken++;
        }
        for (uint32_t i = 0; i < c->held.fds.n; i++)
                if (c->held.fds.fd[i] >= 0)
                        return rig_client_break(
                                c, -EBADMSG, "descriptor %u of a packet belongs to no message", i);
        c->held.bytes = 0;
        return (int)taken;
}

/* Takes up to `packets` packets of the socket. Return: messages taken; negative: the client ended. */
static int take_socket(struct rig_client *c, uint64_t time, unsigned packets)
{
        unsigned taken = 0;
        int n;

        while (packets--) {
                if (!c->held.bytes) {
                        n = receive(c);
                        if (n <= 0)
                                return n < 0 ? n : (int)taken;
                }
                n = take_held(c, time);
                if (n < 0)
                        return n;
                taken += (unsigned)n;
                if (c->held.bytes)
                        break;
        }
        return (int)taken;
}

/* ---------------------------------------------------------------- both */

/* Takes bites of the ring and packets of the socket. Return: messages taken; negative: the client ended. */
static int take(struct rig_client *c, uint64_t time, unsigned bites, unsigned packets)
{
        uint64_t tail = 0;
        int ring = 0, socket = 0;

        if (c->ring) {
                if (ring_tail(c, &tail) < 0)
                        return -EPROTO;
                ring = take_ring(c, tail, time, bites);
                if (ring < 0)
                        return ring;
        }
        /* Without a ring a client that is awake is looked at here: its runs come this way. */
        if (c->readable || c->held.bytes || (!c->ring && !c->end)) {
                socket = take_socket(c, time, packets);
                if (socket < 0)
                        return socket;
        }
        return ring + socket;
}

/* Whether all that an ended connection had published was taken. */
static bool exhausted(struct rig_client *c)
{
        uint64_t tail = 0;

        if (c->unheard)
                return true;
        if (c->held.bytes || c->readable)
                return false;
        return !c->ring || (ring_tail(c, &tail) == 0 && tail == c->head);
}

bool rig_client_take(struct rig_client *client)
{
        struct rig_client *c = client;
        int n;

        if (c->state == RIG_CLIENT_ENDED || c->taking)
                return false;
        if (c->resting) {
                c->resting = false;
                atomic_store_explicit(&c->words->sleeping, 0, memory_order_relaxed);
        }
        if (!rig_list_empty(&c->stalled) || (c->throttled && !c->end))
                return false;
        c->core->followed_too_deep = false;
        c->taking = true;
        n = take(c, UINT64_MAX, 1, 1);
        c->taking = false;
        if (n < 0)
                return true;
        if (c->end && exhausted(c) && c->state != RIG_CLIENT_ENDED) {
                rig_client_end(c);
                return true;
        }
        if (n > 0)
                c->active_usec = c->core->now_usec;
        return n > 0;
}

/* ---------------------------------------------------------------- following others */

bool rig_client_take_before(struct rig_client *client, uint64_t time)
{
        struct rig_client *c = client;
        bool was_throttled, all;
        int n;

        if (c->state == RIG_CLIENT_ENDED || c->taking)
                return true; /* what it published before is being accepted further up */
        if (!rig_list_empty(&c->stalled))
                return c->stalled_time >= time;
        rig_client_activate(c);
        if (c->core->following == FOLLOWING_MAX) {
                c->core->followed_too_deep = true; /* it gets a turn of its own */
                return false;
        }
        rig_client_ref(c);
        was_throttled = c->throttled;
        c->throttled = false;
        c->core->following++;
        c->taking = c->followed = true;
        n = take(c, time, UINT_MAX, RIG_PACKETS_MAX);
        c->taking = c->followed = false;
        c->core->following--;
        all = n < 0 || (!c->throttled && rig_list_empty(&c->stalled) && !c->core->followed_too_deep);
        if (was_throttled && c->end)
                rig_client_activate_stalled(c->core); /* it was seen to be gone, and waits no more */
        else
                c->throttled = c->throttled || was_throttled;
        rig_client_unref(c);
        return all;
}

int rig_client_follow(struct rig_client *client, const struct rig_memory *memory, uint64_t time)
{
        struct rig_list *l = memory->holders.next;

        /* Taking from a holder may change the list: then look at it from the start. */
        while (l != &memory->holders) {
                const struct rig_holder *holder = rig_list_entry(l, struct rig_holder, link);
                unsigned changes = memory->changes;

                l = l->next;
                if (!holder->refs || holder->client == client)
                        continue;
                if (!rig_client_take_before(holder->client, time)) {
                        if (client->core->followed_too_deep)
                                return RIG_LEFT; /* it tries again in the next turn */
                        rig_list_remove(&client->stalled);
                        rig_list_append(&client->core->stalled, &client->stalled);
                        client->stalled_time = time;
                        return RIG_LEFT;
                }
                if (memory->changes != changes)
                        l = memory->holders.next;
        }
        return RIG_TAKEN;
}
