/* SPDX-License-Identifier: ISC */
/*
 * Order across devices: the host counts, a memory device copies, the disk writes, and nothing here waits for
 * any of them. Each run names what it reads and what it writes, and that is the order.
 */
#include "check.h"

#include <stdint.h>
#include <unistd.h>

#define ROUNDS 500

static void add_one(const struct rig_group *group, const void *data)
{
        uint64_t *counter = (uint64_t *)(uintptr_t) * (const uint64_t *)data;

        ++*counter;
}

int main(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t access = RIG_READ_WRITE;
        struct rig_launch launch = RIG_LAUNCH_INIT;
        struct rig_device *host, *m, *disk;
        struct rig_buffer *counter, *copy, *file;
        uint64_t address = 0, seen[ROUNDS];
        char path[] = "rig-order-XXXXXX";
        struct rig *rig;
        int i, fd = mkstemp(path), wrong = 0;

        unlink(path);
        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "host", &host));
        check(rig_device_open(rig, "memory:M,async", &m));
        check(rig_device_open(rig, "disk", &disk));
        check(rig_buffer_new(host, sizeof(uint64_t), RIG_MEMORY_DEVICE, &counter));
        check(rig_buffer_new(m, sizeof(uint64_t), RIG_MEMORY_DEVICE, &copy));
        check(rig_buffer_adopt(disk, fd, 0, sizeof(seen), &file));

        launch.function = add_one;
        launch.params = &address;
        launch.params_bytes = sizeof(address);
        launch.patches = &patch;
        launch.n_patches = 1;
        for (i = 0; i < ROUNDS; i++) {
                /* Follows the copy of the round before, which still reads the counter. */
                check(rig_launch_once(host, &launch, &counter, &access, 1, NULL));
                /* Follows the launch, and the disk's reading of the round before. */
                check(rig_buffer_copy(copy, 0, counter, 0, sizeof(uint64_t), NULL));
                /* Follows the copy. */
                check(rig_buffer_copy(file, (uint64_t)i * 8, copy, 0, sizeof(uint64_t), NULL));
        }

        check(rig_buffer_read(file, 0, seen, sizeof(seen)));
        for (i = 0; i < ROUNDS; i++)
                wrong += seen[i] != (uint64_t)i + 1;
        printf("%d rounds over three devices: %d out of order\n", ROUNDS, wrong);

        rig_buffer_unref(file);
        rig_buffer_unref(copy);
        rig_buffer_unref(counter);
        rig_device_unref(disk);
        rig_device_unref(m);
        rig_device_unref(host);
        rig_unref(rig);
        close(fd);
        return wrong != 0;
}
