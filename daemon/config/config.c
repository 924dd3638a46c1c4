/* SPDX-License-Identifier: ISC */
/*
 * The settings are one table: a key, where its value lies, what it counts, its bounds, what it means.
 * Whatever reads, compares or prints settings goes through it. It knows no files (config-files.c) and does
 * not apply anything (reload.c).
 */
#include "daemon/config/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/log/log.h"

enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_USEC, UNIT_LEVEL };

static const struct {
        const char *key;
        size_t offset;
        enum unit unit;
        uint64_t least;
        const char *meaning;
        bool restart; /* adapters were made with it, and reports of it are out */
} settings[] = {
        {"PollUSec", offsetof(struct rig_config, poll_usec), UNIT_USEC, 0,
                "microseconds the core polls after activity before it sleeps; 0 never polls"},
        {"LogLevel", offsetof(struct rig_config, log_level), UNIT_LEVEL, 0,
                "the least important lines that are logged: err, warning, notice, info, debug"},
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
        {"ClientTraceMax", offsetof(struct rig_config, client_trace_max), UNIT_BYTES, 0,
                "bytes of a trace ring that one connection records its devices into; 0 records none"},
        {"AdapterMemoryMax", offsetof(struct rig_config, adapter_memory_max), UNIT_BYTES, 1,
                "bytes of an adapter's memory that all connections hold, where it has more", true},
};
_Static_assert(RIG_ARRAY_SIZE(settings) == RIG_CONFIG_KEYS, "RIG_CONFIG_KEYS counts the settings");
_Static_assert(sizeof(struct rig_config) == RIG_CONFIG_KEYS * sizeof(uint64_t), "each field has a setting");

static const char size_suffixes[] = "KMGT";

static const struct {
        const char *suffix;
        uint64_t usec;
} time_suffixes[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};

static const char *const expected[] = {
        [UNIT_COUNT] = "no number",
        [UNIT_BYTES] = "no size: write a number of bytes, with K, M, G or T",
        [UNIT_USEC] = "no number of microseconds, nor one with us, ms or s",
        [UNIT_LEVEL] = "no level: write err, warning, notice, info or debug",
};

/* ---------------------------------------------------------------- values */

static uint64_t value_of(const struct rig_config *config, size_t i)
{
        uint64_t value;

        memcpy(&value, (const char *)config + settings[i].offset, sizeof(value));
        return value;
}

static void set_value(struct rig_config *config, size_t i, uint64_t value)
{
        memcpy((char *)config + settings[i].offset, &value, sizeof(value));
}

/* What a number's suffix multiplies it by; 0 where there is no such suffix. */
static uint64_t factor(const char *suffix, enum unit unit)
{
        const char *s;

        if (!*suffix)
                return 1;
        if (unit == UNIT_BYTES && (s = strchr(size_suffixes, *suffix)) && !suffix[1])
                return UINT64_C(1) << (10 * (s - size_suffixes + 1));
        for (size_t i = 0; unit == UNIT_USEC && i < RIG_ARRAY_SIZE(time_suffixes); i++)
                if (strcmp(suffix, time_suffixes[i].suffix) == 0)
                        return time_suffixes[i].usec;
        return 0;
}

static int parse_level(const char *s, uint64_t *ret)
{
        int level = rig_log_level_from_string(s);

        if (level < 0)
                return level;
        *ret = (uint64_t)level;
        return 0;
}

static int parse(const char *s, enum unit unit, uint64_t *ret)
{
        uint64_t n = 0, by;

        if (unit == UNIT_LEVEL)
                return parse_level(s, ret);
        if (strcmp(s, "infinity") == 0) {
                *ret = UINT64_MAX;
                return 0;
        }
        if (!isdigit((unsigned char)*s))
                return -EINVAL;
        for (; isdigit((unsigned char)*s); s++)
                if (rig_mul_overflow(n, (uint64_t)10, &n) || rig_add_overflow(n, (uint64_t)(*s - '0'), &n))
                        return -ERANGE;
        if (unit == UNIT_USEC)
                s += strspn(s, " \t");
        by = factor(s, unit);
        if (!by)
                return -EINVAL;
        return rig_mul_overflow(n, by, ret) ? -ERANGE : 0;
}

/* The text that parse() makes the value of. */
static void format(uint64_t value, enum unit unit, char *text, size_t bytes)
{
        const char *suffix = size_suffixes;

        if (unit == UNIT_LEVEL) {
                snprintf(text, bytes, "%s", rig_log_level_to_string((int)value));
                return;
        }
        if (value == UINT64_MAX) {
                snprintf(text, bytes, "infinity");
                return;
        }
        if (unit != UNIT_BYTES || !value || value % 1024) {
                snprintf(text, bytes, "%" PRIu64, value);
                return;
        }
        for (value /= 1024; value % 1024 == 0 && suffix[1]; value /= 1024)
                suffix++;
        snprintf(text, bytes, "%" PRIu64 "%c", value, *suffix);
}

/* ---------------------------------------------------------------- settings */

static size_t find(const char *key, size_t n)
{
        size_t i = 0;

        while (i < RIG_CONFIG_KEYS &&
                (strlen(settings[i].key) != n || strncmp(settings[i].key, key, n) != 0))
                i++;
        return i;
}

static int assign(struct rig_config *config, size_t i, const char *text, struct rig_error *e)
{
        uint64_t value;
        int r = parse(text, settings[i].unit, &value);

        if (r < 0)
                return rig_error_set(e, -EINVAL, "%s: \"%.64s\" is %s", settings[i].key, text,
                        r == -ERANGE ? "too large" : expected[settings[i].unit]);
        if (value < settings[i].least)
                return rig_error_set(e, -EINVAL, "%s: %.64s is less than %" PRIu64, settings[i].key, text,
                        settings[i].least);
        set_value(config, i, value);
        return 0;
}

int rig_config_set(struct rig_config *config, const char *assignment, struct rig_error *e)
{
        const char *equals = strchr(assignment, '=');
        size_t i;
        int r;

        if (!equals)
                return rig_error_set(e, -EINVAL, "\"%.64s\" is no setting: write Key=Value", assignment);
        i = find(assignment, (size_t)(equals - assignment));
        if (i == RIG_CONFIG_KEYS)
                return rig_error_set(e, -EINVAL, "there is no setting \"%.*s\"",
                        (int)RIG_MIN(equals - assignment, 64), assignment);
        r = assign(config, i, equals + 1, e);
        return r < 0 ? r : (int)i;
}

int rig_config_assign(
        struct rig_config *config, const char *key, const char *value, size_t *ret_i, struct rig_error *e)
{
        static const struct rig_config defaults = RIG_CONFIG_DEFAULTS;
        size_t i = find(key, strlen(key));

        *ret_i = i;
        if (i == RIG_CONFIG_KEYS)
                return rig_error_set(e, -EINVAL, "there is no setting \"%.64s\"", key);
        if (*value)
                return assign(config, i, value, e);
        rig_config_copy(config, &defaults, i);
        return 0;
}

bool rig_config_get(
        const struct rig_config *config, size_t i, const char **ret_key, char *value, size_t bytes)
{
        if (i >= RIG_CONFIG_KEYS)
                return false;
        *ret_key = settings[i].key;
        format(value_of(config, i), settings[i].unit, value, bytes);
        return true;
}

const char *rig_config_meaning(size_t i)
{
        return settings[i].meaning;
}

bool rig_config_needs_restart(size_t i)
{
        return settings[i].restart;
}

void rig_config_copy(struct rig_config *to, const struct rig_config *from, size_t i)
{
        set_value(to, i, value_of(from, i));
}

bool rig_config_same(const struct rig_config *a, const struct rig_config *b, size_t i)
{
        return value_of(a, i) == value_of(b, i);
}

void rig_config_describe(FILE *f)
{
        struct rig_config defaults = RIG_CONFIG_DEFAULTS;
        char value[RIG_CONFIG_VALUE_BYTES];
        const char *key;

        for (size_t i = 0; rig_config_get(&defaults, i, &key, value, sizeof(value)); i++)
                fprintf(f, "  %-18s %s (%s)\n", key, settings[i].meaning, value);
}
