/* SPDX-License-Identifier: ISC */
/*
 * A connection: struct rig, as all files of the library see it.
 *
 * One lock guards what is marked as its own. It covers the encoding and the publishing of every message, so
 * the order on the wire is the order of the calls; nobody waits while holding it.
 */
#ifndef RIG_CLIENT_CLIENT_H
#define RIG_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include <rig/rig.h>

#include "base/base.h"
#include "base/list.h"
#include "gen/rig-proto.h"
#include "libclient/fail.h"
#include "libclient/ids.h"
#include "libclient/lock.h"
#include "protocol/shared.h"

/* How submissions travel. */
enum rig_transport {
        RIG_TRANSPORT_RING,   /* ordered messages on the ring, words in the shared page */
        RIG_TRANSPORT_WORDS,  /* everything on the socket, words in the shared page */
        RIG_TRANSPORT_SOCKET, /* everything on the socket, words as events */
        _RIG_TRANSPORT_MAX,
};
const char *rig_transport_to_string(enum rig_transport transport);

struct rig {
        _Atomic uint32_t refs;
        uint32_t process; /* which process connected: *rig_process_page then */

        /* constant once connected */
        enum rig_transport transport;
        int fd;
        int doorbell;
        const struct rig_words *words;
        struct rig_ring *ring;
        uint8_t *ring_bytes;
        uint64_t spin_usec; /* how long a wait polls before it sleeps; 0 on a single core */
        char origin[128];   /* what the connection goes to, for sentences */

        /* set once, under the lock; read anywhere */
        _Atomic int broken; /* 0, or the error that ended the connection; the text is valid then */
        char broken_text[RIG_ERROR_TEXT_MAX];
        _Atomic bool seen_loss; /* a device was lost: what waits for memory asks rigd */

        /* wire.c and read.c, under the lock */
        struct rig_lock lock;
        uint64_t tail;          /* bytes of the ring published */
        uint64_t head_seen;     /* bytes of the ring that rigd is known to have taken */
        uint64_t runs_room;     /* runs that may be submitted before the ones in flight are counted again */
        uint64_t runs_limit;    /* runs in flight that rigd takes from us; UINT64_MAX: any number */
        uint64_t objects_limit; /* buffers, works and images that rigd lets us name */
        uint32_t serial;        /* the last one given */
        struct rig_list calls;  /* struct rig_call: requests without their answer */
        uint8_t *outbox;
        bool reading;           /* a thread leads: it alone reads the socket */
        uint32_t followers;     /* threads that sleep on `turns` */
        _Atomic uint32_t turns; /* moves whenever the leader has read or leaves */

        /* the thread that leads, or who holds the lock while none does */
        uint8_t *inbox;
        union rig_msg *msg;

        /* objects, under the lock */
        struct rig_ids device_ids, buffer_ids, work_ids, image_ids;
        struct rig_device
                *devices[RIG_PROTO_DEVICES_MAX + 1]; /* by id; open ones, which keep themselves here */
        uint32_t epochs[RIG_PROTO_DEVICES_MAX + 1];  /* which opening of an id is the present one */
        uint64_t memories; /* how many were ever made: each has a number of its own */

        /* callbacks (notify.c), under the lock */
        struct rig_list due; /* struct rig_due */
        int due_fd;  /* eventfd, set while `due` is not empty; -EBADF until somebody asks for a descriptor */
        int poll_fd; /* epoll over `fd` and `due_fd` */

        /* staging.c */
        pthread_mutex_t stage_mutex;
        struct rig_device *stage_device; /* "memory:staging", opened when it is first needed; not counted */
};

/*
 * Whether the connection can be used: 0, or its error with its sentence. Every call begins with it, and
 * before it takes the lock: in a forked child the lock may be held for ever.
 */
int rig_check_slowly(struct rig *rig);
extern const uint32_t *rig_process_page;

static inline int rig_check(struct rig *rig)
{
        /* acquire: pairs with the store in rig_break(), so that the text is there */
        if (rig_likely(*rig_process_page == rig->process &&
                       atomic_load_explicit(&rig->broken, memory_order_acquire) == 0))
                return 0;
        return rig_check_slowly(rig);
}

/* Takes the limits that rigd told. With the lock held, or before anyone else has the connection. */
static inline void rig_take_limits(struct rig *rig, uint64_t objects, uint64_t runs)
{
        rig->objects_limit = objects;
        rig->runs_limit = runs > 0 ? runs : UINT64_MAX;
        rig->runs_room = 0; /* counted again by the next run: there may be less */
}

static inline bool rig_forked(const struct rig *rig)
{
        return *rig_process_page != rig->process;
}

#endif
