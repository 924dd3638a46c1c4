/* SPDX-License-Identifier: ISC */
/*
 * Text that others chose (programs' names, reasons, units) on its way to a terminal: what it shows as, and
 * how many columns that takes.
 */
#ifndef RIGCTL_TEXT_H
#define RIGCTL_TEXT_H

#include "base/base.h"

/* Takes the locale of the environment; to be called first. */
void ctl_text_init(void);
/* "…", or "..." where the locale is not UTF-8. */
const char *ctl_text_ellipsis(void);

/*
 * Reads one character. Return: its code, with *s moved behind it; or -1 with *s moved by one byte, which is
 * part of no valid UTF-8. Not to be called at the end.
 */
int32_t ctl_text_next(const char **s);
/* Whether a terminal could take it as a command, or show nothing or something else for it. */
bool ctl_text_hidden(int32_t code);

/* The text as a terminal may have it: what is hidden or is no text is written as \x1b. The caller frees. */
char *ctl_text_clean(const char *s);
/* Columns that a clean text takes. */
size_t ctl_text_width(const char *s);
/* As many bytes of a clean text as fit `columns`. */
size_t ctl_text_fit(const char *s, size_t columns);

/* What memory failed for: says so, restores the terminal, and ends the program with 1. */
_noreturn_ void ctl_out_of_memory(void);
/* Never NULL. */
char *ctl_printf(const char *fmt, ...) _printf_(1, 2);
char *ctl_copy(const char *s);
void *ctl_grow(void *array, size_t n, size_t bytes_each);

#endif
