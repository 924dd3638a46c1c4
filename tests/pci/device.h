/* SPDX-License-Identifier: ISC */
/*
 * A small device for tests of daemon/pci/: BAR 0 is mapped memory, BAR 2 trapped registers and the tables of
 * MSI-X, BAR 4 trapped memory with one mapped page in its middle. See device.c.
 */
#ifndef RIG_TEST_PCI_DEVICE_H
#define RIG_TEST_PCI_DEVICE_H

#include "tests/models/model.h"

#define DEVICE_VENDOR  0x1209u /* pid.codes, for open hardware */
#define DEVICE_DEVICE  0x7269u
#define DEVICE_VECTORS 4u

#define MEMORY_BAR     0u
#define MEMORY_BYTES   (UINT64_C(1) << 20)
#define REGISTER_BAR   2u
#define REGISTER_BYTES UINT64_C(16384)
#define SPARSE_BAR     4u
#define SPARSE_BYTES   UINT64_C(16384)
#define SPARSE_MAPPED  UINT64_C(4096) /* where its mapped page begins */

#define REG_ID      0x00u /* 32, reads as DEVICE_ID_VALUE */
#define REG_SCRATCH 0x04u /* 32 */
#define REG_WIDE    0x08u /* 64 */
#define REG_COMMAND 0x10u /* 32, written: what to do */
#define REG_STATUS  0x14u /* 32, read: 0 it is done, 1 it is not, 2 it failed */
#define REG_ADDRESS 0x18u /* 64: of DMA */
#define REG_BYTES   0x20u /* 32 */
#define REG_VALUE   0x24u /* 32 */
#define REG_RESULT  0x28u /* 32, read */
#define REG_HALF    0x30u /* 16 */
#define REG_BYTE    0x32u /* 8 */

#define DEVICE_ID_VALUE 0x52494731u

#define COMMAND_FILL      1u /* writes VALUE, words of 4 bytes, to memory */
#define COMMAND_SUM       2u /* RESULT is the sum of the words of memory */
#define COMMAND_INTERRUPT 3u /* raises vector VALUE */

/* The device's own state, which model_new() gets. */
struct device {
        uint32_t scratch, bytes, value, result, status, command;
        uint64_t wide, address;
        uint16_t half;
        uint8_t byte;
};

extern const struct model_description device_description;

#endif
