/* SPDX-License-Identifier: ISC */
/*
 * Messages of the vfio-user protocol, version 0.1, as far as a client of one PCI function sends and gets
 * them.
 *
 * Facts from QEMU's docs/interop/vfio-user.rst (its section is named at each) and libvfio-user's
 * include/vfio-user.h; regions, interrupts and their flags are those of <linux/vfio.h>. Numbers are in the
 * host's byte order. Where the two differ: the answer to DMA_WRITE has a count of 8 bytes here, as
 * libvfio-user reads it; the table of the specification prints 4.
 */
#ifndef RIG_VFIO_USER_WIRE_H
#define RIG_VFIO_USER_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* "Commands" */
enum wire_command {
        WIRE_VERSION = 1,
        WIRE_DMA_MAP = 2,
        WIRE_DMA_UNMAP = 3,
        WIRE_GET_INFO = 4,
        WIRE_GET_REGION_INFO = 5,
        WIRE_GET_IRQ_INFO = 7,
        WIRE_SET_IRQS = 8,
        WIRE_REGION_READ = 9,
        WIRE_REGION_WRITE = 10,
        WIRE_DMA_READ = 11,  /* from the server */
        WIRE_DMA_WRITE = 12, /* from the server */
        WIRE_RESET = 13,
};

/* "Header" */
struct wire_header {
        uint16_t id;
        uint16_t command;
        uint32_t bytes; /* of the whole message */
        uint32_t flags;
        uint32_t error; /* an errno value, where WIRE_ERROR is set */
};
static_assert(sizeof(struct wire_header) == 16, "as the specification has it");

#define WIRE_TYPE_MASK 0xfu
#define WIRE_REPLY     0x1u
#define WIRE_NO_REPLY  0x10u
#define WIRE_ERROR     0x20u

/* "VFIO_USER_VERSION"; JSON text and its NUL follow */
struct wire_version {
        uint16_t major, minor;
};

#define WIRE_MAJOR                  0u
#define WIRE_MINOR                  1u
#define WIRE_DEFAULT_MESSAGE_FDS    1u
#define WIRE_DEFAULT_TRANSFER_BYTES (1u << 20)
#define WIRE_DEFAULT_DMA_MAPS       65535u

/* "VFIO_USER_DMA_MAP" */
struct wire_dma_map {
        uint32_t argsz, flags;
        uint64_t offset, address, bytes;
};
static_assert(sizeof(struct wire_dma_map) == 32, "as the specification has it");
#define WIRE_DMA_READABLE 0x1u
#define WIRE_DMA_WRITABLE 0x2u

/* "VFIO_USER_DMA_UNMAP"; the answer is the same */
struct wire_dma_unmap {
        uint32_t argsz, flags;
        uint64_t address, bytes;
};
static_assert(sizeof(struct wire_dma_unmap) == 24, "as the specification has it");

/* "VFIO_USER_DEVICE_GET_INFO" */
struct wire_info {
        uint32_t argsz, flags, n_regions, n_irqs;
};

/* "VFIO_USER_REGION_READ", "VFIO_USER_REGION_WRITE"; data follows */
struct wire_region_access {
        uint64_t offset;
        uint32_t region, count;
};
static_assert(sizeof(struct wire_region_access) == 16, "as the specification has it");

/* "VFIO_USER_DMA_READ", "VFIO_USER_DMA_WRITE"; data follows */
struct wire_dma_access {
        uint64_t address, count;
};

#endif
