/* SPDX-License-Identifier: ISC */
/*
 * The promises of driver.h about memory and about work: what a region is, what copies and fills do, and in
 * which order they do it.
 *
 * A check that a device cannot be held to (it has one queue, or no file) passes over it and says nothing:
 * what a device can do is in its facts, and facts_are_sane holds those.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "daemon/order/order.h"
#include "tests/kit/kit.h"

#define MIB (UINT64_C(1) << 20)

/* ---------------------------------------------------------------- memory */

/* Fresh memory is zeros, also where an earlier owner wrote it. */
static void memory_starts_as_zeros(struct kit *kit)
{
        static const uint64_t sizes[] = {1, 4096, 100000, 3 * MIB};
        struct rig_device *device = kit_open(kit);
        struct kit_buffer b;

        if (!device)
                return;
        for (unsigned i = 0; i < 3 * RIG_ARRAY_SIZE(sizes); i++) {
                uint64_t bytes = sizes[i % RIG_ARRAY_SIZE(sizes)], dirty = 0;
                uint8_t *data = malloc(bytes);

                rig_assert(data);
                if (kit_buffer_near(device, bytes, 0, &b)) {
                        memset(data, 0xff, bytes);
                        kit_get(&b, 0, data, bytes);
                        for (uint64_t k = 0; k < bytes; k++)
                                dirty += data[k] != 0;
                        kit_expect(kit, dirty == 0, "%llu of %llu fresh bytes are not 0",
                                (unsigned long long)dirty, (unsigned long long)bytes);
                        memset(data, 0xa5, bytes);
                        kit_put(&b, 0, data, bytes);
                        kit_buffer_free(&b);
                }
                free(data);
        }
        kit_close(device);
}

static void check_host_region(struct kit *kit, const struct rig_region *region)
{
        int seals = fcntl(region->fd, F_GET_SEALS), need = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        uint8_t *other;

        if (!kit_expect(kit, region->host && region->fd >= 0,
                    "memory that the host addresses has host %p and fd %d", region->host, region->fd))
                return;
        kit_expect(
                kit, seals >= 0 && (seals & need) == need, "its memfd has the seals %#x", (unsigned)seals);
        other = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
        if (!kit_expect(kit, other != MAP_FAILED, "its memfd cannot be mapped by a client"))
                return;
        ((uint8_t *)region->host)[region->bytes - 1] = 0x5a;
        kit_expect(kit, other[region->bytes - 1] == 0x5a, "its memfd is not the memory that rigd addresses");
        other[0] = 0xa5;
        kit_expect(kit, *(uint8_t *)region->host == 0xa5, "its memfd is not the memory that rigd addresses");
        munmap(other, region->bytes);
}

/* What a region's fields say is so. */
static void regions_are_what_they_say(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct rig_region regions[RIG_MEMORY_KIND_MAX];
        unsigned n = 0;

        if (!device)
                return;
        for (; !(kit_flags(device) & RIG_DEVICE_FILES) && n < RIG_MEMORY_KIND_MAX; n++) {
                struct rig_region *r = &regions[n];

                if (!kit_expect(kit, kit_alloc(device, 5000, (enum rig_memory_kind)n, r) == 0,
                            "no %s memory", rig_memory_kind_to_string((enum rig_memory_kind)n)))
                        break;
                kit_expect(kit, r->bytes >= 5000, "5000 bytes are %llu", (unsigned long long)r->bytes);
                kit_expect(kit, r->access == (RIG_ACCESS_READ | RIG_ACCESS_WRITE), "it admits only %u",
                        r->access);
                if (kit_flags(device) & RIG_DEVICE_HOST_ADDRESSED || n == RIG_MEMORY_PINNED)
                        check_host_region(kit, r);
                kit_expect(kit, !r->host == (r->fd < 0), "host %p goes with fd %d", r->host, r->fd);
                for (unsigned k = 0; k < n; k++)
                        kit_expect(kit,
                                !r->address || r->address >= regions[k].address + regions[k].bytes ||
                                        regions[k].address >= r->address + r->bytes,
                                "two regions share addresses");
        }
        while (n--)
                kit_free(kit, &regions[n]);
        kit_close(device);
}

/* Borrowed and named host memory is the host's own bytes, both ways. */
static void host_memory_is_reached_without_a_copy(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        int queue = device ? kit_queue(device, RIG_RUNS_COPY, 0) : -1;
        uint8_t data[9000], back[9000];
        struct kit_buffer near, far;
        struct rig_driver_work *there, *back_again;

        if (!device)
                return;
        if (queue >= 0 && kit_flags(device) & (RIG_DEVICE_NAMES_HOST | RIG_DEVICE_BORROWS_HOST) &&
                kit_buffer_near(device, sizeof(data), 5, &near)) {
                if (kit_buffer_far(device, sizeof(data), 3, &far)) {
                        kit_scribble(kit, &far, data);
                        there = kit_work(2);
                        kit_part_copy(there, queue, 0, 0, 0, 1, 0, RIG_WHOLE);
                        back_again = kit_work(2);
                        kit_part_copy(back_again, queue, 0, 1, 0, 0, 0, RIG_WHOLE);
                        kit_prepare(device, there);
                        kit_prepare(device, back_again);
                        kit_submit(
                                device, there, (struct rig_filled[]){kit_filled(&near), kit_filled(&far)});
                        kit_finish(device);
                        memset(back, 0, sizeof(back));
                        kit_put(&far, 0, back, sizeof(back));
                        kit_submit(device, back_again,
                                (struct rig_filled[]){kit_filled(&near), kit_filled(&far)});
                        kit_finish(device);
                        kit_get(&far, 0, back, sizeof(back));
                        kit_expect(
                                kit, memcmp(data, back, sizeof(data)) == 0, "host memory came back changed");
                        kit_work_free(device, there);
                        kit_work_free(device, back_again);
                        kit_buffer_free(&far);
                }
                kit_buffer_free(&near);
        }
        kit_close(device);
}

/* ---------------------------------------------------------------- copies and fills */

/* One copy between two buffers that are larger, and what it did to all of the destination. */
static void check_copy(struct rig_device *device, const struct kit_buffer *dst, const struct kit_buffer *src,
        uint64_t dst_offset, uint64_t src_offset, uint64_t bytes)
{
        uint8_t *want = malloc(dst->bytes), *from = malloc(src->bytes), *got = malloc(dst->bytes);
        struct rig_filled slots[2] = {kit_filled(dst), kit_filled(src)};
        struct rig_driver_work *work = kit_work(2);
        uint64_t at = 0;

        rig_assert(want && from && got);
        kit_scribble(device->kit, dst, want);
        kit_scribble(device->kit, src, from);
        memcpy(want + dst_offset, from + src_offset, bytes);
        kit_part_copy(work, kit_queue(device, RIG_RUNS_COPY, 0), 0, 0, dst_offset, 1, src_offset, bytes);
        if (kit_prepare(device, work) && kit_submit(device, work, slots) && kit_finish(device)) {
                kit_get(dst, 0, got, dst->bytes);
                while (at < dst->bytes && got[at] == want[at])
                        at++;
                kit_expect(device->kit, at == dst->bytes,
                        "a copy of %llu bytes from byte %llu to %llu: byte %llu is %u, not %u",
                        (unsigned long long)bytes, (unsigned long long)src_offset,
                        (unsigned long long)dst_offset, (unsigned long long)at,
                        at < dst->bytes ? got[at] : 0, at < dst->bytes ? want[at] : 0);
                kit_expect(device->kit, device->runs[device->submitted - 1].failed == 0,
                        "the copy failed: %s", device->runs[device->submitted - 1].failure);
        }
        kit_work_free(device, work);
        free(want);
        free(from);
        free(got);
}

/* Copies of every alignment and of sizes around what a driver may treat apart are those of memcpy. */
static void copies_are_memcpy(struct kit *kit)
{
        static const uint64_t sizes[] = {0, 1, 2, 3, 7, 8, 63, 64, 65, 511, 4095, 4096, 4097, 65535, 65536,
                65537, MIB - 1, MIB + 3, 3 * MIB + 17};
        struct rig_device *device = kit_open(kit);
        struct kit_buffer a, b;

        if (!device)
                return;
        for (unsigned i = 0; i < RIG_ARRAY_SIZE(sizes); i++) {
                uint64_t bytes = sizes[i];

                if (!kit_buffer_near(device, bytes + 100, i % 3, &a))
                        break;
                if (kit_buffer_other(device, bytes + 100, i * 7 % 11, &b)) {
                        for (uint64_t align = 0; align < (bytes < 5000 ? 4 : 1); align++) {
                                check_copy(device, &a, &b, align, kit_draw(kit, 9), bytes);
                                check_copy(device, &b, &a, kit_draw(kit, 9), align, bytes);
                        }
                        kit_buffer_free(&b);
                }
                kit_buffer_free(&a);
        }
        kit_close(device);
}

/* Bytes of RIG_WHOLE are the rest of the buffer behind the offset, whichever buffer fills the slot. */
static void whole_is_the_rest_of_the_buffer(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        struct rig_driver_work *work;
        uint8_t got[1000], from[1000];
        struct kit_buffer a, b;

        if (!device)
                return;
        work = kit_work(2);
        kit_part_copy(work, kit_queue(device, RIG_RUNS_COPY, 0), 0, 0, 5, 1, 5, RIG_WHOLE);
        kit_prepare(device, work);
        for (uint64_t bytes = 5; bytes < 1000; bytes += 199) {
                if (!kit_buffer_near(device, bytes, 0, &a))
                        break;
                if (kit_buffer_other(device, bytes, 0, &b)) {
                        kit_scribble(kit, &b, from);
                        kit_submit(device, work, (struct rig_filled[]){kit_filled(&a), kit_filled(&b)});
                        kit_finish(device);
                        kit_get(&a, 0, got, bytes);
                        memset(from, 0, 5);
                        kit_expect(kit, memcmp(got, from, bytes) == 0,
                                "a whole copy of %llu bytes is not the source's", (unsigned long long)bytes);
                        kit_buffer_free(&b);
                }
                kit_buffer_free(&a);
        }
        kit_work_free(device, work);
        kit_close(device);
}

/* A fill repeats its pattern from the first byte, and writes no other. */
static void fills_repeat_their_pattern(struct kit *kit)
{
        static const uint64_t sizes[] = {0, 4, 8, 12, 60, 64, 68, 4096, 65536, 65540, 2 * MIB + 4};
        static const uint32_t patterns[] = {0, UINT32_MAX, 0x01020304, 0x80000000};
        struct rig_device *device = kit_open(kit);
        int queue = device ? kit_queue(device, RIG_RUNS_FILL, 0) : -1;

        for (unsigned i = 0; queue >= 0 && i < RIG_ARRAY_SIZE(sizes) * RIG_ARRAY_SIZE(patterns); i++) {
                uint64_t bytes = sizes[i / RIG_ARRAY_SIZE(patterns)], at = 0, room = bytes + 16;
                uint32_t pattern = patterns[i % RIG_ARRAY_SIZE(patterns)];
                struct rig_driver_work *work = kit_work(1);
                uint8_t *want = malloc(room), *got = malloc(room);
                struct kit_buffer b;

                rig_assert(want && got);
                if (kit_buffer_near(device, room, 4 * (i % 3), &b)) {
                        kit_scribble(kit, &b, want);
                        for (uint64_t k = 0; k < bytes; k++)
                                want[8 + k] = ((const uint8_t *)&pattern)[k % 4];
                        kit_part_fill(work, queue, 0, 0, 8, bytes, pattern);
                        kit_prepare(device, work);
                        kit_submit(device, work, (struct rig_filled[]){kit_filled(&b)});
                        kit_finish(device);
                        kit_get(&b, 0, got, room);
                        while (at < room && got[at] == want[at])
                                at++;
                        kit_expect(kit, at == room, "a fill of %llu bytes with %08x: byte %llu differs",
                                (unsigned long long)bytes, pattern, (unsigned long long)at);
                        kit_buffer_free(&b);
                }
                kit_work_free(device, work);
                free(want);
                free(got);
        }
        if (device)
                kit_close(device);
}

/* ---------------------------------------------------------------- order */

/* A chain of buffers, each copied to the next by a part or a run of its own: shows any two that were
 * swapped. */
struct chain {
        struct rig_device *device;
        unsigned n;
        uint64_t bytes;
        struct kit_buffer links[RIG_PARTS_MAX + 1];
        struct rig_filled slots[RIG_PARTS_MAX + 1];
};

static bool chain_init(struct chain *c, struct rig_device *device, unsigned n, uint64_t bytes)
{
        *c = (struct chain){.device = device, .bytes = bytes};
        for (; c->n <= n; c->n++) {
                bool made = c->n % 2 ? kit_buffer_other(device, bytes, 0, &c->links[c->n])
                                     : kit_buffer_near(device, bytes, 0, &c->links[c->n]);

                if (!made)
                        return false;
                c->slots[c->n] = kit_filled(&c->links[c->n]);
        }
        return true;
}

/* Fills the first link with `data` and the others with something else. */
static void chain_fill(struct chain *c, uint8_t *data)
{
        uint8_t *other = malloc(c->bytes);

        rig_assert(other);
        for (unsigned i = 0; i < c->n; i++)
                kit_scribble(c->device->kit, &c->links[i], i ? other : data);
        free(other);
}

/* The first link's bytes came all the way. */
static void chain_expect(struct chain *c, const uint8_t *data, const char *what)
{
        uint8_t *got = malloc(c->bytes);

        rig_assert(got);
        kit_get(&c->links[c->n - 1], 0, got, c->bytes);
        kit_expect(c->device->kit, memcmp(got, data, c->bytes) == 0,
                "%s: %llu bytes did not come all the way", what, (unsigned long long)c->bytes);
        free(got);
}

static void chain_deinit(struct chain *c)
{
        while (c->n)
                kit_buffer_free(&c->links[--c->n]);
}

/* Contract 1: parts of one queue run in their order. */
static void parts_of_a_queue_run_in_order(struct kit *kit)
{
        static uint8_t data[200000];
        struct rig_device *device = kit_open(kit);
        struct chain c = {0};

        for (unsigned round = 0; device && round < 24; round++) {
                struct rig_driver_work *work = kit_work(13);
                int queue = kit_queue(device, RIG_RUNS_COPY, round);

                if (chain_init(&c, device, 12, round % 4 == 3 ? sizeof(data) : 3000)) {
                        chain_fill(&c, data);
                        for (uint32_t i = 0; i < 12; i++)
                                kit_part_copy(work, queue, 0, i + 1, 0, i, 0, RIG_WHOLE);
                        if (kit_prepare(device, work) && kit_submit(device, work, c.slots) &&
                                kit_finish(device))
                                chain_expect(&c, data, "parts of a queue");
                }
                chain_deinit(&c);
                kit_work_free(device, work);
        }
        if (device)
                kit_close(device);
}

/* Contract 1: a part runs after the parts its `after` names, on whichever queues. */
static void parts_follow_their_edges(struct kit *kit)
{
        static uint8_t data[200000];
        struct rig_device *device = kit_open(kit);
        struct chain c = {0};

        for (unsigned round = 0; device && round < 24; round++) {
                struct rig_driver_work *work = kit_work(13);

                if (chain_init(&c, device, 12, round % 4 == 3 ? sizeof(data) : 3000)) {
                        chain_fill(&c, data);
                        for (uint32_t i = 0; i < 12; i++)
                                kit_part_copy(work, kit_queue(device, RIG_RUNS_COPY, i + i / 4 + round),
                                        i ? 1u << (i - 1) : 0, i + 1, 0, i, 0, RIG_WHOLE);
                        if (kit_prepare(device, work) && kit_submit(device, work, c.slots) &&
                                kit_finish(device))
                                chain_expect(&c, data, "parts with edges");
                }
                chain_deinit(&c);
                kit_work_free(device, work);
        }
        if (device)
                kit_close(device);
}

/* Contract 2: a value's work starts after the previous value's completed, on every queue; large and small
 * mixed. */
static void values_run_in_order(struct kit *kit)
{
        static uint8_t data[MIB + 5];
        static const uint64_t sizes[] = {64, 3000, 70000, sizeof(data)};
        struct rig_device *device = kit_open(kit);
        struct chain c = {0};

        for (unsigned round = 0; device && round < 24; round++) {
                struct rig_driver_work *works[12];
                uint64_t bytes = sizes[round % 4];

                for (unsigned i = 0; i < 12; i++) {
                        works[i] = kit_work(13);
                        /* a large copy that does not matter makes some of the runs slow */
                        if (i % 3 == 0)
                                kit_part_copy(works[i], kit_queue(device, RIG_RUNS_COPY, 0), 0, i + 1, 0, i,
                                        0, RIG_WHOLE);
                        kit_part_copy(works[i], kit_queue(device, RIG_RUNS_COPY, i), 0, i + 1, 0, i, 0,
                                i % 2 ? RIG_WHOLE : bytes);
                        kit_prepare(device, works[i]);
                }
                if (chain_init(&c, device, 12, bytes)) {
                        chain_fill(&c, data);
                        for (unsigned i = 0; i < 12; i++) {
                                kit_submit(device, works[i], c.slots);
                                if (round % 3 == 0 || kit_draw(kit, 4) == 0)
                                        kit_commit(device);
                        }
                        if (kit_finish(device))
                                chain_expect(&c, data, "values");
                }
                chain_deinit(&c);
                for (unsigned i = 0; i < 12; i++)
                        kit_work_free(device, works[i]);
        }
        if (device)
                kit_close(device);
}

struct visibility {
        struct kit_buffer from, to[16];
        uint8_t data[100000];
};

static void expect_visible(struct rig_device *device, uint64_t value, void *userdata)
{
        static uint8_t got[100000];
        struct visibility *v = userdata;

        if (value > RIG_ARRAY_SIZE(v->to))
                return;
        kit_get(&v->to[value - 1], 0, got, sizeof(got));
        kit_expect(device->kit, memcmp(got, v->data, sizeof(got)) == 0,
                "value %llu was told, and what it wrote is not there", (unsigned long long)value);
}

/* What a run wrote is visible once poll() has told its value. */
static void writes_are_visible_once_told(struct kit *kit)
{
        struct visibility *v = calloc(1, sizeof(*v));
        struct rig_driver_work *work = kit_work(2);
        struct rig_device *device = kit_open(kit);
        unsigned n = 0;

        rig_assert(v);
        if (device && kit_buffer_visible(device, sizeof(v->data), 0, &v->from)) {
                while (n < RIG_ARRAY_SIZE(v->to) &&
                        (kit_flags(device) & RIG_DEVICE_FILES
                                        ? kit_buffer_far(device, sizeof(v->data), 0, &v->to[n])
                                        : kit_buffer_visible(device, sizeof(v->data), 0, &v->to[n])))
                        n++;
                kit_scribble(kit, &v->from, v->data);
                kit_part_copy(work, kit_queue(device, RIG_RUNS_COPY, 0), 0, 0, 0, 1, 0, RIG_WHOLE);
                kit_prepare(device, work);
                device->on_reached = expect_visible;
                device->userdata = v;
                for (unsigned i = 0; i < n; i++) {
                        kit_submit(device, work,
                                (struct rig_filled[]){kit_filled(&v->to[i]), kit_filled(&v->from)});
                        if (i % 3 == 0)
                                kit_commit(device);
                }
                kit_finish(device);
                while (n)
                        kit_buffer_free(&v->to[--n]);
                kit_buffer_free(&v->from);
        }
        if (device)
                kit_work_free(device, work);
        if (device)
                kit_close(device);
        free(v);
}

/* Pages of a file that its storage does not have yet; negative where the kernel does not say. */
static long dirty_pages(int fd)
{
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
        struct {
                uint64_t offset, length;
        } range = {0, 0};
        struct {
                uint64_t cached, dirty, writeback, evicted, recently_evicted;
        } stat;
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC) /* its pages are all the storage it has */
                return -EOPNOTSUPP;
        return syscall(SYS_cachestat, fd, &range, &stat, 0) < 0 ? -errno
                                                                : (long)(stat.dirty + stat.writeback);
}

bool kit_saw_storage;

/* A sync follows the writes its edges, queue and values put before it, and their bytes are on storage then.
 */
static void a_sync_brings_earlier_writes_to_storage(struct kit *kit)
{
        static uint8_t data[700000];
        struct rig_device *device = kit_open(kit);
        struct kit_buffer file, host;

        for (unsigned round = 0; device && kit_queue(device, RIG_RUNS_SYNC, 0) >= 0 && round < 6; round++) {
                struct rig_driver_work *work = kit_work(2);
                int queue = kit_queue(device, RIG_RUNS_COPY, 0),
                    sync = kit_queue(device, RIG_RUNS_SYNC, round % 2);

                if (!kit_buffer_near(device, sizeof(data), 3, &file)) {
                        kit_work_free(device, work);
                        break;
                }
                if (kit_buffer_far(device, sizeof(data), 0, &host)) {
                        long dirty;

                        kit_scribble(kit, &host, data);
                        kit_part_copy(work, queue, 0, 0, 0, 1, 0, RIG_WHOLE);
                        kit_part_sync(work, sync, 1, 0);
                        kit_prepare(device, work);
                        kit_submit(
                                device, work, (struct rig_filled[]){kit_filled(&file), kit_filled(&host)});
                        kit_finish(device);
                        dirty = dirty_pages(file.own_fd);
                        kit_saw_storage |= dirty >= 0;
                        if (dirty < 0)
                                printf("# this kernel does not say which pages are dirty: %s\n",
                                        strerror((int)-dirty));
                        else
                                kit_expect(
                                        kit, dirty == 0, "%ld pages are not on storage after a sync", dirty);
                        kit_buffer_free(&host);
                }
                kit_buffer_free(&file);
                kit_work_free(device, work);
        }
        if (device)
                kit_close(device);
}

const struct kit_promise kit_promises[] = {
        {"memory_starts_as_zeros", memory_starts_as_zeros},
        {"regions_are_what_they_say", regions_are_what_they_say},
        {"host_memory_is_reached_without_a_copy", host_memory_is_reached_without_a_copy},
        {"copies_are_memcpy", copies_are_memcpy},
        {"whole_is_the_rest_of_the_buffer", whole_is_the_rest_of_the_buffer},
        {"fills_repeat_their_pattern", fills_repeat_their_pattern},
        {"parts_of_a_queue_run_in_order", parts_of_a_queue_run_in_order},
        {"parts_follow_their_edges", parts_follow_their_edges},
        {"values_run_in_order", values_run_in_order},
        {"writes_are_visible_once_told", writes_are_visible_once_told},
        {"a_sync_brings_earlier_writes_to_storage", a_sync_brings_earlier_writes_to_storage},
        {NULL, NULL},
};
