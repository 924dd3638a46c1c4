/* SPDX-License-Identifier: ISC */
/*
 * A rigd of the tests' own, in a thread: it answers every request, and completes every run as soon as it
 * reads it. Its `twist` sees each answer before it is sent and may change it, send something else, or close.
 */
#ifndef RIG_TEST_FAKE_RIGD_H
#define RIG_TEST_FAKE_RIGD_H

#include <pthread.h>

#include "protocol/codec.h"
#include "protocol/packet.h"
#include "protocol/ring.h"

struct fake;

enum twisted {
        TWISTED_SEND,  /* send it, changed or not */
        TWISTED_NOT,   /* it was dealt with: send nothing */
        TWISTED_CLOSE, /* close the connection instead */
};

struct fake_answer {
        enum rig_msg_type asked; /* what it answers */
        enum rig_msg_type type;
        union rig_msg msg;
        int fds[RIG_PROTO_PACKET_FDS]; /* sent, then closed */
        size_t n_fds;
};

struct fake {
        /* the test's, before it starts */
        enum twisted (*twist)(struct fake *fake, struct fake_answer *answer);
        void *data;
        uint32_t hide; /* features that it does not offer */
        uint32_t device_flags;
        uint64_t close_after; /* messages taken before it closes; 0: never */
        uint64_t seed;

        /* its own */
        pthread_t thread;
        int client, fd, doorbell;
        int words_fd, ring_fd;
        struct rig_words *words;
        struct rig_ring *ring;
        uint8_t *ring_bytes;
        uint64_t head, messages;
        uint32_t serial; /* of the request at hand */
        uint64_t reached[RIG_PROTO_DEVICES_MAX + 1];
        uint8_t work_device[RIG_PROTO_WORK_ID_MAX + 1];
        union rig_msg msg;
        uint8_t packet[RIG_PROTO_PACKET_BYTES];
};

/* Starts it; `address` is what rig_connect() takes, of `size` bytes. */
void fake_start(struct fake *fake, char *address, size_t size, const char *transport);
/* Waits for its end, which comes with the end of the connection. */
void fake_join(struct fake *fake);

/* Sends bytes as they are, or a message. */
void fake_send_bytes(struct fake *fake, const void *data, size_t bytes);
void fake_send(struct fake *fake, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds);

#endif
