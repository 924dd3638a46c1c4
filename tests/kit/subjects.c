/* SPDX-License-Identifier: ISC */
/* The drivers under test. A new driver adds a row here. */
#include "tests/kit/subjects.h"

#include "daemon/drivers/drivers.h"
#include "tests/drivers/steered/steered.h"

#define PATIENCE (20 * RIG_USEC_PER_SEC)

static const char image[] = "steered-image\nnop\nstore\nfail\n";

static void fault(struct rig_driver_device *device)
{
        steered_fault(device, "the test says so");
}

const struct kit_subject kit_subjects[] = {
        [KIT_MEMORY] = {"memory", &rig_driver_memory, "memory", "M", "", NULL, PATIENCE, NULL, NULL,
                kit_own_memory},
        [KIT_MEMORY_ASYNC] = {"memory-async", &rig_driver_memory, "memory", "M", "async", NULL, PATIENCE,
                NULL, NULL, kit_own_memory},
        [KIT_HOST] = {"host", &rig_driver_host, "host", "", "", NULL, PATIENCE, NULL, NULL, NULL},
        [KIT_DISK] = {"disk", &rig_driver_disk, "disk", "", "", NULL, PATIENCE, NULL, NULL, kit_own_disk},
        [KIT_STEERED] = {"steered", &rig_driver_steered, "steered:0", "0", "", image, PATIENCE, fault, NULL,
                kit_own_steered},
        [KIT_STEERED_ROOM] = {"steered-room", &rig_driver_steered, "steered:1", "1",
                "room=2,noborrow,seed=7", image, PATIENCE, fault, NULL, NULL},
        [KIT_STEERED_MANUAL] = {"steered-manual", &rig_driver_steered, "steered:2", "2",
                "manual,waits,seed=3", image, PATIENCE, fault, steered_complete, NULL},
        [KIT_STEERED_STICKY] = {"steered-sticky", &rig_driver_steered, "steered:3", "3",
                "sticky,hang=1000000", image, PATIENCE, fault, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL},
};
