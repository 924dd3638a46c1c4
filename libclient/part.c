/* SPDX-License-Identifier: ISC */
/*
 * Parts of a run on the host's cores.
 *
 * Parts are done one after the other, which satisfies every edge between them; each one is spread over the
 * workers. A launch's groups are numbered and taken in batches; a large copy or fill is cut into pieces,
 * except a copy whose ranges overlap, which one worker does. The parameters of a launch are copied and
 * patched once, and all its groups read them.
 *
 * Nothing is allocated in the steady state: each worker's memory for groups grows to the largest launch.
 */
#include "libclient/part.h"

#include <string.h>

#define PIECE_BYTES  (UINT64_C(1) << 20) /* of a copy or a fill that is cut */
#define BATCHES      16                  /* of a launch's groups, for each worker */
#define SHARED_ALIGN 64
#define PARAMS_ALIGN 64

struct rig_part_run {
        uint8_t params[RIG_PROTO_PARAMS_BYTES] __attribute__((aligned(PARAMS_ALIGN)));
        uint32_t n_workers;
        uint64_t shared_bytes; /* that each worker has */
        void **shared;         /* each worker's memory for a group */

        /* the part being done */
        const struct rig_part *part;
        const void *with; /* a launch's parameters */
        uint8_t *dst;
        const uint8_t *src;
        uint64_t bytes;
};

/* What this thread runs the program's code for. */
static __thread const struct rig_part_run *inside;

bool rig_part_is_inside(const struct rig_part_run *run)
{
        return run && inside == run;
}

int rig_part_run_new(uint32_t n_workers, struct rig_part_run **ret_run)
{
        struct rig_part_run *run = aligned_alloc(PARAMS_ALIGN, rig_round_up(sizeof(*run), PARAMS_ALIGN));

        if (!run)
                return -ENOMEM;
        memset(run, 0, sizeof(*run));
        run->n_workers = n_workers;
        run->shared = calloc(n_workers, sizeof(*run->shared));
        if (!run->shared) {
                free(run);
                return -ENOMEM;
        }
        *ret_run = run;
        return 0;
}

struct rig_part_run *rig_part_run_free(struct rig_part_run *run)
{
        if (!run)
                return NULL;
        for (uint32_t i = 0; i < run->n_workers; i++)
                free(run->shared[i]);
        free(run->shared);
        free(run);
        return NULL;
}

/* ---------------------------------------------------------------- launches */

static void do_groups(void *data, uint32_t worker, uint64_t from, uint64_t to)
{
        const struct rig_part_run *run = data, *before = inside;
        const struct rig_part *part = run->part;
        struct rig_group group = {.worker = worker, .shared = run->shared[worker]};
        uint64_t x = part->grid[0], y = part->grid[1];

        memcpy(group.groups, part->grid, sizeof(group.groups));
        memcpy(group.threads, part->group, sizeof(group.threads));
        group.group[0] = (uint32_t)(from % x);
        group.group[1] = (uint32_t)(from / x % y);
        group.group[2] = (uint32_t)(from / x / y);
        inside = run;
        for (uint64_t i = from; i < to; i++) {
                /* the function gets a copy: what it does to it is its own */
                struct rig_group g = group;

                part->function(&g, run->with);
                if (++group.group[0] == x) {
                        group.group[0] = 0;
                        if (++group.group[1] == y) {
                                group.group[1] = 0;
                                group.group[2]++;
                        }
                }
        }
        inside = before;
}

static int make_shared(struct rig_part_run *run, uint64_t bytes)
{
        if (bytes <= run->shared_bytes)
                return 0;
        bytes = rig_round_up(bytes, SHARED_ALIGN);
        run->shared_bytes = 0;
        for (uint32_t i = 0; i < run->n_workers; i++) {
                free(run->shared[i]);
                run->shared[i] = aligned_alloc(SHARED_ALIGN, bytes);
                if (!run->shared[i])
                        return -ENOMEM;
        }
        run->shared_bytes = bytes;
        return 0;
}

static void patch_params(
        struct rig_part_run *run, const struct rig_part *part, const struct rig_host_slot *slots)
{
        run->with = part->params;
        if (part->n_patches == 0)
                return;
        memcpy(run->params, part->params, part->params_bytes);
        for (uint32_t i = 0; i < part->n_patches; i++) {
                const struct rig_patch *patch = &part->patches[i];
                uint64_t address = (uintptr_t)slots[patch->slot].address + patch->addend;

                memcpy(run->params + patch->at, &address, sizeof(address));
        }
        run->with = run->params;
}

static int do_launch(struct rig_part_run *run, struct rig_crew *crew, uint32_t worker,
        const struct rig_part *part, const struct rig_host_slot *slots)
{
        uint64_t groups = (uint64_t)part->grid[0] * part->grid[1] * part->grid[2];
        int r;

        r = make_shared(run, part->shared_bytes);
        if (r < 0)
                return r;
        patch_params(run, part, slots);
        rig_crew_for(crew, worker, groups,
                RIG_MAX(groups / ((uint64_t)crew->n_workers * BATCHES), UINT64_C(1)), do_groups, run);
        return 0;
}

/* ---------------------------------------------------------------- copies and fills */

static void do_copy_bytes(void *data, uint32_t worker, uint64_t from, uint64_t to)
{
        const struct rig_part_run *run = data;

        memcpy(run->dst + from, run->src + from, to - from);
}

static void do_fill_words(void *data, uint32_t worker, uint64_t from, uint64_t to)
{
        const struct rig_part_run *run = data;

        for (uint64_t i = from; i < to; i++)
                memcpy(run->dst + i * sizeof(run->part->pattern), &run->part->pattern,
                        sizeof(run->part->pattern));
}

static bool overlap(const struct rig_part_run *run)
{
        uintptr_t dst = (uintptr_t)run->dst, src = (uintptr_t)run->src;

        return dst < src + run->bytes && src < dst + run->bytes;
}

static void do_moves(struct rig_part_run *run, struct rig_crew *crew, uint32_t worker,
        const struct rig_part *part, const struct rig_host_slot *slots)
{
        const struct rig_host_slot *dst = &slots[part->dst_slot], *src = &slots[part->src_slot];

        run->bytes = part->bytes == RIG_WHOLE ? dst->bytes - part->dst_offset : part->bytes;
        if (run->bytes == 0)
                return;
        run->dst = dst->address + part->dst_offset;
        if (part->kind == RIG_PART_FILL) {
                rig_crew_for(crew, worker, run->bytes / sizeof(part->pattern),
                        PIECE_BYTES / sizeof(part->pattern), do_fill_words, run);
                return;
        }
        run->src = src->address + part->src_offset;
        if (overlap(run))
                memmove(run->dst, run->src, run->bytes);
        else
                rig_crew_for(crew, worker, run->bytes, PIECE_BYTES, do_copy_bytes, run);
}

int rig_part_run_all(struct rig_part_run *run, struct rig_crew *crew, uint32_t worker,
        const struct rig_work *work, const struct rig_host_slot *slots)
{
        for (uint32_t i = 0; i < work->n_parts; i++) {
                const struct rig_part *part = &work->parts[i];
                int r = 0;

                run->part = part;
                if (part->kind == RIG_PART_LAUNCH)
                        r = do_launch(run, crew, worker, part, slots);
                else if (part->kind != RIG_PART_SYNC)
                        do_moves(run, crew, worker, part, slots);
                if (r < 0)
                        return r;
        }
        return 0;
}
