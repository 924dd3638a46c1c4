/* SPDX-License-Identifier: ISC */
/* Buffers: ranges of memories, by the number rigd knows them by. */
#ifndef RIG_CLIENT_BUFFER_H
#define RIG_CLIENT_BUFFER_H

#include "libclient/memory.h"

struct rig_buffer {
        _Atomic uint32_t refs;
        bool internal; /* the library's own: keeps no reference on its device */
        uint32_t id;
        uint32_t access;           /* what it admits */
        struct rig_device *device; /* a reference, unless internal */
        struct rig_memory *memory; /* a reference */
        uint64_t offset, bytes;    /* its range of the memory */
};

/* As rig_buffer_new(), without the reference on the device. */
int rig_buffer_new_internal(
        struct rig_device *device, uint64_t bytes, uint32_t memory, struct rig_buffer **ret_buffer);

/* Whether a slot of the device's works may be filled with the buffer. */
bool rig_buffer_fits_device(const struct rig_buffer *buffer, const struct rig_device *device);

/**
 * rig_buffer_settle() - wait until an access of the host may happen
 * @buffer:        a buffer
 * @access:        RIG_...
 * @deadline_usec: when to give up
 *
 * As rig_buffer_wait(), but failures of runs are left to be told by others.
 */
int rig_buffer_settle(struct rig_buffer *buffer, uint32_t access, uint64_t deadline_usec);

/* Its first byte here; maps the memory the first time. 0, or as rig_memory_map(). */
int rig_buffer_address(const struct rig_buffer *buffer, uint8_t **ret_address);

/* Checks a range of a buffer: 0, or -ERANGE with the sentence. */
int rig_buffer_check_range(const struct rig_buffer *buffer, uint64_t offset, uint64_t bytes);

/*
 * Makes the request that creates a buffer and stores it. `request` is a buffer-new, -adopt, -borrow or
 * -import whose buffer number is at `id`. `of`: whose memory it is, or NULL for one of its own. `given_fd`:
 * a descriptor of the program's that may map the memory where rigd sends none, or -EBADF.
 */
struct rig_buffer_making {
        struct rig_device *device;
        struct rig_request *request;
        uint32_t *id;
        struct rig_buffer *of;
        int given_fd;
        bool internal;
};
int rig_buffer_make(const struct rig_buffer_making *making, struct rig_buffer **ret_buffer);

#endif
