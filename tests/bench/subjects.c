/* SPDX-License-Identifier: ISC */
/*
 * Subjects: what a program does with rigd, as any program does it, through the public header alone. The work
 * is a fill of four bytes, so that what is measured is the way there and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rig/rig.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/bench/bench.h"

#define check(call) check_call((call), #call)

#define CHAIN       100000
#define PROFILED    30000
#define INDEPENDENT 1024
#define BATCH       64
#define ACCESSES    4

static void check_call(int r, const char *call)
{
        if (r < 0)
                bench_fail("%s: %s", call, rig_error());
}

/* A connection with one device. */
struct subject {
        struct rig *rig;
        struct rig_device *device;
};

/* It connects unpinned: a library that saw one processor would think that rigd has to share it. */
static void subject_open(const struct bench *bench, const struct bench_server *server, const char *transport,
        struct subject *ret)
{
        char address[192];

        bench_unpin(bench);
        snprintf(address, sizeof(address), "%s,transport=%s", server->address, transport);
        check(rig_connect(address, &ret->rig));
        bench_pin(bench->cpu_client);
        check(rig_device_open(ret->rig, "memory:bench", &ret->device));
}

static void subject_close(struct subject *s)
{
        rig_device_unref(s->device);
        rig_unref(s->rig);
}

/* Once it has answered a client it runs, and has what it always has. */
void bench_rss_idle(const struct bench *bench, const struct bench_server *server)
{
        struct rig *rig;

        bench_unpin(bench);
        check(rig_connect(server->address, &rig));
        bench_report("rss idle", "KiB", bench_server_rss_kib(server));
        rig_unref(rig);
}

/* A work that fills four bytes of each of so many slots. */
static struct rig_work *fill_work(struct rig_device *device, int slots)
{
        struct rig_work *work;
        int i;

        check(rig_work_new(device, &work));
        for (i = 0; i < slots; i++) {
                check(rig_work_slot(work, RIG_READ_WRITE));
                check(rig_work_fill(work, 0, i, 0, 4, 7));
        }
        check(rig_work_prepare(work));
        return work;
}

static struct rig_work *copy_work(struct rig_device *device, uint64_t bytes)
{
        struct rig_work *work;

        check(rig_work_new(device, &work));
        check(rig_work_slot(work, RIG_WRITE));
        check(rig_work_slot(work, RIG_READ));
        check(rig_work_copy(work, 0, 0, 0, 1, 0, bytes));
        check(rig_work_prepare(work));
        return work;
}

static void buffers_new(struct rig_device *device, uint64_t bytes, struct rig_buffer **b, size_t n)
{
        size_t i;

        for (i = 0; i < n; i++)
                check(rig_buffer_new(device, bytes, RIG_MEMORY_DEVICE, &b[i]));
}

static void buffers_unref(struct rig_buffer **b, size_t n)
{
        size_t i;

        for (i = 0; i < n; i++)
                rig_buffer_unref(b[i]);
}

/* Microseconds of a submission and the wait for it, both sides awake. */
static double awake_usec(const struct bench *bench, struct rig_work *work, struct rig_buffer **b, size_t n)
{
        size_t samples = bench_scaled(bench, 2000, 20), batch = 20, i, j;
        _cleanup_(rig_freep) double *v = calloc(samples, sizeof(*v));
        struct rig_point done;

        if (!v)
                bench_fail("no memory");
        for (i = 0; i < samples; i++) {
                uint64_t begin = rig_now_nsec();

                for (j = 0; j < batch; j++) {
                        check(rig_submit(work, b, n, NULL, 0, &done));
                        check(rig_point_wait(&done, RIG_INFINITY));
                }
                v[i] = (double)(rig_now_nsec() - begin) / (double)batch / 1e3;
        }
        return bench_median(v, samples);
}

void bench_submit_and_wait(
        const struct bench *bench, const struct bench_server *server, const char *transport)
{
        struct subject s;
        struct rig_buffer *b[2];
        struct rig_work *work;
        char name[64];

        subject_open(bench, server, transport, &s);
        buffers_new(s.device, 4096, b, 2);
        work = fill_work(s.device, 1);
        snprintf(name, sizeof(name), "submit and wait, %s", transport);
        bench_report(name, "us", awake_usec(bench, work, b, 1));
        rig_work_unref(work);
        if (strcmp(transport, "ring") == 0) {
                work = copy_work(s.device, 4096);
                bench_report("copy of 4 KiB, submit and wait", "us", awake_usec(bench, work, b, 2));
                rig_work_unref(work);
        }
        buffers_unref(b, 2);
        subject_close(&s);
}

/* Runs in a stream, over `n` buffers in turn: nanoseconds of a run until the last is done. */
static double stream_nsec(const struct bench *bench, struct rig_work *work, struct rig_buffer **b, size_t n)
{
        size_t runs = bench_scaled(bench, CHAIN, 2000), rounds = 5, i, j;
        struct rig_point done;
        double v[5];

        for (i = 0; i < rounds; i++) {
                uint64_t begin = rig_now_nsec();

                for (j = 0; j < runs; j++)
                        check(rig_submit(work, &b[j % n], 1, NULL, 0, &done));
                check(rig_point_wait(&done, RIG_INFINITY));
                v[i] = (double)(rig_now_nsec() - begin) / (double)runs;
        }
        return bench_median(v, rounds);
}

/* The same while a profile records all of it. */
static double profiled_nsec(
        const struct bench *bench, struct rig *rig, struct rig_work *work, struct rig_buffer **b)
{
        size_t runs = bench_scaled(bench, PROFILED, 2000), rounds = 5, i, j;
        struct rig_point done;
        double v[5];

        for (i = 0; i < rounds; i++) {
                struct rig_profile *profile;
                uint64_t begin;

                check(rig_profile_start(rig, 2 * PROFILED, &profile));
                begin = rig_now_nsec();
                for (j = 0; j < runs; j++)
                        check(rig_submit(work, b, 1, NULL, 0, &done));
                check(rig_point_wait(&done, RIG_INFINITY));
                v[i] = (double)(rig_now_nsec() - begin) / (double)runs;
                check(rig_profile_stop(profile));
                if (rig_profile_dropped(profile))
                        bench_fail("a profile dropped records that it had room for");
                rig_profile_unref(profile);
        }
        return bench_median(v, rounds);
}

/* What a submission costs its caller, in batches that rigd has time to finish in between. */
static double submit_nsec(const struct bench *bench, struct rig_work *work, struct rig_buffer **b)
{
        size_t samples = bench_scaled(bench, 1000, 20), i, j;
        _cleanup_(rig_freep) double *v = calloc(samples, sizeof(*v));
        struct rig_point done;

        if (!v)
                bench_fail("no memory");
        for (i = 0; i < samples; i++) {
                uint64_t begin = rig_now_nsec();

                for (j = 0; j < BATCH; j++)
                        check(rig_submit(work, b, ACCESSES, NULL, 0, &done));
                v[i] = (double)(rig_now_nsec() - begin) / BATCH;
                check(rig_point_wait(&done, RIG_INFINITY));
        }
        return bench_median(v, samples);
}

void bench_streams(const struct bench *bench, const struct bench_server *server)
{
        static struct rig_buffer *b[INDEPENDENT];
        struct rig_work *one, *four;
        struct subject s;

        subject_open(bench, server, "ring", &s);
        buffers_new(s.device, 64, b, INDEPENDENT);
        one = fill_work(s.device, 1);
        four = fill_work(s.device, ACCESSES);
        bench_report("chain on one buffer", "ns", stream_nsec(bench, one, b, 1));
        bench_report("chain on one buffer, profiled", "ns", profiled_nsec(bench, s.rig, one, b));
        bench_report("independent, 1024 buffers", "ns", stream_nsec(bench, one, b, INDEPENDENT));
        bench_report("submit cost, 4 accesses, batch 64", "ns", submit_nsec(bench, four, b));
        rig_work_unref(one);
        rig_work_unref(four);
        buffers_unref(b, INDEPENDENT);
        subject_close(&s);
}

void bench_connect(const struct bench *bench, const struct bench_server *server)
{
        size_t samples = bench_scaled(bench, 50, 5), i;
        double v[50];

        for (i = 0; i < samples; i++) {
                uint64_t begin = rig_now_nsec();
                struct subject s;
                struct rig_buffer *b;
                struct rig_point done;

                subject_open(bench, server, "ring", &s);
                check(rig_buffer_new(s.device, 4096, RIG_MEMORY_DEVICE, &b));
                check(rig_buffer_fill(b, 0, 4096, 1, &done));
                check(rig_point_wait(&done, RIG_INFINITY));
                v[i] = (double)(rig_now_nsec() - begin) / 1e3;
                rig_buffer_unref(b);
                subject_close(&s);
        }
        bench_report("connect to first run done", "us", bench_median(v, samples));
}

/* Clients that are connected and do nothing: what they cost, and whether rigd lets the machine sleep. */
void bench_idle(const struct bench *bench, const struct bench_server *server)
{
        enum { CLIENTS = 32 };
        struct subject s[CLIENTS];
        double before = bench_server_rss_kib(server);
        uint64_t switches;
        size_t i;

        for (i = 0; i < CLIENTS; i++)
                subject_open(bench, server, "ring", &s[i]);
        bench_report("rss of a client", "KiB", (bench_server_rss_kib(server) - before) / CLIENTS);

        usleep(100000); /* rigd may poll for a moment after the last message */
        switches = bench_server_switches(server);
        usleep((useconds_t)bench_scaled(bench, 2000000, 200000));
        bench_report("wake-ups of an idle rigd", "", (double)(bench_server_switches(server) - switches));
        for (i = 0; i < CLIENTS; i++)
                subject_close(&s[i]);
}
