/* SPDX-License-Identifier: ISC */
/*
 * Random inputs for fuzz-client: sequences of valid messages with small numbers in them, some of them then
 * damaged. Each is made from a seed, and the seed of one that fails is printed. Blocks of seeds run in
 * processes of their own, which say through shared memory how far they are.
 *
 * Usage: random-client [FIRST-SEED [COUNT]]
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "protocol/codec.h"
#include "tests/fuzz/fuzz.h"

#define BLOCK      250u
#define WORKERS    4u
#define CHUNKS_MAX 12u
#define INPUT_MAX  16384u

static uint64_t random_state;

static uint32_t roll(uint32_t n)
{
        random_state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t x = random_state;

        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (uint32_t)((x ^ (x >> 31)) >> 8) % n;
}

static bool chance(uint32_t percent)
{
        return roll(100) < percent;
}

/* Mostly a number that exists, at times one that may not. */
static uint32_t id(uint32_t exist, uint32_t most)
{
        return chance(90) ? 1 + roll(exist) : roll(most + 1);
}

static uint64_t size(void)
{
        static const uint64_t some[] = {0, 1, 4, 63, 64, 4095, 4096, 4097, 8192, 1 << 20, UINT64_C(1) << 40,
                RIG_PROTO_BYTES_MAX - 1, RIG_PROTO_BYTES_MAX};

        return chance(60) ? roll(4097) : some[roll(RIG_ARRAY_SIZE(some))];
}

/* ---------------------------------------------------------------- messages */

static void make_run(struct rig_msg_run *m)
{
        *m = (struct rig_msg_run){.work = id(6, 9), .n_buffers = chance(90) ? 1 + roll(2) : roll(5)};
        for (uint32_t i = 0; i < m->n_buffers; i++)
                m->buffers[i] = id(8, 12);
        m->has_time = chance(50);
        m->time = chance(50) ? 0 : RIG_PROTO_NSEC_MAX;
        m->has_points = chance(20);
        m->n_points = m->has_points ? roll(3) : 0;
        for (uint32_t i = 0; i < m->n_points; i++)
                m->points[i] = (struct rig_msg_point){id(4, 6), roll(3)};
}

static void make_part(struct rig_msg_part *p)
{
        *p = (struct rig_msg_part){.kind = roll(5), .queue = chance(90) ? 0 : roll(8)};
        p->has_after = chance(20);
        p->after = p->has_after ? roll(4) : 0;
        p->has_dst = chance(90);
        p->dst = (struct rig_msg_operand){roll(3), size()};
        p->has_src = chance(70);
        p->src = (struct rig_msg_operand){roll(3), chance(50) ? 0 : size()};
        p->has_bytes = chance(50);
        p->bytes = size();
        p->has_pattern = chance(50);
        p->pattern = roll(1 << 20);
        p->has_image = chance(5);
        p->image = id(2, 3);
        p->has_grid = p->has_group = chance(20);
        p->grid = (struct rig_msg_dims){roll(4), roll(4), UINT32_MAX};
        p->group = (struct rig_msg_dims){UINT32_MAX, roll(4), roll(4)};
        p->has_params = chance(20);
        p->params = (struct rig_bytes){(const uint8_t *)"0123456789abcdef", 16};
        p->has_patches = chance(20);
        p->n_patches = p->has_patches ? roll(3) : 0;
        for (uint32_t i = 0; i < p->n_patches; i++)
                p->patches[i] = (struct rig_msg_patch){roll(20), roll(3), size()};
}

static void make_work(struct rig_msg_work_new *m)
{
        *m = (struct rig_msg_work_new){
                .serial = roll(100), .work = chance(80) ? 6 + roll(3) : roll(10), .device = id(4, 6)};
        m->n_slots = roll(4);
        for (uint32_t i = 0; i < m->n_slots; i++)
                m->slots[i] = (struct rig_msg_slot){.access = chance(95) ? 1 + roll(3) : 0,
                        .has_buffer = chance(20),
                        .buffer = id(6, 8)};
        m->has_name = chance(20);
        m->name = rig_text("a work's name", roll(14));
        m->n_parts = roll(4);
        for (uint32_t i = 0; i < m->n_parts; i++)
                make_part(&m->parts[i]);
}

static void make_request(union rig_msg *m, enum rig_msg_type type)
{
        static const char *const names[] = {
                "memory:M", "host", "disk", "memory:A,async", "memory", "gpu", ""};
        uint32_t serial = roll(100);

        switch (type) {
        case RIG_MSG_DEVICE_OPEN:
                m->device_open = (struct rig_msg_device_open){.serial = serial,
                        .device = 5 + roll(3),
                        .name = rig_text(names[roll(RIG_ARRAY_SIZE(names))], RIG_PROTO_NAME_MAX)};
                break;
        case RIG_MSG_BUFFER_NEW:
                m->buffer_new = (struct rig_msg_buffer_new){.serial = serial,
                        .buffer = 6 + roll(4),
                        .device = id(4, 6),
                        .bytes = size(),
                        .kind = roll(3)};
                break;
        case RIG_MSG_BUFFER_ADOPT:
                m->buffer_adopt = (struct rig_msg_buffer_adopt){.serial = serial,
                        .buffer = 6 + roll(4),
                        .device = id(4, 6),
                        .offset = size(),
                        .bytes = size(),
                        .fd = chance(90) ? 0 : roll(4)};
                break;
        case RIG_MSG_BUFFER_BORROW:
                m->buffer_borrow = (struct rig_msg_buffer_borrow){
                        .serial = serial, .buffer = 6 + roll(4), .device = id(4, 6), .of = id(6, 9)};
                break;
        case RIG_MSG_BUFFER_EXPORT:
                m->buffer_export = (struct rig_msg_buffer_export){.serial = serial, .buffer = id(6, 9)};
                break;
        case RIG_MSG_BUFFER_IMPORT:
                m->buffer_import = (struct rig_msg_buffer_import){.serial = serial,
                        .buffer = 6 + roll(4),
                        .device = id(4, 6),
                        .fd = chance(90) ? 0 : roll(4)};
                break;
        case RIG_MSG_BUFFER_WAIT:
                m->buffer_wait = (struct rig_msg_buffer_wait){.serial = serial,
                        .buffer = id(6, 9),
                        .access = roll(4),
                        .time = roll(2) ? 0 : RIG_PROTO_NSEC_MAX};
                break;
        case RIG_MSG_NOTIFY:
                m->notify = (struct rig_msg_notify){.serial = serial, .device = id(4, 6), .value = roll(3)};
                break;
        case RIG_MSG_NOTIFY_EVENTFD:
                m->notify_eventfd = (struct rig_msg_notify_eventfd){
                        .serial = serial, .device = id(4, 6), .value = roll(3), .fd = roll(2)};
                break;
        case RIG_MSG_IMAGE_LOAD:
                m->image_load = (struct rig_msg_image_load){
                        .serial = serial, .image = id(2, 3), .device = id(4, 6), .bytes = size()};
                break;
        case RIG_MSG_ADAPTER_LIST:
                m->adapter_list = (struct rig_msg_adapter_list){.serial = serial, .index = roll(5)};
                break;
        case RIG_MSG_TRACE_START:
                m->trace_start =
                        (struct rig_msg_trace_start){.serial = serial, .fd = chance(90) ? 0 : roll(4)};
                break;
        case RIG_MSG_TRACE_STOP:
                m->trace_stop = (struct rig_msg_trace_stop){.serial = serial};
                break;
        default:
                m->sync = (struct rig_msg_sync){
                        .serial = serial, .has_follows = chance(10), .follows = roll(64)};
        }
}

static void make_ordered(union rig_msg *m, enum rig_msg_type type)
{
        switch (type) {
        case RIG_MSG_HOST_DONE:
                m->host_done = (struct rig_msg_host_done){.device = chance(80) ? 2 : id(4, 6),
                        .value = roll(4),
                        .has_failed = chance(20),
                        .failed = roll(40),
                        .has_text = chance(20),
                        .text = rig_text("no", RIG_PROTO_TEXT_MAX)};
                break;
        case RIG_MSG_BUFFER_DROP:
                m->buffer_drop = (struct rig_msg_buffer_drop){.buffer = id(9, 12)};
                break;
        case RIG_MSG_BUFFER_VIEW:
                m->buffer_view = (struct rig_msg_buffer_view){
                        .buffer = 6 + roll(4), .of = id(6, 9), .offset = size(), .bytes = size()};
                break;
        case RIG_MSG_WORK_DROP:
                m->work_drop = (struct rig_msg_work_drop){.work = id(6, 9)};
                break;
        case RIG_MSG_DEVICE_CLOSE:
                m->device_close = (struct rig_msg_device_close){.device = id(4, 6)};
                break;
        default:
                make_run(&m->run);
        }
}

/* ---------------------------------------------------------------- inputs */

static size_t make_message(uint8_t *out, size_t room, bool ordered)
{
        static const enum rig_msg_type ordered_types[] = {RIG_MSG_RUN, RIG_MSG_RUN, RIG_MSG_RUN, RIG_MSG_RUN,
                RIG_MSG_RUN, RIG_MSG_HOST_DONE, RIG_MSG_BUFFER_DROP, RIG_MSG_BUFFER_VIEW, RIG_MSG_WORK_DROP,
                RIG_MSG_DEVICE_CLOSE};
        static const enum rig_msg_type requests[] = {RIG_MSG_SYNC, RIG_MSG_ADAPTER_LIST, RIG_MSG_DEVICE_OPEN,
                RIG_MSG_BUFFER_NEW, RIG_MSG_BUFFER_ADOPT, RIG_MSG_BUFFER_BORROW, RIG_MSG_BUFFER_EXPORT,
                RIG_MSG_BUFFER_IMPORT, RIG_MSG_BUFFER_WAIT, RIG_MSG_IMAGE_LOAD, RIG_MSG_WORK_NEW,
                RIG_MSG_WORK_NEW, RIG_MSG_NOTIFY, RIG_MSG_NOTIFY_EVENTFD, RIG_MSG_TRACE_START,
                RIG_MSG_TRACE_STOP};
        enum rig_msg_type type = ordered ? ordered_types[roll(RIG_ARRAY_SIZE(ordered_types))]
                                         : requests[roll(RIG_ARRAY_SIZE(requests))];
        static union rig_msg m;
        ssize_t n;

        if (ordered)
                make_ordered(&m, type);
        else if (type == RIG_MSG_WORK_NEW)
                make_work(&m.work_new);
        else
                make_request(&m, type);
        n = rig_codec_encode(type, &m, out, room);
        return n > 0 ? (size_t)n : 0;
}

/* A chunk, as fuzz-client reads them. */
static size_t make_chunk(uint8_t *out, size_t room, bool ring)
{
        unsigned kind = roll(4), fds = 0;
        size_t n = 0;

        if (kind == 2) /* a tail: seldom, since it is mostly a lie */
                kind = chance(10) ? 2 : 1;
        if (kind == 2)
                for (; n < 2; n++)
                        out[3 + n] = (uint8_t)roll(256);
        for (uint32_t i = 1 + roll(4); i && kind < 2; i--)
                n += make_message(out + 3 + n, room - 3 - n, kind == 1 || (!ring && chance(30)));
        if (kind == 3 && chance(30)) /* over the page of a trace */
                for (size_t bytes = 1 + roll(80); n < bytes; n++)
                        out[3 + n] = (uint8_t)(chance(80) ? 0 : roll(256));
        if (kind == 0 && chance(40))
                fds = chance(80) ? 1u << roll(4) : roll(16);
        out[0] = (uint8_t)(kind | fds << 2);
        out[1] = (uint8_t)n;
        out[2] = (uint8_t)(n >> 8);
        return 3 + n;
}

static void damage(uint8_t *input, size_t n)
{
        for (uint32_t i = 1 + roll(4); i; i--) {
                uint8_t *at = &input[roll((uint32_t)n)];

                if (chance(50))
                        *at ^= (uint8_t)(1u << roll(8));
                else
                        *at = (uint8_t)roll(256);
        }
}

static void run_seed(uint64_t seed)
{
        static uint8_t input[INPUT_MAX];
        size_t n = 1;

        random_state = seed * UINT64_C(0x2545f4914f6cdd1d);
        input[0] = (uint8_t)roll(3);
        for (uint32_t i = 1 + roll(CHUNKS_MAX); i && n + 8192 < sizeof(input); i--)
                n += make_chunk(input + n, sizeof(input) - n, input[0] == 2);
        if (chance(40))
                damage(input, n);
        LLVMFuzzerTestOneInput(input, n);
}

/* A process that runs a block of seeds. Mostly it waits for threads of its own, so there are several at
 * once. */
struct worker {
        pid_t pid;          /* 0: none */
        uint64_t *progress; /* the seed it is at; shared with it */
};

static int start_block(struct worker *w, uint64_t first, uint64_t count)
{
        fflush(NULL);
        w->pid = fork();
        if (w->pid)
                return w->pid < 0 ? -1 : 0;
        for (uint64_t seed = first; seed < first + count; seed++) {
                *w->progress = seed;
                run_seed(seed);
        }
        exit(0); /* and not _exit(): a leak checker looks now */
}

/* Waits for one to end. Return: 0, 1 where none runs, or -1 where it failed. */
static int end_block(struct worker *workers)
{
        int status;
        pid_t pid = wait(&status);

        for (size_t i = 0; i < WORKERS && pid > 0; i++) {
                if (workers[i].pid != pid)
                        continue;
                workers[i].pid = 0;
                if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                        return 0;
                fprintf(stderr, "seed %llu failed\n", (unsigned long long)*workers[i].progress);
                return -1;
        }
        return 1;
}

static struct worker *idle_worker(struct worker *workers)
{
        for (size_t i = 0; i < WORKERS; i++)
                if (!workers[i].pid)
                        return &workers[i];
        return NULL;
}

/* Return: whether all seeds were well. */
static bool run_all(struct worker *workers, uint64_t first, uint64_t count)
{
        uint64_t started = 0;
        int r = 0;

        while (r == 0) {
                struct worker *w = idle_worker(workers);

                if (w && started < count) {
                        r = start_block(w, first + started, RIG_MIN(count - started, (uint64_t)BLOCK));
                        started += BLOCK;
                } else {
                        r = end_block(workers);
                }
        }
        return r == 1;
}

int main(int argc, char **argv)
{
        uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
        uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
        struct worker workers[WORKERS] = {0};
        uint64_t *progress = mmap(NULL, WORKERS * sizeof(*progress), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (progress == MAP_FAILED)
                return 1;
        for (size_t i = 0; i < WORKERS; i++)
                workers[i].progress = &progress[i];
        if (!run_all(workers, first, count))
                return 1;
        printf("%llu random inputs\n", (unsigned long long)count);
        return 0;
}
