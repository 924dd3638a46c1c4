/* SPDX-License-Identifier: ISC */
/*
 * Users' names, and orders of lists. The property UID sorts by the user's name, any other by what it is:
 * numbers by value, texts by their bytes. A list that a newer rigd gives other types sorts by Number alone.
 */
#include "tools/rigctl/people.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "tools/rigctl/rigctl.h"
#include "tools/rigctl/text.h"

#define USERS_KEPT 64 /* a directory of users may be far away */

const char *ctl_user_name(uint64_t uid)
{
        static struct {
                uint64_t uid;
                char *name;
        } kept[USERS_KEPT];
        static size_t next;
        const struct passwd *user;
        size_t slot;

        for (size_t i = 0; i < USERS_KEPT; i++)
                if (kept[i].name && kept[i].uid == uid)
                        return kept[i].name;
        slot = next++ % USERS_KEPT;
        user = uid < UINT32_MAX ? getpwuid((uid_t)uid) : NULL;
        free(kept[slot].name);
        kept[slot].uid = uid;
        kept[slot].name = user ? ctl_text_clean(user->pw_name) : ctl_printf("%" PRIu64, uid);
        return kept[slot].name;
}

int ctl_order_find(
        const struct ctl_order *orders, size_t n, const char *name, const struct ctl_order **ret_order)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(name);
        _cleanup_(rig_freep) char *names = NULL;
        size_t bytes;
        FILE *f;

        for (size_t i = 0; i < n; i++)
                if (strcmp(orders[i].name, name) == 0) {
                        *ret_order = &orders[i];
                        return CTL_DONE;
                }
        f = open_memstream(&names, &bytes);
        if (!f)
                ctl_out_of_memory();
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s", i ? ", " : "", orders[i].name);
        if (fclose(f) != 0)
                ctl_out_of_memory();
        return ctl_fail(CTL_WRONG, "--sort: there is no \"%s\"; there are: %s", clean, names);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

struct sorting {
        const char *property;
        bool descends;
};

static int compare_by(const struct ctl_value *a, const struct ctl_value *b, const char *property)
{
        const struct ctl_value *x = ctl_value_find(a, property), *y = ctl_value_find(b, property);

        if (strcmp(property, "UID") == 0)
                return strcmp(ctl_user_name(ctl_value_number(a, property)),
                        ctl_user_name(ctl_value_number(b, property)));
        if (!x || !y || x->kind != y->kind)
                return 0;
        if (x->kind == CTL_NUMBER)
                return compare_numbers(x->number, y->number);
        if (x->kind == CTL_REAL)
                return (x->real > y->real) - (x->real < y->real);
        return x->kind == CTL_TEXT ? strcmp(x->text, y->text) : 0;
}

static int compare(const void *a, const void *b, void *data)
{
        const struct sorting *s = data;
        int r = compare_by(a, b, s->property);

        if (r != 0)
                return s->descends ? -r : r;
        return compare_numbers(ctl_value_number(a, "Number"), ctl_value_number(b, "Number"));
}

void ctl_order_sort(struct ctl_value *list, const struct ctl_order *order, bool reverse)
{
        struct sorting s = {order->property, (order->direction == CTL_DESCENDS) != reverse};

        if (list->n)
                qsort_r(list->items, list->n, sizeof(*list->items), compare, &s);
}
