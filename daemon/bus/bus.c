/* SPDX-License-Identifier: ISC */
/*
 * The connection (daemon/bus/bus.h): made, lost, and made again.
 *
 * A connection is one sd_bus with everything on it. When it ends, the traces and checks of its callers end
 * with it, it is thrown away whole, and another one is made: nothing of the old one is patched. Where the
 * bus has no socket, sd-bus watches the folder, which wakes nobody; where connecting fails for another
 * reason it is tried again, at longer and longer intervals.
 *
 * The name is asked for on every connection. Another program may have it: this rigd is then next in line,
 * and serves those who know its unique name.
 *
 * The bus is no more urgent than clients are, and no less: the event loop takes turns with what has
 * something, so neither clients that send without a pause shut admins out, nor the other way round. In a
 * turn it is one message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/bus/internal.h"
#include "daemon/log/log.h"

#define RETRY_LEAST_USEC (UINT64_C(100) * RIG_USEC_PER_MSEC)
#define RETRY_MOST_USEC  (UINT64_C(60) * RIG_USEC_PER_SEC)

#define DBUS       "org.freedesktop.DBus"
#define DBUS_PATH  "/org/freedesktop/DBus"
#define LOCAL      "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"

/* ---------------------------------------------------------------- addresses */

/* A path as an address has it. Return: NULL where there is no memory. */
static char *address_of_path(const char *path)
{
        char *address = malloc(strlen("unix:path=") + 3 * strlen(path) + 1), *to;

        if (!address)
                return NULL;
        to = address + sprintf(address, "unix:path=");
        for (; *path; path++)
                if (strchr("-_/.\\*0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", *path))
                        *to++ = *path;
                else
                        to += sprintf(to, "%%%02x", (unsigned char)*path);
        *to = '\0';
        return address;
}

/*
 * Sockets of this machine alone: a name would be looked up in the network, and a program be started, in
 * every try. What is wrong with the rest of an address, sd-bus says.
 */
static bool all_unix(const char *address)
{
        do {
                if (strncmp(address, "unix:", 5) != 0)
                        return false;
                address = strchr(address, ';');
        } while (address && *++address);
        return true;
}

/* Of the system's bus, or a user's: what the environment says, or where it is by convention. */
static int well_known_address(bool user, char **ret_address)
{
        const char *set = getenv(user ? "DBUS_SESSION_BUS_ADDRESS" : "DBUS_SYSTEM_BUS_ADDRESS");
        const char *folder = user ? getenv("XDG_RUNTIME_DIR") : "/run/dbus";
        char path[4096];

        if (set && *set) {
                *ret_address = strdup(set);
        } else if (folder) {
                snprintf(path, sizeof(path), "%s/%s", folder, user ? "bus" : "system_bus_socket");
                *ret_address = address_of_path(path);
        } else {
                return -EINVAL;
        }
        return *ret_address ? 0 : -ENOMEM;
}

static int find_address(const char *where, char **ret_address)
{
        bool user = strcmp(where, "user") == 0;

        if (user || strcmp(where, "system") == 0)
                return well_known_address(user, ret_address);
        *ret_address = strdup(where);
        return *ret_address ? 0 : -ENOMEM;
}

/* ---------------------------------------------------------------- the name */

static void taken(struct rig_bus *b)
{
        if (!b->told_taken)
                rig_log_about(LOG_WARNING, &(struct rig_log_about){.message_id = RIG_LOG_BUS_NAME_TAKEN},
                        "another program has the bus name " RIG_BUS_NAME
                        ", another rigd perhaps: rigctl does not reach this one before that one ends");
        b->told_taken = true;
}

static int name_answered(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
        const sd_bus_error *error = sd_bus_message_get_error(m);
        struct rig_bus *b = userdata;
        uint32_t answer;

        if (error)
                rig_log_about(LOG_WARNING, &(struct rig_log_about){.message_id = RIG_LOG_BUS_NAME_REFUSED},
                        "the bus does not let rigd have the name " RIG_BUS_NAME
                        ", and rigctl does not reach it: %s",
                        error->message ? error->message : error->name);
        else if (sd_bus_message_read(m, "u", &answer) >= 0 && answer == 2) /* next in line */
                taken(b);
        return 0;
}

static int name_acquired(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct rig_bus *b = userdata;
        const char *name;

        if (sd_bus_message_read(m, "s", &name) >= 0 && strcmp(name, RIG_BUS_NAME) == 0) {
                rig_log(b->told_taken || b->told_away ? LOG_NOTICE : LOG_INFO,
                        "rigd is on the bus, as " RIG_BUS_NAME);
                b->told_taken = b->told_away = false;
        }
        return 0;
}

static int name_lost(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        const char *name;

        if (sd_bus_message_read(m, "s", &name) >= 0 && strcmp(name, RIG_BUS_NAME) == 0)
                taken(userdata);
        return 0;
}

/* ---------------------------------------------------------------- the connection */

static void retry_later(struct rig_bus *b)
{
        sd_event_source_set_time_relative(b->retry, b->retry_usec);
        sd_event_source_set_enabled(b->retry, SD_EVENT_ONESHOT);
        b->retry_usec = RIG_MIN(b->retry_usec * 2, RETRY_MOST_USEC);
}

static int connected(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct rig_bus *b = userdata;

        b->retry_usec = RETRY_LEAST_USEC;
        return 0;
}

/* It is on the stack here, so the timer throws it away. */
static int disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct rig_bus *b = userdata;

        if (!b->told_away)
                rig_log_about(LOG_WARNING, &(struct rig_log_about){.message_id = RIG_LOG_BUS_AWAY},
                        "the bus has ended the connection, and rigctl does not reach rigd "
                        "before it is back");
        b->told_away = true;
        retry_later(b);
        return 0;
}

static void disconnect(struct rig_bus *b)
{
        rig_bus_drop_checks(b);
        rig_bus_drop_traces(b);
        b->bus = sd_bus_close_unref(b->bus);
}

static int match(struct rig_bus *b, const char *sender, const char *path, const char *member,
        sd_bus_message_handler_t handler)
{
        return sd_bus_match_signal_async(b->bus, NULL, sender, path, sender, member, handler, NULL, b);
}

/* What the bus is to say of this connection. */
static int watch(struct rig_bus *b)
{
        int r = match(b, LOCAL, LOCAL_PATH, "Connected", connected);

        if (r >= 0)
                r = match(b, LOCAL, LOCAL_PATH, "Disconnected", disconnected);
        if (r >= 0)
                r = match(b, DBUS, DBUS_PATH, "NameAcquired", name_acquired);
        if (r >= 0)
                r = match(b, DBUS, DBUS_PATH, "NameLost", name_lost);
        if (r >= 0)
                r = sd_bus_request_name_async(
                        b->bus, NULL, RIG_BUS_NAME, SD_BUS_NAME_QUEUE, name_answered, b);
        return r;
}

static int add_objects(struct rig_bus *b)
{
        int r = rig_bus_add_manager(b);

        if (r >= 0)
                r = rig_bus_add_adapters(b);
        if (r >= 0)
                r = rig_bus_add_clients(b);
        if (r >= 0)
                r = rig_bus_add_log_control(b);
        return r;
}

static int connect_bus(struct rig_bus *b)
{
        int r = sd_bus_new(&b->bus);

        if (r >= 0)
                r = sd_bus_set_address(b->bus, b->address);
        if (r >= 0)
                r = sd_bus_set_bus_client(b->bus, true);
        if (r >= 0)
                r = sd_bus_negotiate_fds(b->bus, true);
        if (r >= 0)
                r = sd_bus_set_watch_bind(b->bus, true);
        if (r >= 0)
                r = sd_bus_set_connected_signal(b->bus, true);
        if (r >= 0)
                r = sd_bus_set_close_on_exit(b->bus, false); /* it would wait for the bus to read the rest */
        if (r >= 0)
                r = add_objects(b);
        if (r >= 0)
                r = sd_bus_start(b->bus);
        if (r >= 0)
                r = watch(b);
        if (r >= 0)
                r = sd_bus_attach_event(b->bus, b->core->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                disconnect(b);
        return r;
}

static int cannot_connect(struct rig_bus *b, int r)
{
        if (!b->told_away)
                rig_log_about(LOG_WARNING, &(struct rig_log_about){.message_id = RIG_LOG_BUS_AWAY},
                        "the bus %s cannot be reached, and is tried again: %s", b->address, strerror(-r));
        b->told_away = true;
        retry_later(b);
        return 0;
}

static int retry(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rig_bus *b = userdata;
        int r;

        disconnect(b);
        r = connect_bus(b);
        return r < 0 ? cannot_connect(b, r) : 0;
}

int rig_bus_new(
        struct rig_core *core, const char *where, const struct rig_bus_ops *ops, struct rig_bus **ret_bus)
{
        struct rig_bus *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        b->core = core;
        b->ops = *ops;
        b->user = strcmp(where, "user") == 0;
        b->retry_usec = RETRY_LEAST_USEC;
        rig_list_init(&b->checks);
        rig_list_init(&b->traces);
        r = find_address(where, &b->address);
        if (r >= 0 && !all_unix(b->address))
                r = -EINVAL;
        if (r >= 0)
                r = sd_event_add_time_relative(
                        core->event, &b->retry, CLOCK_MONOTONIC, b->retry_usec, RIG_USEC_PER_MSEC, retry, b);
        if (r >= 0)
                r = sd_event_source_set_enabled(b->retry, SD_EVENT_OFF);
        if (r >= 0) {
                sd_event_source_set_description(b->retry, "bus");
                r = connect_bus(b);
                if (r < 0 && r != -EINVAL && r != -ENOMEM)
                        r = cannot_connect(b, r);
        }
        if (r < 0) {
                rig_bus_free(b);
                return r;
        }
        *ret_bus = b;
        return 0;
}

struct rig_bus *rig_bus_free(struct rig_bus *bus)
{
        struct rig_bus *b = bus;

        if (!b)
                return NULL;
        disconnect(b);
        if (b->core->adapter_changed_userdata == b) {
                b->core->adapter_changed = NULL;
                b->core->adapter_changed_userdata = NULL;
        }
        sd_event_source_disable_unref(b->retry);
        free(b->address);
        free(b);
        return NULL;
}
