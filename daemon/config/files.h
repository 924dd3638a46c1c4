/* SPDX-License-Identifier: ISC */
/*
 * Where rigd's configuration comes from, in systemd's syntax and by its rules: the first rigd.conf that is
 * found in /etc/rig, /run/rig, /usr/local/lib/rig and /usr/lib/rig, then the drop-ins rigd.conf.d/ *.conf of
 * all four, sorted by their names, of which one in a folder named earlier takes the place of its namesakes;
 * then the command line.
 */
#ifndef RIG_CONFIG_FILES_H
#define RIG_CONFIG_FILES_H

#include "daemon/config/config.h"

/* Where to look. Borrowed by whoever reads. */
struct rig_config_sources {
        const char *root;           /* put before every path that is looked at; or NULL */
        const char *file;           /* this file alone, and no drop-ins; or NULL */
        bool no_files;              /* only the command line */
        const char *const *command; /* "Key=Value" of the command line, which were checked */
        size_t n_command;
};

struct rig_config_origin {
        char *path;    /* NULL: nothing set it, or the command line did */
        unsigned line; /* of the path */
        bool command;
};

struct rig_config_read {
        struct rig_config config;
        struct rig_config_origin origins[RIG_CONFIG_KEYS];
        bool wrong[RIG_CONFIG_KEYS]; /* the last assignment to it was wrong, and was left out */
        char **complaints;           /* each "path:line: sentence" */
        size_t n_complaints;
        const char
                *unreadable; /* of them, the first that says that a file or folder cannot be read; or NULL */
        char **paths;        /* the files that were read, in this order */
        size_t n_paths;
};

/**
 * rig_config_read() - read what is configured
 *
 * What is wrong in a file is left out and complained about, as is a file that cannot be read; it is no
 * error. Return: 0; -ENOMEM.
 */
int rig_config_read(
        const struct rig_config_sources *sources, struct rig_config_read **ret_read, struct rig_error *e);
struct rig_config_read *rig_config_read_free(struct rig_config_read *read);
static inline void rig_config_read_freep(struct rig_config_read **read)
{
        rig_config_read_free(*read);
}

/* Writes it as a rigd.conf that says where each value comes from. */
void rig_config_print(const struct rig_config_read *read, FILE *f);

#endif
