/* SPDX-License-Identifier: ISC */
/*
 * Golden vectors both ways: the structs below, written by hand, are the messages whose bytes vectors.txt
 * has; check-vectors.py derives those bytes from RFC 8949 alone. A struct must become those bytes, and those
 * bytes a struct that becomes them again: a field at a wrong key, a wrong offset or of a wrong form changes
 * one of the two.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gen/rig-proto-fast.h"
#include "tests/protocol/walk.h"

#define TEXT(s)                                                                                             \
        {                                                                                                   \
                (const uint8_t *)(s), sizeof(s) - 1                                                         \
        }
#define MSG(name, ...)                                                                                      \
        &(const struct rig_msg_##name)                                                                      \
        {                                                                                                   \
                __VA_ARGS__                                                                                 \
        }
#define U63_MAX UINT64_C(9223372036854775807)

static const struct golden {
        const char *name;
        enum rig_msg_type type;
        const void *msg;
} golden[] = {
        {"run-one", RIG_MSG_RUN, MSG(run, .work = 7, .n_buffers = 1, .buffers = {1})},
        {"run-none", RIG_MSG_RUN, MSG(run, .work = 1)},
        {"run-forms", RIG_MSG_RUN,
                MSG(run, .work = 65535, .n_buffers = 8,
                        .buffers = {0, 23, 24, 255, 256, 65535, 65536, 1048575})},
        {"run-points", RIG_MSG_RUN,
                MSG(run, .work = 24, .n_buffers = 2, .buffers = {3, 4}, .has_points = true, .n_points = 2,
                        .points = {{1, UINT64_C(4294967296)}, {62, U63_MAX}}, .has_time = true,
                        .time = 1000000000)},
        {"run-no-points", RIG_MSG_RUN,
                MSG(run, .work = 2, .n_buffers = 1, .buffers = {5}, .has_points = true)},
        {"run-time", RIG_MSG_RUN,
                MSG(run, .work = 256, .n_buffers = 2, .buffers = {100, 200}, .has_time = true,
                        .time = UINT64_C(123456789012345))},
        {"host-done", RIG_MSG_HOST_DONE, MSG(host_done, .device = 1, .value = 100000)},
        {"host-done-failed", RIG_MSG_HOST_DONE,
                MSG(host_done, .device = 62, .value = 4294967295, .has_failed = true, .failed = 14,
                        .has_text = true, .text = TEXT("Größe"))},
        {"host-done-empty-text", RIG_MSG_HOST_DONE,
                MSG(host_done, .device = 3, .value = 24, .has_failed = true, .has_text = true)},
        {"buffer-drop", RIG_MSG_BUFFER_DROP, MSG(buffer_drop, .buffer = 1048575)},
        {"buffer-view", RIG_MSG_BUFFER_VIEW,
                MSG(buffer_view, .buffer = 2, .of = 1, .offset = 4096, .bytes = U63_MAX)},
        {"work-drop", RIG_MSG_WORK_DROP, MSG(work_drop, .work = 9)},
        {"image-drop", RIG_MSG_IMAGE_DROP, MSG(image_drop, .image = 500)},
        {"device-close", RIG_MSG_DEVICE_CLOSE, MSG(device_close, .device = 62)},
        {"hello", RIG_MSG_HELLO,
                MSG(hello, .serial = 1, .version = 1, .library = TEXT("librig 0.1.0"), .features = 3)},
        {"sync", RIG_MSG_SYNC, MSG(sync, .serial = UINT32_MAX)},
        {"sync-follows", RIG_MSG_SYNC, MSG(sync, .serial = 2, .has_follows = true, .follows = 65536)},
        {"adapter-list", RIG_MSG_ADAPTER_LIST, MSG(adapter_list, .serial = 3)},
        {"adapter-list-follows", RIG_MSG_ADAPTER_LIST,
                MSG(adapter_list, .serial = 3, .index = 65535, .has_follows = true)},
        {"device-open", RIG_MSG_DEVICE_OPEN,
                MSG(device_open, .serial = 4, .device = 1, .name = TEXT("memory:M,async"),
                        .has_follows = true, .follows = 23)},
        {"buffer-new", RIG_MSG_BUFFER_NEW,
                MSG(buffer_new, .serial = 5, .buffer = 1, .device = 1, .bytes = 1 << 30, .kind = 2,
                        .has_follows = true, .follows = UINT64_C(1) << 32)},
        {"buffer-new-empty", RIG_MSG_BUFFER_NEW, MSG(buffer_new, .serial = 6, .buffer = 2, .device = 1)},
        {"buffer-adopt", RIG_MSG_BUFFER_ADOPT,
                MSG(buffer_adopt, .serial = 7, .buffer = 3, .device = 2, .offset = 1, .bytes = 5)},
        {"buffer-adopt-follows", RIG_MSG_BUFFER_ADOPT,
                MSG(buffer_adopt, .serial = 7, .buffer = 3, .device = 2, .offset = 511, .bytes = 512,
                        .fd = 3, .has_follows = true, .follows = 1)},
        {"buffer-borrow", RIG_MSG_BUFFER_BORROW,
                MSG(buffer_borrow, .serial = 8, .buffer = 4, .device = 2, .of = 1, .has_follows = true,
                        .follows = 2)},
        {"buffer-export", RIG_MSG_BUFFER_EXPORT, MSG(buffer_export, .serial = 9, .buffer = 4)},
        {"buffer-export-follows", RIG_MSG_BUFFER_EXPORT,
                MSG(buffer_export, .serial = 9, .buffer = 4, .has_follows = true, .follows = 300)},
        {"buffer-import", RIG_MSG_BUFFER_IMPORT,
                MSG(buffer_import, .serial = 10, .buffer = 5, .device = 1, .fd = 1, .has_follows = true,
                        .follows = 12)},
        {"buffer-wait", RIG_MSG_BUFFER_WAIT,
                MSG(buffer_wait, .serial = 11, .buffer = 5, .access = 1, .time = U63_MAX)},
        {"buffer-wait-follows", RIG_MSG_BUFFER_WAIT,
                MSG(buffer_wait, .serial = 11, .buffer = 5, .access = 3, .has_follows = true,
                        .follows = 40)},
        {"image-load", RIG_MSG_IMAGE_LOAD,
                MSG(image_load, .serial = 12, .image = 1, .device = 3, .bytes = 8192, .fd = 2,
                        .has_follows = true, .follows = 99)},
        {"image-entry", RIG_MSG_IMAGE_ENTRY,
                MSG(image_entry, .serial = 13, .image = 1, .name = TEXT("scale_ü_x"), .has_follows = true,
                        .follows = 100)},
        {"work-copy", RIG_MSG_WORK_NEW,
                MSG(work_new, .serial = 14, .work = 1, .device = 1, .n_slots = 2,
                        .slots = {{.access = 1}, {.access = 2}}, .n_parts = 1,
                        .parts = {{.kind = 1,
                                .has_dst = true,
                                .dst = {1, 0},
                                .has_src = true,
                                .src = {0, 16},
                                .has_bytes = true,
                                .bytes = 4096}})},
        {"work-nothing", RIG_MSG_WORK_NEW,
                MSG(work_new, .serial = 15, .work = 65535, .device = 62, .has_follows = true, .follows = 9)},
        {"work-launch", RIG_MSG_WORK_NEW,
                MSG(work_new, .serial = 16, .work = 2, .device = 1, .n_slots = 2,
                        .slots = {{.access = 3, .has_buffer = true, .buffer = 77}, {.access = 1}},
                        .n_parts = 3,
                        .parts = {{.kind = 2,
                                          .queue = 1,
                                          .has_dst = true,
                                          .has_pattern = true,
                                          .pattern = UINT32_MAX},
                                {.kind = 3,
                                        .queue = 7,
                                        .has_after = true,
                                        .after = 1,
                                        .has_image = true,
                                        .image = 1,
                                        .has_entry = true,
                                        .entry = UINT64_MAX,
                                        .has_grid = true,
                                        .grid = {1024, 2, 1},
                                        .has_group = true,
                                        .group = {256, 1, 1},
                                        .has_shared = true,
                                        .shared = 49152,
                                        .has_params = true,
                                        .params = TEXT("\x00\x01\x02\xff\0\0\0\0\xaa\xbb\xcc\xdd\0\0\0\0"),
                                        .has_patches = true,
                                        .n_patches = 2,
                                        .patches = {{0, 0, 0}, {.at = 8, .slot = 1, .addend = 128}}},
                                {.kind = 4,
                                        .has_after = true,
                                        .after = 3,
                                        .has_dst = true,
                                        .dst = {.slot = 63}}})},
        {"work-named", RIG_MSG_WORK_NEW,
                MSG(work_new, .serial = 21, .work = 3, .device = 1, .has_name = true,
                        .name = TEXT("warm-up ü"))},
        {"work-longest-name", RIG_MSG_WORK_NEW,
                MSG(work_new, .serial = 22, .work = 3, .device = 1, .has_name = true,
                        .name = TEXT("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"), .has_follows = true,
                        .follows = 10)},
        {"notify", RIG_MSG_NOTIFY,
                MSG(notify, .serial = 17, .device = 1, .value = 1000, .has_follows = true, .follows = 7)},
        {"notify-eventfd", RIG_MSG_NOTIFY_EVENTFD,
                MSG(notify_eventfd, .serial = 18, .device = 1, .value = 1001, .has_follows = true,
                        .follows = 8)},
        {"trace-start", RIG_MSG_TRACE_START, MSG(trace_start, .serial = 23)},
        {"trace-start-follows", RIG_MSG_TRACE_START,
                MSG(trace_start, .serial = 24, .fd = 3, .has_follows = true, .follows = 65537)},
        {"trace-stop", RIG_MSG_TRACE_STOP, MSG(trace_stop, .serial = 25)},
        {"trace-stop-follows", RIG_MSG_TRACE_STOP,
                MSG(trace_stop, .serial = 26, .has_follows = true, .follows = 24)},
        {"done", RIG_MSG_DONE, MSG(done, .serial = 19)},
        {"failed", RIG_MSG_FAILED,
                MSG(failed, .serial = 20, .error = 12,
                        .text = TEXT("the budget of memory:M has 4096 bytes left"))},
        {"hello-done", RIG_MSG_HELLO_DONE,
                MSG(hello_done, .serial = 1, .version = 1, .daemon = TEXT("rigd 0.1.0"), .features = 1,
                        .objects = 65536, .memory = 1 << 30, .runs = 4096, .has_words = true)},
        {"hello-done-ring", RIG_MSG_HELLO_DONE,
                MSG(hello_done, .serial = 1, .version = 1, .daemon = TEXT("rigd"), .features = 3,
                        .objects = 65536, .memory = 1 << 30, .runs = 4096, .has_words = true, .words = 0,
                        .has_ring = true, .ring = 1, .has_doorbell = true, .doorbell = 2)},
        {"adapter-done", RIG_MSG_ADAPTER_DONE,
                MSG(adapter_done, .serial = 3, .name = TEXT("disk"), .driver = TEXT("disk"),
                        .about = TEXT("files, through io_uring"), .devices = 1, .flags = 8)},
        {"adapter-done-unavailable", RIG_MSG_ADAPTER_DONE,
                MSG(adapter_done, .serial = 3, .name = TEXT("nv:0"), .driver = TEXT("nv"), .budget = 24,
                        .flags = 32, .has_unavailable = true, .unavailable = TEXT("no firmware"))},
        {"device-done", RIG_MSG_DEVICE_DONE,
                MSG(device_done, .serial = 4, .arch = TEXT("x86_64"), .budget = 1 << 20, .n_queues = 2,
                        .queues = {7, 15}, .flags = 19, .hang = 10000000)},
        {"buffer-done", RIG_MSG_BUFFER_DONE,
                MSG(buffer_done, .serial = 5, .bytes = 100, .memory = 4096, .access = 3)},
        {"buffer-done-fd", RIG_MSG_BUFFER_DONE,
                MSG(buffer_done, .serial = 5, .bytes = 100, .offset = 28, .memory = 4096, .access = 1,
                        .flags = 1, .has_fd = true)},
        {"entry-done", RIG_MSG_ENTRY_DONE, MSG(entry_done, .serial = 13, .entry = UINT64_C(1) << 47)},
        {"broken", RIG_MSG_BROKEN,
                MSG(broken, .error = 71, .text = TEXT("run: buffers[1]: 1048576 is above 1048575"))},
        {"reached", RIG_MSG_REACHED, MSG(reached, .device = 1, .value = 255)},
        {"ready", RIG_MSG_READY, MSG(ready, .device = 2, .value = 256)},
        {"run-failed", RIG_MSG_RUN_FAILED,
                MSG(run_failed, .device = 1, .value = 5, .error = 5,
                        .text = TEXT("reading: Input/output error"))},
        {"run-failed-lost", RIG_MSG_RUN_FAILED,
                MSG(run_failed, .device = 1, .value = 6, .error = 19, .lost = 1)},
        {"device-lost", RIG_MSG_DEVICE_LOST,
                MSG(device_lost, .device = 62, .error = 110,
                        .text = TEXT("the work stands still for 10 s"))},
        {"limits", RIG_MSG_LIMITS, MSG(limits, .objects = 65536, .memory = 1 << 30, .runs = 4096)},
        {"limits-none", RIG_MSG_LIMITS, MSG(limits, .memory = U63_MAX)},
};

/* ------------------------------------------------------------------------------------------ vectors.txt */

struct vector {
        char name[64];
        uint8_t data[1024];
        size_t n;
};

static struct vector vectors[128];
static size_t n_vectors;

static void vectors_line(char *line)
{
        struct vector *v = n_vectors > 0 ? &vectors[n_vectors - 1] : NULL;
        unsigned byte;
        int used;

        line[strcspn(line, "#\n")] = '\0';
        if (line[0] != ' ' && line[0] != '\0') {
                v = &vectors[n_vectors++];
                cr_assert_lt(n_vectors, RIG_ARRAY_SIZE(vectors));
                cr_assert_eq(sscanf(line, "%63s =", v->name), 1);
                return;
        }
        for (; sscanf(line, "%2x%n", &byte, &used) == 1; line += used) {
                cr_assert_not_null(v);
                cr_assert_lt(v->n, sizeof(v->data));
                v->data[v->n++] = (uint8_t)byte;
        }
}

static void vectors_read(void)
{
        const char *path = getenv("RIG_TEST_VECTORS");
        static char line[2048];
        FILE *f;

        cr_assert_not_null(path, "RIG_TEST_VECTORS names no file");
        f = fopen(path, "re");
        cr_assert_not_null(f, "%s: %m", path);
        while (fgets(line, sizeof(line), f))
                vectors_line(line);
        fclose(f);
}

static const struct vector *vector_find(const char *name)
{
        for (size_t i = 0; i < n_vectors; i++)
                if (strcmp(vectors[i].name, name) == 0)
                        return &vectors[i];
        return NULL;
}

TestSuite(golden, .init = vectors_read);

Test(golden, every_vector_has_a_struct_and_every_message_a_vector)
{
        bool seen[_RIG_MSG_TYPE_MAX] = {false};

        cr_assert_eq(n_vectors, RIG_ARRAY_SIZE(golden));
        for (size_t i = 0; i < RIG_ARRAY_SIZE(golden); i++) {
                cr_assert_str_eq(vectors[i].name, golden[i].name);
                seen[golden[i].type] = true;
        }
        for (uint32_t type = 0; type < _RIG_MSG_TYPE_MAX; type++)
                cr_assert_eq(seen[type], rig_codec_shape(type) != NULL, "type %u", type);
}

static uint8_t out[2048];

Test(golden, structs_become_the_bytes)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(golden); i++) {
                const struct golden *g = &golden[i];
                const struct vector *v = vector_find(g->name);

                cr_assert_not_null(v);
                cr_assert_eq(
                        rig_codec_encode(g->type, g->msg, out, sizeof(out)), (ssize_t)v->n, "%s", g->name);
                cr_assert_arr_eq(out, v->data, v->n, "%s", g->name);
        }
}

Test(golden, bytes_become_the_structs)
{
        static union rig_msg msg;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(golden); i++) {
                const struct golden *g = &golden[i];
                const struct vector *v = vector_find(g->name);
                enum rig_msg_type type = 0;
                struct rig_error e = {0};

                for (int table = 0; table < 2; table++) {
                        memset(&msg, 0x55, sizeof(msg));
                        cr_assert_eq((table ? rig_codec_decode_table : rig_codec_decode)(
                                             v->data, v->n, &msg, &type, &e),
                                (ssize_t)v->n, "%s: %s", g->name, e.text);
                        cr_assert_eq(type, g->type);
                        memset(out, 0, sizeof(out));
                        cr_assert_eq(
                                rig_raw_encode(type, &msg, NULL, out, sizeof(out)), v->n, "%s", g->name);
                        cr_assert_arr_eq(out, v->data, v->n, "%s", g->name);
                }
        }
}

/* The fields by name, so that a table that names the wrong ones on both ways is seen. */
Test(golden, fields_are_where_their_names_say)
{
        static union rig_msg msg;
        const struct vector *v = vector_find("work-launch");
        const struct rig_msg_part *p = &msg.work_new.parts[1];
        enum rig_msg_type type;

        cr_assert_gt(rig_codec_decode(v->data, v->n, &msg, &type, NULL), 0);
        cr_assert(msg.work_new.serial == 16 && msg.work_new.work == 2 && msg.work_new.device == 1);
        cr_assert(msg.work_new.n_slots == 2 && msg.work_new.slots[0].buffer == 77);
        cr_assert(msg.work_new.slots[0].has_buffer && !msg.work_new.slots[1].has_buffer);
        cr_assert(msg.work_new.n_parts == 3 && p->kind == 3 && p->queue == 7 && p->after == 1);
        cr_assert(!p->has_dst && p->image == 1 && p->entry == UINT64_MAX && p->grid.x == 1024);
        cr_assert(p->grid.y == 2 && p->group.x == 256 && p->shared == 49152 && p->params.bytes == 16);
        cr_assert(p->n_patches == 2 && p->patches[1].at == 8 && p->patches[1].slot == 1);
        cr_assert(p->patches[1].addend == 128 && msg.work_new.parts[2].dst.slot == 63);

        v = vector_find("run-points");
        cr_assert_gt(rig_codec_decode(v->data, v->n, &msg, &type, NULL), 0);
        cr_assert(msg.run.work == 24 && msg.run.n_buffers == 2 && msg.run.buffers[1] == 4);
        cr_assert(msg.run.has_points && msg.run.n_points == 2 && msg.run.points[1].device_id == 62);
        cr_assert(msg.run.points[0].value == UINT64_C(4294967296) && msg.run.has_time);
        cr_assert(msg.run.time == 1000000000);
}

Test(golden, straight_line_code_writes_the_bytes)
{
        size_t n_fast = 0;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(golden); i++) {
                const struct golden *g = &golden[i];
                const struct vector *v = vector_find(g->name);
                size_t n;

                if (g->type == RIG_MSG_RUN)
                        n = rig_fast_run_encode(g->msg, out);
                else if (g->type == RIG_MSG_HOST_DONE)
                        n = rig_fast_host_done_encode(g->msg, out);
                else if (g->type == RIG_MSG_BUFFER_DROP)
                        n = rig_fast_buffer_drop_encode(g->msg, out);
                else if (g->type == RIG_MSG_BUFFER_VIEW)
                        n = rig_fast_buffer_view_encode(g->msg, out);
                else
                        continue;
                cr_assert_eq(n, v->n, "%s", g->name);
                cr_assert_arr_eq(out, v->data, n, "%s", g->name);
                n_fast++;
        }
        cr_assert_eq(n_fast, 11);
}
