/* SPDX-License-Identifier: ISC */
/*
 * rigd, from its start to its end: the command line, the configuration, the core, signals, what it serves,
 * the loop.
 *
 * It listens on the socket that systemd passed, or on --socket PATH, or serves the one connection of
 * --private FD and ends with it. SIGTERM and SIGINT stop it: clients see their connections end. SIGHUP makes
 * it read its configuration again. It needs no privilege, and drops none: whoever starts it chose its user.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "daemon/bus/bus.h"
#include "daemon/core.h"
#include "daemon/log/log.h"
#include "daemon/main/options.h"
#include "daemon/main/reload.h"
#include "daemon/main/sockets.h"

struct rigd {
        struct rig_options options;
        struct rig_core *core;
        struct rig_bus *bus;
        struct rig_reload reload;
        size_t n_wrong; /* mistakes in its configuration */
};

static bool is_private(const struct rigd *d)
{
        return d->options.private_fd >= 0;
}

/* ---------------------------------------------------------------- configuration */

/* --check-config and --print-config. Return: the exit status. */
static int show_config(const struct rig_options *options, const struct rig_config_read *read)
{
        for (size_t i = 0; i < read->n_complaints; i++)
                fprintf(stderr, "%s\n", read->complaints[i]);
        if (options->print_config)
                rig_config_print(read, stdout);
        if (fflush(stdout) != 0) {
                fprintf(stderr, "rigd: the configuration cannot be written: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        return options->check_config && read->n_complaints ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---------------------------------------------------------------- what it serves */

static int serve_private(struct rigd *d, struct rig_error *e)
{
        int r, fd = d->options.private_fd;

        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || sd_is_socket_unix(fd, SOCK_SEQPACKET, 0, NULL, 0) <= 0)
                return rig_error_set(
                        e, -ENOTSOCK, "--private: descriptor %d is no connected SOCK_SEQPACKET socket", fd);
        r = rig_core_serve(d->core, fd);
        return r < 0 ? rig_error_set(e, r, "its socket cannot be served: %s", strerror(-r)) : 0;
}

/* What a listening socket is bound to, for people. */
static void describe(struct rigd *d, int fd)
{
        struct sockaddr_un address = {0};
        socklen_t n = sizeof(address);
        unsigned adapters = 0;

        getsockname(fd, (struct sockaddr *)&address, &n);
        rig_list_for_each (l, &d->core->adapters)
                adapters++;
        snprintf(d->reload.serving, sizeof(d->reload.serving), "Serving %u adapter%s on %.*s", adapters,
                adapters == 1 ? "" : "s", (int)sizeof(address.sun_path),
                address.sun_path[0] ? address.sun_path : "an abstract socket");
        rig_log_clean(d->reload.serving);
}

/* The socket to serve: systemd's, --socket's or --private's. */
static int serve(struct rigd *d, struct rig_error *e)
{
        const char *path = d->options.socket_path;
        int fd, r = rig_socket_from_systemd(!path && !is_private(d), &fd, e);

        if (r < 0)
                return r;
        if (is_private(d))
                return serve_private(d, e);
        if (path)
                r = rig_socket_listen(path, &fd, e);
        else if (fd < 0)
                r = rig_error_set(e, -EINVAL,
                        "nothing to serve: give --socket PATH, --private FD, or start it from a systemd "
                        "socket; "
                        "rigd --help lists the options");
        if (r < 0)
                return r;
        describe(d, fd);
        r = rig_core_listen(d->core, fd);
        return r < 0 ? rig_error_set(e, r, "its socket cannot be served: %s", strerror(-r)) : 0;
}

/* ---------------------------------------------------------------- signals and the bus */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        static const struct rig_log_about about = {.message_id = RIG_LOG_STOPPING};
        struct rigd *d = userdata;

        rig_log_about(LOG_INFO, &about, "stopping: %s", strsignal((int)info->ssi_signo));
        if (!is_private(d))
                sd_notify(false, "STOPPING=1\nSTATUS=Ending its clients and what they handed over");
        rig_core_stop(d->core);
        return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct rigd *d = userdata;

        rig_reload_run(&d->reload, NULL, NULL); /* it logs what there is to say */
        return 0;
}

static int bus_reload(void *userdata, char ***ret_remarks, struct rig_error *e)
{
        struct rigd *d = userdata;

        return rig_reload_run(&d->reload, ret_remarks, e);
}

/*
 * A private rigd ends with its program: not with the terminal's interrupt or its hangup, which the program
 * may catch or outlive.
 */
static int watch_signals(struct rigd *d, struct rig_error *e)
{
        sd_event *event = d->core->event;
        sigset_t set;
        int r;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a client's copy past the file size limit is that copy's error */
        r = sd_event_add_signal(event, NULL, SIGTERM, on_stop, d);
        if (r >= 0 && !is_private(d))
                r = sd_event_add_signal(event, NULL, SIGINT, on_stop, d);
        if (r >= 0 && !is_private(d))
                r = sd_event_add_signal(event, NULL, SIGHUP, on_reload, d);
        if (r >= 0)
                r = sd_event_set_watchdog(event, true);
        return r < 0 ? rig_error_set(e, r, "signals cannot be watched: %s", strerror(-r)) : 0;
}

static int start_bus(struct rigd *d, struct rig_error *e)
{
        struct rig_bus_ops ops = {.reload = bus_reload, .userdata = d};
        int r;

        if (!d->options.bus)
                return 0;
        r = rig_bus_new(d->core, d->options.bus, &ops, &d->bus);
        if (r == -EINVAL)
                return rig_error_set(e, r,
                        "--bus: there is no bus \"%.100s\": write system, user, or a bus's address",
                        d->options.bus);
        return r < 0 ? rig_error_set(e, r, "the bus cannot be served: %s", strerror(-r)) : 0;
}

/* ---------------------------------------------------------------- its life */

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

static int start(struct rigd *d, const struct rig_config *config, struct rig_error *e)
{
        int r = rig_core_new(config, rig_drivers, &d->core, e);

        if (r < 0)
                return r;
        d->reload = (struct rig_reload){.core = d->core, .sources = &d->options.sources};
        r = watch_signals(d, e);
        if (r >= 0)
                r = serve(d, e);
        return r < 0 ? r : start_bus(d, e);
}

static int run(struct rigd *d)
{
        static const struct rig_log_about started = {.message_id = RIG_LOG_STARTED},
                                          ends = {.message_id = RIG_LOG_ENDS};
        int r;

        if (!is_private(d)) {
                rig_log_about(LOG_INFO, &started, "rigd " RIG_VERSION " started. %s", d->reload.serving);
                rig_reload_ready(&d->reload, d->n_wrong);
        }
        r = rig_core_run(d->core);
        if (r < 0)
                rig_log_about(LOG_ERR, &ends, "rigd ends: %s", strerror(-r));
        rig_log_finish();
        return r;
}

static void finish(struct rigd *d)
{
        rig_bus_free(d->bus);
        if (d->options.socket_path && d->core && d->core->listen_fd >= 0)
                unlink(d->options.socket_path);
        rig_core_free(d->core);
        rig_options_deinit(&d->options);
}

int main(int argc, char **argv)
{
        _cleanup_(rig_config_read_freep) struct rig_config_read *read = NULL;
        struct rigd d = {.options = RIG_OPTIONS_NULL};
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        r = rig_options_parse(argc, argv, &d.options);
        if (r) {
                rig_options_deinit(&d.options);
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        }
        r = rig_config_read(&d.options.sources, &read, &e);
        if (r >= 0 && (d.options.check_config || d.options.print_config)) {
                r = show_config(&d.options, read);
                rig_options_deinit(&d.options);
                return r;
        }
        if (r >= 0 && d.options.sources.file && read->unreadable)
                r = rig_error_set(&e, -EINVAL, "--config: %s", read->unreadable);
        if (r >= 0) {
                rig_log_set_level((int)read->config.log_level);
                rig_reload_complain(read);
                d.n_wrong = read->n_complaints;
                raise_descriptor_limit();
                r = start(&d, &read->config, &e);
        }
        if (r >= 0)
                r = run(&d);
        else
                fprintf(stderr, "rigd: %s\n", e.text);
        finish(&d);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
