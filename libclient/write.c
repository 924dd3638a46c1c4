/* SPDX-License-Identifier: ISC */
/*
 * Sending.
 *
 * Ordered messages go into the run ring where there is one, else on the socket; requests go on the socket
 * and say which position of the ring they follow. Encoding and publishing happen under the connection's
 * lock, so the program's order is one order on the wire, whatever carries it.
 *
 * Nothing is queued in the library. Where the ring or the socket is full, the caller waits for room without
 * the lock and starts over: nothing of its message was visible yet. While it waits for the socket it reads
 * it too, since rigd may be waiting for this client to take what it sent.
 *
 * It deliberately does not batch: a message is on its way when the call that made it returns.
 */
#include <poll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "gen/rig-proto-fast.h"
#include "libclient/wire.h"
#include "protocol/ring.h"

#define ORDERED_BYTES_MAX RIG_FAST_RUN_BYTES_MAX /* of the longest ordered message */
#define ROOM_SPIN_USEC    20
#define NAP_USEC          (50 * RIG_USEC_PER_MSEC) /* between looks at whether rigd still lives */
#define GONE_TURNS        100                      /* naps until a closed socket must have told why */

uint8_t *rig_wire_reserve(struct rig *rig, size_t bytes)
{
        if (rig_likely(rig_ring_room(rig->head_seen, rig->tail) >= bytes))
                return rig_ring_at(rig->ring_bytes, rig->tail);

        /* acquire: rigd has copied out what lies before `head`, so it may be written over */
        rig->head_seen = atomic_load_explicit(&rig->words->head, memory_order_acquire);
        if (rig_ring_lies(rig->head_seen, rig->tail)) {
                rig->head_seen = rig->tail - RIG_RING_BYTES;
                rig_break(rig, -EPROTO, "rigd says that it took more of the ring than there is");
                return NULL;
        }
        if (rig_ring_room(rig->head_seen, rig->tail) < bytes)
                return NULL;
        return rig_ring_at(rig->ring_bytes, rig->tail);
}

void rig_wire_ring_bell_slowly(struct rig *rig)
{
        /* A full eventfd is one that rigd has yet to be woken by: nothing is lost. */
        eventfd_write(rig->doorbell, 1);
}

static int await_ring(struct rig *rig)
{
        const _Atomic uint64_t *word = &rig->words->head;
        uint64_t head = rig->head_seen, until;

        rig_lock_drop(&rig->lock);
        until = rig_now_usec() + (rig->spin_usec > 0 ? ROOM_SPIN_USEC : 0);
        while (atomic_load_explicit(word, memory_order_acquire) == head && rig_now_usec() < until)
                rig_cpu_relax();

        if (atomic_load_explicit(word, memory_order_acquire) == head) {
                /* seq_cst: said before the last look; rigd moves `head` before it looks who sleeps */
                atomic_fetch_add_explicit(&rig->ring->sleepers, 1, memory_order_seq_cst);
                if (atomic_load_explicit(word, memory_order_seq_cst) == head)
                        rig_futex_wait(rig_word_low_const(word), (uint32_t)head, NAP_USEC);
                atomic_fetch_sub_explicit(&rig->ring->sleepers, 1, memory_order_relaxed);
        }
        rig_lock_take(&rig->lock);
        rig_wire_drain(rig);
        return rig_check(rig);
}

static int await_socket(struct rig *rig)
{
        rig_wire_turn(rig, NAP_USEC, 0, POLLOUT);
        return rig_check(rig);
}

int rig_wire_await_room(struct rig *rig)
{
        if (rig->ring)
                return await_ring(rig);
        return await_socket(rig);
}

/* The other side closed: what it said last is still to be read. */
static int gone(struct rig *rig)
{
        for (int i = 0; i < GONE_TURNS && rig_check(rig) == 0; i++)
                rig_wire_turn(rig, NAP_USEC, 0, 0);
        if (rig_check(rig) == 0)
                rig_break(rig, -ECONNRESET, "rigd is gone");
        return rig_check(rig);
}

int rig_wire_send(struct rig *rig, const uint8_t *data, size_t bytes, const int *fds, size_t n_fds)
{
        int r;

        r = rig_packet_send(rig->fd, data, bytes, fds, n_fds, RIG_PACKET_DONTWAIT);
        switch (r) {
        case 0:
        case -EAGAIN:
                return r;
        case -EPIPE:
        case -ECONNRESET:
        case -ENOTCONN:
                return gone(rig);
        case -EBADF:
                return rig_fail(r, "not an open descriptor");
        case -ENOBUFS:
                return rig_fail_memory();
        default:
                return rig_fail(r, "cannot send to rigd: %s", rig_strerror(r));
        }
}

static int order_once(struct rig *rig, enum rig_msg_type type, const void *msg)
{
        ssize_t n;
        uint8_t *out;
        int r;

        r = rig_check(rig);
        if (r < 0)
                return r;
        out = rig->ring ? rig_wire_reserve(rig, ORDERED_BYTES_MAX) : rig->outbox;
        if (!out)
                return -EAGAIN;
        n = rig_codec_encode(type, msg, out, ORDERED_BYTES_MAX);
        rig_assert(n > 0);
        if (!rig->ring)
                return rig_wire_send(rig, out, (size_t)n, NULL, 0);
        rig_wire_publish(rig, (size_t)n);
        rig_wire_ring_bell(rig);
        return 0;
}

int rig_wire_order(struct rig *rig, enum rig_msg_type type, const void *msg)
{
        for (;;) {
                int r = order_once(rig, type, msg);

                if (r != -EAGAIN)
                        return r;
                r = rig_wire_await_room(rig);
                if (r < 0)
                        return r;
        }
}

static int ask_once(struct rig *rig, const struct rig_request *request, struct rig_call *call)
{
        ssize_t n;
        int r;

        r = rig_check(rig);
        if (r < 0)
                return r;
        call->serial = *request->serial = ++rig->serial;
        if (rig->ring && request->follows) {
                *request->has_follows = true;
                *request->follows = rig->tail;
        }
        n = rig_codec_encode(request->type, request->msg, rig->outbox, RIG_PROTO_PACKET_BYTES);
        if (n < 0)
                return rig_fail((int)n, "a %s is beyond the bounds of the protocol",
                        rig_msg_type_to_string(request->type));

        r = rig_wire_send(rig, rig->outbox, (size_t)n, request->fds, request->n_fds);
        if (r < 0)
                return r;
        /* The answer cannot have been handled yet: the lock was held since the request was sent. */
        rig_list_append(&rig->calls, &call->link);
        return 0;
}

int rig_wire_ask(struct rig *rig, const struct rig_request *request, struct rig_call *call)
{
        for (;;) {
                int r = ask_once(rig, request, call);

                if (r != -EAGAIN)
                        return r;
                r = await_socket(rig);
                if (r < 0)
                        return r;
        }
}

static bool answered(void *data)
{
        const struct rig_call *call = data;

        return call->answered;
}

static int result(const struct rig_call *call)
{
        return call->error < 0 ? rig_fail(call->error, "%s", call->text) : 0;
}

int rig_wire_call(struct rig *rig, const struct rig_request *request, struct rig_call *call)
{
        int r;

        rig_lock_take(&rig->lock);
        r = rig_wire_ask(rig, request, call);
        if (r == 0) {
                r = rig_wire_wait(rig, answered, call, RIG_USEC_INFINITY, rig->spin_usec);
                rig_list_remove(&call->link);
        }
        rig_lock_drop(&rig->lock);
        return r < 0 ? r : result(call);
}

int rig_wire_call_until(
        struct rig *rig, const struct rig_request *request, struct rig_call *call, uint64_t deadline_usec)
{
        bool orphaned = false;
        int r;

        rig_lock_take(&rig->lock);
        r = rig_wire_ask(rig, request, call);
        if (r == 0) {
                r = rig_wire_wait(rig, answered, call, deadline_usec, rig->spin_usec);
                /* a late answer finds the call, and frees it */
                orphaned = r == -ETIMEDOUT;
                call->orphan = orphaned;
                if (!orphaned)
                        rig_list_remove(&call->link);
        }
        rig_lock_drop(&rig->lock);
        if (r == 0)
                r = result(call);
        if (!orphaned)
                free(call);
        return r;
}

int rig_wire_cast(struct rig *rig, const struct rig_request *request)
{
        struct rig_call *call;
        int r;

        call = calloc(1, sizeof(*call));
        if (!call)
                return rig_fail_memory();
        call->expect = RIG_MSG_DONE;
        call->orphan = true;
        rig_lock_take(&rig->lock);
        r = rig_wire_ask(rig, request, call);
        rig_lock_drop(&rig->lock);
        if (r < 0)
                free(call);
        return r;
}
