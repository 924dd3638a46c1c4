/* SPDX-License-Identifier: ISC */
/* See base/error.h. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

void rig_assert_failed(const char *expr, const char *file, int line, const char *func)
{
        fprintf(stderr, "%s:%d: %s(): a promise does not hold: %s\n", file, line, func, expr);
        abort();
}

int rig_error_setv(struct rig_error *e, int code, const char *fmt, va_list ap)
{
        if (e) {
                e->code = code;
                vsnprintf(e->text, sizeof(e->text), fmt, ap);
        }
        return code;
}

int rig_error_set(struct rig_error *e, int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        rig_error_setv(e, code, fmt, ap);
        va_end(ap);
        return code;
}

const char *rig_errno_name(int code)
{
        const char *name = strerrorname_np(code < 0 ? -code : code);

        return name ? name : "unknown error";
}
