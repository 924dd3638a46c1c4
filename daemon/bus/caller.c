/* SPDX-License-Identifier: ISC */
/*
 * Learns when somebody leaves the bus.
 *
 * sd_bus_track does the same, and waits for an answer of the bus while it starts, which the core loop may
 * not. The bus handles what it is sent in order: it watches first and then says whether the name is still
 * there, so that a name that goes in between is seen by one of the two.
 */
#include <stdio.h>

#include "daemon/bus/internal.h"

#define DBUS      "org.freedesktop.DBus"
#define DBUS_PATH "/org/freedesktop/DBus"

static void leave(struct rig_bus_caller *caller)
{
        void (*gone)(void *) = caller->gone;
        void *userdata = caller->userdata;

        rig_bus_caller_forget(caller);
        gone(userdata);
}

static int owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        const char *name, *from, *to;
        int r = sd_bus_message_read(m, "sss", &name, &from, &to);

        if (r >= 0 && !*to)
                leave(userdata);
        return 0;
}

/* Whoever cannot be watched is taken for gone: nothing would end what it started. */
static int answered(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        if (sd_bus_message_is_method_error(m, NULL))
                leave(userdata);
        return 0;
}

int rig_bus_caller_watch(sd_bus *bus, const char *name, void (*gone)(void *userdata), void *userdata,
        struct rig_bus_caller *ret_caller)
{
        struct rig_bus_caller *c = ret_caller;
        char match[512];
        int n, r;

        n = snprintf(match, sizeof(match),
                "type='signal',sender='" DBUS "',path='" DBUS_PATH "',interface='" DBUS
                "',member='NameOwnerChanged',arg0='%s'",
                name);
        *c = (struct rig_bus_caller){0};
        if (n >= (int)sizeof(match))
                return -ENAMETOOLONG;
        c->gone = gone;
        c->userdata = userdata;
        r = sd_bus_add_match_async(bus, &c->match, match, owner_changed, answered, c);
        if (r >= 0)
                r = sd_bus_call_method_async(
                        bus, &c->owner, DBUS, DBUS_PATH, DBUS, "GetNameOwner", answered, c, "s", name);
        if (r < 0)
                rig_bus_caller_forget(c);
        return r;
}

void rig_bus_caller_forget(struct rig_bus_caller *caller)
{
        caller->match = sd_bus_slot_unref(caller->match);
        caller->owner = sd_bus_slot_unref(caller->owner);
}
