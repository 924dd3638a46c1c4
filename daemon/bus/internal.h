/* SPDX-License-Identifier: ISC */
/*
 * What the files of daemon/bus/ share. All of it is the core loop's.
 *
 *   bus.c          the connection, the name, connecting again
 *   manager.c      /org/rig/Rig1, and its methods
 *   adapter.c      /org/rig/Rig1/adapter/NAME
 *   client.c       /org/rig/Rig1/client/NUMBER
 *   device.c       devices, which are dictionaries alone
 *   trace.c        StartTrace, StopTrace
 *   log-control.c  /org/freedesktop/LogControl1
 *   polkit.c       whether a caller may change something
 *   caller.c       learns when a caller leaves the bus
 *   write.c        texts and dictionaries into messages
 *
 * A property is written once, as a row of an sd-bus table, and read from it by Get, GetAll, Introspect and
 * the List methods alike. Nothing here waits for an answer of the bus or of anybody on it.
 */
#ifndef RIG_BUS_INTERNAL_H
#define RIG_BUS_INTERNAL_H

#include <systemd/sd-bus.h>

#include "daemon/bus/bus.h"
#include "daemon/process.h"

#define RIG_BUS_NAME    "org.rig.Rig1"
#define RIG_BUS_PATH    "/org/rig/Rig1"
#define RIG_BUS_ADAPTER RIG_BUS_PATH "/adapter"
#define RIG_BUS_CLIENT  RIG_BUS_PATH "/client"

/* Errors beside those of org.freedesktop.DBus.Error; org.rig.Rig1.xml says what they mean. */
#define RIG_BUS_ERROR_NO_CLIENT "org.rig.Rig1.Error.NoSuchClient"
#define RIG_BUS_ERROR_TRACED    "org.rig.Rig1.Error.AlreadyTracing"
#define RIG_BUS_ERROR_NO_TRACE  "org.rig.Rig1.Error.NotTracing"
#define RIG_BUS_ERROR_CONFIG    "org.rig.Rig1.Error.BadConfiguration"

#define RIG_BUS_ROW SD_BUS_VTABLE_UNPRIVILEGED /* of methods and what can be set: polkit.c says who may */

struct rig_bus {
        struct rig_core *core;
        struct rig_bus_ops ops;
        char *address;
        bool user;   /* the bus of one user, who may do everything on it */
        sd_bus *bus; /* or NULL between two connections */

        sd_event_source *retry; /* armed while there is no connection and none is awaited */
        uint64_t retry_usec;    /* the next pause */
        bool told_away;         /* logged: the bus is away, */
        bool told_taken;        /* the name is another's */

        struct rig_list checks; /* struct check of polkit.c */
        unsigned n_checks;
        struct rig_list traces; /* struct admin_trace of trace.c */
        unsigned n_traces;
};

/* ---------------------------------------------------------------- writing (write.c) */

/*
 * Appends text that clients had a hand in. What is no UTF-8, for which a bus ends the connection, and what
 * is no character to print, which would be a terminal's, are question marks in it.
 */
int rig_bus_append_text(sd_bus_message *m, const char *text);

/* A getter of a property that is a char array at the row's offset. */
int rig_bus_get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
        sd_bus_message *reply, void *userdata, sd_bus_error *error);

/* Appends an a{sv} of an object's properties, by their table. */
int rig_bus_append_properties(sd_bus_message *m, const sd_bus_vtable *table, void *object);

/* Writes an error of `r` with a sentence, `e`'s or else the errno's. Return: a negative value for the
 * caller. */
int rig_bus_fail(sd_bus_error *error, int r, const struct rig_error *e);

/* ---------------------------------------------------------------- objects */

extern const sd_bus_vtable rig_bus_adapter_table[], rig_bus_client_table[], rig_bus_device_table[];

/* Each adds what it serves to a new connection. */
int rig_bus_add_manager(struct rig_bus *bus);
int rig_bus_add_adapters(struct rig_bus *bus);
int rig_bus_add_clients(struct rig_bus *bus);
int rig_bus_add_log_control(struct rig_bus *bus);

struct rig_client *rig_bus_find_client(const struct rig_core *core, uint64_t number);
/* NULL and an error with a sentence where there is no such client. */
struct rig_client *rig_bus_need_client(const struct rig_core *core, uint64_t number, sd_bus_error *error);

/* ---------------------------------------------------------------- callers (caller.c) */

/* Somebody on the bus, watched until it leaves. */
struct rig_bus_caller {
        sd_bus_slot *match, *owner;
        void (*gone)(void *userdata);
        void *userdata;
};

/*
 * Calls `gone` once when `name` leaves the bus, from the loop; also where it is not there any more. `gone`
 * may free what the caller lies in.
 */
int rig_bus_caller_watch(sd_bus *bus, const char *name, void (*gone)(void *userdata), void *userdata,
        struct rig_bus_caller *ret_caller);
void rig_bus_caller_forget(struct rig_bus_caller *caller);

/* ---------------------------------------------------------------- permissions (polkit.c) */

/* Something that not everybody may do. */
struct rig_bus_action {
        const char *id;   /* polkit's name of it */
        const char *what; /* "set limits of a client", for sentences */
        /* Does it and answers, once the caller may. As a method's handler, but that `call` is at its start.
         */
        int (*act)(struct rig_bus *bus, sd_bus_message *call, sd_bus_error *error);
};

/*
 * Does the action where the caller may do it, now or later, and else answers that it may not. Return: as a
 * method's handler returns.
 */
int rig_bus_authorize(
        struct rig_bus *bus, sd_bus_message *call, const struct rig_bus_action *action, sd_bus_error *error);
/* Ends every check without an answer: the connection is gone. */
void rig_bus_drop_checks(struct rig_bus *bus);

/* ---------------------------------------------------------------- traces (trace.c) */

int rig_bus_start_trace(sd_bus_message *call, void *userdata, sd_bus_error *error);
int rig_bus_stop_trace(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* Ends every trace: the connection is gone. */
void rig_bus_drop_traces(struct rig_bus *bus);

#endif
