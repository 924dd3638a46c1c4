/* SPDX-License-Identifier: ISC */
/*
 * The settings are one table: a key, where its value lies, what it counts, its bounds, what it means.
 * Whatever reads or prints settings goes through it.
 */
#include "daemon/config.h"

#include <ctype.h>
#include <string.h>

enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_USEC };

static const struct {
        const char *key;
        size_t offset;
        enum unit unit;
        uint64_t least;
        const char *meaning;
} settings[] = {
        {"PollUSec", offsetof(struct rig_config, poll_usec), UNIT_USEC, 0,
                "microseconds the core polls after activity before it sleeps; 0 never polls"},
        {"ClientsMax", offsetof(struct rig_config, clients_max), UNIT_COUNT, 1, "connections at once"},
        {"ClientObjectsMax", offsetof(struct rig_config, client_objects_max), UNIT_COUNT, 1,
                "buffers, works and images that one connection holds"},
        {"ClientMemoryMax", offsetof(struct rig_config, client_memory_max), UNIT_BYTES, 1,
                "bytes of each adapter's memory that one connection holds"},
        {"ClientRunsMax", offsetof(struct rig_config, client_runs_max), UNIT_COUNT, 1,
                "runs of one connection that are not done; more are not read until some are"},
        {"ClientCacheMax", offsetof(struct rig_config, client_cache_max), UNIT_BYTES, 0,
                "bytes of returned memory kept for one connection's next allocations"},
        {"ClientQueueMax", offsetof(struct rig_config, client_queue_max), UNIT_BYTES, 65536,
                "bytes of answers and events that one connection may leave unread"},
        {"AdapterMemoryMax", offsetof(struct rig_config, adapter_memory_max), UNIT_BYTES, 1,
                "bytes of an adapter's memory that all connections hold, where it has more"},
};

static int parse(const char *s, enum unit unit, uint64_t *ret)
{
        static const char suffixes[] = "KMGT";
        const char *suffix;
        uint64_t n = 0;

        if (strcmp(s, "infinity") == 0) {
                *ret = UINT64_MAX;
                return 0;
        }
        if (!isdigit((unsigned char)*s))
                return -EINVAL;
        for (; isdigit((unsigned char)*s); s++)
                if (rig_mul_overflow(n, (uint64_t)10, &n) || rig_add_overflow(n, (uint64_t)(*s - '0'), &n))
                        return -ERANGE;
        if (*s && unit == UNIT_BYTES && (suffix = strchr(suffixes, *s))) {
                if (rig_mul_overflow(n, UINT64_C(1) << (10 * (suffix - suffixes + 1)), &n))
                        return -ERANGE;
                s++;
        }
        *ret = n;
        return *s ? -EINVAL : 0;
}

int rig_config_set(struct rig_config *config, const char *assignment, struct rig_error *e)
{
        const char *equals = strchr(assignment, '=');
        size_t n = equals ? (size_t)(equals - assignment) : 0;

        if (!equals)
                return rig_error_set(e, -EINVAL, "\"%s\" is no setting: write Key=Value", assignment);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(settings); i++) {
                uint64_t value;
                int r;

                if (strlen(settings[i].key) != n || strncmp(settings[i].key, assignment, n) != 0)
                        continue;
                r = parse(equals + 1, settings[i].unit, &value);
                if (r < 0)
                        return rig_error_set(e, -EINVAL, "%s: \"%s\" is %s", settings[i].key, equals + 1,
                                r == -ERANGE ? "too large"
                                : settings[i].unit == UNIT_BYTES
                                        ? "no size: write a number of bytes, with K, M, G or T"
                                        : "no number");
                if (value < settings[i].least)
                        return rig_error_set(e, -EINVAL, "%s: %s is less than %llu", settings[i].key,
                                equals + 1, (unsigned long long)settings[i].least);
                memcpy((char *)config + settings[i].offset, &value, sizeof(value));
                return 0;
        }
        return rig_error_set(e, -EINVAL, "there is no setting \"%.*s\"", (int)n, assignment);
}

void rig_config_describe(FILE *f)
{
        struct rig_config defaults = RIG_CONFIG_DEFAULTS;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(settings); i++) {
                uint64_t value;

                memcpy(&value, (char *)&defaults + settings[i].offset, sizeof(value));
                if (value == UINT64_MAX)
                        fprintf(f, "  %-18s %s (infinity)\n", settings[i].key, settings[i].meaning);
                else
                        fprintf(f, "  %-18s %s (%llu)\n", settings[i].key, settings[i].meaning,
                                (unsigned long long)value);
        }
}
