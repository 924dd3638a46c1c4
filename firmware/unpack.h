/* SPDX-License-Identifier: ISC */
/* Files that are packed, as distributions pack firmware. */
#ifndef RIG_FIRMWARE_UNPACK_H
#define RIG_FIRMWARE_UNPACK_H

#include "base/base.h"
#include "base/error.h"

enum rig_firmware_packing {
        RIG_FIRMWARE_PLAIN,
        RIG_FIRMWARE_ZST,
        RIG_FIRMWARE_XZ,
        RIG_FIRMWARE_PACKING_MAX,
};

/* "plain", "zst", "xz". */
const char *rig_firmware_packing_to_string(enum rig_firmware_packing packing);

/**
 * rig_firmware_unpack() - unpack a file whose length is known before
 * @in:      any bytes
 * @out:     takes the file; its bytes are undefined after an error
 * @n_out:   the length it has
 *
 * Needs no more memory than the two, and what a decoder has for itself: at most 80 MiB, however much the
 * bytes ask for.
 *
 * Return: 0; -EFBIG: it would be longer; -EBADMSG: it is shorter, cut off, or no such file; -ENOMEM.
 */
int rig_firmware_unpack(enum rig_firmware_packing packing, const void *in, size_t n_in, void *out,
        size_t n_out, struct rig_error *e);

#endif
