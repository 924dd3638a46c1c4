/* SPDX-License-Identifier: ISC */
/* Numbers as people read and write them: sizes, spans of time, rates. Texts returned are the caller's to
 * free. */
#ifndef RIGCTL_UNITS_H
#define RIGCTL_UNITS_H

#include "base/base.h"

#define CTL_INFINITY UINT64_MAX /* as a limit: none */

/* "512B", "1.5M": by 1024, with at most one decimal, never more than there is. CTL_INFINITY: "infinity". */
char *ctl_bytes(uint64_t bytes);
/* All digits. */
char *ctl_count(uint64_t n);
/* All digits; CTL_INFINITY: "infinity". */
char *ctl_limit(uint64_t n);
/* At most six characters: "0", "9.5", "12345", "1.2M"; by 1000. */
char *ctl_rate(double per_second);
/* "850us", "12.3ms", "1.234s", "2min3s", "3h5min", "4d6h". */
char *ctl_span(uint64_t usec);
/* A moment of CLOCK_REALTIME in local time, and how long ago that is. */
char *ctl_moment(uint64_t usec);

/* Digits alone. -EINVAL; -ERANGE. */
int ctl_parse_number(const char *s, uint64_t *ret);
/* A number, with K, M, G, T, P or E (by 1024) and a fraction before it where wanted; or "infinity". */
int ctl_parse_size(const char *s, uint64_t *ret);
/* A number of seconds with a fraction where wanted, or with us, ms, s, min, h or d. */
int ctl_parse_span(const char *s, uint64_t *ret_usec);

#endif
