/* SPDX-License-Identifier: ISC */
/*
 * The firmware images that rig boots GPUs with. Each is pinned by its length and its SHA-256, so that what
 * runs on a GPU is what was tested, wherever the file came from.
 */
#ifndef RIG_FIRMWARE_IMAGES_H
#define RIG_FIRMWARE_IMAGES_H

#include "base/base.h"
#include "base/error.h"

#define RIG_FIRMWARE_BYTES_MAX (UINT64_C(1) << 30) /* that an image may have */
#define RIG_FIRMWARE_NAME_MAX  200
#define RIG_FIRMWARE_DIGITS    64 /* of a SHA-256 */

/* Where images are had, and on which terms. */
struct rig_firmware_package {
        const char *name;    /* of Debian */
        const char *version; /* whose images are pinned */
        const char *suites;  /* that have it */
        const char *licence; /* of upstream's tree, and what it says in short */
};

struct rig_firmware_image {
        const char *vendor;   /* as `rigctl firmware fetch` takes it */
        const char *gpu;      /* that runs it */
        const char *name;     /* below a folder of firmware, as the kernel names it */
        const char *upstream; /* below upstream's tree, where that is another; else NULL */
        const char *purpose;
        const struct rig_firmware_package *package; /* NULL: in none */
        uint64_t bytes;
        const char *sha256; /* in lower-case hexadecimal digits */
};

struct rig_firmware_table {
        const struct rig_firmware_image *images;
        size_t n;
        void *owned[2]; /* what rig_firmware_table_read() allocated */
};

/* The images that are pinned. Static. */
extern const struct rig_firmware_table rig_firmware_pinned;

/* The image of a name, or NULL. */
const struct rig_firmware_image *rig_firmware_image_get(
        const struct rig_firmware_table *table, const char *name);

/**
 * rig_firmware_image_check() - whether an image is described well
 *
 * Names are of letters, digits and "._+-" between single slashes; no part of one starts with a dot. So a
 * name leads nowhere but below the folder it is looked for in, and can be part of an address as it is.
 *
 * Return: 0, or -EINVAL.
 */
int rig_firmware_image_check(const struct rig_firmware_image *image, struct rig_error *e);

#endif
