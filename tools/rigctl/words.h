/* SPDX-License-Identifier: ISC */
/* Words people typed: what they may have meant, and how to type them again. */
#ifndef RIGCTL_WORDS_H
#define RIGCTL_WORDS_H

#include "base/base.h"

/* The word of a NULL-terminated array that is the nearest to one that was typed, or NULL where none is near.
 */
const char *ctl_nearest(const char *word, const char *const *words);
/* "; did you mean list?", with `before` before it, or "". The caller frees. */
char *ctl_did_you_mean(const char *word, const char *const *words, const char *before);
/* The words of a command line, quoted for a shell where they must be. The caller frees. */
char *ctl_quote(char *const *words);

#endif
