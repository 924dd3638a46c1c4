/* SPDX-License-Identifier: ISC */
/* The contract's tables, and what drivers share about parts. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "daemon/drivers/drivers.h"
#include "daemon/drivers/parts.h"

/* The core's services, which no test here has the drivers call. */
void rig_device_kick(struct rig_driver_device *device)
{
        cr_assert_fail("a driver kicked");
}

void rig_device_run_failed(struct rig_driver_device *device, uint64_t value, int error, const char *fmt, ...)
{
        cr_assert_fail("a run failed");
}

void rig_device_ran(struct rig_driver_device *device)
{
        cr_assert_fail("a driver said that it ran");
}

void rig_device_ready(struct rig_driver_device *device, uint64_t value)
{
        cr_assert_fail("a client is ready");
}

void rig_adapter_defer(struct rig_driver_adapter *adapter, struct rig_slow_job *job)
{
        cr_assert_fail("a job was queued");
}

Test(driver, every_enumerator_has_a_name)
{
        for (unsigned i = 0; i < RIG_COMPLETION_MAX; i++)
                cr_assert(rig_completion_to_string((enum rig_completion)i), "completion %u", i);
        for (unsigned i = 0; i < RIG_MEMORY_KIND_MAX; i++)
                cr_assert(rig_memory_kind_to_string((enum rig_memory_kind)i), "memory kind %u", i);
        for (unsigned i = RIG_PART_COPY; i < RIG_PART_KIND_MAX; i++)
                cr_assert(rig_part_kind_to_string((enum rig_part_kind)i), "part kind %u", i);
        cr_assert_null(rig_completion_to_string(RIG_COMPLETION_MAX));
        cr_assert_null(rig_memory_kind_to_string(RIG_MEMORY_KIND_MAX));
        cr_assert_null(rig_part_kind_to_string(RIG_PART_KIND_MAX));
}

Test(driver, the_built_in_tables_are_whole_and_named_apart)
{
        for (unsigned i = 0; rig_drivers[i]; i++) {
                rig_driver_check(rig_drivers[i]);
                for (unsigned k = 0; k < i; k++)
                        cr_assert_str_neq(rig_drivers[i]->name, rig_drivers[k]->name);
        }
        cr_assert(rig_drivers[0], "there is no driver");
}

Test(driver, a_table_without_a_mandatory_op_is_refused, .signal = SIGABRT)
{
        struct rig_driver broken = rig_driver_memory;

        broken.stop = NULL;
        rig_driver_check(&broken);
}

static int prepare(struct rig_driver_device *device, struct rig_driver_work *work, struct rig_error *e)
{
        return 0;
}

Test(driver, half_a_group_of_ops_is_refused, .signal = SIGABRT)
{
        struct rig_driver broken = rig_driver_memory;

        broken.work_prepare = prepare;
        rig_driver_check(&broken);
}

Test(driver, whole_parts_move_the_rest_of_the_buffer)
{
        const struct rig_filled slots[2] = {{NULL, 0, 100}, {NULL, 50, 60}};
        struct rig_part part = {.kind = RIG_PART_COPY, .dst = {0, 10}, .src = {1, 20}, .bytes = RIG_WHOLE};

        cr_assert_eq(rig_part_moves(&part, slots), 40);
        part.src.offset = 60;
        cr_assert_eq(rig_part_moves(&part, slots), 0);
        part.src.offset = 61;
        cr_assert_eq(rig_part_moves(&part, slots), 0, "what starts behind the end moves nothing");
        part.kind = RIG_PART_FILL;
        cr_assert_eq(rig_part_moves(&part, slots), 90);
        part.bytes = 7;
        cr_assert_eq(rig_part_moves(&part, slots), 7);
        part.kind = RIG_PART_LAUNCH;
        cr_assert_eq(rig_part_moves(&part, slots), 0);
}

Test(parts, a_part_is_ready_once_its_queue_and_its_edges_let_it)
{
        struct rig_driver_work work = {.n_parts = 4};
        struct rig_parts parts;

        work.parts[1].queue = 1;
        work.parts[2].queue = 0;
        work.parts[2].after = 1u << 1;
        work.parts[3].queue = 1;
        rig_parts_init(&parts, &work);
        cr_assert_eq(rig_parts_ready(&parts), 0x3);
        parts.started = 0x3;
        cr_assert_eq(rig_parts_ready(&parts), 0, "a part that is started is ready again");
        parts.done = 0x1;
        cr_assert_eq(rig_parts_ready(&parts), 0);
        parts.done = 0x3;
        cr_assert_eq(rig_parts_ready(&parts), 0xc);
        parts.started = parts.done = 0xf;
        cr_assert(rig_parts_all_done(&parts));
}

Test(parts, a_work_of_32_parts_fits)
{
        struct rig_driver_work work = {.n_parts = 32};
        struct rig_parts parts;

        for (unsigned i = 0; i < 32; i++)
                work.parts[i].queue = i % RIG_QUEUES_MAX;
        rig_parts_init(&parts, &work);
        for (unsigned turns = 0; !rig_parts_all_done(&parts); turns++) {
                cr_assert_lt(turns, 5);
                parts.started |= rig_parts_ready(&parts);
                parts.done = parts.started;
        }
        rig_parts_init(&parts, &(struct rig_driver_work){0});
        cr_assert(rig_parts_all_done(&parts), "a work without parts is not done");
}

Test(parts, fills_of_any_length_repeat_the_bytes)
{
        static const uint32_t patterns[] = {0x04030201, 0x55555555, 0, 0x80000000};
        uint8_t buffer[80];

        for (unsigned p = 0; p < RIG_ARRAY_SIZE(patterns); p++) {
                for (unsigned at = 0; at < 8; at++) {
                        for (unsigned bytes = 0; bytes < 60; bytes++) {
                                memset(buffer, 0xcc, sizeof(buffer));
                                rig_fill(buffer + at, patterns[p], bytes);
                                for (unsigned i = 0; i < sizeof(buffer); i++) {
                                        bool inside = i >= at && i < at + bytes;
                                        uint8_t want = inside ? ((const uint8_t *)&patterns[p])[(i - at) % 4]
                                                              : 0xcc;

                                        cr_assert_eq(buffer[i], want, "byte %u of %u at %u", i, bytes, at);
                                }
                        }
                }
        }
}
