/* SPDX-License-Identifier: ISC */
/*
 * The model of the small device. A command is remembered where it is written, and done in the engine's next
 * turn, so that no DMA happens inside an access.
 */
#include "tests/pci/device.h"

#include <string.h>

static const struct model_register registers[] = {
        {"ID", REG_ID, 4, MODEL_READ, 1},
        {"SCRATCH", REG_SCRATCH, 4, MODEL_READ | MODEL_WRITE, 1},
        {"WIDE", REG_WIDE, 8, MODEL_READ | MODEL_WRITE, 1},
        {"COMMAND", REG_COMMAND, 4, MODEL_WRITE, 1},
        {"STATUS", REG_STATUS, 4, MODEL_READ, 1},
        {"ADDRESS", REG_ADDRESS, 8, MODEL_READ | MODEL_WRITE, 1},
        {"BYTES", REG_BYTES, 4, MODEL_READ | MODEL_WRITE, 1},
        {"VALUE", REG_VALUE, 4, MODEL_READ | MODEL_WRITE, 1},
        {"RESULT", REG_RESULT, 4, MODEL_READ, 1},
        {"HALF", REG_HALF, 2, MODEL_READ | MODEL_WRITE, 1},
        {"BYTE", REG_BYTE, 1, MODEL_READ | MODEL_WRITE, 1},
};

static int device_read(struct model *m, unsigned bar, uint64_t at, uint32_t bytes, uint64_t *ret_value)
{
        const struct device *d = model_own(m);

        switch (at) {
        case REG_ID:
                *ret_value = DEVICE_ID_VALUE;
                break;
        case REG_SCRATCH:
                *ret_value = d->scratch;
                break;
        case REG_WIDE:
                *ret_value = d->wide;
                break;
        case REG_STATUS:
                *ret_value = d->status;
                break;
        case REG_ADDRESS:
                *ret_value = d->address;
                break;
        case REG_BYTES:
                *ret_value = d->bytes;
                break;
        case REG_VALUE:
                *ret_value = d->value;
                break;
        case REG_RESULT:
                *ret_value = d->result;
                break;
        case REG_HALF:
                *ret_value = d->half;
                break;
        default:
                *ret_value = d->byte;
        }
        return 0;
}

static int device_write(struct model *m, unsigned bar, uint64_t at, uint32_t bytes, uint64_t value)
{
        struct device *d = model_own(m);

        switch (at) {
        case REG_SCRATCH:
                d->scratch = (uint32_t)value;
                break;
        case REG_WIDE:
                d->wide = value;
                break;
        case REG_COMMAND:
                d->command = (uint32_t)value;
                d->status = 1;
                break;
        case REG_ADDRESS:
                d->address = value;
                break;
        case REG_BYTES:
                d->bytes = (uint32_t)value;
                break;
        case REG_VALUE:
                d->value = (uint32_t)value;
                break;
        case REG_HALF:
                d->half = (uint16_t)value;
                break;
        default:
                d->byte = (uint8_t)value;
        }
        return 0;
}

static int fill(struct model *m, struct device *d)
{
        uint32_t words[1024];

        for (size_t i = 0; i < RIG_ARRAY_SIZE(words); i++)
                words[i] = d->value;
        for (uint32_t at = 0; at < d->bytes; at += sizeof(words)) {
                int r = model_dma_write(
                        m, d->address + at, words, RIG_MIN((uint32_t)sizeof(words), d->bytes - at));

                if (r < 0)
                        return r;
        }
        return 0;
}

static int sum(struct model *m, struct device *d)
{
        uint32_t words[1024];

        d->result = 0;
        for (uint32_t at = 0; at < d->bytes; at += sizeof(words)) {
                uint32_t part = RIG_MIN((uint32_t)sizeof(words), d->bytes - at);
                int r = model_dma_read(m, d->address + at, words, part);

                if (r < 0)
                        return r;
                for (uint32_t i = 0; i < part / 4; i++)
                        d->result += words[i];
        }
        return 0;
}

static void device_tick(struct model *m)
{
        struct device *d = model_own(m);
        uint32_t command = d->command;
        int r = -EINVAL;

        if (!command)
                return;
        d->command = 0;
        if (command == COMMAND_FILL)
                r = fill(m, d);
        else if (command == COMMAND_SUM)
                r = sum(m, d);
        else if (command == COMMAND_INTERRUPT)
                r = model_interrupt(m, d->value);
        d->status = r < 0 ? 2 : 0;
}

static void device_reset(struct model *m)
{
        memset(model_own(m), 0, sizeof(struct device));
}

static const struct model_ops ops = {
        .read = device_read,
        .reset = device_reset,
        .tick = device_tick,
        .write = device_write,
};

static const struct model_area sparse_areas[] = {{SPARSE_MAPPED, 4096}};

const struct model_description device_description = {
        .name = "test device",
        .vendor = DEVICE_VENDOR,
        .device = DEVICE_DEVICE,
        .subvendor = 0x1af4,
        .subdevice = 0x1100,
        .class = 0x120000, /* a processing accelerator */
        .revision = 7,
        .bars =
                {
                        [MEMORY_BAR] = {.bytes = MEMORY_BYTES,
                                .wide = true,
                                .prefetchable = true,
                                .mapped = true,
                                .sizes = 0x7},
                        [REGISTER_BAR] = {.bytes = REGISTER_BYTES,
                                .registers = registers,
                                .n_registers = RIG_ARRAY_SIZE(registers)},
                        [SPARSE_BAR] = {.bytes = SPARSE_BYTES,
                                .mapped = true,
                                .areas = sparse_areas,
                                .n_areas = RIG_ARRAY_SIZE(sparse_areas)},
                },
        .pm = true,
        .pcie = true,
        .n_msi = 1,
        .n_msix = DEVICE_VECTORS,
        .msix_bar = REGISTER_BAR,
        .msix_table = 0x2000,
        .msix_pending = 0x3000,
        .ops = &ops,
};
