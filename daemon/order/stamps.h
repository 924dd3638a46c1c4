/* SPDX-License-Identifier: ISC */
/*
 * The stamps of one memory: the point of its last write and, per timeline, the point of its last use since.
 * A write follows every earlier use, so it alone stands for them afterwards. Embedded in the memory, which
 * outlives every use of it.
 */
#ifndef RIG_STAMPS_H
#define RIG_STAMPS_H

#include "base/base.h"
#include "daemon/order/order.h"

struct rig_timeline;

/* A value of a timeline. Holds a reference to the timeline where it is kept. */
struct rig_point {
        struct rig_timeline *timeline;
        uint64_t value;
};

struct rig_stamps {
        struct rig_point write; /* timeline NULL: never written, or long ago */
        uint32_t n_uses, room;  /* uses since the write, the last of a timeline counts */
        struct rig_point *uses; /* `first`, or allocated once more than those share the memory */
        struct rig_point first[4];
        uint64_t spoiled_seq;         /* runs with a larger seq are lost */
        struct rig_timeline *culprit; /* whose loss spoiled it; referenced, or NULL: it is not spoiled */
        bool pinned;                  /* a use could not be noted: never idle again */
};

void rig_stamps_init(struct rig_stamps *stamps);
/* Drops what the stamps hold. No run that names them is left, or they would dangle. */
void rig_stamps_deinit(struct rig_stamps *stamps);

/* The timeline whose loss spoiled the memory for whatever comes now, or NULL. */
struct rig_timeline *rig_stamps_culprit(const struct rig_stamps *stamps);

/*
 * What timelines do with stamps. Room for one more use is reserved before a run is accepted, so that
 * stamping it cannot fail.
 */
int rig_stamps_reserve(struct rig_stamps *stamps); /* -ENOMEM */
void rig_stamps_stamp(
        struct rig_stamps *stamps, uint32_t access, struct rig_timeline *timeline, uint64_t value);
/* Notes a use again that a write stood for: that write is lost. */
void rig_stamps_restore(struct rig_stamps *stamps, struct rig_timeline *timeline, uint64_t value);
void rig_stamps_spoil(struct rig_stamps *stamps, uint64_t seq, struct rig_timeline *culprit);

/* True once every use of the memory is over: nothing reads or writes it any more (M1, L3). */
bool rig_stamps_idle(const struct rig_stamps *stamps);

#endif
