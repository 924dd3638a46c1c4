/* SPDX-License-Identifier: ISC */
/*
 * The driver contract's small change: the checks of a table, names of enumerations, and how many bytes a
 * part moves. What the core offers a driver is the core's own, not here.
 *
 * A table is ours, so one that is wrong is asserted: a driver that lacks a mandatory op, or brings half of a
 * group, ends rigd when it starts and not when a client first asks.
 */
#include "daemon/driver.h"

const char *rig_completion_to_string(enum rig_completion completion)
{
        static const char *const names[RIG_COMPLETION_MAX] = {
                [RIG_COMPLETION_HOST] = "host",
                [RIG_COMPLETION_STORE] = "store",
                [RIG_COMPLETION_OBJECT] = "object",
        };

        return (unsigned)completion < RIG_COMPLETION_MAX ? names[completion] : NULL;
}

const char *rig_memory_kind_to_string(enum rig_memory_kind kind)
{
        static const char *const names[RIG_MEMORY_KIND_MAX] = {
                [RIG_MEMORY_DEVICE] = "device",
                [RIG_MEMORY_PINNED] = "pinned",
                [RIG_MEMORY_MAPPED] = "mapped",
        };

        return (unsigned)kind < RIG_MEMORY_KIND_MAX ? names[kind] : NULL;
}

const char *rig_part_kind_to_string(enum rig_part_kind kind)
{
        static const char *const names[RIG_PART_KIND_MAX] = {
                [RIG_PART_COPY] = "copy",
                [RIG_PART_FILL] = "fill",
                [RIG_PART_LAUNCH] = "launch",
                [RIG_PART_SYNC] = "sync",
        };

        return (unsigned)kind < RIG_PART_KIND_MAX ? names[kind] : NULL;
}

/* From an operand to the end of its slot's buffer; 0 where it starts behind it, which the core refuses. */
static uint64_t bytes_left(const struct rig_operand *operand, const struct rig_filled *slots)
{
        uint64_t bytes = slots[operand->slot].bytes;

        return operand->offset < bytes ? bytes - operand->offset : 0;
}

uint64_t rig_part_moves(const struct rig_part *part, const struct rig_filled *slots)
{
        if (part->kind != RIG_PART_COPY && part->kind != RIG_PART_FILL)
                return 0;
        if (part->bytes != RIG_WHOLE)
                return part->bytes;
        return bytes_left(part->kind == RIG_PART_COPY ? &part->src : &part->dst, slots);
}

/* All of a group of optional ops, or none. */
static void check_group(bool first, bool second, bool third)
{
        rig_assert(first == second && second == third);
}

void rig_driver_check(const struct rig_driver *driver)
{
        rig_assert(driver->name && driver->name[0]);
        rig_assert(driver->discover && driver->device_open && driver->device_close && driver->stop);
        rig_assert(driver->region_free && (driver->region_alloc || driver->region_adopt));
        rig_assert(driver->hand_over && driver->poll);
        check_group(driver->image_load, driver->image_entry, driver->image_unload);
        check_group(driver->work_prepare, driver->work_release, driver->work_release);
}
