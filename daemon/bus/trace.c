/* SPDX-License-Identifier: ISC */
/*
 * Traces that admins record, into rings of theirs.
 *
 * A trace is its caller's: nobody else stops it, and it ends with its caller. There are few, since the core
 * writes into each what every device does; a caller has one, so that "stop" needs no name.
 */
#include <string.h>

#include "daemon/bus/internal.h"
#include "daemon/log/log.h"
#include "daemon/trace.h"

struct admin_trace {
        struct rig_list link; /* in bus->traces */
        struct rig_bus *bus;
        struct rig_bus_caller caller;
        struct rig_trace *trace;
        char sender[256];
};

static struct admin_trace *trace_free(struct admin_trace *t)
{
        rig_bus_caller_forget(&t->caller);
        t->trace = rig_trace_stop(t->trace);
        rig_list_remove(&t->link);
        t->bus->n_traces--;
        free(t);
        return NULL;
}

static void caller_gone(void *userdata)
{
        trace_free(userdata);
}

static struct admin_trace *find(const struct rig_bus *bus, const char *sender)
{
        rig_list_for_each (l, &bus->traces) {
                struct admin_trace *t = rig_list_entry(l, struct admin_trace, link);

                if (sender && strcmp(t->sender, sender) == 0)
                        return t;
        }
        return NULL;
}

/* Whether the caller can have a trace now, of that client. */
static int check(struct rig_bus *bus, sd_bus_message *call, uint64_t client, sd_bus_error *error)
{
        if (find(bus, sd_bus_message_get_sender(call)))
                return sd_bus_error_set(error, RIG_BUS_ERROR_TRACED,
                        "you have a trace already, and a caller has one at a time: call StopTrace first");
        if (bus->n_traces >= RIG_ADMIN_TRACES_MAX)
                return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "%u traces are being recorded, and there may be no more: stop one, or wait for one "
                        "to end",
                        bus->n_traces);
        if (client && !rig_bus_need_client(bus->core, client, error))
                return -ENOENT;
        return 0;
}

static int start(struct rig_bus *bus, sd_bus_message *call, uint64_t client, int fd, sd_bus_error *error)
{
        const char *sender = sd_bus_message_get_sender(call);
        struct admin_trace *t = calloc(1, sizeof(*t));
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        if (!t)
                return -ENOMEM;
        t->bus = bus;
        rig_list_init(&t->link);
        rig_list_append(&bus->traces, &t->link);
        bus->n_traces++;
        strncpy(t->sender, sender, sizeof(t->sender) - 1);
        r = rig_trace_start(bus->core, fd, RIG_ADMIN_TRACE_BYTES, client, &t->trace, &e);
        if (r < 0)
                sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "the ring cannot be recorded into: %s",
                        e.code ? e.text : strerror(-r));
        else
                r = rig_bus_caller_watch(bus->bus, t->sender, caller_gone, t, &t->caller);
        if (r < 0)
                trace_free(t);
        return r;
}

static int apply_start(struct rig_bus *bus, sd_bus_message *call, sd_bus_error *error)
{
        uint64_t client;
        int fd, r = sd_bus_message_read(call, "ht", &fd, &client); /* the descriptor is the message's */

        if (r >= 0)
                r = check(bus, call, client, error);
        if (r >= 0)
                r = start(bus, call, client, fd, error);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

int rig_bus_start_trace(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        static const struct rig_bus_action action = {
                .id = "org.rig.rig1.trace", .what = "record what devices do", .act = apply_start};
        struct rig_bus *b = userdata;
        uint64_t client;
        int fd, r = sd_bus_message_read(call, "ht", &fd, &client);

        if (r >= 0)
                r = check(b, call, client, error); /* nobody is asked for what cannot be done */
        return r < 0 ? r : rig_bus_authorize(b, call, &action, error);
}

int rig_bus_stop_trace(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct admin_trace *t = find(userdata, sd_bus_message_get_sender(call));

        if (!t)
                return sd_bus_error_set(error, RIG_BUS_ERROR_NO_TRACE,
                        "you have no trace: StartTrace starts one for its caller");
        trace_free(t);
        return sd_bus_reply_method_return(call, NULL);
}

void rig_bus_drop_traces(struct rig_bus *bus)
{
        while (!rig_list_empty(&bus->traces))
                trace_free(rig_list_entry(bus->traces.next, struct admin_trace, link));
}
