/* SPDX-License-Identifier: ISC */
/* A device: one client's handle on an adapter. A timeline, and the driver's half that runs its work. */
#ifndef RIG_DEVICE_H
#define RIG_DEVICE_H

#include "daemon/adapter.h"
#include "daemon/order/timeline.h"

struct rig_client;

struct rig_device {
        struct rig_list link; /* in adapter->devices */
        struct rig_adapter *adapter;
        struct rig_client *client; /* whose, referenced; NULL once it is gone */
        uint32_t id;               /* the client's number for it; 0 once it dropped it */
        unsigned refs;             /* the client's, and of buffers, works, images */
        struct rig_driver_device driver;
        struct rig_timeline *timeline;

        struct rig_list busy;    /* in core->busy */
        sd_event_source *source; /* of the driver's descriptor */
        bool prompt;             /* a prompt op is on the stack */
        bool ran;                /* the driver ran what it is being handed */

        uint64_t ready; /* how far the client's own code may run */
        uint64_t told_ready, told_reached;
        uint32_t failures; /* runs that failed or were lost, as its client is told */

        struct rig_usage usage;
        struct rig_usage untold; /* of it, what its client's and its adapter's do not have yet */
        uint64_t busy_nsec;      /* since when it is busy, as far as its usage has it */
        uint64_t ended_nsec;     /* where it is traced: when its last run ended */
        int error;               /* of the last run that failed by itself, */
        uint64_t error_value;    /* and which that was */

        uint32_t number; /* rigd's, never another device's */
        char name[64];   /* what it was opened as */
        bool lost;
        char reason[RIG_ERROR_TEXT_MAX];
        bool open;                /* the driver's half is open */
        bool closing;             /* nobody refers to it any more */
        bool unended;             /* and it closes once its work has ended */
        struct rig_watch drained; /* before it closes */
};

/* When what happened to a run that is traced. They lie behind its slots, where the run is marked. */
struct rig_run_times {
        uint64_t accepted_nsec;
        uint64_t handed_nsec;
        uint64_t ended_nsec; /* where its driver ran it while it was handed over, else 0 */
};

/* What a run carries through the order. */
struct rig_run_load {
        struct rig_work *work;            /* referenced */
        struct rig_submission submission; /* what the driver gets, but for its waits */
        struct rig_filled slots[];
};

/* Of a run that was accepted while somebody traced; else NULL. */
static inline struct rig_run_times *rig_run_times(const struct rig_run *run)
{
        struct rig_run_load *load = run->payload;

        return rig_unlikely(run->marked)
                       ? (struct rig_run_times *)(void *)&load->slots[load->submission.work->n_slots]
                       : NULL;
}

/* What the run copies and fills; in `ret_copied` what it copies. */
uint64_t rig_run_moves(const struct rig_run *run, uint64_t *ret_copied);

/* A device that is not open yet. */
struct rig_device *rig_device_new(
        struct rig_adapter *adapter, struct rig_client *client, uint32_t id, const char *name);
struct rig_device *rig_device_ref(struct rig_device *device);
/* With the last reference, and once its work is over, it closes. */
struct rig_device *rig_device_unref(struct rig_device *device);

/* The driver's half is open: it takes runs. -ENOMEM. */
int rig_device_opened(struct rig_device *device);

/* The client is gone or dropped it: work that runs in its process is lost, other work goes on. */
void rig_device_leave(struct rig_device *device, bool client_gone);

/* Loses the device (L1), once; `ended` where no work of it runs any more. */
void rig_device_lose(struct rig_device *device, const char *reason, bool ended);

/* No work of the lost device runs any more: its memory returns. */
void rig_device_ended(struct rig_device *device);

/* Asks the driver for progress. Return: whether a value was reached. */
bool rig_device_poll(struct rig_device *device);

/* The client's own code completed up to `value`. -EINVAL with a sentence: it was not told to run. */
int rig_device_client_done(
        struct rig_device *device, uint64_t value, int error, const char *text, struct rig_error *e);

const char *rig_device_describe(const struct rig_device *device);

/* Why a timeline was lost, with its device's name; also where the device is no more. */
const char *rig_device_loss(const struct rig_timeline *timeline);

/* Adds the time in which it was busy so far to what it used. */
void rig_device_count_busy(struct rig_device *device, uint64_t now_nsec);

/* The client reads on: tells it the values that were not told while it did not. */
void rig_device_catch_up(struct rig_device *device);

#endif
