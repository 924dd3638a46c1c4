/* SPDX-License-Identifier: ISC */
/*
 * Timelines.
 *
 * The record log. Runs lie one after another in chunks of memory, oldest first, and never move: a run is
 * added at the end, handed over in the middle (`next`) and removed at the front when its value is reached.
 * Empty chunks are kept for the next ones, up to SPARES_MAX, so a device in steady state allocates nothing.
 *
 * Points. A run's foreign points are taken from its memory's stamps when it is accepted, the largest value
 * of each timeline, without those reached already. They are looked at when the run is at the head of the
 * queue, in turn: `next_point` ones are known to need no wait of the core's. A point that the device's queue
 * can wait for itself is left to it once it was handed over; before that its run might still be passed, and
 * the queue would wait for ever.
 *
 * Loss. A lost timeline keeps the runs it had handed over until its word shows them reached or its work
 * ended, and drops the others at once. What those others followed is given back to the stamps of the memory
 * they would have written, for they had stood for it.
 *
 * A run that is passed, because its memory is spoiled, is passed at the head of its queue with every point
 * it follows reached or lost, so what it stood for in the stamps is over or was restored by the loss.
 */
#include "daemon/order/timeline.h"

#include <string.h>

#include "daemon/order/internal.h"

#define SPARES_MAX  16
#define CHUNK_BYTES ((size_t)16384 - sizeof(struct rig_run_chunk))

struct rig_run_chunk {
        struct rig_run_chunk *newer;
        size_t begin, end, room; /* records lie in data[begin .. end) */
        char data[] __attribute__((aligned(16)));
};

/* ---------------------------------------------------------------- life */

static void wake_head(struct rig_waiter *waiter)
{
        struct rig_timeline *t = RIG_CONTAINER_OF(waiter, struct rig_timeline, head);

        rig_list_remove(&t->due);
        rig_list_append(&t->order->due, &t->due);
}

static void make_due(struct rig_timeline *t)
{
        if (rig_list_empty(&t->due))
                rig_list_append(&t->order->due, &t->due);
}

struct rig_timeline *rig_timeline_new(
        struct rig_order *order, const struct rig_timeline_ops *ops, void *userdata)
{
        struct rig_timeline *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->order = order;
        t->ops = ops;
        t->userdata = userdata;
        t->refs = 1;
        t->committed = true;
        t->head.wake = wake_head;
        rig_list_init(&t->due);
        rig_list_append(&order->timelines, &t->all);
        order->n_timelines++;
        return t;
}

struct rig_timeline *rig_timeline_ref(struct rig_timeline *timeline)
{
        if (timeline)
                timeline->refs++;
        return timeline;
}

static void drop_points(struct rig_run *run)
{
        for (unsigned i = 0; i < run->n_points; i++)
                rig_timeline_unref(run->points[i].timeline);
        run->n_points = run->n_waits = 0;
}

static void free_chunks(struct rig_run_chunk *chunk)
{
        while (chunk) {
                struct rig_run_chunk *newer = chunk->newer;

                free(chunk);
                chunk = newer;
        }
}

struct rig_timeline *rig_timeline_unref(struct rig_timeline *timeline)
{
        struct rig_timeline *t = timeline;

        if (!t || --t->refs)
                return NULL;
        rig_waiter_remove(&t->head);
        rig_list_remove(&t->due);
        rig_list_remove(&t->all);
        t->order->n_timelines--;
        for (struct rig_run_chunk *c = t->oldest; c; c = c->newer)
                for (size_t at = c->begin; at < c->end;
                        at += ((struct rig_run *)(void *)(c->data + at))->bytes)
                        drop_points((struct rig_run *)(void *)(c->data + at));
        free_chunks(t->oldest);
        free_chunks(t->spare);
        rig_timeline_unref(t->stuck_on);
        free(t->remains);
        free(t);
        return NULL;
}

/* ---------------------------------------------------------------- the record log */

static struct rig_run *run_at(struct rig_run_chunk *chunk, size_t at)
{
        return (struct rig_run *)(void *)(chunk->data + at);
}

static struct rig_run *oldest_run(struct rig_timeline *t)
{
        return t->oldest && t->oldest->begin < t->oldest->end ? run_at(t->oldest, t->oldest->begin) : NULL;
}

static void free_chunk(struct rig_timeline *t, struct rig_run_chunk *c)
{
        if (t->n_spares == SPARES_MAX || c->room != CHUNK_BYTES) {
                free(c);
                return;
        }
        c->newer = t->spare;
        t->spare = c;
        t->n_spares++;
}

/* A chunk at the end of the log with room for `bytes` more. */
static struct rig_run_chunk *log_room(struct rig_timeline *t, size_t bytes)
{
        struct rig_run_chunk *c = t->newest;
        size_t room = RIG_MAX(bytes, CHUNK_BYTES);

        if (rig_likely(c && c->room - c->end >= bytes))
                return c;
        if (c && c->begin == c->end && c->room >= bytes) {
                c->begin = c->end = 0;
                return c;
        }
        if (c && c->begin == c->end) { /* too small, and empty, so it is the only one */
                t->oldest = t->newest = NULL;
                free_chunk(t, c);
        }
        if (rig_likely(t->spare && bytes <= CHUNK_BYTES)) {
                c = t->spare;
                t->spare = c->newer;
                t->n_spares--;
        } else {
                c = malloc(sizeof(*c) + room);
                if (!c)
                        return NULL;
                c->room = room;
        }
        c->newer = NULL;
        c->begin = c->end = 0;
        if (t->newest)
                t->newest->newer = c;
        else
                t->oldest = c;
        t->newest = c;
        return c;
}

/* Removes the oldest run, whose record nobody reads any more. */
static void log_pop(struct rig_timeline *t)
{
        struct rig_run_chunk *c = t->oldest;

        c->begin += run_at(c, c->begin)->bytes;
        if (c->begin < c->end)
                return;
        if (!c->newer) {
                c->begin = c->end = 0;
                return;
        }
        t->oldest = c->newer;
        free_chunk(t, c);
}

/* Moves `next` to the run behind it. */
static void log_next(struct rig_timeline *t)
{
        struct rig_run_chunk *c = t->next_chunk;
        size_t at = (size_t)((char *)t->next - c->data) + t->next->bytes;

        if (at == c->end && c->newer) {
                c = c->newer;
                at = c->begin;
        }
        t->next_chunk = c;
        t->next = at < c->end ? run_at(c, at) : NULL;
}

/* ---------------------------------------------------------------- accepting */

/* Adds a point to the run, or raises the one of its timeline. */
static void collect(struct rig_timeline *t, struct rig_run *run, const struct rig_point *point)
{
        struct rig_timeline *of = point->timeline;

        if (!of || of == t || point->value <= of->reached)
                return;
        if (of->mark_epoch == t->order->epoch) {
                run->points[of->mark].value = RIG_MAX(run->points[of->mark].value, point->value);
                return;
        }
        of->mark_epoch = t->order->epoch;
        of->mark = run->n_points;
        run->points[run->n_points++] = (struct rig_point){rig_timeline_ref(of), point->value};
}

static void collect_all(struct rig_timeline *t, struct rig_run *run, const struct rig_use *uses,
        unsigned n_uses, const struct rig_point *points, unsigned n_points)
{
        for (unsigned i = 0; i < n_uses; i++) {
                const struct rig_stamps *s = uses[i].stamps;

                collect(t, run, &s->write);
                if (uses[i].access & RIG_ACCESS_WRITE)
                        for (unsigned j = 0; j < s->n_uses; j++)
                                collect(t, run, &s->uses[j]);
        }
        run->n_implicit = run->n_points;
        for (unsigned i = 0; i < n_points; i++) {
                struct rig_timeline *of = points[i].timeline;

                rig_assert(points[i].value <= of->submitted);
                if (of != t && points[i].value > of->reached)
                        run->points[run->n_points++] =
                                (struct rig_point){rig_timeline_ref(of), points[i].value};
        }
}

/* What a run that is lost leaves behind in its memory; `reads` too where its work may still be running. */
static void spoil_uses(
        const struct rig_use *uses, unsigned n_uses, uint64_t seq, struct rig_timeline *culprit, bool reads)
{
        for (unsigned i = 0; i < n_uses; i++)
                if (reads || uses[i].access & RIG_ACCESS_WRITE)
                        rig_stamps_spoil(uses[i].stamps, seq, culprit);
}

/* Bytes of the record, with as many points as its memory can give it: one a timeline at most. */
static size_t record_bytes(const struct rig_order *order, const struct rig_use *uses, unsigned n_uses,
        unsigned n_points, size_t payload_bytes, unsigned *ret_points)
{
        size_t points = 0;

        for (unsigned i = 0; i < n_uses; i++)
                points += 1 + (uses[i].access & RIG_ACCESS_WRITE ? uses[i].stamps->n_uses : 0);
        points = RIG_MIN(points, (size_t)order->n_timelines) + n_points;
        *ret_points = (unsigned)points;
        return rig_round_up(sizeof(struct rig_run) + n_uses * sizeof(struct rig_use) +
                                    points * sizeof(struct rig_point) + payload_bytes,
                16);
}

int rig_timeline_accept(struct rig_timeline *timeline, const struct rig_use *uses, unsigned n_uses,
        const struct rig_point *points, unsigned n_points, size_t payload_bytes, struct rig_run **ret_run)
{
        struct rig_timeline *t = timeline;
        struct rig_run_chunk *c;
        struct rig_run *run;
        unsigned most_points;
        size_t bytes;

        if (rig_unlikely(t->lost)) {
                t->submitted++;
                spoil_uses(uses, n_uses, ++t->order->seq, t, false);
                *ret_run = NULL;
                return 0;
        }
        for (unsigned i = 0; i < n_uses; i++)
                if (rig_stamps_reserve(uses[i].stamps) < 0)
                        return -ENOMEM;
        bytes = record_bytes(t->order, uses, n_uses, n_points, payload_bytes, &most_points);
        c = log_room(t, bytes);
        if (!c)
                return -ENOMEM;

        run = run_at(c, c->end);
        *run = (struct rig_run){.value = ++t->submitted, .seq = ++t->order->seq, .n_uses = (uint16_t)n_uses};
        run->uses = (struct rig_use *)(void *)(run + 1);
        run->points = (struct rig_point *)(void *)(run->uses + n_uses);
        t->order->epoch++;
        collect_all(t, run, uses, n_uses, points, n_points);
        run->payload = run->points + run->n_points;
        run->bytes = (uint32_t)(bytes - (most_points - run->n_points) * sizeof(struct rig_point));
        c->end += run->bytes;
        for (unsigned i = 0; i < n_uses; i++) {
                run->uses[i] = uses[i];
                rig_stamps_stamp(uses[i].stamps, uses[i].access, t, run->value);
        }
        if (!t->next) {
                t->next = run;
                t->next_chunk = c;
                make_due(t);
        }
        *ret_run = run;
        return 0;
}

/* ---------------------------------------------------------------- handing over */

static bool queue_waits_for(struct rig_timeline *t, const struct rig_timeline *producer)
{
        return t->ops->queue_waits && t->ops->queue_waits(t, producer);
}

/*
 * Whether the head needs no wait of the core's any more; else it waits now. Nothing is left to the queue for
 * a run that is lost: it never gets there.
 */
static bool head_ready(struct rig_timeline *t, struct rig_run *run, bool is_lost)
{
        if (rig_unlikely(is_lost) && run->n_waits)
                run->n_waits = run->next_point = 0;
        for (; run->next_point < run->n_points; run->next_point++) {
                struct rig_point *p = &run->points[run->next_point];
                struct rig_timeline *of = p->timeline;

                if (p->value <= of->reached || of->lost)
                        continue;
                if (!is_lost && queue_waits_for(t, of) && run->n_waits < t->ops->max_waits(t)) {
                        if (p->value > of->handed) {
                                rig_waiters_add(&of->on_handed, &t->head, p->value);
                                return false;
                        }
                        if (p->value > of->last_lost) {
                                run->n_waits++;
                                continue;
                        }
                }
                rig_waiters_add(&of->on_reached, &t->head, p->value);
                return false;
        }
        return true;
}

/* The timeline whose loss loses the run, or NULL. */
static struct rig_timeline *run_culprit(const struct rig_run *run)
{
        for (unsigned i = 0; i < run->n_uses; i++)
                if (rig_stamps_spoils(run->uses[i].stamps, run->seq))
                        return run->uses[i].stamps->culprit;
        for (unsigned i = run->n_implicit; i < run->n_points; i++)
                if (run->points[i].timeline->lost && run->points[i].value > run->points[i].timeline->reached)
                        return run->points[i].timeline;
        return NULL;
}

/* Leaves in the run the points that the device's queue waits for: those of the core are reached. */
static void keep_waits(struct rig_run *run)
{
        unsigned kept = 0, implicit = 0;

        for (unsigned i = 0; i < run->n_points; i++) {
                struct rig_point p = run->points[i];

                if (p.value > p.timeline->reached && !p.timeline->lost) {
                        run->points[kept++] = p;
                        implicit += i < run->n_implicit;
                } else {
                        rig_timeline_unref(p.timeline);
                }
        }
        run->n_points = run->n_waits = run->next_point = (uint16_t)kept;
        run->n_implicit = (uint16_t)implicit;
}

/* The run at the head was handed over or passed. */
static void head_gone(struct rig_timeline *t)
{
        t->handed = t->next->value;
        log_next(t);
        rig_waiters_reached(&t->on_handed, t->handed);
}

static void settle(struct rig_timeline *t, uint64_t value);

static void pass(struct rig_timeline *t, struct rig_run *run, struct rig_timeline *culprit)
{
        rig_timeline_ref(culprit);
        spoil_uses(run->uses, run->n_uses, run->seq, culprit, false);
        run->lost = true;
        t->last_lost = run->value;
        t->ops->run_lost(t, run, culprit);
        head_gone(t);
        settle(t, t->reached);
        rig_timeline_unref(culprit);
}

void rig_timeline_schedule(struct rig_timeline *timeline)
{
        struct rig_timeline *t = rig_timeline_ref(timeline);

        if (t->stuck_on && !t->lost)
                t->ops->stuck(t, t->stuck_on);
        while (t->next && !t->lost && !t->error && !t->head.of) {
                struct rig_run *run = t->next;
                struct rig_timeline *culprit = run_culprit(run);

                if (!head_ready(t, run, culprit))
                        break;
                if (rig_unlikely(culprit != NULL)) {
                        pass(t, run, culprit);
                        continue;
                }
                if (run->n_points)
                        keep_waits(run);
                if (t->ops->room && !t->ops->room(t, run))
                        break;
                t->error = t->ops->hand_over(t, run);
                if (rig_unlikely(t->error))
                        break;
                t->committed = false;
                head_gone(t);
        }
        if (!t->committed) {
                t->committed = true;
                if (t->ops->commit)
                        t->ops->commit(t);
        }
        if (rig_unlikely(t->error) && !t->lost)
                t->ops->failed(t, t->error);
        rig_timeline_unref(t);
}

/* ---------------------------------------------------------------- reaching */

/*
 * Raises `reached` to `value`, and over the passed runs that come next.
 *
 * What a completed run waited for in its queue is complete too, even where the other device's word was not
 * looked at yet: it is reached first, so that whatever stands for earlier work in the stamps is never
 * reached before it. This goes as deep as queues wait for each other, and into each timeline once.
 */
static void settle(struct rig_timeline *t, uint64_t value)
{
        uint64_t before = t->reached;
        struct rig_run *run;

        while ((run = oldest_run(t)) && run->value <= t->handed && (run->value <= value || run->lost)) {
                for (unsigned i = 0; i < run->n_waits; i++)
                        if (run->points[i].value > run->points[i].timeline->reached)
                                settle(run->points[i].timeline, run->points[i].value);
                t->reached = run->value;
                t->ops->run_over(t, run);
                drop_points(run);
                log_pop(t);
        }
        if (t->reached == before)
                return;
        rig_waiters_reached(&t->on_reached, t->reached);
        if (t->ops->advanced)
                t->ops->advanced(t);
        if (t->next && !t->head.of)
                make_due(t);
}

void rig_timeline_reach(struct rig_timeline *timeline, uint64_t value)
{
        if (value > timeline->reached)
                settle(timeline, value);
}

bool rig_timeline_over(const struct rig_timeline *timeline, uint64_t value)
{
        const struct rig_timeline *t = timeline;

        return value <= t->reached || (t->lost && (t->ended || value > t->handed));
}

/* ---------------------------------------------------------------- loss */

/* Work that the run followed, or still follows in its queue, is given back to the memory that it stood for.
 */
static void restore_followed(const struct rig_run *run)
{
        for (unsigned i = 0; i < run->n_uses; i++)
                for (unsigned j = 0; run->uses[i].access & RIG_ACCESS_WRITE && j < run->n_implicit; j++)
                        rig_stamps_restore(
                                run->uses[i].stamps, run->points[j].timeline, run->points[j].value);
}

/* The runs handed over and not reached: their memory is spoiled, and they may still use it. */
static void lose_handed(struct rig_timeline *t, bool ended)
{
        for (struct rig_run_chunk *c = t->oldest; c; c = c->newer)
                for (size_t at = c->begin; at < c->end; at += run_at(c, at)->bytes) {
                        struct rig_run *run = run_at(c, at);

                        if (run == t->next)
                                return;
                        if (run->lost)
                                continue;
                        spoil_uses(run->uses, run->n_uses, run->seq, t, !ended);
                        for (unsigned i = 0; i < run->n_uses; i++)
                                rig_stamps_restore(run->uses[i].stamps, t, run->value);
                        restore_followed(run);
                }
}

/* A run that will never be handed over. */
static void drop_run(struct rig_timeline *t, struct rig_run *run, bool ended)
{
        spoil_uses(run->uses, run->n_uses, run->seq, t, !ended);
        restore_followed(run);
        t->ops->run_over(t, run);
        drop_points(run);
}

/* Drops the runs from `next` on, and their part of the log. */
static void drop_waiting(struct rig_timeline *t, bool ended)
{
        struct rig_run_chunk *keep = t->next_chunk;
        size_t end;

        if (!t->next)
                return;
        end = (size_t)((char *)t->next - keep->data);
        while (t->next) {
                struct rig_run *run = t->next;

                log_next(t);
                drop_run(t, run, ended);
        }
        keep->end = end;
        free_chunks(keep->newer);
        keep->newer = NULL;
        t->newest = keep;
}

/* No work of the timeline runs any more: the records of what it had been handed go. */
static void drop_handed(struct rig_timeline *t)
{
        struct rig_run *run;

        while ((run = oldest_run(t))) {
                t->ops->run_over(t, run);
                drop_points(run);
                log_pop(t);
        }
}

/* Marks the timelines whose queue waits for values of `t` that will never be. */
static void mark_stuck(struct rig_timeline *t)
{
        rig_list_for_each (l, &t->order->timelines) {
                struct rig_timeline *u = rig_list_entry(l, struct rig_timeline, all);

                if (u->lost || u->stuck_on)
                        continue;
                for (struct rig_run_chunk *c = u->oldest; c && !u->stuck_on; c = c->newer)
                        for (size_t at = c->begin; at < c->end; at += run_at(c, at)->bytes) {
                                struct rig_run *run = run_at(c, at);

                                if (run == u->next)
                                        break;
                                for (unsigned i = 0; i < run->n_waits && !u->stuck_on; i++)
                                        if (run->points[i].timeline == t &&
                                                run->points[i].value > t->reached)
                                                u->stuck_on = rig_timeline_ref(t);
                        }
                if (u->stuck_on || u->next)
                        make_due(u); /* a head that waits for room may be lost now */
        }
}

void rig_timeline_lose(struct rig_timeline *timeline, bool ended)
{
        struct rig_timeline *t = rig_timeline_ref(timeline);

        if (!t->lost) {
                t->lost = true;
                t->ended = ended;
                rig_waiter_remove(&t->head);
                lose_handed(t, ended);
                drop_waiting(t, ended);
                if (ended)
                        drop_handed(t);
                mark_stuck(t);
                rig_waiters_reached(&t->on_handed, UINT64_MAX);
                rig_waiters_reached(&t->on_reached, UINT64_MAX);
        } else if (ended && !t->ended) {
                t->ended = true;
                drop_handed(t);
                rig_waiters_reached(&t->on_reached, UINT64_MAX);
        }
        rig_timeline_unref(t);
}

/* ---------------------------------------------------------------- hangs */

static bool works(struct rig_timeline *t)
{
        const struct rig_run *run = oldest_run(t);

        if (t->lost || !run || run->value > t->handed)
                return false;
        for (unsigned i = 0; i < run->n_waits; i++)
                if (run->points[i].value > run->points[i].timeline->reached)
                        return false;
        return true;
}

bool rig_timeline_hangs(struct rig_timeline *timeline, uint64_t now_usec, uint64_t bound_usec)
{
        struct rig_timeline *t = timeline;

        if (!bound_usec || !works(t)) {
                t->still = false;
                return false;
        }
        if (!t->still || t->still_value != t->reached) {
                t->still = true;
                t->still_since_usec = now_usec;
                t->still_value = t->reached;
                return false;
        }
        return now_usec - t->still_since_usec >= bound_usec;
}
