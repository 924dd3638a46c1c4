/* SPDX-License-Identifier: ISC */
/* What lists of objects are shown and sorted by, where that is more than a property. */
#ifndef RIGCTL_PEOPLE_H
#define RIGCTL_PEOPLE_H

#include "tools/rigctl/value.h"

/* A user's name, or its number where it has none; clean. Kept: not the caller's to free. */
const char *ctl_user_name(uint64_t uid);

enum ctl_direction { CTL_ASCENDS, CTL_DESCENDS };
struct ctl_order {
        const char *name; /* as --sort= has it */
        char key;         /* top's, or 0 */
        const char *property;
        enum ctl_direction direction;
};

/* Finds an order by name; says which there are. Return: an exit status. */
int ctl_order_find(
        const struct ctl_order *orders, size_t n, const char *name, const struct ctl_order **ret_order);
/* Sorts a list of maps; what is equal is by Number. */
void ctl_order_sort(struct ctl_value *list, const struct ctl_order *order, bool reverse);

#endif
