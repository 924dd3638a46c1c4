/* SPDX-License-Identifier: ISC */
/* See accesses.c. */
#ifndef RIG_TEST_PCI_ACCESSES_H
#define RIG_TEST_PCI_ACCESSES_H

#include "daemon/pci/pci.h"

uint8_t access_read8(const struct rig_window *window);
uint16_t access_read16(const struct rig_window *window);
uint32_t access_read32(const struct rig_window *window);
uint64_t access_read64(const struct rig_window *window);
void access_write8(const struct rig_window *window, uint8_t value);
void access_write16(const struct rig_window *window, uint16_t value);
void access_write32(const struct rig_window *window, uint32_t value);
void access_write64(const struct rig_window *window, uint64_t value);

#endif
