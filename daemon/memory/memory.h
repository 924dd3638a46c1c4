/* SPDX-License-Identifier: ISC */
/*
 * A memory: an allocation, or a client's memfd or file. Bytes that live and return together, with the stamps
 * that order the work on them.
 *
 * Counted: each buffer and each prepared work that names it holds a reference. With the last one it retires:
 * it waits until every use is over (M1, L3) and then gives its region back, to its client's cache or its
 * driver.
 *
 * Holders are the connections that have buffers over it. Each is charged for all of it, so a memory that
 * outlives the client that made it is somebody's still; and before a run is accepted that names a memory
 * with several holders, what the others published before is accepted (O4).
 */
#ifndef RIG_MEMORY_H
#define RIG_MEMORY_H

#include "base/list.h"
#include "daemon/driver.h"
#include "daemon/memory/budget.h"
#include "daemon/memory/cache.h"
#include "daemon/memory/identity.h"
#include "daemon/order/stamps.h"
#include "daemon/order/watch.h"

struct rig_memory;

/* A connection's part in a memory. */
struct rig_holder {
        struct rig_list link;    /* in memory->holders */
        void *client;            /* whose; the daemon's; not to be looked at once refs is 0 */
        unsigned refs;           /* buffers and works of it that name the memory; 0: it only still pays */
        struct rig_share *share; /* charged, or NULL where the bytes are the client's own */
};

/* A mapping of the memory into another device. */
struct rig_borrow {
        struct rig_list link; /* in memory->borrows */
        struct rig_driver_adapter *adapter;
        void *device; /* the device it was made for; the daemon's */
        struct rig_region region;
};

struct rig_memory {
        struct rig_stamps stamps;
        struct rig_region region;
        enum rig_memory_kind kind;
        uint64_t charged_bytes; /* of the adapter's budget; 0 for a client's own */
        void *adapter;          /* whose region it is; the daemon's */
        void *device;           /* that made it, where its region is only that device's to use; referenced */
        int token;              /* what names it in other processes, where its region has no descriptor */
        unsigned refs;
        bool shared; /* other connections may come to know it, or do */
        unsigned n_holders;
        unsigned changes; /* of the holders, so far */
        struct rig_list holders;
        struct rig_list borrows;
        struct rig_identity identity;
        struct rig_watch watch;                  /* while it retires */
        void (*idle)(struct rig_memory *memory); /* every use is over: give it back and free it */
};

/* A memory over a region it then owns, with one reference and no holder. Return: NULL where none can be had.
 */
struct rig_memory *rig_memory_new(const struct rig_region *region, enum rig_memory_kind kind, void *adapter,
        void (*idle)(struct rig_memory *memory));

struct rig_memory *rig_memory_ref(struct rig_memory *memory);
/* With the last reference it retires; `idle` is called from rig_order_run(). */
void rig_memory_unref(struct rig_memory *memory, struct rig_order *order);

/* Frees what is left of an idle memory; its region, borrows and charges were given back. */
void rig_memory_free(struct rig_memory *memory);

/*
 * Makes `client` a holder, or one more time. A new one is charged `memory->region.bytes` of `share`, unless
 * that is NULL. -EDQUOT with a sentence, -ENOMEM: nothing changed.
 */
int rig_memory_hold(struct rig_memory *memory, void *client, struct rig_share *share, struct rig_error *e);
/*
 * Undoes one hold. Return: the share of a holder that is none any more, or NULL. The last holder of a memory
 * is one until it is freed: what is not idle yet is still charged.
 */
struct rig_share *rig_memory_release(struct rig_memory *memory, void *client);

struct rig_holder *rig_memory_holder(const struct rig_memory *memory, const void *client);

#endif
