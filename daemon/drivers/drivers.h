/* SPDX-License-Identifier: ISC */
/* Each driver's one symbol. */
#ifndef RIG_DRIVERS_H
#define RIG_DRIVERS_H

#include "daemon/driver.h"

extern const struct rig_driver rig_driver_memory;
extern const struct rig_driver rig_driver_host;
extern const struct rig_driver rig_driver_disk;

#endif
