/* SPDX-License-Identifier: ISC */
/* Tables of images that are files: what tests, and who tries another firmware, put in the pinned one's
 * place. */
#ifndef RIG_FIRMWARE_TABLE_H
#define RIG_FIRMWARE_TABLE_H

#include "firmware/images.h"

/**
 * rig_firmware_table_parse() - read a table
 * @text:      a line for each image, of words between blanks: vendor, GPU, name, length, SHA-256, and where
 *             wanted its name in upstream's tree. Empty lines and what follows a # are skipped.
 * @ret_table: the caller's to rig_firmware_table_deinit()
 *
 * Return: 0, -EINVAL with the line in @e, -E2BIG, -ENOMEM.
 */
int rig_firmware_table_parse(
        const char *text, size_t bytes, struct rig_firmware_table *ret_table, struct rig_error *e);

/* The same of a file. Return: also what open(2) and read(2) say. */
int rig_firmware_table_read(const char *path, struct rig_firmware_table *ret_table, struct rig_error *e);

void rig_firmware_table_deinit(struct rig_firmware_table *table);

#endif
