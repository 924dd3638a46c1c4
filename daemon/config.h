/* SPDX-License-Identifier: ISC */
/* rigd's settings: Key=Value, with defaults that serve. */
#ifndef RIG_CONFIG_H
#define RIG_CONFIG_H

#include <stdio.h>

#include "base/error.h"

struct rig_config {
        uint64_t poll_usec;          /* PollUSec: how long the core polls after activity before it sleeps */
        uint64_t clients_max;        /* ClientsMax: connections */
        uint64_t client_objects_max; /* ClientObjectsMax: buffers, works and images of a connection */
        uint64_t client_memory_max;  /* ClientMemoryMax: bytes of one adapter's memory a connection holds */
        uint64_t client_runs_max;    /* ClientRunsMax: runs of a connection accepted and not reached */
        uint64_t client_cache_max; /* ClientCacheMax: bytes of returned memory kept for a connection's reuse
                                    */
        uint64_t client_queue_max; /* ClientQueueMax: bytes of answers that a connection leaves unread */
        uint64_t adapter_memory_max; /* AdapterMemoryMax: bytes of an adapter's memory all hold, if less than
                                        it has */
};

#define RIG_CONFIG_DEFAULTS                                                                                 \
        {                                                                                                   \
                .poll_usec = 50, .clients_max = 1024, .client_objects_max = 16384,                          \
                .client_memory_max = UINT64_MAX, .client_runs_max = 16384,                                  \
                .client_cache_max = UINT64_C(256) << 20, .client_queue_max = UINT64_C(1) << 20,             \
                .adapter_memory_max = UINT64_MAX,                                                           \
        }

/* Sets one "Key=Value". Sizes take K, M, G, T; "infinity" is no limit. -EINVAL says what is wrong with it.
 */
int rig_config_set(struct rig_config *config, const char *assignment, struct rig_error *e);

/* Prints every setting and what it means, for --help. */
void rig_config_describe(FILE *f);

#endif
