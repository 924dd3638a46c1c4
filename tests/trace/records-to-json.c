/* SPDX-License-Identifier: ISC */
/*
 * Records told in text, one a line, through the writer of traces: what check-perfetto.py drives. Texts are
 * in hexadecimal, so that they may be any bytes; "-" is none.
 *
 *     device NUMBER CLIENT PID QUEUES NAME COMMAND
 *     run NUMBER VALUE ACCEPTED STARTED ENDED COPIED FILLED LAUNCHES QUEUES ERROR NAME
 *     wait NUMBER VALUE ON ON-VALUE
 *     memory NSEC LIVE CACHED ADAPTER
 *     span PID TID BEGIN END NAME
 *     other KIND
 *     end DROPPED
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "trace/perfetto.h"

static char *rest;

static uint64_t number(void)
{
        uint64_t n = strtoull(rest, &rest, 10);

        return n;
}

/* The next word, as what it is in hexadecimal of; cut where there is no room, without an end then. */
static void text(char *out, size_t room)
{
        unsigned byte;
        int used = 0;

        memset(out, 0, room);
        while (*rest == ' ')
                rest++;
        for (size_t i = 0; sscanf(rest, "%2x%n", &byte, &used) == 1 && *rest != ' '; rest += used)
                if (i < room)
                        out[i++] = (char)byte;
}

static struct rig_trace_record read_device(void)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_DEVICE, .device = (uint32_t)number()};

        record.opened.client = number();
        record.opened.pid = (uint32_t)number();
        record.opened.n_queues = (uint32_t)number();
        text(record.opened.name, sizeof(record.opened.name));
        text(record.opened.command, sizeof(record.opened.command));
        return record;
}

static struct rig_trace_record read_run(void)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_RUN, .device = (uint32_t)number()};
        struct rig_trace_run *run = &record.run;

        run->value = number();
        run->accepted_nsec = number();
        run->started_nsec = number();
        run->ended_nsec = number();
        run->copied_bytes = number();
        run->filled_bytes = number();
        run->launches = (uint32_t)number();
        run->queues = (uint32_t)number();
        run->error = (int32_t)strtol(rest, &rest, 10);
        text(run->name, sizeof(run->name));
        return record;
}

static struct rig_trace_record read_wait(void)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_WAIT, .device = (uint32_t)number()};

        record.wait.value = number();
        record.wait.on = (uint32_t)number();
        record.wait.on_value = number();
        return record;
}

static struct rig_trace_record read_memory(void)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_MEMORY};

        record.memory.nsec = number();
        record.memory.live_bytes = number();
        record.memory.cached_bytes = number();
        text(record.memory.adapter, sizeof(record.memory.adapter));
        return record;
}

static void write_span(struct rig_perfetto *perfetto)
{
        uint32_t pid = (uint32_t)number(), tid = (uint32_t)number();
        uint64_t begin = number(), end = number();
        char name[256] = "";

        text(name, sizeof(name) - 1);
        rig_perfetto_span(perfetto, pid, tid, name, begin, end);
}

static void line(struct rig_perfetto *perfetto, const char *what)
{
        struct rig_trace_record record = {0};

        if (strcmp(what, "span") == 0) {
                write_span(perfetto);
                return;
        }
        if (strcmp(what, "device") == 0)
                record = read_device();
        else if (strcmp(what, "run") == 0)
                record = read_run();
        else if (strcmp(what, "wait") == 0)
                record = read_wait();
        else if (strcmp(what, "memory") == 0)
                record = read_memory();
        else
                record.kind = (uint32_t)number();
        rig_assert(rig_perfetto_record(perfetto, &record) == 0);
}

int main(int argc, char **argv)
{
        FILE *out = argc > 1 ? fopen(argv[1], "we") : stdout;
        struct rig_perfetto *perfetto;
        static char input[4096];
        char what[16];
        int used, r = -ENODATA;

        rig_assert(out && rig_perfetto_new(out, &perfetto) == 0);
        while (fgets(input, sizeof(input), stdin)) {
                rig_assert(sscanf(input, "%15s%n", what, &used) == 1);
                rest = input + used;
                if (strcmp(what, "end") == 0) {
                        r = rig_perfetto_finish(perfetto, number());
                        break;
                }
                line(perfetto, what);
        }
        rig_perfetto_free(perfetto);
        if (r < 0)
                fprintf(stderr, "%s\n", strerrorname_np(-r));
        return r < 0;
}
