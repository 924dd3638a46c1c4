/* SPDX-License-Identifier: ISC */
/* The drivers rigd is built with. The order is the one in which adapters are listed. */
#include "daemon/drivers/drivers.h"

const struct rig_driver *const rig_drivers[] = {
        &rig_driver_memory,
        &rig_driver_host,
        &rig_driver_disk,
        NULL,
};
