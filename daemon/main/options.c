/* SPDX-License-Identifier: ISC */
/*
 * See options.h. Every option is checked where it is read, each mistake is one sentence on standard error,
 * and options that would have no effect beside another one are refused. Settings of the command line, also
 * --log-level, are kept as the assignments that they are: they count again with each reading of the files.
 */
#include "daemon/main/options.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/log/log.h"

enum { SOCKET = 256, PRIVATE, BUS, CONFIG, CONFIG_ROOT, CHECK, PRINT, SET, LOG_LEVEL, VERSION, HELP };

static const struct option long_options[] = {
        {"socket", required_argument, NULL, SOCKET},
        {"private", required_argument, NULL, PRIVATE},
        {"bus", required_argument, NULL, BUS},
        {"config", required_argument, NULL, CONFIG},
        {"config-root", required_argument, NULL, CONFIG_ROOT},
        {"check-config", no_argument, NULL, CHECK},
        {"print-config", no_argument, NULL, PRINT},
        {"set", required_argument, NULL, SET},
        {"log-level", required_argument, NULL, LOG_LEVEL},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {0},
};

static void usage(FILE *f)
{
        fputs("rigd - share devices, and order the work on their memory\n\n"
              "usage: rigd --socket PATH [OPTION...]\n"
              "       rigd --private FD [OPTION...]\n"
              "       rigd [OPTION...]            with a socket from systemd\n"
              "       rigd --check-config|--print-config [OPTION...]\n\n"
              "  --socket PATH        listen on a Unix socket there\n"
              "  --private FD         serve one connection, a SOCK_SEQPACKET socket, and end with it;\n"
              "                       reads no configuration files\n"
              "  --bus WHERE          serve admins on D-Bus: system, user, or a bus's address\n"
              "  --config FILE        read FILE alone, instead of rigd.conf and its drop-ins\n"
              "  --config-root DIR    look for rigd.conf and its drop-ins below DIR\n"
              "  --check-config       say what is wrong in the configuration; exit 1 where something is\n"
              "  --print-config       write the configuration and where each value comes from\n"
              "  --set KEY=VALUE      a setting, see below, before that of any file; may be repeated\n"
              "  --log-level LEVEL    err, warning, notice, info or debug (info; private: warning)\n"
              "  --version            say which\n"
              "  --help               this\n\n"
              "Configuration: the first of /etc/rig/rigd.conf, /run/rig/rigd.conf, "
              "/usr/local/lib/rig/rigd.conf\n"
              "and /usr/lib/rig/rigd.conf, then rigd.conf.d/*.conf of each of these folders. SIGHUP reads "
              "it\n"
              "again.\n\n"
              "settings, of its section [Daemon], and their defaults:\n",
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

/* Adds a setting of the command line, which was checked. */
static int add(struct rig_options *o, const char *key, const char *value)
{
        size_t n = o->sources.n_command;
        char **more = realloc(o->command, (n + 1) * sizeof(*more));

        if (!more)
                return fail("there is no memory for its settings");
        o->command = more;
        o->sources.command = (const char *const *)more;
        if (asprintf(&more[n], "%s%s", key, value) < 0)
                return fail("there is no memory for its settings");
        o->sources.n_command++;
        return 0;
}

static int parse_set(struct rig_options *o, const char *assignment)
{
        struct rig_config scratch = RIG_CONFIG_DEFAULTS;
        struct rig_error e = RIG_ERROR_NULL;

        if (rig_config_set(&scratch, assignment, &e) < 0)
                return fail("--set: %s", e.text);
        return add(o, "", assignment);
}

static int parse_level(struct rig_options *o, const char *level)
{
        if (rig_log_level_from_string(level) < 0)
                return fail("--log-level: there is no level \"%s\"", level);
        return add(o, "LogLevel=", level);
}

/* Return: as rig_options_parse(). */
static int parse_one(struct rig_options *o, int option)
{
        switch (option) {
        case SOCKET:
                o->socket_path = optarg;
                return *optarg ? 0 : fail("--socket: the path is empty");
        case PRIVATE:
                return parse_fd(optarg, &o->private_fd);
        case BUS:
                o->bus = optarg;
                return *optarg ? 0 : fail("--bus: write system, user, or a bus's address");
        case CONFIG:
                o->sources.file = optarg;
                return *optarg ? 0 : fail("--config: the path is empty");
        case CONFIG_ROOT:
                o->sources.root = optarg;
                return *optarg ? 0 : fail("--config-root: the path is empty");
        case CHECK:
                o->check_config = true;
                return 0;
        case PRINT:
                o->print_config = true;
                return 0;
        case SET:
                return parse_set(o, optarg);
        case LOG_LEVEL:
                return parse_level(o, optarg);
        case VERSION:
                puts("rigd " RIG_VERSION);
                return 1;
        default:
                usage(stdout);
                return 1;
        }
}

static int check_together(const struct rig_options *o)
{
        if (o->socket_path && o->private_fd >= 0)
                return fail("--socket and --private exclude each other");
        if (o->sources.file && o->sources.root)
                return fail("--config and --config-root exclude each other");
        if (o->private_fd >= 0 && (o->sources.file || o->sources.root))
                return fail(
                        "--private and %s exclude each other: a private rigd reads no configuration files",
                        o->sources.file ? "--config" : "--config-root");
        return 0;
}

/* A program's own rigd behaves the same on every machine, and is quiet: it writes where the program writes.
 */
static int make_private(struct rig_options *o)
{
        o->sources.no_files = true;
        for (size_t i = 0; i < o->sources.n_command; i++)
                if (strncmp(o->command[i], "LogLevel=", strlen("LogLevel=")) == 0)
                        return 0;
        return add(o, "LogLevel=", "warning");
}

int rig_options_parse(int argc, char **argv, struct rig_options *options)
{
        int r, option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
                if (option == ':')
                        return fail("%s needs a value", argv[optind - 1]);
                if (option == '?' && optopt >= SOCKET)
                        return fail("%s: the option takes no value", argv[optind - 1]);
                if (option == '?')
                        return fail("there is no option %s", argv[optind - 1]);
                r = parse_one(options, option);
                if (r)
                        return r;
        }
        if (optind < argc)
                return fail("\"%s\" is no option", argv[optind]);
        r = check_together(options);
        if (r >= 0 && options->private_fd >= 0)
                r = make_private(options);
        return r;
}

void rig_options_deinit(struct rig_options *options)
{
        for (size_t i = 0; i < options->sources.n_command; i++)
                free(options->command[i]);
        free(options->command);
}
