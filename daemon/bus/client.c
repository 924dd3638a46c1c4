/* SPDX-License-Identifier: ISC */
/*
 * Clients on the bus. They come and go without a signal: whoever watches them lists them again, which costs
 * the core one message, while a signal for each would let programs that connect in a row make work for all
 * who listen.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/bus/internal.h"
#include "daemon/client.h"

#define AT(member) offsetof(struct rig_client, member)
#define NODES_MAX  256u /* that introspection tells of */

struct rig_client *rig_bus_find_client(const struct rig_core *core, uint64_t number)
{
        rig_list_for_each (l, &core->clients) {
                struct rig_client *c = rig_list_entry(l, struct rig_client, link);

                if (c->number == number)
                        return c;
        }
        return NULL;
}

struct rig_client *rig_bus_need_client(const struct rig_core *core, uint64_t number, sd_bus_error *error)
{
        struct rig_client *c = rig_bus_find_client(core, number);

        if (!c)
                sd_bus_error_setf(error, RIG_BUS_ERROR_NO_CLIENT,
                        "there is no client %" PRIu64 ": it has gone, or ListClients knows another number",
                        number);
        return c;
}

/* ---------------------------------------------------------------- properties */

static int get_command(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_client *c = userdata;
        char command[16];

        rig_process_command(c->pid, c->connected_boot_usec, command);
        return rig_bus_append_text(reply, command);
}

static int get_unit(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_client *c = userdata;
        char unit[RIG_UNIT_MAX];

        rig_process_unit(c->pid, c->connected_boot_usec, unit);
        return rig_bus_append_text(reply, unit);
}

static int get_transport(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_client *c = userdata;

        return rig_bus_append_text(reply, c->ring ? "ring" : c->words ? "words" : "socket");
}

static int get_live(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_client *c = userdata;
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < c->accounts.room; i++)
                if (c->accounts.slots[i])
                        bytes += ((const struct rig_account *)c->accounts.slots[i])->share.live_bytes;
        return sd_bus_message_append(reply, "t", bytes);
}

static int get_cached(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_client *c = userdata;
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < c->accounts.room; i++)
                if (c->accounts.slots[i])
                        bytes += ((const struct rig_account *)c->accounts.slots[i])->cache.bytes;
        return sd_bus_message_append(reply, "t", bytes);
}

static int get_busy(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_client *c = userdata;

        rig_core_count_usage(c->core);
        return sd_bus_message_append(reply, "t", c->usage.busy_nsec / RIG_NSEC_PER_USEC);
}

const sd_bus_vtable rig_bus_client_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Number", "t", NULL, AT(number), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("PID", "u", NULL, AT(pid), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("UID", "u", NULL, AT(uid), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Command", "s", get_command, 0, 0),
        SD_BUS_PROPERTY("Unit", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("Library", "s", rig_bus_get_text, AT(library), 0),
        SD_BUS_PROPERTY("Transport", "s", get_transport, 0, 0),
        SD_BUS_PROPERTY("ConnectedUSec", "t", NULL, AT(connected_usec), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Devices", "u", NULL, AT(devices.n), 0),
        SD_BUS_PROPERTY("Objects", "t", NULL, AT(n_objects), 0),
        SD_BUS_PROPERTY("ObjectsMax", "t", NULL, AT(limits.objects), 0),
        SD_BUS_PROPERTY("LiveBytes", "t", get_live, 0, 0),
        SD_BUS_PROPERTY("MemoryMax", "t", NULL, AT(limits.memory), 0),
        SD_BUS_PROPERTY("CachedBytes", "t", get_cached, 0, 0),
        SD_BUS_PROPERTY("CacheMax", "t", NULL, AT(limits.cache), 0),
        SD_BUS_PROPERTY("RunsInFlight", "t", NULL, AT(runs), 0),
        SD_BUS_PROPERTY("RunsMax", "t", NULL, AT(limits.runs), 0),
        SD_BUS_PROPERTY("UnreadBytes", "t", NULL, AT(outbox_bytes), 0),
        SD_BUS_PROPERTY("QueueMax", "t", NULL, AT(limits.queue), 0),
        SD_BUS_PROPERTY("RunsReached", "t", NULL, AT(usage.reached), 0),
        SD_BUS_PROPERTY("RunsFailed", "t", NULL, AT(usage.failed), 0),
        SD_BUS_PROPERTY("CopiedBytes", "t", NULL, AT(usage.copied_bytes), 0),
        SD_BUS_PROPERTY("BusyUSec", "t", get_busy, 0, 0),
        SD_BUS_VTABLE_END,
};

/* ---------------------------------------------------------------- paths */

/* The number that a path ends with, as it is written here: one client has one path. */
static bool parse_path(const char *path, uint64_t *ret_number)
{
        char again[sizeof(RIG_BUS_CLIENT) + 24];
        const char *last = strrchr(path, '/');

        *ret_number = strtoull(last + 1, NULL, 10);
        snprintf(again, sizeof(again), RIG_BUS_CLIENT "/%" PRIu64, *ret_number);
        return strcmp(again, path) == 0;
}

static int find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
        sd_bus_error *error)
{
        struct rig_bus *b = userdata;
        uint64_t number;

        *ret_found = parse_path(path, &number) ? rig_bus_find_client(b->core, number) : NULL;
        return !!*ret_found;
}

static int enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes, sd_bus_error *error)
{
        struct rig_bus *b = userdata;
        char **nodes = calloc(RIG_MIN(b->core->n_clients, NODES_MAX) + 1, sizeof(*nodes));
        size_t n = 0;

        if (!nodes)
                return -ENOMEM;
        rig_list_for_each (l, &b->core->clients) {
                if (n == RIG_MIN(b->core->n_clients, NODES_MAX))
                        break;
                if (asprintf(&nodes[n], RIG_BUS_CLIENT "/%" PRIu64,
                            rig_list_entry(l, struct rig_client, link)->number) < 0)
                        break;
                n++;
        }
        nodes[n] = NULL;
        *ret_nodes = nodes; /* sd-bus frees them */
        return 1;
}

int rig_bus_add_clients(struct rig_bus *bus)
{
        int r = sd_bus_add_fallback_vtable(
                bus->bus, NULL, RIG_BUS_CLIENT, RIG_BUS_NAME ".Client", rig_bus_client_table, find, bus);

        return r < 0 ? r : sd_bus_add_node_enumerator(bus->bus, NULL, RIG_BUS_CLIENT, enumerate, bus);
}
