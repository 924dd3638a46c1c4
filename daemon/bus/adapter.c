/* SPDX-License-Identifier: ISC */
/*
 * Adapters on the bus. They are there as long as rigd is; State, Reason and Unavailable tell their changes.
 * The counts do not: whoever wants them asks.
 */
#include <string.h>

#include "base/clock.h"
#include "daemon/adapter.h"
#include "daemon/bus/internal.h"
#include "daemon/device.h"

#define AT(member) offsetof(struct rig_adapter, member)

static int get_driver(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_adapter *a = userdata;

        return rig_bus_append_text(reply, a->driver.driver->name);
}

static int get_state(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_adapter *a = userdata;

        return rig_bus_append_text(reply, rig_adapter_state_to_string(a->state));
}

/* A device of files has no budget: it is as far as an offset goes. */
static int get_budget(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_adapter *a = userdata;

        return sd_bus_message_append(
                reply, "t", a->budget.limit_bytes < INT64_MAX ? a->budget.limit_bytes : UINT64_MAX);
}

static int get_busy(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_adapter *a = userdata;

        rig_core_count_usage(a->core);
        return sd_bus_message_append(reply, "t", a->usage.busy_nsec / RIG_NSEC_PER_USEC);
}

const sd_bus_vtable rig_bus_adapter_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", rig_bus_get_text, AT(driver.name), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Driver", "s", get_driver, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("About", "s", rig_bus_get_text, AT(driver.about), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Reason", "s", rig_bus_get_text, AT(reason), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Unavailable", "s", rig_bus_get_text, AT(driver.unavailable),
                SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("BudgetBytes", "t", get_budget, 0, 0),
        SD_BUS_PROPERTY("LiveBytes", "t", NULL, AT(budget.live_bytes), 0),
        SD_BUS_PROPERTY("CachedBytes", "t", NULL, AT(budget.cached_bytes), 0),
        SD_BUS_PROPERTY("Devices", "u", NULL, AT(n_devices), 0),
        SD_BUS_PROPERTY("RunsReached", "t", NULL, AT(usage.reached), 0),
        SD_BUS_PROPERTY("RunsFailed", "t", NULL, AT(usage.failed), 0),
        SD_BUS_PROPERTY("CopiedBytes", "t", NULL, AT(usage.copied_bytes), 0),
        SD_BUS_PROPERTY("BusyUSec", "t", get_busy, 0, 0),
        SD_BUS_VTABLE_END,
};

static struct rig_adapter *by_name(const struct rig_core *core, const char *name)
{
        rig_list_for_each (l, &core->adapters) {
                struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);

                if (strcmp(a->driver.name, name) == 0)
                        return a;
        }
        return NULL;
}

static int find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
        sd_bus_error *error)
{
        struct rig_bus *b = userdata;
        _cleanup_(rig_freep) char *name = NULL;
        int r = sd_bus_path_decode(path, RIG_BUS_ADAPTER, &name);

        if (r <= 0)
                return r;
        *ret_found = by_name(b->core, name);
        return !!*ret_found;
}

static int enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes, sd_bus_error *error)
{
        struct rig_bus *b = userdata;
        size_t n = 0, i = 0;
        char **nodes;

        rig_list_for_each (l, &b->core->adapters)
                n++;
        nodes = calloc(n + 1, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;
        rig_list_for_each (l, &b->core->adapters) {
                struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);

                if (sd_bus_path_encode(RIG_BUS_ADAPTER, a->driver.name, &nodes[i]) >= 0)
                        i++;
        }
        *ret_nodes = nodes; /* sd-bus frees them */
        return 1;
}

static void changed(struct rig_adapter *adapter, void *userdata)
{
        struct rig_bus *b = userdata;
        _cleanup_(rig_freep) char *path = NULL;

        if (b->bus && sd_bus_is_ready(b->bus) > 0 &&
                sd_bus_path_encode(RIG_BUS_ADAPTER, adapter->driver.name, &path) >= 0)
                (void)sd_bus_emit_properties_changed(
                        b->bus, path, RIG_BUS_NAME ".Adapter", "State", "Reason", "Unavailable", NULL);
}

int rig_bus_add_adapters(struct rig_bus *bus)
{
        int r = sd_bus_add_fallback_vtable(
                bus->bus, NULL, RIG_BUS_ADAPTER, RIG_BUS_NAME ".Adapter", rig_bus_adapter_table, find, bus);

        bus->core->adapter_changed = changed;
        bus->core->adapter_changed_userdata = bus;
        return r < 0 ? r : sd_bus_add_node_enumerator(bus->bus, NULL, RIG_BUS_ADAPTER, enumerate, bus);
}
