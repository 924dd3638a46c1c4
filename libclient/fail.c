/* SPDX-License-Identifier: ISC */
/*
 * The error of each thread, and the words for the codes.
 *
 * A failing call writes its sentence into the thread's own error where the failure is born, so that no
 * function between there and the program has to carry it. A call that succeeds leaves the sentence of the
 * one that failed before it: rig_error() promises it only until the next call.
 */
#include "libclient/fail.h"

#include <string.h>

#include <rig/rig.h>

static __thread struct rig_error here;

struct rig_error *rig_fail_here(void)
{
        return &here;
}

int rig_fail(int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        rig_error_setv(&here, code, fmt, ap);
        va_end(ap);
        return code;
}

RIG_API const char *rig_error(void)
{
        return here.text;
}

static const struct {
        int code;
        const char *text;
} texts[] = {
        {0, "success"},
        {ENODEV, "the device is lost"},
        {ECONNRESET, "rigd is gone"},
        {EPROTO, "rigd refused what this connection sent"},
        {EDQUOT, "the client's share of a limit is used up"},
        {ENOMEM, "out of memory"},
        {EINVAL, "an argument that the call rules out"},
        {ECONNREFUSED, "nobody listens at the address"},
        {EPROTONOSUPPORT, "rigd speaks another version of the protocol"},
        {ENOEXEC, "not something that can be run"},
        {ERANGE, "bytes outside of the buffer"},
        {EXDEV, "memory that the device does not reach"},
        {ESTALE, "memory that rigd does not know or that has returned"},
        {EOPNOTSUPP, "the device does not do this"},
        {ENODATA, "the file ends before these bytes"},
        {ETIMEDOUT, "the time given is over"},
        {E2BIG, "a struct of a newer header than the library"},
};

RIG_API const char *rig_strerror(int error)
{
        int code = error < 0 ? -error : error;
        const char *text;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(texts); i++)
                if (texts[i].code == code)
                        return texts[i].text;
        text = strerrordesc_np(code);
        return text ? text : "an error with no name";
}
