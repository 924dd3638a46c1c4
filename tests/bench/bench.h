/* SPDX-License-Identifier: ISC */
/* What the bench's programs share: time, places for two processes, medians, and lines of results. */
#ifndef RIG_BENCH_H
#define RIG_BENCH_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How this run is made. Filled by bench_init() from the command line. */
struct bench {
        const char *rigd; /* the program under test */
        double scale;     /* 1 for a full run; less shortens every loop */
        int cpu_client;
        int cpu_server; /* another one than the client's */
        cpu_set_t cpus; /* all that this process may use */
};

/* Picks two of the processors this process may use. Return: 0; -ENOSYS where there is only one. */
int bench_init(struct bench *bench);

/* `n` shortened by the scale, at least `least`. */
size_t bench_scaled(const struct bench *bench, size_t n, size_t least);

/* The calling process runs on this processor alone from now on; on all it may use. */
void bench_pin(int cpu);
void bench_unpin(const struct bench *bench);

/* Sorts `v`. */
double bench_median(double *v, size_t n);

/* Prints a line "NAME<tab>UNIT<tab>VALUE". */
void bench_report(const char *name, const char *unit, double value);

/* Ends the program with a sentence. */
void bench_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---------------------------------------------------------------- floors (floors.c) */

/* Two processes that spin on words of shared memory: microseconds of a round trip. */
double bench_spin_usec(const struct bench *bench);
/* Two processes that poll a seqpacket socket: microseconds of a round trip of 64 bytes. */
double bench_seqpacket_usec(const struct bench *bench);
/* memcpy() of so many bytes that are in the cache: nanoseconds. */
double bench_memcpy_nsec(const struct bench *bench, size_t bytes);

/* ---------------------------------------------------------------- rigd (server.c) */

struct bench_server {
        pid_t pid;
        char folder[64];
        char address[128]; /* for rig_connect(), without a transport */
};

/* Starts rigd on the server's processor, on a socket that listens already. */
void bench_server_start(const struct bench *bench, struct bench_server *ret_server);
void bench_server_stop(struct bench_server *server);
/* Resident memory, in KiB. */
double bench_server_rss_kib(const struct bench_server *server);
/* How often the threads of rigd have been switched away from: each wake-up of an idle one adds one. */
uint64_t bench_server_switches(const struct bench_server *server);
/* From exec of `rigd --socket` to a connection that is accepted: microseconds. */
double bench_exec_usec(const struct bench *bench);

/* ---------------------------------------------------------------- subjects (subjects.c) */

void bench_rss_idle(const struct bench *bench, const struct bench_server *server);
void bench_submit_and_wait(
        const struct bench *bench, const struct bench_server *server, const char *transport);
void bench_streams(const struct bench *bench, const struct bench_server *server);
void bench_connect(const struct bench *bench, const struct bench_server *server);
void bench_idle(const struct bench *bench, const struct bench_server *server);

#endif
