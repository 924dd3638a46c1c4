/* SPDX-License-Identifier: ISC */
/*
 * What the steered driver runs: copies, fills, and the few functions its images may name. An image is a
 * text, read by a bounded scan that knows every name it accepts; its entries are the functions' own numbers,
 * and an image is a bit set of the ones it lists.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "daemon/drivers/parts.h"
#include "daemon/order/order.h"
#include "tests/drivers/steered/internal.h"

static const char heading[] = "steered-image";

static const char *const entry_names[STEERED_ENTRY_MAX] = {
        [STEERED_NOP] = "nop",
        [STEERED_COPY] = "copy",
        [STEERED_STORE] = "store",
        [STEERED_HOLD] = "hold",
        [STEERED_FAIL] = "fail",
        [STEERED_FAULT] = "fault",
        [STEERED_HANG] = "hang",
};

/* Bytes of parameters that each takes. */
static const uint32_t entry_params[STEERED_ENTRY_MAX] = {
        [STEERED_COPY] = 24,
        [STEERED_STORE] = 12,
        [STEERED_HOLD] = 8,
};

/* ---------------------------------------------------------------- images */

/* The number of a name, or 0. */
static unsigned entry_number(const char *name, size_t length)
{
        for (unsigned i = 1; i < STEERED_ENTRY_MAX; i++)
                if (strlen(entry_names[i]) == length && memcmp(entry_names[i], name, length) == 0)
                        return i;
        return 0;
}

static int parse_image(const char *text, size_t bytes, uint32_t *ret_entries, struct rig_error *e)
{
        uint32_t entries = 0;
        bool headed = false;

        for (size_t at = 0, length; at < bytes; at += length + 1) {
                const char *line = text + at, *end = memchr(line, '\n', bytes - at);
                unsigned entry;

                length = end ? (size_t)(end - line) : bytes - at;
                if (!headed) {
                        if (length != strlen(heading) || memcmp(line, heading, length) != 0)
                                return rig_error_set(
                                        e, -ENOEXEC, "the image does not start with \"%s\"", heading);
                        headed = true;
                        continue;
                }
                entry = entry_number(line, length);
                if (!entry)
                        return rig_error_set(e, -ENOEXEC,
                                "the image names \"%.*s\", which the steered device does not know",
                                (int)RIG_MIN(length, (size_t)40), line);
                entries |= 1u << entry;
        }
        if (!headed)
                return rig_error_set(e, -ENOEXEC, "the image is empty");
        *ret_entries = entries;
        return 0;
}

int steered_image_load(struct rig_driver_device *device, const void *image, size_t bytes,
        struct rig_driver_image *ret_image, struct rig_error *e)
{
        uint32_t *entries = malloc(sizeof(*entries));
        int r;

        if (!entries)
                return rig_error_set(e, -ENOMEM, "no memory for an image");
        r = parse_image(image, bytes, entries, e);
        if (r < 0) {
                free(entries);
                return r;
        }
        ret_image->drv = entries;
        return 0;
}

int steered_image_entry(struct rig_driver_device *device, const struct rig_driver_image *image,
        const char *name, uint64_t *ret_entry)
{
        const uint32_t *entries = image->drv;
        unsigned entry = entry_number(name, strlen(name));

        if (!entry || !(*entries & 1u << entry))
                return -ENOENT;
        *ret_entry = entry;
        return 0;
}

void steered_image_unload(struct rig_driver_device *device, struct rig_driver_image *image)
{
        free(image->drv);
        image->drv = NULL;
}

/* ---------------------------------------------------------------- launches */

/* A part that runs: what the functions need to know. */
struct context {
        struct steered_adapter *adapter;
        bool (*stopped)(void *userdata);
        void *userdata;
        struct rig_error *e;
};

static uint64_t u64_at(const uint8_t *params, uint32_t at)
{
        uint64_t v;

        memcpy(&v, params + at, sizeof(v));
        return v;
}

static enum steered_outcome copy_bytes(
        const struct context *c, uint64_t dst_address, uint64_t src_address, uint64_t bytes)
{
        void *dst, *src;

        if (bytes == 0)
                return STEERED_DONE;
        if (steered_translate(c->adapter, dst_address, bytes, RIG_ACCESS_WRITE, &dst, c->e) < 0 ||
                steered_translate(c->adapter, src_address, bytes, RIG_ACCESS_READ, &src, c->e) < 0)
                return STEERED_FAULTED;
        memmove(dst, src, bytes);
        return STEERED_DONE;
}

static enum steered_outcome store_word(const struct context *c, const uint8_t *params)
{
        void *dst;

        if (steered_translate(c->adapter, u64_at(params, 0), 4, RIG_ACCESS_WRITE, &dst, c->e) < 0)
                return STEERED_FAULTED;
        memcpy(dst, params + 8, 4);
        return STEERED_DONE;
}

static enum steered_outcome hold(const struct context *c, const uint8_t *params)
{
        void *word;

        if (u64_at(params, 0) % 4) {
                rig_error_set(c->e, -EFAULT,
                        "the steered device faulted: the word at 0x%" PRIx64 " is not aligned",
                        u64_at(params, 0));
                return STEERED_FAULTED;
        }
        if (steered_translate(c->adapter, u64_at(params, 0), 4, RIG_ACCESS_READ, &word, c->e) < 0)
                return STEERED_FAULTED;
        while (!atomic_load((_Atomic uint32_t *)word))
                if (c->stopped(c->userdata))
                        return STEERED_STOPPED;
        return STEERED_DONE;
}

static enum steered_outcome hang(const struct context *c)
{
        while (!c->stopped(c->userdata))
                ;
        return STEERED_STOPPED;
}

static enum steered_outcome launch(
        const struct context *c, const struct rig_part *part, const struct rig_filled *slots)
{
        uint8_t params[4096];

        rig_assert(part->params_bytes <= sizeof(params));
        if (part->params_bytes)
                memcpy(params, part->params, part->params_bytes);
        for (uint32_t i = 0; i < part->n_patches; i++) {
                const struct rig_patch *patch = &part->patches[i];
                const struct rig_filled *f = &slots[patch->slot];
                uint64_t address = (f->region ? f->region->address : 0) + f->offset + patch->addend;

                memcpy(params + patch->at, &address, sizeof(address));
        }
        if (part->entry < 1 || part->entry >= STEERED_ENTRY_MAX ||
                part->params_bytes < entry_params[part->entry]) {
                rig_error_set(c->e, -EFAULT,
                        "the steered device faulted: entry %" PRIu64 " with %u bytes of parameters",
                        part->entry, part->params_bytes);
                return STEERED_FAULTED;
        }
        switch ((enum steered_entry)part->entry) {
        case STEERED_COPY:
                return copy_bytes(c, u64_at(params, 0), u64_at(params, 8), u64_at(params, 16));
        case STEERED_STORE:
                return store_word(c, params);
        case STEERED_HOLD:
                return hold(c, params);
        case STEERED_HANG:
                return hang(c);
        case STEERED_FAIL:
                rig_error_set(c->e, -EIO, "the launch was told to fail");
                return STEERED_RUN_FAILED;
        case STEERED_FAULT:
                rig_error_set(c->e, -EIO, "the steered device faulted: the launch was told to");
                return STEERED_FAULTED;
        case STEERED_NOP:
        case STEERED_ENTRY_MAX:
                break;
        }
        return STEERED_DONE;
}

enum steered_outcome steered_part_run(struct steered_adapter *adapter, const struct rig_part *part,
        const struct rig_filled *slots, bool (*stopped)(void *userdata), void *userdata, struct rig_error *e)
{
        const struct context c = {adapter, stopped, userdata, e};
        const struct rig_filled *dst = &slots[part->dst.slot], *src = &slots[part->src.slot];
        uint64_t bytes = rig_part_moves(part, slots), dst_address, src_address;
        void *host;

        if (part->kind == RIG_PART_LAUNCH)
                return launch(&c, part, slots);
        if (bytes == 0)
                return STEERED_DONE;
        dst_address = dst->region->address + dst->offset + part->dst.offset;
        if (part->kind == RIG_PART_COPY) {
                src_address = src->region->address + src->offset + part->src.offset;
                return copy_bytes(&c, dst_address, src_address, bytes);
        }
        if (steered_translate(adapter, dst_address, bytes, RIG_ACCESS_WRITE, &host, e) < 0)
                return STEERED_FAULTED;
        rig_fill(host, part->pattern, bytes);
        return STEERED_DONE;
}
