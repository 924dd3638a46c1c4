/* SPDX-License-Identifier: ISC */
/*
 * The options: one table with their names, whether they take a value, and their help. Which verb admits
 * which is the verbs' table's (main.c). Values are read here, and what is wrong with one is told with what
 * would be right.
 */
#include "tools/rigctl/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"
#include "tools/rigctl/words.h"

#define LONG_ONLY 0x100 /* getopt_long()'s value of an option without a letter */

static const struct {
        const char *name;
        char letter; /* or 0 */
        int argument;
        const char *help;
} options[OPT_MAX] = {
        [OPT_SYSTEM] = {"system", 0, no_argument, "    --system            ask the system's rigd (default)"},
        [OPT_USER] = {"user", 0, no_argument, "    --user              ask your user's own rigd"},
        [OPT_ADDRESS] = {"address", 0, required_argument,
                "    --address=ADDRESS   ask the rigd on that bus"},
        [OPT_NO_ASK_PASSWORD] = {"no-ask-password", 0, no_argument,
                "    --no-ask-password   never let polkit ask for a password"},
        [OPT_HELP] = {"help", 'h', no_argument, "-h, --help              this, or of a verb"},
        [OPT_VERSION] = {"version", 0, no_argument, "    --version           say which"},
        [OPT_JSON] = {"json", 'j', optional_argument,
                "-j, --json[=HOW]        JSON: short, pretty, or as fits where it goes"},
        [OPT_NO_LEGEND] = {"no-legend", 0, no_argument,
                "    --no-legend         no heads of columns, no counts below"},
        [OPT_SORT] = {"sort", 0, required_argument, "    --sort=KEY          by what to sort, see above"},
        [OPT_REVERSE] = {"reverse", 'r', no_argument, "-r, --reverse           the other way round"},
        [OPT_DELAY] = {"delay", 'd', required_argument,
                "-d, --delay=SECONDS     between two frames (1); also 500ms, 2min"},
        [OPT_ITERATIONS] = {"iterations", 'n', required_argument,
                "-n, --iterations=N      end after so many frames"},
        [OPT_BATCH] = {"batch", 'b', no_argument,
                "-b, --batch             one frame below the other, as through a pipe"},
        [OPT_CLIENT] = {"client", 0, required_argument, "    --client=N          of one client alone"},
        [OPT_TIME] = {"time", 't', required_argument,
                "-t, --time=SECONDS      for so long; also 500ms, 2min. Else until ^C"},
        [OPT_OUTPUT] = {"output", 'o', required_argument,
                "-o, --output=FILE       where to (rig-trace.json); - is stdout"},
        [OPT_FORCE] = {"force", 'f', no_argument,
                "-f, --force             replace also a file that is no trace"},
        [OPT_FROM] = {"from", 0, required_argument,
                "    --from=URL          where upstream's files are (its tree at kernel.org)"},
        [OPT_PATH] = {"path", 0, required_argument,
                "    --path=FOLDERS      look there first, with : between them"},
        [OPT_IMAGES] = {"images", 0, required_argument,
                "    --images=FILE       of another table than the pinned one, for tests"},
};

const char *ctl_option_name(int option)
{
        return options[option].name;
}

void ctl_options_help(uint32_t which)
{
        for (int i = 0; i < OPT_MAX; i++)
                if (which & CTL_BIT(i))
                        printf("  %s\n", options[i].help);
}

/* ---------------------------------------------------------------- values */

static int parse_json(struct ctl *c, const char *how)
{
        static const char *const hows[] = {"pretty", "short", "off", NULL};
        _cleanup_(rig_freep) char *meant = NULL;
        _cleanup_(rig_freep) char *clean = NULL;

        if (!how)
                c->json = c->screen.terminal ? CTL_JSON_PRETTY : CTL_JSON_SHORT;
        else if (strcmp(how, "pretty") == 0)
                c->json = CTL_JSON_PRETTY;
        else if (strcmp(how, "short") == 0)
                c->json = CTL_JSON_SHORT;
        else if (strcmp(how, "off") == 0)
                c->json = CTL_JSON_OFF;
        else {
                meant = ctl_did_you_mean(how, hows, "");
                clean = ctl_text_clean(how);
                return ctl_fail(
                        CTL_WRONG, "--json: there is no \"%s\"; write pretty, short or off%s", clean, meant);
        }
        return CTL_DONE;
}

static int parse_span(const char *option, const char *word, uint64_t least_usec, uint64_t *ret_usec)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);
        _cleanup_(rig_freep) char *least = ctl_span(least_usec);
        int r = ctl_parse_span(word, ret_usec);

        if (r == -EINVAL)
                return ctl_fail(CTL_WRONG, "--%s: \"%s\" is no time; write seconds, as 0.5, or 500ms, 2min",
                        option, clean);
        if (r < 0 || *ret_usec < least_usec || *ret_usec > 365 * 86400 * RIG_USEC_PER_SEC)
                return ctl_fail(CTL_WRONG, "--%s: \"%s\" is not between %s and 365d", option, clean, least);
        return CTL_DONE;
}

static int parse_iterations(struct ctl *c, const char *word)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);

        if (ctl_parse_number(word, &c->iterations) < 0 || c->iterations == 0)
                return ctl_fail(CTL_WRONG, "--iterations: \"%s\" is no number of frames, from 1", clean);
        return CTL_DONE;
}

static int set_option(struct ctl *c, int option, const char *argument)
{
        switch (option) {
        case OPT_SYSTEM:
                c->where = CTL_SYSTEM;
                break;
        case OPT_USER:
                c->where = CTL_USER;
                break;
        case OPT_ADDRESS:
                c->where = CTL_ADDRESS;
                c->address = argument;
                break;
        case OPT_NO_ASK_PASSWORD:
                c->ask = false;
                break;
        case OPT_JSON:
                return parse_json(c, argument);
        case OPT_NO_LEGEND:
                c->legend = false;
                break;
        case OPT_SORT:
                c->sort = argument;
                break;
        case OPT_REVERSE:
                c->reverse = true;
                break;
        case OPT_DELAY:
                return parse_span("delay", argument, RIG_USEC_PER_SEC / 10, &c->delay_usec);
        case OPT_ITERATIONS:
                return parse_iterations(c, argument);
        case OPT_BATCH:
                c->batch = true;
                break;
        case OPT_CLIENT:
                return ctl_client_number(argument, &c->client);
        case OPT_TIME:
                return parse_span("time", argument, RIG_USEC_PER_MSEC, &c->time_usec);
        case OPT_OUTPUT:
                c->output = argument;
                break;
        case OPT_FORCE:
                c->force = true;
                break;
        case OPT_FROM:
                c->from = argument;
                break;
        case OPT_PATH:
                c->path = argument;
                break;
        case OPT_IMAGES:
                c->images = argument;
                break;
        default:
                break; /* --help and --version are seen, not set */
        }
        return CTL_DONE;
}

/* ---------------------------------------------------------------- the command line */

/* getopt_long() found something wrong: says what. */
static int wrong_option(int found, char **argv)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(argv[optind - 1]);
        _cleanup_(rig_freep) char *meant = NULL;
        const char *names[OPT_MAX + 1] = {0};

        if (found == ':')
                return ctl_fail(CTL_WRONG, "%s needs a value; rigctl --help lists options", clean);
        for (int i = 0; i < OPT_MAX; i++) {
                names[i] = options[i].name;
                if (optopt == LONG_ONLY + i || (optopt && optopt == options[i].letter))
                        return ctl_fail(CTL_WRONG, "--%s takes no value", options[i].name);
        }
        if (optopt) {
                _cleanup_(rig_freep) char *letter = ctl_text_clean((char[]){(char)optopt, '\0'});

                return ctl_fail(CTL_WRONG, "there is no option -%s; rigctl --help lists them", letter);
        }
        clean[strcspn(clean, "=")] = '\0';
        meant = ctl_did_you_mean(clean[1] ? clean + 2 : clean, names, "--");
        return ctl_fail(CTL_WRONG, "there is no option %s; rigctl --help lists them%s", clean, meant);
}

/* What getopt_long() wants to know. -j takes no value, so that letters may follow it. */
static void fill_tables(struct option *table, char *letters)
{
        *letters++ = ':';
        for (int i = 0; i < OPT_MAX; i++) {
                int value = options[i].letter ? options[i].letter : LONG_ONLY + i;

                table[i] = (struct option){options[i].name, options[i].argument, NULL, value};
                if (options[i].letter)
                        *letters++ = options[i].letter;
                if (options[i].letter && options[i].argument == required_argument)
                        *letters++ = ':';
        }
        table[OPT_MAX] = (struct option){0};
        *letters = '\0';
}

int ctl_options_parse(struct ctl *c, int argc, char **argv, uint32_t *ret_seen)
{
        struct option table[OPT_MAX + 1];
        char letters[2 + 2 * OPT_MAX];
        uint32_t seen = 0;
        int found, i, r;

        fill_tables(table, letters);
        opterr = 0;
        while ((found = getopt_long(argc, argv, letters, table, NULL)) != -1) {
                if (found == '?' || found == ':')
                        return wrong_option(found, argv);
                for (i = 0; table[i].val != found; i++)
                        ;
                seen |= CTL_BIT(i);
                r = set_option(c, i, optarg);
                if (r != CTL_DONE)
                        return r;
        }
        *ret_seen = seen;
        return CTL_DONE;
}
