/* SPDX-License-Identifier: ISC */
/* A buffer: a range of a memory, as one client names it on one of its devices. */
#ifndef RIG_BUFFER_H
#define RIG_BUFFER_H

#include "daemon/client.h"

struct rig_buffer {
        unsigned refs;                   /* the client's, and of works that bind it */
        struct rig_client *client;       /* referenced */
        struct rig_device *device;       /* referenced */
        struct rig_memory *memory;       /* referenced and held; NULL for a buffer of no bytes */
        const struct rig_region *region; /* the memory's, or a borrow of it */
        uint64_t offset, bytes;
        uint32_t access; /* what the memory admits */
        uint32_t id;     /* 0 once the client dropped it */
};

/**
 * rig_buffer_new() - a buffer over a memory
 * @client, @device: whose and where
 * @memory:          borrowed: the buffer takes its own reference and hold; NULL with no bytes
 * @region:          the memory's or a borrow's
 * @account:         what a new hold is charged to, or NULL where the bytes are the client's own
 * Return: 0, -EDQUOT with a sentence, -ENOMEM.
 */
int rig_buffer_new(struct rig_client *client, struct rig_device *device, struct rig_memory *memory,
        const struct rig_region *region, uint64_t offset, uint64_t bytes, struct rig_account *account,
        struct rig_buffer **ret_buffer, struct rig_error *e);
struct rig_buffer *rig_buffer_ref(struct rig_buffer *buffer);
struct rig_buffer *rig_buffer_unref(struct rig_buffer *buffer);

/* Whether work of `device` can name the buffer. */
bool rig_buffer_reached_by(const struct rig_buffer *buffer, const struct rig_device *device);

#endif
