/* SPDX-License-Identifier: ISC */
/*
 * org.freedesktop.LogControl1, so that `systemctl service-log-level rigd` works: the level is read and set,
 * the target only read, since rigd writes to standard error wherever that leads.
 *
 * sd-bus answers when a property's setter returns, and the setter cannot wait for polkit. So Set comes here
 * as a method call, ahead of the table.
 */
#include <string.h>

#include "daemon/bus/internal.h"
#include "daemon/log/log.h"

#define PATH       "/org/freedesktop/LogControl1"
#define INTERFACE  "org.freedesktop.LogControl1"
#define PROPERTIES "org.freedesktop.DBus.Properties"

static int get_level(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        return sd_bus_message_append(reply, "s", rig_log_level_to_string(rig_log_get_level()));
}

static int get_target(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        return sd_bus_message_append(reply, "s", getenv("JOURNAL_STREAM") ? "journal" : "console");
}

static int get_identifier(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        return sd_bus_message_append(reply, "s", "rigd");
}

/* The table's rows have to have one; the level's calls are taken before. */
static int set_target(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *value, void *userdata, sd_bus_error *error)
{
        return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED,
                "rigd logs to its standard error, and where that leads is its unit's StandardError=");
}

static const sd_bus_vtable table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_target, 0, RIG_BUS_ROW),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_target, set_target, 0, RIG_BUS_ROW),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

/* Reads a call that sets the level. Return: 0; or it is another one (1), or it is wrong, with a sentence. */
static int read_level(sd_bus_message *call, int *ret_level, sd_bus_error *error)
{
        const char *interface, *property, *name;
        int r;

        if (!sd_bus_message_is_method_call(call, PROPERTIES, "Set") ||
                !sd_bus_message_has_signature(call, "ssv"))
                return 1;
        r = sd_bus_message_read(call, "ss", &interface, &property);
        if (r < 0)
                return r;
        if (strcmp(interface, INTERFACE) != 0 || strcmp(property, "LogLevel") != 0)
                return 1;
        r = sd_bus_message_read(call, "v", "s", &name);
        if (r < 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "LogLevel is a string");
        *ret_level = rig_log_level_from_string(name);
        if (*ret_level < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                        "there is no level \"%.64s\": there are err, warning, notice, info and debug", name);
        return 0;
}

static int apply_level(struct rig_bus *bus, sd_bus_message *call, sd_bus_error *error)
{
        int level, r = read_level(call, &level, error);

        if (r < 0)
                return r;
        rig_log_set_level(level);
        return sd_bus_reply_method_return(call, NULL);
}

static int called(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        static const struct rig_bus_action action = {
                .id = "org.rig.rig1.set-log-level", .what = "set rigd's log level", .act = apply_level};
        int level, r = read_level(call, &level, error);

        if (r)
                return r < 0 ? r : 0; /* the table takes it */
        return rig_bus_authorize(userdata, call, &action, error);
}

int rig_bus_add_log_control(struct rig_bus *bus)
{
        int r = sd_bus_add_object(bus->bus, NULL, PATH, called, bus);

        return r < 0 ? r : sd_bus_add_object_vtable(bus->bus, NULL, PATH, INTERFACE, table, bus);
}
