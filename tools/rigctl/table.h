/* SPDX-License-Identifier: ISC */
/* Tables and blocks of lines, for people. */
#ifndef RIGCTL_TABLE_H
#define RIGCTL_TABLE_H

#include <stdio.h>

#include "tools/rigctl/screen.h"

struct ctl_column {
        const char *name;
        bool right;    /* numbers stand at their right */
        uint8_t extra; /* 0: always shown; else, where lines end, only if there is room: the greatest goes
                          first */
        uint16_t at_least; /* may be cut to so many columns where there is no room; 0: never */
};

struct ctl_table {
        const struct ctl_column *columns;
        size_t n_columns;
        char **cells; /* row after row */
        bool *warned; /* a row each */
        size_t n_cells, rows_room;
};

/* `columns` are borrowed. */
void ctl_table_init(struct ctl_table *table, const struct ctl_column *columns, size_t n_columns);
void ctl_table_deinit(struct ctl_table *table);

/* Appends a cell, row after row. `cell` is clean text (tools/rigctl/text.h), consumed; "" is shown as "-".
 */
void ctl_table_add(struct ctl_table *table, char *cell);
/* The row of the last cell is shown in red. */
void ctl_table_warn(struct ctl_table *table);

/* Writes it, `heads` with the names of its columns. */
void ctl_table_write(struct ctl_table *table, FILE *f, const struct ctl_screen *screen, bool heads);

/* ---------------------------------------------------------------- blocks */

/* One line of "     Key: value", with keys in `width` columns. `value` is clean text, consumed; "" writes
 * nothing. */
void ctl_block_line(FILE *f, int width, const char *key, char *value);

#endif
