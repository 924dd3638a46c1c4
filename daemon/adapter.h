/* SPDX-License-Identifier: ISC */
/*
 * An adapter: what a driver found, with its slow thread, its budget and the devices open on it.
 *
 * The slow thread starts with the first job and runs jobs one at a time, in order. A job's run() sees only
 * what it was given; its done() runs on the core loop.
 */
#ifndef RIG_ADAPTER_H
#define RIG_ADAPTER_H

#include <pthread.h>

#include "daemon/core.h"
#include "daemon/memory/memory.h"
#include "daemon/post.h"

enum rig_adapter_state {
        RIG_ADAPTER_READY,     /* opens devices */
        RIG_ADAPTER_LOST,      /* its devices are lost, and work of theirs may run */
        RIG_ADAPTER_RESETTING, /* its driver brings it back; opens wait for that in the job queue */
        RIG_ADAPTER_STATE_MAX,
};

const char *rig_adapter_state_to_string(enum rig_adapter_state state);

struct rig_adapter {
        struct rig_list link; /* in core->adapters */
        struct rig_core *core;
        struct rig_driver_adapter driver; /* the driver's half; what it sees */

        enum rig_adapter_state state;
        char reason[RIG_ERROR_TEXT_MAX]; /* why it is lost */
        struct rig_list devices;         /* struct rig_device, until they are closed */
        unsigned n_devices;
        unsigned n_stops; /* devices being stopped */
        bool needs_reset; /* a device could not be stopped without */

        struct rig_budget budget;
        struct rig_usage usage;
        unsigned n_retiring;      /* memories of it that are to return */
        struct rig_list parked;   /* struct rig_parked: allocations that wait for memory to return */
        struct rig_list accounts; /* struct rig_account */

        unsigned n_jobs; /* deferred and not done */

        pthread_t thread; /* the slow thread */
        bool started;
        /* `lock` guards what follows */
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct rig_list jobs; /* struct rig_slow_job */
        bool quit;
};

/* A connection's account with an adapter: its share, and its cache of returned regions. */
struct rig_account {
        struct rig_list link; /* in adapter->accounts */
        unsigned refs;        /* the client's, and one for each holder that is charged */
        struct rig_adapter *adapter;
        struct rig_share share;
        struct rig_cache cache;
        bool closed; /* its client is gone: nothing is cached any more */
        char client[64];
};

/*
 * Something that waits for memory of the adapter to return, or for the adapter to be brought back; `retry`
 * is called when some did, and when it was or cannot be.
 */
struct rig_parked {
        struct rig_list link;
        void (*retry)(struct rig_parked *parked);
};

int rig_adapter_new(
        struct rig_core *core, const struct rig_driver_adapter *found, struct rig_adapter **ret_adapter);
struct rig_adapter *rig_adapter_free(struct rig_adapter *adapter);

/* The adapter that opens `name`; `ret_instance` and `ret_options` point into it, "" where there are none. */
struct rig_adapter *rig_adapter_find(
        struct rig_core *core, char *name, const char **ret_instance, const char **ret_options);

/* A job of it is done: calls its done(). */
void rig_adapter_job_done(struct rig_slow_job *job);

/* Whether something of it is still to complete or to return, lost devices aside. */
bool rig_adapter_busy(const struct rig_adapter *adapter);

/* Loses the adapter, and every device on it, for one reason. */
void rig_adapter_lose(struct rig_adapter *adapter, const char *reason);
/* Whether it is lost and may yet be ready again by itself. */
bool rig_adapter_recovers(const struct rig_adapter *adapter);

/* A device of it was stopped; `sticky`: only a reset ends its work. */
void rig_adapter_stopped(struct rig_adapter *adapter, bool sticky);

int rig_account_new(struct rig_adapter *adapter, const char *client, uint64_t memory_bytes,
        uint64_t cache_bytes, struct rig_account **ret_account);
/* Its share and its cache are bounded by others from now on. */
void rig_account_set_limits(struct rig_account *account, uint64_t memory_bytes, uint64_t cache_bytes);
struct rig_account *rig_account_ref(struct rig_account *account);
void rig_account_unref(struct rig_account *account);
/* The client is gone: what it cached goes back. */
void rig_account_close(struct rig_account *account);

/* The `idle` of memories: gives the region to its holder's cache or back to the driver. */
void rig_adapter_memory_idle(struct rig_memory *memory);
/* Drops a reference. With the last one the memory is not found by its descriptor any more, and is to return.
 */
void rig_adapter_memory_unref(struct rig_memory *memory);

/* Gives a region back to its driver, on the slow thread. */
void rig_adapter_free_region(struct rig_adapter *adapter, const struct rig_region *region);

/* Drops cached regions of every account until `bytes` more fit the budget. Return: whether they do. */
bool rig_adapter_make_room(struct rig_adapter *adapter, uint64_t bytes);

#endif
