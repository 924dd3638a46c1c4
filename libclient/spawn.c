/* SPDX-License-Identifier: ISC */
/*
 * A private rigd: a process that ends with its program.
 *
 * rigd is found before anything is started: where $RIG_RIGD says, else where it was installed, else in
 * $PATH. It gets one end of a socketpair, and ends when the other end closes. It is started through a child
 * that ends at once, so that it is no child of the program's: the program never sees its SIGCHLD, nor has to
 * wait for it. The child in between is made without a signal at its end, for the same reason.
 *
 * Between the fork and the exec only system calls are made, by number: the program may have threads that
 * held any lock of the C library. Why an exec failed comes back through a pipe that a successful exec
 * closes.
 *
 * rigd runs in a session of its own, so that a ^C meant for the program does not end it before the program
 * has cleaned up. It keeps the program's standard output and error for its messages, and nothing else of it.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "libclient/address.h"

#define SOCKET_FD      3
#define REPORT_FD      4
#define PATH_MAX_BYTES 4096
#define SIGSET_BYTES   8 /* of the kernel's signal set */

/* The kernel's view of a signal's action, to put it back to its default. All of it is zero. */
struct kernel_action {
        unsigned long words[8];
};

struct spawn {
        char path[PATH_MAX_BYTES];
        char socket_text[16];
        int socket, report, null; /* all above REPORT_FD */
};

static bool found(struct spawn *s, const char *folder, size_t folder_bytes, const char *name)
{
        if (snprintf(s->path, sizeof(s->path), "%.*s%s%s", (int)folder_bytes, folder,
                    folder_bytes > 0 ? "/" : "", name) >= (int)sizeof(s->path))
                return false;
        return access(s->path, X_OK) == 0;
}

static int find_in_path(struct spawn *s)
{
        const char *path = getenv("PATH");

        while (path && *path != '\0') {
                size_t n = strcspn(path, ":");

                if (n > 0 && found(s, path, n, "rigd"))
                        return 0;
                path += n + (path[n] == ':');
        }
        return rig_fail(-ENOEXEC,
                "no rigd to start: there is none at %s and none in $PATH; $RIG_RIGD may name one",
                RIG_RIGD_PATH);
}

static int find(struct spawn *s)
{
        const char *named = getenv("RIG_RIGD");

        if (named && named[0] != '\0') {
                if (found(s, "", 0, named))
                        return 0;
                return rig_fail(
                        -ENOEXEC, "no rigd to start: $RIG_RIGD names %s: %s", named, rig_strerror(errno));
        }
        if (found(s, "", 0, RIG_RIGD_PATH))
                return 0;
        return find_in_path(s);
}

/* ---------------------------------------------------------------- after the fork: system calls alone */

static long fork_silently(void)
{
        /* All arguments are zero: no flags, and no signal when it ends. Their order differs between
         * machines. */
        return syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
}

_noreturn_ static void leave(void)
{
        for (;;)
                syscall(SYS_exit_group, 0);
}

static void reset_signals(void)
{
        static const struct kernel_action by_default;
        static const uint64_t none;

        for (int i = 1; i <= 64; i++)
                syscall(SYS_rt_sigaction, i, &by_default, NULL, SIGSET_BYTES);
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, SIGSET_BYTES);
}

_noreturn_ static void become_rigd(const struct spawn *s)
{
        const char *const argv[] = {s->path, "--private", s->socket_text, NULL};
        int error;

        syscall(SYS_setsid);
        reset_signals();
        syscall(SYS_dup3, s->null, 0, 0);
        syscall(SYS_dup3, s->socket, SOCKET_FD, 0);
        syscall(SYS_dup3, s->report, REPORT_FD, O_CLOEXEC);
        /* Where the kernel lacks it, descriptors that the program left open are rigd's too, as for any
         * child. */
        syscall(SYS_close_range, REPORT_FD + 1, ~0U, 0);
        syscall(SYS_execve, s->path, argv, environ);
        error = errno;
        syscall(SYS_write, REPORT_FD, &error, sizeof(error));
        leave();
}

/* ---------------------------------------------------------------- around it */

/* A copy of a descriptor above those that rigd gets, so that none is written over. */
static int above(int fd)
{
        return fcntl(fd, F_DUPFD_CLOEXEC, REPORT_FD + 1);
}

static int start(struct spawn *s)
{
        sigset_t all, before;
        int status;
        long pid;

        /* No handler of the program's may run in the children. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid = fork_silently();
        if (pid == 0) {
                if (fork_silently() == 0)
                        become_rigd(s);
                leave();
        }
        status = pid < 0 ? -errno : 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (pid < 0)
                return rig_fail(status, "cannot start a process: %s", rig_strerror(status));
        while (waitpid((pid_t)pid, &status, __WALL) < 0 && errno == EINTR)
                ;
        return 0;
}

/* Reads why the exec failed; nothing comes where it did not. */
static int report(const struct spawn *s, int fd)
{
        int error = 0;
        ssize_t n;

        do {
                n = read(fd, &error, sizeof(error));
        } while (n < 0 && errno == EINTR);
        if (n == 0)
                return 0;
        return rig_fail(-ENOEXEC, "cannot start rigd at %s: %s", s->path, rig_strerror(error));
}

static int spawn(struct spawn *s, int *ret_fd)
{
        _cleanup_(rig_closep) int ours = -EBADF, theirs = -EBADF, told = -EBADF, tell = -EBADF,
                                  null = -EBADF;
        _cleanup_(rig_closep) int high_theirs = -EBADF, high_tell = -EBADF, high_null = -EBADF;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return rig_fail(-errno, "cannot make a socket: %s", rig_strerror(errno));
        ours = pair[0];
        theirs = pair[1];
        if (pipe2(pair, O_CLOEXEC) < 0)
                return rig_fail(-errno, "cannot make a pipe: %s", rig_strerror(errno));
        told = pair[0];
        tell = pair[1];
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        s->null = high_null = above(null);
        s->socket = high_theirs = above(theirs);
        s->report = high_tell = above(tell);
        if (s->null < 0 || s->socket < 0 || s->report < 0)
                return rig_fail(-errno, "cannot open what rigd starts with: %s", rig_strerror(errno));
        snprintf(s->socket_text, sizeof(s->socket_text), "%d", SOCKET_FD);

        r = start(s);
        if (r < 0)
                return r;
        /* Only the children may keep the pipe open now, or its end would never be seen. */
        high_tell = rig_close(high_tell);
        tell = rig_close(tell);
        r = report(s, told);
        if (r < 0)
                return r;
        *ret_fd = rig_steal_fd(&ours);
        return 0;
}

int rig_spawn(int *ret_fd, char *origin, size_t size)
{
        _cleanup_(rig_freep) struct spawn *s = NULL;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return rig_fail_memory();
        r = find(s);
        if (r < 0)
                return r;
        snprintf(origin, size, "the private rigd, started from %s,", s->path);
        return spawn(s, ret_fd);
}
