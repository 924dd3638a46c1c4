/* SPDX-License-Identifier: ISC */
/*
 * The promises of driver.h about devices: their facts, room, prompt calls, runs that fail, the client's
 * word, waits in the queue, images, faults, and the end.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/order/order.h"
#include "tests/kit/kit.h"

#define LARGE (UINT64_C(4) << 20)

static void facts_are_sane(struct kit *kit)
{
        struct rig_device *device;
        const struct rig_facts *f;
        uint32_t runs = 0;

        rig_driver_check(kit->subject->driver);
        device = kit_open(kit);
        if (!device)
                return;
        f = &device->side.facts;
        kit_expect(kit, f->n_queues >= 1 && f->n_queues <= RIG_QUEUES_MAX, "%u queues", f->n_queues);
        for (uint32_t q = 0; q < f->n_queues; q++) {
                kit_expect(kit, f->queues[q] && f->queues[q] < 2 * RIG_RUNS_SYNC, "queue %u runs %#x", q,
                        f->queues[q]);
                runs |= f->queues[q];
        }
        kit_expect(kit, rig_completion_to_string(f->completion), "its completion has no name");
        kit_expect(kit, !f->max_waits == !f->waits_on, "%u waits on %#x", f->max_waits, f->waits_on);
        kit_expect(kit, memchr(f->arch, 0, sizeof(f->arch)), "arch does not end");
        kit_expect(kit, !(runs & RIG_RUNS_LAUNCH) == !f->arch[0], "launches and arch \"%s\"", f->arch);
        kit_expect(kit, !(f->flags & RIG_DEVICE_CLIENT_CODE) || kit->subject->driver->client_done,
                "no client_done");
        kit_expect(kit, !(f->flags & RIG_DEVICE_LOADS_IMAGES) || kit->subject->driver->image_load,
                "no image_load");
        kit_expect(kit, !(f->flags & RIG_DEVICE_BORROWS_HOST) || kit->subject->driver->region_borrow,
                "no borrow");
        kit_expect(kit, !(f->flags & RIG_DEVICE_FILES) == !(runs & RIG_RUNS_SYNC), "files and sync");
        kit_expect(kit, kit->adapter.side.budget_bytes > 0 && kit->adapter.side.about[0],
                "no budget, or no about");
        kit_close(device);
}

static void unknown_options_are_refused(struct kit *kit)
{
        static const char *const wrong[] = {"no-such-option", ",", "async,async,", "=", "x=1"};
        struct rig_device *device;
        struct rig_error e;
        int r;

        for (unsigned i = 0; i < RIG_ARRAY_SIZE(wrong); i++) {
                r = kit_try_open(kit, wrong[i], &device, &e);
                kit_expect(kit, r < 0, "the option \"%s\" was taken", wrong[i]);
                if (r == 0)
                        kit_close(device);
        }
        device = kit_open(kit); /* a refusal changes nothing */
        if (device)
                kit_close(device);
}

/* ---------------------------------------------------------------- work to hand over */

/* Two buffers and a copy between them. */
struct pair {
        struct rig_device *device;
        struct kit_buffer a, b;
        struct rig_driver_work *copy;
        struct rig_filled slots[2];
};

static bool pair_init(struct pair *p, struct rig_device *device, uint64_t bytes)
{
        *p = (struct pair){.device = device};
        if (!device || !kit_buffer_near(device, bytes, 0, &p->a))
                return false;
        if (!kit_buffer_other(device, bytes, 0, &p->b)) {
                kit_buffer_free(&p->a);
                return false;
        }
        p->copy = kit_work(2);
        kit_part_copy(p->copy, kit_queue(device, RIG_RUNS_COPY, 0), 0, 0, 0, 1, 0, RIG_WHOLE);
        kit_prepare(device, p->copy);
        p->slots[0] = kit_filled(&p->a);
        p->slots[1] = kit_filled(&p->b);
        return true;
}

static void pair_deinit(struct pair *p)
{
        kit_buffer_free(&p->a);
        kit_buffer_free(&p->b);
        kit_work_free(p->device, p->copy);
}

/* Hands over until there is no room, which comes back with a value that is reached; nothing is lost
 * meanwhile. */
static void room_comes_back(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct pair p;

        if (pair_init(&p, device, 100000)) {
                for (unsigned round = 0; round < 5; round++) {
                        unsigned n = 0;

                        while (n < 300 && kit_room(device, p.copy, p.slots) == 1 &&
                                kit_submit(device, p.copy, p.slots))
                                n++;
                        kit_expect(kit, n > 0, "no room for a single run");
                        kit_commit(device);
                        kit_expect(
                                kit, kit_room(device, p.copy, p.slots) >= 0, "a run that fitted never does");
                        kit_wait(device, RIG_MIN(device->reached + 1, device->submitted));
                        kit_finish(device);
                        kit_expect(
                                kit, kit_room(device, p.copy, p.slots) == 1, "no room with nothing to do");
                }
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
}

/* A long line of runs, few at a time and many at a time: no news is lost, the word only grows. */
static void every_value_is_told(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct pair p;

        if (pair_init(&p, device, 64)) {
                for (unsigned i = 0; i < 2000; i++) {
                        if (!kit_submit(device, p.copy, p.slots))
                                break;
                        if (kit_draw(kit, 3) == 0)
                                kit_commit(device);
                        if (kit_draw(kit, 100) == 0 && !kit_finish(device))
                                break;
                }
                kit_finish(device);
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
}

/* Values that the core passed are not handed over, and the word goes past them. */
static void passed_values_leave_no_gap(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct pair p;

        if (pair_init(&p, device, 64)) {
                for (unsigned i = 0; i < 50; i++) {
                        if (i % 3)
                                device->submitted++; /* a run that was lost with another device */
                        kit_submit(device, p.copy, p.slots);
                        kit_commit(device);
                        if (i % 5 == 0)
                                kit_wait(device, device->submitted);
                }
                kit_finish(device);
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
}

/*
 * Prompt calls do not wait. A call that gives the processor away by itself waited for something; a lock that
 * another thread holds for a moment is no wait to speak of, so that a few are let pass.
 */
static void prompt_calls_do_not_block(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct pair p, large;

        if (pair_init(&p, device, 64)) {
                if (pair_init(&large, device, LARGE)) {
                        for (unsigned i = 0; i < 200; i++) {
                                const struct pair *run = i % 20 ? &p : &large;

                                kit_submit(device, run->copy, run->slots);
                                kit_commit(device);
                        }
                        kit_finish(device);
                        pair_deinit(&large);
                }
                pair_deinit(&p);
                kit_expect(kit, kit->prompt.slept * 5 < kit->prompt.calls, "%u of %u prompt calls waited",
                        kit->prompt.slept, kit->prompt.calls);
        }
        if (device)
                kit_close(device);
}

/* Two devices of one adapter have nothing to do with each other. */
static void devices_are_independent(struct kit *kit)
{
        struct rig_device *first = kit_open(kit), *second = kit_open(kit);
        struct pair p, q;

        if (first && second && pair_init(&p, first, 100000)) {
                if (pair_init(&q, second, 64)) {
                        for (unsigned i = 0; i < 10; i++) {
                                kit_submit(first, p.copy, p.slots);
                                kit_commit(first);
                        }
                        kit_expect(kit, second->reached == 0, "one device's values are told for another");
                        kit_submit(second, q.copy, q.slots);
                        kit_finish(second);
                        kit_expect(kit, first->reached <= 10, "one device's values are told for another");
                        pair_deinit(&q);
                        kit_close(second);
                        second = NULL;
                        kit_finish(first); /* the other one is gone */
                }
                pair_deinit(&p);
        }
        if (first)
                kit_close(first);
        if (second)
                kit_close(second);
}

/* Memory keeps its bytes when its device is closed, and may be freed after that. */
static void memory_outlives_its_device(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        uint8_t data[5000], got[5000];
        struct pair p;

        if (pair_init(&p, device, sizeof(data))) {
                kit_scribble(kit, &p.b, data);
                kit_submit(device, p.copy, p.slots);
                kit_finish(device);
                kit_work_free(device, p.copy);
                kit_close(device);
                if (p.b.region.host) {
                        kit_get(&p.b, 0, got, sizeof(got));
                        kit_expect(kit, memcmp(got, data, sizeof(got)) == 0,
                                "memory changed when its device was closed");
                }
                kit_buffer_free(&p.a);
                kit_buffer_free(&p.b);
        } else if (device) {
                kit_close(device);
        }
}

/* ---------------------------------------------------------------- runs that fail */

/* A run that cannot be done, by whatever means the device has. Return: its value, or 0 where it has none. */
static uint64_t submit_failing(struct rig_device *device, struct rig_driver_image *image, struct pair *p)
{
        struct kit *kit = device->kit;
        uint64_t value = 0, entry = 0;

        if (kit_flags(device) & RIG_DEVICE_FILES) {
                struct rig_filled slots[2] = {p->slots[1], p->slots[0]};

                slots[1].offset = UINT64_C(1) << 40; /* far behind the file's end */
                value = kit_submit(device, p->copy, slots);
        } else if (kit_flags(device) & RIG_DEVICE_CLIENT_CODE) {
                value = kit_submit(device, p->copy, p->slots);
                if (value)
                        device->runs[value - 1].client_fails = true;
        } else if (image && kit_image_entry(device, image, "fail", &entry) == 0) {
                struct rig_driver_work *fails = kit_work(0);

                kit_part_launch(
                        fails, kit_queue(device, RIG_RUNS_LAUNCH, 0), 0, image, entry, NULL, 0, NULL, 0);
                kit_prepare(device, fails);
                value = kit_submit(device, fails, p->slots);
                kit_finish(device);
                kit_work_free(device, fails);
        }
        if (value)
                kit_commit(device);
        kit_expect(kit, !kit->subject->image || value, "a run that fails could not be handed over");
        return value;
}

/* A run that fails tells it, before its value, and loses nothing: the values around it are reached and did
 * not fail. */
static void a_failed_run_loses_nothing(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct rig_driver_image image = {0};
        struct rig_error e;
        bool loaded = false;
        struct pair p;

        if (pair_init(&p, device, 5000)) {
                if (kit->subject->image)
                        loaded = kit_image_load(device, kit->subject->image, strlen(kit->subject->image),
                                         &image, &e) == 0;
                for (unsigned round = 0; round < 10; round++) {
                        uint64_t before = kit_submit(device, p.copy, p.slots);
                        uint64_t value = submit_failing(device, loaded ? &image : NULL, &p);
                        uint64_t after = kit_submit(device, p.copy, p.slots);

                        kit_finish(device);
                        kit_expect(kit, !device->faulted, "the device is lost with it");
                        if (before && after)
                                kit_expect(kit,
                                        !device->runs[before - 1].failed && !device->runs[after - 1].failed,
                                        "its neighbours failed");
                        if (value)
                                kit_expect(kit, device->runs[value - 1].failed < 0,
                                        "nothing was told of its failure");
                }
                if (loaded)
                        kit_image_unload(device, &image);
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
}

static void refuse_done(struct rig_device *device, uint64_t value, const char *why)
{
        int r = device->kit->subject->driver->client_done(&device->side, value, 0, "");
        uint64_t reached = device->reached;

        kit_expect(device->kit, r == -EINVAL, "client_done(%llu), %s, returned %d",
                (unsigned long long)value, why, r);
        kit_turn(device->kit, 0);
        rig_device_kick(&device->side);
        kit_turn(device->kit, 0);
        kit_expect(device->kit, device->reached == reached, "client_done(%llu), %s, moved the word",
                (unsigned long long)value, why);
}

/* The client is believed about values it was told to run, and nothing else. */
static void the_clients_word_is_checked(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct pair p;

        if (device && kit_flags(device) & RIG_DEVICE_CLIENT_CODE && pair_init(&p, device, 64)) {
                device->client_slow = true;
                refuse_done(device, 0, "which is no value");
                refuse_done(device, 1, "which was not handed over");
                kit_submit(device, p.copy, p.slots);
                kit_submit(device, p.copy, p.slots);
                kit_commit(device);
                refuse_done(device, 3, "which was not handed over");
                refuse_done(device, UINT64_MAX, "which was not handed over");
                device->client_slow = false;
                kit_finish(device);
                refuse_done(device, 1, "which is done");
                refuse_done(device, 2, "which is done");
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
}

/* ---------------------------------------------------------------- waits, images */

/* A queue that waits for another device's word starts once it is there, and not before. */
static void the_queue_waits_for_points(struct kit *kit)
{
        struct rig_device *producer = kit_open(kit), *consumer = kit_open(kit);
        struct pair p, q;

        if (producer && consumer && consumer->side.facts.max_waits && kit->subject->release &&
                pair_init(&p, producer, 64)) {
                if (pair_init(&q, consumer, 64)) {
                        for (uint64_t i = 1; i <= 20; i++) {
                                struct rig_queue_wait wait = {&producer->side, i};

                                kit_submit(producer, p.copy, p.slots);
                                kit_commit(producer);
                                kit_submit_after(consumer, q.copy, q.slots, &wait, 1);
                                kit_commit(consumer);
                                kit->subject->release(&consumer->side, i);
                                /* time for what must not happen to happen: a slow machine misses it, no more
                                 */
                                kit_expect(kit, !kit_reaches(consumer, i, 5 * RIG_USEC_PER_MSEC),
                                        "a run did not wait for its point");
                                kit->subject->release(&producer->side, i);
                                kit_wait(consumer, i);
                                kit_wait(producer, i);
                        }
                        pair_deinit(&q);
                }
                pair_deinit(&p);
        }
        if (producer)
                kit_close(producer);
        if (consumer)
                kit_close(consumer);
}

static void refuse_image(struct rig_device *device, const char *bytes, size_t n)
{
        struct rig_driver_image image = {0};
        struct rig_error e;
        int r = kit_image_load(device, bytes, n, &image, &e);

        kit_expect(device->kit, r == -ENOEXEC, "%zu bytes that are no image returned %d", n, r);
        if (r == 0)
                kit_image_unload(device, &image);
}

/* What is no image is refused; a launch has its slots' addresses in its parameters. */
static void launches_reach_their_slots(struct kit *kit)
{
        static const char garbage[] = "\177ELF no such thing";
        struct rig_device *device = kit_open(kit);
        struct rig_driver_image image = {0};
        struct rig_error e;
        uint64_t entry = 0;
        struct pair p;

        if (device && kit->subject->image && pair_init(&p, device, 64)) {
                uint8_t params[12] = {0}, got[64];
                uint32_t value = 0x11223344;
                struct rig_patch patch = {.at = 0, .slot = 0, .addend = 20};
                struct rig_driver_work *store = kit_work(1);

                refuse_image(device, garbage, sizeof(garbage));
                refuse_image(device, garbage, 0);
                if (kit_image_load(device, kit->subject->image, strlen(kit->subject->image), &image, &e) ==
                        0) {
                        kit_expect(kit, kit_image_entry(device, &image, "none", &entry) == -ENOENT,
                                "\"none\" is found");
                        kit_expect(kit, kit_image_entry(device, &image, "store", &entry) == 0,
                                "\"store\" is not found");
                        memcpy(params + 8, &value, sizeof(value));
                        kit_part_launch(store, kit_queue(device, RIG_RUNS_LAUNCH, 0), 0, &image, entry,
                                params, sizeof(params), &patch, 1);
                        store->access[0] = RIG_ACCESS_WRITE;
                        kit_prepare(device, store);
                        kit_submit(device, store, p.slots);
                        kit_finish(device);
                        kit_get(&p.a, 0, got, sizeof(got));
                        kit_expect(kit, memcmp(got + 20, &value, 4) == 0,
                                "the launch did not store to its slot");
                        kit_image_unload(device, &image);
                } else {
                        kit_broken(kit, "the image does not load: %s", e.text);
                }
                kit_work_free(device, store);
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
}

/* ---------------------------------------------------------------- the end */

/* A fault is told once, with a reason, after what was reached; then the device stops, and gives back what it
 * had. */
static void a_fault_is_told_and_ends_the_device(struct kit *kit)
{
        struct rig_device *device = kit->subject->fault ? kit_open(kit) : NULL;
        struct pair p;
        int r;

        if (pair_init(&p, device, 5000)) {
                kit_submit(device, p.copy, p.slots);
                kit_finish(device);
                kit->subject->fault(&device->side);
                kit_expect(kit, kit_faults(device), "the device does not tell that it faulted");
                kit_expect(
                        kit, device->reached == 1, "with %llu reached", (unsigned long long)device->reached);
                r = kit_stop(device);
                kit_expect(kit, r == 0 || r == -EINPROGRESS, "stop() returned %d", r);
                pair_deinit(&p);
        }
        if (device)
                kit_close(device);
        device = kit_open(kit); /* the adapter opens again */
        if (device)
                kit_close(device);
}

/* Once stop() returned 0 (or the adapter was reset) no work touches memory, whatever was handed over before.
 */
static void nothing_runs_after_stop(struct kit *kit)
{
        uint8_t *marks = malloc(LARGE), *got = malloc(LARGE);
        struct pair p;

        rig_assert(marks && got);
        memset(marks, 0x77, LARGE);
        for (unsigned round = 0; round < 6; round++) {
                struct rig_device *device = kit_open(kit);
                uint64_t at = 0;
                int r;

                if (!pair_init(&p, device, LARGE)) {
                        if (device)
                                kit_close(device);
                        break;
                }
                for (unsigned i = 0; i < 8 && kit_room(device, p.copy, p.slots) == 1; i++) {
                        kit_submit(device, p.copy, p.slots);
                        kit_commit(device);
                }
                r = kit_stop(device);
                kit_expect(kit, r == 0 || (r == -EINPROGRESS && kit->subject->driver->adapter_reset),
                        "stop() returned %d", r);
                if (p.a.region.host || p.a.is_file) {
                        kit_put(&p.a, 0, marks, LARGE);
                        for (unsigned i = 0; i < 20; i++) /* whatever is still on its way arrives */
                                kit_turn(kit, RIG_USEC_PER_MSEC);
                        kit_get(&p.a, 0, got, LARGE);
                        while (at < LARGE && got[at] == 0x77)
                                at++;
                        kit_expect(kit, at == LARGE, "byte %llu was written after stop()",
                                (unsigned long long)at);
                }
                pair_deinit(&p);
                kit_close(device);
        }
        free(marks);
        free(got);
}

const struct kit_promise kit_lifecycle[] = {
        {"facts_are_sane", facts_are_sane},
        {"unknown_options_are_refused", unknown_options_are_refused},
        {"room_comes_back", room_comes_back},
        {"every_value_is_told", every_value_is_told},
        {"passed_values_leave_no_gap", passed_values_leave_no_gap},
        {"prompt_calls_do_not_block", prompt_calls_do_not_block},
        {"devices_are_independent", devices_are_independent},
        {"memory_outlives_its_device", memory_outlives_its_device},
        {"a_failed_run_loses_nothing", a_failed_run_loses_nothing},
        {"the_clients_word_is_checked", the_clients_word_is_checked},
        {"the_queue_waits_for_points", the_queue_waits_for_points},
        {"launches_reach_their_slots", launches_reach_their_slots},
        {"a_fault_is_told_and_ends_the_device", a_fault_is_told_and_ends_the_device},
        {"nothing_runs_after_stop", nothing_runs_after_stop},
        {NULL, NULL},
};
