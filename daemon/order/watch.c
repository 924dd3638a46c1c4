/* SPDX-License-Identifier: ISC */
/*
 * A watch waits for its points one after another, as the head of a timeline does, and completes from the
 * order's loop. Its verdict is taken from the stamps when it completes: a write that it waited for may have
 * been passed, and the memory spoiled, while it waited.
 */
#include "daemon/order/watch.h"

#include "daemon/order/internal.h"

static void wake(struct rig_waiter *waiter)
{
        struct rig_watch *watch = RIG_CONTAINER_OF(waiter, struct rig_watch, waiter);

        rig_list_append(&watch->order->woken, &watch->woken);
}

static void drop_points(struct rig_watch *watch)
{
        for (unsigned i = 0; i < watch->n_points; i++)
                rig_timeline_unref(watch->points[i].timeline);
        if (watch->points != watch->few)
                free(watch->points);
        watch->points = watch->few;
        watch->n_points = watch->next = 0;
}

static void add_point(struct rig_watch *watch, struct rig_timeline *timeline, uint64_t value)
{
        if (value > timeline->reached)
                watch->points[watch->n_points++] = (struct rig_point){rig_timeline_ref(timeline), value};
}

/* The points an access to the memory must follow, or, for WRITE, all there are. */
static int take_points(struct rig_watch *watch, const struct rig_stamps *stamps, uint32_t access)
{
        unsigned most = 1 + stamps->n_uses;

        watch->points = watch->few;
        if (access & RIG_ACCESS_WRITE && most > RIG_ARRAY_SIZE(watch->few)) {
                watch->points = malloc(most * sizeof(*watch->points));
                if (!watch->points) {
                        watch->points = watch->few;
                        return -ENOMEM;
                }
        }
        if (stamps->write.timeline)
                add_point(watch, stamps->write.timeline, stamps->write.value);
        if (access & RIG_ACCESS_WRITE)
                for (unsigned i = 0; i < stamps->n_uses; i++)
                        add_point(watch, stamps->uses[i].timeline, stamps->uses[i].value);
        return 0;
}

static void start(struct rig_watch *watch, struct rig_order *order, rig_watch_done done, void *userdata)
{
        *watch = (struct rig_watch){.order = order, .done = done, .userdata = userdata, .seq = order->seq};
        watch->points = watch->few;
        watch->waiter.wake = wake;
        rig_list_init(&watch->woken);
}

static void arm(struct rig_watch *watch)
{
        watch->armed = true;
        rig_list_append(&watch->order->woken, &watch->woken);
}

int rig_watch_access(struct rig_watch *watch, struct rig_order *order, const struct rig_stamps *stamps,
        uint32_t access, rig_watch_done done, void *userdata)
{
        start(watch, order, done, userdata);
        watch->stamps = stamps;
        if (take_points(watch, stamps, access) < 0)
                return -ENOMEM;
        arm(watch);
        return 0;
}

int rig_watch_idle(struct rig_watch *watch, struct rig_order *order, const struct rig_stamps *stamps,
        rig_watch_done done, void *userdata)
{
        start(watch, order, done, userdata);
        watch->stamps = stamps;
        watch->until_over = true;
        if (take_points(watch, stamps, RIG_ACCESS_WRITE) < 0)
                return -ENOMEM;
        arm(watch);
        return 0;
}

void rig_watch_value(struct rig_watch *watch, struct rig_order *order, struct rig_timeline *timeline,
        uint64_t value, rig_watch_done done, void *userdata)
{
        start(watch, order, done, userdata);
        add_point(watch, timeline, value);
        arm(watch);
}

void rig_watch_cancel(struct rig_watch *watch)
{
        if (!watch->armed)
                return;
        watch->armed = false;
        rig_waiter_remove(&watch->waiter);
        rig_list_remove(&watch->woken);
        drop_points(watch);
}

/* Whether the watch need not wait for the point, or not any longer. */
static bool passed(const struct rig_watch *watch, const struct rig_point *point)
{
        const struct rig_timeline *t = point->timeline;

        return watch->until_over ? rig_timeline_over(t, point->value)
                                 : point->value <= t->reached || t->lost;
}

static struct rig_timeline *verdict(const struct rig_watch *watch)
{
        if (watch->until_over)
                return NULL;
        if (watch->stamps)
                return rig_stamps_spoils(watch->stamps, watch->seq + 1) ? watch->stamps->culprit : NULL;
        for (unsigned i = 0; i < watch->n_points; i++)
                if (watch->points[i].value > watch->points[i].timeline->reached)
                        return watch->points[i].timeline;
        return NULL;
}

static void complete(struct rig_watch *watch)
{
        struct rig_timeline *culprit = rig_timeline_ref(verdict(watch));

        watch->armed = false;
        drop_points(watch);
        watch->done(watch, culprit); /* may free the watch */
        rig_timeline_unref(culprit);
}

void rig_watch_advance(struct rig_watch *watch)
{
        if (!watch->until_over && watch->stamps && verdict(watch)) {
                complete(watch);
                return;
        }
        while (watch->next < watch->n_points) {
                struct rig_point *point = &watch->points[watch->next];

                if (!passed(watch, point)) {
                        rig_waiters_add(&point->timeline->on_reached, &watch->waiter,
                                watch->until_over && point->timeline->lost
                                        ? RIG_MIN(point->value, point->timeline->handed)
                                        : point->value);
                        return;
                }
                watch->next++;
        }
        /* A loss meanwhile may have given uses back to the memory. */
        if (watch->until_over && !rig_stamps_idle(watch->stamps)) {
                drop_points(watch);
                if (watch->stamps->pinned || take_points(watch, watch->stamps, RIG_ACCESS_WRITE) < 0)
                        return; /* the memory stays: it cannot be shown that nothing uses it */
                rig_watch_advance(watch);
                return;
        }
        complete(watch);
}
