/* SPDX-License-Identifier: ISC */
/*
 * Stamps are appended to, and tidied when they are full: a later use of the same timeline stands for an
 * earlier one, and a use that is over needs no stamp. Tidying costs as much as the uses that made it
 * necessary, so a read costs a constant on average, however many devices share the memory, and so does a
 * write: it consumes what the reads since the last write appended.
 *
 * Once a memory is spoiled nothing is consumed any more. Every later run of it is lost, so its writes cannot
 * stand for earlier uses, and the memory must not return before all of those are over.
 */
#include "daemon/order/stamps.h"

#include <string.h>

#include "daemon/order/internal.h"

void rig_stamps_init(struct rig_stamps *stamps)
{
        *stamps = (struct rig_stamps){0};
        stamps->uses = stamps->first;
        stamps->room = RIG_ARRAY_SIZE(stamps->first);
}

void rig_stamps_deinit(struct rig_stamps *stamps)
{
        rig_timeline_unref(stamps->write.timeline);
        for (uint32_t i = 0; i < stamps->n_uses; i++)
                rig_timeline_unref(stamps->uses[i].timeline);
        if (stamps->uses != stamps->first)
                free(stamps->uses);
        rig_timeline_unref(stamps->culprit);
        rig_stamps_init(stamps);
}

struct rig_timeline *rig_stamps_culprit(const struct rig_stamps *stamps)
{
        return stamps->culprit;
}

bool rig_stamps_idle(const struct rig_stamps *stamps)
{
        if (stamps->pinned ||
                (stamps->write.timeline && !rig_timeline_over(stamps->write.timeline, stamps->write.value)))
                return false;
        for (uint32_t i = 0; i < stamps->n_uses; i++)
                if (!rig_timeline_over(stamps->uses[i].timeline, stamps->uses[i].value))
                        return false;
        return true;
}

/* Keeps the last use of each timeline, and none that is over. */
static void tidy(struct rig_stamps *stamps)
{
        uint32_t kept = 0;
        struct rig_order *order;

        if (!stamps->n_uses)
                return;
        order = stamps->uses[0].timeline->order;
        order->epoch++;
        for (uint32_t i = 0; i < stamps->n_uses; i++) {
                struct rig_point *use = &stamps->uses[i];
                struct rig_timeline *t = use->timeline;

                if (rig_timeline_over(t, use->value)) {
                        rig_timeline_unref(t);
                } else if (t->mark_epoch == order->epoch) {
                        stamps->uses[t->mark].value = RIG_MAX(stamps->uses[t->mark].value, use->value);
                        rig_timeline_unref(t);
                } else {
                        t->mark_epoch = order->epoch;
                        t->mark = kept;
                        stamps->uses[kept++] = *use;
                }
        }
        stamps->n_uses = kept;
}

int rig_stamps_reserve(struct rig_stamps *stamps)
{
        struct rig_point *uses;
        uint32_t room;

        if (rig_likely(stamps->n_uses < stamps->room))
                return 0;
        tidy(stamps);
        if (stamps->n_uses <= stamps->room / 2)
                return 0;
        room = stamps->room * 2;
        uses = malloc(room * sizeof(*uses));
        if (!uses)
                return stamps->n_uses < stamps->room ? 0 : -ENOMEM;
        memcpy(uses, stamps->uses, stamps->n_uses * sizeof(*uses));
        if (stamps->uses != stamps->first)
                free(stamps->uses);
        stamps->uses = uses;
        stamps->room = room;
        return 0;
}

static void append(struct rig_stamps *stamps, struct rig_timeline *timeline, uint64_t value)
{
        struct rig_point *last = stamps->n_uses ? &stamps->uses[stamps->n_uses - 1] : NULL;

        if (last && last->timeline == timeline) {
                /* A later use stands for an earlier one, but not one that a loss dropped before it ran. */
                last->value = rig_timeline_over(timeline, last->value) ? value : RIG_MAX(last->value, value);
                return;
        }
        rig_assert(stamps->n_uses < stamps->room);
        stamps->uses[stamps->n_uses++] = (struct rig_point){rig_timeline_ref(timeline), value};
}

/* The write stands for every earlier use. */
static void consume(struct rig_stamps *stamps)
{
        for (uint32_t i = 0; i < stamps->n_uses; i++)
                rig_timeline_unref(stamps->uses[i].timeline);
        stamps->n_uses = 0;
}

void rig_stamps_stamp(
        struct rig_stamps *stamps, uint32_t access, struct rig_timeline *timeline, uint64_t value)
{
        if (rig_unlikely(stamps->culprit != NULL) || !(access & RIG_ACCESS_WRITE)) {
                append(stamps, timeline, value);
                return;
        }
        consume(stamps);
        if (stamps->write.timeline != timeline) {
                rig_timeline_unref(stamps->write.timeline);
                stamps->write.timeline = rig_timeline_ref(timeline);
        }
        stamps->write.value = value;
}

void rig_stamps_restore(struct rig_stamps *stamps, struct rig_timeline *timeline, uint64_t value)
{
        if (rig_timeline_over(timeline, value))
                return;
        if (rig_stamps_reserve(stamps) < 0)
                stamps->pinned = true;
        else
                append(stamps, timeline, value);
}

void rig_stamps_spoil(struct rig_stamps *stamps, uint64_t seq, struct rig_timeline *culprit)
{
        if (stamps->culprit && stamps->spoiled_seq <= seq)
                return;
        rig_timeline_ref(culprit);
        rig_timeline_unref(stamps->culprit);
        stamps->culprit = culprit;
        stamps->spoiled_seq = seq;
}
