/* SPDX-License-Identifier: ISC */
/*
 * What came over the bus, as a tree: an object of rigd is a map of its properties. Tables and JSON are
 * written from these alone.
 */
#ifndef RIGCTL_VALUE_H
#define RIGCTL_VALUE_H

#include <systemd/sd-bus.h>

#include "base/base.h"

enum ctl_kind { CTL_NOTHING, CTL_TRUTH, CTL_NUMBER, CTL_SIGNED, CTL_REAL, CTL_TEXT, CTL_LIST, CTL_MAP };

struct ctl_value {
        enum ctl_kind kind;
        union {
                bool truth;
                uint64_t number;
                int64_t integer;
                double real;
                char *text;
                struct { /* a list, or a map in the order it came */
                        struct ctl_value *items;
                        char **keys; /* of a map */
                        size_t n, room;
                };
        };
};

void ctl_value_deinit(struct ctl_value *value);

/* Appends nothing yet to a list, or under `key` to a map. Return: what to fill in, before the next is
 * appended. */
struct ctl_value *ctl_value_add(struct ctl_value *to, const char *key);
void ctl_value_add_number(struct ctl_value *map, const char *key, uint64_t number);
void ctl_value_add_real(struct ctl_value *map, const char *key, double real);
/* Moves `value` into a map; it is nothing afterwards. */
void ctl_value_move(struct ctl_value *map, const char *key, struct ctl_value *value);
/* Appends the items of `from` to the list `to`; `from` is empty afterwards. */
void ctl_value_join(struct ctl_value *to, struct ctl_value *from);

/* Reads the next value of a message, whatever its type; variants are seen through. */
int ctl_value_read(sd_bus_message *m, struct ctl_value *ret_value);

/* What a map has under a key: NULL, "", 0 or false where it has nothing of the kind. */
const struct ctl_value *ctl_value_find(const struct ctl_value *map, const char *key);
const char *ctl_value_text(const struct ctl_value *map, const char *key);
uint64_t ctl_value_number(const struct ctl_value *map, const char *key);
bool ctl_value_truth(const struct ctl_value *map, const char *key);
/* Its clean text (tools/rigctl/text.h), the caller's to free. */
char *ctl_value_clean(const struct ctl_value *map, const char *key);

#endif
