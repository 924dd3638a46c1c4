/* SPDX-License-Identifier: ISC */
/* rigd's command line. */
#ifndef RIG_OPTIONS_H
#define RIG_OPTIONS_H

#include "daemon/config/files.h"

struct rig_options {
        const char *socket_path; /* or NULL */
        int private_fd;          /* or -EBADF */
        const char *bus;         /* "system", "user" or an address; NULL: none */
        bool check_config;
        bool print_config;
        struct rig_config_sources sources;
        char **command; /* what sources.command points to */
};

#define RIG_OPTIONS_NULL                                                                                    \
        {                                                                                                   \
                .private_fd = -EBADF                                                                        \
        }

/**
 * rig_options_parse() - read the command line
 *
 * Says what is wrong with it, or what was asked for, by itself. Return: 0 to go on, 1 where all was said,
 * negative where something was wrong.
 */
int rig_options_parse(int argc, char **argv, struct rig_options *options);
void rig_options_deinit(struct rig_options *options);

#endif
