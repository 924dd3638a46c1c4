/* SPDX-License-Identifier: ISC */
/*
 * The manager: what rigd as a whole has done, the lists, and what admins change.
 *
 * Lists are bounded, so that no message holds up the core loop for long: ListClients in number and, since it
 * reads /proc for each client, in time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/bus/internal.h"
#include "daemon/client.h"
#include "daemon/log/log.h"

#define CLIENTS_MAX  64u  /* of an answer */
#define CLIENTS_USEC 500u /* after which an answer takes no more */
#define DEVICES_MAX  256u

/* ---------------------------------------------------------------- lists */

/* An answer that is an array of dictionaries, open for them. */
static int new_list(sd_bus_message *call, sd_bus_message **ret_reply)
{
        int r = sd_bus_message_new_method_return(call, ret_reply);

        return r < 0 ? r : sd_bus_message_open_container(*ret_reply, 'a', "a{sv}");
}

static int send_list(sd_bus_message *reply)
{
        int r = sd_bus_message_close_container(reply);

        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int list_adapters(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct rig_bus *b = userdata;
        int r = new_list(call, &reply);

        rig_list_for_each (l, &b->core->adapters)
                if (r >= 0)
                        r = rig_bus_append_properties(
                                reply, rig_bus_adapter_table, rig_list_entry(l, struct rig_adapter, link));
        return r < 0 ? r : send_list(reply);
}

static int list_clients(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        uint64_t after, start_usec = rig_now_usec();
        struct rig_bus *b = userdata;
        unsigned n = 0;
        int r = sd_bus_message_read(call, "t", &after);

        if (r >= 0)
                r = new_list(call, &reply);
        /* They are in the order of their numbers: each was appended with the next one. */
        rig_list_for_each (l, &b->core->clients) {
                struct rig_client *c = rig_list_entry(l, struct rig_client, link);

                if (r < 0 || n == CLIENTS_MAX || (n && rig_now_usec() - start_usec > CLIENTS_USEC))
                        break;
                if (c->number <= after)
                        continue;
                r = rig_bus_append_properties(reply, rig_bus_client_table, c);
                n++;
        }
        return r < 0 ? r : send_list(reply);
}

/* One that opens or closes is its adapter's thread's. */
static int append_device(sd_bus_message *reply, struct rig_device *device, unsigned *n)
{
        if (!device || !device->open || *n == DEVICES_MAX)
                return 0;
        (*n)++;
        return rig_bus_append_properties(reply, rig_bus_device_table, device);
}

static int append_all_devices(sd_bus_message *reply, const struct rig_core *core)
{
        unsigned n = 0;
        int r = 0;

        rig_list_for_each (l, &core->adapters) {
                struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);

                rig_list_for_each (m, &a->devices) {
                        r = append_device(reply, rig_list_entry(m, struct rig_device, link), &n);
                        if (r < 0 || n == DEVICES_MAX)
                                return r;
                }
        }
        return r;
}

static int list_devices(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct rig_bus *b = userdata;
        struct rig_client *c = NULL;
        uint64_t number;
        unsigned n = 0;
        int r = sd_bus_message_read(call, "t", &number);

        if (r >= 0 && number) {
                c = rig_bus_need_client(b->core, number, error);
                if (!c)
                        return -ENOENT;
        }
        if (r >= 0)
                r = new_list(call, &reply);
        if (r >= 0 && !c)
                r = append_all_devices(reply, b->core);
        for (uint32_t id = 0; c && r >= 0 && id < c->devices.room; id++)
                r = append_device(reply, rig_table_get(&c->devices, id), &n);
        return r < 0 ? r : send_list(reply);
}

/* ---------------------------------------------------------------- limits */

static const struct {
        const char *key;
        size_t offset;
        const char *setting; /* whose bounds it has */
} limit_keys[] = {
        {"ObjectsMax", offsetof(struct rig_limits, objects), "ClientObjectsMax"},
        {"MemoryMax", offsetof(struct rig_limits, memory), "ClientMemoryMax"},
        {"RunsMax", offsetof(struct rig_limits, runs), "ClientRunsMax"},
        {"CacheMax", offsetof(struct rig_limits, cache), "ClientCacheMax"},
        {"QueueMax", offsetof(struct rig_limits, queue), "ClientQueueMax"},
};
#define LIMIT_KEYS "ObjectsMax, MemoryMax, RunsMax, CacheMax and QueueMax"

/* Sets one, where it is within the bounds that the configuration's has. */
static int set_limit(const struct rig_core *core, struct rig_limits *limits, size_t i, uint64_t value,
        sd_bus_error *error)
{
        struct rig_config config = core->config;
        struct rig_error e = RIG_ERROR_NULL;
        char text[24] = "infinity";
        size_t setting;

        if (value != UINT64_MAX)
                snprintf(text, sizeof(text), "%" PRIu64, value);
        if (rig_config_assign(&config, limit_keys[i].setting, text, &setting, &e) < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                        "%s cannot be %s, for the reason that rigd.conf could not say it: %s",
                        limit_keys[i].key, text, e.text);
        memcpy((char *)limits + limit_keys[i].offset, &value, sizeof(value));
        return 0;
}

/* Reads the whole call. Return: 0; or it is wrong, with a sentence. */
static int read_limits(struct rig_core *core, sd_bus_message *call, struct rig_client **ret_client,
        struct rig_limits *ret_limits, sd_bus_error *error)
{
        unsigned seen = 0;
        uint64_t number, value;
        const char *key;
        size_t i;
        int r = sd_bus_message_read(call, "t", &number);

        if (r >= 0)
                r = sd_bus_message_enter_container(call, 'a', "{st}");
        if (r < 0)
                return r;
        *ret_client = rig_bus_need_client(core, number, error);
        if (!*ret_client)
                return -ENOENT;
        *ret_limits = (*ret_client)->limits;
        while ((r = sd_bus_message_read(call, "{st}", &key, &value)) > 0) {
                for (i = 0; i < RIG_ARRAY_SIZE(limit_keys) && strcmp(limit_keys[i].key, key) != 0; i++)
                        ;
                if (i == RIG_ARRAY_SIZE(limit_keys))
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                "there is no limit \"%.64s\"; there are " LIMIT_KEYS, key);
                if (seen & 1u << i)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s is given twice", key);
                seen |= 1u << i;
                r = set_limit(core, ret_limits, i, value, error);
                if (r < 0)
                        return r;
        }
        if (r >= 0 && !seen)
                return sd_bus_error_set(
                        error, SD_BUS_ERROR_INVALID_ARGS, "no limit is given; there are " LIMIT_KEYS);
        return r;
}

static int apply_limits(struct rig_bus *bus, sd_bus_message *call, sd_bus_error *error)
{
        struct rig_limits limits;
        struct rig_client *c;
        int r = read_limits(bus->core, call, &c, &limits, error);

        if (r < 0)
                return r;
        rig_client_set_limits(c, &limits);
        return sd_bus_reply_method_return(call, NULL);
}

static int set_client_limits(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        static const struct rig_bus_action action = {
                .id = "org.rig.rig1.set-limits", .what = "set limits of a client", .act = apply_limits};
        struct rig_bus *b = userdata;
        struct rig_limits limits;
        struct rig_client *c;
        int r = read_limits(b->core, call, &c, &limits, error); /* nobody is asked for what cannot be done */

        return r < 0 ? r : rig_bus_authorize(b, call, &action, error);
}

/* ---------------------------------------------------------------- reload */

static int apply_reload(struct rig_bus *bus, sd_bus_message *call, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct rig_error e = RIG_ERROR_NULL;
        char **remarks = NULL;
        int r = bus->ops.reload(bus->ops.userdata, &remarks, &e);

        if (r < 0)
                return sd_bus_error_setf(error, RIG_BUS_ERROR_CONFIG,
                        "the configuration stays as it was: %s", e.code ? e.text : strerror(-r));
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "s");
        for (char **s = remarks; s && *s; s++) {
                if (r >= 0)
                        r = rig_bus_append_text(reply, *s);
                free(*s);
        }
        free(remarks);
        return r < 0 ? r : send_list(reply);
}

static int reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        static const struct rig_bus_action action = {.id = "org.rig.rig1.reload",
                .what = "have rigd read its configuration again",
                .act = apply_reload};

        return rig_bus_authorize(userdata, call, &action, error);
}

/* ---------------------------------------------------------------- properties */

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        return rig_bus_append_text(reply, RIG_VERSION);
}

static int get_settings(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_bus *b = userdata;
        char value[RIG_CONFIG_VALUE_BYTES];
        const char *key;
        int r = sd_bus_message_open_container(reply, 'a', "{ss}");

        for (size_t i = 0; r >= 0 && rig_config_get(&b->core->config, i, &key, value, sizeof(value)); i++)
                r = sd_bus_message_append(reply, "{ss}", key, value);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_devices(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_bus *b = userdata;
        unsigned n = 0;

        rig_list_for_each (l, &b->core->adapters)
                n += rig_list_entry(l, struct rig_adapter, link)->n_devices;
        return sd_bus_message_append(reply, "u", n);
}

static int get_adapters(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const struct rig_bus *b = userdata;
        unsigned n = 0;

        rig_list_for_each (l, &b->core->adapters)
                n++;
        return sd_bus_message_append(reply, "u", n);
}

static int get_dropped(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        return sd_bus_message_append(reply, "t", rig_log_dropped());
}

/* A getter of a number of the core's. */
#define GETTER(name, type, field)                                                                           \
        static int get_##name(sd_bus *bus, const char *path, const char *interface, const char *property,   \
                sd_bus_message *reply, void *userdata, sd_bus_error *error)                                 \
        {                                                                                                   \
                const struct rig_bus *b = userdata;                                                         \
                                                                                                            \
                return sd_bus_message_append_basic(reply, type, &b->core->field);                           \
        }
/* Likewise, of what was used until now. */
#define USAGE_GETTER(name, field)                                                                           \
        static int get_##name(sd_bus *bus, const char *path, const char *interface, const char *property,   \
                sd_bus_message *reply, void *userdata, sd_bus_error *error)                                 \
        {                                                                                                   \
                const struct rig_bus *b = userdata;                                                         \
                                                                                                            \
                rig_core_count_usage(b->core);                                                              \
                return sd_bus_message_append_basic(reply, 't', &b->core->usage.field);                      \
        }
GETTER(start, 't', start_usec)
GETTER(clients, 'u', n_clients)
GETTER(connections, 't', last_client)
GETTER(refused, 't', n_refused)
GETTER(broken, 't', n_broken)
USAGE_GETTER(accepted, accepted)
USAGE_GETTER(reached, reached)
USAGE_GETTER(failed, failed)
USAGE_GETTER(lost, lost)
USAGE_GETTER(copied, copied_bytes)
GETTER(sleeps, 't', n_sleeps)
GETTER(traces, 'u', n_traces)

static const sd_bus_vtable table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("ListAdapters", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", adapters),
                list_adapters, RIG_BUS_ROW),
        SD_BUS_METHOD_WITH_ARGS("ListClients", SD_BUS_ARGS("t", after), SD_BUS_RESULT("aa{sv}", clients),
                list_clients, RIG_BUS_ROW),
        SD_BUS_METHOD_WITH_ARGS("ListDevices", SD_BUS_ARGS("t", client), SD_BUS_RESULT("aa{sv}", devices),
                list_devices, RIG_BUS_ROW),
        SD_BUS_METHOD_WITH_ARGS("SetClientLimits", SD_BUS_ARGS("t", client, "a{st}", limits),
                SD_BUS_NO_RESULT, set_client_limits, RIG_BUS_ROW),
        SD_BUS_METHOD_WITH_ARGS("StartTrace", SD_BUS_ARGS("h", ring, "t", client), SD_BUS_NO_RESULT,
                rig_bus_start_trace, RIG_BUS_ROW),
        SD_BUS_METHOD_WITH_ARGS(
                "StopTrace", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, rig_bus_stop_trace, RIG_BUS_ROW),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_RESULT("as", remarks), reload, RIG_BUS_ROW),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartUSec", "t", get_start, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Settings", "a{ss}", get_settings, 0, 0),
        SD_BUS_PROPERTY("Clients", "u", get_clients, 0, 0),
        SD_BUS_PROPERTY("Devices", "u", get_devices, 0, 0),
        SD_BUS_PROPERTY("Adapters", "u", get_adapters, 0, 0),
        SD_BUS_PROPERTY("Connections", "t", get_connections, 0, 0),
        SD_BUS_PROPERTY("ConnectionsRefused", "t", get_refused, 0, 0),
        SD_BUS_PROPERTY("ConnectionsBroken", "t", get_broken, 0, 0),
        SD_BUS_PROPERTY("RunsAccepted", "t", get_accepted, 0, 0),
        SD_BUS_PROPERTY("RunsReached", "t", get_reached, 0, 0),
        SD_BUS_PROPERTY("RunsFailed", "t", get_failed, 0, 0),
        SD_BUS_PROPERTY("RunsLost", "t", get_lost, 0, 0),
        SD_BUS_PROPERTY("CopiedBytes", "t", get_copied, 0, 0),
        SD_BUS_PROPERTY("Sleeps", "t", get_sleeps, 0, 0),
        SD_BUS_PROPERTY("Traces", "u", get_traces, 0, 0),
        SD_BUS_PROPERTY("LogLinesDropped", "t", get_dropped, 0, 0),
        SD_BUS_VTABLE_END,
};

int rig_bus_add_manager(struct rig_bus *bus)
{
        return sd_bus_add_object_vtable(bus->bus, NULL, RIG_BUS_PATH, RIG_BUS_NAME ".Manager", table, bus);
}
