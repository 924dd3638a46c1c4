/* SPDX-License-Identifier: ISC */
/*
 * Threads that do one loop together at a time, and take turns in leading.
 *
 * One of them leads while there is something to lead: it runs `lead`, in which it hands loops to the others.
 * The others sleep, without a wake-up of their own, until there is a loop or something to lead.
 */
#ifndef RIG_CLIENT_CREW_H
#define RIG_CLIENT_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "libclient/lock.h"

/* Does the items [from, to) of a loop, as worker `worker`. */
typedef void (*rig_crew_items)(void *data, uint32_t worker, uint64_t from, uint64_t to);

struct rig_crew_loop {
        rig_crew_items items;
        void *data;
        uint64_t n, batch;
        _Atomic uint64_t next; /* the first item that nobody took */
        bool open;             /* others may join */
        uint32_t joined;       /* those that did and are not done */
};

struct rig_crew {
        struct rig_lock lock;

        /* under the lock */
        bool leading; /* one leads */
        bool work;    /* there is something to lead; the owner's to set */
        bool stopping;
        struct rig_crew_loop loop;

        _Atomic uint32_t pokes;    /* moves with every reason to wake up; what sleepers sleep on */
        _Atomic uint32_t sleepers; /* how many do */
        _Atomic uint32_t
                finished; /* moves when the last that joined a loop is done; the leader sleeps on it */

        /* constant once started */
        uint32_t n_workers;
        pthread_t *threads;
        bool (*lead)(void *data, uint32_t worker);
        void *data;
};

/**
 * rig_crew_start() - start the threads
 * @crew:      zeroed
 * @n_workers: how many
 * @name:      of the threads
 * @lead:      what the leading thread runs, without the lock, until there is nothing to lead; it clears
 * `leading` under the lock. False: it stopped the crew, which is gone
 * @data:      for @lead
 *
 * Return: 0 where at least one runs; a negative errno value.
 */
int rig_crew_start(struct rig_crew *crew, uint32_t n_workers, const char *name,
        bool (*lead)(void *data, uint32_t worker), void *data);

/* Ends the threads and waits for them; one of them may call it, which then ends by itself. Frees nothing
 * else. */
void rig_crew_stop(struct rig_crew *crew);

/* Wakes some sleepers, up to `n`. */
void rig_crew_wake(struct rig_crew *crew, uint32_t n);

/* Does a loop of `n` items, `batch` at a time, on all workers. The leader's, as worker `worker`. Returns
 * when done. */
void rig_crew_for(struct rig_crew *crew, uint32_t worker, uint64_t n, uint64_t batch, rig_crew_items items,
        void *data);

#endif
