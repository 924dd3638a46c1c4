/* SPDX-License-Identifier: ISC */
/*
 * Numbers to text and back. Sizes count by 1024 as systemd's settings do, so that what a table shows can be
 * typed after `rigctl limits`; what was cut off is never rounded up, so that "1.0G of 1G" is never more than
 * it says. Nothing here overflows or allocates by what a number is: every 64-bit number has a text.
 */
#include "tools/rigctl/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tools/rigctl/text.h"

static const char size_letters[] = "KMGTPE";

char *ctl_bytes(uint64_t bytes)
{
        int shift = 0;
        uint64_t tenths;

        if (bytes == CTL_INFINITY)
                return ctl_copy("infinity");
        if (bytes < 1024)
                return ctl_printf("%" PRIu64 "B", bytes);
        while (shift < 60 && bytes >> shift >= 1024)
                shift += 10;
        tenths = ((bytes >> (shift - 10) & 1023) * 10) >> 10;
        if (tenths == 0)
                return ctl_printf("%" PRIu64 "%c", bytes >> shift, size_letters[shift / 10 - 1]);
        return ctl_printf("%" PRIu64 ".%" PRIu64 "%c", bytes >> shift, tenths, size_letters[shift / 10 - 1]);
}

char *ctl_count(uint64_t n)
{
        return ctl_printf("%" PRIu64, n);
}

char *ctl_limit(uint64_t n)
{
        return n == CTL_INFINITY ? ctl_copy("infinity") : ctl_count(n);
}

char *ctl_rate(double per_second)
{
        static const char letters[] = "kMGTPEZY";
        size_t i = 0;

        if (per_second < 0.05)
                return ctl_copy("0");
        if (per_second < 99999.5)
                return ctl_printf(per_second < 9.95 ? "%.1f" : "%.0f", per_second);
        for (; per_second >= 999.95 && letters[i]; i++)
                per_second /= 1000;
        return ctl_printf(per_second < 99.95 ? "%.1f%c" : "%.0f%c", per_second, letters[i - 1]);
}

char *ctl_span(uint64_t usec)
{
        static const struct {
                uint64_t big_usec, small_usec;
                const char *big, *small;
        } pairs[] = {
                {86400 * RIG_USEC_PER_SEC, 3600 * RIG_USEC_PER_SEC, "d", "h"},
                {3600 * RIG_USEC_PER_SEC, 60 * RIG_USEC_PER_SEC, "h", "min"},
                {60 * RIG_USEC_PER_SEC, RIG_USEC_PER_SEC, "min", "s"},
        };

        for (size_t i = 0; i < RIG_ARRAY_SIZE(pairs); i++) {
                uint64_t rest = usec % pairs[i].big_usec / pairs[i].small_usec;

                if (usec < pairs[i].big_usec)
                        continue;
                if (rest == 0)
                        return ctl_printf("%" PRIu64 "%s", usec / pairs[i].big_usec, pairs[i].big);
                return ctl_printf("%" PRIu64 "%s%" PRIu64 "%s", usec / pairs[i].big_usec, pairs[i].big, rest,
                        pairs[i].small);
        }
        if (usec >= RIG_USEC_PER_SEC)
                return ctl_printf("%" PRIu64 ".%03" PRIu64 "s", usec / RIG_USEC_PER_SEC,
                        usec % RIG_USEC_PER_SEC / 1000);
        if (usec >= RIG_USEC_PER_MSEC)
                return ctl_printf("%" PRIu64 ".%" PRIu64 "ms", usec / 1000, usec % 1000 / 100);
        return usec ? ctl_printf("%" PRIu64 "us", usec) : ctl_copy("0");
}

char *ctl_moment(uint64_t usec)
{
        _cleanup_(rig_freep) char *ago = NULL;
        time_t seconds = (time_t)(usec / RIG_USEC_PER_SEC);
        struct timespec now;
        struct tm local;
        char text[64];
        uint64_t now_usec;

        clock_gettime(CLOCK_REALTIME, &now);
        now_usec = (uint64_t)now.tv_sec * RIG_USEC_PER_SEC + (uint64_t)now.tv_nsec / RIG_NSEC_PER_USEC;
        if (!localtime_r(&seconds, &local) || strftime(text, sizeof(text), "%F %T %Z", &local) == 0)
                return ctl_printf("%" PRIu64 " us after 1970", usec);
        if (usec > now_usec)
                return ctl_copy(text);
        ago = ctl_span((now_usec - usec) / RIG_USEC_PER_SEC * RIG_USEC_PER_SEC);
        return ctl_printf("%s; %s ago", text, strcmp(ago, "0") == 0 ? "0s" : ago);
}

/* ---------------------------------------------------------------- to numbers */

/* Digits, to the first that is none. */
static int parse_digits(const char **s, uint64_t *ret)
{
        uint64_t n = 0;

        if (!isdigit((unsigned char)**s))
                return -EINVAL;
        for (; isdigit((unsigned char)**s); (*s)++)
                if (rig_mul_overflow(n, (uint64_t)10, &n) || rig_add_overflow(n, (uint64_t)(**s - '0'), &n))
                        return -ERANGE;
        *ret = n;
        return 0;
}

int ctl_parse_number(const char *s, uint64_t *ret)
{
        uint64_t n = 0;
        int r = parse_digits(&s, &n);

        if (r < 0)
                return r;
        if (*s)
                return -EINVAL;
        *ret = n;
        return 0;
}

/* A number and the first six digits of its fraction, in millionths. */
static int parse_fraction(const char **s, uint64_t *ret_whole, uint64_t *ret_millionths)
{
        uint64_t millionths = 0, scale = 100000;
        int r = parse_digits(s, ret_whole);

        if (r < 0)
                return r;
        if (**s == '.') {
                if (!isdigit((unsigned char)*++*s))
                        return -EINVAL;
                for (; isdigit((unsigned char)**s); (*s)++, scale /= 10)
                        millionths += scale * (uint64_t)(**s - '0');
        }
        *ret_millionths = millionths;
        return 0;
}

/* whole.millionths times `by`. */
static int scale(uint64_t whole, uint64_t millionths, uint64_t by, uint64_t *ret)
{
        unsigned __int128 product = (unsigned __int128)whole * by;

        product += (unsigned __int128)millionths * by / 1000000;
        if (product >= CTL_INFINITY)
                return -ERANGE;
        *ret = (uint64_t)product;
        return 0;
}

int ctl_parse_size(const char *s, uint64_t *ret)
{
        uint64_t whole = 0, millionths = 0, by = 1;
        const char *letter;
        int r;

        if (strcmp(s, "infinity") == 0) {
                *ret = CTL_INFINITY;
                return 0;
        }
        r = parse_fraction(&s, &whole, &millionths);
        if (r < 0)
                return r;
        if (*s) {
                letter = strchr(size_letters, *s);
                if (!letter || s[1])
                        return -EINVAL;
                by = UINT64_C(1) << 10 * (letter - size_letters + 1);
        } else if (millionths) {
                return -EINVAL;
        }
        return scale(whole, millionths, by, ret);
}

int ctl_parse_span(const char *s, uint64_t *ret_usec)
{
        static const struct {
                const char *unit;
                uint64_t usec;
        } units[] = {
                {"", RIG_USEC_PER_SEC},
                {"us", 1},
                {"ms", RIG_USEC_PER_MSEC},
                {"s", RIG_USEC_PER_SEC},
                {"min", 60 * RIG_USEC_PER_SEC},
                {"h", 3600 * RIG_USEC_PER_SEC},
                {"d", 86400 * RIG_USEC_PER_SEC},
        };
        uint64_t whole = 0, millionths = 0;
        int r = parse_fraction(&s, &whole, &millionths);

        if (r < 0)
                return r;
        for (size_t i = 0; i < RIG_ARRAY_SIZE(units); i++)
                if (strcmp(s, units[i].unit) == 0)
                        return scale(whole, millionths, units[i].usec, ret_usec);
        return -EINVAL;
}
