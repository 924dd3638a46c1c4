/* SPDX-License-Identifier: ISC */
/*
 * The lists of adapters, clients and devices. A table is its columns and a function that fills a row from a
 * map; which columns fit is the table's business. Sizes are for people here; --json has every number as it
 * came.
 */
#include "tools/rigctl/lists.h"

#include <stdio.h>
#include <string.h>

#include "tools/rigctl/bus.h"
#include "tools/rigctl/people.h"
#include "tools/rigctl/table.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"

/* ---------------------------------------------------------------- adapters */

char *ctl_adapter_trouble(const struct ctl_value *adapter)
{
        const char *reason = ctl_value_text(adapter, "Reason");

        return ctl_text_clean(*reason ? reason : ctl_value_text(adapter, "Unavailable"));
}

char *ctl_adapter_state(const struct ctl_value *adapter)
{
        if (*ctl_value_text(adapter, "Unavailable"))
                return ctl_copy("unavailable");
        return ctl_value_clean(adapter, "State");
}

static const struct ctl_column adapter_columns[] = {
        {"NAME", .at_least = 12},
        {"DRIVER", .extra = 2, .at_least = 8},
        {"STATE", .at_least = 11},
        {"DEVICES", .right = true},
        {"BYTES", .right = true},
        {"BUDGET", .right = true},
        {"CACHED", .right = true, .extra = 1},
        {"ABOUT", .at_least = 12},
};

static void add_adapter(struct ctl_table *table, const struct ctl_value *adapter)
{
        char *trouble = ctl_adapter_trouble(adapter);
        bool warn = *trouble != '\0';

        if (!warn) {
                free(trouble);
                trouble = ctl_value_clean(adapter, "About");
        }
        ctl_table_add(table, ctl_value_clean(adapter, "Name"));
        ctl_table_add(table, ctl_value_clean(adapter, "Driver"));
        ctl_table_add(table, ctl_adapter_state(adapter));
        ctl_table_add(table, ctl_count(ctl_value_number(adapter, "Devices")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "LiveBytes")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "BudgetBytes")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "CachedBytes")));
        ctl_table_add(table, trouble);
        if (warn)
                ctl_table_warn(table);
}

/* "3 clients listed." below a table, as it is asked for. */
static void count(const struct ctl *c, size_t n, const char *one)
{
        if (c->legend && n == 0)
                printf("No %ss.\n", one);
        else if (c->legend)
                printf("\n%zu %s%s listed.\n", n, one, n == 1 ? "" : "s");
}

int ctl_verb_list(struct ctl *c, char **args)
{
        _cleanup_(ctl_value_deinit) struct ctl_value list = {0};
        _cleanup_(ctl_table_deinit) struct ctl_table table;
        int r;

        ctl_table_init(&table, adapter_columns, RIG_ARRAY_SIZE(adapter_columns));
        r = ctl_bus_adapters(c, false, &list);
        if (r != CTL_DONE || ctl_wrote_json(c, &list))
                return r;
        for (size_t i = 0; i < list.n; i++)
                add_adapter(&table, &list.items[i]);
        ctl_table_write(&table, stdout, &c->screen, c->legend && list.n);
        count(c, list.n, "adapter");
        return CTL_DONE;
}

/* ---------------------------------------------------------------- clients */

static const struct ctl_column client_columns[] = {
        {"NUMBER", .right = true},
        {"PID", .right = true},
        {"USER", .at_least = 8},
        {"UNIT/COMMAND", .at_least = 12},
        {"COMMAND", .extra = 4},
        {"DEVICES", .right = true, .extra = 2},
        {"OBJECTS", .right = true},
        {"BYTES", .right = true},
        {"CACHED", .right = true, .extra = 3},
        {"RUNS", .right = true},
        {"DONE", .right = true, .extra = 5},
        {"COPIED", .right = true, .extra = 1},
        {"DEVICE-TIME", .right = true},
};

static const struct ctl_order client_orders[] = {
        {"number", 0, "Number", CTL_ASCENDS},
        {"pid", 0, "PID", CTL_ASCENDS},
        {"user", 0, "UID", CTL_ASCENDS},
        {"unit", 0, "Unit", CTL_ASCENDS},
        {"command", 0, "Command", CTL_ASCENDS},
        {"devices", 0, "Devices", CTL_DESCENDS},
        {"objects", 0, "Objects", CTL_DESCENDS},
        {"bytes", 0, "LiveBytes", CTL_DESCENDS},
        {"runs", 0, "RunsInFlight", CTL_DESCENDS},
        {"time", 0, "BusyUSec", CTL_DESCENDS},
        {"copied", 0, "CopiedBytes", CTL_DESCENDS},
};

char *ctl_client_origin(const struct ctl_value *client)
{
        const char *unit = ctl_value_text(client, "Unit");

        return ctl_text_clean(*unit ? unit : ctl_value_text(client, "Command"));
}

static void add_client(struct ctl_table *table, const struct ctl_value *client)
{
        ctl_table_add(table, ctl_count(ctl_value_number(client, "Number")));
        ctl_table_add(table, ctl_count(ctl_value_number(client, "PID")));
        ctl_table_add(table, ctl_copy(ctl_user_name(ctl_value_number(client, "UID"))));
        ctl_table_add(table, ctl_client_origin(client));
        ctl_table_add(table, ctl_value_clean(client, "Command"));
        ctl_table_add(table, ctl_count(ctl_value_number(client, "Devices")));
        ctl_table_add(table, ctl_count(ctl_value_number(client, "Objects")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(client, "LiveBytes")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(client, "CachedBytes")));
        ctl_table_add(table, ctl_count(ctl_value_number(client, "RunsInFlight")));
        ctl_table_add(table, ctl_count(ctl_value_number(client, "RunsReached")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(client, "CopiedBytes")));
        ctl_table_add(table, ctl_span(ctl_value_number(client, "BusyUSec")));
}

int ctl_verb_clients(struct ctl *c, char **args)
{
        _cleanup_(ctl_value_deinit) struct ctl_value list = {0};
        _cleanup_(ctl_table_deinit) struct ctl_table table;
        const struct ctl_order *order = &client_orders[0];
        int r = CTL_DONE;

        ctl_table_init(&table, client_columns, RIG_ARRAY_SIZE(client_columns));
        if (c->sort)
                r = ctl_order_find(client_orders, RIG_ARRAY_SIZE(client_orders), c->sort, &order);
        if (r == CTL_DONE)
                r = ctl_bus_clients(c, false, &list);
        if (r != CTL_DONE)
                return r;
        ctl_order_sort(&list, order, c->reverse);
        if (ctl_wrote_json(c, &list))
                return CTL_DONE;
        for (size_t i = 0; i < list.n; i++)
                add_client(&table, &list.items[i]);
        ctl_table_write(&table, stdout, &c->screen, c->legend && list.n);
        count(c, list.n, "client");
        return CTL_DONE;
}

/* ---------------------------------------------------------------- devices */

static const struct ctl_column device_columns[] = {
        {"DEVICE", .right = true},
        {"CLIENT", .right = true},
        {"ID", .right = true, .extra = 4},
        {"NAME", .at_least = 12},
        {"ADAPTER", .at_least = 8, .extra = 2},
        {"ARCH", .extra = 3},
        {"QUEUES", .right = true, .extra = 5},
        {"SUBMITTED", .right = true},
        {"REACHED", .right = true},
        {"FAILED", .right = true},
        {"COPIED", .right = true, .extra = 1},
        {"DEVICE-TIME", .right = true},
        {"STATE", .at_least = 12},
};

static void add_device(struct ctl_table *table, const struct ctl_value *device)
{
        _cleanup_(rig_freep) char *reason = ctl_value_clean(device, "Reason");
        bool lost = ctl_value_truth(device, "Lost");

        ctl_table_add(table, ctl_count(ctl_value_number(device, "Number")));
        ctl_table_add(table, ctl_count(ctl_value_number(device, "Client")));
        ctl_table_add(table, ctl_count(ctl_value_number(device, "Id")));
        ctl_table_add(table, ctl_value_clean(device, "Name"));
        ctl_table_add(table, ctl_value_clean(device, "Adapter"));
        ctl_table_add(table, ctl_value_clean(device, "Arch"));
        ctl_table_add(table, ctl_count(ctl_value_number(device, "Queues")));
        ctl_table_add(table, ctl_count(ctl_value_number(device, "Submitted")));
        ctl_table_add(table, ctl_count(ctl_value_number(device, "Reached")));
        ctl_table_add(table, ctl_count(ctl_value_number(device, "Failed")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(device, "CopiedBytes")));
        ctl_table_add(table, ctl_span(ctl_value_number(device, "BusyUSec")));
        ctl_table_add(table, lost ? ctl_printf("lost%s%s", *reason ? ": " : "", reason) : ctl_copy("works"));
        if (lost)
                ctl_table_warn(table);
}

void ctl_list_devices(struct ctl *c, const struct ctl_value *devices)
{
        _cleanup_(ctl_table_deinit) struct ctl_table table;

        ctl_table_init(&table, device_columns, RIG_ARRAY_SIZE(device_columns));
        if (devices->n == 0)
                return;
        for (size_t i = 0; i < devices->n; i++)
                add_device(&table, &devices->items[i]);
        putchar('\n');
        ctl_table_write(&table, stdout, &c->screen, c->legend);
}
