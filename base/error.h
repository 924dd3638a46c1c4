/* SPDX-License-Identifier: ISC */
/*
 * An error that says what was wrong.
 *
 * Functions return a negative errno value; the ones whose failure a person will read also fill a
 * `struct rig_error`, where it is born, with the sentence: what was wrong, with which values, and what to
 * do. It travels by pointer up to whoever shows it: a client's answer, a log line, rig_error() in the
 * library.
 */
#ifndef RIG_ERROR_H
#define RIG_ERROR_H

#include <stdarg.h>

#include "base/base.h"

#define RIG_ERROR_TEXT_MAX 256

struct rig_error {
        int code; /* 0, or a negative errno value */
        char text[RIG_ERROR_TEXT_MAX];
};

#define RIG_ERROR_NULL                                                                                      \
        {                                                                                                   \
                0                                                                                           \
        }

/**
 * rig_error_set() - say what went wrong
 * @e:    where to say it, or NULL where nobody listens
 * @code: a negative errno value
 * @fmt:  a sentence without its full stop
 *
 * Return: @code, so that a failure is `return rig_error_set(e, -EINVAL, "...")`.
 */
int rig_error_set(struct rig_error *e, int code, const char *fmt, ...) _printf_(3, 4);
int rig_error_setv(struct rig_error *e, int code, const char *fmt, va_list ap) _printf_(3, 0);

/* The short name of an errno value, without its sign: "EINVAL"; "error 4711" has no name. Static text. */
const char *rig_errno_name(int code);

#endif
