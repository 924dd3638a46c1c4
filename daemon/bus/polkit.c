/* SPDX-License-Identifier: ISC */
/*
 * Who may change something: root; on the bus of a user, that user; and whom polkit allows it.
 *
 * The bus says which user a caller is, polkit whether that one may. Both are asked without waiting. A check
 * keeps the call until it is answered, so there are bounds: of all checks, and of those of one caller and of
 * one user. It ends without an answer when its caller leaves the bus, in whose place nobody may be asked for
 * a password any more, and when the connection does.
 *
 * Answers come from whoever has polkit's name, which a bus gives to polkit alone by its policy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/bus/internal.h"
#include "daemon/log/log.h"

#define CHECKS_MAX        64u
#define CALLER_CHECKS_MAX 4u
#define USER_CHECKS_MAX   16u /* but root's, which nobody but the bus is asked for */

#define DBUS      "org.freedesktop.DBus"
#define DBUS_PATH "/org/freedesktop/DBus"

#define POLKIT           "org.freedesktop.PolicyKit1"
#define POLKIT_PATH      "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define POLKIT_INTERACTS 1u /* AllowUserInteraction */

/* Somebody types a password meanwhile, or polkit looks into its rules. */
#define INTERACTION_USEC (UINT64_C(120) * RIG_USEC_PER_SEC)
#define RULES_USEC       (UINT64_C(25) * RIG_USEC_PER_SEC)

struct check {
        struct rig_list link; /* in bus->checks */
        struct rig_bus *bus;
        sd_bus_message *call; /* referenced */
        const struct rig_bus_action *action;
        sd_bus_slot *slot; /* of the question */
        struct rig_bus_caller caller;
        bool known; /* whose it is */
        uid_t uid;
        bool asked;     /* polkit, */
        char token[24]; /* by this name */
};

static struct check *check_free(struct check *c)
{
        sd_bus_slot_unref(c->slot);
        rig_bus_caller_forget(&c->caller);
        sd_bus_message_unref(c->call);
        rig_list_remove(&c->link);
        c->bus->n_checks--;
        free(c);
        return NULL;
}

void rig_bus_drop_checks(struct rig_bus *bus)
{
        while (!rig_list_empty(&bus->checks))
                check_free(rig_list_entry(bus->checks.next, struct check, link));
}

static const char *sender(const struct check *c)
{
        return sd_bus_message_get_sender(c->call);
}

/* ---------------------------------------------------------------- the end of a check */

static void answer_error(struct check *c, const sd_bus_error *error)
{
        sd_bus_reply_method_error(c->call, error);
        check_free(c);
}

static void _printf_(3, 4) deny(struct check *c, const char *name, const char *fmt, ...)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list ap;

        va_start(ap, fmt);
        sd_bus_error_setfv(&error, name, fmt, ap);
        va_end(ap);
        answer_error(c, &error);
}

static void allow(struct check *c)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_message_rewind(c->call, true);

        if (r >= 0)
                r = c->action->act(c->bus, c->call, &error);
        if (r >= 0) {
                check_free(c);
                return;
        }
        if (!sd_bus_error_is_set(&error))
                sd_bus_error_set_errno(&error, r);
        answer_error(c, &error);
}

/* The caller is gone: polkit need not ask anybody any more. */
static void caller_gone(void *userdata)
{
        struct check *c = userdata;

        if (c->asked)
                (void)sd_bus_call_method_async(c->bus->bus, NULL, POLKIT, POLKIT_PATH, POLKIT_INTERFACE,
                        "CancelCheckAuthorization", NULL, NULL, "s", c->token);
        check_free(c);
}

/* ---------------------------------------------------------------- polkit */

static bool polkit_is_away(const sd_bus_error *error)
{
        return sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                       "org.freedesktop.systemd1.LoadFailed", "org.freedesktop.systemd1.NoSuchUnit",
                       "org.freedesktop.systemd1.UnitMasked") ||
               strncmp(error->name, DBUS ".Error.Spawn.", strlen(DBUS ".Error.Spawn.")) == 0;
}

static int polkit_answered(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
        const sd_bus_error *error = sd_bus_message_get_error(m);
        struct check *c = userdata;
        int authorized, challenge, r;

        c->asked = false;
        if (error && polkit_is_away(error)) {
                deny(c, SD_BUS_ERROR_ACCESS_DENIED,
                        "only root may %s, or whom polkit allows it, and polkit is not running",
                        c->action->what);
                return 0;
        }
        if (error) {
                rig_log(LOG_WARNING, "polkit does not answer whether somebody may %s: %s", c->action->what,
                        error->message ? error->message : error->name);
                deny(c, SD_BUS_ERROR_ACCESS_DENIED,
                        "only root may %s, or whom polkit allows it, and polkit says: %s", c->action->what,
                        error->message ? error->message : error->name);
                return 0;
        }
        r = sd_bus_message_enter_container(m, 'r', "bba{ss}");
        if (r >= 0)
                r = sd_bus_message_read(m, "bb", &authorized, &challenge);
        if (r < 0)
                deny(c, SD_BUS_ERROR_ACCESS_DENIED,
                        "polkit was asked whether you may %s, and its answer is none", c->action->what);
        else if (authorized)
                allow(c);
        else if (challenge)
                deny(c, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                        "to %s you have to authenticate, for %s, and nothing here asks you for it",
                        c->action->what, c->action->id);
        else
                deny(c, SD_BUS_ERROR_ACCESS_DENIED, "polkit does not allow you to %s (%s)", c->action->what,
                        c->action->id);
        return 0;
}

static int ask_polkit(struct check *c)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        bool interactive = sd_bus_message_get_allow_interactive_authorization(c->call) > 0;
        static uint64_t last_token;
        int r;

        snprintf(c->token, sizeof(c->token), "rigd-%" PRIu64, ++last_token);
        r = rig_bus_caller_watch(c->bus->bus, sender(c), caller_gone, c, &c->caller);
        if (r >= 0)
                r = sd_bus_message_new_method_call(
                        c->bus->bus, &m, POLKIT, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                        sender(c), c->action->id, 0, interactive ? POLKIT_INTERACTS : 0, c->token);
        if (r >= 0)
                r = sd_bus_call_async(c->bus->bus, &c->slot, m, polkit_answered, c,
                        interactive ? INTERACTION_USEC : RULES_USEC);
        c->asked = r >= 0;
        return r;
}

/* ---------------------------------------------------------------- callers */

static unsigned checks_of_user(const struct rig_bus *bus, uid_t uid)
{
        unsigned n = 0;

        rig_list_for_each (l, &bus->checks) {
                const struct check *c = rig_list_entry(l, struct check, link);

                n += c->known && c->uid == uid;
        }
        return n;
}

static unsigned checks_of_caller(const struct rig_bus *bus, const char *name)
{
        unsigned n = 0;

        rig_list_for_each (l, &bus->checks)
                n += strcmp(sender(rig_list_entry(l, struct check, link)), name) == 0;
        return n;
}

static int uid_answered(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
        struct check *c = userdata;
        uint32_t uid;
        int r;

        c->slot = sd_bus_slot_unref(c->slot);
        if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read(m, "u", &uid) < 0) {
                deny(c, SD_BUS_ERROR_ACCESS_DENIED, "the bus does not say who you are"); /* or it has left */
                return 0;
        }
        if (uid == 0 || (c->bus->user && uid == getuid())) {
                allow(c);
                return 0;
        }
        if (checks_of_user(c->bus, uid) >= USER_CHECKS_MAX) {
                deny(c, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "polkit is being asked about %u requests of user %u already: wait until one is "
                        "answered",
                        USER_CHECKS_MAX, (unsigned)uid);
                return 0;
        }
        c->known = true;
        c->uid = uid;
        r = ask_polkit(c);
        if (r < 0)
                deny(c, SD_BUS_ERROR_FAILED, "polkit cannot be asked: %s", strerror(-r));
        return 0;
}

int rig_bus_authorize(
        struct rig_bus *bus, sd_bus_message *call, const struct rig_bus_action *action, sd_bus_error *error)
{
        struct check *c;
        int r;

        if (!sd_bus_message_get_sender(call))
                return -EINVAL; /* what sent it is no bus */
        if (bus->n_checks >= CHECKS_MAX ||
                checks_of_caller(bus, sd_bus_message_get_sender(call)) >= CALLER_CHECKS_MAX)
                return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "it is being checked for %u requests already whether their callers may make them: "
                        "wait until "
                        "one is answered",
                        bus->n_checks);
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->bus = bus;
        c->call = sd_bus_message_ref(call);
        c->action = action;
        rig_list_init(&c->link);
        rig_list_append(&bus->checks, &c->link);
        bus->n_checks++;
        r = sd_bus_call_method_async(bus->bus, &c->slot, DBUS, DBUS_PATH, DBUS, "GetConnectionUnixUser",
                uid_answered, c, "s", sd_bus_message_get_sender(call));
        if (r < 0) {
                check_free(c);
                return r;
        }
        return 1;
}
