/* SPDX-License-Identifier: ISC */
/*
 * rigctl: asks rigd, over D-Bus, what there is and what happens, and sets what an admin may set.
 *
 * This file has the table of verbs: how many words each takes, which options, its help. An option that a
 * verb has no use for is refused, never ignored, and what is wrong with a call is told before a bus is
 * looked for.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/rigctl/json.h"
#include "tools/rigctl/options.h"
#include "tools/rigctl/rigctl.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"
#include "tools/rigctl/words.h"

/* ---------------------------------------------------------------- verbs */

#define ANY_VERB (CTL_BIT(OPT_JSON) - 1) /* the options before it are everyone's */
#define LISTING  (CTL_BIT(OPT_JSON) | CTL_BIT(OPT_NO_LEGEND))
#define SORTING  (CTL_BIT(OPT_SORT) | CTL_BIT(OPT_REVERSE))
#define TOP      (CTL_BIT(OPT_DELAY) | CTL_BIT(OPT_ITERATIONS) | CTL_BIT(OPT_BATCH))
#define FIRMWARE (CTL_BIT(OPT_TIME) | CTL_BIT(OPT_FROM) | CTL_BIT(OPT_PATH) | CTL_BIT(OPT_IMAGES))
#define TRACE    (CTL_BIT(OPT_CLIENT) | CTL_BIT(OPT_TIME) | CTL_BIT(OPT_OUTPUT) | CTL_BIT(OPT_FORCE))

static const struct verb {
        const char *name;
        int least, most; /* words; most -1: any number */
        const char *words;
        const char *about;
        uint32_t options; /* beside ANY_VERB */
        int (*run)(struct ctl *c, char **args);
        const char *help;
} verbs[] = {
        {"list", 0, 0, "", "list adapters, and what their memory is used for", LISTING, ctl_verb_list,
                "An adapter is what a driver found: memory of the host, its cores, its files, a\n"
                "card."},
        {"show", 1, 2, "NAME|[client] N", "show an adapter or a client, with its devices", LISTING,
                ctl_verb_show,
                "A number is a client's, as `rigctl clients` lists them; `show adapter NAME`\n"
                "shows an adapter whatever its name is."},
        {"clients", 0, 0, "", "list who is connected, and what they hold", LISTING | SORTING,
                ctl_verb_clients,
                "Sort by: number, pid, user, unit, command, devices, objects, bytes, runs, time,\n"
                "copied. What tells clients apart ascends; what is held or done descends.\n"
                "On a terminal there are as many columns as fit; through a pipe, all."},
        {"top", 0, 0, "", "watch adapters and clients", LISTING | SORTING | TOP, ctl_verb_top,
                "Sort by, and the key that does it: time (t), runs (r), copied (c), bytes (b),\n"
                "pid (p), user (u), number (n). R turns the order round, space draws at once,\n"
                "q ends. TIME% is device time by the time that passed: two busy devices have\n"
                "200. Where stdout is no terminal, or with --json (a line each), frames follow\n"
                "one another. The first has no rates, since nothing passed before it."},
        {"stats", 0, 0, "", "show all that is counted since rigd started", LISTING, ctl_verb_stats,
                "Of rigd itself, its settings, and each adapter."},
        {"trace", 0, 0, "", "record what devices do, for ui.perfetto.dev", TRACE, ctl_verb_trace,
                "Records until the time is over, or until ^C or SIGTERM, then completes the\n"
                "file, which appears whole or not at all. A trace that is there is replaced;\n"
                "any other file only with --force. May ask polkit for org.rig.rig1.trace."},
        {"limits", 1, -1, "N [KEY=VALUE...]", "show or set what a client may hold", LISTING, ctl_verb_limits,
                "Keys: ObjectsMax, MemoryMax (bytes of each adapter), RunsMax (in flight),\n"
                "CacheMax (bytes), QueueMax (bytes left unread). Values are numbers, with K, M,\n"
                "G or T by 1024, or infinity. They hold while the client is connected; what it\n"
                "has beyond them it keeps.\n"
                "Setting may ask polkit for org.rig.rig1.set-limits."},
        {"firmware", 1, 2, "list|check|fetch [VENDOR]", "see and fetch the firmware that GPUs need",
                LISTING | FIRMWARE, ctl_verb_firmware,
                "list shows which images are pinned, by digest; check looks for each one, and\n"
                "ends with 0 only if all are there; fetch gets the vendor's that are nowhere\n"
                "into rig's folder: /var/lib/rig/firmware, or with --user the user's own. It\n"
                "goes on where an earlier fetch ended. Asks no rigd."},
        {"log-level", 0, 1, "[LEVEL]", "show or set which lines rigd logs", 0, ctl_verb_log_level,
                "Levels: err, warning, notice, info, debug, until rigd restarts or reloads.\n"
                "Setting may ask polkit for org.rig.rig1.set-log-level."},
        {"reload", 0, 0, "", "let rigd read its configuration again", 0, ctl_verb_reload,
                "As `systemctl reload rigd`; prints what is wrong with it, and what needs a\n"
                "restart to apply. May ask polkit for org.rig.rig1.reload."},
};

static const struct verb *find_verb(const char *name)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(verbs); i++)
                if (strcmp(name, verbs[i].name) == 0)
                        return &verbs[i];
        return NULL;
}

/* ---------------------------------------------------------------- shared by verbs */

int ctl_fail(int status, const char *fmt, ...)
{
        va_list ap;

        ctl_screen_leave();
        fflush(stdout);
        fputs("rigctl: ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
        return status;
}

int ctl_client_number(const char *word, uint64_t *ret_number)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);

        if (ctl_parse_number(word, ret_number) < 0 || *ret_number == 0)
                return ctl_fail(
                        CTL_WRONG, "\"%s\" is no number of a client; rigctl clients lists them", clean);
        return CTL_DONE;
}

static int stdout_error; /* what writing first failed with */

/* stdout's own writing forgets why it failed if it happens within a printf(). */
static ssize_t write_stdout(void *cookie, const char *text, size_t bytes)
{
        size_t left = bytes;

        while (left && !stdout_error) {
                ssize_t n = write(STDOUT_FILENO, text, left);

                if (n < 0 && errno != EINTR)
                        stdout_error = errno;
                text += n > 0 ? n : 0;
                left -= n > 0 ? (size_t)n : 0;
        }
        return (ssize_t)(bytes - left);
}

int ctl_flush(void)
{
        static bool told;

        if (fflush(stdout) == 0 && !stdout_error)
                return CTL_DONE;
        /* Nobody reads any more: as for `| head`, there is nothing to say. */
        if (stdout_error == EPIPE || told)
                return CTL_FAILED;
        told = true;
        return ctl_fail(CTL_FAILED, "cannot write to stdout: %s", strerror(stdout_error));
}

bool ctl_wrote_json(const struct ctl *c, const struct ctl_value *value)
{
        if (c->json == CTL_JSON_OFF)
                return false;
        ctl_json_write(stdout, value, c->json == CTL_JSON_PRETTY);
        return true;
}

/* ---------------------------------------------------------------- help */

static void help(void)
{
        puts("rigctl - see and steer rigd, which shares devices\n\n"
             "usage: rigctl [OPTION...] [VERB [WORD...]]\n\nverbs:");
        for (size_t i = 0; i < RIG_ARRAY_SIZE(verbs); i++) {
                int n = printf("  %s %s", verbs[i].name, verbs[i].words);

                printf("%*s%s\n", RIG_MAX(27 - n, 1), "", verbs[i].about);
        }
        puts("\n`rigctl` alone is `rigctl list`; `rigctl VERB --help` says more.\n\noptions:");
        ctl_options_help(ANY_VERB | LISTING);
        puts("\nexit status:\n"
             "  0  done\n"
             "  1  it failed: rigd or the system said no\n"
             "  2  the call is wrong\n"
             "  3  there is no rigd, or no bus to ask it on\n"
             "  4  you are not allowed to");
}

static void help_of(const struct verb *verb)
{
        printf("rigctl %s - %s\n\nusage: rigctl [OPTION...] %s%s%s\n\n%s\n\noptions:\n", verb->name,
                verb->about, verb->name, *verb->words ? " " : "", verb->words, verb->help);
        ctl_options_help(verb->options | ANY_VERB);
}

/* ---------------------------------------------------------------- the call */

static int unknown_verb(const char *word)
{
        const char *names[RIG_ARRAY_SIZE(verbs) + 1] = {0};
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);
        _cleanup_(rig_freep) char *meant = NULL;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(verbs); i++)
                names[i] = verbs[i].name;
        meant = ctl_did_you_mean(word, names, "");
        return ctl_fail(CTL_WRONG, "there is no verb \"%s\"; rigctl --help lists them%s", clean, meant);
}

/* Whether a verb admits these options and so many words; says why not. */
static int check_call(const struct verb *verb, uint32_t seen, int n_words, char **words)
{
        _cleanup_(rig_freep) char *clean = NULL;

        for (int i = 0; i < OPT_MAX; i++)
                if (seen & CTL_BIT(i) & ~(ANY_VERB | verb->options))
                        return ctl_fail(CTL_WRONG, "--%s is no option of %s; rigctl %s --help lists them",
                                ctl_option_name(i), verb->name, verb->name);
        if (n_words < verb->least)
                return ctl_fail(
                        CTL_WRONG, "%s needs more: rigctl %s %s", verb->name, verb->name, verb->words);
        if (verb->most < 0 || n_words <= verb->most)
                return CTL_DONE;
        clean = ctl_text_clean(words[verb->most]);
        return ctl_fail(CTL_WRONG, "\"%s\" is too much: rigctl %s%s%s", clean, verb->name,
                *verb->words ? " " : "", verb->words);
}

static int call(struct ctl *c, int argc, char **argv)
{
        const struct verb *verb = &verbs[0];
        uint32_t seen = 0;
        char **words;
        int r = ctl_options_parse(c, argc, argv, &seen);

        if (r != CTL_DONE)
                return r;
        if (seen & CTL_BIT(OPT_VERSION)) {
                puts("rigctl " RIG_VERSION);
                return CTL_DONE;
        }
        words = argv + optind;
        if (*words) {
                verb = find_verb(*words);
                if (!verb)
                        return unknown_verb(*words);
        }
        if (seen & CTL_BIT(OPT_HELP)) {
                if (*words)
                        help_of(verb);
                else
                        help();
                return CTL_DONE;
        }
        words += *words ? 1 : 0;
        c->seen = seen;
        r = check_call(verb, seen, (int)(argv + argc - words), words);
        return r != CTL_DONE ? r : verb->run(c, words);
}

int main(int argc, char **argv)
{
        struct ctl c = {
                .ask = true,
                .legend = true,
                .delay_usec = RIG_USEC_PER_SEC,
                .time_usec = RIG_USEC_INFINITY,
                .output = "rig-trace.json",
        };
        int r, flushed;

        /* getopt_long() reorders the words; what is shown to be typed again is as it was typed. */
        c.argv = ctl_grow(NULL, (size_t)argc + 1, sizeof(char *));
        memcpy(c.argv, argv, ((size_t)argc + 1) * sizeof(char *));
        stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stdout});
        if (!stdout)
                ctl_out_of_memory();
        ctl_text_init();
        ctl_screen_look(&c.screen);
        r = call(&c, argc, argv);
        flushed = ctl_flush();
        sd_bus_flush_close_unref(c.bus);
        free(c.argv);
        return r != CTL_DONE ? r : flushed;
}
