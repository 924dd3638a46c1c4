/* SPDX-License-Identifier: ISC */
/*
 * rigd's settings: Key=Value, with defaults that serve. Where they are read from is config-files.h.
 */
#ifndef RIG_CONFIG_H
#define RIG_CONFIG_H

#include <stdio.h>
#include <syslog.h>

#include "base/error.h"

struct rig_config {
        uint64_t poll_usec;          /* PollUSec: how long the core polls after activity before it sleeps */
        uint64_t log_level;          /* LogLevel: LOG_ERR ... LOG_DEBUG */
        uint64_t clients_max;        /* ClientsMax: connections */
        uint64_t client_objects_max; /* ClientObjectsMax: buffers, works and images of a connection */
        uint64_t client_memory_max;  /* ClientMemoryMax: bytes of one adapter's memory a connection holds */
        uint64_t client_runs_max;    /* ClientRunsMax: runs of a connection accepted and not reached */
        uint64_t client_cache_max;   /* ClientCacheMax: bytes of returned memory kept for its reuse */
        uint64_t client_queue_max;   /* ClientQueueMax: bytes of answers that a connection leaves unread */
        uint64_t client_trace_max;   /* ClientTraceMax: bytes of a connection's own trace ring */
        uint64_t adapter_memory_max; /* AdapterMemoryMax: bytes of an adapter's memory all hold at most */
};

#define RIG_CONFIG_DEFAULTS                                                                                 \
        {                                                                                                   \
                .poll_usec = 50, .log_level = LOG_INFO, .clients_max = 1024, .client_objects_max = 16384,   \
                .client_memory_max = UINT64_MAX, .client_runs_max = 16384,                                  \
                .client_cache_max = UINT64_C(256) << 20, .client_queue_max = UINT64_C(1) << 20,             \
                .client_trace_max = UINT64_C(16) << 20, .adapter_memory_max = UINT64_MAX,                   \
        }

#define RIG_CONFIG_KEYS        10u
#define RIG_CONFIG_VALUE_BYTES 32u /* more than any value as it is written */

/**
 * rig_config_set() - one "Key=Value", as on a command line
 * @assignment: without blanks; sizes take K, M, G, T, times us, ms, s; "infinity" is no limit
 *
 * Return: which setting it was; -EINVAL with what is wrong with it, and nothing is set.
 */
int rig_config_set(struct rig_config *config, const char *assignment, struct rig_error *e);

/**
 * rig_config_assign() - one assignment of a file
 * @value: as rig_config_set() takes it; "" is the default
 * @ret_i: which setting it is, also where the value is wrong; RIG_CONFIG_KEYS where there is none
 *
 * Return: 0; -EINVAL with what is wrong with it, and nothing is set.
 */
int rig_config_assign(
        struct rig_config *config, const char *key, const char *value, size_t *ret_i, struct rig_error *e);

/**
 * rig_config_get() - a setting as rigd.conf would have it
 * @i:       0 ... RIG_CONFIG_KEYS - 1, in the order of the documentation
 * @ret_key: static text
 * @value:   gets the text, of RIG_CONFIG_VALUE_BYTES at most
 *
 * Return: false where there is no such setting any more.
 */
bool rig_config_get(
        const struct rig_config *config, size_t i, const char **ret_key, char *value, size_t bytes);

/* What a setting means, for a comment above it. Static text. */
const char *rig_config_meaning(size_t i);
/* Whether a rigd that runs goes on with the old value: it counts when rigd starts. */
bool rig_config_needs_restart(size_t i);
/* Takes over one setting. */
void rig_config_copy(struct rig_config *to, const struct rig_config *from, size_t i);
bool rig_config_same(const struct rig_config *a, const struct rig_config *b, size_t i);

/* Prints every setting, its default and what it means, for --help. */
void rig_config_describe(FILE *f);

#endif
