/* SPDX-License-Identifier: ISC */
/*
 * The reference model of ordering: what the laws allow and what they demand, asked of a plain list of every
 * run ever accepted. It is told what happened and answers questions; it never decides anything itself.
 *
 * Devices and memories are small numbers, so that sets of them are bits of a word. Answers that name a law
 * are static text such as "O3".
 */
#ifndef RIG_TEST_MODEL_H
#define RIG_TEST_MODEL_H

#include "base/base.h"

#define RIG_MODEL_DEVICES  32
#define RIG_MODEL_MEMORIES 32
#define RIG_MODEL_RUNS     320
#define RIG_MODEL_POINTS   4
#define RIG_MODEL_WAITS    8
#define RIG_MODEL_BIT(i)   (UINT32_C(1) << (i))

/* What became of a run. Whether its value is reached is its device's to say. */
enum rig_model_fate {
        RIG_MODEL_WAITING, /* accepted, nothing else yet */
        RIG_MODEL_HANDED,  /* the device has it, or had it */
        RIG_MODEL_PASSED,  /* lost while its device lives: never handed over */
        RIG_MODEL_DROPPED, /* its device was lost first: never handed over */
};

struct rig_model_point {
        unsigned device;
        uint64_t value;
};

struct rig_model_run {
        unsigned device;
        uint64_t value;
        uint32_t reads, writes;                          /* memories */
        struct rig_model_point points[RIG_MODEL_POINTS]; /* those it names itself (O7) */
        unsigned n_points;
        struct rig_model_point waits[RIG_MODEL_WAITS]; /* those its device's queue waits for */
        unsigned n_waits;
        unsigned n_foreign; /* points it had to wait for when it was accepted, at most */

        enum rig_model_fate fate;
        uint32_t culprits;     /* devices whose loss lost it; 0: it is not lost */
        uint32_t point_causes; /* devices that were lost while a point of its own was unreached */
        uint32_t spoils;       /* memories that it spoils for later runs */
        uint32_t may_spoil;    /* and those that the laws leave open */
};

struct rig_model_device {
        /* the driver's facts */
        uint32_t waits_for; /* devices whose values its queue can wait for */
        unsigned max_waits; /* how many such waits a run may carry */

        uint64_t submitted, handed, reached;
        uint64_t last_handed; /* the last value the device was really given */
        bool lost, ended;
        uint32_t stuck_causes; /* lost devices that its queue waited for */

        uint64_t still_since, still_value; /* the hang clock; value 0: it does not run */
};

struct rig_model {
        struct rig_model_run runs[RIG_MODEL_RUNS]; /* in order of acceptance */
        unsigned n_runs;
        struct rig_model_device devices[RIG_MODEL_DEVICES];
        unsigned n_devices;
};

enum rig_model_watch_kind {
        RIG_MODEL_WATCH_READ,
        RIG_MODEL_WATCH_WRITE,
        RIG_MODEL_WATCH_IDLE,
        RIG_MODEL_WATCH_VALUE,
};

struct rig_model_watch {
        enum rig_model_watch_kind kind;
        unsigned memory;
        struct rig_model_point point;
        unsigned n_runs;         /* runs accepted before it: those it follows */
        uint32_t spoiled_before; /* culprits that had spoiled the memory when it began */
};

/* What happened. */

void rig_model_init(struct rig_model *m);
unsigned rig_model_open(struct rig_model *m, uint32_t waits_for, unsigned max_waits);
/* Return: the run's index; its value is in it. */
unsigned rig_model_accept(struct rig_model *m, unsigned device, uint32_t reads, uint32_t writes,
        const struct rig_model_point *points, unsigned n_points);
void rig_model_hand_over(
        struct rig_model *m, unsigned run, const struct rig_model_point *waits, unsigned n_waits);
void rig_model_pass(struct rig_model *m, unsigned run);
void rig_model_reach(struct rig_model *m, unsigned device, uint64_t value);
void rig_model_lose(struct rig_model *m, unsigned device, bool ended);
void rig_model_watch_init(struct rig_model_watch *w, const struct rig_model *m,
        enum rig_model_watch_kind kind, unsigned memory, struct rig_model_point point);

/* What the laws say now. */

/* The run of a device's value. */
const struct rig_model_run *rig_model_run_of(const struct rig_model *m, unsigned device, uint64_t value);
bool rig_model_reached(const struct rig_model *m, const struct rig_model_run *run);

/**
 * rig_model_forbids_start() - may a run start, once these points are reached?
 *
 * Return: NULL, or the law that forbids it.
 */
const char *rig_model_forbids_start(
        const struct rig_model *m, unsigned run, const struct rig_model_point *waits, unsigned n_waits);

/* Devices whose loss allows that the run is lost; 0: it must not be. */
uint32_t rig_model_may_lose(const struct rig_model *m, unsigned run);
/* Devices whose loss demands it. */
uint32_t rig_model_must_lose(const struct rig_model *m, unsigned run);

/**
 * rig_model_must_go() - must a device's first waiting run have gone by now?
 * @room: whether the driver has room for it
 *
 * Gone is handed over or passed: which of them the questions above say.
 */
bool rig_model_must_go(const struct rig_model *m, unsigned device, bool room);

/* A lost device that this device's queue waits for, now; -1: none. */
int rig_model_stuck_on(const struct rig_model *m, unsigned device);

/* Whether the work of a run may, or must, count as over: nothing of it touches memory any more. */
bool rig_model_may_be_over(const struct rig_model *m, const struct rig_model_run *run);
bool rig_model_must_be_over(const struct rig_model *m, const struct rig_model_run *run);
/* The same of all uses of a memory by the first n_runs runs. */
bool rig_model_may_be_idle(const struct rig_model *m, unsigned memory, unsigned n_runs);
bool rig_model_must_be_idle(const struct rig_model *m, unsigned memory, unsigned n_runs);

/* Devices whose loss spoiled the memory for what follows the first n_runs runs: for sure, or perhaps. */
uint32_t rig_model_spoiled(const struct rig_model *m, unsigned memory, unsigned n_runs);
uint32_t rig_model_perhaps_spoiled(const struct rig_model *m, unsigned memory, unsigned n_runs);

/* Whether a watch may be done without a culprit, with which culprits it may be, and whether it must be done.
 */
bool rig_model_watch_may_succeed(const struct rig_model *m, const struct rig_model_watch *w);
uint32_t rig_model_watch_may_fail(const struct rig_model *m, const struct rig_model_watch *w);
bool rig_model_watch_must_end(const struct rig_model *m, const struct rig_model_watch *w);

/* A look at a device's hang clock. True: a hang. */
bool rig_model_hangs(struct rig_model *m, unsigned device, uint64_t now, uint64_t bound);

#endif
