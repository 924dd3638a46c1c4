/* SPDX-License-Identifier: ISC */
/* Which memory a descriptor names. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "daemon/memory/identity.h"

static int memfd(void)
{
        int fd = memfd_create("test", MFD_CLOEXEC);

        cr_assert(fd >= 0);
        return fd;
}

/* Another descriptor of the same file, that shares nothing else with it. */
static int reopen(int fd)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC);
        cr_assert(again >= 0);
        return again;
}

Test(identity, a_file_is_recognised_by_any_descriptor_of_it)
{
        struct rig_identities table = {0};
        struct rig_identity one = {0}, two = {0}, *found = NULL;
        int a = memfd(), b = memfd(), again = reopen(a), copy = dup(a);

        cr_assert_eq(rig_identities_find(&table, a, &found), -ENOENT);
        cr_assert_eq(rig_identities_add(&table, &one, a), 0);
        cr_assert_eq(rig_identities_find(&table, again, &found), 0);
        cr_assert_eq(found, &one);
        cr_assert_eq(rig_identities_find(&table, copy, &found), 0);
        cr_assert_eq(found, &one);
        cr_assert_eq(rig_identities_find(&table, b, &found), -ENOENT);
        cr_assert_eq(rig_identities_add(&table, &two, again), -EEXIST);
        cr_assert_not(two.registered);
        cr_assert_eq(rig_identities_add(&table, &two, b), 0);
        cr_assert_eq(rig_identities_find(&table, b, &found), 0);
        cr_assert_eq(found, &two);
        rig_identities_remove(&table, &one);
        rig_identities_remove(&table, &one);
        cr_assert_eq(rig_identities_find(&table, a, &found), -ENOENT);
        rig_identities_remove(&table, &two);
        rig_identities_deinit(&table);
        close(a), close(b), close(again), close(copy);
}

Test(identity, what_is_no_descriptor_is_refused)
{
        struct rig_identities table = {0};
        struct rig_identity one = {0}, *found = NULL;

        cr_assert_eq(rig_identities_add(&table, &one, -1), -EBADF);
        cr_assert_eq(rig_identities_find(&table, -1, &found), -EBADF);
        rig_identities_deinit(&table);
}

Test(identity, many_files_are_told_apart)
{
        enum { FILES = 700 };
        static struct rig_identity identities[FILES];
        static int fds[FILES];
        struct rig_identities table = {0};
        struct rig_identity *found;

        for (int i = 0; i < FILES; i++) {
                fds[i] = memfd();
                cr_assert_eq(rig_identities_add(&table, &identities[i], fds[i]), 0);
        }
        for (int i = 0; i < FILES; i += 2)
                rig_identities_remove(&table, &identities[i]);
        for (int i = 0; i < FILES; i++) {
                int r = rig_identities_find(&table, fds[i], &found);

                cr_assert_eq(r, i % 2 ? 0 : -ENOENT, "file %d", i);
                if (i % 2)
                        cr_assert_eq(found, &identities[i]);
        }
        for (int i = 0; i < FILES; i++) {
                rig_identities_remove(&table, &identities[i]);
                close(fds[i]);
        }
        rig_identities_deinit(&table);
}
