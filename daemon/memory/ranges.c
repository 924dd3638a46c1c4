/* SPDX-License-Identifier: ISC */
/*
 * See ranges.h. TLSF (two-level segregated fit) with its books beside the range instead of in it.
 *
 * The range is a row of blocks, each allocated or a hole, that know their neighbours: no two holes are
 * neighbours. Sizes and places are counted in units of the granularity, from the start of the range. Holes
 * are in lists by class: 32 classes to each power of two, and one to each size below 64; two levels of
 * bitmaps say which lists hold any. All blocks are in one index by place.
 *
 * The index is a digital search tree through the blocks themselves: the way down from the root is the
 * place's bits, highest first, and any block may sit anywhere on its way. It needs no memory of its own, no
 * balancing and no growing, and is never deeper than a place has bits.
 *
 * Blocks come from chunks that live as long as the range. Whoever is about to change something first makes
 * sure of the spare blocks it may need.
 */
#include "daemon/memory/ranges.h"

#define CLASS_BITS   5
#define CLASSES      (1u << CLASS_BITS)    /* to each power of two */
#define POWERS       (64 - CLASS_BITS + 1) /* the first has the sizes below 32 */
#define LOOKS        8                     /* of step 1 */
#define CHUNK_BLOCKS 64
#define NO_CLASS     (POWERS * CLASSES)

struct block {
        uint64_t at, units;
        struct block *before, *after; /* by place */
        struct block *children[2];    /* in the index; of a spare one: the next spare one */
        struct block *older, **newer; /* of a hole: in its class; `newer` is what points here */
        bool hole;
};

struct chunk {
        struct chunk *next;
        struct block blocks[CHUNK_BLOCKS];
};

struct rig_ranges {
        uint64_t start, units, free_units;
        unsigned granularity_shift;
        unsigned place_bits; /* that a place has */

        struct block *root;
        struct block *classes[NO_CLASS]; /* newest first */
        uint32_t in_power[POWERS];       /* which classes of it hold any */
        uint64_t powers;                 /* which have a class that holds any */

        struct chunk *chunks;
        struct block *spare;
        size_t n_spare, n_blocks, n_holes, max_blocks;
        uint64_t steps;
};

/* ---------------------------------------------------------------- classes */

static unsigned log2_floor(uint64_t n)
{
        return 63 - (unsigned)__builtin_clzll(n);
}

/* The class that a hole of `units` is in. */
static unsigned class_of(uint64_t units)
{
        unsigned power;

        if (units < CLASSES)
                return (unsigned)units;
        power = log2_floor(units);
        return (power - CLASS_BITS) * CLASSES + (unsigned)(units >> (power - CLASS_BITS));
}

/* The least class whose every hole has `units`, or NO_CLASS. */
static unsigned class_that_fits(uint64_t units)
{
        unsigned class = class_of(units);
        uint64_t width = units < CLASSES ? 1 : UINT64_C(1) << (log2_floor(units) - CLASS_BITS);

        return units & (width - 1) ? class + 1 : class;
}

/* The least class from `class` on that holds any, or NO_CLASS. */
static unsigned next_class(const struct rig_ranges *ranges, unsigned class)
{
        unsigned power = class / CLASSES;
        uint32_t in_power;
        uint64_t powers;

        if (class >= NO_CLASS)
                return NO_CLASS;
        in_power = ranges->in_power[power] & (UINT32_MAX << class % CLASSES);
        if (in_power)
                return power * CLASSES + (unsigned)__builtin_ctz(in_power);
        powers = power + 1 < POWERS ? ranges->powers & (UINT64_MAX << (power + 1)) : 0;
        if (!powers)
                return NO_CLASS;
        power = (unsigned)__builtin_ctzll(powers);
        return power * CLASSES + (unsigned)__builtin_ctz(ranges->in_power[power]);
}

static void hole_insert(struct rig_ranges *ranges, struct block *block)
{
        unsigned class = class_of(block->units);
        struct block **list = &ranges->classes[class];

        block->hole = true;
        block->older = *list;
        block->newer = list;
        if (*list)
                (*list)->newer = &block->older;
        *list = block;
        ranges->in_power[class / CLASSES] |= 1u << class % CLASSES;
        ranges->powers |= UINT64_C(1) << class / CLASSES;
        ranges->n_holes++;
}

static void hole_remove(struct rig_ranges *ranges, struct block *block)
{
        unsigned class = class_of(block->units), power = class / CLASSES;

        *block->newer = block->older;
        if (block->older)
                block->older->newer = block->newer;
        block->hole = false;
        ranges->n_holes--;
        if (ranges->classes[class])
                return;
        ranges->in_power[power] &= ~(1u << class % CLASSES);
        if (!ranges->in_power[power])
                ranges->powers &= ~(UINT64_C(1) << power);
}

/* ---------------------------------------------------------------- the index */

/* Which child of a block `depth` deep the way to `at` leads to. */
static unsigned turn(const struct rig_ranges *ranges, uint64_t at, unsigned depth)
{
        rig_assert(depth < ranges->place_bits);
        return at >> (ranges->place_bits - 1 - depth) & 1;
}

static void index_insert(struct rig_ranges *ranges, struct block *block)
{
        struct block **link = &ranges->root;

        for (unsigned depth = 0; *link; depth++, ranges->steps++)
                link = &(*link)->children[turn(ranges, block->at, depth)];
        block->children[0] = block->children[1] = NULL;
        *link = block;
}

/* Any block below may sit where this one sat, since its way leads through there: take one at the bottom. */
static void index_remove(struct rig_ranges *ranges, struct block *block)
{
        struct block **link = &ranges->root, **bottom, *heir;

        for (unsigned depth = 0; *link != block; depth++, ranges->steps++) {
                rig_assert(*link);
                link = &(*link)->children[turn(ranges, block->at, depth)];
        }
        bottom = link;
        while ((*bottom)->children[0] || (*bottom)->children[1]) {
                bottom = &(*bottom)->children[(*bottom)->children[0] ? 0 : 1];
                ranges->steps++;
        }
        heir = *bottom;
        *bottom = NULL;
        if (heir == block)
                return;
        heir->children[0] = block->children[0];
        heir->children[1] = block->children[1];
        *link = heir;
}

/* The later of two blocks of which `block` counts only where it begins at or before `at`. */
static struct block *later(struct block *best, struct block *block, uint64_t at)
{
        return block->at <= at && (!best || block->at > best->at) ? block : best;
}

/*
 * The block that `at` lies in: the last that begins at or before it. It is on the way to `at`, or in the
 * last branch that the way passes on its right: all in there is before `at`, and after what is in the
 * branches passed earlier.
 */
static struct block *index_find(struct rig_ranges *ranges, uint64_t at)
{
        struct block *best = NULL, *passed = NULL, *b = ranges->root;

        for (unsigned depth = 0; b; depth++, ranges->steps++) {
                best = later(best, b, at);
                if (b->at == at)
                        return b;
                if (turn(ranges, at, depth) && b->children[0])
                        passed = b->children[0];
                b = b->children[turn(ranges, at, depth)];
        }
        for (b = passed; b; ranges->steps++) {
                best = later(best, b, at);
                b = b->children[b->children[1] ? 1 : 0];
        }
        rig_assert(best);
        return best;
}

/* ---------------------------------------------------------------- blocks */

/* Makes sure of `n` spare blocks, and that there may be so many more. */
static int reserve(struct rig_ranges *ranges, size_t n)
{
        struct chunk *chunk;

        if (n == 0)
                return 0;
        if (ranges->max_blocks && (n > ranges->max_blocks || ranges->n_blocks > ranges->max_blocks - n))
                return -ENOMEM;
        if (ranges->n_spare >= n)
                return 0;
        chunk = malloc(sizeof(*chunk));
        if (!chunk)
                return -ENOMEM;
        chunk->next = ranges->chunks;
        ranges->chunks = chunk;
        for (unsigned i = CHUNK_BLOCKS; i-- > 0;) {
                chunk->blocks[i].children[0] = ranges->spare;
                ranges->spare = &chunk->blocks[i];
        }
        ranges->n_spare += CHUNK_BLOCKS;
        return 0;
}

/* A block from the spare ones, after `before`, in the index and in no class. */
static struct block *block_new(struct rig_ranges *ranges, uint64_t at, uint64_t units, struct block *before)
{
        struct block *block = ranges->spare;

        rig_assert(block);
        ranges->spare = block->children[0];
        ranges->n_spare--;
        ranges->n_blocks++;
        *block = (struct block){.at = at, .units = units, .before = before};
        if (before) {
                block->after = before->after;
                before->after = block;
        }
        if (block->after)
                block->after->before = block;
        index_insert(ranges, block);
        return block;
}

/* The bytes of the block before `block` and its own become one block, that before. */
static struct block *join(struct rig_ranges *ranges, struct block *block)
{
        struct block *before = block->before;

        index_remove(ranges, block);
        before->units += block->units;
        before->after = block->after;
        if (block->after)
                block->after->before = before;
        block->children[0] = ranges->spare;
        ranges->spare = block;
        ranges->n_spare++;
        ranges->n_blocks--;
        return before;
}

/* Allocates `units` of a hole, `skip` units from its beginning. The spare blocks are there. */
static struct block *cut(struct rig_ranges *ranges, struct block *block, uint64_t skip, uint64_t units)
{
        uint64_t rest = block->units - skip - units;

        hole_remove(ranges, block);
        if (skip) {
                struct block *front = block;

                block = block_new(ranges, front->at + skip, units, front);
                front->units = skip;
                hole_insert(ranges, front);
        }
        block->units = units;
        if (rest)
                hole_insert(ranges, block_new(ranges, block->at + units, rest, block));
        ranges->free_units -= units;
        return block;
}

/* ---------------------------------------------------------------- fits */

struct request {
        uint64_t units, alignment;
};

static uint64_t address_of(const struct rig_ranges *ranges, const struct block *block)
{
        return ranges->start + (block->at << ranges->granularity_shift);
}

/* Units from the beginning of a block to the first address in it that is aligned. */
static uint64_t skip_in(const struct rig_ranges *ranges, const struct block *block, uint64_t alignment)
{
        return (-address_of(ranges, block) & (alignment - 1)) >> ranges->granularity_shift;
}

static bool fits(struct rig_ranges *ranges, const struct block *block, const struct request *request)
{
        ranges->steps++;
        return block->units >= request->units &&
               skip_in(ranges, block, request->alignment) <= block->units - request->units;
}

/* Step 1 with as many looks as it has, step 3 with no bound. */
static struct block *look(struct rig_ranges *ranges, const struct request *request, uint64_t looks)
{
        unsigned class = next_class(ranges, class_of(request->units));

        for (; class < NO_CLASS; class = next_class(ranges, class + 1))
                for (struct block *b = ranges->classes[class]; b; b = b->older) {
                        if (looks-- == 0)
                                return NULL;
                        if (fits(ranges, b, request))
                                return b;
                }
        return NULL;
}

static struct block *find_fit(struct rig_ranges *ranges, const struct request *request)
{
        struct block *block = look(ranges, request, LOOKS);
        uint64_t padded;
        unsigned class;

        if (block)
                return block;
        if (!rig_add_overflow(
                    request->units, (request->alignment >> ranges->granularity_shift) - 1, &padded)) {
                class = next_class(ranges, class_that_fits(padded));
                if (class < NO_CLASS) {
                        block = ranges->classes[class];
                        rig_assert(fits(ranges, block, request));
                        return block;
                }
        }
        return look(ranges, request, UINT64_MAX);
}

/* ---------------------------------------------------------------- calls */

static bool power_of_two(uint64_t n)
{
        return n && (n & (n - 1)) == 0;
}

/* Units that hold `bytes`. */
static uint64_t units_of(const struct rig_ranges *ranges, uint64_t bytes)
{
        uint64_t mask = (UINT64_C(1) << ranges->granularity_shift) - 1;

        return (bytes >> ranges->granularity_shift) + ((bytes & mask) != 0);
}

int rig_ranges_new(uint64_t start, uint64_t bytes, uint64_t granularity, struct rig_ranges **ret_ranges)
{
        struct rig_ranges *ranges;

        if (!power_of_two(granularity) || bytes == 0 || (start | bytes) & (granularity - 1) ||
                bytes - 1 > UINT64_MAX - start)
                return -EINVAL;
        ranges = calloc(1, sizeof(*ranges));
        if (!ranges)
                return -ENOMEM;
        ranges->start = start;
        ranges->granularity_shift = log2_floor(granularity);
        ranges->units = ranges->free_units = bytes >> ranges->granularity_shift;
        ranges->place_bits = ranges->units > 1 ? log2_floor(ranges->units - 1) + 1 : 0;
        if (reserve(ranges, 1) < 0) {
                free(ranges);
                return -ENOMEM;
        }
        hole_insert(ranges, block_new(ranges, 0, ranges->units, NULL));
        *ret_ranges = ranges;
        return 0;
}

struct rig_ranges *rig_ranges_free(struct rig_ranges *ranges)
{
        if (!ranges)
                return NULL;
        while (ranges->chunks) {
                struct chunk *chunk = ranges->chunks;

                ranges->chunks = chunk->next;
                free(chunk);
        }
        free(ranges);
        return NULL;
}

void rig_ranges_limit(struct rig_ranges *ranges, size_t max_blocks)
{
        ranges->max_blocks = max_blocks;
}

int rig_ranges_alloc(struct rig_ranges *ranges, uint64_t bytes, uint64_t alignment, uint64_t *ret_address)
{
        uint64_t granularity = UINT64_C(1) << ranges->granularity_shift, skip, rest;
        struct request request;
        struct block *block;

        if (bytes == 0 || !power_of_two(alignment))
                return -EINVAL;
        request.units = units_of(ranges, bytes);
        request.alignment = RIG_MAX(alignment, granularity);
        block = find_fit(ranges, &request);
        if (!block)
                return -ENOMEM;
        skip = skip_in(ranges, block, request.alignment);
        rest = block->units - skip - request.units;
        if (reserve(ranges, (skip != 0) + (rest != 0)) < 0)
                return -ENOMEM;
        *ret_address = address_of(ranges, cut(ranges, block, skip, request.units));
        return 0;
}

int rig_ranges_alloc_at(struct rig_ranges *ranges, uint64_t address, uint64_t bytes)
{
        uint64_t granularity = UINT64_C(1) << ranges->granularity_shift, units, at, skip;
        struct block *block;

        if (bytes == 0 || address < ranges->start || (address - ranges->start) & (granularity - 1))
                return -EINVAL;
        at = (address - ranges->start) >> ranges->granularity_shift;
        units = units_of(ranges, bytes);
        if (rig_range_outside(at, units, ranges->units))
                return -EINVAL;
        block = index_find(ranges, at);
        skip = at - block->at;
        if (!block->hole || units > block->units - skip)
                return -EBUSY;
        if (reserve(ranges, (skip != 0) + (block->units - skip != units)) < 0)
                return -ENOMEM;
        cut(ranges, block, skip, units);
        return 0;
}

/* The allocation that an address lies in, or NULL. */
static struct block *find(struct rig_ranges *ranges, uint64_t address)
{
        struct block *block;
        uint64_t at;

        if (address < ranges->start)
                return NULL;
        at = (address - ranges->start) >> ranges->granularity_shift;
        if (at >= ranges->units)
                return NULL;
        block = index_find(ranges, at);
        return block->hole ? NULL : block;
}

int rig_ranges_return(struct rig_ranges *ranges, uint64_t address)
{
        struct block *block = find(ranges, address);

        if (!block || address_of(ranges, block) != address)
                return -EINVAL;
        ranges->free_units += block->units;
        if (block->after && block->after->hole) {
                hole_remove(ranges, block->after);
                block = join(ranges, block->after);
        }
        if (block->before && block->before->hole) {
                hole_remove(ranges, block->before);
                block = join(ranges, block);
        }
        hole_insert(ranges, block);
        return 0;
}

int rig_ranges_find(struct rig_ranges *ranges, uint64_t address, uint64_t *ret_address, uint64_t *ret_bytes)
{
        struct block *block = find(ranges, address);

        if (!block)
                return -ENOENT;
        *ret_address = address_of(ranges, block);
        *ret_bytes = block->units << ranges->granularity_shift;
        return 0;
}

void rig_ranges_stats(const struct rig_ranges *ranges, struct rig_ranges_stats *ret_stats)
{
        uint64_t largest = 0;

        if (ranges->powers) {
                unsigned power = log2_floor(ranges->powers),
                         class = power * CLASSES + log2_floor(ranges->in_power[power]);

                for (const struct block *b = ranges->classes[class]; b; b = b->older)
                        largest = RIG_MAX(largest, b->units);
        }
        *ret_stats = (struct rig_ranges_stats){
                .bytes = ranges->units << ranges->granularity_shift,
                .free_bytes = ranges->free_units << ranges->granularity_shift,
                .largest_free_bytes = largest << ranges->granularity_shift,
                .n_allocations = ranges->n_blocks - ranges->n_holes,
                .n_holes = ranges->n_holes,
                .steps = ranges->steps,
        };
}
