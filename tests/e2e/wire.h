/* SPDX-License-Identifier: ISC */
/*
 * A client of rigd's that speaks the wire itself, so that it can say wrong things: any message, any bytes,
 * on the socket or on the ring.
 *
 * What rigd sends is read one message at a time. wire_expect() keeps what it was not asked for, so that
 * events and answers may come in any order; what was kept can be expected later. Every wait is bounded, and
 * one that is not met fails the test, with the sentence of a `broken` or `failed` that came instead.
 */
#ifndef RIG_TEST_WIRE_H
#define RIG_TEST_WIRE_H

#include "base/clock.h"
#include "base/futex.h"
#include "protocol/codec.h"
#include "protocol/packet.h"
#include "protocol/ring.h"
#include "tests/e2e/rigd.h"

enum wire_transport {
        WIRE_RING,   /* words and the run ring */
        WIRE_WORDS,  /* the word page, and everything on the socket */
        WIRE_SOCKET, /* everything on the socket */
};

/* Something that rigd sent. `msg` points into `data`. */
struct heard {
        enum rig_msg_type type;
        union rig_msg msg;
        struct rig_packet_fds fds;
        uint8_t data[4096];
};

#define KEPT_MAX 256

struct wire {
        int fd;
        enum wire_transport transport;
        uint32_t serial; /* the last one used */
        const struct rig_words *words;
        struct rig_ring *ring;
        uint8_t *bytes; /* of the ring */
        uint64_t tail;  /* of the ring, published */
        int doorbell;
        struct rig_msg_hello_done hello;
        struct heard *kept[KEPT_MAX];
        size_t n_kept;
};

/* Called after each packet and each publication, where it is set. */
extern void (*wire_sent)(void);

/* Connects and says hello. */
void wire_open(struct wire *w, const struct rigd *rigd, enum wire_transport transport);
/* Over a connected socket, which it then owns. Says no hello. */
void wire_open_fd(struct wire *w, int fd, enum wire_transport transport);
void wire_hello(struct wire *w);
/* Closes it. One that is closed stays so. */
void wire_close(struct wire *w);

/* Sends a message where it belongs; ordered ones on the ring where there is one. Fills `follows` of a
 * request. */
void wire_send(struct wire *w, enum rig_msg_type type, const void *msg);
/* On the socket, with descriptors. */
void wire_send_fds(struct wire *w, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds);
/* Any bytes as a packet. */
void wire_send_raw(struct wire *w, const void *data, size_t bytes, const int *fds, size_t n_fds);
/* Any bytes on the ring, published. */
void wire_ring_raw(struct wire *w, const void *data, size_t bytes);
/* Moves the ring's tail and rings the doorbell. */
void wire_ring_publish(struct wire *w, uint64_t tail);
/* Any bytes where runs go. */
void wire_raw(struct wire *w, const void *data, size_t bytes);

/* The message as bytes, after `at` bytes of `out`. Return: where it ends. */
size_t wire_encode(uint8_t *out, size_t at, size_t room, enum rig_msg_type type, const void *msg);

/* A new serial. */
static inline uint32_t wire_serial(struct wire *w)
{
        return ++w->serial;
}

/* Waits for the answer to a serial, or for the next event of a type. */
void wire_answer(struct wire *w, uint32_t serial, enum rig_msg_type type, struct heard *ret);
void wire_event(struct wire *w, enum rig_msg_type type, struct heard *ret);
/* Waits for any answer to a serial. Return: its type. */
enum rig_msg_type wire_any_answer(struct wire *w, uint32_t serial, struct heard *ret);
/* The answer is `failed` with an error and a sentence that has `text` in it. */
void wire_failed(struct wire *w, uint32_t serial, int error, const char *text);
/* Waits for `broken` with an error and a sentence that has `text` in it, then for the end, and closes. */
void wire_broken(struct wire *w, int error, const char *text);
/* Waits for the end of the connection, whatever comes before it. */
void wire_end(struct wire *w);
/* Closes the descriptors of what was heard. */
void heard_done(struct heard *h);

/* ---------------------------------------------------------------- the usual requests, that succeed */

void wire_sync(struct wire *w);
void wire_device(struct wire *w, uint32_t device, const char *name);
/* A new buffer. Return: its memory, mapped, or NULL where it has no descriptor. */
void *wire_buffer(struct wire *w, uint32_t buffer, uint32_t device, uint64_t bytes);
/* Asks for a buffer and does not wait. Return: the serial. */
uint32_t wire_ask_buffer(struct wire *w, uint32_t buffer, uint32_t device, uint64_t bytes);
/* Return: the serial. */
uint32_t wire_ask_adopt(
        struct wire *w, uint32_t buffer, uint32_t device, int fd, uint64_t offset, uint64_t bytes);
void wire_adopt(struct wire *w, uint32_t buffer, uint32_t device, int fd, uint64_t offset, uint64_t bytes);
int wire_export(struct wire *w, uint32_t buffer);
uint32_t wire_ask_import(struct wire *w, uint32_t buffer, uint32_t device, int fd);
void wire_import(struct wire *w, uint32_t buffer, uint32_t device, int fd);
void wire_drop_buffer(struct wire *w, uint32_t buffer);
void wire_drop_work(struct wire *w, uint32_t work);
void wire_close_device(struct wire *w, uint32_t device);

/* Works of one part whose slots are all open and used whole. */
void wire_fill(struct wire *w, uint32_t work, uint32_t device, uint32_t pattern);
void wire_copy(struct wire *w, uint32_t work, uint32_t device); /* slot 0 to, slot 1 from */
/* Asks for a work. Return: the serial. */
uint32_t wire_ask_work(struct wire *w, struct rig_msg_work_new *msg);

/* Runs a work on buffers, with the time of now; up to a 0. */
void wire_run(struct wire *w, uint32_t work, ...);
void wire_run_at(struct wire *w, uint64_t time, uint32_t work, const uint32_t *buffers, uint32_t n);
/* Waits for access to a buffer, which is given. */
void wire_wait(struct wire *w, uint32_t buffer, uint32_t access);
uint32_t wire_ask_wait(struct wire *w, uint32_t buffer, uint32_t access);
/* Waits for a value of a device, by a notify. */
void wire_value(struct wire *w, uint32_t device, uint64_t value);

/* A memfd of zeros with seals. */
int sealed_memfd(uint64_t bytes, int seals);
void *map_fd(int fd, uint64_t bytes);

/* A test of each transport: BOTH(suite, name) { ... uses `transport` ... } */
#define BOTH(suite, name)                                                                                   \
        static void suite##_##name(enum wire_transport transport);                                          \
        Test(suite, name##_on_the_ring)                                                                     \
        {                                                                                                   \
                suite##_##name(WIRE_RING);                                                                  \
        }                                                                                                   \
        Test(suite, name##_on_the_socket)                                                                   \
        {                                                                                                   \
                suite##_##name(WIRE_SOCKET);                                                                \
        }                                                                                                   \
        static void suite##_##name(enum wire_transport transport)

#endif
