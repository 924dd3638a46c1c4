/* SPDX-License-Identifier: ISC */
/*
 * One thread writes a ring while another reads it, through mappings of their own, as rigd and a program do.
 * A plain program, so that it runs under TSan: the two share nothing but the ring.
 *
 * What is read is whole, in its order, and together with what was dropped it is all that was written.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "base/base.h"
#include "trace/trace.h"

#define ROUNDS UINT64_C(300000)

static struct rig_trace_ring writer;
static _Atomic bool written;

static struct rig_trace_record record_of(uint64_t number)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_RUN, .device = (uint32_t)number};

        record.run.value = number;
        record.run.accepted_nsec = ~number;
        record.run.ended_nsec = number * 3;
        record.run.copied_bytes = number + 7;
        return record;
}

static void *write_all(void *arg)
{
        for (uint64_t i = 1; i <= ROUNDS; i++) {
                struct rig_trace_record record = record_of(i);

                rig_trace_ring_write(&writer, &record);
                if (i % 200 == 0)
                        sched_yield();
        }
        /* release: all is written for who sees it */
        atomic_store_explicit(&written, true, memory_order_release);
        return arg;
}

static bool whole(const struct rig_trace_record *record)
{
        uint64_t number = record->run.value;

        return record->kind == RIG_TRACE_RUN && record->device == (uint32_t)number &&
               record->run.accepted_nsec == ~number && record->run.ended_nsec == number * 3 &&
               record->run.copied_bytes == number + 7;
}

int main(void)
{
        struct rig_trace_record record;
        struct rig_trace_ring reader;
        uint64_t last = 0, n = 0;
        pthread_t thread;
        bool end = false;
        int fd;

        rig_assert(rig_trace_ring_new(256, &reader, &fd) == 0);
        rig_assert(rig_trace_ring_map(fd, UINT64_MAX, &writer) == 0);
        rig_assert(pthread_create(&thread, NULL, write_all, NULL) == 0);
        while (!end) {
                /* acquire: what was written before is read below */
                end = atomic_load_explicit(&written, memory_order_acquire);
                for (; rig_trace_ring_read(&reader, &record); n++) {
                        rig_assert(whole(&record) && record.run.value > last);
                        last = record.run.value;
                }
        }
        pthread_join(thread, NULL);
        rig_assert(n + rig_trace_ring_dropped(&reader) == ROUNDS);
        rig_assert(n >= 256);
        printf("%llu records read, %llu dropped\n", (unsigned long long)n,
                (unsigned long long)rig_trace_ring_dropped(&reader));
        rig_trace_ring_unmap(&writer);
        rig_trace_ring_unmap(&reader);
        close(fd);
        return 0;
}
