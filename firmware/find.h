/* SPDX-License-Identifier: ISC */
/*
 * Finds pinned images. It needs no privilege and keeps nothing; it may block on files, so it is for slow
 * threads and for programs of their own.
 */
#ifndef RIG_FIRMWARE_FIND_H
#define RIG_FIRMWARE_FIND_H

#include "firmware/folders.h"
#include "firmware/images.h"
#include "firmware/unpack.h"

/* An image that was found: exactly the bytes that are pinned. */
struct rig_firmware {
        void *data;
        size_t bytes;
        char *path; /* that it was read from */
        enum rig_firmware_packing packing;
};

void rig_firmware_deinit(struct rig_firmware *firmware);

/* A file that has the name of an image and is not it, or cannot be read. */
struct rig_firmware_remark {
        char *path;
        struct rig_error why;
};

struct rig_firmware_remarks {
        struct rig_firmware_remark *items;
        size_t n;
};

void rig_firmware_remarks_deinit(struct rig_firmware_remarks *remarks);

/**
 * rig_firmware_read() - read a file that should be an image
 * @path:     what is read, links being followed
 * @ret_data: the image, the caller's to free
 *
 * No byte of a file is believed before all of them have the pinned length and digest, which are taken from
 * the memory that is returned: what happens to the file meanwhile or later changes nothing.
 *
 * Return: 0; -ENOENT: there is none; -EBADMSG or -EFBIG: it is another; -EINVAL: it is no regular file;
 * -ENOMEM; or why it cannot be read.
 */
int rig_firmware_read(const struct rig_firmware_image *image, const char *path,
        enum rig_firmware_packing packing, void **ret_data, struct rig_error *e);

/**
 * rig_firmware_find() - find an image
 * @folders:     looked in, in this order; in each for the plain file, then NAME.zst, then NAME.xz
 * @ret_remarks: NULL, or what was in the way, the caller's to deinit, filled also where the image was found
 *               behind it
 * @ret:         the first file that is the image, the caller's to deinit
 *
 * A file of that name which is not the image is passed over: an older one in one folder does not hide the
 * right one in another.
 *
 * Return: 0; -ENOENT: it is nowhere, with its digest and the places in @e; -ENOMEM.
 */
int rig_firmware_find(const struct rig_firmware_image *image, const struct rig_firmware_folders *folders,
        struct rig_firmware_remarks *ret_remarks, struct rig_firmware *ret, struct rig_error *e);

#endif
