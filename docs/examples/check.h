/* SPDX-License-Identifier: ISC */
/* What every example does with a call that fails: say which, and why, and end. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <rig/rig.h>

#define check(call) check_result((call), #call)

static inline int check_result(int r, const char *call)
{
        if (r >= 0)
                return r;
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", call, rig_error());
        exit(1);
}

#endif
