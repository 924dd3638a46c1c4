/* SPDX-License-Identifier: ISC */
/*
 * A device of the connection: its facts, its timeline as the library knows it, and what went wrong on it.
 */
#ifndef RIG_CLIENT_DEVICE_H
#define RIG_CLIENT_DEVICE_H

#include "base/clock.h"
#include "libclient/client.h"

#define RIG_FAILURES_MAX     64 /* failed runs kept until somebody is told */
#define RIG_ONCE_MAX         4  /* works of the library's own for the one-shot calls */
#define RIG_FAILURE_MEMORIES 4  /* memories that a failed run is known to have used */

/* A run that failed and that no wait has told of yet. */
struct rig_failure {
        uint64_t value;
        int error;
        uint32_t n_memories;
        uint64_t memories[RIG_FAILURE_MEMORIES]; /* their numbers */
        char text[RIG_PROTO_TEXT_MAX + 1];
};

/* Which memory a run of a device of files used: kept until the run is known not to have failed. */
struct rig_use {
        uint64_t value;
        uint64_t memory;
};

struct rig_device {
        _Atomic uint32_t refs;
        struct rig *rig; /* a reference, unless internal */
        bool internal;   /* the library's own: it keeps no reference, and the connection ends it */

        /* constant once open */
        uint32_t id;
        uint32_t epoch;
        char name[RIG_PROTO_NAME_MAX + 1];
        char arch[RIG_PROTO_NAME_MAX + 1];
        uint64_t budget_bytes, hang_usec;
        uint32_t flags; /* RIG_DEVICE_... */
        uint32_t n_queues;
        uint32_t queues[RIG_PROTO_QUEUES_MAX];
        const struct rig_word *word; /* its word, or NULL without a word page */

        /* written under the connection's lock, read anywhere */
        _Atomic uint64_t submitted;
        _Atomic uint64_t reached; /* what events told; only without a word page */
        _Atomic uint64_t ready;
        _Atomic bool lost; /* the device-lost event came: the text is valid */
        char lost_text[RIG_PROTO_TEXT_MAX + 1];

        /* under the connection's lock */
        _Atomic uint32_t failures_told; /* run-failed events that came; read anywhere */
        _Atomic uint32_t n_failures;    /* read anywhere */
        struct rig_failure *failures;   /* RIG_FAILURES_MAX of them, by value */
        struct rig_use *uses;           /* a ring, on a device of files alone */
        uint32_t uses_first, n_uses, uses_room;
        struct rig_list notifies; /* struct rig_due, by no order */
        struct rig_due *on_lost;  /* what rig_device_on_lost() asked for, or NULL */

        /* once.c: works of the library's own, made when first needed; they keep no reference */
        pthread_mutex_t once_mutex;
        struct rig_work *once[RIG_ONCE_MAX];
        /* staging.c; keeps no reference */
        struct rig_stage *stage;

        struct rig_host *host; /* the workers, where its code runs here */
        _Atomic uint64_t done; /* the last value that they did */
};

/* Opens a device that keeps no reference on the connection. As rig_device_open(). */
int rig_device_open_internal(struct rig *rig, const char *name, struct rig_device **ret_device);

/*
 * Takes a reference on a device found in the connection's table; false where it is ending already. With the
 * lock held; it is dropped without.
 */
static inline bool rig_device_hold(struct rig_device *device)
{
        uint32_t refs = atomic_load_explicit(&device->refs, memory_order_relaxed);

        /* relaxed: the lock orders what matters; a device that ends leaves the table under it */
        while (refs > 0)
                if (atomic_compare_exchange_weak_explicit(
                            &device->refs, &refs, refs + 1, memory_order_relaxed, memory_order_relaxed))
                        return true;
        return false;
}

/* The last value reached. */
static inline uint64_t rig_device_now(const struct rig_device *device)
{
        const _Atomic uint64_t *word = device->word ? &device->word->signaled : &device->reached;

        /* acquire: what the work wrote is visible to who saw its value */
        uint64_t now = atomic_load_explicit(word, memory_order_acquire);

        /* The word went through another process; what a worker of this one wrote is ordered by its own
         * store. */
        if (device->host)
                (void)atomic_load_explicit(&device->done, memory_order_acquire);
        return now;
}

/* The value up to which a host device may run. */
static inline uint64_t rig_device_ready_now(const struct rig_device *device)
{
        const _Atomic uint64_t *word = device->word ? &device->word->ready : &device->ready;

        /* acquire: what the run reads was written before, by whoever */
        return atomic_load_explicit(word, memory_order_acquire);
}

/* True once rigd said that the device is lost; its reason may still be on the way. */
static inline bool rig_device_lost_now(const struct rig_device *device)
{
        if (device->word && atomic_load_explicit(&device->word->flags, memory_order_acquire) & RIG_WORD_LOST)
                return true;
        return atomic_load_explicit(&device->lost, memory_order_acquire);
}

/* Waits for the reason of a device that is lost. Return: -ENODEV with the sentence, or what broke the
 * connection. */
int rig_device_fail_lost(struct rig_device *device);

/* True where a queue of the device runs this (RIG_RUNS_...); ret_queue: which. */
bool rig_device_runs(const struct rig_device *device, uint32_t runs, uint32_t *ret_queue);

/* Remembers that the run `value` of a device of files uses a memory. With the lock held; room was made. */
void rig_device_note_use(struct rig_device *device, uint64_t value, uint64_t memory);
/* Makes room for `n` more of them. With the lock held. 0 or -ENOMEM. */
int rig_device_use_room(struct rig_device *device, uint32_t n);

/*
 * Reads what is due of the failures of runs that were reached. With the lock held. Return: 0, or what broke
 * the connection.
 */
int rig_device_catch_up(struct rig_device *device);

/*
 * Tells and forgets the earliest failure of a run from `first` to `last`. With the lock held. Return: 0
 * where there is none, else its error with the sentence.
 */
int rig_device_tell_failure(struct rig_device *device, uint64_t first, uint64_t last);
/* The same of a run that used the memory of this number: is known to, or is its last write or use. */
int rig_device_tell_failure_of(
        struct rig_device *device, uint64_t memory, uint64_t last_write, uint64_t last_use);

/* True where no failure waits to be told, or to be read, of what was reached. Without the lock. */
static inline bool rig_device_faultless(const struct rig_device *device)
{
        uint32_t told = atomic_load_explicit(&device->failures_told, memory_order_relaxed);

        /* acquire: rigd counts a failure before it passes the value; a reader that saw the value sees the
         * count */
        if (device->word && atomic_load_explicit(&device->word->failures, memory_order_acquire) != told)
                return false;
        return atomic_load_explicit(&device->n_failures, memory_order_acquire) == 0;
}

/* Events, with the lock held (read.c). */
void rig_device_reached(struct rig_device *device, uint64_t value);
void rig_device_ready(struct rig_device *device, uint64_t value);
void rig_device_run_failed(struct rig_device *device, const struct rig_msg_run_failed *msg);
void rig_device_told_lost(struct rig_device *device, const struct rig_msg_device_lost *msg);

#endif
