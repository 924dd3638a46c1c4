/* SPDX-License-Identifier: ISC */
/* What the steered driver promises to the tests that use it. */
#include <string.h>

#include "daemon/order/order.h"
#include "tests/drivers/steered/steered.h"
#include "tests/kit/subjects.h"

static const char image_text[] = "steered-image\nnop\ncopy\nstore\nhold\nfail\nfault\nhang\n";

/* A device with options, an image of all entries, and two buffers of pinned memory. */
struct stage {
        struct rig_device *device;
        struct rig_driver_image image;
        struct rig_region words, bytes;
        struct rig_filled slots[2];
};

static bool stage_init(struct stage *s, struct kit *kit, const char *options)
{
        struct rig_error e;

        *s = (struct stage){0};
        if (!kit_expect(kit, kit_try_open(kit, options, &s->device, &e) == 0, "\"%s\" does not open: %s",
                    options, e.text))
                return false;
        kit_expect(kit, kit_image_load(s->device, image_text, strlen(image_text), &s->image, &e) == 0,
                "no image");
        kit_expect(kit, kit_alloc(s->device, 4096, RIG_MEMORY_PINNED, &s->words) == 0, "no memory");
        kit_expect(kit, kit_alloc(s->device, 4096, RIG_MEMORY_MAPPED, &s->bytes) == 0, "no memory");
        s->slots[0] = (struct rig_filled){&s->words, 0, 4096};
        s->slots[1] = (struct rig_filled){&s->bytes, 0, 4096};
        return true;
}

static void stage_deinit(struct stage *s)
{
        kit_free(s->device->kit, &s->words);
        kit_free(s->device->kit, &s->bytes);
        kit_image_unload(s->device, &s->image);
        kit_close(s->device);
}

/* A work that launches an entry with the address of slot 0's byte `addend`, or with a number. */
static struct rig_driver_work *launch(struct stage *s, const char *name, bool patched, uint64_t number)
{
        struct rig_driver_work *work = kit_work(2);
        struct rig_patch patch = {.at = 0, .slot = 0, .addend = number};
        uint64_t entry = 0, params[3] = {number, 0, 0};

        kit_expect(s->device->kit, kit_image_entry(s->device, &s->image, name, &entry) == 0, "no entry %s",
                name);
        work->access[0] = work->access[1] = RIG_ACCESS_READ | RIG_ACCESS_WRITE;
        kit_part_launch(work, 1, 0, &s->image, entry, params, sizeof(params), &patch, patched);
        return work;
}

/* hold is done once its word is not 0, and keeps the values behind it until then. */
static void hold_waits_for_its_word(struct kit *kit)
{
        struct rig_driver_work *hold, *nop;
        struct stage s;

        if (!stage_init(&s, kit, ""))
                return;
        hold = launch(&s, "hold", true, 8);
        nop = launch(&s, "nop", false, 0);
        kit_submit(s.device, nop, s.slots);
        kit_submit(s.device, hold, s.slots);
        kit_submit(s.device, nop, s.slots);
        kit_commit(s.device);
        kit_wait(s.device, 1);
        kit_expect(kit, !kit_reaches(s.device, 2, 20 * RIG_USEC_PER_MSEC), "it did not hold");
        atomic_store((_Atomic uint32_t *)s.words.host + 2, 1);
        kit_finish(s.device);
        kit_work_free(s.device, hold);
        kit_work_free(s.device, nop);
        stage_deinit(&s);
}

/* What the device does not map it faults on, and says which address. */
static void accesses_outside_of_memory_fault(struct kit *kit)
{
        struct stage s;

        for (unsigned i = 0; i < 3; i++) {
                struct rig_driver_work *store;

                if (!stage_init(&s, kit, ""))
                        return;
                store = i == 0 ? launch(&s, "store", true, 4096) : /* the byte behind it */
                                i == 1 ? launch(&s, "store", true, UINT64_MAX)
                                       : /* the byte before it */
                                launch(&s, "store", false,
                                        (uint64_t)(uintptr_t)s.words.host); /* a host address */
                kit_submit(s.device, store, s.slots);
                kit_commit(s.device);
                kit_expect(kit, kit_faults(s.device), "access %u did not fault", i);
                kit_expect(kit, strstr(s.device->fault.text, "0x"), "\"%s\" names no address",
                        s.device->fault.text);
                kit_stop(s.device);
                kit_work_free(s.device, store);
                stage_deinit(&s);
        }
}

/* Work that hangs ends by stop(), or where the device is sticky, by a reset of the adapter. */
static void hangs_end_by_stop_or_reset(struct kit *kit)
{
        for (unsigned sticky = 0; sticky < 2; sticky++) {
                struct rig_driver_work *hang;
                struct stage s;
                int r;

                if (!stage_init(&s, kit, sticky ? "sticky,hang=1000" : "hang=1000"))
                        return;
                kit_expect(kit, s.device->side.facts.hang_usec == 1000, "its hang bound is another");
                hang = launch(&s, "hang", false, 0);
                kit_submit(s.device, hang, s.slots);
                kit_commit(s.device);
                kit_expect(kit, !kit_reaches(s.device, 1, 10 * RIG_USEC_PER_MSEC), "it did not hang");
                r = kit_stop(s.device);
                kit_expect(kit, r == (sticky ? -EINPROGRESS : 0), "stop() returned %d", r);
                kit_work_free(s.device, hang);
                stage_deinit(&s);
        }
}

/* Values, handed over, committed and complete, are as a test says. */
static void manual_devices_do_as_told(struct kit *kit)
{
        struct rig_driver_work *nop;
        struct stage s;

        if (!stage_init(&s, kit, "manual"))
                return;
        nop = launch(&s, "nop", false, 0);
        for (uint64_t i = 1; i <= 4; i++) {
                kit_submit(s.device, nop, s.slots);
                kit_expect(kit, steered_handed(&s.device->side) == i, "handed over: %llu",
                        (unsigned long long)steered_handed(&s.device->side));
                kit_expect(kit, steered_committed(&s.device->side) == (i - 1) / 2 * 2, "committed: %llu",
                        (unsigned long long)steered_committed(&s.device->side));
                if (i % 2 == 0)
                        kit_commit(s.device);
        }
        kit_expect(kit, !kit_reaches(s.device, 1, 10 * RIG_USEC_PER_MSEC), "it ran untold");
        steered_complete(&s.device->side, 3);
        kit_expect(kit, kit_reaches(s.device, 3, kit->subject->patience_usec), "it did not run as told");
        kit_expect(kit, !kit_reaches(s.device, 4, 10 * RIG_USEC_PER_MSEC), "it ran further than told");
        steered_complete(&s.device->side, 4);
        kit_finish(s.device);
        kit_work_free(s.device, nop);
        stage_deinit(&s);
}

/* The copy entry copies between addresses in its parameters. */
static void copies_go_by_address(struct kit *kit)
{
        struct rig_driver_work *work = kit_work(2);
        struct rig_patch patches[2] = {
                {.at = 0, .slot = 1, .addend = 7}, {.at = 8, .slot = 0, .addend = 100}};
        uint64_t entry = 0, params[3] = {0, 0, 50};
        struct stage s;

        if (!stage_init(&s, kit, ""))
                return;
        kit_image_entry(s.device, &s.image, "copy", &entry);
        kit_part_launch(work, 2, 0, &s.image, entry, params, sizeof(params), patches, 2);
        memset((uint8_t *)s.words.host + 100, 0x3c, 50);
        kit_submit(s.device, work, s.slots);
        kit_finish(s.device);
        kit_expect(kit, memcmp((uint8_t *)s.bytes.host + 7, (uint8_t *)s.words.host + 100, 50) == 0,
                "nothing was copied");
        kit_work_free(s.device, work);
        stage_deinit(&s);
}

static void options_say_what_they_refuse(struct kit *kit)
{
        static const char *const wrong[] = {
                "room=0", "room=65", "room=", "hang=x", "fault-open", "manual=1"};
        struct rig_device *device;
        struct rig_error e;

        for (unsigned i = 0; i < RIG_ARRAY_SIZE(wrong); i++)
                kit_expect(kit, kit_try_open(kit, wrong[i], &device, &e) < 0, "\"%s\" opened", wrong[i]);
}

const struct kit_promise kit_own_steered[] = {
        {"hold_waits_for_its_word", hold_waits_for_its_word},
        {"accesses_outside_of_memory_fault", accesses_outside_of_memory_fault},
        {"hangs_end_by_stop_or_reset", hangs_end_by_stop_or_reset},
        {"manual_devices_do_as_told", manual_devices_do_as_told},
        {"copies_go_by_address", copies_go_by_address},
        {"options_say_what_they_refuse", options_say_what_they_refuse},
        {NULL, NULL},
};
