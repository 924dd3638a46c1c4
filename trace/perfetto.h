/* SPDX-License-Identifier: ISC */
/*
 * Writes a trace as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON of the Trace
 * Event Format, one event a line, written as records come.
 *
 *   process  a client: its pid and command; a track below it for each queue of each of its devices, with a
 *            slice for each run: its name, else what it does ("copy 4096 bytes"); args have value, bytes,
 *            error, how long it waited after it was accepted
 *   flow     from the end of the run whose value was waited for to the start of the run that waited
 *   counter  "ADAPTER memory" with live and cached bytes
 *   span     slices of the program's own, on a track for each of its threads
 *
 * The format has microseconds; they are written with three decimals, so no nanosecond is lost. They count
 * from an epoch of the file's own, an hour before its first event: "otherData" has it as "epoch_nsec" of
 * CLOCK_MONOTONIC, so that what reads times as doubles keeps the nanoseconds at any uptime. Where cutting a
 * double (and not rounding it) would lose one, a time has a fourth decimal. What ended before the epoch is
 * drawn at it.
 */
#ifndef RIG_PERFETTO_H
#define RIG_PERFETTO_H

#include <stdio.h>

#include "trace/trace.h"

struct rig_perfetto;

/* Starts a file. `f` is borrowed, and written as events come. Return: 0 or -ENOMEM. */
int rig_perfetto_new(FILE *f, struct rig_perfetto **ret_perfetto);
/* Frees it, finished or not. */
struct rig_perfetto *rig_perfetto_free(struct rig_perfetto *perfetto);

/*
 * Writes the events of a record. -ENOMEM: the record is left out. Its texts may be any bytes. Memory is
 * taken for each device, and for its last 64 runs, which arrows may come from.
 */
int rig_perfetto_record(struct rig_perfetto *perfetto, const struct rig_trace_record *record);

/* A span of the program `pid`'s thread `tid`. `name` is any bytes without NUL; what is no UTF-8 is replaced.
 */
void rig_perfetto_span(struct rig_perfetto *perfetto, uint32_t pid, uint32_t tid, const char *name,
        uint64_t begin_nsec, uint64_t end_nsec);

/* Ends the file, which stays open; `dropped` records are told in it. Return: 0 or what writing first failed
 * with. */
int rig_perfetto_finish(struct rig_perfetto *perfetto, uint64_t dropped);

/* What a run is called in lists: its name, or what it does: "copy 4096 bytes", "fill 64 bytes", "launch". */
void rig_trace_run_title(const struct rig_trace_run *run, char *title, size_t bytes);

#endif
