/* SPDX-License-Identifier: ISC */
/*
 * What goes into messages: texts, dictionaries, errors.
 *
 * A program names its devices and its process as it likes. A bus ends a connection that sends text that is
 * no UTF-8, and a terminal obeys control characters; neither reaches them through here.
 */
#include <string.h>

#include "daemon/bus/internal.h"

#define TEXT_MAX 1024 /* more than any text here has */

/* Bytes of the character that `s` starts with, and whether it can be shown; 1 where it is none. */
static size_t character(const char *s, bool *ret_shown)
{
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        const uint8_t *u = (const uint8_t *)s;
        size_t n = u[0] < 0x80   ? 1
                   : u[0] < 0xc0 ? 0
                   : u[0] < 0xe0 ? 2
                   : u[0] < 0xf0 ? 3
                   : u[0] < 0xf8 ? 4
                                 : 0;
        uint32_t c = n == 1 ? u[0] : n ? u[0] & (0xffu >> (n + 1)) : 0;

        *ret_shown = false;
        for (size_t i = 1; i < n; i++) {
                if ((u[i] & 0xc0) != 0x80)
                        return 1; /* the NUL at the end, too */
                c = c << 6 | (u[i] & 0x3f);
        }
        if (!n || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return 1;
        *ret_shown = c >= 0x20 && (c < 0x7f || c >= 0xa0);
        return n;
}

int rig_bus_append_text(sd_bus_message *m, const char *text)
{
        char clean[TEXT_MAX];
        size_t at = 0;

        while (*text && at + 4 < sizeof(clean)) {
                bool shown;
                size_t n = character(text, &shown);

                if (shown)
                        memcpy(clean + at, text, n);
                else
                        clean[at] = '?';
                at += shown ? n : 1;
                text += n;
        }
        clean[at] = '\0';
        return sd_bus_message_append_basic(m, 's', clean);
}

int rig_bus_get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        return rig_bus_append_text(reply, userdata);
}

static int append_property(sd_bus_message *m, const sd_bus_vtable *row, void *object)
{
        void *userdata = (char *)object + row->x.property.offset;
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', row->x.property.member);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', row->x.property.signature);
        if (r < 0)
                return r;
        if (row->x.property.get)
                r = row->x.property.get(
                        sd_bus_message_get_bus(m), NULL, NULL, row->x.property.member, m, userdata, NULL);
        else
                r = sd_bus_message_append_basic(m, row->x.property.signature[0], userdata);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int rig_bus_append_properties(sd_bus_message *m, const sd_bus_vtable *table, void *object)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (; r >= 0 && table->type != _SD_BUS_VTABLE_END; table++)
                if (table->type == _SD_BUS_VTABLE_PROPERTY)
                        r = append_property(m, table, object);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int rig_bus_fail(sd_bus_error *error, int r, const struct rig_error *e)
{
        return sd_bus_error_set_errnof(error, r, "%s", e && e->code ? e->text : strerror(-r));
}
