/* SPDX-License-Identifier: ISC */
/* See daemon/memory/memory.h. What is done with a region that returned is the adapter's (daemon/adapter.c).
 */
#include "daemon/memory/memory.h"

struct rig_memory *rig_memory_new(const struct rig_region *region, enum rig_memory_kind kind, void *adapter,
        void (*idle)(struct rig_memory *memory))
{
        struct rig_memory *m = calloc(1, sizeof(*m));

        if (!m)
                return NULL;
        rig_stamps_init(&m->stamps);
        rig_list_init(&m->holders);
        rig_list_init(&m->borrows);
        m->region = *region;
        m->kind = kind;
        m->adapter = adapter;
        m->idle = idle;
        m->token = -EBADF;
        m->refs = 1;
        return m;
}

struct rig_memory *rig_memory_ref(struct rig_memory *memory)
{
        if (memory)
                memory->refs++;
        return memory;
}

static void retired(struct rig_watch *watch, struct rig_timeline *culprit)
{
        struct rig_memory *m = watch->userdata;

        m->idle(m);
}

void rig_memory_unref(struct rig_memory *memory, struct rig_order *order)
{
        if (!memory || --memory->refs)
                return;
        /* A watch that cannot be had leaks the memory: it must not return while work may still use it. */
        (void)rig_watch_idle(&memory->watch, order, &memory->stamps, retired, memory);
}

void rig_memory_free(struct rig_memory *memory)
{
        while (!rig_list_empty(&memory->holders)) {
                struct rig_holder *h =
                        rig_list_entry(rig_list_pop(&memory->holders), struct rig_holder, link);

                if (h->share)
                        rig_share_return(h->share, memory->region.bytes);
                free(h);
        }
        rig_stamps_deinit(&memory->stamps);
        rig_close(memory->token);
        free(memory);
}

struct rig_holder *rig_memory_holder(const struct rig_memory *memory, const void *client)
{
        rig_list_for_each (l, &memory->holders) {
                struct rig_holder *h = rig_list_entry(l, struct rig_holder, link);

                if (h->client == client && h->refs)
                        return h;
        }
        return NULL;
}

int rig_memory_hold(struct rig_memory *memory, void *client, struct rig_share *share, struct rig_error *e)
{
        struct rig_holder *h = rig_memory_holder(memory, client);

        if (h) {
                h->refs++;
                return 0;
        }
        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        if (share) {
                int r = rig_share_charge(share, memory->region.bytes, e);

                if (r < 0) {
                        free(h);
                        return r;
                }
        }
        h->client = client;
        h->share = share;
        h->refs = 1;
        rig_list_append(&memory->holders, &h->link);
        memory->n_holders++;
        memory->changes++;
        return 1;
}

struct rig_share *rig_memory_release(struct rig_memory *memory, void *client)
{
        struct rig_holder *h = rig_memory_holder(memory, client);
        struct rig_share *share;

        if (!h || --h->refs || memory->n_holders == 1)
                return NULL;
        rig_list_remove(&h->link);
        memory->n_holders--;
        memory->changes++;
        share = h->share;
        if (share)
                rig_share_return(share, memory->region.bytes);
        free(h);
        return share;
}
