/* SPDX-License-Identifier: ISC */
/*
 * Where firmware is looked for (firmware/folders.h): paths alone. Whether there is anything at them is found
 * out when it is looked for, each time, so a folder that appears later counts.
 */
#include "firmware/folders.h"

#include <stdio.h>
#include <string.h>

#define SYSTEM_FOLDER "/var/lib/rig/firmware"
#define KERNEL_FOLDER "/lib/firmware"

int rig_firmware_folders_add(struct rig_firmware_folders *folders, const char *path, struct rig_error *e)
{
        char *copy;

        if (path[0] != '/')
                return rig_error_set(e, -EINVAL, "\"%.100s\" is no absolute path of a folder", path);
        for (size_t i = 0; i < folders->n; i++)
                if (strcmp(folders->paths[i], path) == 0)
                        return 0;
        if (folders->n == RIG_FIRMWARE_FOLDERS_MAX)
                return rig_error_set(
                        e, -E2BIG, "firmware is looked for in at most %d folders", RIG_FIRMWARE_FOLDERS_MAX);
        copy = strdup(path);
        if (!copy)
                return rig_error_set(e, -ENOMEM, "no memory for a path");
        folders->paths[folders->n++] = copy;
        return 0;
}

int rig_firmware_own_folder(bool user, char **ret, struct rig_error *e)
{
        const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
        int n;

        if (!user)
                n = asprintf(ret, "%s", SYSTEM_FOLDER);
        else if (data && data[0] == '/') /* a relative one is to be ignored, says who specified it */
                n = asprintf(ret, "%s/rig/firmware", data);
        else if (home && home[0] == '/')
                n = asprintf(ret, "%s/.local/share/rig/firmware", home);
        else
                return rig_error_set(e, -ENOENT, "neither XDG_DATA_HOME nor HOME names a folder");
        return n < 0 ? rig_error_set(e, -ENOMEM, "no memory for a path") : 0;
}

int rig_firmware_folders_add_usual(struct rig_firmware_folders *folders, bool user, struct rig_error *e)
{
        _cleanup_(rig_freep) char *own = NULL;
        int r = rig_firmware_own_folder(user, &own, e);

        if (r == 0)
                r = rig_firmware_folders_add(folders, own, e);
        if (r < 0 && r != -ENOENT)
                return r;
        return rig_firmware_folders_add(folders, KERNEL_FOLDER, e);
}

void rig_firmware_folders_deinit(struct rig_firmware_folders *folders)
{
        for (size_t i = 0; i < folders->n; i++)
                free(folders->paths[i]);
        folders->n = 0;
}
