/* SPDX-License-Identifier: ISC */
/*
 * Memory returns by itself: a program drops a buffer when it needs it no more, even while work uses it, and
 * the memory comes back once that work is done. An allocation that finds none waits for it.
 */
#include "check.h"

#include <inttypes.h>

/* Work that takes a while: it stirs one number for some milliseconds. */
static void stir(const struct rig_group *group, const void *data)
{
        uint64_t *number = (uint64_t *)(uintptr_t) * (const uint64_t *)data, x = *number + 1;
        int i;

        for (i = 0; i < 20000000; i++)
                x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        *number = x;
}

int main(void)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t access = RIG_READ_WRITE;
        struct rig_device_facts facts = RIG_DEVICE_FACTS_INIT;
        struct rig_launch launch = RIG_LAUNCH_INIT;
        struct rig_device *host;
        struct rig_point done = {NULL, 0};
        uint64_t address = 0, most, waited = 0;
        struct rig *rig;
        int i;

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "host", &host));
        check(rig_device_get_facts(host, &facts));
        most = facts.budget_bytes / 4 * 3; /* two of these do not fit */

        launch.function = stir;
        launch.params = &address;
        launch.params_bytes = sizeof(address);
        launch.patches = &patch;
        launch.n_patches = 1;
        for (i = 0; i < 4; i++) {
                struct rig_buffer *b;

                /* From the second on: waits until the run of the one before is done, and its memory is back.
                 */
                check(rig_buffer_new(host, most, RIG_MEMORY_DEVICE, &b));
                waited += i > 0 && rig_device_signaled(host) >= done.value;
                check(rig_launch_once(host, &launch, &b, &access, 1, &done));
                rig_buffer_unref(b); /* while the run uses it */
        }
        check(rig_point_wait(&done, RIG_INFINITY));
        printf("3 times the budget went through it; %" PRIu64 " of 4 allocations followed a run\n", waited);

        rig_device_unref(host);
        rig_unref(rig);
        return 0;
}
