/* SPDX-License-Identifier: ISC */
/*
 * Buffers (daemon/buffer.h). A buffer refers to its memory and makes its client a holder of it; when the
 * last one is gone the memory is no longer to be found by its descriptor, and returns once its uses are
 * over.
 */
#include "daemon/buffer.h"

int rig_buffer_new(struct rig_client *client, struct rig_device *device, struct rig_memory *memory,
        const struct rig_region *region, uint64_t offset, uint64_t bytes, struct rig_account *account,
        struct rig_buffer **ret_buffer, struct rig_error *e)
{
        struct rig_buffer *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        if (memory) {
                r = rig_memory_hold(memory, client, account ? &account->share : NULL, e);
                if (r < 0) {
                        free(b);
                        return r;
                }
                if (r > 0 && account)
                        rig_account_ref(account);
                b->memory = rig_memory_ref(memory);
                b->region = region;
                b->access = region->access;
        } else {
                b->access = RIG_ACCESS_READ | RIG_ACCESS_WRITE;
        }
        b->refs = 1;
        b->client = rig_client_ref(client);
        b->device = rig_device_ref(device);
        b->offset = offset;
        b->bytes = bytes;
        *ret_buffer = b;
        return 0;
}

struct rig_buffer *rig_buffer_ref(struct rig_buffer *buffer)
{
        buffer->refs++;
        return buffer;
}

static void let_memory_go(struct rig_client *client, struct rig_memory *memory)
{
        struct rig_share *share = rig_memory_release(memory, client);

        if (share)
                rig_account_unref(RIG_CONTAINER_OF(share, struct rig_account, share));
        rig_adapter_memory_unref(memory);
}

struct rig_buffer *rig_buffer_unref(struct rig_buffer *buffer)
{
        struct rig_buffer *b = buffer;

        if (!b || --b->refs)
                return NULL;
        if (b->memory)
                let_memory_go(b->client, b->memory);
        rig_device_unref(b->device);
        rig_client_return_object(b->client);
        rig_client_unref(b->client);
        free(b);
        return NULL;
}

bool rig_buffer_reached_by(const struct rig_buffer *buffer, const struct rig_device *device)
{
        if (buffer->device == device || !buffer->memory)
                return true;
        return device->driver.facts.flags & RIG_DEVICE_NAMES_HOST && buffer->region->host;
}
