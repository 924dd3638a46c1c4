/* SPDX-License-Identifier: ISC */
/* Five bytes go to a device and come back. The read follows the write, because both name the same memory. */
#include <rig/rig.h>
#include <stdio.h>

int main(void)
{
        struct rig *rig;
        struct rig_device *m;
        struct rig_buffer *on_m;
        char back[6] = {0};

        if (rig_connect(NULL, &rig) < 0 ||                  /* the system's rigd, or a private one */
                rig_device_open(rig, "memory:M", &m) < 0 || /* the only line that names a device */
                rig_buffer_new(m, 5, 0, &on_m) < 0 || rig_buffer_write(on_m, 0, "hello", 5) < 0 ||
                rig_buffer_read(on_m, 0, back, 5) < 0) /* follows the write, by its memory */
                return fprintf(stderr, "%s\n", rig_error()), 1;
        puts(back);

        rig_buffer_unref(on_m);
        rig_device_unref(m);
        rig_unref(rig);
        return 0;
}
