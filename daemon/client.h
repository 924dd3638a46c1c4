/* SPDX-License-Identifier: ISC */
/*
 * A client: one connection, and everything its program holds.
 *
 * Its messages are taken in its program's order: the ring's, and a request of the socket once the ring was
 * taken up to where the request says. Taking stops, and the rest waits where it is, when the client has as
 * many runs in flight as it may (throttled), or when the next run must follow what another connection
 * published and cannot have accepted yet (stalled). It ends when the connection does, or with the first
 * message that is wrong.
 */
#ifndef RIG_CLIENT_H
#define RIG_CLIENT_H

#include "base/table.h"
#include "daemon/device.h"
#include "protocol/codec.h"
#include "protocol/packet.h"
#include "protocol/ring.h"

#define RIG_PACKETS_MAX 512u /* taken of a socket at once at most: more than one holds */

enum rig_client_state {
        RIG_CLIENT_GREETING, /* its hello has not come */
        RIG_CLIENT_OPEN,
        RIG_CLIENT_ENDED, /* it holds nothing any more, and is freed with its last reference */
};

/* A packet that was received and not taken to its end. */
struct rig_held {
        uint8_t *data;
        size_t at, bytes;
        struct rig_packet_fds fds;
};

/* What one client may have. The configuration's, until an admin sets others. */
struct rig_limits {
        uint64_t objects; /* buffers, works and images */
        uint64_t memory;  /* bytes of each adapter's memory */
        uint64_t runs;    /* accepted and not over */
        uint64_t cache;   /* bytes of returned memory kept for it */
        uint64_t queue;   /* bytes of answers and events that it leaves unread */
};

struct rig_client {
        struct rig_list link;    /* in core->clients */
        struct rig_list active;  /* in core->active */
        struct rig_list stalled; /* in core->stalled */
        struct rig_core *core;
        unsigned refs;
        enum rig_client_state state;

        uint64_t number;
        pid_t pid;
        uid_t uid;
        char name[64];                /* "client 12 (pid 345, uid 1000)" */
        char library[64];             /* what its hello called itself */
        uint64_t connected_usec;      /* CLOCK_REALTIME */
        uint64_t connected_boot_usec; /* CLOCK_BOOTTIME, as processes' starts are told */
        struct rig_limits limits;
        uint64_t told_objects; /* the most objects that it was ever told it may have */
        struct rig_usage usage;
        struct rig_trace *trace; /* its own, or NULL */

        int fd;
        sd_event_source *source;
        bool readable; /* the socket may have a packet */
        bool end;      /* the other side is gone: take what is left, then end */
        bool unheard;  /* or nothing can be told it any more: end at once */
        struct rig_held held;
        struct rig_list outbox; /* answers and events that the socket had no room for */
        uint64_t outbox_bytes;
        uint64_t outbox_failures; /* of them, bytes that tell of runs that failed */

        uint32_t features;
        struct rig_words *words; /* or NULL */
        struct rig_ring *ring;   /* or NULL */
        uint8_t *ring_bytes;
        uint64_t head; /* of the ring; words->head is for the client */
        int doorbell;
        sd_event_source *doorbell_source;

        bool taking;           /* taken from, further up the stack */
        bool followed;         /* because another one must follow it */
        uint64_t stalled_time; /* of the run that waits, where it is stalled */
        bool throttled;
        bool resting;         /* it was told that rigd sleeps */
        uint64_t active_usec; /* when it last had something */

        struct rig_table devices, buffers, works, images;
        struct rig_table accounts; /* struct rig_account, in no order; few */
        uint64_t n_objects;
        uint64_t runs;         /* accepted and not over */
        struct rig_list waits; /* struct rig_wait_request */
};

int rig_client_new(struct rig_core *core, int fd, struct rig_client **ret_client);
struct rig_client *rig_client_ref(struct rig_client *client);
struct rig_client *rig_client_unref(struct rig_client *client);

/*
 * Takes a bite of what the client published, its share of a turn. Return: whether there was anything. The
 * client may have ended meanwhile: the caller holds a reference.
 */
bool rig_client_take(struct rig_client *client);

/*
 * Takes what the client published before `time` (CLOCK_MONOTONIC, nanoseconds). Return: false where that
 * could not be done to the end, because the client is throttled or stalled.
 */
bool rig_client_take_before(struct rig_client *client, uint64_t time);

/* It is looked at in every turn from now on. */
void rig_client_activate(struct rig_client *client);
/* Tells it that rigd sleeps. Return: false where it has published something meanwhile. */
bool rig_client_rest(struct rig_client *client);

/* Those that waited for another one's runs try again. */
void rig_client_activate_stalled(struct rig_core *core);

/*
 * The other side is gone. What it published is still taken, whatever it has in flight: it can do nothing any
 * more that would end its waits.
 */
void rig_client_other_side_gone(struct rig_client *client);

/* A run of it is over. */
void rig_client_run_over(struct rig_client *client);

/* Sends an answer or event with borrowed descriptors; never blocks. */
void rig_client_send(
        struct rig_client *client, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds);
void rig_client_done(struct rig_client *client, uint32_t serial);
void rig_client_failed(struct rig_client *client, uint32_t serial, const struct rig_error *e);

/* Whether it leaves so much unread that its socket has no room. */
static inline bool rig_client_clogged(const struct rig_client *client)
{
        return !rig_list_empty(&client->outbox);
}

/* Wakes threads of it that sleep on a word of the shared pages. */
void rig_client_wake(struct rig_client *client, _Atomic uint64_t *word);

/* What it sent was wrong: says so, and ends. Return: -EPROTO. */
int rig_client_break(struct rig_client *client, int error, const char *fmt, ...) _printf_(3, 4);

/* Closes descriptors that came in a packet and were not taken, and waits for none of them. */
void rig_client_close_fds(struct rig_packet_fds *fds);

/* Ends it: everything it holds is dropped. Accepted work goes on. */
void rig_client_end(struct rig_client *client);

/* Its account with an adapter, made with the first use. */
int rig_client_account(
        struct rig_client *client, struct rig_adapter *adapter, struct rig_account **ret_account);

/* -EDQUOT with a sentence where it holds as many objects as it may; else counts one more. */
int rig_client_charge_object(struct rig_client *client, struct rig_error *e);
/*
 * The same for an object that is asked for without an answer. It is held to the numbers that the client has
 * in use, which the client can count itself, and not to what still lives behind numbers that it dropped.
 */
int rig_client_charge_unasked(struct rig_client *client, struct rig_error *e);
void rig_client_return_object(struct rig_client *client);

/* Sets its limits, and tells it. What it holds beyond them it keeps. */
void rig_client_set_limits(struct rig_client *client, const struct rig_limits *limits);

/* ---------------------------------------------------------------- its messages (inbox.c, requests.c, run.c)
 */

/* The verdict on a message: taken, left where it is for now, or the client ended (negative). */
#define RIG_TAKEN 1
#define RIG_LEFT  0

/* Everything but runs. `fds` is NULL on the ring. */
int rig_client_request(
        struct rig_client *client, enum rig_msg_type type, union rig_msg *msg, struct rig_packet_fds *fds);
int rig_client_run(struct rig_client *client, const struct rig_msg_run *msg);

/* Takes what the other holders of a memory published before `time`; RIG_LEFT where the client is stalled
 * now. */
int rig_client_follow(struct rig_client *client, const struct rig_memory *memory, uint64_t time);

void rig_client_cancel_waits(struct rig_client *client);

#endif
