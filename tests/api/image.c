/* SPDX-License-Identifier: ISC */
/* A host image for the tests: one function. */
#include <rig/rig.h>

RIG_API void test_image_double(const struct rig_group *group, const void *params);

RIG_API void test_image_double(const struct rig_group *group, const void *params)
{
        uint32_t *word = *(uint32_t *const *)params;

        *word *= 2;
}
