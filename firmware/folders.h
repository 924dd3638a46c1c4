/* SPDX-License-Identifier: ISC */
/* The folders that firmware is looked for in, in their order. */
#ifndef RIG_FIRMWARE_FOLDERS_H
#define RIG_FIRMWARE_FOLDERS_H

#include "base/base.h"
#include "base/error.h"

#define RIG_FIRMWARE_FOLDERS_MAX 16

struct rig_firmware_folders {
        char *paths[RIG_FIRMWARE_FOLDERS_MAX];
        size_t n;
};

/**
 * rig_firmware_folders_add() - append a folder
 * @path: absolute, copied; one that is there already changes nothing
 *
 * Return: 0, -EINVAL: it is not absolute, -E2BIG, -ENOMEM.
 */
int rig_firmware_folders_add(struct rig_firmware_folders *folders, const char *path, struct rig_error *e);

/**
 * rig_firmware_own_folder() - where rig keeps firmware it fetched
 * @user: of the calling user's own rigd, else of the system's
 * @ret:  the caller's to free
 *
 * It need not exist. Return: 0; -ENOENT: the user has no home; -ENOMEM.
 */
int rig_firmware_own_folder(bool user, char **ret, struct rig_error *e);

/**
 * rig_firmware_folders_add_usual() - append rig's own folder, and the kernel's
 *
 * To be called after the folders of the configuration were added. A user without a home has no own one.
 *
 * Return: 0, -E2BIG, -EINVAL, -ENOMEM.
 */
int rig_firmware_folders_add_usual(struct rig_firmware_folders *folders, bool user, struct rig_error *e);

void rig_firmware_folders_deinit(struct rig_firmware_folders *folders);

#endif
