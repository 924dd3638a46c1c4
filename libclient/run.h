/* SPDX-License-Identifier: ISC */
/* Runs of works: what rig_submit() and the one-shot calls share. */
#ifndef RIG_CLIENT_RUN_H
#define RIG_CLIENT_RUN_H

#include "libclient/work.h"

/* As rig_submit(). */
int rig_run(struct rig_work *work, struct rig_buffer *const *buffers, size_t n_buffers,
        const struct rig_point *points, size_t n_points, struct rig_point *ret_point);

#endif
