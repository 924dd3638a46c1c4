/* SPDX-License-Identifier: ISC */
/* Reads the scalars of a JSON text: what a vfio-user server says of itself. See json.c. */
#ifndef RIG_PCI_JSON_H
#define RIG_PCI_JSON_H

#include "base/base.h"

enum rig_json_kind {
        JSON_NUMBER, /* a whole one that is not negative and fits; other numbers are JSON_OTHER */
        JSON_BOOL,
        JSON_OTHER, /* a string, null, another number */
};

/* A scalar at `path`: the keys that lead to it, joined by dots; elements of arrays have empty keys. */
typedef void (*rig_json_scalar)(void *own, const char *path, enum rig_json_kind kind, uint64_t value);

/* Reads one value, and nothing behind it but blanks. -EINVAL: it is not JSON, or nested too deeply. */
int rig_json_read(const char *text, size_t bytes, rig_json_scalar scalar, void *own);

#endif
