/* SPDX-License-Identifier: ISC */
/*
 * One object at a time: show, limits and stats. What is said of an object for people is chosen here, line by
 * line; stats prints whatever properties there are, with their names, so that nothing counted is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/rigctl/bus.h"
#include "tools/rigctl/lists.h"
#include "tools/rigctl/people.h"
#include "tools/rigctl/table.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"
#include "tools/rigctl/words.h"

#define KEY_COLUMNS 12 /* of a block's keys */

/* ---------------------------------------------------------------- show */

/* "1.5M of 1G", with what follows them. */
static char *part(char *(*format)(uint64_t), uint64_t used, uint64_t max, const char *more)
{
        _cleanup_(rig_freep) char *a = format(used);
        _cleanup_(rig_freep) char *b = format(max);

        return max == CTL_INFINITY ? ctl_printf("%s%s, no limit", a, more)
                                   : ctl_printf("%s of %s%s", a, b, more);
}

static char *runs(const struct ctl_value *map)
{
        return ctl_printf("%" PRIu64 " done, %" PRIu64 " of them failed",
                ctl_value_number(map, "RunsReached"), ctl_value_number(map, "RunsFailed"));
}

static void adapter_block(const struct ctl_value *a)
{
        _cleanup_(rig_freep) char *name = ctl_value_clean(a, "Name");

        printf("adapter %s\n", name);
        ctl_block_line(stdout, KEY_COLUMNS, "Driver", ctl_value_clean(a, "Driver"));
        ctl_block_line(stdout, KEY_COLUMNS, "About", ctl_value_clean(a, "About"));
        ctl_block_line(stdout, KEY_COLUMNS, "State", ctl_adapter_state(a));
        ctl_block_line(stdout, KEY_COLUMNS, "Reason", ctl_adapter_trouble(a));
        ctl_block_line(stdout, KEY_COLUMNS, "Memory",
                part(ctl_bytes, ctl_value_number(a, "LiveBytes"), ctl_value_number(a, "BudgetBytes"), ""));
        ctl_block_line(stdout, KEY_COLUMNS, "Cached", ctl_bytes(ctl_value_number(a, "CachedBytes")));
        ctl_block_line(stdout, KEY_COLUMNS, "Runs", runs(a));
        ctl_block_line(stdout, KEY_COLUMNS, "Copied", ctl_bytes(ctl_value_number(a, "CopiedBytes")));
        ctl_block_line(stdout, KEY_COLUMNS, "Device time", ctl_span(ctl_value_number(a, "BusyUSec")));
        ctl_block_line(stdout, KEY_COLUMNS, "Devices", ctl_count(ctl_value_number(a, "Devices")));
}

static void client_block(const struct ctl_value *k)
{
        _cleanup_(rig_freep) char *command = ctl_value_clean(k, "Command");
        _cleanup_(rig_freep) char *library = ctl_value_clean(k, "Library");
        _cleanup_(rig_freep) char *transport = ctl_value_clean(k, "Transport");

        printf("client %" PRIu64 "\n", ctl_value_number(k, "Number"));
        ctl_block_line(stdout, KEY_COLUMNS, "Process",
                ctl_printf("%" PRIu64 " (%s)", ctl_value_number(k, "PID"), *command ? command : "-"));
        ctl_block_line(stdout, KEY_COLUMNS, "User", ctl_copy(ctl_user_name(ctl_value_number(k, "UID"))));
        ctl_block_line(stdout, KEY_COLUMNS, "Unit", ctl_value_clean(k, "Unit"));
        ctl_block_line(stdout, KEY_COLUMNS, "Since", ctl_moment(ctl_value_number(k, "ConnectedUSec")));
        ctl_block_line(stdout, KEY_COLUMNS, "Library",
                ctl_printf("%s, by %s", *library ? library : "-", *transport ? transport : "-"));
        ctl_block_line(stdout, KEY_COLUMNS, "Objects",
                part(ctl_count, ctl_value_number(k, "Objects"), ctl_value_number(k, "ObjectsMax"), ""));
        ctl_block_line(stdout, KEY_COLUMNS, "Memory",
                part(ctl_bytes, ctl_value_number(k, "LiveBytes"), ctl_value_number(k, "MemoryMax"),
                        ctl_value_number(k, "MemoryMax") == CTL_INFINITY ? "" : " on each adapter"));
        ctl_block_line(stdout, KEY_COLUMNS, "Cached",
                part(ctl_bytes, ctl_value_number(k, "CachedBytes"), ctl_value_number(k, "CacheMax"), ""));
        ctl_block_line(stdout, KEY_COLUMNS, "In flight",
                part(ctl_count, ctl_value_number(k, "RunsInFlight"), ctl_value_number(k, "RunsMax"),
                        " runs"));
        ctl_block_line(stdout, KEY_COLUMNS, "Unread",
                part(ctl_bytes, ctl_value_number(k, "UnreadBytes"), ctl_value_number(k, "QueueMax"), ""));
        ctl_block_line(stdout, KEY_COLUMNS, "Runs", runs(k));
        ctl_block_line(stdout, KEY_COLUMNS, "Copied", ctl_bytes(ctl_value_number(k, "CopiedBytes")));
        ctl_block_line(stdout, KEY_COLUMNS, "Device time", ctl_span(ctl_value_number(k, "BusyUSec")));
        ctl_block_line(stdout, KEY_COLUMNS, "Devices", ctl_count(ctl_value_number(k, "Devices")));
}

/* Leaves those devices in a list that are of an adapter. */
static void keep_devices_of(struct ctl_value *devices, const char *adapter)
{
        size_t n = 0;

        for (size_t i = 0; i < devices->n; i++)
                if (strcmp(ctl_value_text(&devices->items[i], "Adapter"), adapter) == 0)
                        devices->items[n++] = devices->items[i];
                else
                        ctl_value_deinit(&devices->items[i]);
        devices->n = n;
}

/* Writes an object and its devices, which are moved into what is written as JSON. */
static int show(struct ctl *c, const char *what, struct ctl_value *object, struct ctl_value *devices,
        void (*block)(const struct ctl_value *object))
{
        _cleanup_(ctl_value_deinit) struct ctl_value both = {.kind = CTL_MAP};

        if (c->json == CTL_JSON_OFF) {
                block(object);
                ctl_list_devices(c, devices);
                return CTL_DONE;
        }
        ctl_value_move(&both, what, object);
        ctl_value_move(&both, "Devices", devices);
        ctl_wrote_json(c, &both);
        return CTL_DONE;
}

static int show_adapter(struct ctl *c, const char *name)
{
        _cleanup_(ctl_value_deinit) struct ctl_value adapter = {0}, devices = {0};
        int r = ctl_bus_adapter(c, name, &adapter);

        if (r == CTL_DONE)
                r = ctl_bus_devices(c, 0, &devices);
        if (r != CTL_DONE)
                return r;
        keep_devices_of(&devices, name);
        return show(c, "Adapter", &adapter, &devices, adapter_block);
}

static int show_client(struct ctl *c, const char *word)
{
        _cleanup_(ctl_value_deinit) struct ctl_value client = {0}, devices = {0};
        uint64_t number = 0;
        int r = ctl_client_number(word, &number);

        if (r == CTL_DONE)
                r = ctl_bus_client(c, number, &client);
        if (r == CTL_DONE)
                r = ctl_bus_devices(c, number, &devices);
        return r == CTL_DONE ? show(c, "Client", &client, &devices, client_block) : r;
}

int ctl_verb_show(struct ctl *c, char **args)
{
        static const char *const kinds[] = {"client", "adapter", NULL};
        _cleanup_(rig_freep) char *clean = ctl_text_clean(args[0]);
        _cleanup_(rig_freep) char *meant = NULL;
        bool number = *args[0] && args[0][strspn(args[0], "0123456789")] == '\0';

        if (!args[1])
                return number ? show_client(c, args[0]) : show_adapter(c, args[0]);
        if (strcmp(args[0], "client") == 0)
                return show_client(c, args[1]);
        if (strcmp(args[0], "adapter") == 0)
                return show_adapter(c, args[1]);
        meant = ctl_did_you_mean(args[0], kinds, "");
        return ctl_fail(CTL_WRONG, "show: \"%s\" is neither client nor adapter%s", clean, meant);
}

/* ---------------------------------------------------------------- limits */

static const struct limit {
        const char *key, *used;
        char *(*format)(uint64_t);
} limits[] = {
        {"ObjectsMax", "Objects", ctl_limit},
        {"MemoryMax", "LiveBytes", ctl_bytes},
        {"RunsMax", "RunsInFlight", ctl_limit},
        {"CacheMax", "CachedBytes", ctl_bytes},
        {"QueueMax", "UnreadBytes", ctl_bytes},
};

static const struct ctl_column limit_columns[] = {
        {"LIMIT"}, {"USED", .right = true}, {"MAX", .right = true}};

static int show_limits(struct ctl *c, uint64_t number)
{
        _cleanup_(ctl_value_deinit) struct ctl_value client = {0}, json = {.kind = CTL_MAP};
        _cleanup_(ctl_table_deinit) struct ctl_table table;
        int r;

        ctl_table_init(&table, limit_columns, RIG_ARRAY_SIZE(limit_columns));
        r = ctl_bus_client(c, number, &client);
        if (r != CTL_DONE)
                return r;
        ctl_value_add_number(&json, "Number", number);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(limits); i++) {
                uint64_t used = ctl_value_number(&client, limits[i].used);
                uint64_t max = ctl_value_number(&client, limits[i].key);

                ctl_value_add_number(&json, limits[i].used, used);
                ctl_value_add_number(&json, limits[i].key, max);
                ctl_table_add(&table, ctl_copy(limits[i].key));
                ctl_table_add(&table, limits[i].format(used));
                ctl_table_add(&table, limits[i].format(max));
        }
        if (ctl_wrote_json(c, &json))
                return CTL_DONE;
        ctl_table_write(&table, stdout, &c->screen, c->legend);
        return CTL_DONE;
}

/* Finds the limit of "KEY=VALUE", and the value; says what is wrong. */
static int parse_limit(const char *word, const struct limit **ret_limit, uint64_t *ret_value)
{
        const char *names[RIG_ARRAY_SIZE(limits) + 1] = {0}, *equals = strchr(word, '=');
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);
        _cleanup_(rig_freep) char *meant = NULL;
        const struct limit *found = NULL;
        int r;

        if (!equals)
                return ctl_fail(CTL_WRONG, "limits: \"%s\" sets nothing; write KEY=VALUE", clean);
        clean[strcspn(clean, "=")] = '\0';
        for (size_t i = 0; i < RIG_ARRAY_SIZE(limits); i++) {
                names[i] = limits[i].key;
                if (strcmp(clean, names[i]) == 0)
                        found = &limits[i];
        }
        if (!found) {
                meant = ctl_did_you_mean(clean, names, "");
                return ctl_fail(CTL_WRONG,
                        "there is no limit \"%s\"; there are ObjectsMax, MemoryMax, RunsMax, CacheMax and "
                        "QueueMax%s",
                        clean, meant);
        }
        r = ctl_parse_size(equals + 1, ret_value);
        if (r < 0) {
                meant = ctl_text_clean(equals + 1);
                return ctl_fail(CTL_WRONG,
                        r == -ERANGE
                                ? "%s: \"%s\" is more than 64 bits hold; without a limit is infinity"
                                : "%s: \"%s\" is no size; write a number, with K, M, G or T, or infinity",
                        clean, meant);
        }
        *ret_limit = found;
        return CTL_DONE;
}

/* Appends the words' limits as a{st}. Return: an exit status, or what appending failed with. */
static int append_limits(sd_bus_message *message, char **words)
{
        const struct limit *limit;
        uint64_t value;
        int r = sd_bus_message_open_container(message, 'a', "{st}");

        for (; r >= 0 && *words; words++) {
                r = parse_limit(*words, &limit, &value);
                if (r == CTL_DONE)
                        r = sd_bus_message_append(message, "{st}", limit->key, value);
        }
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int set_limits(struct ctl *c, uint64_t number, char **words)
{
        const struct ctl_call call = {CTL_MANAGER_PATH, CTL_MANAGER, "SetClientLimits", "set limits",
                "org.rig.rig1.set-limits", false};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = ctl_bus_message(c, &call, &message);

        if (r != CTL_DONE)
                return r;
        r = sd_bus_message_append(message, "t", number);
        if (r >= 0)
                r = append_limits(message, words);
        return ctl_bus_call(c, &call, message, r, NULL);
}

/* What the words say, all of them, before anything is asked. */
static int check_limits(char **args, uint64_t *ret_number)
{
        const struct limit *limit;
        uint64_t value, seen = 0;
        int r = ctl_client_number(args[0], ret_number);

        for (char **word = args + 1; r == CTL_DONE && *word; word++) {
                r = parse_limit(*word, &limit, &value);
                if (r == CTL_DONE && seen & 1u << (limit - limits))
                        r = ctl_fail(CTL_WRONG, "limits: %s is given twice", limit->key);
                if (r == CTL_DONE)
                        seen |= 1u << (limit - limits);
        }
        return r;
}

int ctl_verb_limits(struct ctl *c, char **args)
{
        _cleanup_(ctl_value_deinit) struct ctl_value client = {0};
        uint64_t number = 0;
        int r = check_limits(args, &number);

        /* Asked for first, since whoever names a client that is not there wants to know which are. */
        if (r == CTL_DONE && args[1])
                r = ctl_bus_client(c, number, &client);
        if (r == CTL_DONE && args[1])
                r = set_limits(c, number, args + 1);
        return r == CTL_DONE ? show_limits(c, number) : r;
}

/* ---------------------------------------------------------------- stats */

static bool ends_with(const char *s, const char *end)
{
        size_t length = strlen(s), n = strlen(end);

        return length >= n && strcmp(s + length - n, end) == 0;
}

static char *property_text(const char *key, const struct ctl_value *v, int indent);

/* The items of a list in a line, or of a map as "A=1", each in a line below the first. */
static char *items_text(const struct ctl_value *v, int indent)
{
        char *text = NULL;
        size_t bytes;
        FILE *f = open_memstream(&text, &bytes);

        if (!f)
                ctl_out_of_memory();
        for (size_t i = 0; i < v->n; i++) {
                const char *key = v->kind == CTL_MAP ? v->keys[i] : "";
                _cleanup_(rig_freep) char *clean = ctl_text_clean(key);
                _cleanup_(rig_freep) char *item = property_text(key, &v->items[i], indent);

                if (v->kind == CTL_MAP)
                        fprintf(f, "%s%*s%s=%s", i ? "\n" : "", i ? indent : 0, "", clean, item);
                else
                        fprintf(f, "%s%s", i ? " " : "", item);
        }
        if (fclose(f) != 0)
                ctl_out_of_memory();
        return text;
}

/* A property as its name says what it is. */
static char *property_text(const char *key, const struct ctl_value *v, int indent)
{
        switch (v->kind) {
        case CTL_NUMBER:
                if (strcmp(key, "StartUSec") == 0)
                        return ctl_moment(v->number);
                if (ends_with(key, "Bytes"))
                        return ctl_bytes(v->number);
                return ends_with(key, "USec") ? ctl_span(v->number) : ctl_count(v->number);
        case CTL_SIGNED:
                return ctl_printf("%" PRId64, v->integer);
        case CTL_REAL:
                return ctl_printf("%g", v->real);
        case CTL_TRUTH:
                return ctl_copy(v->truth ? "yes" : "no");
        case CTL_TEXT:
                return ctl_text_clean(v->text);
        case CTL_LIST:
        case CTL_MAP:
                return items_text(v, indent);
        default:
                return ctl_copy("");
        }
}

static const struct ctl_column usage_columns[] = {
        {"ADAPTER", .at_least = 12},
        {"DEVICES", .right = true},
        {"RUNS", .right = true},
        {"FAILED", .right = true},
        {"COPIED", .right = true},
        {"DEVICE-TIME", .right = true},
        {"BYTES", .right = true},
        {"CACHED", .right = true},
        {"BUDGET", .right = true},
};

static void add_usage(struct ctl_table *table, const struct ctl_value *adapter)
{
        ctl_table_add(table, ctl_value_clean(adapter, "Name"));
        ctl_table_add(table, ctl_count(ctl_value_number(adapter, "Devices")));
        ctl_table_add(table, ctl_count(ctl_value_number(adapter, "RunsReached")));
        ctl_table_add(table, ctl_count(ctl_value_number(adapter, "RunsFailed")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "CopiedBytes")));
        ctl_table_add(table, ctl_span(ctl_value_number(adapter, "BusyUSec")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "LiveBytes")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "CachedBytes")));
        ctl_table_add(table, ctl_bytes(ctl_value_number(adapter, "BudgetBytes")));
}

static void write_stats(struct ctl *c, const struct ctl_value *manager, const struct ctl_value *adapters)
{
        _cleanup_(ctl_table_deinit) struct ctl_table table;
        int width = 0;

        for (size_t i = 0; i < manager->n; i++)
                width = RIG_MAX(width, (int)strlen(manager->keys[i]));
        for (size_t i = 0; i < manager->n; i++)
                ctl_block_line(stdout, width, manager->keys[i],
                        property_text(manager->keys[i], &manager->items[i], width + 2));
        ctl_table_init(&table, usage_columns, RIG_ARRAY_SIZE(usage_columns));
        for (size_t i = 0; i < adapters->n; i++)
                add_usage(&table, &adapters->items[i]);
        if (adapters->n)
                putchar('\n');
        ctl_table_write(&table, stdout, &c->screen, c->legend && adapters->n);
}

int ctl_verb_stats(struct ctl *c, char **args)
{
        _cleanup_(ctl_value_deinit) struct ctl_value manager = {0}, adapters = {0}, both = {.kind = CTL_MAP};
        int r = ctl_bus_manager(c, false, &manager);

        if (r == CTL_DONE)
                r = ctl_bus_adapters(c, false, &adapters);
        if (r != CTL_DONE)
                return r;
        if (c->json == CTL_JSON_OFF) {
                write_stats(c, &manager, &adapters);
                return CTL_DONE;
        }
        ctl_value_move(&both, "Manager", &manager);
        ctl_value_move(&both, "Adapters", &adapters);
        ctl_wrote_json(c, &both);
        return CTL_DONE;
}
