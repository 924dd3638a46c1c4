/* SPDX-License-Identifier: ISC */
/* The drivers of a rigd for tests: the real ones, and the one that a test steers. */
#include "daemon/drivers/drivers.h"
#include "tests/drivers/steered/steered.h"

const struct rig_driver *const rig_drivers[] = {
        &rig_driver_memory,
        &rig_driver_host,
        &rig_driver_disk,
        &rig_driver_steered,
        NULL,
};
