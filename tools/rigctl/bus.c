/* SPDX-License-Identifier: ISC */
/*
 * Calls. The bus is connected to by the first of them, so that a wrong command line is told without one.
 *
 * Every failure ends here, as one sentence that says what to do, and as an exit status that tells apart what
 * scripts treat differently: nobody is there, it is not allowed, it did not work. What rigd or the bus say
 * is repeated, cleaned; their errors' names are looked at, never shown.
 *
 * Every wait is bounded: by CALL_USEC, or by ASK_USEC where polkit may ask.
 */
#include "tools/rigctl/bus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/words.h"

#define RIGD_NAME   "org.rig.Rig1"
#define NO_CLIENT   "org.rig.Rig1.Error.NoSuchClient"
#define NAMES_SHOWN 16                       /* of those there are, where a name is wrong */
#define DEVICES_MAX 256                      /* of everyone's, in one answer */
#define CALL_USEC   (10 * RIG_USEC_PER_SEC)  /* rigd answers within milliseconds */
#define ASK_USEC    (120 * RIG_USEC_PER_SEC) /* somebody may have to type a password */

/* ---------------------------------------------------------------- connecting */

static int open_bus(struct ctl *c, sd_bus **ret_bus)
{
        sd_bus *bus;
        int r;

        if (c->where == CTL_SYSTEM)
                return sd_bus_open_system(ret_bus);
        if (c->where == CTL_USER)
                return sd_bus_open_user(ret_bus);
        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, c->address);
        if (r >= 0)
                r = sd_bus_set_bus_client(bus, true);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0)
                bus = sd_bus_unref(bus);
        *ret_bus = bus;
        return r;
}

/* Whether it starts as one; sd-bus skips what it does not know, and then says that it was refused. */
static bool is_address(const char *address)
{
        static const char *const kinds[] = {"unix:", "unixexec:", "tcp:", "x-machine-unix:"};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(kinds); i++)
                if (strncmp(address, kinds[i], strlen(kinds[i])) == 0)
                        return true;
        return false;
}

static int cannot_connect(const struct ctl *c, int r)
{
        _cleanup_(rig_freep) char *address = ctl_text_clean(c->address ? c->address : "");

        switch (c->where) {
        case CTL_SYSTEM:
                return ctl_fail(CTL_NOBODY,
                        "cannot reach the system bus: %s; is D-Bus running? `rigctl --user` asks your own",
                        strerror(-r));
        case CTL_USER:
                return ctl_fail(CTL_NOBODY,
                        "cannot reach the bus of your user: %s; log in as that user (XDG_RUNTIME_DIR says "
                        "where it is), "
                        "or ask the system's rigd, without --user",
                        r == -ENOMEDIUM ? "XDG_RUNTIME_DIR is not set" : strerror(-r));
        default:
                if (r == -EINVAL || !is_address(c->address))
                        return ctl_fail(CTL_WRONG,
                                "--address: \"%s\" is no address of D-Bus; one is "
                                "unix:path=/run/dbus/system_bus_socket",
                                address);
                return ctl_fail(
                        CTL_NOBODY, "cannot reach the bus at %s: %s; is it running?", address, strerror(-r));
        }
}

static int connect_bus(struct ctl *c)
{
        int r;

        if (c->bus)
                return CTL_DONE;
        r = open_bus(c, &c->bus);
        if (r < 0)
                return cannot_connect(c, r);
        sd_bus_set_allow_interactive_authorization(c->bus, c->ask);
        return CTL_DONE;
}

/* ---------------------------------------------------------------- failures */

static const char *const absent[] = {
        "org.freedesktop.DBus.Error.ServiceUnknown",
        "org.freedesktop.DBus.Error.NameHasNoOwner",
        NULL,
};

static const char *const silent[] = {
        "org.freedesktop.DBus.Error.NoReply",
        "org.freedesktop.DBus.Error.Timeout",
        "org.freedesktop.DBus.Error.TimedOut",
        NULL,
};

/* sd-bus's own, and what it makes of errors of the connection. */
static const char *const lost[] = {
        "org.freedesktop.DBus.Error.Disconnected",
        "System.Error.ENOTCONN",
        "System.Error.ECONNRESET",
        "System.Error.ECONNREFUSED",
        "System.Error.EPIPE",
        NULL,
};

static const char *const denied[] = {
        "org.freedesktop.DBus.Error.AccessDenied",
        "org.freedesktop.DBus.Error.AuthFailed",
        "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
        "org.freedesktop.PolicyKit1.Error.NotAuthorized",
        NULL,
};

static const char *const unknown[] = {
        "org.freedesktop.DBus.Error.UnknownObject",
        "org.freedesktop.DBus.Error.UnknownInterface",
        "org.freedesktop.DBus.Error.UnknownMethod",
        "org.freedesktop.DBus.Error.UnknownProperty",
        NULL,
};

static bool is_any_of(const char *name, const char *const *names)
{
        for (; name && *names; names++)
                if (strcmp(name, *names) == 0)
                        return true;
        return false;
}

/* The bus was asked to start rigd, and could not. */
static bool is_start_failure(const char *name)
{
        static const char spawn[] = "org.freedesktop.DBus.Error.Spawn.",
                          unit[] = "org.freedesktop.systemd1.";

        return name && (strncmp(name, spawn, strlen(spawn)) == 0 || strncmp(name, unit, strlen(unit)) == 0);
}

static int say_absent(const struct ctl *c)
{
        _cleanup_(rig_freep) char *address = ctl_text_clean(c->address ? c->address : "");

        switch (c->where) {
        case CTL_SYSTEM:
                return ctl_fail(CTL_NOBODY, "rigd is not running: systemctl start rigd (or, for your own, "
                                            "systemctl --user start rigd "
                                            "and rigctl --user)");
        case CTL_USER:
                return ctl_fail(CTL_NOBODY, "your own rigd is not running: systemctl --user start rigd "
                                            "(without --user, rigctl asks the "
                                            "system's)");
        default:
                return ctl_fail(CTL_NOBODY, "no rigd is on the bus at %s: start one with rigd --bus %s",
                        address, address);
        }
}

static int say_denied(const struct ctl *c, const struct ctl_call *call)
{
        _cleanup_(rig_freep) char *command = ctl_quote(c->argv);

        if (!call->action)
                return ctl_fail(CTL_DENIED, "the bus does not let you ask rigd; its policy decides who may");
        if (c->where != CTL_SYSTEM || geteuid() == 0)
                return ctl_fail(CTL_DENIED,
                        "rigd does not let you %s (polkit action %s); the user it runs as may", call->doing,
                        call->action);
        return ctl_fail(CTL_DENIED, "rigd does not let you %s (polkit action %s): as root: sudo %s",
                call->doing, call->action, command);
}

static int failed(const struct ctl *c, const struct ctl_call *call, const sd_bus_error *e, int r)
{
        _cleanup_(rig_freep) char *said = ctl_text_clean(e->message ? e->message : strerror(-r));
        const char *user = c->where == CTL_USER ? "--user " : "";

        if (is_any_of(e->name, absent))
                return say_absent(c);
        if (is_start_failure(e->name))
                return ctl_fail(CTL_NOBODY,
                        "rigd is not running and could not be started: %s; systemctl %sstatus rigd says "
                        "more",
                        said, user);
        if (is_any_of(e->name, denied))
                return say_denied(c, call);
        if (is_any_of(e->name, silent) || r == -ETIMEDOUT)
                return ctl_fail(CTL_NOBODY, "rigd did not answer: %s; systemctl %sstatus rigd says more",
                        said, user);
        if (is_any_of(e->name, lost))
                return ctl_fail(CTL_NOBODY, "the bus closed the connection: %s; its log says why", said);
        return ctl_fail(CTL_FAILED, "cannot %s: %s", call->doing, said);
}

static int out_of_shape(const struct ctl_call *call, int r)
{
        return ctl_fail(CTL_FAILED,
                "cannot read what rigd answered to %s: %s; are rigd and rigctl of the same version?",
                call->member, strerror(-r));
}

/* ---------------------------------------------------------------- calling */

int ctl_bus_message(struct ctl *c, const struct ctl_call *call, sd_bus_message **ret_message)
{
        int r = connect_bus(c);

        if (r != CTL_DONE)
                return r;
        r = sd_bus_message_new_method_call(
                c->bus, ret_message, RIGD_NAME, call->path, call->interface, call->member);
        if (r >= 0 && call->no_start) {
                r = sd_bus_message_set_auto_start(*ret_message, false);
                if (r < 0)
                        *ret_message = sd_bus_message_unref(*ret_message);
        }
        return r < 0 ? failed(c, call, &SD_BUS_ERROR_NULL, r) : CTL_DONE;
}

int ctl_bus_call(struct ctl *c, const struct ctl_call *call, sd_bus_message *message, int filled,
        sd_bus_message **ret_answer)
{
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        int r = filled;

        if (r >= 0)
                r = sd_bus_call(c->bus, message, call->action ? ASK_USEC : CALL_USEC, &e, ret_answer);
        if (r < 0 && call->pass && e.name && strcmp(e.name, call->pass) == 0) {
                *ret_answer = NULL;
                return CTL_DONE;
        }
        return r < 0 ? failed(c, call, &e, r) : CTL_DONE;
}

int ctl_bus_read(const struct ctl_call *call, sd_bus_message *answer, struct ctl_value *ret_value)
{
        int r = ctl_value_read(answer, ret_value);

        return r < 0 ? out_of_shape(call, r) : CTL_DONE;
}

static bool is_list_of_maps(const struct ctl_value *v)
{
        for (size_t i = 0; v->kind == CTL_LIST && i < v->n; i++)
                if (v->items[i].kind != CTL_MAP)
                        return false;
        return v->kind == CTL_LIST;
}

/* Calls for a list of maps; with a number, or (NULL) without. An error that passes gives an empty one. */
static int ask_list(
        struct ctl *c, const struct ctl_call *call, const uint64_t *number, struct ctl_value *ret_list)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL, *answer = NULL;
        struct ctl_value list = {.kind = CTL_LIST};
        int r = ctl_bus_message(c, call, &message), filled;

        if (r != CTL_DONE)
                return r;
        filled = number ? sd_bus_message_append(message, "t", *number) : 0;
        r = ctl_bus_call(c, call, message, filled, &answer);
        if (r == CTL_DONE && answer)
                r = ctl_bus_read(call, answer, &list);
        if (r != CTL_DONE)
                return r;
        if (!is_list_of_maps(&list)) {
                ctl_value_deinit(&list);
                return out_of_shape(call, -EBADMSG);
        }
        *ret_list = list;
        return CTL_DONE;
}

/* Reads all properties of an object. Return: an exit status, or -ENOENT where there is no such object. */
static int properties(
        struct ctl *c, const char *path, const char *interface, bool no_start, struct ctl_value *ret_map)
{
        const struct ctl_call call = {
                path, "org.freedesktop.DBus.Properties", "GetAll", "read properties", NULL, no_start};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL, *answer = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        int r = ctl_bus_message(c, &call, &message);

        if (r != CTL_DONE)
                return r;
        r = sd_bus_message_append(message, "s", interface);
        if (r >= 0)
                r = sd_bus_call(c->bus, message, CALL_USEC, &e, &answer);
        if (r < 0)
                return is_any_of(e.name, unknown) ? -ENOENT : failed(c, &call, &e, r);
        r = ctl_bus_read(&call, answer, ret_map);
        if (r == CTL_DONE && ret_map->kind != CTL_MAP) {
                ctl_value_deinit(ret_map);
                return out_of_shape(&call, -EBADMSG);
        }
        return r;
}

/* ---------------------------------------------------------------- rigd's objects */

int ctl_bus_adapters(struct ctl *c, bool no_start, struct ctl_value *ret_list)
{
        const struct ctl_call call = {
                CTL_MANAGER_PATH, CTL_MANAGER, "ListAdapters", "list adapters", NULL, no_start};

        return ask_list(c, &call, NULL, ret_list);
}

int ctl_bus_clients(struct ctl *c, bool no_start, struct ctl_value *ret_list)
{
        const struct ctl_call call = {
                CTL_MANAGER_PATH, CTL_MANAGER, "ListClients", "list clients", NULL, no_start};
        struct ctl_value list = {.kind = CTL_LIST};
        uint64_t after = 0;

        for (;;) {
                struct ctl_value some = {0};
                uint64_t last = UINT64_MAX;
                int r = ask_list(c, &call, &after, &some);

                if (r == CTL_DONE && some.n == 0) {
                        ctl_value_deinit(&some);
                        *ret_list = list;
                        return CTL_DONE;
                }
                if (r == CTL_DONE)
                        last = ctl_value_number(&some.items[some.n - 1], "Number");
                if (r == CTL_DONE && last <= after)
                        r = out_of_shape(&call, -EBADMSG); /* asking on would never end */
                if (r != CTL_DONE) {
                        ctl_value_deinit(&some);
                        ctl_value_deinit(&list);
                        return r;
                }
                after = last;
                ctl_value_join(&list, &some);
        }
}

/* Those of a client, or some of everyone's. One that has gone meanwhile has none where it may (`pass`). */
static int some_devices(struct ctl *c, uint64_t client, const char *pass, struct ctl_value *ret_list)
{
        const struct ctl_call call = {
                CTL_MANAGER_PATH, CTL_MANAGER, "ListDevices", "list devices", NULL, false, pass};

        return ask_list(c, &call, &client, ret_list);
}

/* Everyone's devices, where there are too many for one answer. */
static int devices_of_each(struct ctl *c, struct ctl_value *ret_list)
{
        _cleanup_(ctl_value_deinit) struct ctl_value clients = {0};
        struct ctl_value list = {.kind = CTL_LIST};
        int r = ctl_bus_clients(c, false, &clients);

        for (size_t i = 0; r == CTL_DONE && i < clients.n; i++) {
                struct ctl_value some = {0};

                if (ctl_value_number(&clients.items[i], "Devices") == 0)
                        continue;
                r = some_devices(c, ctl_value_number(&clients.items[i], "Number"), NO_CLIENT, &some);
                if (r == CTL_DONE)
                        ctl_value_join(&list, &some);
        }
        if (r != CTL_DONE) {
                ctl_value_deinit(&list);
                return r;
        }
        *ret_list = list;
        return CTL_DONE;
}

int ctl_bus_devices(struct ctl *c, uint64_t client, struct ctl_value *ret_list)
{
        int r = some_devices(c, client, NULL, ret_list);

        if (r != CTL_DONE || client != 0 || ret_list->n < DEVICES_MAX)
                return r;
        ctl_value_deinit(ret_list);
        return devices_of_each(c, ret_list);
}

int ctl_bus_manager(struct ctl *c, bool no_start, struct ctl_value *ret_map)
{
        int r = properties(c, CTL_MANAGER_PATH, CTL_MANAGER, no_start, ret_map);

        return r == -ENOENT ? ctl_fail(CTL_FAILED, "what is on the bus as " RIGD_NAME " is no rigd") : r;
}

/* "memory, disk": what a list's maps have under `key`. The caller frees. */
static char *names_of(const struct ctl_value *list, const char *key)
{
        char *names = NULL;
        size_t bytes;
        FILE *f = open_memstream(&names, &bytes);

        if (!f)
                ctl_out_of_memory();
        for (size_t i = 0; i < RIG_MIN(list->n, (size_t)NAMES_SHOWN); i++) {
                _cleanup_(rig_freep) char *text = ctl_value_clean(&list->items[i], key);

                fputs(i ? ", " : "", f);
                if (*text)
                        fputs(text, f);
                else
                        fprintf(f, "%" PRIu64, ctl_value_number(&list->items[i], key));
        }
        if (list->n > NAMES_SHOWN)
                fprintf(f, " and %zu more", list->n - NAMES_SHOWN);
        if (fclose(f) != 0)
                ctl_out_of_memory();
        return names;
}

int ctl_bus_adapter(struct ctl *c, const char *name, struct ctl_value *ret_map)
{
        _cleanup_(rig_freep) char *path = NULL;
        _cleanup_(rig_freep) char *names = NULL;
        _cleanup_(rig_freep) char *clean = ctl_text_clean(name);
        _cleanup_(ctl_value_deinit) struct ctl_value list = {0};
        int r = sd_bus_path_encode(CTL_MANAGER_PATH "/adapter", name, &path);

        if (r < 0)
                ctl_out_of_memory();
        r = properties(c, path, CTL_ADAPTER, false, ret_map);
        if (r != -ENOENT)
                return r;
        r = ctl_bus_adapters(c, false, &list);
        if (r != CTL_DONE)
                return r;
        if (list.n == 0)
                return ctl_fail(CTL_FAILED, "there is no adapter \"%s\", nor any other", clean);
        names = names_of(&list, "Name");
        return ctl_fail(CTL_FAILED, "there is no adapter \"%s\"; there are: %s", clean, names);
}

int ctl_bus_client(struct ctl *c, uint64_t number, struct ctl_value *ret_map)
{
        _cleanup_(rig_freep) char *path = ctl_printf(CTL_MANAGER_PATH "/client/%" PRIu64, number);
        _cleanup_(rig_freep) char *names = NULL;
        _cleanup_(ctl_value_deinit) struct ctl_value list = {0};
        int r = properties(c, path, CTL_CLIENT, false, ret_map);

        if (r != -ENOENT)
                return r;
        r = ctl_bus_clients(c, false, &list);
        if (r != CTL_DONE)
                return r;
        if (list.n == 0)
                return ctl_fail(CTL_FAILED, "there is no client %" PRIu64 ", nor any other", number);
        names = names_of(&list, "Number");
        return ctl_fail(CTL_FAILED, "there is no client %" PRIu64 "; connected are: %s", number, names);
}
