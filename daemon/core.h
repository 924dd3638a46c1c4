/* SPDX-License-Identifier: ISC */
/*
 * The core: one loop that owns every object of rigd.
 *
 * A turn takes what clients published, hands over what may run, and passes on what completed. After activity
 * the loop turns without sleeping for a while (PollUSec), looking at rings, words and sockets itself; then
 * it says so to its clients, looks a last time, and sleeps in epoll. It never blocks on anything else.
 */
#ifndef RIG_CORE_H
#define RIG_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "daemon/config/config.h"
#include "daemon/driver.h"
#include "daemon/memory/identity.h"
#include "daemon/order/order.h"
#include "daemon/usage.h"

#define RIG_BITE_BYTES 8192u /* taken from a client's ring in a turn, and the longest message in it */

union rig_msg;

struct rig_bite {
        struct rig_bite *next;
        uint8_t data[RIG_BITE_BYTES];
};

struct rig_core {
        struct rig_config config;
        sd_event *event;
        pthread_t loop_thread; /* the one that made it: prompt calls are made on it alone */
        struct rig_order order;
        struct rig_identities identities; /* of memories that connections may come to share */

        struct rig_list adapters; /* struct rig_adapter */
        struct rig_list clients;  /* struct rig_client, all */
        struct rig_list active;   /* clients that are looked at in every turn */
        unsigned following;       /* clients being taken from because another one must follow them */
        bool followed_too_deep;   /* they were too many: the next turn gets further */
        struct rig_list stalled;  /* clients that wait for another one's runs */
        struct rig_list busy;     /* devices with runs handed over and not reached */
        unsigned n_clients;
        uint64_t last_client; /* the number of the last connection */
        uint32_t last_device; /* the number of the last device */

        struct rig_list traces; /* struct rig_trace */
        unsigned n_traces;

        /* what an admin is told, since it started */
        uint64_t start_usec;    /* CLOCK_REALTIME */
        struct rig_usage usage; /* as of the last rig_core_count_usage() */
        uint64_t n_refused;     /* connections turned away */
        uint64_t n_broken;      /* connections ended for what they sent or left unread */
        uint64_t n_sleeps;
        /* An adapter's state is another one; or NULL. */
        void (*adapter_changed)(struct rig_adapter *adapter, void *userdata);
        void *adapter_changed_userdata;

        /* from other threads: see post.h */
        struct rig_post *post;
        _Atomic bool kicked; /* some device has news: rig_device_kick() */
        _Atomic bool asleep; /* set before the last look at `kicked`, which is set before a look at it */

        struct rig_signals *signals; /* to clients' eventfds */
        sd_event_source *hang_timer;
        bool hang_timer_armed;

        int fds_max;            /* what is kept for clients are descriptors below it: rig_core_keeps_fd() */
        struct rig_bite *bites; /* spare */
        union rig_msg *msg;     /* the message being looked at, unless it is a run */

        int listen_fd;
        sd_event_source *listen_source;
        sd_event_source *accept_timer; /* while no descriptor is left for connections */
        uint64_t now_usec;             /* of the loop's last look at the clock */
        uint64_t now_nsec;             /* likewise; 0 while that was before it slept */
        uint64_t busy_usec;            /* when something last happened */
        bool private_client;           /* the loop ends with its only client */
        bool stopping;
        bool left_behind; /* work did not end in time: threads may still run it, and nothing is freed */
};

/**
 * rig_core_new() - a core with the adapters its drivers find
 * @config:  copied
 * @drivers: NULL at the end; static
 * Return: 0; -ENOMEM and what sd-event gives.
 */
int rig_core_new(const struct rig_config *config, const struct rig_driver *const *drivers,
        struct rig_core **ret_core, struct rig_error *e);
struct rig_core *rig_core_free(struct rig_core *core);

/* Accepts connections from a listening socket, which it consumes. */
int rig_core_listen(struct rig_core *core, int fd);
/* Serves one connected socket, which it consumes, and ends with it. */
int rig_core_serve(struct rig_core *core, int fd);

/*
 * Turns until it is told to stop, then ends its clients and completes the work that they had handed over:
 * where its one client is gone, as long as values are reached, else for at most five seconds. Return: 0 or
 * what sd-event gives.
 */
int rig_core_run(struct rig_core *core);
void rig_core_stop(struct rig_core *core);

/* One turn, then one look at the event loop, which waits up to `usec`. Return: 0 or what sd-event gives. */
int rig_core_turn(struct rig_core *core, uint64_t usec);

/* Does what is due in the order and polls devices until nothing moves. */
void rig_core_settle(struct rig_core *core);

/* Polls busy devices. Return: whether a value was reached. */
bool rig_core_poll_devices(struct rig_core *core);

/* Adds what busy devices used until now to what is told. Before usage is read. */
void rig_core_count_usage(struct rig_core *core);

/* Looks for hangs as long as a device that has a bound is busy. */
void rig_core_arm_hang_timer(struct rig_core *core);

/*
 * Whether a descriptor may be kept for a client. The last ones that this process may have are not: they are
 * for what packets bring for a moment, so that one client that holds very many does not end the others.
 */
bool rig_core_keeps_fd(const struct rig_core *core, int fd);
#define RIG_NO_FDS "rigd has no descriptors left: it holds as many as its limit lets it (LimitNOFILE=)"

struct rig_bite *rig_core_bite(struct rig_core *core);
void rig_core_bite_done(struct rig_core *core, struct rig_bite *bite);

#endif
