/* SPDX-License-Identifier: ISC */
/*
 * Tables. Through a pipe, or wherever lines have no end, every column is written as wide as its widest cell:
 * what reads it loses nothing. On a terminal no line is longer than the screen: columns that are extra go
 * first, then the ones that may be cut are, the widest first, and what is still too long ends at the edge.
 *
 * Cells are clean already; colours are added to whole lines when those have their length.
 */
#include "tools/rigctl/table.h"

#include <string.h>

#include "tools/rigctl/text.h"

#define GAP          1 /* blanks between columns */
#define COLUMNS_MAX  32
#define ESCAPE_HEADS "\033[1m"
#define ESCAPE_WARN  "\033[31m"
#define ESCAPE_PLAIN "\033[0m"

struct layout {
        bool shown[COLUMNS_MAX];
        size_t width[COLUMNS_MAX];
};

void ctl_table_init(struct ctl_table *table, const struct ctl_column *columns, size_t n_columns)
{
        rig_assert(n_columns <= COLUMNS_MAX);
        *table = (struct ctl_table){.columns = columns, .n_columns = n_columns};
}

void ctl_table_deinit(struct ctl_table *table)
{
        for (size_t i = 0; i < table->n_cells; i++)
                free(table->cells[i]);
        free(table->cells);
        free(table->warned);
        *table = (struct ctl_table){0};
}

void ctl_table_add(struct ctl_table *table, char *cell)
{
        size_t row = table->n_cells / table->n_columns;

        if (row == table->rows_room) {
                table->rows_room = RIG_MAX(table->rows_room * 2, (size_t)8);
                table->cells = ctl_grow(table->cells, table->rows_room * table->n_columns, sizeof(char *));
                table->warned = ctl_grow(table->warned, table->rows_room, sizeof(bool));
        }
        if (table->n_cells % table->n_columns == 0)
                table->warned[row] = false;
        table->cells[table->n_cells++] = cell;
}

void ctl_table_warn(struct ctl_table *table)
{
        table->warned[(table->n_cells - 1) / table->n_columns] = true;
}

/* ---------------------------------------------------------------- layout */

static size_t total(const struct ctl_table *t, const struct layout *l)
{
        size_t sum = 0;

        for (size_t i = 0; i < t->n_columns; i++)
                if (l->shown[i])
                        sum += l->width[i] + (sum ? GAP : 0);
        return sum;
}

/* Hides the column that is the most dispensable. Return: whether there was one. */
static bool hide_one(const struct ctl_table *t, struct layout *l)
{
        size_t which = t->n_columns;

        for (size_t i = 0; i < t->n_columns; i++)
                if (l->shown[i] && t->columns[i].extra &&
                        (which == t->n_columns || t->columns[i].extra > t->columns[which].extra))
                        which = i;
        if (which == t->n_columns)
                return false;
        l->shown[which] = false;
        return true;
}

/* Takes a column of the screen from the widest that may be cut. Return: whether there was one. */
static bool cut_one(const struct ctl_table *t, struct layout *l)
{
        size_t which = t->n_columns;

        for (size_t i = 0; i < t->n_columns; i++)
                if (l->shown[i] && t->columns[i].at_least && l->width[i] > t->columns[i].at_least &&
                        (which == t->n_columns || l->width[i] > l->width[which]))
                        which = i;
        if (which == t->n_columns)
                return false;
        l->width[which]--;
        return true;
}

static void lay_out(const struct ctl_table *t, size_t columns, bool heads, struct layout *l)
{
        for (size_t i = 0; i < t->n_columns; i++) {
                l->shown[i] = true;
                l->width[i] = heads ? strlen(t->columns[i].name) : 1;
        }
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t column = i % t->n_columns;

                l->width[column] = RIG_MAX(l->width[column], ctl_text_width(t->cells[i]));
        }
        while (total(t, l) > columns)
                if (!hide_one(t, l) && !cut_one(t, l))
                        break;
}

/* ---------------------------------------------------------------- writing */

static void write_cell(FILE *f, const char *cell, size_t width, bool right, bool last)
{
        const char *dots = ctl_text_width(cell) > width ? ctl_text_ellipsis() : "";
        size_t dots_width = ctl_text_width(dots);
        size_t bytes = ctl_text_fit(cell, width > dots_width ? width - dots_width : 0);
        _cleanup_(rig_freep) char *fitted = ctl_printf("%.*s%s", (int)bytes, cell, dots);
        size_t used = ctl_text_width(fitted), blanks = width > used ? width - used : 0;

        /* A wide character that did not fit leaves a blank as well. */
        fprintf(f, "%*s%s%*s", right ? (int)blanks : 0, "", fitted, right || last ? 0 : (int)blanks, "");
}

/* A line without its newline. The caller frees. */
static char *compose(const struct ctl_table *t, const struct layout *l, char *const *cells)
{
        char *line = NULL;
        size_t bytes, last = 0;
        FILE *f = open_memstream(&line, &bytes);
        bool first = true;

        if (!f)
                ctl_out_of_memory();
        for (size_t i = 0; i < t->n_columns; i++)
                last = l->shown[i] ? i : last;
        for (size_t i = 0; i < t->n_columns; i++) {
                const char *cell = cells ? cells[i] : t->columns[i].name;

                if (!l->shown[i])
                        continue;
                fprintf(f, "%*s", first ? 0 : GAP, "");
                write_cell(f, *cell ? cell : "-", l->width[i], t->columns[i].right, i == last);
                first = false;
        }
        if (fclose(f) != 0)
                ctl_out_of_memory();
        return line;
}

static void write_line(FILE *f, const struct ctl_screen *screen, char *line, const char *escape)
{
        size_t bytes = ctl_text_fit(line, screen->columns);

        if (screen->colour && escape)
                fprintf(f, "%s%.*s%s\n", escape, (int)bytes, line, ESCAPE_PLAIN);
        else
                fprintf(f, "%.*s\n", (int)bytes, line);
        free(line);
}

void ctl_table_write(struct ctl_table *table, FILE *f, const struct ctl_screen *screen, bool heads)
{
        struct layout l;

        lay_out(table, screen->columns, heads, &l);
        if (heads)
                write_line(f, screen, compose(table, &l, NULL), ESCAPE_HEADS);
        for (size_t row = 0; row < table->n_cells / table->n_columns; row++)
                write_line(f, screen, compose(table, &l, table->cells + row * table->n_columns),
                        table->warned[row] ? ESCAPE_WARN : NULL);
}

void ctl_block_line(FILE *f, int width, const char *key, char *value)
{
        if (*value)
                fprintf(f, "%*s: %s\n", width, key, value);
        free(value);
}
