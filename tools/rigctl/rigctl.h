/* SPDX-License-Identifier: ISC */
/*
 * rigctl: what all of its verbs share. Each verb is a function that does it, says on stderr what went wrong
 * where it goes wrong, and returns the exit status.
 */
#ifndef RIGCTL_H
#define RIGCTL_H

#include <systemd/sd-bus.h>

#include "tools/rigctl/screen.h"
#include "tools/rigctl/value.h"

/* Exit statuses; main.c documents them. */
enum ctl_exit {
        CTL_DONE,
        CTL_FAILED, /* rigd or the system said no */
        CTL_WRONG,  /* the command line is wrong */
        CTL_NOBODY, /* no bus, or no rigd on it */
        CTL_DENIED, /* not allowed */
};

enum ctl_where { CTL_SYSTEM, CTL_USER, CTL_ADDRESS };
enum ctl_json { CTL_JSON_OFF, CTL_JSON_SHORT, CTL_JSON_PRETTY };

struct ctl {
        char **argv;   /* as it was called */
        uint32_t seen; /* the options there were, as bits (options.h) */

        /* which bus */
        enum ctl_where where;
        const char *address; /* of CTL_ADDRESS */
        bool ask;            /* polkit may ask for a password */
        sd_bus *bus;         /* NULL until the first call */

        /* how to show things */
        enum ctl_json json;
        bool legend; /* heads and counts around tables */
        const char *sort;
        bool reverse;
        struct ctl_screen screen;

        /* top's */
        uint64_t delay_usec;
        uint64_t iterations; /* 0: until it is ended */
        bool batch;

        /* trace's */
        uint64_t client;    /* 0: all */
        uint64_t time_usec; /* RIG_USEC_INFINITY: until it is ended */
        const char *output;
        bool force;

        /* firmware's; NULL: the usual ones */
        const char *from, *path, *images;
};

/* Says "rigctl: ..." on stderr. Return: `status`. */
int ctl_fail(int status, const char *fmt, ...) _printf_(2, 3);
/* A number of a client, as it was typed; says what is wrong with it. */
int ctl_client_number(const char *word, uint64_t *ret_number);
/* Writes out what stdout still holds. Return: CTL_DONE, or CTL_FAILED, said unless nobody reads any more. */
int ctl_flush(void);
/* Where --json asks for it, writes a value so. Return: whether it did. */
bool ctl_wrote_json(const struct ctl *c, const struct ctl_value *value);

/* The verbs: `args` are the words behind them, as many as main.c's table admits, ending with NULL. */
int ctl_verb_list(struct ctl *c, char **args);
int ctl_verb_show(struct ctl *c, char **args);
int ctl_verb_clients(struct ctl *c, char **args);
int ctl_verb_top(struct ctl *c, char **args);
int ctl_verb_stats(struct ctl *c, char **args);
int ctl_verb_trace(struct ctl *c, char **args);
int ctl_verb_limits(struct ctl *c, char **args);
int ctl_verb_firmware(struct ctl *c, char **args);
int ctl_verb_log_level(struct ctl *c, char **args);
int ctl_verb_reload(struct ctl *c, char **args);

#endif
