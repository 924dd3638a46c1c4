/* SPDX-License-Identifier: ISC */
/*
 * rigd: arguments, signals, the socket it serves, the loop.
 *
 * It listens on the socket that systemd passed, or on --socket PATH, or serves the one connection of
 * --private FD and ends with it. SIGTERM and SIGINT stop it: clients see their connections end.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "daemon/core.h"
#include "daemon/log.h"

struct arguments {
        const char *socket_path;
        int private_fd;
        struct rig_config config;
};

static void usage(FILE *f)
{
        fputs("rigd - share devices, and order the work on their memory\n\n"
              "usage: rigd --socket PATH [OPTION...]\n"
              "       rigd --private FD [OPTION...]\n"
              "       rigd [OPTION...]            with a socket from systemd\n\n"
              "  --socket PATH        listen on a Unix socket there\n"
              "  --private FD         serve one connection, a SOCK_SEQPACKET socket, and end with it\n"
              "  --set KEY=VALUE      a setting, see below; may be repeated\n"
              "  --log-level LEVEL    err, warning, notice, info or debug (info; private: warning)\n"
              "  --version            say which\n"
              "  --help               this\n\nsettings:\n",
                f);
        rig_config_describe(f);
}

static int _printf_(1, 2) fail(const char *fmt, ...)
{
        va_list ap;

        fputs("rigd: ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputs("; rigd --help lists the options\n", stderr);
        return -EINVAL;
}

static int parse_fd(const char *s, int *ret_fd)
{
        char *end;
        long fd = strtol(s, &end, 10);

        if (!*s || *end || fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GETFD) < 0)
                return fail("--private: %s is no open descriptor", s);
        *ret_fd = (int)fd;
        return 0;
}

/* Return: 0 to go on, 1 where all was said, negative where something was wrong. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
        enum { SOCKET = 256, PRIVATE, SET, LOG_LEVEL, VERSION, HELP };
        static const struct option options[] = {
                {"socket", required_argument, NULL, SOCKET},
                {"private", required_argument, NULL, PRIVATE},
                {"set", required_argument, NULL, SET},
                {"log-level", required_argument, NULL, LOG_LEVEL},
                {"version", no_argument, NULL, VERSION},
                {"help", no_argument, NULL, HELP},
                {0},
        };
        struct rig_error e = RIG_ERROR_NULL;
        int level = -1, r, o;

        opterr = 0;
        while ((o = getopt_long(argc, argv, ":", options, NULL)) != -1) {
                switch (o) {
                case SOCKET:
                        a->socket_path = optarg;
                        break;
                case PRIVATE:
                        r = parse_fd(optarg, &a->private_fd);
                        if (r < 0)
                                return r;
                        break;
                case SET:
                        if (rig_config_set(&a->config, optarg, &e) < 0)
                                return fail("--set: %s", e.text);
                        break;
                case LOG_LEVEL:
                        level = rig_log_level_from_string(optarg);
                        if (level < 0)
                                return fail("--log-level: there is no level \"%s\"", optarg);
                        break;
                case VERSION:
                        puts("rigd " RIG_VERSION);
                        return 1;
                case HELP:
                        usage(stdout);
                        return 1;
                case ':':
                        return fail("%s needs a value", argv[optind - 1]);
                default:
                        return fail("there is no option %s", argv[optind - 1]);
                }
        }
        if (optind < argc)
                return fail("\"%s\" is no option", argv[optind]);
        if (a->socket_path && a->private_fd >= 0)
                return fail("--socket and --private exclude each other");
        rig_log_set_level(level >= 0 ? level : a->private_fd >= 0 ? LOG_WARNING : LOG_INFO);
        return 0;
}

/* Removes the socket of a rigd that is gone: one that nobody listens on. */
static int remove_stale(const struct sockaddr_un *address)
{
        _cleanup_(rig_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct stat st;

        if (lstat(address->sun_path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(address->sun_path) < 0 ? -errno : 0;
}

static int listen_on(const char *path, int *ret_fd)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(rig_closep) int fd = -EBADF;
        int r;

        if (strlen(path) >= sizeof(address.sun_path)) {
                fprintf(stderr, "rigd: --socket: the path has %zu bytes, and a socket's has at most %zu\n",
                        strlen(path), sizeof(address.sun_path) - 1);
                return -ENAMETOOLONG;
        }
        strcpy(address.sun_path, path);
        r = remove_stale(&address);
        if (r >= 0) {
                fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                r = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                                    listen(fd, SOMAXCONN) < 0
                            ? -errno
                            : 0;
        }
        if (r < 0) {
                fprintf(stderr, "rigd: cannot listen on %s: %s\n", path,
                        r == -EADDRINUSE ? "another rigd does"
                        : r == -EEXIST   ? "there is a file, and it is no socket"
                                         : strerror(-r));
                return r;
        }
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

/* Says what went wrong with a socket that was found. */
static int served(int r)
{
        if (r < 0)
                fprintf(stderr, "rigd: its socket cannot be served: %s\n", strerror(-r));
        return r;
}

/* The socket to serve: systemd's, --socket's or --private's. */
static int serve(struct rig_core *core, const struct arguments *a)
{
        int r, fd = -EBADF, n = sd_listen_fds(true);

        if (a->private_fd >= 0) {
                if (fcntl(a->private_fd, F_SETFD, FD_CLOEXEC) < 0 ||
                        sd_is_socket_unix(a->private_fd, SOCK_SEQPACKET, 0, NULL, 0) <= 0) {
                        fprintf(stderr,
                                "rigd: --private: descriptor %d is no connected SOCK_SEQPACKET socket\n",
                                a->private_fd);
                        return -ENOTSOCK;
                }
                return served(rig_core_serve(core, a->private_fd));
        }
        if (a->socket_path) {
                r = listen_on(a->socket_path, &fd);
                if (r < 0)
                        return r;
                return served(rig_core_listen(core, fd));
        }
        if (n <= 0) {
                fputs("rigd: nothing to serve: give --socket PATH, --private FD, or start it from a systemd "
                      "socket; "
                      "rigd --help lists the options\n",
                        stderr);
                return -EINVAL;
        }
        if (n > 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0) {
                fprintf(stderr,
                        "rigd: systemd passed %d descriptors: it takes one, a listening SOCK_SEQPACKET Unix "
                        "socket "
                        "(ListenSequentialPacket=)\n",
                        n);
                return -EINVAL;
        }
        r = fcntl(SD_LISTEN_FDS_START, F_SETFL, O_NONBLOCK);
        return served(r < 0 ? -errno : rig_core_listen(core, SD_LISTEN_FDS_START));
}

static int stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        rig_log(LOG_INFO, "stopping: %s", strsignal((int)info->ssi_signo));
        rig_core_stop(userdata);
        return 0;
}

static int watch_signals(struct rig_core *core, bool private)
{
        sigset_t set;
        int r;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a client's copy past the file size limit is that copy's error */
        r = sd_event_add_signal(core->event, NULL, SIGTERM, stop, core);
        /* A private rigd ends with its program, and not with the terminal's interrupt that the program may
         * catch. */
        if (r >= 0 && !private)
                r = sd_event_add_signal(core->event, NULL, SIGINT, stop, core);
        return r;
}

/* Buffers and files of many clients are descriptors here. */
static void raise_descriptor_limit(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                        rig_log(LOG_WARNING, "no more than %llu descriptors: %s",
                                (unsigned long long)limit.rlim_cur, strerror(errno));
        }
}

int main(int argc, char **argv)
{
        struct arguments a = {.private_fd = -EBADF, .config = RIG_CONFIG_DEFAULTS};
        struct rig_core *core = NULL;
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        r = parse_arguments(argc, argv, &a);
        if (r)
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        raise_descriptor_limit();
        r = rig_core_new(&a.config, rig_drivers, &core, &e);
        if (r < 0) {
                fprintf(stderr, "rigd: %s\n", e.text);
                return EXIT_FAILURE;
        }
        r = watch_signals(core, a.private_fd >= 0);
        if (r < 0)
                fprintf(stderr, "rigd: signals cannot be watched: %s\n", strerror(-r));
        else
                r = serve(core, &a);
        if (r >= 0) {
                sd_notify(false, "READY=1");
                r = rig_core_run(core);
                sd_notify(false, "STOPPING=1");
                if (r < 0)
                        rig_log(LOG_ERR, "rigd ends: %s", strerror(-r));
        }
        if (a.socket_path && core->listen_fd >= 0)
                unlink(a.socket_path);
        rig_core_free(core);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
