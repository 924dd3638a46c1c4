/* SPDX-License-Identifier: ISC */
/* Tables of rigd's objects, and the lines around them. */
#ifndef RIGCTL_LISTS_H
#define RIGCTL_LISTS_H

#include "tools/rigctl/rigctl.h"

/* Why an adapter is not as it should be, cleaned, or "". The caller frees. */
char *ctl_adapter_trouble(const struct ctl_value *adapter);
/* What its state is called in lists: its State, or unavailable. Clean; the caller frees. */
char *ctl_adapter_state(const struct ctl_value *adapter);
/* The unit of a client, else its command; clean, the caller frees. */
char *ctl_client_origin(const struct ctl_value *client);

/* Writes the devices of a list, below an empty line; nothing where there are none. */
void ctl_list_devices(struct ctl *c, const struct ctl_value *devices);

#endif
