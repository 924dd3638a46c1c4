/* SPDX-License-Identifier: ISC */
/*
 * The parts of rigctl that need no bus: texts, numbers, words and tables, on what is typical, on their
 * bounds, and on random input, where what must hold for any is checked.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tools/rigctl/table.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"
#include "tools/rigctl/words.h"

#define ROUNDS 20000

static uint64_t state = 1;

static uint64_t random_number(void)
{
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (state >> 33) ^ state << 31;
}

/* Of any magnitude. */
static uint64_t random_size(void)
{
        return random_number() >> random_number() % 64;
}

#define IS(call, expected)                                                                                  \
        do {                                                                                                \
                _cleanup_(rig_freep) char *text_ = (call);                                                  \
                cr_assert_str_eq(text_, expected);                                                          \
        } while (0)

static void utf8(void)
{
        setenv("LC_ALL", "C.UTF-8", 1);
        ctl_text_init();
}

/* ---------------------------------------------------------------- numbers */

Test(parts, bytes_have_at_most_one_decimal_and_are_never_rounded_up)
{
        IS(ctl_bytes(0), "0B");
        IS(ctl_bytes(1023), "1023B");
        IS(ctl_bytes(1024), "1K");
        IS(ctl_bytes(1126), "1K"); /* 1.0996 */
        IS(ctl_bytes(1127), "1.1K");
        IS(ctl_bytes(1536 << 10), "1.5M");
        IS(ctl_bytes((1 << 20) - 1), "1023.9K");
        IS(ctl_bytes(UINT64_C(1) << 63), "8E");
        IS(ctl_bytes(UINT64_MAX - 1), "15.9E");
        IS(ctl_bytes(UINT64_MAX), "infinity");
}

Test(parts, sizes_read_back_as_what_was_shown)
{
        for (int i = 0; i < ROUNDS; i++) {
                uint64_t n = random_size(), again;
                _cleanup_(rig_freep) char *text = ctl_bytes(n);

                if (strlen(text) && text[strlen(text) - 1] == 'B')
                        text[strlen(text) - 1] = '\0';
                cr_assert_eq(ctl_parse_size(text, &again), 0, "%s", text);
                /* A tenth of the unit is cut off, at most. */
                cr_assert(again <= n && n - again <= n / 10 + 1, "%lu was shown as %s, which is %lu", n,
                        text, again);
        }
}

Test(parts, sizes_are_read_by_1024)
{
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } rows[] = {
                {"0", 0, 0},
                {"1K", 0, 1024},
                {"1.5K", 0, 1536},
                {"0.5M", 0, 512 << 10},
                {"15.999999E", 0, UINT64_C(18446742920788047009)},
                {"18446744073709551614", 0, UINT64_MAX - 1},
                {"infinity", 0, UINT64_MAX},
                {"18446744073709551615", -ERANGE, 0},
                {"16E", -ERANGE, 0},
                {"99999999999999999999999", -ERANGE, 0},
                {"", -EINVAL, 0},
                {"1.5", -EINVAL, 0},
                {"1.", -EINVAL, 0},
                {".5K", -EINVAL, 0},
                {"-1", -EINVAL, 0},
                {"+1", -EINVAL, 0},
                {" 1", -EINVAL, 0},
                {"1 K", -EINVAL, 0},
                {"1KB", -EINVAL, 0},
                {"1k", -EINVAL, 0},
        };

        for (size_t i = 0; i < RIG_ARRAY_SIZE(rows); i++) {
                uint64_t value = 0;

                cr_assert_eq(ctl_parse_size(rows[i].text, &value), rows[i].r, "%s", rows[i].text);
                cr_assert_eq(value, rows[i].value, "%s: %lu", rows[i].text, value);
        }
}

Test(parts, spans_have_two_units_at_most)
{
        IS(ctl_span(0), "0");
        IS(ctl_span(1), "1us");
        IS(ctl_span(999), "999us");
        IS(ctl_span(1000), "1.0ms");
        IS(ctl_span(999999), "999.9ms");
        IS(ctl_span(1000000), "1.000s");
        IS(ctl_span(59999999), "59.999s");
        IS(ctl_span(60000000), "1min");
        IS(ctl_span(61999999), "1min1s");
        IS(ctl_span(UINT64_C(3600000000)), "1h");
        IS(ctl_span(UINT64_C(86399999999)), "23h59min");
        IS(ctl_span(UINT64_C(90000000000)), "1d1h");
        IS(ctl_span(UINT64_MAX), "213503982d8h");
}

Test(parts, spans_are_read_with_and_without_units)
{
        uint64_t usec = 0;

        cr_assert(ctl_parse_span("2", &usec) == 0 && usec == 2000000);
        cr_assert(ctl_parse_span("0.5", &usec) == 0 && usec == 500000);
        cr_assert(ctl_parse_span("1.5min", &usec) == 0 && usec == 90000000);
        cr_assert(ctl_parse_span("250ms", &usec) == 0 && usec == 250000);
        cr_assert(ctl_parse_span("7us", &usec) == 0 && usec == 7);
        cr_assert_eq(ctl_parse_span("1 s", &usec), -EINVAL);
        cr_assert_eq(ctl_parse_span("1S", &usec), -EINVAL);
        cr_assert_eq(ctl_parse_span("s", &usec), -EINVAL);
        cr_assert_eq(ctl_parse_span("18446744073709551615", &usec), -ERANGE);
        cr_assert_eq(usec, 7);
}

Test(parts, rates_have_six_characters_at_most)
{
        IS(ctl_rate(0), "0");
        IS(ctl_rate(0.04), "0");
        IS(ctl_rate(0.06), "0.1");
        IS(ctl_rate(9.94), "9.9");
        IS(ctl_rate(9.96), "10");
        IS(ctl_rate(99999.4), "99999");
        IS(ctl_rate(123456), "123k");
        IS(ctl_rate(1e6), "1.0M");
        IS(ctl_rate(999949), "1000k");
        for (double rate = 0.001; rate < 1e27; rate *= 1.07) {
                _cleanup_(rig_freep) char *text = ctl_rate(rate);

                cr_assert_leq(strlen(text), 6, "%g: %s", rate, text);
        }
}

/* ---------------------------------------------------------------- texts */

Test(parts, characters_are_those_of_utf8)
{
        static const char *const invalid[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80",
                "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xc3", "\xe2\x82",
                "\xf0\x9f\x92"};
        const char *s = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xa9";

        cr_assert_eq(ctl_text_next(&s), 'a');
        cr_assert_eq(ctl_text_next(&s), 0xe9);
        cr_assert_eq(ctl_text_next(&s), 0x20ac);
        cr_assert_eq(ctl_text_next(&s), 0x1f4a9);
        cr_assert_eq(*s, '\0');
        for (size_t i = 0; i < RIG_ARRAY_SIZE(invalid); i++) {
                s = invalid[i];
                cr_assert_eq(ctl_text_next(&s), -1, "%zu", i);
                cr_assert_eq(s, invalid[i] + 1);
        }
}

Test(parts, clean_text_has_nothing_hidden)
{
        utf8();
        IS(ctl_text_clean("plain \\ text"), "plain \\ text");
        IS(ctl_text_clean("a\033[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
        IS(ctl_text_clean("\xc2\x9b"), "\\xc2\\x9b");
        IS(ctl_text_clean("\xe2\x80\xae"), "\\xe2\\x80\\xae");
        IS(ctl_text_clean("\xff\xc3"), "\\xff\\xc3");
        for (int i = 0; i < ROUNDS; i++) {
                char bytes[9] = "";

                for (int j = 0; j < 8; j++)
                        bytes[j] = (char)(random_number() % 3 ? 0x80 + random_number() % 128
                                                              : random_number() % 128);
                _cleanup_(rig_freep) char *clean = ctl_text_clean(bytes);
                _cleanup_(rig_freep) char *again = ctl_text_clean(clean);

                cr_assert_str_eq(clean, again);
                for (const char *s = clean; *s;)
                        cr_assert(!ctl_text_hidden(ctl_text_next(&s)));
        }
}

Test(parts, texts_are_cut_between_characters)
{
        const char *wide = "\xe5\x90\x8d\xe5\x89\x8d"; /* two, of two columns each */

        utf8();
        cr_assert_eq(ctl_text_width(wide), 4);
        cr_assert_eq(ctl_text_fit(wide, 4), 6);
        cr_assert_eq(ctl_text_fit(wide, 3), 3);
        cr_assert_eq(ctl_text_fit(wide, 1), 0);
        cr_assert_eq(ctl_text_fit("abc", 2), 2);
        cr_assert_eq(ctl_text_fit("abc", 9), 3);
}

/* ---------------------------------------------------------------- words */

Test(parts, the_nearest_word_is_found_and_none_far_away)
{
        static const char *const words[] = {"list", "show", "limits", "log-level", NULL};

        cr_assert_str_eq(ctl_nearest("lits", words), "list");
        cr_assert_str_eq(ctl_nearest("LIMITS", words), "limits");
        cr_assert_str_eq(ctl_nearest("loglevle", words), "log-level");
        cr_assert_null(ctl_nearest("reload", words));
        cr_assert_null(ctl_nearest("", words));
        cr_assert_null(ctl_nearest("listlistlistlistlistlistlistlistlist", words));
}

Test(parts, quoted_words_are_a_shells_own)
{
        IS(ctl_quote((char *[]){(char[]){"rigctl"}, (char[]){"--json=pretty"}, NULL}),
                "rigctl --json=pretty");
        IS(ctl_quote((char *[]){(char[]){"a b"}, (char[]){""}, (char[]){"it's"}, (char[]){"$x"}, NULL}),
                "'a b' '' 'it'\\''s' '$x'");
}

/* ---------------------------------------------------------------- tables */

static const struct ctl_column columns[] = {
        {"NAME", .at_least = 6},
        {"EXTRA", .extra = 1, .right = true},
        {"MORE", .extra = 2},
        {"NUMBER", .right = true},
        {"ABOUT", .at_least = 8},
};

static void fill(struct ctl_table *table, unsigned rows)
{
        static const char *const letters[] = {"a", "-", "\xc3\xa9", "\xe5\x90\x8d", "x y"};

        ctl_table_init(table, columns, RIG_ARRAY_SIZE(columns));
        for (unsigned i = 0; i < rows * RIG_ARRAY_SIZE(columns); i++) {
                char cell[128] = "";

                for (uint64_t n = random_number() % 20; n; n--)
                        strcat(cell, letters[random_number() % RIG_ARRAY_SIZE(letters)]);
                ctl_table_add(table, ctl_copy(cell));
                if (random_number() % 4 == 0)
                        ctl_table_warn(table);
        }
}

Test(parts, no_line_of_a_table_is_longer_than_the_screen)
{
        utf8();
        for (int i = 0; i < 2000; i++) {
                struct ctl_screen screen = {.columns = 1 + (unsigned)(random_number() % 120)};
                _cleanup_(ctl_table_deinit) struct ctl_table table;
                _cleanup_(rig_freep) char *text = NULL;
                unsigned rows = (unsigned)(random_number() % 5), lines = 0;
                size_t bytes;
                FILE *f = open_memstream(&text, &bytes);
                char *rest, *line;

                fill(&table, rows);
                ctl_table_write(&table, f, &screen, true);
                fclose(f);
                for (rest = text; (line = strsep(&rest, "\n")) && rest; lines++)
                        cr_assert_leq(ctl_text_width(line), screen.columns, "%s", line);
                cr_assert_eq(lines, rows + 1);
        }
}

Test(parts, colours_are_around_lines_and_only_where_wanted)
{
        for (int colour = 0; colour < 2; colour++) {
                struct ctl_screen screen = {.columns = UINT32_MAX, .colour = colour};
                _cleanup_(ctl_table_deinit) struct ctl_table table;
                _cleanup_(rig_freep) char *text = NULL;
                size_t bytes;
                FILE *f = open_memstream(&text, &bytes);

                ctl_table_init(&table, columns, 1);
                ctl_table_add(&table, ctl_copy("good"));
                ctl_table_add(&table, ctl_copy("bad"));
                ctl_table_warn(&table);
                ctl_table_write(&table, f, &screen, true);
                fclose(f);
                cr_assert_str_eq(text,
                        colour ? "\033[1mNAME\033[0m\ngood\n\033[31mbad\033[0m\n" : "NAME\ngood\nbad\n");
        }
}
