/* SPDX-License-Identifier: ISC */
/*
 * trace: a ring that rigd writes, read every few milliseconds into the writer that Perfetto opens.
 *
 * The file is complete or not there: it is written beside its name and renamed once it is finished. ^C and
 * SIGTERM are how a recording is meant to end, so they are blocked from the moment it starts and looked for
 * between readings; before that moment they end the program as ever, and a rigd whose caller left the bus
 * stops by itself. A rigd that goes away ends the recording as well; what it had recorded is kept.
 *
 * Nothing but a trace is replaced without being asked to: people type names of programs after -o.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tools/rigctl/bus.h"
#include "tools/rigctl/text.h"
#include "trace/perfetto.h"
#include "trace/trace.h"

#define RING_RECORDS   (UINT64_C(1) << 18)     /* 32 MiB: a quarter of a second of a million runs a second */
#define READ_USEC      (5 * RIG_USEC_PER_MSEC) /* between two readings */
#define RECORDS_AT_ONE (1u << 16)              /* before signals are looked for again */
#define HEAD_BYTES     64

struct recording {
        struct ctl *ctl;
        struct rig_trace_ring ring;
        int ring_fd;
        int signals_fd;
        sd_bus_slot *watch;
        FILE *file;
        char *temporary; /* its name until it is whole; NULL: it is written in place */
        struct rig_perfetto *perfetto;
        uint64_t runs;
        int wrong; /* what writing a record failed with */
        bool rigd_left;
};

/* ---------------------------------------------------------------- the file */

/* How our traces start, up to the first line's end. Return: its length. */
static size_t trace_head(char head[HEAD_BYTES])
{
        struct rig_perfetto *perfetto = NULL;
        char *text = NULL;
        size_t bytes, n;
        FILE *f = open_memstream(&text, &bytes);

        if (!f || rig_perfetto_new(f, &perfetto) < 0 || fflush(f) != 0)
                ctl_out_of_memory();
        n = RIG_MIN(strcspn(text, "\n"), (size_t)HEAD_BYTES);
        memcpy(head, text, n);
        rig_perfetto_free(perfetto);
        fclose(f);
        free(text);
        return n;
}

/* Whether a file may go for a trace: it is empty, or one. */
static bool is_replaceable(const char *path)
{
        _cleanup_(rig_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char head[HEAD_BYTES], there[HEAD_BYTES];
        size_t n = trace_head(head);
        ssize_t got = fd < 0 ? -1 : read(fd, there, n);

        return got == 0 || (got == (ssize_t)n && memcmp(head, there, n) == 0);
}

static int cannot_write(const char *path, int r)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(path);

        return ctl_fail(CTL_FAILED, "cannot write %s: %s", clean, strerror(-r));
}

/* Whether --output may be written: said before anything is recorded. */
static int check_output(const struct ctl *c, bool *ret_in_place)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(c->output);
        struct stat st;

        *ret_in_place = true;
        if (strcmp(c->output, "-") == 0) {
                if (!c->screen.terminal || c->force)
                        return CTL_DONE;
                return ctl_fail(
                        CTL_WRONG, "trace: stdout is a terminal; name a file, or pipe it, or --force it");
        }
        if (!*c->output)
                return ctl_fail(CTL_WRONG, "--output: the name of the file is empty");
        *ret_in_place = stat(c->output, &st) == 0 && !S_ISREG(st.st_mode);
        if (*ret_in_place && S_ISDIR(st.st_mode))
                return ctl_fail(CTL_FAILED, "%s is a folder; name a file in it", clean);
        if (*ret_in_place || c->force || access(c->output, F_OK) < 0 || is_replaceable(c->output))
                return CTL_DONE;
        return ctl_fail(CTL_FAILED,
                "%s is there and is no trace; name another file, or replace it with --force", clean);
}

/* A file beside the one that is asked for, with the rights that a new file has. */
static int open_temporary(const char *path, char **ret_name, FILE **ret_file)
{
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        _cleanup_(rig_freep) char *name = ctl_printf(
                "%.*s.%.200s.XXXXXX", (int)(base - path), path, base); /* names have 255 bytes at most */
        _cleanup_(rig_closep) int fd = mkostemp(name, O_CLOEXEC);
        mode_t mask = umask(0);
        FILE *f;

        umask(mask);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, 0666 & ~mask) < 0 || !(f = fdopen(fd, "w"))) {
                int r = -errno;

                unlink(name);
                return r;
        }
        rig_steal_fd(&fd);
        *ret_name = RIG_STEAL(name);
        *ret_file = f;
        return 0;
}

static int open_output(struct recording *rec, bool in_place)
{
        const char *path = rec->ctl->output;
        int r = 0;

        if (strcmp(path, "-") == 0)
                rec->file = stdout;
        else if (in_place)
                r = (rec->file = fopen(path, "we")) ? 0 : -errno;
        else
                r = open_temporary(path, &rec->temporary, &rec->file);
        if (r < 0)
                return cannot_write(path, r);
        r = rig_perfetto_new(rec->file, &rec->perfetto);
        if (r < 0)
                ctl_out_of_memory();
        return CTL_DONE;
}

/* ---------------------------------------------------------------- rigd */

static const struct ctl_call start_call = {
        CTL_MANAGER_PATH, CTL_MANAGER, "StartTrace", "trace", "org.rig.rig1.trace", false};
static const struct ctl_call stop_call = {
        CTL_MANAGER_PATH, CTL_MANAGER, "StopTrace", "stop the trace", NULL, true};

/* NameOwnerChanged of rigd's name: where it had an owner, whoever recorded is gone. */
static int on_owner(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
        struct recording *rec = userdata;
        const char *name, *before, *after;

        if (sd_bus_message_read(message, "sss", &name, &before, &after) >= 0 && *before)
                rec->rigd_left = true;
        return 0;
}

static int start(struct recording *rec)
{
        static const char rigd_moves[] =
                "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                "arg0='org.rig.Rig1'";
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct ctl *c = rec->ctl;
        int r = ctl_bus_message(c, &start_call, &message);

        if (r != CTL_DONE)
                return r;
        r = sd_bus_add_match(c->bus, &rec->watch, rigd_moves, on_owner, rec);
        if (r < 0)
                return ctl_fail(CTL_FAILED, "cannot watch rigd on the bus: %s", strerror(-r));
        r = sd_bus_message_append(message, "ht", rec->ring_fd, c->client);
        return ctl_bus_call(c, &start_call, message, r, NULL);
}

static int stop(struct recording *rec)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r;

        if (rec->rigd_left)
                return ctl_fail(CTL_NOBODY,
                        "rigd left the bus while it was traced; the trace has what it did before");
        r = ctl_bus_message(rec->ctl, &stop_call, &message);
        return r == CTL_DONE ? ctl_bus_call(rec->ctl, &stop_call, message, 0, NULL) : r;
}

/* ---------------------------------------------------------------- recording */

/* Reads what is there, up to a bound. Return: whether there may be more. */
static bool read_ring(struct recording *rec)
{
        struct rig_trace_record record;

        for (unsigned i = 0; i < RECORDS_AT_ONE; i++) {
                int r;

                if (!rig_trace_ring_read(&rec->ring, &record))
                        return false;
                rec->runs += record.kind == RIG_TRACE_RUN;
                r = rig_perfetto_record(rec->perfetto, &record);
                if (r < 0)
                        rec->wrong = r;
        }
        return true;
}

/* Whether the recording is over: a signal came, rigd left, or nobody reads what is written. */
static bool is_over(struct recording *rec)
{
        struct signalfd_siginfo signal_info;

        while (sd_bus_process(rec->ctl->bus, NULL) > 0)
                ;
        if (sd_bus_is_open(rec->ctl->bus) <= 0)
                rec->rigd_left = true;
        return rec->rigd_left || ferror(rec->file) ||
               read(rec->signals_fd, &signal_info, sizeof(signal_info)) == (ssize_t)sizeof(signal_info);
}

static void record_until(struct recording *rec, uint64_t deadline_usec)
{
        for (;;) {
                struct pollfd signals = {.fd = rec->signals_fd, .events = POLLIN};
                bool more = read_ring(rec);
                uint64_t now = rig_now_usec();

                if (is_over(rec) || now >= deadline_usec)
                        return;
                if (!more)
                        poll(&signals, 1, (int)(RIG_MIN(READ_USEC, deadline_usec - now + 999) / 1000));
        }
}

/* What is left in the ring, and the end of the file. Return: an exit status. */
static int finish(struct recording *rec)
{
        const char *path = rec->ctl->output;
        int r, closed;

        /* A ring at most, whatever a rigd that did not stop goes on writing. */
        for (uint64_t i = 0; i <= RING_RECORDS / RECORDS_AT_ONE && read_ring(rec); i++)
                ;
        r = rig_perfetto_finish(rec->perfetto, rig_trace_ring_dropped(&rec->ring));
        if (r >= 0)
                r = rec->wrong;
        closed = rec->file == stdout ? fflush(stdout) : fclose(rec->file);
        rec->file = NULL;
        if (r >= 0 && closed != 0)
                r = -errno;
        if (r >= 0 && rec->temporary && rename(rec->temporary, path) < 0)
                r = -errno;
        if (r == -EPIPE)
                return CTL_FAILED;
        if (r < 0)
                return cannot_write(path, r);
        rec->temporary = (free(rec->temporary), NULL);
        return CTL_DONE;
}

/* "12 runs, 3 records dropped: rig-trace.json; open it at ui.perfetto.dev" */
static void say_what(const struct recording *rec)
{
        uint64_t dropped = rig_trace_ring_dropped(&rec->ring);
        const char *path = rec->ctl->output;
        _cleanup_(rig_freep) char *clean = ctl_text_clean(strcmp(path, "-") == 0 ? "stdout" : path);

        fprintf(stderr, "%" PRIu64 " run%s, %" PRIu64 " record%s dropped: %s; open it at ui.perfetto.dev\n",
                rec->runs, rec->runs == 1 ? "" : "s", dropped, dropped == 1 ? "" : "s", clean);
}

/* The signals that end a recording, to be read; ^C of a pipeline must not end it before its time, nor after.
 */
static int take_signals(int *ret_fd)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return *ret_fd < 0 ? -errno : 0;
}

static void recording_deinit(struct recording *rec)
{
        if (rec->temporary)
                unlink(rec->temporary);
        if (rec->file && rec->file != stdout)
                fclose(rec->file);
        free(rec->temporary);
        sd_bus_slot_unref(rec->watch);
        rig_perfetto_free(rec->perfetto);
        rig_trace_ring_unmap(&rec->ring);
        rig_close(rec->ring_fd);
        rig_close(rec->signals_fd);
}

static int record(struct recording *rec, bool in_place)
{
        uint64_t time_usec = rec->ctl->time_usec;
        int r = start(rec), stopped;

        if (r != CTL_DONE)
                return r;
        if (take_signals(&rec->signals_fd) < 0)
                return ctl_fail(CTL_FAILED, "cannot wait for signals: %s", strerror(errno));
        r = open_output(rec, in_place);
        if (r != CTL_DONE)
                return r;
        if (time_usec == RIG_USEC_INFINITY && isatty(STDERR_FILENO))
                fputs("recording; ^C ends it\n", stderr);
        record_until(rec, rig_deadline_usec(time_usec));
        stopped = stop(rec);
        r = finish(rec);
        if (r == CTL_DONE)
                say_what(rec);
        return r != CTL_DONE ? r : stopped;
}

int ctl_verb_trace(struct ctl *c, char **args)
{
        struct recording rec = {.ctl = c, .ring_fd = -EBADF, .signals_fd = -EBADF};
        _cleanup_(ctl_value_deinit) struct ctl_value client = {0};
        bool in_place;
        int r = check_output(c, &in_place);

        if (r == CTL_DONE && c->client)
                r = ctl_bus_client(c, c->client, &client);
        if (r != CTL_DONE)
                return r;
        r = rig_trace_ring_new(RING_RECORDS, &rec.ring, &rec.ring_fd);
        if (r < 0)
                return ctl_fail(CTL_FAILED, "cannot make a ring to record into: %s", strerror(-r));
        r = record(&rec, in_place);
        recording_deinit(&rec);
        return r;
}
