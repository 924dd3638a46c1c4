/* SPDX-License-Identifier: ISC */
/*
 * rigd on D-Bus, for admins: org.rig.Rig1.xml says what there is. On the core loop, in turn with clients:
 * one message at a time, each bounded.
 */
#ifndef RIG_BUS_H
#define RIG_BUS_H

#include "daemon/core.h"

struct rig_bus;

/* What whoever holds the configuration does for it. */
struct rig_bus_ops {
        /*
         * Reads the configuration again and applies what can be applied. `ret_remarks` gets a
         * NULL-terminated array of sentences, freed by the caller, on what cannot. -EINVAL with a sentence:
         * it is wrong, nothing changed.
         */
        int (*reload)(void *userdata, char ***ret_remarks, struct rig_error *e);
        void *userdata;
};

/**
 * rig_bus_new() - serve a bus
 * @where: "system", "user", or a bus's address as D-Bus writes them; borrowed for the call
 * @ops:   copied
 *
 * Connects in the background, and again when the bus comes back: a bus that is not there is no error, and
 * rigd serves its clients without. On the bus of "user" that user may do everything; on the others root may,
 * and whom polkit allows it. Return: 0; -EINVAL (no address, or none of a Unix socket; no bus of a user
 * without $XDG_RUNTIME_DIR), -ENOMEM.
 */
int rig_bus_new(
        struct rig_core *core, const char *where, const struct rig_bus_ops *ops, struct rig_bus **ret_bus);
struct rig_bus *rig_bus_free(struct rig_bus *bus);

#endif
