/* SPDX-License-Identifier: ISC */
/*
 * See parts.h. The edges of a part are one word of bits, so that the ready parts of a run are a loop over at
 * most 32 words. Invariant: the core admits only edges to earlier parts, so a run always has a ready part
 * until all of it is started.
 */
#include "daemon/drivers/parts.h"

#include <string.h>

void rig_parts_init(struct rig_parts *parts, const struct rig_driver_work *work)
{
        uint32_t last_of_queue[RIG_QUEUES_MAX] = {0};

        parts->n = work->n_parts;
        parts->started = parts->done = 0;
        for (uint32_t i = 0; i < work->n_parts; i++) {
                const struct rig_part *part = &work->parts[i];

                parts->before[i] = part->after | last_of_queue[part->queue];
                last_of_queue[part->queue] = 1u << i;
        }
}

void rig_fill(void *dst, uint32_t pattern, uint64_t bytes)
{
        uint64_t wide = (uint64_t)pattern << 32 | pattern;
        uint8_t *at = dst;

        if (pattern == (pattern & 0xff) * UINT32_C(0x01010101)) {
                memset(dst, (int)(pattern & 0xff), bytes);
                return;
        }
        for (; bytes >= sizeof(wide); at += sizeof(wide), bytes -= sizeof(wide))
                memcpy(at, &wide, sizeof(wide));
        memcpy(at, &wide, bytes);
}
