/* SPDX-License-Identifier: ISC */
/*
 * Drivers that break one promise each, on purpose: a real driver with an op or two replaced. The kit must
 * find each of them out by the promise its row names, or that promise is not held to anything.
 *
 * A mutant's state is static: one device of it is open at a time, or all of them share the mistake.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/drivers/drivers.h"
#include "daemon/drivers/parts.h"
#include "tests/drivers/steered/steered.h"
#include "tests/kit/subjects.h"

#define SHORT_PATIENCE (300 * RIG_USEC_PER_MSEC)

/* ---------------------------------------------------------------- works that are not what was asked */

/* Changed copies of works, which live until the program ends. */
static struct rig_driver_work *changed_works[16384];
static unsigned n_changed;

static struct rig_driver_work *copy_work(const struct rig_driver_work *work)
{
        struct rig_driver_work *copy = malloc(sizeof(*copy));

        rig_assert(copy);
        *copy = *work;
        changed_works[n_changed++ % RIG_ARRAY_SIZE(changed_works)] = copy;
        return copy;
}

/* Hands a changed work over in the place of the one that was asked. */
static int hand_over_changed(const struct rig_driver *driver, struct rig_driver_device *device,
        const struct rig_submission *submission, void (*change)(struct rig_driver_work *work),
        struct rig_error *e)
{
        struct rig_submission changed = *submission;
        struct rig_driver_work *work = copy_work(submission->work);

        change(work);
        changed.work = work;
        return driver->hand_over(device, &changed, e);
}

#define CHANGED_HAND_OVER(name, base, change)                                                               \
        static int name(struct rig_driver_device *device, const struct rig_submission *submission,          \
                struct rig_error *e)                                                                        \
        {                                                                                                   \
                return hand_over_changed(&(base), device, submission, change, e);                           \
        }

static void drop_edges(struct rig_driver_work *work)
{
        for (uint32_t i = 0; i < work->n_parts; i++)
                work->parts[i].after = 0;
}

static void reverse_parts(struct rig_driver_work *work)
{
        for (uint32_t i = 0; i < work->n_parts / 2; i++) {
                struct rig_part part = work->parts[i];

                work->parts[i] = work->parts[work->n_parts - 1 - i];
                work->parts[work->n_parts - 1 - i] = part;
        }
}

static void shorten_copies(struct rig_driver_work *work)
{
        for (uint32_t i = 0; i < work->n_parts; i++)
                if (work->parts[i].kind == RIG_PART_COPY && work->parts[i].bytes > 1 &&
                        work->parts[i].bytes != RIG_WHOLE)
                        work->parts[i].bytes--;
}

static void lengthen_fills(struct rig_driver_work *work)
{
        for (uint32_t i = 0; i < work->n_parts; i++)
                if (work->parts[i].kind == RIG_PART_FILL)
                        work->parts[i].bytes += 4;
}

static void forget_offsets(struct rig_driver_work *work)
{
        for (uint32_t i = 0; i < work->n_parts; i++)
                if (work->parts[i].bytes == RIG_WHOLE)
                        work->parts[i].dst.offset = work->parts[i].src.offset = 0;
}

static void drop_syncs(struct rig_driver_work *work)
{
        if (work->n_parts && work->parts[work->n_parts - 1].kind == RIG_PART_SYNC)
                work->n_parts--;
}

CHANGED_HAND_OVER(ignores_edges, rig_driver_steered, drop_edges)
CHANGED_HAND_OVER(reverses_queues, rig_driver_memory, reverse_parts)
CHANGED_HAND_OVER(shortens_copies, rig_driver_memory, shorten_copies)
CHANGED_HAND_OVER(lengthens_fills, rig_driver_memory, lengthen_fills)
CHANGED_HAND_OVER(forgets_offsets, rig_driver_memory, forget_offsets)
CHANGED_HAND_OVER(ignores_syncs, rig_driver_disk, drop_syncs)

static int ignores_waits(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        struct rig_submission changed = *submission;

        changed.n_waits = 0;
        return rig_driver_steered.hand_over(device, &changed, e);
}

/* ---------------------------------------------------------------- values in the wrong order */

static struct {
        bool there;
        struct rig_submission submission;
        struct rig_filled slots[RIG_SLOTS_MAX];
} held;

static void hold_back(const struct rig_submission *submission)
{
        held.there = true;
        held.submission = *submission;
        memcpy(held.slots, submission->slots, submission->work->n_slots * sizeof(held.slots[0]));
        held.submission.slots = held.slots;
}

/* Every other run comes before the one it follows. */
static int swaps_values(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        struct rig_submission first = *submission;
        int r;

        if (!held.there) {
                hold_back(submission);
                return 0;
        }
        held.there = false;
        first.value = held.submission.value;
        held.submission.value = submission->value;
        r = rig_driver_memory.hand_over(device, &first, e);
        return r < 0 ? r : rig_driver_memory.hand_over(device, &held.submission, e);
}

static void swaps_values_commit(struct rig_driver_device *device)
{
        if (held.there)
                rig_driver_memory.hand_over(device, &held.submission, NULL);
        held.there = false;
        rig_driver_memory.commit(device);
}

/* ---------------------------------------------------------------- words that lie */

static int tells_early(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        for (uint32_t i = 0; held.there && i < held.submission.work->n_parts; i++)
                kit_interpret(&held.submission.work->parts[i], held.slots);
        hold_back(submission);
        return 0;
}

/* Says that the last run is over, which only begins with the next. */
static int tells_early_poll(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        *ret_reached = held.there ? held.submission.value : 0;
        return 0;
}

static void tells_early_close(struct rig_driver_device *device)
{
        held.there = false;
        rig_driver_memory.device_close(device);
}

static int tells_too_much(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        int r = rig_driver_memory.poll(device, ret_reached, e);

        *ret_reached += *ret_reached > 10;
        return r;
}

static int goes_back(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        static unsigned calls;
        int r = rig_driver_memory.poll(device, ret_reached, e);

        *ret_reached -= *ret_reached > 0 && ++calls % 7 == 0;
        return r;
}

/* Tells each value one poll late, so that nobody polls for the last one. */
static int loses_news(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        static uint64_t news;
        uint64_t now;
        int r = rig_driver_memory.poll(device, &now, e);

        *ret_reached = RIG_MIN(news, now);
        news = now;
        return r;
}

static uint64_t counted;

static int counts_runs(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        counted++;
        return rig_driver_memory.hand_over(device, submission, e);
}

/* Takes the number of runs for the value, and everyone's runs for one device's. */
static int counts_runs_poll(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        *ret_reached = counted;
        return 0;
}

static int counts_runs_open(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        counted = 0;
        return rig_driver_memory.device_open(device, instance, options, e);
}

/* ---------------------------------------------------------------- memory */

static int dirty_memory(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        int r = rig_driver_memory.region_alloc(device, bytes, kind, ret_region, e);

        if (r == 0)
                memset(ret_region->host, 0xaa, ret_region->bytes);
        return r;
}

/* Memory whose descriptor could be resized. */
static int unsealed_memory(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        *ret_region =
                (struct rig_region){.bytes = bytes, .access = 3, .fd = memfd_create("mutant", MFD_CLOEXEC)};
        if (ret_region->fd < 0 || ftruncate(ret_region->fd, (off_t)bytes) < 0)
                return rig_error_set(e, -ENOMEM, "no memfd");
        ret_region->host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ret_region->fd, 0);
        return 0;
}

static void unsealed_memory_free(struct rig_driver_adapter *adapter, struct rig_region *region)
{
        munmap(region->host, region->bytes);
        close(region->fd);
}

/* Memory whose descriptor is another's. */
static struct rig_region others[RIG_MEMORY_KIND_MAX];

static int other_descriptor(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        int r = rig_driver_memory.region_alloc(device, bytes, kind, ret_region, e), fd;

        if (r < 0)
                return r;
        r = rig_region_alloc_host(bytes, &others[kind], e);
        rig_assert(r == 0);
        fd = others[kind].fd;
        others[kind].fd = ret_region->fd;
        ret_region->fd = fd;
        return 0;
}

static void other_descriptor_free(struct rig_driver_adapter *adapter, struct rig_region *region)
{
        for (unsigned i = 0; i < RIG_ARRAY_SIZE(others); i++)
                if (others[i].host)
                        rig_region_free_host(&others[i]);
        rig_region_free_host(region);
}

/* A copy where the memory itself was asked for. */
static int borrows_a_copy(struct rig_driver_device *device, const struct rig_region *of,
        struct rig_region *ret_region, struct rig_error *e)
{
        int r = rig_driver_steered.region_alloc(device, of->bytes, RIG_MEMORY_PINNED, ret_region, e);

        if (r == 0)
                memcpy(ret_region->host, of->host, of->bytes);
        return r;
}

static struct rig_region last_region;

static int remembers_memory(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        int r = rig_driver_memory.region_alloc(device, bytes, kind, ret_region, e);

        last_region = *ret_region;
        return r;
}

static void takes_memory_along(struct rig_driver_device *device)
{
        if (last_region.host)
                memset(last_region.host, 0, last_region.bytes);
        rig_driver_memory.device_close(device);
}

/* ---------------------------------------------------------------- devices */

static int takes_any_option(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        return rig_driver_memory.device_open(device, instance, "", e);
}

static int has_wrong_facts(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        int r = rig_driver_memory.device_open(device, instance, options, e);

        snprintf(device->facts.arch, sizeof(device->facts.arch), "none");
        return r;
}

static int runs_out_of_room(struct rig_driver_device *device, const struct rig_submission *submission)
{
        return submission->value < 6;
}

static void blocks_in_commit(struct rig_driver_device *device)
{
        usleep(100);
        rig_driver_memory.commit(device);
}

static int believes_the_client(struct rig_driver_device *device, uint64_t value, int error, const char *text)
{
        rig_driver_host.client_done(device, value, error, text);
        return 0;
}

static int forgets_failures(struct rig_driver_device *device, uint64_t value, int error, const char *text)
{
        return rig_driver_host.client_done(device, value, 0, "");
}

static bool client_failed;

static int is_lost_with_a_run(struct rig_driver_device *device, uint64_t value, int error, const char *text)
{
        client_failed |= error != 0;
        return rig_driver_host.client_done(device, value, error, text);
}

static int is_lost_with_a_run_poll(
        struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        if (client_failed)
                return rig_error_set(e, -EIO, "the client failed");
        return rig_driver_host.poll(device, ret_reached, e);
}

static int hides_faults(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        uint64_t last = *ret_reached;
        int r = rig_driver_steered.poll(device, ret_reached, e);

        if (r < 0)
                *ret_reached = last;
        return 0;
}

static int loads_anything(struct rig_driver_device *device, const void *image, size_t bytes,
        struct rig_driver_image *ret_image, struct rig_error *e)
{
        static const char none[] = "steered-image\n";
        int r = rig_driver_steered.image_load(device, image, bytes, ret_image, e);

        return r < 0 ? rig_driver_steered.image_load(device, none, sizeof(none) - 1, ret_image, e) : r;
}

/* ---------------------------------------------------------------- work after the end */

static struct {
        struct rig_slow_job job;
        struct rig_driver_adapter *adapter;
        struct rig_filled slot;
        atomic_bool stopped;
        bool queued;
        unsigned turns; /* since it was stopped */
} late;

static void late_run(struct rig_slow_job *job)
{
        (void)atomic_load(&late.stopped);
}

/* Goes round until the device was stopped, and a little longer, and then writes what it still had to. */
static void late_done(struct rig_slow_job *job)
{
        late.turns += atomic_load(&late.stopped);
        if (late.turns < 5) {
                rig_adapter_defer(late.adapter, &late.job);
                return;
        }
        memset((uint8_t *)late.slot.region->host + late.slot.offset, 0x11, 64);
        late.queued = false;
}

static int says_it_ran(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        rig_device_ran(device);
        return rig_driver_memory.hand_over(device, submission, e);
}

static int runs_after_stop(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        if (!late.queued) {
                late.job = (struct rig_slow_job){.run = late_run, .done = late_done};
                rig_list_init(&late.job.link);
                late.adapter = device->adapter;
                late.slot = submission->slots[0];
                late.turns = 0;
                late.queued = true;
                atomic_store(&late.stopped, false);
                rig_adapter_defer(late.adapter, &late.job);
        }
        return rig_driver_memory.hand_over(device, submission, e);
}

static int runs_after_stop_stop(struct rig_driver_device *device)
{
        atomic_store(&late.stopped, true);
        return rig_driver_memory.stop(device);
}

/* ---------------------------------------------------------------- the mutants */

/* The ops of a real driver but for those that a row replaces. */
static struct rig_driver drivers[32];

#define MEMORY  &kit_subjects[KIT_MEMORY]
#define ASYNC   &kit_subjects[KIT_MEMORY_ASYNC]
#define HOST    &kit_subjects[KIT_HOST]
#define DISK    &kit_subjects[KIT_DISK]
#define STEERED &kit_subjects[KIT_STEERED]
#define MANUAL  &kit_subjects[KIT_STEERED_MANUAL]
#define MUTANT(mutant_name, n, promise_name, healthy_subject)                                               \
        {                                                                                                   \
                .subject = {.name = mutant_name, .driver = &drivers[n], .patience_usec = SHORT_PATIENCE},   \
                .promise = promise_name, .healthy = healthy_subject                                         \
        }

struct kit_mutant kit_mutants[] = {
        MUTANT("ignores-edges", 0, "parts_follow_their_edges", STEERED),
        MUTANT("ignores-edges-at-random", 0, "random_programs_are_the_interpreters", STEERED),
        MUTANT("reverses-queues", 1, "parts_of_a_queue_run_in_order", MEMORY),
        MUTANT("shortens-copies", 2, "copies_are_memcpy", MEMORY),
        MUTANT("lengthens-fills", 3, "fills_repeat_their_pattern", MEMORY),
        MUTANT("forgets-offsets", 4, "whole_is_the_rest_of_the_buffer", MEMORY),
        MUTANT("ignores-syncs", 5, "a_sync_brings_earlier_writes_to_storage", DISK),
        MUTANT("ignores-waits", 6, "the_queue_waits_for_points", MANUAL),
        MUTANT("swaps-values", 7, "values_run_in_order", MEMORY),
        MUTANT("tells-early", 8, "writes_are_visible_once_told", MEMORY),
        MUTANT("tells-too-much", 9, "every_value_is_told", MEMORY),
        MUTANT("goes-back", 10, "every_value_is_told", MEMORY),
        MUTANT("loses-news", 11, "every_value_is_told", ASYNC),
        MUTANT("counts-runs", 12, "passed_values_leave_no_gap", MEMORY),
        MUTANT("counts-everyones-runs", 12, "devices_are_independent", MEMORY),
        MUTANT("has-dirty-memory", 13, "memory_starts_as_zeros", MEMORY),
        MUTANT("has-unsealed-memory", 14, "regions_are_what_they_say", MEMORY),
        MUTANT("gives-another-descriptor", 15, "regions_are_what_they_say", MEMORY),
        MUTANT("borrows-a-copy", 16, "host_memory_is_reached_without_a_copy", STEERED),
        MUTANT("takes-memory-along", 17, "memory_outlives_its_device", MEMORY),
        MUTANT("takes-any-option", 18, "unknown_options_are_refused", MEMORY),
        MUTANT("has-wrong-facts", 19, "facts_are_sane", MEMORY),
        MUTANT("runs-out-of-room", 20, "room_comes_back", MEMORY),
        MUTANT("blocks-in-commit", 21, "prompt_calls_do_not_block", MEMORY),
        MUTANT("believes-the-client", 22, "the_clients_word_is_checked", HOST),
        MUTANT("forgets-failures", 23, "a_failed_run_loses_nothing", HOST),
        MUTANT("is-lost-with-a-run", 24, "a_failed_run_loses_nothing", HOST),
        MUTANT("hides-faults", 25, "a_fault_is_told_and_ends_the_device", STEERED),
        MUTANT("loads-anything", 26, "launches_reach_their_slots", STEERED),
        MUTANT("runs-after-stop", 27, "nothing_runs_after_stop", MEMORY),
        MUTANT("says-it-ran", 28, "room_comes_back", MEMORY),
        {{0}, NULL, NULL},
};

static void replace_work_ops(void)
{
        drivers[0].hand_over = ignores_edges;
        drivers[1].hand_over = reverses_queues;
        drivers[2].hand_over = shortens_copies;
        drivers[3].hand_over = lengthens_fills;
        drivers[4].hand_over = forgets_offsets;
        drivers[5].hand_over = ignores_syncs;
        drivers[6].hand_over = ignores_waits;
        drivers[7].hand_over = swaps_values;
        drivers[7].commit = swaps_values_commit;
        drivers[8].hand_over = tells_early;
        drivers[8].poll = tells_early_poll;
        drivers[8].device_close = tells_early_close;
        drivers[9].poll = tells_too_much;
        drivers[10].poll = goes_back;
        drivers[11].poll = loses_news;
        drivers[12].device_open = counts_runs_open;
        drivers[12].hand_over = counts_runs;
        drivers[12].poll = counts_runs_poll;
        drivers[27].hand_over = runs_after_stop;
        drivers[28].hand_over = says_it_ran;
        drivers[27].stop = runs_after_stop_stop;
}

static void replace_other_ops(void)
{
        drivers[13].region_alloc = dirty_memory;
        drivers[14].region_alloc = unsealed_memory;
        drivers[14].region_free = unsealed_memory_free;
        drivers[15].region_alloc = other_descriptor;
        drivers[15].region_free = other_descriptor_free;
        drivers[16].region_borrow = borrows_a_copy;
        drivers[17].region_alloc = remembers_memory;
        drivers[17].device_close = takes_memory_along;
        drivers[18].device_open = takes_any_option;
        drivers[19].device_open = has_wrong_facts;
        drivers[20].room = runs_out_of_room;
        drivers[21].commit = blocks_in_commit;
        drivers[22].client_done = believes_the_client;
        drivers[23].client_done = forgets_failures;
        drivers[24].client_done = is_lost_with_a_run;
        drivers[24].poll = is_lost_with_a_run_poll;
        drivers[25].poll = hides_faults;
        drivers[26].image_load = loads_anything;
}

/* Makes each mutant's table and subject from those of the driver it is of. */
void kit_mutants_init(void)
{
        for (struct kit_mutant *m = kit_mutants; m->subject.name; m++) {
                struct kit_subject *s = &m->subject;
                const struct kit_subject *h = m->healthy;

                drivers[s->driver - drivers] = *h->driver;
                *s = (struct kit_subject){s->name, s->driver, h->adapter, h->instance, h->options, h->image,
                        s->patience_usec, h->fault, h->release, NULL};
        }
        replace_work_ops();
        replace_other_ops();
}

void kit_mutants_deinit(void)
{
        for (unsigned i = 0; i < RIG_MIN(n_changed, RIG_ARRAY_SIZE(changed_works)); i++)
                free(changed_works[i]);
}
