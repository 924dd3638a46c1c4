/* SPDX-License-Identifier: ISC */
/*
 * Simulated devices behind daemon/order/, with the reference model looking over its shoulder: every call
 * back is checked when it is made, and rig_sim_run() checks afterwards that nothing was left undone.
 *
 * The first thing that breaks a law is kept in `law` and `text`; after that nothing is done any more.
 */
#ifndef RIG_TEST_SIMULATE_H
#define RIG_TEST_SIMULATE_H

#include <stdio.h>

#include "daemon/order/order.h"
#include "daemon/order/stamps.h"
#include "daemon/order/timeline.h"
#include "daemon/order/watch.h"
#include "tests/order/model.h"

#define RIG_SIM_WATCHES    96
#define RIG_SIM_USES       6
#define RIG_SIM_HANG_BOUND UINT64_C(1000)

/* What programs make happen: a test run that never saw one of them has tested nothing of it. */
enum rig_sim_feature {
        RIG_SIM_RUNS,
        RIG_SIM_HANDED,
        RIG_SIM_OVERLAPS,    /* a run starts while another device works */
        RIG_SIM_CORE_WAITS,  /* a run had to wait for another device, in the core */
        RIG_SIM_QUEUE_WAITS, /* a run was handed over with waits for its queue */
        RIG_SIM_MANY_WAITS,  /* with more than one */
        RIG_SIM_FULL,        /* the driver had no room */
        RIG_SIM_SYNC,        /* a device completed when it was handed the run */
        RIG_SIM_MIXED_USES,  /* a run named one memory more than once */
        RIG_SIM_POINTS,      /* a run named points of its own */
        RIG_SIM_LARGE,       /* a run's record was large */
        RIG_SIM_SHARED,      /* a run used memory that another client used last */
        RIG_SIM_LOSSES,
        RIG_SIM_ENDED_LOSSES,
        RIG_SIM_LATE_ENDS,    /* a lost device's work ended later */
        RIG_SIM_LATE_WORDS,   /* a lost device's word moved */
        RIG_SIM_LOST_RUNS,    /* a run was passed */
        RIG_SIM_LOST_CHAINS,  /* because of a run that was itself passed */
        RIG_SIM_DROPPED_RUNS, /* a run was accepted on a lost device */
        RIG_SIM_STUCK,
        RIG_SIM_FAILED, /* a hand-over failed */
        RIG_SIM_HANGS,
        RIG_SIM_WATCHES_READ,
        RIG_SIM_WATCHES_WRITE,
        RIG_SIM_WATCHES_IDLE,
        RIG_SIM_WATCHES_VALUE,
        RIG_SIM_WATCHES_FAILED,
        RIG_SIM_WATCHES_CANCELLED,
        RIG_SIM_RETIRED,      /* a memory returned */
        RIG_SIM_RETIRED_BUSY, /* after it waited for its uses */
        RIG_SIM_RETIRED_LATE, /* that a lost device held until its work ended */
        RIG_SIM_CLIENTS_DEAD,
        RIG_SIM_CLOSED, /* a timeline's last reference of its device was dropped before the end */
        _RIG_SIM_FEATURE_MAX,
};

struct rig_sim_config {
        unsigned client;
        unsigned capacity;  /* runs in flight that it has room for; 0: always room */
        uint32_t waits_for; /* devices whose values its queue waits for */
        unsigned max_waits;
        bool sync;      /* a run is complete when it was handed over; such a queue waits for nobody */
        bool host_code; /* runs in its client's process */
        bool ends;      /* a loss found while running the order ends its work */
};

struct rig_sim;

struct rig_sim_device {
        struct rig_sim *sim;
        unsigned index;
        struct rig_sim_config config;
        struct rig_timeline *timeline; /* NULL once its device is gone */
        bool closed;                   /* accepts nothing more, and goes when it is drained */

        uint64_t word;      /* the last value it completed; the order may not have been told yet */
        uint64_t committed; /* the last value it was told to start */
        uint64_t advanced;  /* `reached` as the order told it last */
        bool fail_next;     /* the next hand-over fails */
        int failed;         /* with this error, which the order still has to tell */
};

struct rig_sim_memory {
        struct rig_sim *sim;
        unsigned index;
        uint32_t clients;          /* who names it: bits */
        struct rig_stamps *stamps; /* NULL once it returned */
        struct rig_watch *retire;  /* armed once no client names it */
        unsigned n_watches;        /* armed on it */
        unsigned last_client;
        bool held; /* by a lost device when it was retired */
};

struct rig_sim_watch {
        struct rig_sim *sim;
        struct rig_watch *watch; /* NULL once it is done */
        struct rig_model_watch model;
        bool cancelled;
};

struct rig_sim_run {
        bool has_record;
        unsigned told, over; /* how often run_lost and run_over were called */
};

struct rig_sim {
        struct rig_order order;
        struct rig_model model;
        struct rig_sim_device devices[RIG_MODEL_DEVICES];
        struct rig_sim_memory memories[RIG_MODEL_MEMORIES];
        struct rig_sim_watch watches[RIG_SIM_WATCHES];
        struct rig_sim_run runs[RIG_MODEL_RUNS];
        unsigned n_devices, n_memories, n_watches;
        uint32_t dead_clients;
        uint64_t seq;
        uint64_t now_usec;
        size_t extra_bytes; /* of payload for the runs accepted from now on */
        bool running;       /* inside rig_order_run() */

        uint64_t features[_RIG_SIM_FEATURE_MAX];
        FILE *trace; /* or NULL: every event, as a line */

        const char *law; /* NULL: none is broken */
        char text[256];
};

struct rig_sim_use {
        unsigned memory;
        uint32_t access;
};

void rig_sim_init(struct rig_sim *sim, FILE *trace);

/* Each does its thing, and nothing once a law is broken. Those that need room in the tables check for it. */
void rig_sim_open(struct rig_sim *sim, const struct rig_sim_config *config);
void rig_sim_memory(struct rig_sim *sim, uint32_t clients);
/* Return: the run, or -1. */
int rig_sim_accept(struct rig_sim *sim, unsigned device, const struct rig_sim_use *uses, unsigned n_uses,
        const struct rig_model_point *points, unsigned n_points);
/* Completes up to `n` runs that the device has and may start. */
void rig_sim_complete(struct rig_sim *sim, unsigned device, unsigned n);
/* Tells the order what the device completed. */
void rig_sim_poll(struct rig_sim *sim, unsigned device);
void rig_sim_lose(struct rig_sim *sim, unsigned device, bool ended);
void rig_sim_fail_next(struct rig_sim *sim, unsigned device);
/* Return: the watch, or -1. */
int rig_sim_watch(
        struct rig_sim *sim, enum rig_model_watch_kind kind, unsigned memory, struct rig_model_point point);
void rig_sim_cancel(struct rig_sim *sim, unsigned watch);
/* No client names the memory any more; it returns once it is idle. */
void rig_sim_retire(struct rig_sim *sim, unsigned memory);
void rig_sim_close(struct rig_sim *sim, unsigned device);
void rig_sim_kill(struct rig_sim *sim, unsigned client);
/* Time passes, and every device's hang clock is looked at. */
void rig_sim_tick(struct rig_sim *sim, uint64_t usec);

/* rig_order_run() and what a daemon's loop does around it, until nothing moves; then every check there is.
 */
void rig_sim_run(struct rig_sim *sim);

/* Completes what can complete, ends every loss, returns every memory, and drops everything. */
void rig_sim_finish(struct rig_sim *sim);

const char *rig_sim_feature_to_string(enum rig_sim_feature feature);

/* What a run's fate and a watch's end look like from outside; for tests written by hand. */
enum rig_model_fate rig_sim_fate(const struct rig_sim *sim, int run);
bool rig_sim_watch_done(const struct rig_sim *sim, int watch);

#endif
