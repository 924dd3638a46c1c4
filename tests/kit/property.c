/* SPDX-License-Identifier: ISC */
/*
 * Random submissions, compared with an interpreter that runs every value and every part one by one, in
 * order.
 *
 * A program has a few buffers of one length and a few works. A work's parts are random copies and fills on
 * random queues. Two parts that touch the same bytes, one of them to write, get an edge unless they are
 * ordered already; no others do, so a device is free to run the rest in any order, and the result is one all
 * the same. A run fills the slots with the buffers in a random order. The interpreter's buffers are shadows
 * in plain memory.
 */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"

#define PROGRAMS    30
#define WORKS       8
#define RUNS        40
#define PARTS_MAX   7
#define BUFFERS_MAX 8

struct program {
        struct kit *kit;
        struct rig_device *device;
        uint64_t bytes; /* of each buffer */
        unsigned n_buffers, n_near;
        struct kit_buffer buffers[BUFFERS_MAX]; /* the near ones, then on a device of files the far ones */
        uint8_t *shadows[BUFFERS_MAX];
        struct rig_region shadow_regions[BUFFERS_MAX];
        unsigned n_works;
        struct rig_driver_work *works[WORKS];
};

/* ---------------------------------------------------------------- works */

struct range {
        uint32_t slot;
        uint64_t from, to;
};

static bool overlap(const struct range *a, const struct range *b)
{
        return a->slot == b->slot && a->from < b->to && b->from < a->to;
}

static bool conflict(const struct rig_part *a, const struct rig_part *b)
{
        struct range a_dst = {a->dst.slot, a->dst.offset, a->dst.offset + a->bytes};
        struct range b_dst = {b->dst.slot, b->dst.offset, b->dst.offset + b->bytes};
        struct range a_src = {a->src.slot, a->src.offset, a->src.offset + a->bytes};
        struct range b_src = {b->src.slot, b->src.offset, b->src.offset + b->bytes};

        return overlap(&a_dst, &b_dst) || (b->kind == RIG_PART_COPY && overlap(&a_dst, &b_src)) ||
               (a->kind == RIG_PART_COPY && overlap(&a_src, &b_dst));
}

/* Adds the edges that the last part needs. `before` has, of each part, all that it follows. */
static void add_edges(struct rig_driver_work *work, uint32_t *before)
{
        uint32_t i = work->n_parts - 1;
        struct rig_part *part = &work->parts[i];

        before[i] = 0;
        for (uint32_t j = i; j-- > 0;)
                if (work->parts[j].queue == part->queue)
                        before[i] |= before[j] | 1u << j;
        for (uint32_t j = i; j-- > 0;) {
                if (before[i] & 1u << j || !conflict(part, &work->parts[j]))
                        continue;
                part->after |= 1u << j;
                before[i] |= before[j] | 1u << j;
        }
}

static void random_part(struct program *p, struct rig_driver_work *work)
{
        struct kit *kit = p->kit;
        int copy = kit_queue(p->device, RIG_RUNS_COPY, (unsigned)kit_draw(kit, 8));
        int fill = kit_queue(p->device, RIG_RUNS_FILL, (unsigned)kit_draw(kit, 8));
        uint64_t bytes = kit_draw(kit, p->bytes) + 1, at = kit_draw(kit, p->bytes - bytes + 1);
        uint32_t dst = (uint32_t)kit_draw(kit, p->n_buffers), src;

        if (fill >= 0 && kit_draw(kit, 3) == 0) {
                kit_part_fill(work, fill, 0, dst, at & ~UINT64_C(3), bytes & ~UINT64_C(3),
                        (uint32_t)kit_draw(kit, UINT32_MAX));
                return;
        }
        if (p->n_near < p->n_buffers) /* files and memory: from one to the other */
                src = dst < p->n_near ? p->n_near + (uint32_t)kit_draw(kit, p->n_buffers - p->n_near)
                                      : (uint32_t)kit_draw(kit, p->n_near);
        else
                src = (dst + 1 + (uint32_t)kit_draw(kit, p->n_buffers - 1)) % p->n_buffers;
        kit_part_copy(work, copy, 0, dst, at, src, kit_draw(kit, p->bytes - bytes + 1), bytes);
}

static void random_work(struct program *p)
{
        struct rig_driver_work *work = kit_work(p->n_buffers);
        uint32_t before[PARTS_MAX];

        for (uint64_t n = kit_draw(p->kit, PARTS_MAX + 1); n; n--) {
                random_part(p, work);
                add_edges(work, before);
        }
        kit_prepare(p->device, work);
        p->works[p->n_works++] = work;
}

/* ---------------------------------------------------------------- programs */

static bool program_init(struct program *p, struct rig_device *device)
{
        static const uint64_t sizes[] = {32, 3000, 20000, 150000};
        struct kit *kit = device->kit;
        bool files = kit_flags(device) & RIG_DEVICE_FILES;

        *p = (struct program){.kit = kit, .device = device};
        p->bytes = 1 + sizes[kit_draw(kit, 4)] + kit_draw(kit, 64);
        p->n_near = 2 + (unsigned)kit_draw(kit, 3);
        for (unsigned total = files ? 2 * p->n_near : p->n_near; p->n_buffers < total; p->n_buffers++) {
                unsigned i = p->n_buffers;
                uint64_t offset = kit_draw(kit, 100);

                if (!(i < p->n_near ? kit_buffer_near(device, p->bytes, offset, &p->buffers[i])
                                    : kit_buffer_far(device, p->bytes, offset, &p->buffers[i])))
                        return false;
                p->shadows[i] = malloc(p->bytes);
                rig_assert(p->shadows[i]);
                p->shadow_regions[i] = (struct rig_region){.host = p->shadows[i], .bytes = p->bytes};
                kit_scribble(kit, &p->buffers[i], p->shadows[i]);
        }
        while (p->n_works < WORKS)
                random_work(p);
        return true;
}

static void program_deinit(struct program *p)
{
        for (unsigned i = 0; i < p->n_works; i++)
                kit_work_free(p->device, p->works[i]);
        for (unsigned i = 0; i < p->n_buffers; i++) {
                kit_buffer_free(&p->buffers[i]);
                free(p->shadows[i]);
        }
}

/* Draws an order of [from, to). */
static void shuffle(struct kit *kit, unsigned *order, unsigned from, unsigned to)
{
        for (unsigned i = from; i < to; i++) {
                unsigned k = from + (unsigned)kit_draw(kit, i - from + 1);

                order[i] = order[k];
                order[k] = i;
        }
}

/* Runs a work on the device, and on the shadows. */
static bool random_run(struct program *p)
{
        const struct rig_driver_work *work = p->works[kit_draw(p->kit, p->n_works)];
        struct rig_filled slots[BUFFERS_MAX], shadows[BUFFERS_MAX];
        unsigned order[BUFFERS_MAX];

        shuffle(p->kit, order, 0, p->n_near);
        shuffle(p->kit, order, p->n_near, p->n_buffers);
        for (unsigned i = 0; i < p->n_buffers; i++) {
                slots[i] = kit_filled(&p->buffers[order[i]]);
                shadows[i] = (struct rig_filled){&p->shadow_regions[order[i]], 0, p->bytes};
        }
        if (!kit_submit(p->device, work, slots))
                return false;
        for (uint32_t i = 0; i < work->n_parts; i++)
                kit_interpret(&work->parts[i], shadows);
        return true;
}

static bool compare(struct program *p, unsigned program)
{
        uint8_t *got = malloc(p->bytes);
        bool same = true;

        rig_assert(got);
        for (unsigned i = 0; i < p->n_buffers && same; i++) {
                uint64_t at = 0;

                kit_get(&p->buffers[i], 0, got, p->bytes);
                while (at < p->bytes && got[at] == p->shadows[i][at])
                        at++;
                same = kit_expect(p->kit, at == p->bytes,
                        "program %u: byte %llu of buffer %u of %llu bytes is not the interpreter's, after "
                        "value %llu",
                        program, (unsigned long long)at, i, (unsigned long long)p->bytes,
                        (unsigned long long)p->device->submitted);
        }
        free(got);
        return same;
}

static bool run_program(struct program *p, unsigned program)
{
        for (unsigned i = 0; i < RUNS; i++) {
                if (!random_run(p))
                        return false;
                if (kit_draw(p->kit, 3) == 0)
                        kit_commit(p->device);
                if (kit_draw(p->kit, 10) == 0 && !(kit_finish(p->device) && compare(p, program)))
                        return false;
        }
        return kit_finish(p->device) && compare(p, program);
}

static void random_programs_are_the_interpreters(struct kit *kit)
{
        struct program p;
        bool go_on = true;

        for (unsigned i = 0; i < PROGRAMS && go_on; i++) {
                struct rig_device *device = kit_open(kit);

                if (!device)
                        return;
                go_on = program_init(&p, device) && run_program(&p, i);
                program_deinit(&p);
                kit_close(device);
        }
}

const struct kit_promise kit_properties[] = {
        {"random_programs_are_the_interpreters", random_programs_are_the_interpreters},
        {NULL, NULL},
};
