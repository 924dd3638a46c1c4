/* SPDX-License-Identifier: ISC */
/*
 * Floors: what two processes on this machine can do at best, at this moment, with nothing between them. They
 * are pinned as the client and rigd are, and do what those must do as well, and no more.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/bench/bench.h"

#define MESSAGE_BYTES 64
#define BATCH         100 /* round trips between two looks at the clock */

struct ball {
        _Atomic uint64_t there;
        char pad0[120];
        _Atomic uint64_t back;
        char pad1[120];
        char message[2][MESSAGE_BYTES];
};

static void spin_until(_Atomic uint64_t *word, uint64_t value)
{
        while (atomic_load_explicit(word, memory_order_acquire) != value)
                rig_cpu_relax();
}

static pid_t start_server(const struct bench *bench)
{
        pid_t pid = fork();

        if (pid < 0)
                bench_fail("fork: %s", strerror(errno));
        if (pid == 0)
                bench_pin(bench->cpu_server);
        return pid;
}

double bench_spin_usec(const struct bench *bench)
{
        size_t samples = bench_scaled(bench, 1000, 20), i, j;
        struct ball *ball = mmap(NULL, sizeof(*ball), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        _cleanup_(rig_freep) double *v = calloc(samples, sizeof(*v));
        char message[MESSAGE_BYTES] = {1};
        uint64_t turn = 0;
        double median;
        pid_t pid;

        if (ball == MAP_FAILED || !v)
                bench_fail("no memory");
        pid = start_server(bench);
        if (pid == 0) {
                for (turn = 1; turn <= samples * BATCH; turn++) {
                        spin_until(&ball->there, turn);
                        memcpy(ball->message[1], ball->message[0], MESSAGE_BYTES);
                        atomic_store_explicit(&ball->back, turn, memory_order_release);
                }
                _exit(0);
        }
        bench_pin(bench->cpu_client);
        for (i = 0; i < samples; i++) {
                uint64_t begin = rig_now_nsec();

                for (j = 0; j < BATCH; j++) {
                        memcpy(ball->message[0], message, MESSAGE_BYTES);
                        atomic_store_explicit(&ball->there, ++turn, memory_order_release);
                        spin_until(&ball->back, turn);
                }
                v[i] = (double)(rig_now_nsec() - begin) / BATCH / 1e3;
        }
        waitpid(pid, NULL, 0);
        munmap(ball, sizeof(*ball));
        median = bench_median(v, samples);
        return median;
}

static void pass(int fd, char *message, int first)
{
        if (first && send(fd, message, MESSAGE_BYTES, 0) != MESSAGE_BYTES)
                bench_fail("send: %s", strerror(errno));
        while (recv(fd, message, MESSAGE_BYTES, MSG_DONTWAIT) != MESSAGE_BYTES)
                if (errno != EAGAIN)
                        bench_fail("recv: %s", strerror(errno));
        if (!first && send(fd, message, MESSAGE_BYTES, 0) != MESSAGE_BYTES)
                bench_fail("send: %s", strerror(errno));
}

double bench_seqpacket_usec(const struct bench *bench)
{
        size_t samples = bench_scaled(bench, 20000, 200), i;
        _cleanup_(rig_freep) double *v = calloc(samples, sizeof(*v));
        char message[MESSAGE_BYTES] = {1};
        int ends[2];
        pid_t pid;

        if (!v || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
                bench_fail("no socket pair");
        pid = start_server(bench);
        if (pid == 0) {
                for (i = 0; i < samples; i++)
                        pass(ends[1], message, 0);
                _exit(0);
        }
        bench_pin(bench->cpu_client);
        for (i = 0; i < samples; i++) {
                uint64_t begin = rig_now_nsec();

                pass(ends[0], message, 1);
                v[i] = (double)(rig_now_nsec() - begin) / 1e3;
        }
        waitpid(pid, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        return bench_median(v, samples);
}

double bench_memcpy_nsec(const struct bench *bench, size_t bytes)
{
        size_t samples = bench_scaled(bench, 1000, 20), i, j;
        _cleanup_(rig_freep) double *v = calloc(samples, sizeof(*v));
        _cleanup_(rig_freep) char *from = calloc(1, bytes), *to = calloc(1, bytes);

        if (!v || !from || !to)
                bench_fail("no memory");
        bench_pin(bench->cpu_client);
        for (i = 0; i < samples; i++) {
                uint64_t begin = rig_now_nsec();

                for (j = 0; j < BATCH; j++) {
                        memcpy(to, from, bytes);
                        __asm__ volatile("" ::"r"(to), "r"(from) : "memory");
                }
                v[i] = (double)(rig_now_nsec() - begin) / BATCH;
        }
        return bench_median(v, samples);
}
