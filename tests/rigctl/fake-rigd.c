/* SPDX-License-Identifier: ISC */
/*
 * A rigd that says whatever a test wants said: it serves org.rig.Rig1 on a bus with records out of a file,
 * and knows nothing of devices. It answers by the messages alone, without tables of methods, so it can also
 * say what a rigd never would.
 *
 * Usage: fake-rigd ADDRESS FILE. Prints "ready" once it has the name. Lines of the file:
 *
 *   manager | adapter | client | device   starts a record
 *   s|t|u|b KEY VALUE                     a property of it: text, numbers, truth; texts with \n, \\ and \xNN
 *   * KEY                                 three properties, of all other types
 *   step KEY NUMBER                       adds so much to the property above whenever the record is sent
 *   set KEY VALUE                         one of the manager's Settings
 *   level LEVEL | remark TEXT | page N    the log level; what Reload answers; clients in one answer (64)
 *   flood N | late N                      records of runs that a trace gets at once, and when it is stopped
 *   stuck                                 answers with the first clients whatever was asked for
 *   fail MEMBER ERROR TEXT                answers a call with an error
 *   hang MEMBER | quit MEMBER             never answers; ends without an answer
 *   interactive MEMBER                    refuses a call that does not let anybody be asked for a password
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "base/base.h"
#include "trace/trace.h"

#define RECORDS_MAX  2048
#define KEYS_MAX     40
#define RULES_MAX    16
#define LINE_MAX     4096
#define MANAGER      "org.rig.Rig1.Manager"
#define ROOT         "/org/rig/Rig1"
#define TRACE_BYTES  (UINT64_C(256) << 20)
#define TRACE_DEVICE 7 /* rigd's number of the one device that traces have */

struct property {
        char type;
        char *key, *text;
        uint64_t number, step;
};

struct record {
        char kind; /* the first letter of its line */
        struct property properties[KEYS_MAX];
        size_t n;
};

struct rule {
        char what; /* of fail, hang, quit, interactive: the first letter */
        char *member, *error, *text;
};

static struct record records[RECORDS_MAX];
static size_t n_records, page = 64;
static struct property settings[KEYS_MAX];
static struct rule rules[RULES_MAX];
static size_t n_settings, n_rules, n_remarks;
static char *remarks[RULES_MAX], *level;
static uint64_t flood, late;
static struct rig_trace_ring ring;
static bool stuck;

static _noreturn_ void die(const char *what, const char *of)
{
        fprintf(stderr, "fake-rigd: %s: %s\n", what, of);
        exit(2);
}

/* ---------------------------------------------------------------- the file */

/* A word, moved behind; the rest of the line where `last`. With escapes. */
static char *word(char **line, bool last)
{
        char *start = *line + strspn(*line, " "),
             *end = last ? strchr(start, '\0') : start + strcspn(start, " ");
        char *out = malloc((size_t)(end - start) + 1), *to = out;
        unsigned byte;

        *line = end;
        while (start < end) {
                if (start[0] == '\\' && start[1] == 'x' && sscanf(start + 2, "%2x", &byte) == 1) {
                        *to++ = (char)byte;
                        start += 4;
                } else if (start[0] == '\\') {
                        *to++ = start[1] == 'n' ? '\n' : start[1];
                        start += 2;
                } else {
                        *to++ = *start++;
                }
        }
        *to = '\0';
        return out;
}

static struct property *last_property(void)
{
        struct record *r = &records[n_records - 1];

        if (n_records == 0 || r->n == 0)
                die("a step of nothing", "");
        return &r->properties[r->n - 1];
}

static void property_line(char type, char *line)
{
        struct record *r = &records[n_records - 1];
        struct property *p;

        if (n_records == 0 || r->n == KEYS_MAX)
                die("no room for", line);
        p = &r->properties[r->n++];
        p->type = type;
        p->key = word(&line, false);
        p->text = word(&line, true);
        p->number = strtoull(p->text, NULL, 0);
}

static void rule_line(char what, char *line)
{
        struct rule *rule = &rules[n_rules++];

        rule->what = what;
        rule->member = word(&line, false);
        rule->error = word(&line, false);
        rule->text = word(&line, true);
}

static void take_line(char *line)
{
        _cleanup_(rig_freep) char *what = word(&line, false);

        if (!*what || *what == '#')
                return;
        if (strlen(what) == 1)
                property_line(*what, line);
        else if (strchr("mcda", *what) && !*line && n_records < RECORDS_MAX)
                records[n_records++].kind = *what;
        else if (strcmp(what, "step") == 0)
                last_property()->step = strtoull(strrchr(line, ' '), NULL, 0);
        else if (strcmp(what, "set") == 0)
                settings[n_settings++] =
                        (struct property){.key = word(&line, false), .text = word(&line, true)};
        else if (strcmp(what, "level") == 0)
                level = word(&line, true);
        else if (strcmp(what, "remark") == 0)
                remarks[n_remarks++] = word(&line, true);
        else if (strcmp(what, "page") == 0)
                page = strtoull(line, NULL, 0);
        else if (strcmp(what, "stuck") == 0)
                stuck = true;
        else if (strcmp(what, "flood") == 0)
                flood = strtoull(line, NULL, 0);
        else if (strcmp(what, "late") == 0)
                late = strtoull(line, NULL, 0);
        else if (strcmp(what, "fail") == 0 || strcmp(what, "hang") == 0 || strcmp(what, "quit") == 0 ||
                 strcmp(what, "interactive") == 0)
                rule_line(*what, line);
        else
                die("no such line", what);
}

static void load(const char *path)
{
        FILE *f = fopen(path, "re");
        char line[LINE_MAX];

        if (!f)
                die("cannot open", path);
        while (fgets(line, sizeof(line), f)) {
                line[strcspn(line, "\n")] = '\0';
                take_line(line);
        }
        fclose(f);
}

/* ---------------------------------------------------------------- records */

static struct property *find(struct record *r, const char *key)
{
        for (size_t i = 0; i < r->n; i++)
                if (strcmp(r->properties[i].key, key) == 0)
                        return &r->properties[i];
        return NULL;
}

static uint64_t number_of(struct record *r, const char *key)
{
        struct property *p = find(r, key);

        return p ? p->number : 0;
}

static struct record *find_client(uint64_t number)
{
        for (size_t i = 0; i < n_records; i++)
                if (records[i].kind == 'c' && number_of(&records[i], "Number") == number)
                        return &records[i];
        return NULL;
}

static int append_property(sd_bus_message *m, struct property *p)
{
        int r;

        switch (p->type) {
        case 's':
                r = sd_bus_message_append(m, "{sv}", p->key, "s", p->text);
                break;
        case 'u':
                r = sd_bus_message_append(m, "{sv}", p->key, "u", (uint32_t)p->number);
                break;
        case 'b':
                r = sd_bus_message_append(m, "{sv}", p->key, "b", (int)p->number);
                break;
        case '*': /* what no rigd has yet: every other type */
                r = sd_bus_message_append(m, "{sv}{sv}{sv}", p->key, "(ynqixdog)", 200, -3, 60000, -70000,
                        INT64_MIN, 0.1, "/a/b", "a{sv}", "NewerMap", "a{ias}", 2, -1, 1, "x", 7, 2, "y", "z",
                        "NewerVariant", "v", "(b)", 1);
                break;
        default:
                r = sd_bus_message_append(m, "{sv}", p->key, "t", p->number);
        }
        p->number += p->step;
        return r;
}

static int append_settings(sd_bus_message *m)
{
        int r = sd_bus_message_open_container(m, 'e', "sv");

        r = r < 0 ? r : sd_bus_message_append(m, "s", "Settings");
        r = r < 0 ? r : sd_bus_message_open_container(m, 'v', "a{ss}");
        r = r < 0 ? r : sd_bus_message_open_container(m, 'a', "{ss}");
        for (size_t i = 0; i < n_settings; i++)
                r = r < 0 ? r : sd_bus_message_append(m, "{ss}", settings[i].key, settings[i].text);
        for (int depth = 0; depth < 3; depth++)
                r = r < 0 ? r : sd_bus_message_close_container(m);
        return r;
}

static int append_record(sd_bus_message *m, struct record *record)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (size_t i = 0; i < record->n; i++)
                r = r < 0 ? r : append_property(m, &record->properties[i]);
        if (record->kind == 'm')
                r = r < 0 ? r : append_settings(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Appends the records of a kind whose `key` is more than, or exactly, a number; at most so many. */
static int append_list(
        sd_bus_message *m, char kind, const char *key, uint64_t number, bool more, size_t most)
{
        int r = sd_bus_message_open_container(m, 'a', "a{sv}");

        for (size_t i = 0; i < n_records && most; i++) {
                uint64_t has = key ? number_of(&records[i], key) : 0;

                if (records[i].kind != kind || (key && !(more ? has > number : has == number)))
                        continue;
                most--;
                r = r < 0 ? r : append_record(m, &records[i]);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* ---------------------------------------------------------------- traces */

static void trace_device(void)
{
        struct rig_trace_record record = {.kind = RIG_TRACE_DEVICE, .device = TRACE_DEVICE};

        record.opened = (struct rig_trace_device){.client = 1, .pid = 4711, .id = 1, .n_queues = 1};
        strcpy(record.opened.name, "memory:M");
        strcpy(record.opened.command, "fake");
        rig_trace_ring_write(&ring, &record);
}

static void trace_runs(uint64_t n)
{
        static uint64_t value;

        for (; n; n--) {
                struct rig_trace_record record = {.kind = RIG_TRACE_RUN, .device = TRACE_DEVICE};

                value++;
                record.run = (struct rig_trace_run){.value = value,
                        .accepted_nsec = value * 1000,
                        .started_nsec = value * 1000 + 100,
                        .ended_nsec = value * 1000 + 900,
                        .copied_bytes = 4096,
                        .queues = 1};
                rig_trace_ring_write(&ring, &record);
        }
}

static int start_trace(sd_bus_message *m)
{
        uint64_t client;
        int fd, r = sd_bus_message_read(m, "ht", &fd, &client);

        if (r >= 0)
                r = rig_trace_ring_map(fd, TRACE_BYTES, &ring);
        if (r < 0)
                return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INVALID_ARGS, "no ring: %s", strerror(-r));
        trace_device();
        trace_runs(flood);
        return sd_bus_reply_method_return(m, NULL);
}

static int stop_trace(sd_bus_message *m)
{
        if (!ring.page)
                return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_FAILED, "you have no trace");
        trace_runs(late);
        rig_trace_ring_unmap(&ring);
        ring = (struct rig_trace_ring){0};
        return sd_bus_reply_method_return(m, NULL);
}

/* ---------------------------------------------------------------- calls */

static int set_limits(sd_bus_message *m)
{
        struct record *client;
        uint64_t number, value;
        const char *key;
        int r = sd_bus_message_read(m, "t", &number);

        client = find_client(number);
        if (!client)
                return sd_bus_reply_method_errorf(
                        m, SD_BUS_ERROR_INVALID_ARGS, "there is no client %" PRIu64, number);
        r = r < 0 ? r : sd_bus_message_enter_container(m, 'a', "{st}");
        while (r >= 0 && (r = sd_bus_message_read(m, "{st}", &key, &value)) > 0) {
                struct property *p = find(client, key);

                if (!p)
                        return sd_bus_reply_method_errorf(
                                m, SD_BUS_ERROR_INVALID_ARGS, "there is no limit %s", key);
                p->number = value;
        }
        return r < 0 ? r : sd_bus_reply_method_return(m, NULL);
}

static int answer_list(sd_bus_message *m, const char *member)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        uint64_t number = 0;
        int r = sd_bus_message_new_method_return(m, &answer);

        if (r >= 0 && strcmp(member, "ListAdapters") != 0)
                r = sd_bus_message_read(m, "t", &number);
        if (r < 0)
                return r;
        if (strcmp(member, "ListAdapters") == 0)
                r = append_list(answer, 'a', NULL, 0, false, SIZE_MAX);
        else if (strcmp(member, "ListClients") == 0)
                r = append_list(answer, 'c', "Number", stuck ? 0 : number, true, page);
        else
                r = append_list(
                        answer, 'd', number ? "Client" : NULL, number, false, number ? SIZE_MAX : 256);
        return r < 0 ? r : sd_bus_message_send(answer);
}

static int reload(sd_bus_message *m)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        int r = sd_bus_message_new_method_return(m, &answer);

        r = r < 0 ? r : sd_bus_message_open_container(answer, 'a', "s");
        for (size_t i = 0; i < n_remarks; i++)
                r = r < 0 ? r : sd_bus_message_append(answer, "s", remarks[i]);
        r = r < 0 ? r : sd_bus_message_close_container(answer);
        return r < 0 ? r : sd_bus_message_send(answer);
}

/* The record that a path names. */
static struct record *find_path(const char *path)
{
        _cleanup_(rig_freep) char *name = NULL;

        for (size_t i = 0; i < n_records; i++) {
                struct record *r = &records[i];

                if (r->kind == 'm' && strcmp(path, ROOT) == 0)
                        return r;
                if (r->kind == 'c' && strncmp(path, ROOT "/client/", strlen(ROOT "/client/")) == 0 &&
                        number_of(r, "Number") == strtoull(path + strlen(ROOT "/client/"), NULL, 10))
                        return r;
                if (r->kind == 'a' && sd_bus_path_decode(path, ROOT "/adapter", &name) > 0 &&
                        find(r, "Name") && strcmp(find(r, "Name")->text, name) == 0)
                        return r;
                free(name);
                name = NULL;
        }
        return NULL;
}

static int get_all(sd_bus_message *m)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        struct record *record = find_path(sd_bus_message_get_path(m));
        int r;

        if (!record)
                return sd_bus_reply_method_errorf(
                        m, SD_BUS_ERROR_UNKNOWN_OBJECT, "Unknown object '%s'.", sd_bus_message_get_path(m));
        r = sd_bus_message_new_method_return(m, &answer);
        r = r < 0 ? r : append_record(answer, record);
        return r < 0 ? r : sd_bus_message_send(answer);
}

static int log_level(sd_bus_message *m, bool set)
{
        const char *interface, *property, *value;
        int r = set ? sd_bus_message_read(m, "ssv", &interface, &property, "s", &value)
                    : sd_bus_message_read(m, "ss", &interface, &property);

        if (r < 0 || strcmp(property, "LogLevel") != 0)
                return r < 0 ? r
                             : sd_bus_reply_method_errorf(
                                       m, SD_BUS_ERROR_UNKNOWN_PROPERTY, "no %s", property);
        if (!set)
                return sd_bus_reply_method_return(m, "v", "s", level);
        free(level);
        level = strdup(value);
        return sd_bus_reply_method_return(m, NULL);
}

static int answer(sd_bus_message *m, const char *member)
{
        if (strncmp(member, "List", 4) == 0)
                return answer_list(m, member);
        if (strcmp(member, "SetClientLimits") == 0)
                return set_limits(m);
        if (strcmp(member, "StartTrace") == 0)
                return start_trace(m);
        if (strcmp(member, "StopTrace") == 0)
                return stop_trace(m);
        if (strcmp(member, "Reload") == 0)
                return reload(m);
        if (strcmp(member, "GetAll") == 0)
                return get_all(m);
        if (strcmp(member, "Get") == 0 || strcmp(member, "Set") == 0)
                return log_level(m, *member == 'S');
        return 0;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
        const char *member = sd_bus_message_get_member(m);
        struct rule *rule = NULL;

        if (sd_bus_message_is_method_call(m, NULL, NULL) <= 0)
                return 0;
        for (size_t i = 0; i < n_rules; i++)
                if (strcmp(rules[i].member, member) == 0)
                        rule = &rules[i];
        if (rule && rule->what == 'q')
                _exit(0);
        if (rule && rule->what == 'h')
                return 1;
        if (rule && rule->what == 'f')
                return sd_bus_reply_method_errorf(m, rule->error, "%s", rule->text);
        if (rule && rule->what == 'i' && sd_bus_message_get_allow_interactive_authorization(m) <= 0)
                return sd_bus_reply_method_errorf(
                        m, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "nobody may be asked");
        return answer(m, member);
}

int main(int argc, char **argv)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r;

        if (argc != 3)
                die("usage", "fake-rigd ADDRESS FILE");
        load(argv[2]);
        r = sd_bus_new(&bus);
        r = r < 0 ? r : sd_bus_set_address(bus, argv[1]);
        r = r < 0 ? r : sd_bus_set_bus_client(bus, true);
        r = r < 0 ? r : sd_bus_start(bus);
        r = r < 0 ? r : sd_bus_add_filter(bus, NULL, on_message, NULL);
        r = r < 0 ? r : sd_bus_request_name(bus, "org.rig.Rig1", 0);
        if (r < 0)
                die("cannot serve", strerror(-r));
        puts("ready");
        fflush(stdout);
        for (;;) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, UINT64_MAX);
                if (r < 0)
                        die("the bus", strerror(-r));
        }
}
