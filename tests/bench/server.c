/* SPDX-License-Identifier: ISC */
/*
 * rigd as the bench's other process: started on its own processor, handed a socket that listens already as
 * systemd would, and looked at through /proc while it does nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/bench/bench.h"

static void make_folder(struct bench_server *s)
{
        snprintf(s->folder, sizeof(s->folder), "/tmp/rig-bench-XXXXXX");
        if (!mkdtemp(s->folder))
                bench_fail("%s: %s", s->folder, strerror(errno));
        snprintf(s->address, sizeof(s->address), "unix:%s/rigd.sock", s->folder);
}

static struct sockaddr_un socket_address(const struct bench_server *s)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};

        snprintf(a.sun_path, sizeof(a.sun_path), "%s/rigd.sock", s->folder);
        return a;
}

static int listening_socket(const struct bench_server *s)
{
        struct sockaddr_un a = socket_address(s);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 64) < 0)
                bench_fail("%s: %s", a.sun_path, strerror(errno));
        return fd;
}

/* Becomes rigd, with the listening socket as descriptor 3. */
static void become_rigd(const struct bench *bench, int listening)
{
        char pid[16];

        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        if (listening != 3 && dup2(listening, 3) < 0)
                _exit(126);
        setenv("LISTEN_FDS", "1", 1);
        setenv("LISTEN_PID", pid, 1);
        execl(bench->rigd, bench->rigd, "--log-level", "warning", (char *)NULL);
        _exit(127);
}

void bench_server_start(const struct bench *bench, struct bench_server *ret_server)
{
        int listening;

        make_folder(ret_server);
        listening = listening_socket(ret_server);
        ret_server->pid = fork();
        if (ret_server->pid < 0)
                bench_fail("fork: %s", strerror(errno));
        if (ret_server->pid == 0) {
                bench_pin(bench->cpu_server);
                become_rigd(bench, listening);
        }
        close(listening);
}

static void remove_folder(const struct bench_server *s)
{
        struct sockaddr_un a = socket_address(s);

        unlink(a.sun_path);
        rmdir(s->folder);
}

void bench_server_stop(struct bench_server *server)
{
        int status = 0;

        kill(server->pid, SIGTERM);
        if (waitpid(server->pid, &status, 0) < 0 || status != 0)
                bench_fail("rigd did not end cleanly: status %d", status);
        remove_folder(server);
}

/* The number behind a line's name in a file of /proc, or -1. */
static int64_t proc_number(const char *path, const char *name)
{
        char line[256];
        int64_t value = -1;
        FILE *f = fopen(path, "re");

        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, name, strlen(name)) == 0) {
                        value = strtoll(line + strlen(name), NULL, 10);
                        break;
                }
        if (f)
                fclose(f);
        return value;
}

double bench_server_rss_kib(const struct bench_server *server)
{
        char path[64];
        int64_t rss;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)server->pid);
        rss = proc_number(path, "VmRSS:");
        if (rss < 0)
                bench_fail("%s says nothing of VmRSS: is rigd gone?", path);
        return (double)rss;
}

uint64_t bench_server_switches(const struct bench_server *server)
{
        char path[320];
        struct dirent *e;
        uint64_t sum = 0;
        DIR *tasks;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)server->pid);
        tasks = opendir(path);
        if (!tasks)
                bench_fail("%s: %s", path, strerror(errno));
        while ((e = readdir(tasks))) {
                if (e->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof(path), "/proc/%d/task/%.200s/status", (int)server->pid, e->d_name);
                sum += (uint64_t)RIG_MAX(proc_number(path, "voluntary_ctxt_switches:"), INT64_C(0));
                sum += (uint64_t)RIG_MAX(proc_number(path, "nonvoluntary_ctxt_switches:"), INT64_C(0));
        }
        closedir(tasks);
        return sum;
}

static bool connects(const struct bench_server *s)
{
        struct sockaddr_un a = socket_address(s);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

        rig_close(fd);
        return ok;
}

double bench_exec_usec(const struct bench *bench)
{
        size_t samples = bench_scaled(bench, 10, 2), i;
        double v[10];

        for (i = 0; i < samples; i++) {
                struct bench_server s;
                char path[sizeof(s.folder) + 16];
                uint64_t begin;

                make_folder(&s);
                snprintf(path, sizeof(path), "%s/rigd.sock", s.folder);
                begin = rig_now_nsec();
                s.pid = fork();
                if (s.pid == 0) {
                        bench_pin(bench->cpu_server);
                        execl(bench->rigd, bench->rigd, "--socket", path, "--log-level", "warning",
                                (char *)NULL);
                        _exit(127);
                }
                while (!connects(&s))
                        if (rig_now_nsec() - begin > UINT64_C(10000000000))
                                bench_fail("rigd --socket does not listen after 10 s");
                v[i] = (double)(rig_now_nsec() - begin) / 1e3;
                bench_server_stop(&s);
        }
        return bench_median(v, samples);
}
