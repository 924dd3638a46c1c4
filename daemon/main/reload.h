/* SPDX-License-Identifier: ISC */
/* Reading the configuration again while rigd runs. */
#ifndef RIG_RELOAD_H
#define RIG_RELOAD_H

#include "daemon/config/files.h"
#include "daemon/core.h"

struct rig_reload {
        struct rig_core *core;
        const struct rig_config_sources *sources; /* borrowed */
        char serving[160];                        /* what it does, for STATUS= */
};

/* Logs what is wrong in it. */
void rig_reload_complain(const struct rig_config_read *read);

/* Tells systemd that rigd is ready, and what it does; `n_wrong`: how much of its configuration is wrong. */
void rig_reload_ready(const struct rig_reload *reload, size_t n_wrong);

/**
 * rig_reload_run() - read it again and apply what can be applied
 * @ret_remarks: NULL, or gets an array of sentences, NULL at its end, each and all freed by the caller: what
 * is wrong in the files, and what waits for a restart
 *
 * A setting whose last assignment is wrong keeps its value. Logs what changed and what did not. Return: 0;
 * where a file cannot be read, why, with a sentence: then nothing changed.
 */
int rig_reload_run(struct rig_reload *reload, char ***ret_remarks, struct rig_error *e);

#endif
