/* SPDX-License-Identifier: ISC */
/*
 * Bytes between the program and a buffer.
 *
 * Memory that the host addresses is waited for and copied through its mapping. Any other goes through
 * staging slots in pieces, two at a time where both slots are free: while a device copies one, the program's
 * bytes of the other are copied here. Only the program's own bytes are waited for; the rest is ordered by
 * memory.
 */
#include <string.h>

#include "libclient/staging.h"

#define SLOTS 2

struct blit {
        struct rig_stage *stage;
        struct rig_buffer *slot[SLOTS];
        struct rig_point point[SLOTS]; /* the step that uses the slot, or no device */
        uint64_t bytes[SLOTS];         /* of the program's that it holds */
        uint32_t n_slots;
        struct rig_range range; /* what is left of the buffer */
};

static int check(
        struct rig_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes, uint32_t access)
{
        int r;

        if (!buffer || (!data && bytes > 0))
                return rig_fail(-EINVAL, "no buffer, or no bytes of the program's");
        r = rig_check(buffer->device->rig);
        if (r == 0)
                r = rig_buffer_check_range(buffer, offset, bytes);
        if (r == 0 && access & ~buffer->access)
                r = rig_fail(-EACCES, "the buffer's memory admits no %s",
                        access == RIG_WRITE ? "writes" : "reads");
        return r;
}

static int blit_init(struct blit *b, struct rig_buffer *buffer, uint64_t offset, uint64_t bytes)
{
        int r;

        *b = (struct blit){.range = {.buffer = buffer, .offset = offset, .bytes = bytes}};
        r = rig_stage_for(buffer, &b->stage);
        if (r < 0)
                return r;
        /* One is waited for; the second only makes it faster, and two blits that wait for two would never
         * end. */
        b->slot[b->n_slots++] = rig_stage_take(b->stage, true);
        if (bytes > rig_stage_bytes(b->stage))
                b->slot[b->n_slots] = rig_stage_take(b->stage, false);
        b->n_slots += b->slot[1] != NULL;
        return 0;
}

/* Waits for the step that uses a slot. */
static int settle(struct blit *b, uint32_t i)
{
        int r;

        if (!b->point[i].device)
                return 0;
        r = rig_once_settle(&b->point[i]);
        b->point[i].device = NULL;
        return r;
}

/* Waits for what is still under way, and gives the slots back. Return: `r`, or the first error met. */
static int blit_deinit(struct blit *b, int r)
{
        for (uint32_t i = 0; i < b->n_slots; i++) {
                int s = r < 0 ? 0 : settle(b, i);

                r = r < 0 ? r : s;
                rig_stage_give(b->stage, b->slot[i]);
        }
        return r;
}

/* Cuts the next piece off what is left. */
static struct rig_range next_piece(struct blit *b)
{
        struct rig_range piece = b->range;

        piece.bytes = RIG_MIN(piece.bytes, rig_stage_bytes(b->stage));
        b->range.offset += piece.bytes;
        b->range.bytes -= piece.bytes;
        return piece;
}

static int write_piece(struct blit *b, uint32_t i, const uint8_t *data, uint64_t *ret_bytes)
{
        struct rig_range slot = {.buffer = b->slot[i]}, piece;
        uint8_t *address;
        int r;

        r = settle(b, i);
        /* others' copies may be using the slot's memory still */
        if (r == 0)
                r = rig_buffer_settle(b->slot[i], RIG_WRITE, UINT64_MAX);
        if (r == 0)
                r = rig_buffer_address(b->slot[i], &address);
        if (r < 0)
                return r;
        piece = next_piece(b);
        memcpy(address, data, piece.bytes);
        slot.bytes = piece.bytes;
        *ret_bytes = piece.bytes;
        return rig_stage_step(&piece, &slot, &b->point[i]);
}

static int write_staged(struct rig_buffer *buffer, uint64_t offset, const uint8_t *data, uint64_t bytes)
{
        struct blit b;
        uint64_t moved = 0;
        int r;

        r = blit_init(&b, buffer, offset, bytes);
        if (r < 0)
                return r;
        for (uint32_t i = 0; r == 0 && b.range.bytes > 0; i = (i + 1) % b.n_slots) {
                r = write_piece(&b, i, data, &moved);
                data += moved;
        }
        return blit_deinit(&b, r);
}

/* Starts the copy of the next piece into a slot, if any is left. */
static int start_piece(struct blit *b, uint32_t i)
{
        struct rig_range slot = {.buffer = b->slot[i]}, piece;

        b->bytes[i] = 0;
        if (b->range.bytes == 0)
                return 0;
        piece = next_piece(b);
        slot.bytes = b->bytes[i] = piece.bytes;
        return rig_stage_step(&slot, &piece, &b->point[i]);
}

/* Takes what came into a slot. */
static int finish_piece(struct blit *b, uint32_t i, uint8_t *data)
{
        uint8_t *address;
        int r;

        r = settle(b, i);
        /* rigd knows whether what the copy read was lost */
        if (r == 0)
                r = rig_buffer_settle(b->slot[i], RIG_READ, UINT64_MAX);
        if (r == 0)
                r = rig_buffer_address(b->slot[i], &address);
        if (r == 0)
                memcpy(data, address, b->bytes[i]);
        return r;
}

static int read_staged(struct rig_buffer *buffer, uint64_t offset, uint8_t *data, uint64_t bytes)
{
        struct blit b;
        uint64_t moved;
        int r;

        r = blit_init(&b, buffer, offset, bytes);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < b.n_slots && r == 0; i++)
                r = start_piece(&b, i);
        for (uint32_t i = 0; r == 0 && b.bytes[i] > 0; i = (i + 1) % b.n_slots) {
                moved = b.bytes[i];
                r = finish_piece(&b, i, data);
                data += moved;
                if (r == 0)
                        r = start_piece(&b, i);
        }
        return blit_deinit(&b, r);
}

/* Waits for the host's turn, and says where the bytes are. */
static int reach(struct rig_buffer *buffer, uint64_t offset, uint32_t access, uint8_t **ret_address)
{
        uint8_t *address;
        int r;

        r = rig_buffer_address(buffer, &address);
        if (r == 0)
                r = rig_buffer_wait(buffer, access, RIG_INFINITY);
        if (r == 0)
                *ret_address = address + offset;
        return r;
}

RIG_API int rig_buffer_write(struct rig_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes)
{
        uint8_t *address;
        int r;

        r = check(buffer, offset, data, bytes, RIG_WRITE);
        if (r < 0 || bytes == 0)
                return r;
        if (!buffer->memory->host)
                return write_staged(buffer, offset, data, bytes);
        r = reach(buffer, offset, RIG_WRITE, &address);
        if (r == 0)
                memcpy(address, data, bytes);
        return r;
}

RIG_API int rig_buffer_read(struct rig_buffer *buffer, uint64_t offset, void *data, uint64_t bytes)
{
        uint8_t *address;
        int r;

        r = check(buffer, offset, data, bytes, RIG_READ);
        if (r < 0 || bytes == 0)
                return r;
        if (!buffer->memory->host)
                return read_staged(buffer, offset, data, bytes);
        r = reach(buffer, offset, RIG_READ, &address);
        if (r == 0)
                memcpy(data, address, bytes);
        return r;
}
