/* SPDX-License-Identifier: ISC */
/*
 * The wire as the library uses it: ordered messages out, requests out and their answers in, events in.
 *
 *   write.c  encodes and publishes, on the ring or the socket
 *   read.c   reads the socket, one thread at a time, and hands on what arrived
 */
#ifndef RIG_CLIENT_WIRE_H
#define RIG_CLIENT_WIRE_H

#include "libclient/client.h"
#include "protocol/codec.h"
#include "protocol/packet.h"

/* A request in flight. Its owner keeps it until rig_wire_call() returns. */
struct rig_call {
        struct rig_list link; /* in rig->calls, until it is answered */
        uint32_t serial;
        enum rig_msg_type expect; /* the answer's type, where it is not a failure */
        bool answered;
        bool orphan; /* nobody waits: it is on the heap, and freed with its answer */
        int error;   /* 0, or what rigd answered; `text` is its sentence then */
        char text[RIG_ERROR_TEXT_MAX];
        /*
         * Takes what it needs of the answer; optional. Under the lock. `fds` are the packet's descriptors:
         * it steals the ones it keeps. Negative breaks the connection: the answer made no sense.
         */
        int (*take)(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds);
        void *data;
};
#define RIG_CALL_INIT(type)                                                                                 \
        {                                                                                                   \
                .expect = (type)                                                                            \
        }

/* A request's message: where in it the library fills in what it alone knows. */
struct rig_request {
        enum rig_msg_type type;
        void *msg;
        uint32_t *serial;
        uint64_t *follows;
        bool *has_follows;
        const int *fds; /* borrowed */
        size_t n_fds;
};
#define RIG_REQUEST(t, m)                                                                                   \
        {                                                                                                   \
                .type = (t), .msg = &(m), .serial = &(m).serial, .follows = &(m).follows,                   \
                .has_follows = &(m).has_follows                                                             \
        }

/**
 * rig_wire_order() - publish an ordered message
 * @rig:  the connection; its lock is held, and is dropped and taken again where there is no room
 * @type: the message's type
 * @msg:  its struct
 *
 * Return: 0, or what broke the connection.
 */
int rig_wire_order(struct rig *rig, enum rig_msg_type type, const void *msg);

/*
 * Room for an ordered message of at most `bytes` in the ring: where to write it, or NULL. With the lock
 * held. rig_wire_publish() then makes it visible; rig_wire_await_room() waits where there is none.
 */
uint8_t *rig_wire_reserve(struct rig *rig, size_t bytes);
static inline void rig_wire_publish(struct rig *rig, size_t bytes)
{
        rig->tail += bytes;
        /* seq_cst: ordered before the look at `sleeping` in rig_wire_ring_bell(), as rigd's store of
         * `sleeping` is before its last look at `tail` */
        atomic_store_explicit(&rig->ring->tail, rig->tail, memory_order_seq_cst);
}
void rig_wire_ring_bell_slowly(struct rig *rig);
static inline void rig_wire_ring_bell(struct rig *rig)
{
        if (rig->words && rig->ring &&
                rig_unlikely(atomic_load_explicit(&rig->words->sleeping, memory_order_seq_cst)))
                rig_wire_ring_bell_slowly(rig);
}

/* Sends bytes on the socket, with the lock held. 0, -EAGAIN (full), or what broke the connection. */
int rig_wire_send(struct rig *rig, const uint8_t *data, size_t bytes, const int *fds, size_t n_fds);

/*
 * Waits, without the lock meanwhile, for room where ordered messages go: the ring or the socket. Return: 0,
 * or what broke the connection.
 */
int rig_wire_await_room(struct rig *rig);

/*
 * Sends a request with the lock held, as rig_wire_order(). The call is in flight then; `request` is filled
 * in.
 */
int rig_wire_ask(struct rig *rig, const struct rig_request *request, struct rig_call *call);

/**
 * rig_wire_call() - send a request and wait for its answer
 * @rig:     the connection, without its lock
 * @request: the request
 * @call:    where the answer goes; the caller's, on its stack
 *
 * Return: 0; what rigd answered, or what broke the connection, with its sentence.
 */
int rig_wire_call(struct rig *rig, const struct rig_request *request, struct rig_call *call);

/* As rig_wire_call(), but gives up at the deadline with -ETIMEDOUT; `call` is on the heap, and consumed. */
int rig_wire_call_until(
        struct rig *rig, const struct rig_request *request, struct rig_call *call, uint64_t deadline_usec);

/* Sends a request whose answer nobody waits for. A failure that rigd answers is ignored. */
int rig_wire_cast(struct rig *rig, const struct rig_request *request);

/**
 * rig_wire_wait() - read the socket until something is so
 * @rig:           the connection; its lock is held, and dropped while it waits
 * @done:          asked under the lock, after everything that was read
 * @data:          for @done
 * @deadline_usec: when to give up
 * @spin_usec:     how long to poll the socket before sleeping
 *
 * Return: 0 once it is so; -ETIMEDOUT; what broke the connection, with its sentence.
 */
int rig_wire_wait(
        struct rig *rig, bool (*done)(void *data), void *data, uint64_t deadline_usec, uint64_t spin_usec);

/* Reads what has arrived, without waiting, unless another thread is reading. With the lock held. */
void rig_wire_drain(struct rig *rig);

/*
 * A turn of waiting for the socket, shorter than `at_most_usec`; it also ends when `events` of poll(2) come.
 * Return: whether this thread read something.
 */
bool rig_wire_turn(struct rig *rig, uint64_t at_most_usec, uint64_t spin_usec, short events);

/*
 * Ends the connection: every wait returns and every later call fails with `code` and the sentence. The first
 * reason stays. With the lock held.
 */
int rig_break(struct rig *rig, int code, const char *fmt, ...) _printf_(3, 4);

#endif
