/* SPDX-License-Identifier: ISC */
/*
 * The finder as drivers call it, and the pinned table. What is in files, and what rigctl says of it, is
 * test-check.py's.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "firmware/find.h"
#include "firmware/table.h"

/* From FIPS 180-4's examples: SHA-256 of "abc". */
#define ABC_SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static const struct rig_firmware_image abc = {
        .vendor = "acme", .gpu = "gpu1", .name = "acme/abc.bin", .bytes = 3, .sha256 = ABC_SHA256};

static char top[] = "/tmp/rig-firmware-XXXXXX";
static struct rig_firmware_folders folders;

static void put(const char *name, const char *text)
{
        char path[PATH_MAX];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", top, name);
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                cr_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
                *slash = '/';
        }
        f = fopen(path, "we");
        cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void add(const char *name)
{
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", top, name);
        cr_assert_eq(rig_firmware_folders_add(&folders, path, NULL), 0);
}

static void set_up(void)
{
        cr_assert(mkdtemp(top));
        add("first");
        add("second");
}

static void tear_down(void)
{
        char command[PATH_MAX];

        rig_firmware_folders_deinit(&folders);
        snprintf(command, sizeof(command), "rm -r %s", top);
        cr_assert_eq(system(command), 0);
}

TestSuite(firmware, .init = set_up, .fini = tear_down);

Test(firmware, every_pinned_image_is_described_well_and_once)
{
        const struct rig_firmware_table *table = &rig_firmware_pinned;
        struct rig_error e = RIG_ERROR_NULL;

        cr_assert_gt(table->n, 0);
        for (size_t i = 0; i < table->n; i++) {
                const struct rig_firmware_image *image = &table->images[i];

                cr_expect_eq(rig_firmware_image_check(image, &e), 0, "%s: %s", image->name, e.text);
                cr_expect_eq(
                        rig_firmware_image_get(table, image->name), image, "%s is there twice", image->name);
                cr_expect(image->purpose && *image->purpose);
                cr_expect(image->package && image->package->name && image->package->version &&
                          image->package->suites && image->package->licence);
                for (size_t j = 0; j < i; j++)
                        cr_expect_str_neq(image->sha256, table->images[j].sha256);
        }
        cr_expect_null(rig_firmware_image_get(table, "amdgpu/none.bin"));
}

Test(firmware, an_image_that_is_found_has_its_bytes_and_says_where_from)
{
        struct rig_firmware found = {0};
        struct rig_error e = RIG_ERROR_NULL;
        char path[PATH_MAX];

        put("second/acme/abc.bin", "abc");
        cr_assert_eq(rig_firmware_find(&abc, &folders, NULL, &found, &e), 0, "%s", e.text);
        snprintf(path, sizeof(path), "%s/second/acme/abc.bin", top);
        cr_expect_str_eq(found.path, path);
        cr_expect_eq(found.bytes, 3);
        cr_expect(memcmp(found.data, "abc", 3) == 0);
        cr_expect_eq(found.packing, RIG_FIRMWARE_PLAIN);
        rig_firmware_deinit(&found);
}

Test(firmware, what_is_in_the_way_is_remarked_also_where_the_image_is_found)
{
        struct rig_firmware_remarks remarks = {0};
        struct rig_firmware found = {0};

        put("first/acme/abc.bin", "abd");
        put("first/acme/abc.bin.xz", "abc");
        put("second/acme/abc.bin", "abc");
        cr_assert_eq(rig_firmware_find(&abc, &folders, &remarks, &found, NULL), 0);
        cr_assert_eq(remarks.n, 2);
        cr_expect_eq(remarks.items[0].why.code, -EBADMSG);
        cr_expect(strstr(remarks.items[0].why.text, ABC_SHA256));
        cr_expect(strstr(remarks.items[1].path, "first/acme/abc.bin.xz"));
        rig_firmware_remarks_deinit(&remarks);
        rig_firmware_deinit(&found);
}

Test(firmware, a_missing_image_is_named_with_its_digest_and_the_places)
{
        char expected[RIG_ERROR_TEXT_MAX];
        struct rig_firmware found = {0};
        struct rig_error e = RIG_ERROR_NULL;

        cr_assert_eq(rig_firmware_find(&abc, &folders, NULL, &found, &e), -ENOENT);
        snprintf(expected, sizeof(expected),
                "firmware acme/abc.bin is missing: SHA-256 %s, looked for in %s/first, %s/second",
                ABC_SHA256, top, top);
        cr_expect_str_eq(e.text, expected);
        cr_expect_null(found.data);

        put("first/acme/abc.bin", "abd");
        cr_assert_eq(rig_firmware_find(&abc, &folders, NULL, &found, &e), -ENOENT);
        cr_expect(strstr(e.text, "; not it: /tmp/rig-firmware-"));
}

Test(firmware, names_of_any_length_fit_an_error)
{
        struct rig_firmware_folders many = {0};
        struct rig_firmware found = {0};
        struct rig_error e = RIG_ERROR_NULL;
        char path[1024] = "/";

        for (int i = 0; i < RIG_FIRMWARE_FOLDERS_MAX; i++) {
                memset(path + 1, 'a' + i, sizeof(path) - 2);
                cr_assert_eq(rig_firmware_folders_add(&many, path, NULL), 0);
        }
        cr_expect_eq(rig_firmware_folders_add(&many, "/x", &e), -E2BIG);
        cr_expect_eq(rig_firmware_folders_add(&many, path, &e), 0, "it is there already");
        cr_expect_eq(rig_firmware_find(&abc, &many, NULL, &found, &e), -ENOENT);
        cr_expect_eq(strnlen(e.text, RIG_ERROR_TEXT_MAX), RIG_ERROR_TEXT_MAX - 1);
        rig_firmware_folders_deinit(&many);
}

Test(firmware, nothing_is_read_past_what_is_pinned)
{
        _cleanup_(rig_freep) char *out = malloc(3); /* a sanitizer sees a byte behind it */
        struct rig_error e = RIG_ERROR_NULL;

        cr_expect_eq(rig_firmware_unpack(RIG_FIRMWARE_PLAIN, "abcd", 4, out, 3, &e), -EFBIG);
        cr_expect_eq(rig_firmware_unpack(RIG_FIRMWARE_PLAIN, "ab", 2, out, 3, &e), -EBADMSG);
        cr_expect_eq(rig_firmware_unpack(RIG_FIRMWARE_PLAIN, "abc", 3, out, 3, &e), 0);
        cr_expect(memcmp(out, "abc", 3) == 0);
        cr_expect_eq(rig_firmware_unpack(RIG_FIRMWARE_PACKING_MAX, "abc", 3, out, 3, &e), -EINVAL);
}

Test(firmware, every_packing_has_a_name)
{
        for (int i = 0; i < RIG_FIRMWARE_PACKING_MAX; i++)
                cr_expect(rig_firmware_packing_to_string((enum rig_firmware_packing)i));
}

Test(firmware, the_usual_folders_are_rigs_own_and_the_kernels)
{
        struct rig_firmware_folders usual = {0};

        cr_assert_eq(rig_firmware_folders_add_usual(&usual, false, NULL), 0);
        cr_assert_eq(usual.n, 2);
        cr_expect_str_eq(usual.paths[0], "/var/lib/rig/firmware");
        cr_expect_str_eq(usual.paths[1], "/lib/firmware");
        rig_firmware_folders_deinit(&usual);

        cr_assert_eq(setenv("XDG_DATA_HOME", "/home/u/data", 1), 0);
        cr_assert_eq(rig_firmware_folders_add(&usual, "/opt/images", NULL), 0);
        cr_assert_eq(rig_firmware_folders_add_usual(&usual, true, NULL), 0);
        cr_assert_eq(usual.n, 3);
        cr_expect_str_eq(usual.paths[1], "/home/u/data/rig/firmware");
        rig_firmware_folders_deinit(&usual);
}
