/* SPDX-License-Identifier: ISC */
/* What the verbs about firmware share. */
#ifndef RIGCTL_FIRMWARE_H
#define RIGCTL_FIRMWARE_H

#include "firmware/find.h"
#include "tools/rigctl/rigctl.h"

/* Upstream's tree itself, as it was on the day whose release Debian's packages of the pinned images have. */
#define CTL_FIRMWARE_FROM                                                                                   \
        "https://git.kernel.org/pub/scm/linux/kernel/git/firmware/linux-firmware.git/plain?h=20260916"

struct ctl_firmware {
        struct ctl *ctl;
        const char *vendor; /* NULL: of all */
        struct rig_firmware_table table;
        struct rig_firmware_folders folders;
};

/* Whether an image is of the vendor that is asked for. */
bool ctl_firmware_wanted(const struct ctl_firmware *f, const struct rig_firmware_image *image);

/* Fetches the vendor's images that are nowhere. */
int ctl_firmware_fetch(struct ctl_firmware *f);

#endif
