/* SPDX-License-Identifier: ISC */
/*
 * Accepting a run: the hot path. The work was checked when it was prepared; what a run adds is which buffers
 * fill the open slots, so that is what is checked here, and with it the run goes to its timeline. No lock,
 * no allocation in the steady state, no system call.
 *
 * The library checks the same before it sends, so whatever is wrong here is a protocol error and ends the
 * connection; nothing was changed by then.
 */
#include "daemon/client.h"
#include "daemon/trace.h"
#include "daemon/work.h"

#define FOLLOWED_RUNS_MAX 65536u /* more than a ring has */

struct taken {
        const struct rig_work *work;
        struct rig_buffer *buffers[RIG_SLOTS_MAX]; /* of every slot */
        struct rig_use uses[RIG_SLOTS_MAX];
        unsigned n_uses;
        bool shared; /* some memory has several holders */
};

/* Finds the buffer of each slot. The sentence is set where one cannot be had. */
static int take_buffers(
        struct rig_client *c, struct taken *t, const struct rig_msg_run *msg, struct rig_error *e)
{
        const struct rig_work *w = t->work;

        if (rig_unlikely(msg->n_buffers != w->n_open))
                return rig_error_set(e, -EINVAL, "a run of work %u has %u buffers for %u open slots",
                        msg->work, msg->n_buffers, w->n_open);
        if (w->n_open < w->driver.n_slots)
                for (uint32_t i = 0; i < w->driver.n_slots; i++)
                        t->buffers[i] = w->bound[i];
        for (uint32_t i = 0; i < w->n_open; i++) {
                struct rig_buffer *b = rig_table_get(&c->buffers, msg->buffers[i]);
                uint32_t slot = w->open[i];
                int r;

                if (rig_unlikely(!b))
                        return rig_error_set(e, -ENOENT,
                                "a run of work %u names buffer %u, which there is not", msg->work,
                                msg->buffers[i]);
                t->buffers[slot] = b;
                if (rig_likely(b->device == w->device && b->bytes >= w->least[slot] &&
                               !(w->driver.access[slot] & ~b->access)))
                        continue;
                r = rig_work_check_slot(w, slot, b, e);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Copies of all of both slots must be as long. */
static int check_pairs(const struct taken *t, struct rig_error *e)
{
        for (uint64_t left = t->work->pairs; left; left &= left - 1) {
                uint32_t p = (uint32_t)__builtin_ctzll(left);
                const struct rig_part *part = &t->work->driver.parts[p];
                uint64_t to = t->buffers[part->dst.slot]->bytes - part->dst.offset;
                uint64_t from = t->buffers[part->src.slot]->bytes - part->src.offset;

                if (rig_unlikely(to != from))
                        return rig_error_set(e, -ERANGE,
                                "part %u of work %u copies all of %llu bytes to %llu", p, t->work->id,
                                (unsigned long long)from, (unsigned long long)to);
        }
        return 0;
}

static void collect_uses(struct taken *t)
{
        const struct rig_driver_work *w = &t->work->driver;

        for (uint32_t i = 0; i < w->n_slots; i++) {
                struct rig_memory *m = t->buffers[i]->memory;

                if (!m)
                        continue;
                t->uses[t->n_uses++] = (struct rig_use){.stamps = &m->stamps, .access = w->access[i]};
                t->shared = t->shared || m->n_holders > 1;
        }
}

static int take_points(
        struct rig_client *c, const struct rig_msg_run *msg, struct rig_point *points, struct rig_error *e)
{
        for (uint32_t i = 0; i < msg->n_points; i++) {
                struct rig_device *d = rig_table_get(&c->devices, msg->points[i].device_id);

                if (!d)
                        return rig_error_set(e, -ENOENT, "a run follows device %u, which there is not",
                                msg->points[i].device_id);
                if (msg->points[i].value > d->timeline->submitted)
                        return rig_error_set(e, -EINVAL,
                                "a run follows value %llu of device %u, which gave %llu so far",
                                (unsigned long long)msg->points[i].value, d->id,
                                (unsigned long long)d->timeline->submitted);
                points[i] = (struct rig_point){.timeline = d->timeline, .value = msg->points[i].value};
        }
        return 0;
}

/* Accepts what other connections published before, on each memory they share with the run (O4). */
static int follow_others(struct rig_client *c, const struct taken *t, const struct rig_msg_run *msg)
{
        uint64_t time = msg->has_time ? msg->time : UINT64_MAX;

        for (uint32_t i = 0; i < t->work->driver.n_slots; i++) {
                struct rig_memory *m = t->buffers[i]->memory;

                if (m && m->n_holders > 1 && rig_client_follow(c, m, time) == RIG_LEFT)
                        return RIG_LEFT;
        }
        return RIG_TAKEN;
}

static int accept_run(struct rig_client *c, struct rig_work *w, const struct taken *t,
        const struct rig_point *points, unsigned n_points)
{
        size_t bytes = sizeof(struct rig_run_load) + w->driver.n_slots * sizeof(struct rig_filled);
        bool traced = rig_traced(c->core);
        struct rig_run *run;
        struct rig_run_load *load;
        int r = rig_timeline_accept(w->device->timeline, t->uses, t->n_uses, points, n_points,
                bytes + (traced ? sizeof(struct rig_run_times) : 0), &run);

        if (r < 0)
                return r;
        w->device->untold.accepted++;
        if (!run)
                return 0;
        c->runs++;
        load = run->payload;
        load->work = rig_work_ref(w);
        load->submission =
                (struct rig_submission){.value = run->value, .work = &w->driver, .slots = load->slots};
        for (uint32_t i = 0; i < w->driver.n_slots; i++) {
                const struct rig_buffer *b = t->buffers[i];

                load->slots[i] =
                        (struct rig_filled){.region = b->region, .offset = b->offset, .bytes = b->bytes};
        }
        run->marked = traced;
        if (traced)
                rig_trace_accepted(w->device, run);
        return 0;
}

/*
 * Whether a client with as many runs in flight as it may have is left waiting. One that others must follow
 * is not at once: its own code that stands still must not hold them up.
 */
static bool throttles(const struct rig_client *c)
{
        if (c->end)
                return false;
        return !c->followed || c->runs - c->limits.runs >= FOLLOWED_RUNS_MAX;
}

int rig_client_run(struct rig_client *client, const struct rig_msg_run *msg)
{
        struct rig_work *w = rig_table_get(&client->works, msg->work);
        struct rig_point points[RIG_PROTO_POINTS_MAX];
        struct rig_error e; /* read only where it was set */
        struct taken t;
        int r;

        if (rig_unlikely(client->state != RIG_CLIENT_OPEN))
                return rig_client_break(client, -EPROTO, "the first message is a run: it must be a hello");
        if (rig_unlikely(!w || w->closed))
                return rig_client_break(client, -ENOENT,
                        w ? "work %u is of a device that is closed" : "there is no work %u to run",
                        msg->work);
        if (rig_unlikely(client->runs >= client->limits.runs && throttles(client))) {
                client->throttled = true;
                return RIG_LEFT;
        }
        t.work = w;
        t.n_uses = 0;
        t.shared = false;
        r = take_buffers(client, &t, msg, &e);
        if (rig_likely(r == 0) && w->pairs)
                r = check_pairs(&t, &e);
        if (rig_likely(r == 0))
                collect_uses(&t);
        if (rig_likely(r == 0) && msg->n_points)
                r = take_points(client, msg, points, &e);
        if (rig_unlikely(r < 0))
                return rig_client_break(client, r, "%s", e.text);
        if (rig_unlikely(t.shared) && follow_others(client, &t, msg) == RIG_LEFT)
                return RIG_LEFT;
        r = accept_run(client, w, &t, points, msg->n_points);
        if (rig_unlikely(r < 0))
                return rig_client_break(client, r,
                        "no memory for another run: this connection has %llu in flight",
                        (unsigned long long)client->runs);
        return RIG_TAKEN;
}
