/* SPDX-License-Identifier: ISC */
/* The options of the command line. Sets of them are words with a bit for each. */
#ifndef RIGCTL_OPTIONS_H
#define RIGCTL_OPTIONS_H

#include "tools/rigctl/rigctl.h"

enum {
        OPT_SYSTEM,
        OPT_USER,
        OPT_ADDRESS,
        OPT_NO_ASK_PASSWORD,
        OPT_HELP,
        OPT_VERSION,
        OPT_JSON,
        OPT_NO_LEGEND,
        OPT_SORT,
        OPT_REVERSE,
        OPT_DELAY,
        OPT_ITERATIONS,
        OPT_BATCH,
        OPT_CLIENT,
        OPT_TIME,
        OPT_OUTPUT,
        OPT_FORCE,
        OPT_FROM,
        OPT_PATH,
        OPT_IMAGES,
        OPT_MAX,
};
#define CTL_BIT(option) (1u << (option))

/* Sets what the options say, wherever they stand, and moves them before the words; `ret_seen` are those
 * there were. */
int ctl_options_parse(struct ctl *c, int argc, char **argv, uint32_t *ret_seen);

/* Its long name. */
const char *ctl_option_name(int option);
/* Prints a line for each of a set. */
void ctl_options_help(uint32_t which);

#endif
