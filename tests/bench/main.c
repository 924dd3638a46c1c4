/* SPDX-License-Identifier: ISC */
/*
 * One round of the bench: every floor and every subject once, close to each other in time, printed as lines.
 * bench.py runs as many rounds as it wants and compares each subject with the floor of its own round, since
 * machines change from one minute to the next. This program judges nothing.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/bench/bench.h"

int bench_init(struct bench *bench)
{
        int cpu, found = 0;

        if (sched_getaffinity(0, sizeof(bench->cpus), &bench->cpus) < 0)
                return -errno;
        for (cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
                if (!CPU_ISSET(cpu, &bench->cpus))
                        continue;
                *(found == 0 ? &bench->cpu_client : &bench->cpu_server) = cpu;
                found++;
        }
        return found == 2 ? 0 : -ENOSYS;
}

size_t bench_scaled(const struct bench *bench, size_t n, size_t least)
{
        size_t scaled = (size_t)((double)n * bench->scale);

        return scaled > least ? scaled : least;
}

void bench_pin(int cpu)
{
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof(one), &one) < 0)
                bench_fail("cannot run on processor %d alone: %s", cpu, strerror(errno));
}

void bench_unpin(const struct bench *bench)
{
        if (sched_setaffinity(0, sizeof(bench->cpus), &bench->cpus) < 0)
                bench_fail("cannot run on every processor again: %s", strerror(errno));
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double bench_median(double *v, size_t n)
{
        qsort(v, n, sizeof(*v), compare);
        return v[n / 2];
}

void bench_report(const char *name, const char *unit, double value)
{
        printf("%s\t%s\t%.6g\n", name, unit, value);
        fflush(stdout);
}

void bench_fail(const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
        exit(1);
}

static void round_run(const struct bench *bench)
{
        struct bench_server server;

        bench_report("floor spin", "us", bench_spin_usec(bench));
        bench_report("floor seqpacket", "us", bench_seqpacket_usec(bench));
        bench_report("floor memcpy 4 KiB", "ns", bench_memcpy_nsec(bench, 4096));

        bench_server_start(bench, &server);
        bench_rss_idle(bench, &server);
        bench_submit_and_wait(bench, &server, "ring");
        bench_submit_and_wait(bench, &server, "words");
        bench_submit_and_wait(bench, &server, "socket");
        bench_streams(bench, &server);
        bench_connect(bench, &server);
        bench_idle(bench, &server);
        bench_server_stop(&server);

        bench_report("exec to listening", "us", bench_exec_usec(bench));
        bench_report("floor spin, after", "us", bench_spin_usec(bench));
}

int main(int argc, char **argv)
{
        struct bench bench = {.scale = 1};

        if (argc != 3 || (bench.scale = strtod(argv[2], NULL)) <= 0)
                bench_fail("Usage: %s RIGD SCALE", argv[0]);
        bench.rigd = argv[1];
        if (bench_init(&bench) < 0) {
                fprintf(stderr, "the bench needs two processors, one for each side\n");
                return 77;
        }
        round_run(&bench);
        return 0;
}
