/* SPDX-License-Identifier: ISC */
/* A text in the syntax of systemd.syntax(7), taken apart: sections, keys, values, by line. */
#ifndef RIG_INI_H
#define RIG_INI_H

#include "base/base.h"

struct rig_ini_ops {
        /* Whether there is such a section. Without it what is in it is not told. */
        bool (*section)(void *userdata, const char *name);
        /* An assignment of a section that there is; `line` is the one it starts on. */
        void (*assignment)(void *userdata, unsigned line, const char *key, const char *value);
        /* A line that is no line. */
        void (*wrong)(void *userdata, unsigned line, const char *sentence);
};

/**
 * rig_ini_parse() - take a text apart
 * @text: of @bytes; borrowed
 *
 * Return: 0, or -ENOMEM.
 */
int rig_ini_parse(const char *text, size_t bytes, const struct rig_ini_ops *ops, void *userdata);

#endif
