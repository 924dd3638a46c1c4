/* SPDX-License-Identifier: ISC */
/*
 * What ListDevices tells of a device. Devices are no objects: there are many, they are short-lived, and
 * nobody does anything to one. A table makes them dictionaries as it does the others.
 */
#include "base/clock.h"
#include "daemon/bus/internal.h"
#include "daemon/client.h"

#define AT(member) offsetof(struct rig_device, member)

static int get_client(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_device *d = userdata;

        return sd_bus_message_append(reply, "t", d->client ? d->client->number : 0);
}

static int get_adapter(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_device *d = userdata;

        return rig_bus_append_text(reply, d->adapter->driver.name);
}

static int get_submitted(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_device *d = userdata;

        return sd_bus_message_append(reply, "t", d->timeline->submitted);
}

static int get_handed(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_device *d = userdata;

        return sd_bus_message_append(reply, "t", d->timeline->handed);
}

static int get_reached(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_device *d = userdata;

        return sd_bus_message_append(reply, "t", d->timeline->reached);
}

static int get_busy(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        struct rig_device *d = userdata;

        rig_device_count_busy(d, rig_now_nsec());
        return sd_bus_message_append(reply, "t", d->usage.busy_nsec / RIG_NSEC_PER_USEC);
}

static int get_lost(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_device *d = userdata;

        return sd_bus_message_append(reply, "b", d->lost);
}

const sd_bus_vtable rig_bus_device_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Number", "u", NULL, AT(number), 0),
        SD_BUS_PROPERTY("Client", "t", get_client, 0, 0),
        SD_BUS_PROPERTY("Id", "u", NULL, AT(id), 0),
        SD_BUS_PROPERTY("Name", "s", rig_bus_get_text, AT(name), 0),
        SD_BUS_PROPERTY("Adapter", "s", get_adapter, 0, 0),
        SD_BUS_PROPERTY("Arch", "s", rig_bus_get_text, AT(driver.facts.arch), 0),
        SD_BUS_PROPERTY("Queues", "u", NULL, AT(driver.facts.n_queues), 0),
        SD_BUS_PROPERTY("Submitted", "t", get_submitted, 0, 0),
        SD_BUS_PROPERTY("Handed", "t", get_handed, 0, 0),
        SD_BUS_PROPERTY("Reached", "t", get_reached, 0, 0),
        SD_BUS_PROPERTY("Failed", "t", NULL, AT(usage.failed), 0),
        SD_BUS_PROPERTY("CopiedBytes", "t", NULL, AT(usage.copied_bytes), 0),
        SD_BUS_PROPERTY("BusyUSec", "t", get_busy, 0, 0),
        SD_BUS_PROPERTY("Lost", "b", get_lost, 0, 0),
        SD_BUS_PROPERTY("Reason", "s", rig_bus_get_text, AT(reason), 0),
        SD_BUS_VTABLE_END,
};
