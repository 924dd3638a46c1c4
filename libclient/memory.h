/* SPDX-License-Identifier: ISC */
/*
 * A memory as the library knows it: what all buffers over it share. Counted by buffers, and by runs of host
 * devices, which use its bytes after the program dropped the buffer.
 */
#ifndef RIG_CLIENT_MEMORY_H
#define RIG_CLIENT_MEMORY_H

#include "libclient/device.h"

#define RIG_STAMPS_MAX 4 /* devices whose use of a memory is known; more of them is left to rigd */

/* What one device did to a memory. A device is known by its number and which opening of it that was. */
struct rig_stamp {
        uint32_t device, epoch;
        uint64_t last_write, last_use;
};

struct rig_memory {
        _Atomic uint32_t refs;
        uint64_t number; /* of this memory alone, in this connection */

        /* constant */
        int fd;                    /* maps it, or -EBADF */
        uint64_t fd_offset, bytes; /* where in the descriptor it is */
        uint32_t access;
        bool host; /* the host addresses it */
        bool file; /* it is a file's bytes */

        _Atomic(uint8_t *) map; /* once somebody asked */
        _Atomic bool shared;    /* other connections may use it: only rigd knows its order */

        /* under the connection's lock */
        bool crowded; /* a stamp found no room */
        uint32_t n_stamps;
        struct rig_stamp stamps[RIG_STAMPS_MAX];
};

struct rig_memory *rig_memory_ref(struct rig_memory *memory);
struct rig_memory *rig_memory_unref(struct rig_memory *memory);

/* Maps it, the first time. 0; -EOPNOTSUPP, -ENOMEM, -EPROTO (rigd's descriptor is too short). */
int rig_memory_map(struct rig_memory *memory, uint8_t **ret_map);

/* A device's run `value` uses the memory. With the lock held. */
void rig_memory_touch_slowly(
        struct rig_memory *memory, const struct rig_device *device, uint64_t value, uint32_t access);
static inline void rig_memory_touch(
        struct rig_memory *memory, const struct rig_device *device, uint64_t value, uint32_t access)
{
        struct rig_stamp *stamp = &memory->stamps[0];

        if (rig_likely(stamp->device == device->id && stamp->epoch == device->epoch)) {
                stamp->last_use = value;
                if (access & RIG_WRITE)
                        stamp->last_write = value;
                return;
        }
        rig_memory_touch_slowly(memory, device, value, access);
}

#endif
