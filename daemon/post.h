/* SPDX-License-Identifier: ISC */
/* Posting from another thread to the core loop: the one way threads of rigd talk to it. */
#ifndef RIG_POST_H
#define RIG_POST_H

#include <systemd/sd-event.h>

#include "daemon/driver.h"

struct rig_post;

int rig_post_new(sd_event *event, struct rig_post **ret_post);
struct rig_post *rig_post_free(struct rig_post *post);

/* Queues a job whose run() is over, for its done() on the loop, and wakes that. From any thread; never
 * blocks. */
void rig_post_job(struct rig_post *post, struct rig_slow_job *job);
/* Wakes the loop where it sleeps. From any thread; never blocks. */
void rig_post_wake(struct rig_post *post);
/* Calls done() of what was posted. On the loop. Return: whether there was any. */
bool rig_post_run(struct rig_post *post);

#endif
