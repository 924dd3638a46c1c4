/* SPDX-License-Identifier: ISC */
/*
 * How the library says what went wrong: each thread has one struct rig_error, which rig_error() shows.
 */
#ifndef RIG_CLIENT_FAIL_H
#define RIG_CLIENT_FAIL_H

#include "base/error.h"

/* This thread's error: for functions that fill a struct rig_error. */
struct rig_error *rig_fail_here(void);

/* Sets this thread's error. Return: `code`. */
int rig_fail(int code, const char *fmt, ...) _printf_(2, 3);

#define rig_fail_memory() rig_fail(-ENOMEM, "out of memory")

#endif
