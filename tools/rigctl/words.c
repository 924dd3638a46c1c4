/* SPDX-License-Identifier: ISC */
/*
 * Words. The distance of two is the number of letters to insert, to leave out, to change or to swap with
 * their neighbour; a word is near where a third of its letters, and at least one, would have to change.
 * Words longer than any of ours are near none, so what somebody typed costs a few kilobytes of stack at
 * most.
 */
#include "tools/rigctl/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tools/rigctl/text.h"

#define WORD_MAX 32

static unsigned distance(const char *a, const char *b)
{
        unsigned d[WORD_MAX + 1][WORD_MAX + 1];
        size_t a_length = strlen(a), b_length = strlen(b);

        if (a_length > WORD_MAX || b_length > WORD_MAX)
                return UINT32_MAX;
        for (size_t i = 0; i <= a_length; i++)
                for (size_t j = 0; j <= b_length; j++) {
                        bool same = i && j &&
                                    tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);

                        if (!i || !j) {
                                d[i][j] = (unsigned)(i + j);
                                continue;
                        }
                        d[i][j] = RIG_MIN(d[i - 1][j], d[i][j - 1]) + 1;
                        d[i][j] = RIG_MIN(d[i][j], d[i - 1][j - 1] + !same);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                d[i][j] = RIG_MIN(d[i][j], d[i - 2][j - 2] + 1);
                }
        return d[a_length][b_length];
}

const char *ctl_nearest(const char *word, const char *const *words)
{
        const char *nearest = NULL;
        unsigned least = UINT32_MAX;

        for (; *words; words++) {
                unsigned n = distance(word, *words);

                if (n < least && n <= RIG_MAX(strlen(*words) / 3, (size_t)1)) {
                        least = n;
                        nearest = *words;
                }
        }
        return nearest;
}

char *ctl_did_you_mean(const char *word, const char *const *words, const char *before)
{
        const char *nearest = ctl_nearest(word, words);

        return nearest ? ctl_printf("; did you mean %s%s?", before, nearest) : ctl_copy("");
}

char *ctl_quote(char *const *words)
{
        static const char plain[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%^";
        char *text = NULL;
        size_t length;
        FILE *f = open_memstream(&text, &length);

        if (!f)
                ctl_out_of_memory();
        for (size_t i = 0; words[i]; i++) {
                const char *word = words[i];

                fputs(i ? " " : "", f);
                if (*word && word[strspn(word, plain)] == '\0') {
                        fputs(word, f);
                        continue;
                }
                fputc('\'', f);
                for (; *word; word++)
                        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, f);
                fputc('\'', f);
        }
        if (fclose(f) != 0)
                ctl_out_of_memory();
        return text;
}
