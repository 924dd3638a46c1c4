/* SPDX-License-Identifier: ISC */
/*
 * See pagetable.h. Each table of the device has a twin here, which knows what each entry is: nothing, a leaf
 * (above the last level: of which memory), or a table. Virtual addresses are counted from the format's
 * start.
 *
 * Map and unmap walk the tree several times, with the same decisions each time:
 *   CHECK    refuses what cannot be, and looks only
 *   PREPARE  makes the tables that are missing; they hang in the twin and are not linked
 *   BUILD    fills the tables that are not live, and links them to each other
 *   COMMIT   after a barrier: writes the entries of live tables, those that link what was built among them
 * Nothing fails after PREPARE, and what PREPARE did is undone where it fails.
 *
 * A table is live where the device can reach it, and linked where the entry above says so; of a table that
 * hangs in the twin and is not linked, the entry above is still what it was, nothing or a leaf.
 *
 * What this deliberately does not do: fragments or contiguous bits that need a whole group of leaves to
 * agree, and two tables of different page sizes under one entry.
 */
#include "daemon/memory/pagetable.h"

struct table;

/* An entry above the last level. */
struct slot {
        struct table *child;     /* linked, or prepared */
        uint64_t address, flags; /* of a leaf */
};

struct table {
        uint64_t address;
        struct rig_pagetable_entry entry; /* that points here */
        struct table *next_retired;
        unsigned level;
        uint32_t n_used; /* entries that are a leaf or a table */
        bool linked, live, held;
        struct slot *slots; /* NULL at the last level */
        uint64_t used[];    /* a bit for each entry */
};

struct rig_pagetable {
        const struct rig_pagetable_format *format;
        const struct rig_pagetable_ops *ops;
        void *context;
        struct table *root;
        struct table *retired;
        size_t n_tables;
};

/* ---------------------------------------------------------------- tables */

static const struct rig_pagetable_level *level_of(const struct rig_pagetable *pt, unsigned level)
{
        return &pt->format->levels[level];
}

static bool is_last(const struct rig_pagetable *pt, unsigned level)
{
        return level + 1 == pt->format->n_levels;
}

static uint64_t slot_bytes(const struct rig_pagetable *pt, unsigned level)
{
        return UINT64_C(1) << level_of(pt, level)->shift;
}

static unsigned slot_of(const struct rig_pagetable *pt, unsigned level, uint64_t va)
{
        const struct rig_pagetable_level *l = level_of(pt, level);

        return (unsigned)(va >> l->shift & ((UINT64_C(1) << l->bits) - 1));
}

/* Where the slot that `va` is in ends, or `end` where that comes first. */
static uint64_t slot_end(const struct rig_pagetable *pt, unsigned level, uint64_t va, uint64_t end)
{
        uint64_t bytes = slot_bytes(pt, level);

        return RIG_MIN((va & ~(bytes - 1)) + bytes, end);
}

static bool is_used(const struct table *table, unsigned i)
{
        return table->used[i / 64] >> i % 64 & 1;
}

static bool is_table(const struct table *table, unsigned i)
{
        return table->slots && table->slots[i].child && table->slots[i].child->linked;
}

static void set_used(struct table *table, unsigned i, bool used)
{
        if (is_used(table, i) == used)
                return;
        table->used[i / 64] ^= UINT64_C(1) << i % 64;
        if (used)
                table->n_used++;
        else
                table->n_used--;
}

/* Writes an entry. Its first word, which makes it valid, comes last. */
static void write_entry(
        struct rig_pagetable *pt, struct table *table, unsigned i, const struct rig_pagetable_entry *entry)
{
        uint64_t bytes = level_of(pt, table->level)->entry_bytes, at = i * bytes;

        if (bytes == 16) {
                pt->ops->write(pt->context, table->address, at + 8, entry->words[1]);
                if (table->live)
                        pt->ops->barrier(pt->context);
        }
        pt->ops->write(pt->context, table->address, at, entry->words[0]);
}

/* The entry was encoded before, when that could be refused. */
static void write_leaf(
        struct rig_pagetable *pt, struct table *table, unsigned i, uint64_t address, uint64_t flags)
{
        struct rig_pagetable_entry entry = {0};
        int r = pt->format->leaf(pt->context, table->level, address, flags, &entry);

        rig_assert(r >= 0);
        write_entry(pt, table, i, &entry);
        set_used(table, i, true);
        if (table->slots)
                table->slots[i] = (struct slot){.address = address, .flags = flags};
}

/* Points an entry at the table that is prepared for it, whatever it was before. */
static void link_child(struct rig_pagetable *pt, struct table *table, unsigned i)
{
        struct table *child = table->slots[i].child;

        write_entry(pt, table, i, &child->entry);
        set_used(table, i, true);
        child->linked = true;
}

static void clear_slot(struct rig_pagetable *pt, struct table *table, unsigned i)
{
        write_entry(pt, table, i, &level_of(pt, table->level)->invalid);
        set_used(table, i, false);
        if (table->slots)
                table->slots[i] = (struct slot){0};
}

static void table_free(struct rig_pagetable *pt, struct table *table)
{
        pt->ops->table_free(pt->context, table->level, table->address);
        pt->n_tables--;
        free(table);
}

static int table_new(struct rig_pagetable *pt, unsigned level, struct table **ret_table)
{
        const struct rig_pagetable_level *l = level_of(pt, level);
        size_t n = (size_t)1 << l->bits, words = (n + 63) / 64;
        size_t slots = is_last(pt, level) ? 0 : n * sizeof(struct slot);
        struct table *table = calloc(1, sizeof(*table) + words * sizeof(uint64_t) + slots);
        int r;

        if (!table)
                return -ENOMEM;
        table->level = level;
        if (slots)
                table->slots = (struct slot *)(table->used + words);
        r = pt->ops->table_alloc(pt->context, level, n * l->entry_bytes, &table->address);
        if (r < 0) {
                free(table);
                return r;
        }
        pt->n_tables++;
        if (level > 0) {
                r = pt->format->table(pt->context, level - 1, table->address, &table->entry);
                if (r < 0) {
                        table_free(pt, table);
                        return r;
                }
        }
        if (l->invalid.words[0] || (l->entry_bytes == 16 && l->invalid.words[1]))
                for (unsigned i = 0; i < n; i++)
                        write_entry(pt, table, i, &l->invalid);
        *ret_table = table;
        return 0;
}

/* Does something to a table and all below it that hangs there. */
static void each_table(struct rig_pagetable *pt, struct table *table,
        void (*visit)(struct rig_pagetable *pt, struct table *table))
{
        if (table->slots)
                for (unsigned i = 0; i < 1u << level_of(pt, table->level)->bits; i++)
                        if (table->slots[i].child)
                                each_table(pt, table->slots[i].child, visit);
        visit(pt, table);
}

static void table_retire(struct rig_pagetable *pt, struct table *table)
{
        table->next_retired = pt->retired;
        pt->retired = table;
}

static void table_live(struct rig_pagetable *pt, struct table *table)
{
        table->live = true;
}

/* Takes away what was prepared for [va, end). */
static void unprepare(struct rig_pagetable *pt, struct table *table, uint64_t va, uint64_t end)
{
        if (!table->slots)
                return;
        for (uint64_t next; va < end; va = next) {
                struct slot *slot = &table->slots[slot_of(pt, table->level, va)];

                next = slot_end(pt, table->level, va, end);
                if (!slot->child)
                        continue;
                if (slot->child->linked) {
                        unprepare(pt, slot->child, va, next);
                        continue;
                }
                each_table(pt, slot->child, table_free);
                slot->child = NULL;
        }
}

/* ---------------------------------------------------------------- a job */

enum phase {
        CHECK,
        PREPARE,
        BUILD,
        COMMIT,
};

struct job {
        struct rig_pagetable *pt;
        enum phase phase;
        uint64_t va, end; /* all of it */
        uint64_t touched, touched_end;
        bool tables; /* were prepared, or fell out */

        /* to map: what comes next */
        const struct rig_pagetable_run *runs;
        size_t n_runs, next_run;
        uint64_t address, left; /* of runs that continue each other */
        uint64_t flags;
};

/* Makes the job's next memory be that of the next runs, or of the first ones. */
static void next_run(struct job *job)
{
        const struct rig_pagetable_run *run = &job->runs[job->next_run++];

        job->address = run->address;
        job->left = run->bytes;
        while (job->next_run < job->n_runs && job->left != -job->address &&
                job->runs[job->next_run].address == job->address + job->left)
                job->left += job->runs[job->next_run++].bytes;
}

static void skip(struct job *job, uint64_t bytes)
{
        while (bytes) {
                uint64_t step = RIG_MIN(bytes, job->left);

                job->address += step;
                job->left -= step;
                bytes -= step;
                if (job->left == 0 && job->next_run < job->n_runs)
                        next_run(job);
        }
}

static void begin_phase(struct job *job, enum phase phase)
{
        job->phase = phase;
        job->next_run = 0;
        if (job->n_runs)
                next_run(job);
}

/* From pages of virtual addresses to where they are in the format. */
static int find_range(const struct rig_pagetable *pt, uint64_t va, uint64_t bytes, uint64_t *ret_va)
{
        const struct rig_pagetable_level *root = level_of(pt, 0);
        uint64_t page = slot_bytes(pt, pt->format->n_levels - 1);

        if (va < pt->format->start || bytes == 0 || (va | bytes) & (page - 1) ||
                rig_range_outside(va - pt->format->start, bytes, UINT64_C(1) << (root->shift + root->bits)))
                return -EINVAL;
        *ret_va = va - pt->format->start;
        return 0;
}

static void report(const struct job *job, struct rig_pagetable_touched *touched)
{
        if (!touched)
                return;
        rig_pagetable_touch(touched, job->pt->format->start + job->touched, job->touched_end - job->touched);
        touched->tables |= job->tables;
}

/* ---------------------------------------------------------------- map */

static int map_walk(struct job *job, struct table *table, unsigned level, uint64_t va, uint64_t end);

/* Whether [va, next) becomes a leaf, rather than a table or what is below one. */
static bool maps_leaf(
        const struct job *job, const struct table *table, unsigned level, uint64_t va, uint64_t next)
{
        uint64_t bytes = slot_bytes(job->pt, level);

        if (is_last(job->pt, level))
                return true;
        return level_of(job->pt, level)->leaves && next - va == bytes && job->left >= bytes &&
               (job->address & (bytes - 1)) == 0 &&
               !(table && table->slots[slot_of(job->pt, level, va)].child);
}

static int map_leaf(struct job *job, struct table *table, unsigned level, unsigned i)
{
        struct rig_pagetable_entry entry;
        int r;

        switch (job->phase) {
        case CHECK:
                if (table && is_used(table, i))
                        return -EEXIST;
                r = job->pt->format->leaf(job->pt->context, level, job->address, job->flags, &entry);
                if (r < 0)
                        return r;
                break;
        case PREPARE:
                break;
        case BUILD:
        case COMMIT:
                if (table->live == (job->phase == COMMIT))
                        write_leaf(job->pt, table, i, job->address, job->flags);
                break;
        }
        skip(job, slot_bytes(job->pt, level));
        return 0;
}

/* Maps what lies below an entry; `table` is NULL, or the child, where it is missing. */
static int map_below(
        struct job *job, struct table *table, unsigned level, unsigned i, uint64_t va, uint64_t end)
{
        struct table *child = table ? table->slots[i].child : NULL;
        int r;

        switch (job->phase) {
        case CHECK:
                if (table && is_used(table, i) && !is_table(table, i))
                        return -EEXIST;
                break;
        case PREPARE:
                if (child)
                        break;
                r = table_new(job->pt, level + 1, &child);
                if (r < 0)
                        return r;
                table->slots[i].child = child;
                job->tables = true;
                break;
        case BUILD:
                break;
        case COMMIT:
                if (child->live)
                        break;
                link_child(job->pt, table, i);
                each_table(job->pt, child, table_live);
                skip(job, end - va);
                return 0;
        }
        r = map_walk(job, child, level + 1, va, end);
        if (r < 0)
                return r;
        if (job->phase == BUILD && !table->live)
                link_child(job->pt, table, i);
        return 0;
}

static int map_walk(struct job *job, struct table *table, unsigned level, uint64_t va, uint64_t end)
{
        for (uint64_t next; va < end; va = next) {
                unsigned i = slot_of(job->pt, level, va);
                int r;

                next = slot_end(job->pt, level, va, end);
                r = maps_leaf(job, table, level, va, next) ? map_leaf(job, table, level, i)
                                                           : map_below(job, table, level, i, va, next);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* All bytes of the runs, which must be pages. */
static int sum_runs(const struct rig_pagetable *pt, const struct rig_pagetable_run *runs, size_t n_runs,
        uint64_t *ret_bytes)
{
        uint64_t page = slot_bytes(pt, pt->format->n_levels - 1), sum = 0;

        for (size_t i = 0; i < n_runs; i++) {
                if (runs[i].bytes == 0 || (runs[i].address | runs[i].bytes) & (page - 1) ||
                        runs[i].bytes - 1 > UINT64_MAX - runs[i].address ||
                        rig_add_overflow(sum, runs[i].bytes, &sum))
                        return -EINVAL;
        }
        *ret_bytes = sum;
        return 0;
}

static int map_phase(struct job *job, enum phase phase)
{
        begin_phase(job, phase);
        return map_walk(job, job->pt->root, 0, job->va, job->end);
}

int rig_pagetable_map(struct rig_pagetable *pagetable, uint64_t va, const struct rig_pagetable_run *runs,
        size_t n_runs, uint64_t flags, struct rig_pagetable_touched *touched)
{
        struct job job = {.pt = pagetable, .runs = runs, .n_runs = n_runs, .flags = flags};
        uint64_t bytes;
        int r = sum_runs(pagetable, runs, n_runs, &bytes);

        if (r < 0)
                return r;
        r = find_range(pagetable, va, bytes, &job.va);
        if (r < 0)
                return r;
        job.end = job.touched_end = job.va + bytes;
        job.touched = job.va;
        r = map_phase(&job, CHECK);
        if (r < 0)
                return r;
        r = map_phase(&job, PREPARE);
        if (r < 0) {
                unprepare(pagetable, pagetable->root, job.va, job.end);
                return r;
        }
        if (job.tables) {
                map_phase(&job, BUILD);
                pagetable->ops->barrier(pagetable->context);
        }
        map_phase(&job, COMMIT);
        pagetable->ops->barrier(pagetable->context);
        report(&job, touched);
        return 0;
}

/* ---------------------------------------------------------------- unmap */

/* A leaf that is split: what it maps, from which virtual address on. */
struct leaf {
        uint64_t va, address, flags;
};

/* Makes a table that maps what `leaf` maps in the slot at `va`, but for the job's range. */
static int split(
        struct job *job, unsigned level, const struct leaf *leaf, uint64_t va, struct table **ret_table)
{
        uint64_t bytes = slot_bytes(job->pt, level);
        bool leaves = level_of(job->pt, level)->leaves;
        struct rig_pagetable_entry entry;
        struct table *table = NULL;
        int r = table_new(job->pt, level, &table);

        for (unsigned i = 0; r >= 0 && i < 1u << level_of(job->pt, level)->bits; i++, va += bytes) {
                uint64_t address = leaf->address + (va - leaf->va);

                if (va >= job->va && va + bytes <= job->end)
                        continue;
                if (leaves && (va >= job->end || va + bytes <= job->va)) {
                        r = job->pt->format->leaf(job->pt->context, level, address, leaf->flags, &entry);
                        if (r >= 0)
                                write_leaf(job->pt, table, i, address, leaf->flags);
                        continue;
                }
                r = split(job, level + 1, leaf, va, &table->slots[i].child);
                if (r >= 0)
                        link_child(job->pt, table, i);
        }
        if (r >= 0)
                *ret_table = table;
        else if (table)
                each_table(job->pt, table, table_free);
        return r;
}

static int unmap_walk(struct job *job, struct table *table, uint64_t va, uint64_t end);

static int unmap_leaf(struct job *job, struct table *table, unsigned i, uint64_t va, uint64_t end)
{
        uint64_t bytes = slot_bytes(job->pt, table->level), base = va & ~(bytes - 1);
        struct slot *slot = table->slots ? &table->slots[i] : NULL;
        struct leaf leaf;
        int r;

        if (end - va == bytes) {
                if (job->phase == COMMIT)
                        clear_slot(job->pt, table, i);
                return 0;
        }
        rig_assert(slot);
        if (job->phase == PREPARE) {
                leaf = (struct leaf){.va = base, .address = slot->address, .flags = slot->flags};
                r = split(job, table->level + 1, &leaf, base, &slot->child);
                if (r < 0)
                        return r;
                job->tables = true;
        } else if (job->phase == COMMIT) {
                link_child(job->pt, table, i);
                each_table(job->pt, slot->child, table_live);
                job->touched = RIG_MIN(job->touched, base);
                job->touched_end = RIG_MAX(job->touched_end, base + bytes);
        }
        return 0;
}

static int unmap_below(struct job *job, struct table *table, unsigned i, uint64_t va, uint64_t end)
{
        struct table *child = table->slots[i].child;
        bool whole = end - va == slot_bytes(job->pt, table->level) && !child->held;
        int r;

        if (job->phase != COMMIT || !whole) {
                r = unmap_walk(job, child, va, end);
                if (r < 0)
                        return r;
        }
        if (job->phase == COMMIT && (whole || (child->n_used == 0 && !child->held))) {
                clear_slot(job->pt, table, i);
                each_table(job->pt, child, table_retire);
                job->tables = true;
        }
        return 0;
}

static int unmap_walk(struct job *job, struct table *table, uint64_t va, uint64_t end)
{
        for (uint64_t next; va < end; va = next) {
                unsigned i = slot_of(job->pt, table->level, va);
                int r;

                next = slot_end(job->pt, table->level, va, end);
                if (!is_used(table, i))
                        return -ENOENT;
                r = is_table(table, i) ? unmap_below(job, table, i, va, next)
                                       : unmap_leaf(job, table, i, va, next);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int unmap_phase(struct job *job, enum phase phase)
{
        begin_phase(job, phase);
        return unmap_walk(job, job->pt->root, job->va, job->end);
}

int rig_pagetable_unmap(
        struct rig_pagetable *pagetable, uint64_t va, uint64_t bytes, struct rig_pagetable_touched *touched)
{
        struct job job = {.pt = pagetable};
        int r = find_range(pagetable, va, bytes, &job.va);

        if (r < 0)
                return r;
        job.end = job.touched_end = job.va + bytes;
        job.touched = job.va;
        r = unmap_phase(&job, CHECK);
        if (r < 0)
                return r;
        r = unmap_phase(&job, PREPARE);
        if (r < 0) {
                unprepare(pagetable, pagetable->root, job.va, job.end);
                return r;
        }
        if (job.tables)
                pagetable->ops->barrier(pagetable->context);
        unmap_phase(&job, COMMIT);
        pagetable->ops->barrier(pagetable->context);
        report(&job, touched);
        return 0;
}

/* ---------------------------------------------------------------- hold */

/* Makes the tables down to `level` that are missing; they hang there, the first of them unlinked. */
static int hold_prepare(struct job *job, unsigned level)
{
        struct table *table = job->pt->root;

        while (table->level < level) {
                unsigned i = slot_of(job->pt, table->level, job->va);
                int r;

                if (is_used(table, i) && !is_table(table, i))
                        return -EEXIST;
                if (!table->slots[i].child) {
                        r = table_new(job->pt, table->level + 1, &table->slots[i].child);
                        if (r < 0)
                                return r;
                        job->tables = true;
                }
                table = table->slots[i].child;
        }
        return 0;
}

/* Links what was prepared below `table`, from below, and marks all on the way. Return: the last table. */
static struct table *hold_commit(struct job *job, struct table *table, unsigned level)
{
        unsigned i = slot_of(job->pt, table->level, job->va);
        struct table *child, *last;

        table->held = true;
        if (table->level == level)
                return table;
        child = table->slots[i].child;
        last = hold_commit(job, child, level);
        if (child->linked)
                return last;
        if (table->live) {
                job->pt->ops->barrier(job->pt->context);
                job->touched = job->va & ~(slot_bytes(job->pt, table->level) - 1);
                job->touched_end = job->touched + slot_bytes(job->pt, table->level);
        }
        link_child(job->pt, table, i);
        if (table->live)
                each_table(job->pt, child, table_live);
        return last;
}

int rig_pagetable_hold(struct rig_pagetable *pagetable, uint64_t va, unsigned level,
        struct rig_pagetable_touched *touched, uint64_t *ret_table)
{
        struct job job = {.pt = pagetable};
        uint64_t page = slot_bytes(pagetable, pagetable->format->n_levels - 1);
        int r = find_range(pagetable, va & ~(page - 1), page, &job.va);

        if (r < 0 || level >= pagetable->format->n_levels)
                return -EINVAL;
        r = hold_prepare(&job, level);
        if (r < 0) {
                unprepare(pagetable, pagetable->root, job.va, job.va + page);
                return r;
        }
        *ret_table = hold_commit(&job, pagetable->root, level)->address;
        pagetable->ops->barrier(pagetable->context);
        if (job.tables)
                report(&job, touched);
        return 0;
}

/* ---------------------------------------------------------------- whole trees */

static bool is_format(const struct rig_pagetable_format *format)
{
        const struct rig_pagetable_level *l = format->levels;
        unsigned top;

        if (format->n_levels == 0 || format->n_levels > RIG_PAGETABLE_LEVELS || !format->table ||
                !format->leaf)
                return false;
        for (unsigned i = 0; i < format->n_levels; i++, l++) {
                if (l->bits == 0 || l->bits > 16 || (l->entry_bytes != 8 && l->entry_bytes != 16) ||
                        (i > 0 && l[-1].shift != l->shift + l->bits))
                        return false;
        }
        top = format->levels[0].shift + format->levels[0].bits;
        return l[-1].leaves && top < 64 && (UINT64_C(1) << top) - 1 <= UINT64_MAX - format->start &&
               (format->start & ((UINT64_C(1) << l[-1].shift) - 1)) == 0;
}

int rig_pagetable_new(const struct rig_pagetable_format *format, const struct rig_pagetable_ops *ops,
        void *context, struct rig_pagetable **ret_pagetable)
{
        struct rig_pagetable *pt;
        int r;

        if (!is_format(format) || !ops->table_alloc || !ops->table_free || !ops->write || !ops->barrier)
                return -EINVAL;
        pt = calloc(1, sizeof(*pt));
        if (!pt)
                return -ENOMEM;
        pt->format = format;
        pt->ops = ops;
        pt->context = context;
        r = table_new(pt, 0, &pt->root);
        if (r < 0) {
                free(pt);
                return r;
        }
        pt->root->linked = pt->root->live = true;
        ops->barrier(context);
        *ret_pagetable = pt;
        return 0;
}

struct rig_pagetable *rig_pagetable_free(struct rig_pagetable *pagetable)
{
        if (!pagetable)
                return NULL;
        each_table(pagetable, pagetable->root, table_retire);
        rig_pagetable_reclaim(pagetable);
        rig_assert(pagetable->n_tables == 0);
        free(pagetable);
        return NULL;
}

uint64_t rig_pagetable_root(const struct rig_pagetable *pagetable)
{
        return pagetable->root->address;
}

size_t rig_pagetable_tables(const struct rig_pagetable *pagetable)
{
        return pagetable->n_tables;
}

void rig_pagetable_reclaim(struct rig_pagetable *pagetable)
{
        while (pagetable->retired) {
                struct table *table = pagetable->retired;

                pagetable->retired = table->next_retired;
                table_free(pagetable, table);
        }
}

/* ---------------------------------------------------------------- what to invalidate */

static uint64_t last_of(const struct rig_pagetable_range *range)
{
        return range->va + (range->bytes - 1);
}

/* Makes ranges[i] and the one after it one. Return: how many there are then. */
static unsigned join_ranges(struct rig_pagetable_range *ranges, unsigned n, unsigned i)
{
        uint64_t last = RIG_MAX(last_of(&ranges[i]), last_of(&ranges[i + 1]));

        ranges[i].bytes = last - ranges[i].va + 1;
        for (unsigned j = i + 1; j + 1 < n; j++)
                ranges[j] = ranges[j + 1];
        return n - 1;
}

void rig_pagetable_touch(struct rig_pagetable_touched *touched, uint64_t va, uint64_t bytes)
{
        struct rig_pagetable_range ranges[RIG_PAGETABLE_TOUCHED + 1];
        unsigned n = 0, at = 0, nearest = 0;

        if (bytes == 0)
                return;
        while (at < touched->n && touched->ranges[at].va < va)
                at++;
        for (unsigned i = 0; i <= touched->n; i++)
                ranges[n++] = i < at   ? touched->ranges[i]
                              : i > at ? touched->ranges[i - 1]
                                       : (struct rig_pagetable_range){va, bytes};
        for (unsigned i = 0; i + 1 < n;) {
                if (ranges[i + 1].va <= last_of(&ranges[i]) || ranges[i + 1].va - 1 == last_of(&ranges[i]))
                        n = join_ranges(ranges, n, i);
                else
                        i++;
        }
        if (n > RIG_PAGETABLE_TOUCHED) {
                for (unsigned i = 1; i + 1 < n; i++)
                        if (ranges[i + 1].va - last_of(&ranges[i]) <
                                ranges[nearest + 1].va - last_of(&ranges[nearest]))
                                nearest = i;
                n = join_ranges(ranges, n, nearest);
        }
        touched->n = n;
        for (unsigned i = 0; i < n; i++)
                touched->ranges[i] = ranges[i];
}
