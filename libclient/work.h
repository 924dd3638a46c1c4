/* SPDX-License-Identifier: ISC */
/*
 * Works: what is prepared once and run many times.
 */
#ifndef RIG_CLIENT_WORK_H
#define RIG_CLIENT_WORK_H

#include "libclient/buffer.h"

enum rig_part_kind {
        RIG_PART_COPY = 1,
        RIG_PART_FILL,
        RIG_PART_LAUNCH,
        RIG_PART_SYNC,
        _RIG_PART_KIND_MAX,
};
const char *rig_part_kind_to_string(enum rig_part_kind kind);

struct rig_part {
        enum rig_part_kind kind;
        uint32_t queue;
        uint32_t after; /* bit i: part i first */
        uint32_t dst_slot, src_slot;
        uint64_t dst_offset, src_offset;
        uint64_t bytes; /* or RIG_WHOLE */
        uint32_t pattern;

        /* of a launch */
        rig_host_function function; /* what a host device calls */
        struct rig_image *image;    /* a reference, until the program dropped the work */
        struct rig_code *code; /* a reference: what keeps `function` there, where it came from an image */
        uint64_t entry;
        uint32_t grid[3], group[3];
        uint32_t shared_bytes;
        uint32_t params_bytes, n_patches;
        uint8_t *params;
        struct rig_patch *patches;
};

struct rig_slot {
        uint32_t access;
        uint64_t least_bytes;      /* the shortest buffer that all parts fit in */
        struct rig_buffer *buffer; /* where it is bound: a reference */
};

struct rig_work {
        _Atomic uint32_t refs; /* the program's */
        _Atomic uint32_t
                pins;  /* one for all of these, and one for each run that a host device has yet to do */
        bool internal; /* the library's own: keeps no reference on its device */
        bool prepared;
        bool has_whole; /* a part moves all of its slots' buffers */
        uint32_t id;
        struct rig_device *device;          /* a reference, unless internal */
        char name[RIG_PROTO_LABEL_MAX + 1]; /* in traces; "": it has none */

        uint32_t n_slots, n_parts, n_open;
        uint8_t open[RIG_PROTO_SLOTS_MAX]; /* the slots that runs fill, in order */
        struct rig_slot slots[RIG_PROTO_SLOTS_MAX];
        struct rig_part *parts; /* RIG_PROTO_PARTS_MAX of them */
};

/* As rig_work_new(), without the reference on the device. */
int rig_work_new_internal(struct rig_device *device, struct rig_work **ret_work);

/* Runs that still need the parts (host.c). */
void rig_work_pin(struct rig_work *work);
void rig_work_unpin(struct rig_work *work);

#endif
