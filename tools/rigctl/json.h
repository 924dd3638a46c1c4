/* SPDX-License-Identifier: ISC */
/* Values as JSON (RFC 8259). */
#ifndef RIGCTL_JSON_H
#define RIGCTL_JSON_H

#include <stdio.h>

#include "tools/rigctl/value.h"

/* Writes a value and a newline: in one line, or `pretty`. */
void ctl_json_write(FILE *f, const struct ctl_value *value, bool pretty);

#endif
