/* SPDX-License-Identifier: ISC */
/* What the memory driver promises beyond driver.h. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/order/order.h"
#include "tests/kit/subjects.h"

/* A copy within one memory is that of memmove, both ways, however the ranges overlap; small and large. */
static void overlapping_copies_are_memmove(struct kit *kit)
{
        static const uint64_t sizes[] = {100, 5000, 300000};
        struct rig_device *device = kit_open(kit);

        for (unsigned i = 0; device && i < 2 * RIG_ARRAY_SIZE(sizes); i++) {
                uint64_t bytes = sizes[i / 2], dst = i % 2 ? 0 : bytes / 3, src = i % 2 ? bytes / 3 : 0;
                uint64_t moved = bytes - bytes / 3;
                uint8_t *want = malloc(bytes), *got = malloc(bytes);
                struct rig_driver_work *work = kit_work(2);
                struct kit_buffer b;

                rig_assert(want && got);
                kit_part_copy(work, 0, 0, 0, dst, 1, src, moved);
                if (kit_buffer_near(device, bytes, 0, &b)) {
                        kit_scribble(kit, &b, want);
                        memmove(want + dst, want + src, moved);
                        kit_submit(device, work, (struct rig_filled[]){kit_filled(&b), kit_filled(&b)});
                        kit_finish(device);
                        kit_get(&b, 0, got, bytes);
                        kit_expect(kit, memcmp(got, want, bytes) == 0, "%llu bytes moved by %llu",
                                (unsigned long long)moved, (unsigned long long)(bytes / 3));
                        kit_buffer_free(&b);
                }
                kit_work_free(device, work);
                free(want);
                free(got);
        }
        if (device)
                kit_close(device);
}

/* "Whose work has run when the call that submits it returns": small runs are reached at once, unless async.
 */
static void small_runs_are_done_at_once(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct rig_driver_work *work = kit_work(1);
        bool async = kit->subject->options[0];
        struct kit_buffer b;

        if (!device || !kit_buffer_near(device, 65536, 0, &b))
                return;
        kit_part_fill(work, 0, 0, 0, 0, RIG_WHOLE, 1);
        for (unsigned i = 0; i < 10; i++) {
                uint64_t value = kit_submit(device, work, (struct rig_filled[]){kit_filled(&b)});

                kit_commit(device);
                kit_expect(kit, async || device->reached == value, "value %llu is not done, %llu is",
                        (unsigned long long)value, (unsigned long long)device->reached);
                kit_expect(kit, !async || device->reached < value, "value %llu is done already",
                        (unsigned long long)value);
                kit_finish(device);
        }
        kit_buffer_free(&b);
        kit_work_free(device, work);
        kit_close(device);
}

/* A client's memfd is adopted by the driver as memory, and given back without a change. */
static void memfds_are_adopted(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        int fd = memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING), own = dup(fd);
        struct rig_region region;
        uint8_t byte = 0x42, got = 0;
        struct rig_error e;

        if (!device)
                return;
        rig_assert(fd >= 0 && own >= 0 && ftruncate(fd, 10000) == 0);
        kit_expect(kit, kit_adopt(device, fd, &region, &e) == -EPERM, "a memfd without seals was adopted");
        rig_assert(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
        if (kit_expect(kit, kit_adopt(device, fd, &region, &e) == 0, "a sealed memfd: %s", e.text)) {
                kit_expect(kit,
                        region.bytes == 10000 && region.access == (RIG_ACCESS_READ | RIG_ACCESS_WRITE),
                        "its facts");
                ((uint8_t *)region.host)[9999] = byte;
                kit_free(kit, &region);
                kit_expect(kit, pread(own, &got, 1, 9999) == 1 && got == byte, "its bytes are gone");
        }
        close(own);
        kit_close(device);
}

const struct kit_promise kit_own_memory[] = {
        {"overlapping_copies_are_memmove", overlapping_copies_are_memmove},
        {"small_runs_are_done_at_once", small_runs_are_done_at_once},
        {"memfds_are_adopted", memfds_are_adopted},
        {NULL, NULL},
};
