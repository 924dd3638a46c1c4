/* SPDX-License-Identifier: ISC */
/*
 * Calls to rigd, as daemon/bus/org.rig.Rig1.xml has them. Each says on stderr what went wrong, and returns
 * an exit status.
 */
#ifndef RIGCTL_BUS_H
#define RIGCTL_BUS_H

#include "tools/rigctl/rigctl.h"

#define CTL_MANAGER_PATH "/org/rig/Rig1"
#define CTL_MANAGER      "org.rig.Rig1.Manager"
#define CTL_ADAPTER      "org.rig.Rig1.Adapter"
#define CTL_CLIENT       "org.rig.Rig1.Client"

/* A call, and what to say of it where it is refused. */
struct ctl_call {
        const char *path, *interface, *member;
        const char *doing;  /* "set limits" */
        const char *action; /* polkit's, or NULL: reading is for everybody */
        bool no_start;      /* a rigd that is not running stays so */
        const char *pass;   /* an error's name that is none here: then there is no answer */
};

/* A message for a call, to be filled. */
int ctl_bus_message(struct ctl *c, const struct ctl_call *call, sd_bus_message **ret_message);
/* Sends it and waits for the answer. `filled` is what filling it gave, and told here where that is an error.
 */
int ctl_bus_call(struct ctl *c, const struct ctl_call *call, sd_bus_message *message, int filled,
        sd_bus_message **ret_answer);
/* Reads the one value of an answer. */
int ctl_bus_read(const struct ctl_call *call, sd_bus_message *answer, struct ctl_value *ret_value);

/* Every adapter. `no_start` as in a call. */
int ctl_bus_adapters(struct ctl *c, bool no_start, struct ctl_value *ret_list);
/* Every client, by number. */
int ctl_bus_clients(struct ctl *c, bool no_start, struct ctl_value *ret_list);
/* Every device of a client, or (0) of everyone. */
int ctl_bus_devices(struct ctl *c, uint64_t client, struct ctl_value *ret_list);
/* The manager's properties. */
int ctl_bus_manager(struct ctl *c, bool no_start, struct ctl_value *ret_map);
/* One adapter's properties, or one client's. Where there is none it says which there are. */
int ctl_bus_adapter(struct ctl *c, const char *name, struct ctl_value *ret_map);
int ctl_bus_client(struct ctl *c, uint64_t number, struct ctl_value *ret_map);

#endif
