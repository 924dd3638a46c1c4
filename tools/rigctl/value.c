/* SPDX-License-Identifier: ISC */
/*
 * Values. Reading follows the types that a message says it has and knows no interface, so that a property
 * which a newer rigd adds is in --json without a change here. Messages nest at most 64 deep (the D-Bus
 * specification), which bounds the recursion.
 *
 * A rigd may lack what this rigctl knows of: looking for it then finds "", 0 or false, and no error.
 */
#include "tools/rigctl/value.h"

#include <inttypes.h>
#include <string.h>

#include "tools/rigctl/text.h"

void ctl_value_deinit(struct ctl_value *value)
{
        if (value->kind == CTL_TEXT)
                free(value->text);
        if (value->kind == CTL_LIST || value->kind == CTL_MAP) {
                for (size_t i = 0; i < value->n; i++) {
                        ctl_value_deinit(&value->items[i]);
                        if (value->keys)
                                free(value->keys[i]);
                }
                free(value->items);
                free(value->keys);
        }
        *value = (struct ctl_value){0};
}

struct ctl_value *ctl_value_add(struct ctl_value *to, const char *key)
{
        if (to->n == to->room) {
                to->room = RIG_MAX(to->room * 2, (size_t)8);
                to->items = ctl_grow(to->items, to->room, sizeof(*to->items));
                if (to->kind == CTL_MAP)
                        to->keys = ctl_grow(to->keys, to->room, sizeof(*to->keys));
        }
        if (to->kind == CTL_MAP)
                to->keys[to->n] = ctl_copy(key);
        to->items[to->n] = (struct ctl_value){0};
        return &to->items[to->n++];
}

void ctl_value_add_number(struct ctl_value *map, const char *key, uint64_t number)
{
        *ctl_value_add(map, key) = (struct ctl_value){.kind = CTL_NUMBER, .number = number};
}

void ctl_value_add_real(struct ctl_value *map, const char *key, double real)
{
        *ctl_value_add(map, key) = (struct ctl_value){.kind = CTL_REAL, .real = real};
}

void ctl_value_move(struct ctl_value *map, const char *key, struct ctl_value *value)
{
        *ctl_value_add(map, key) = *value;
        *value = (struct ctl_value){0};
}

void ctl_value_join(struct ctl_value *to, struct ctl_value *from)
{
        for (size_t i = 0; i < from->n; i++) {
                *ctl_value_add(to, NULL) = from->items[i];
                from->items[i] = (struct ctl_value){0};
        }
        ctl_value_deinit(from);
}

/* ---------------------------------------------------------------- reading */

static int read_basic(sd_bus_message *m, char type, struct ctl_value *v)
{
        union {
                uint8_t y;
                int b;
                int16_t n;
                uint16_t q;
                int32_t i;
                uint32_t u;
                int64_t x;
                uint64_t t;
                double d;
                const char *s;
        } raw = {0};
        int r;

        if (type == SD_BUS_TYPE_UNIX_FD)
                return sd_bus_message_skip(m, "h"); /* a descriptor has no text */
        r = sd_bus_message_read_basic(m, type, &raw);
        if (r < 0)
                return r;
        switch (type) {
        case SD_BUS_TYPE_BOOLEAN:
                *v = (struct ctl_value){.kind = CTL_TRUTH, .truth = raw.b};
                break;
        case SD_BUS_TYPE_BYTE:
        case SD_BUS_TYPE_UINT16:
        case SD_BUS_TYPE_UINT32:
        case SD_BUS_TYPE_UINT64:
                *v = (struct ctl_value){.kind = CTL_NUMBER,
                        .number = type == 'y'   ? raw.y
                                  : type == 'q' ? raw.q
                                  : type == 'u' ? raw.u
                                                : raw.t};
                break;
        case SD_BUS_TYPE_INT16:
        case SD_BUS_TYPE_INT32:
        case SD_BUS_TYPE_INT64:
                *v = (struct ctl_value){.kind = CTL_SIGNED,
                        .integer = type == 'n'   ? raw.n
                                   : type == 'i' ? raw.i
                                                 : raw.x};
                break;
        case SD_BUS_TYPE_DOUBLE:
                *v = (struct ctl_value){.kind = CTL_REAL, .real = raw.d};
                break;
        default:
                *v = (struct ctl_value){.kind = CTL_TEXT, .text = ctl_copy(raw.s)};
        }
        return 0;
}

/* A key of a map; one that is a number is written as its digits. */
static int read_key(sd_bus_message *m, char **ret_key)
{
        struct ctl_value key = {0};
        int r = ctl_value_read(m, &key);

        if (r < 0)
                return r;
        if (key.kind == CTL_TEXT)
                *ret_key = key.text;
        else if (key.kind == CTL_SIGNED)
                *ret_key = ctl_printf("%" PRId64, key.integer);
        else
                *ret_key = ctl_printf("%" PRIu64, key.kind == CTL_NUMBER ? key.number : key.truth);
        return 0;
}

static int read_entry(sd_bus_message *m, struct ctl_value *map)
{
        _cleanup_(rig_freep) char *key = NULL;
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, type, contents);
        if (r >= 0)
                r = read_key(m, &key);
        if (r >= 0)
                r = ctl_value_read(m, ctl_value_add(map, key));
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* What is inside a container that was entered: the entries of a map, else the items of a list. */
static int read_items(sd_bus_message *m, struct ctl_value *v)
{
        for (;;) {
                int r = sd_bus_message_at_end(m, false);

                if (r != 0)
                        return r < 0 ? r : 0;
                r = v->kind == CTL_MAP ? read_entry(m, v) : ctl_value_read(m, ctl_value_add(v, NULL));
                if (r < 0)
                        return r;
        }
}

int ctl_value_read(sd_bus_message *m, struct ctl_value *ret_value)
{
        struct ctl_value v = {0};
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (!contents)
                return read_basic(m, type, ret_value);
        r = sd_bus_message_enter_container(m, type, contents);
        if (r < 0)
                return r;
        if (type == SD_BUS_TYPE_VARIANT) {
                r = ctl_value_read(m, &v);
        } else {
                v.kind = type == SD_BUS_TYPE_ARRAY && contents[0] == '{' ? CTL_MAP : CTL_LIST;
                r = read_items(m, &v);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0) {
                ctl_value_deinit(&v);
                return r;
        }
        *ret_value = v;
        return 0;
}

/* ---------------------------------------------------------------- finding */

const struct ctl_value *ctl_value_find(const struct ctl_value *map, const char *key)
{
        for (size_t i = 0; map->kind == CTL_MAP && i < map->n; i++)
                if (strcmp(map->keys[i], key) == 0)
                        return &map->items[i];
        return NULL;
}

const char *ctl_value_text(const struct ctl_value *map, const char *key)
{
        const struct ctl_value *v = ctl_value_find(map, key);

        return v && v->kind == CTL_TEXT ? v->text : "";
}

uint64_t ctl_value_number(const struct ctl_value *map, const char *key)
{
        const struct ctl_value *v = ctl_value_find(map, key);

        return v && v->kind == CTL_NUMBER ? v->number : 0;
}

bool ctl_value_truth(const struct ctl_value *map, const char *key)
{
        const struct ctl_value *v = ctl_value_find(map, key);

        return v && v->kind == CTL_TRUTH && v->truth;
}

char *ctl_value_clean(const struct ctl_value *map, const char *key)
{
        return ctl_text_clean(ctl_value_text(map, key));
}
