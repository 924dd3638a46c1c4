/* SPDX-License-Identifier: ISC */
/* Texts: bus addresses, ways, and the JSON of a server. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/pci/json.h"
#include "daemon/pci/transport.h"
#include "tests/memory/random.h"

Test(address, what_people_and_sysfs_write_is_read_and_printed_as_sysfs_does)
{
        static const struct {
                const char *text, *printed;
        } right[] = {
                {"0000:03:00.0", "0000:03:00.0"},
                {"03:00.0", "0000:03:00.0"},
                {"3:0.7", "0000:03:00.7"},
                {"10000:E1:1F.3", "10000:e1:1f.3"}, /* behind a VMD bridge */
                {"ffffffff:ff:1f.7", "ffffffff:ff:1f.7"},
        };

        for (size_t i = 0; i < RIG_ARRAY_SIZE(right); i++) {
                char text[RIG_PCI_ADDRESS_TEXT_MAX];
                struct rig_pci_address a;

                cr_assert_eq(rig_pci_address_parse(right[i].text, &a), 0, "%s", right[i].text);
                cr_assert_str_eq(rig_pci_address_format(&a, text), right[i].printed);
        }
}

Test(address, what_is_none_is_refused)
{
        static const char *const wrong[] = {"", "0000", "03:00", "03.0", "03:00.8", "03:20.0", "100:00.0",
                "0000:03:00.0 ", " 03:00.0", "0000:03:00.0.0", "0000:0000:03:00.0", "0x03:00.0", "-1:00.0",
                "123456789:03:00.0", ":03:00.0", "03::0", "03:00.", "g3:00.0", "0000:003:00.0",
                "0000:03:00.00"};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(wrong); i++) {
                struct rig_pci_address a;

                cr_assert_eq(rig_pci_address_parse(wrong[i], &a), -EINVAL, "\"%s\"", wrong[i]);
        }
}

Test(address, each_way_has_a_name)
{
        for (int i = 0; i < RIG_PCI_WAY_MAX; i++)
                cr_assert_not_null(rig_pci_way_to_string((enum rig_pci_way)i));
        cr_assert_null(rig_pci_way_to_string(RIG_PCI_WAY_MAX));
}

/* ---------------------------------------------------------------- JSON */

static char seen[1024];

static void scalar(void *own, const char *path, enum rig_json_kind kind, uint64_t value)
{
        size_t n = strlen(seen);

        snprintf(seen + n, sizeof(seen) - n, "%s=%c%lu ", path, "nbo"[kind], value);
}

static int read_json(const char *text)
{
        seen[0] = '\0';
        return rig_json_read(text, strlen(text), scalar, NULL);
}

Test(json, scalars_come_with_the_path_to_them)
{
        cr_assert_eq(read_json(" { \"a\" : { \"b\" : 12, \"c\":true } , \"d\":[1,false,{\"e\":null}], "
                               "\"f\":\"x\\\"y\" } "),
                0);
        cr_assert_str_eq(seen, "a.b=n12 a.c=b1 d.=n1 d.=b0 d..e=o0 f=o0 ");
        cr_assert_eq(
                read_json("{\"a\":-1,\"b\":1.5,\"c\":18446744073709551616,\"d\":18446744073709551615}"), 0);
        cr_assert_str_eq(seen, "a=o0 b=o0 c=o0 d=n18446744073709551615 ");
        cr_assert_eq(read_json("{}"), 0);
        cr_assert_eq(read_json("[ ]"), 0);
}

Test(json, what_is_none_is_refused)
{
        static const char *const wrong[] = {"", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}",
                "[1,", "[1 2]", "\"x", "tru", "{} {}", "{\"a\":1}x", "\"\\", "[[[[[[[[[[]]]]]]]]]]", "nul",
                "\"\n\""};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(wrong); i++)
                cr_assert_eq(read_json(wrong[i]), -EINVAL, "%s", wrong[i]);
}

/* What it reads is in a buffer of just that length, so that a sanitizer sees a step outside. */
Test(json, any_bytes_are_read_within_their_bounds)
{
        static const char alphabet[] = "{}[]\",:\\ 0123456789.-truefalsn\x01";
        uint64_t seed = 9;

        for (unsigned i = 0; i < 20000; i++) {
                size_t n = random_below(&seed, 40);
                char *text = malloc(n ? n : 1);

                for (size_t k = 0; k < n; k++)
                        text[k] = alphabet[random_below(&seed, sizeof(alphabet))];
                seen[0] = '\0';
                rig_json_read(text, n, scalar, NULL);
                free(text);
        }
}

Test(json, a_long_path_is_cut_and_matches_nothing)
{
        char text[600] = "{\"";

        memset(text + 2, 'k', 500);
        strcat(text, "\":{\"b\":1}}");
        cr_assert_eq(read_json(text), 0);
        cr_assert_eq(strlen(seen), 127 + 4);
}
