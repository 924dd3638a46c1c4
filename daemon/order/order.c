/* SPDX-License-Identifier: ISC */
/*
 * The order's own loop. Everything that happens to a timeline or a watch marks it, and this loop does what
 * is then due, so that no operation calls back into whoever made it happen and none recurses: a chain of a
 * million runs, each woken by the one before, is a loop here.
 */
#include "daemon/order/order.h"

#include "daemon/order/internal.h"

void rig_order_init(struct rig_order *order)
{
        *order = (struct rig_order){0};
        rig_list_init(&order->due);
        rig_list_init(&order->woken);
        rig_list_init(&order->timelines);
}

void rig_order_run(struct rig_order *order)
{
        struct rig_list *l;

        for (;;) {
                l = rig_list_pop(&order->due);
                if (l) {
                        rig_timeline_schedule(rig_list_entry(l, struct rig_timeline, due));
                        continue;
                }
                l = rig_list_pop(&order->woken);
                if (!l)
                        return;
                rig_watch_advance(rig_list_entry(l, struct rig_watch, woken));
        }
}
