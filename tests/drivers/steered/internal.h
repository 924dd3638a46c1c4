/* SPDX-License-Identifier: ISC */
/* What the files of the steered driver share. One lock guards all of it, for every adapter and device. */
#ifndef STEERED_INTERNAL_H
#define STEERED_INTERNAL_H

#include <pthread.h>

#include "base/list.h"
#include "daemon/driver.h"

#define STEERED_ADAPTERS  4
#define STEERED_ROOM_MAX  64
#define STEERED_WAITS_MAX 4

extern pthread_mutex_t steered_lock;

struct steered_adapter {
        struct rig_list regions; /* struct steered_region */
        struct rig_list devices; /* struct steered_device */
        uint64_t next_address;
};

extern struct steered_adapter steered_adapters[STEERED_ADAPTERS];

/* The adapter's state, by its name. */
struct steered_adapter *steered_adapter_of(const struct rig_driver_adapter *adapter);

/* ---------------------------------------------------------------- memory.c */

int steered_region_alloc(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e);
int steered_region_borrow(struct rig_driver_device *device, const struct rig_region *of,
        struct rig_region *ret_region, struct rig_error *e);
void steered_region_free(struct rig_driver_adapter *adapter, struct rig_region *region);

/* Where `bytes` at an address of the device's are, for `access`. -EFAULT: nowhere, and the sentence says
 * why. */
int steered_translate(struct steered_adapter *adapter, uint64_t address, uint64_t bytes, uint32_t access,
        void **ret_host, struct rig_error *e);

/* ---------------------------------------------------------------- code.c */

enum steered_entry {
        STEERED_NOP = 1,
        STEERED_COPY,
        STEERED_STORE,
        STEERED_HOLD,
        STEERED_FAIL,
        STEERED_FAULT,
        STEERED_HANG,
        STEERED_ENTRY_MAX,
};

int steered_image_load(struct rig_driver_device *device, const void *image, size_t bytes,
        struct rig_driver_image *ret_image, struct rig_error *e);
int steered_image_entry(struct rig_driver_device *device, const struct rig_driver_image *image,
        const char *name, uint64_t *ret_entry);
void steered_image_unload(struct rig_driver_device *device, struct rig_driver_image *image);

/* What became of a part. */
enum steered_outcome {
        STEERED_DONE,
        STEERED_RUN_FAILED, /* the run alone */
        STEERED_FAULTED,    /* the device */
        STEERED_STOPPED,    /* it was told to stop meanwhile */
};

/* Runs a part. While it stands still it calls `stopped`, which naps and says whether it is to end. */
enum steered_outcome steered_part_run(struct steered_adapter *adapter, const struct rig_part *part,
        const struct rig_filled *slots, bool (*stopped)(void *userdata), void *userdata,
        struct rig_error *e);

#endif
