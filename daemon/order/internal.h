/* SPDX-License-Identifier: ISC */
/* What the files of this folder share, and nobody else uses. */
#ifndef RIG_ORDER_INTERNAL_H
#define RIG_ORDER_INTERNAL_H

#include "daemon/order/timeline.h"
#include "daemon/order/watch.h"

/* Hands over what can be; called for each timeline in order->due. */
void rig_timeline_schedule(struct rig_timeline *timeline);

/* Looks at the watch's next points; called for each watch in order->woken. */
void rig_watch_advance(struct rig_watch *watch);

/* True where a run with `seq` that names the memory is lost. */
static inline bool rig_stamps_spoils(const struct rig_stamps *stamps, uint64_t seq)
{
        return rig_unlikely(stamps->culprit != NULL) && stamps->spoiled_seq < seq;
}

#endif
