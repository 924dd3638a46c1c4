/* SPDX-License-Identifier: ISC */
/*
 * Host code: the host is a device, and its work is functions of this program. A launch is a grid of groups,
 * spread over the cores; the threads of a group are a loop of its function. Usage: 05-host-code IMAGE.so
 */
#include "check.h"

#include <stddef.h>
#include <stdint.h>

#define N      1000000u
#define GROUPS 64u

/* What the function is given. The run writes the addresses of the buffers here, eight bytes each. */
struct sum_params {
        uint64_t numbers, sums;
};

/* Each group adds up its part of the numbers: its threads on their own first, in the memory they share. */
static void sum(const struct rig_group *g, const void *data)
{
        const struct sum_params *params = data;
        const uint32_t *numbers = (const uint32_t *)(uintptr_t)params->numbers;
        uint64_t *sums = (uint64_t *)(uintptr_t)params->sums, *mine = g->shared, total = 0;
        uint32_t all = g->groups[0] * g->threads[0], t, i;

        for (t = 0; t < g->threads[0]; t++) {
                mine[t] = 0;
                for (i = g->group[0] * g->threads[0] + t; i < N; i += all)
                        mine[t] += numbers[i];
        }
        for (t = 0; t < g->threads[0]; t++)
                total += mine[t];
        sums[g->group[0]] = total;
}

/* The same machinery runs code that is not part of this program: a shared object, loaded from its bytes. */
static void launch_image(struct rig_device *host, const char *path, struct rig_buffer *numbers)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        struct rig_launch launch = RIG_LAUNCH_INIT;
        const uint32_t access = RIG_READ_WRITE;
        uint64_t params[2] = {0, N};
        static char bytes[1 << 20];
        FILE *f = fopen(path, "rb");
        size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;

        check(rig_image_load(host, bytes, n, &launch.image));
        check(rig_image_entry(launch.image, "count_up", &launch.entry));
        launch.params = params;
        launch.params_bytes = sizeof(params);
        launch.patches = &patch;
        launch.n_patches = 1;
        check(rig_launch_once(host, &launch, &numbers, &access, 1, NULL));
        rig_image_unref(launch.image); /* the run keeps what it needs */
        if (f)
                fclose(f);
}

int main(int argc, char **argv)
{
        const struct rig_patch patches[] = {
                {.at = offsetof(struct sum_params, numbers), .slot = 0},
                {.at = offsetof(struct sum_params, sums), .slot = 1},
        };
        const uint32_t accesses[] = {RIG_READ, RIG_WRITE};
        struct sum_params params = {0, 0};
        struct rig_launch launch = RIG_LAUNCH_INIT;
        struct rig_buffer *buffers[2];
        struct rig_device *host;
        uint64_t sums[GROUPS], total = 0;
        struct rig *rig;
        uint32_t i;

        if (argc != 2) {
                fprintf(stderr, "Usage: %s IMAGE.so\n", argv[0]);
                return 2;
        }
        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "host", &host));
        check(rig_buffer_new(host, N * sizeof(uint32_t), RIG_MEMORY_DEVICE, &buffers[0]));
        check(rig_buffer_new(host, sizeof(sums), RIG_MEMORY_DEVICE, &buffers[1]));

        launch_image(host, argv[1], buffers[0]); /* writes the numbers ... */
        launch.function = sum;
        launch.grid[0] = GROUPS;
        launch.group[0] = 16;
        launch.shared_bytes = 16 * sizeof(uint64_t);
        launch.params = &params;
        launch.params_bytes = sizeof(params);
        launch.patches = patches;
        launch.n_patches = 2;
        check(rig_launch_once(host, &launch, buffers, accesses, 2, NULL)); /* ... and this follows it */
        check(rig_buffer_read(buffers[1], 0, sums, sizeof(sums)));
        for (i = 0; i < GROUPS; i++)
                total += sums[i];
        printf("the sum of the numbers below %u is %llu\n", N, (unsigned long long)total);

        rig_buffer_unref(buffers[0]);
        rig_buffer_unref(buffers[1]);
        rig_device_unref(host);
        rig_unref(rig);
        return 0;
}
