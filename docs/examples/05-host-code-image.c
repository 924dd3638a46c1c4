/* SPDX-License-Identifier: ISC */
/* A host image: a shared object whose functions a launch names. It links nothing of rig. */
#include <rig/rig.h>

RIG_API void count_up(const struct rig_group *group, const void *data);

/* Writes 0, 1, 2 ... Its parameters are the address of the numbers and how many there are. */
void count_up(const struct rig_group *group, const void *data)
{
        const uint64_t *params = data;
        uint32_t *numbers = (uint32_t *)(uintptr_t)params[0];
        uint64_t i;

        for (i = group->group[0]; i < params[1]; i += group->groups[0])
                numbers[i] = (uint32_t)i;
}
