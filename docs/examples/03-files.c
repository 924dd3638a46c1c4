/* SPDX-License-Identifier: ISC */
/*
 * Files: the disk is a device, and a buffer on it is bytes of a file. The program opens the file with its
 * own rights and hands over the descriptor; rigd sees no path.
 */
#include "check.h"

#include <stdint.h>
#include <unistd.h>

int main(void)
{
        const char text[] = "one two three four\n";
        char path[] = "rig-files-XXXXXX", back[sizeof(text)] = {0};
        struct rig *rig;
        struct rig_device *disk, *m;
        struct rig_buffer *file, *second, *on_m;
        struct rig_point synced;
        int fd = mkstemp(path);

        if (fd < 0) {
                perror(path);
                return 1;
        }
        unlink(path);

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "disk", &disk));
        check(rig_device_open(rig, "memory:M", &m));

        /* A file may be shorter than its buffer: it grows when it is written. */
        check(rig_buffer_adopt(disk, fd, 0, sizeof(text) - 1, &file));
        check(rig_buffer_write(file, 0, text, sizeof(text) - 1));

        /* From the file to memory, and from there to another place of it: two copies, in this order. */
        check(rig_buffer_new(m, 3, RIG_MEMORY_DEVICE, &on_m));
        check(rig_buffer_copy(on_m, 0, file, 0, 3, NULL));
        check(rig_buffer_copy(file, 4, on_m, 0, 3, NULL));

        /* A second buffer over the same file is the same memory: its work is ordered with the first one's.
         */
        check(rig_buffer_adopt(disk, fd, 8, 5, &second));
        check(rig_buffer_write(second, 0, "THREE", 5));

        /* A barrier: once it is done, the bytes are on storage. */
        check(rig_buffer_sync(file, &synced));
        check(rig_point_wait(&synced, RIG_INFINITY));

        /* What any other program sees. */
        if (pread(fd, back, sizeof(back) - 1, 0) != (ssize_t)sizeof(back) - 1)
                return 1;
        fputs(back, stdout);

        rig_buffer_unref(second);
        rig_buffer_unref(on_m);
        rig_buffer_unref(file);
        rig_device_unref(m);
        rig_device_unref(disk);
        rig_unref(rig);
        close(fd);
        return 0;
}
