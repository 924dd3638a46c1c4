/* SPDX-License-Identifier: ISC */
/*
 * A rigd of the test's own (rigd.h). It says READY=1 on a socket in its folder when it listens, so that
 * nothing here tries again or sleeps. It dies with the test, whatever becomes of that.
 */
#include "tests/e2e/rigd.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"

#define ARGUMENTS_MAX 32
#define LOG_BYTES     65536

bool with_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__)
        return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
        return true;
#else
        return false;
#endif
#else
        return false;
#endif
}

const char *rigd_program(void)
{
        const char *other = getenv("RIG_TEST_RIGD");

        return other && other[0] ? other : RIGD;
}

bool wait_for(int fd, short events)
{
        struct pollfd p = {.fd = fd, .events = events};
        int r;

        do
                r = poll(&p, 1, RIGD_WAIT_MS);
        while (r < 0 && errno == EINTR);
        return r == 1;
}

/* ---------------------------------------------------------------- starting */

static int listen_at(const char *folder, const char *name, char *path, size_t room, int type)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

        snprintf(path, room, "%s/%s", folder, name);
        cr_assert_lt(strlen(path), sizeof(address.sun_path));
        strcpy(address.sun_path, path);
        cr_assert_geq(fd, 0);
        cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0, "%s: %m", path);
        return fd;
}

unsigned rigd_fds_max;

/* In the child: becomes rigd. */
static void _noreturn_ become(char *const *arguments, int out, const char *notify)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_DFL);
        if (rigd_fds_max)
                setrlimit(RLIMIT_NOFILE, &(struct rlimit){rigd_fds_max, rigd_fds_max});
        if (notify)
                setenv("NOTIFY_SOCKET", notify, 1);
        unsetenv("JOURNAL_STREAM");
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        execv(rigd_program(), arguments);
        _exit(127);
}

static void collect(const char **arguments, size_t *n, va_list ap)
{
        const char *a;

        while ((a = va_arg(ap, const char *))) {
                cr_assert_lt(*n, (size_t)ARGUMENTS_MAX - 1);
                arguments[(*n)++] = a;
        }
        arguments[*n] = NULL;
}

static pid_t spawn(const char **arguments, int out, const char *notify)
{
        char *copy[ARGUMENTS_MAX];
        pid_t pid;

        memcpy(copy, arguments, sizeof(copy));
        fflush(NULL);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0)
                become(copy, out, notify);
        return pid;
}

static int open_pidfd(pid_t pid)
{
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);

        cr_assert_geq(fd, 0);
        return fd;
}

/* Waits until rigd says that it is ready. */
static void await_ready(struct rigd *r, int notify)
{
        struct pollfd p[2] = {{.fd = notify, .events = POLLIN}, {.fd = r->pidfd, .events = POLLIN}};
        char text[256] = "";

        cr_assert_gt(poll(p, 2, RIGD_WAIT_MS), 0, "rigd is not ready in time");
        if (!(p[0].revents & POLLIN)) {
                rigd_log_print(r);
                cr_assert_fail("rigd ended before it was ready");
        }
        cr_assert_gt(recv(notify, text, sizeof(text) - 1, 0), 0);
        cr_assert_not_null(strstr(text, "READY=1"));
}

void rigd_start(struct rigd *rigd, ...)
{
        /* Whatever this machine's configuration says. */
        const char *arguments[ARGUMENTS_MAX] = {"rigd", "--config", "/dev/null", "--socket"};
        const char *tmp = getenv("TMPDIR");
        char notify_path[96];
        size_t n = 5;
        va_list ap;
        int notify;

        snprintf(rigd->folder, sizeof(rigd->folder), "%s/rigd-XXXXXX",
                tmp && strlen(tmp) < 40 ? tmp : "/tmp");
        cr_assert_not_null(mkdtemp(rigd->folder));
        snprintf(rigd->path, sizeof(rigd->path), "%s/rigd.sock", rigd->folder);
        arguments[4] = rigd->path;
        va_start(ap, rigd);
        collect(arguments, &n, ap);
        va_end(ap);
        notify = listen_at(rigd->folder, "notify", notify_path, sizeof(notify_path), SOCK_DGRAM);
        rigd->log = memfd_create("log", MFD_CLOEXEC);
        cr_assert_geq(rigd->log, 0);
        cr_assert_neq(fcntl(rigd->log, F_SETFL, O_APPEND), -1);
        rigd->pid = spawn(arguments, rigd->log, notify_path);
        rigd->pidfd = open_pidfd(rigd->pid);
        await_ready(rigd, notify);
        close(notify);
        unlink(notify_path);
}

int rigd_connect(const struct rigd *rigd)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        cr_assert_geq(fd, 0);
        strcpy(address.sun_path, rigd->path);
        cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0, "%m");
        return fd;
}

/* ---------------------------------------------------------------- ending */

int rigd_wait(struct rigd *rigd)
{
        int status = 0;

        if (!wait_for(rigd->pidfd, POLLIN)) {
                rigd_log_print(rigd);
                kill(rigd->pid, SIGKILL);
                cr_assert_fail("rigd does not end");
        }
        cr_assert_eq(waitpid(rigd->pid, &status, 0), rigd->pid);
        return status;
}

void rigd_forget(struct rigd *rigd)
{
        unlink(rigd->path);
        rmdir(rigd->folder);
        rigd->pidfd = rig_close(rigd->pidfd);
        rigd->log = rig_close(rigd->log);
}

void rigd_stop(struct rigd *rigd)
{
        int status;

        kill(rigd->pid, SIGTERM);
        status = rigd_wait(rigd);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                rigd_log_print(rigd);
                cr_assert_fail("rigd ended with %s %d", WIFEXITED(status) ? "status" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        }
        cr_assert_neq(access(rigd->path, F_OK), 0, "the socket is left");
        rigd_forget(rigd);
}

void rigd_kill(struct rigd *rigd)
{
        kill(rigd->pid, SIGKILL);
        rigd_wait(rigd);
        rigd_forget(rigd);
}

/* ---------------------------------------------------------------- stopping and going on */

static char main_state(const struct rigd *rigd)
{
        char path[64], text[512] = "";
        const char *state;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)rigd->pid, (int)rigd->pid);
        f = fopen(path, "re");
        cr_assert_not_null(f, "%s: %m", path);
        cr_assert_not_null(fgets(text, sizeof(text), f));
        fclose(f);
        state = strrchr(text, ')');
        return state ? state[2] : '?';
}

void rigd_pause(struct rigd *rigd)
{
        uint64_t deadline = rig_deadline_usec(RIGD_WAIT_MS * RIG_USEC_PER_MSEC);
        int status;

        while (main_state(rigd) != 'S') {
                cr_assert_lt(rig_now_usec(), deadline, "rigd does not come to rest");
                sched_yield();
        }
        cr_assert_eq(kill(rigd->pid, SIGSTOP), 0);
        cr_assert_eq(waitpid(rigd->pid, &status, WUNTRACED), rigd->pid);
        cr_assert(WIFSTOPPED(status), "rigd ended");
}

void rigd_resume(struct rigd *rigd)
{
        cr_assert_eq(kill(rigd->pid, SIGCONT), 0);
}

/* ---------------------------------------------------------------- what it says and holds */

static void read_log(const struct rigd *rigd, char *text, size_t room)
{
        ssize_t n = pread(rigd->log, text, room - 1, 0);

        text[n > 0 ? n : 0] = '\0';
}

bool rigd_log_has(const struct rigd *rigd, const char *text)
{
        static char log[LOG_BYTES];

        read_log(rigd, log, sizeof(log));
        return strstr(log, text) != NULL;
}

void rigd_log_print(const struct rigd *rigd)
{
        static char log[LOG_BYTES];

        read_log(rigd, log, sizeof(log));
        fprintf(stderr, "--- rigd wrote:\n%s---\n", log);
}

size_t rigd_count_fds(const struct rigd *rigd)
{
        char path[64];
        size_t n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)rigd->pid);
        d = opendir(path);
        cr_assert_not_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* A file of /proc/PID. */
static FILE *open_proc(const struct rigd *rigd, const char *name)
{
        char path[300];
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)rigd->pid, name);
        f = fopen(path, "re");
        cr_assert_not_null(f, "%s: %m", path);
        return f;
}

/* The mappings of memfds, which is how rigd maps what it shares. */
size_t rigd_count_maps(const struct rigd *rigd)
{
        FILE *f = open_proc(rigd, "maps");
        char line[1024];
        size_t n = 0;

        while (fgets(line, sizeof(line), f))
                n += strstr(line, "memfd:") != NULL;
        fclose(f);
        return n;
}

static void await(
        const struct rigd *rigd, size_t (*count)(const struct rigd *rigd), size_t n, const char *what)
{
        uint64_t deadline = rig_deadline_usec(RIGD_WAIT_MS * RIG_USEC_PER_MSEC);

        while (count(rigd) != n) {
                cr_assert_lt(rig_now_usec(), deadline, "rigd has %zu %s, and not %zu", count(rigd), what, n);
                sched_yield();
        }
}

void rigd_await_fds(const struct rigd *rigd, size_t n)
{
        await(rigd, rigd_count_fds, n, "descriptors");
}

void rigd_await_maps(const struct rigd *rigd, size_t n)
{
        await(rigd, rigd_count_maps, n, "mappings");
}

/* The number behind a key of a status file; 0 where it is not there. */
static uint64_t status_number(const struct rigd *rigd, const char *file, const char *key)
{
        FILE *f = open_proc(rigd, file);
        char line[256];
        unsigned long long v = 0;

        while (fgets(line, sizeof(line), f))
                if (strncmp(line, key, strlen(key)) == 0)
                        v = strtoull(line + strlen(key), NULL, 10);
        fclose(f);
        return v;
}

size_t rigd_resident_kib(const struct rigd *rigd)
{
        return status_number(rigd, "status", "VmRSS:");
}

uint64_t rigd_count_sleeps(const struct rigd *rigd)
{
        char path[64], file[300];
        struct dirent *entry;
        uint64_t sum = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)rigd->pid);
        d = opendir(path);
        cr_assert_not_null(d);
        while ((entry = readdir(d))) {
                if (entry->d_name[0] == '.')
                        continue;
                snprintf(file, sizeof(file), "task/%s/status", entry->d_name);
                sum += status_number(rigd, file, "voluntary_ctxt_switches:");
        }
        closedir(d);
        return sum;
}

int rigd_run(char *text, size_t room, ...)
{
        const char *arguments[ARGUMENTS_MAX] = {"rigd"};
        struct rigd r = {.log = memfd_create("log", MFD_CLOEXEC)};
        size_t n = 1;
        va_list ap;
        int status;

        cr_assert_geq(r.log, 0);
        va_start(ap, room);
        collect(arguments, &n, ap);
        va_end(ap);
        r.pid = spawn(arguments, r.log, NULL);
        r.pidfd = open_pidfd(r.pid);
        status = rigd_wait(&r);
        read_log(&r, text, room);
        close(r.pidfd);
        close(r.log);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
