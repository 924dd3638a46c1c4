/* SPDX-License-Identifier: ISC */
/*
 * Accesses of a window, one to a function, for check-accesses.py to look at what a compiler makes of them.
 * Their places in the window are numbers that occur nowhere else.
 */
#include "tests/pci/accesses.h"

uint8_t access_read8(const struct rig_window *window)
{
        return rig_window_read8(window, 0x12345);
}

uint16_t access_read16(const struct rig_window *window)
{
        return rig_window_read16(window, 0x12346);
}

uint32_t access_read32(const struct rig_window *window)
{
        return rig_window_read32(window, 0x12348);
}

uint64_t access_read64(const struct rig_window *window)
{
        return rig_window_read64(window, 0x12350);
}

void access_write8(const struct rig_window *window, uint8_t value)
{
        rig_window_write8(window, 0x12345, value);
}

void access_write16(const struct rig_window *window, uint16_t value)
{
        rig_window_write16(window, 0x12346, value);
}

void access_write32(const struct rig_window *window, uint32_t value)
{
        rig_window_write32(window, 0x12348, value);
}

void access_write64(const struct rig_window *window, uint64_t value)
{
        rig_window_write64(window, 0x12350, value);
}
