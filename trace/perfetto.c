/* SPDX-License-Identifier: ISC */
/*
 * Records, as the JSON of the Trace Event Format.
 *
 * The names below are those of the document "Trace Event Format": its sections "JSON Object Format",
 * "Complete Events" (X), "Counter Events" (C), "Instant Events" (i), "Flow Events" (s, f with bp "e": an end
 * that binds to the slice it lies in) and "Metadata Events" (M: process_name, thread_name,
 * thread_sort_index). Where that document leaves something open, it is what Perfetto's importer does that
 * was followed:
 *
 *   - It has threads by their number alone. So each queue of a device has a number of its own above those
 *     that the kernel gives, in all of the file.
 *   - Slices of a track that overlap without one being in the other are dropped. So a run starts, as drawn,
 *     no earlier than the run before it on that track ended; and lasts a nanosecond at least, so that an
 *     arrow has a slice to start or to end in.
 *   - It reads times as doubles of microseconds, multiplies them and cuts, which loses a nanosecond of some
 *     numbers, and of all after 104 days of uptime. So times count from an epoch of the file's own, which is
 *     told at its end, and a time that would be cut short has half a nanosecond more (write_usec()).
 *   - Some versions take no \u escapes before the key they look for. So names come last.
 *
 * The times of parts are not known, since a device tells of a run when all of it is over: a run is as long
 * on each queue that it has parts on.
 *
 * Memory: an entry for each device that was ever told of, none for runs beyond the last WINDOW of a device.
 * An arrow that would come from an earlier run than those is left out, and the wait is in the slice's
 * arguments alone, as it is where the other device's records were dropped.
 */
#include "trace/perfetto.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"

#define QUEUES    8u /* that a device has at most */
#define WINDOW    64u
#define WAITS_MAX 16u /* of one run; others are left out */

/* Above PID_MAX_LIMIT of the kernel (proc(5), pid_max). */
#define PID_MEMORY  (UINT32_C(1) << 22)
#define PID_UNKNOWN (PID_MEMORY + 1)
#define TID_FIRST   (PID_MEMORY + 2)

#define HEADROOM_NSEC (UINT64_C(3600) * 1000000000) /* events may be older than the first one is */

struct past {
        uint64_t value, end;
        uint32_t queue;
};

struct wait {
        uint64_t value, on_value;
        uint32_t on;
};

struct device {
        uint32_t number;
        bool known; /* its record came */
        uint32_t pid, first_tid, n_queues;
        char name[64];
        uint64_t ends[QUEUES];        /* of the last run that is drawn on each track */
        struct past *past;            /* WINDOW of them, a ring */
        uint64_t n_past;              /* ever */
        struct wait waits[WAITS_MAX]; /* of the run whose record is to come */
        uint32_t n_waits;
};

struct rig_perfetto {
        FILE *f;
        int error; /* the first that writing failed with */
        bool any;  /* an event is written */
        bool counts;
        struct device **devices; /* by ascending number */
        uint32_t n_devices, room;
        uint64_t epoch, last; /* 0 until the first event; the latest time in the file */
        uint64_t n_flows;
};

/* ---------------------------------------------------------------- JSON */

static void failed(struct rig_perfetto *p)
{
        if (p->error == 0)
                p->error = errno > 0 ? -errno : -EIO;
}

static void put(struct rig_perfetto *p, const char *fmt, ...) _printf_(2, 3);
static void put(struct rig_perfetto *p, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        if (vfprintf(p->f, fmt, ap) < 0)
                failed(p);
        va_end(ap);
}

/* Bytes of the UTF-8 character at `s` (RFC 3629); 0: there is none. A NUL ends every string before. */
static size_t character(const uint8_t *s)
{
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        size_t n = s[0] < 0x80   ? 1
                   : s[0] < 0xc0 ? 0
                   : s[0] < 0xe0 ? 2
                   : s[0] < 0xf0 ? 3
                   : s[0] < 0xf8 ? 4
                                 : 0;
        uint32_t c = n > 1 ? s[0] & (0x7fu >> n) : s[0];

        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (s[i] & 0x3f);
        }
        return n > 0 && c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? n : 0;
}

static void put_text(struct rig_perfetto *p, const char *text)
{
        const uint8_t *s = (const uint8_t *)text;

        put(p, "\"");
        while (*s != '\0') {
                size_t n = character(s);

                if (n == 0)
                        put(p, "\xef\xbf\xbd"); /* U+FFFD, the replacement character */
                else if (*s < 0x20 || *s == 0x7f)
                        put(p, "\\u%04x", *s);
                else
                        put(p, "%s%.*s", *s == '"' || *s == '\\' ? "\\" : "", (int)n, (const char *)s);
                s += n > 0 ? n : 1;
        }
        put(p, "\"");
}

static void write_usec(struct rig_perfetto *p, const char *key, uint64_t nsec)
{
        double usec = (double)nsec / 1000.0;
        bool cut = nsec < UINT64_C(1) << 53 && (uint64_t)(usec * 1000.0) != nsec;

        put(p, ",\"%s\":%" PRIu64 ".%03u%s", key, nsec / 1000, (unsigned)(nsec % 1000), cut ? "5" : "");
}

/* Time as the file counts it. */
static uint64_t since_epoch(struct rig_perfetto *p, uint64_t nsec)
{
        if (p->epoch == 0)
                p->epoch = nsec > HEADROOM_NSEC ? nsec - HEADROOM_NSEC : 1;
        p->last = RIG_MAX(p->last, nsec);
        return nsec > p->epoch ? nsec - p->epoch : 0;
}

static void event_begin(struct rig_perfetto *p, const char *phase, uint32_t pid)
{
        put(p, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu32, p->any ? "," : "", phase, pid);
        p->any = true;
}

static void put_name(struct rig_perfetto *p, const char *name)
{
        put(p, ",\"name\":");
        put_text(p, name);
}

/* ---------------------------------------------------------------- devices */

/* Where device `number` is, or would be. */
static uint32_t find(const struct rig_perfetto *p, uint32_t number)
{
        uint32_t low = 0, high = p->n_devices;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (p->devices[middle]->number < number)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct device *get(const struct rig_perfetto *p, uint32_t number)
{
        uint32_t i = find(p, number);

        return i < p->n_devices && p->devices[i]->number == number ? p->devices[i] : NULL;
}

static void device_free(struct device *device)
{
        if (device)
                free(device->past);
        free(device);
}

static int add(struct rig_perfetto *p, uint32_t number, struct device **ret_device)
{
        uint32_t i = find(p, number);
        struct device *device;

        if (p->n_devices == p->room) {
                uint32_t room = RIG_MAX(p->room * 2, 16u);
                struct device **grown = reallocarray(p->devices, room, sizeof(struct device *));

                if (!grown)
                        return -ENOMEM;
                p->devices = grown;
                p->room = room;
        }
        device = calloc(1, sizeof(*device));
        if (!device)
                return -ENOMEM;
        device->past = calloc(WINDOW, sizeof(*device->past));
        if (!device->past) {
                device_free(device);
                return -ENOMEM;
        }
        device->number = number;
        device->first_tid = TID_FIRST + p->n_devices * QUEUES;
        memmove(&p->devices[i + 1], &p->devices[i], (p->n_devices - i) * sizeof(struct device *));
        p->devices[i] = device;
        p->n_devices++;
        *ret_device = device;
        return 0;
}

static void name_process(struct rig_perfetto *p, uint32_t pid, const char *name)
{
        event_begin(p, "M", pid);
        put(p, ",\"tid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":", pid);
        put_text(p, name);
        put(p, "}}");
}

static void name_tracks(struct rig_perfetto *p, const struct device *device)
{
        char name[96];

        for (uint32_t i = 0; i < device->n_queues; i++) {
                uint32_t tid = device->first_tid + i;

                if (device->n_queues > 1)
                        snprintf(name, sizeof(name), "%s queue %" PRIu32, device->name, i);
                else
                        snprintf(name, sizeof(name), "%s", device->name);
                event_begin(p, "M", device->pid);
                put(p, ",\"tid\":%" PRIu32 ",\"name\":\"thread_name\",\"args\":{\"name\":", tid);
                put_text(p, name);
                put(p, "}}");
                event_begin(p, "M", device->pid);
                put(p,
                        ",\"tid\":%" PRIu32
                        ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
                        tid, tid - TID_FIRST + 1);
        }
}

static int device_opened(struct rig_perfetto *p, uint32_t number, const struct rig_trace_device *opened,
        struct device **ret_device)
{
        struct device *device = get(p, number);
        char command[sizeof(opened->command) + 16];
        int r;

        if (!device) {
                r = add(p, number, &device);
                if (r < 0)
                        return r;
        }
        *ret_device = device;
        if (device->known)
                return 0;
        device->known = true;
        /* A process that rigd cannot number, being in another namespace, is one with others of its kind. */
        device->pid = opened->pid > 0 ? opened->pid : PID_UNKNOWN;
        device->n_queues = opened->n_queues > 0 ? RIG_MIN(opened->n_queues, QUEUES) : 1;
        snprintf(device->name, sizeof(device->name), "%.*s", (int)sizeof(opened->name), opened->name);
        if (opened->command[0] != '\0')
                snprintf(command, sizeof(command), "%.*s", (int)sizeof(opened->command), opened->command);
        else
                snprintf(command, sizeof(command), "client %" PRIu64, opened->client);
        name_process(p, device->pid, command);
        name_tracks(p, device);
        return 0;
}

/* A device whose own record found no room. */
static int device_get(struct rig_perfetto *p, uint32_t number, struct device **ret_device)
{
        struct rig_trace_device unknown = {.n_queues = QUEUES, .command = "unknown"};
        int r;

        *ret_device = get(p, number);
        if (*ret_device)
                return 0;
        snprintf(unknown.name, sizeof(unknown.name), "device %" PRIu32, number);
        r = device_opened(p, number, &unknown, ret_device);
        if (r == 0)
                (*ret_device)->known = false;
        return r;
}

/* ---------------------------------------------------------------- runs */

void rig_trace_run_title(const struct rig_trace_run *run, char *title, size_t bytes)
{
        char copies[40] = "", fills[40] = "", launches[40] = "";
        const char *comma;

        if (run->name[0] != '\0') {
                snprintf(title, bytes, "%.*s", (int)sizeof(run->name), run->name);
                return;
        }
        if (run->copied_bytes > 0)
                snprintf(copies, sizeof(copies), "copy %" PRIu64 " bytes", run->copied_bytes);
        comma = copies[0] != '\0' ? ", " : "";
        if (run->filled_bytes > 0)
                snprintf(fills, sizeof(fills), "%sfill %" PRIu64 " bytes", comma, run->filled_bytes);
        comma = copies[0] != '\0' || fills[0] != '\0' ? ", " : "";
        if (run->launches == 1)
                snprintf(launches, sizeof(launches), "%slaunch", comma);
        else if (run->launches > 1)
                snprintf(launches, sizeof(launches), "%s%" PRIu32 " launches", comma, run->launches);
        snprintf(title, bytes, "%s%s%s", copies, fills, launches);
        if (bytes > 0 && title[0] == '\0')
                snprintf(title, bytes, "run");
}

static void put_waits(struct rig_perfetto *p, const struct device *device, uint64_t value)
{
        const char *comma = ",\"after\":[";

        for (uint32_t i = 0; i < device->n_waits; i++) {
                const struct wait *wait = &device->waits[i];
                const struct device *on = wait->on > 0 ? get(p, wait->on) : NULL;
                char text[112];

                if (wait->value != value)
                        continue;
                if (wait->on == 0)
                        snprintf(text, sizeof(text), "work of another program");
                else if (!on)
                        snprintf(
                                text, sizeof(text), "device %" PRIu32 " %" PRIu64, wait->on, wait->on_value);
                else
                        snprintf(text, sizeof(text), "%s %" PRIu64, on->name, wait->on_value);
                put(p, "%s", comma);
                put_text(p, text);
                comma = ",";
        }
        if (comma[1] != '\0')
                return; /* none was written */
        put(p, "]");
}

static void put_args(struct rig_perfetto *p, const struct device *device, const struct rig_trace_run *run)
{
        put(p, ",\"args\":{\"device\":");
        put_text(p, device->name);
        put(p,
                ",\"number\":%" PRIu32 ",\"value\":%" PRIu64 ",\"copied_bytes\":%" PRIu64
                ",\"filled_bytes\":%" PRIu64 ",\"launches\":%" PRIu32,
                device->number, run->value, run->copied_bytes, run->filled_bytes, run->launches);
        write_usec(p, "waited_usec",
                run->started_nsec > run->accepted_nsec ? run->started_nsec - run->accepted_nsec : 0);
        if (run->error != 0)
                put(p, ",\"error\":\"%s\"", rig_errno_name(run->error));
        put_waits(p, device, run->value);
        put(p, "}}");
}

static void put_arrow_end(struct rig_perfetto *p, const char *phase, const struct device *device,
        uint32_t queue, uint64_t nsec)
{
        event_begin(p, phase, device->pid);
        put(p, ",\"tid\":%" PRIu32, device->first_tid + queue);
        write_usec(p, "ts", since_epoch(p, nsec));
        put(p, ",\"id\":%" PRIu64 ",\"cat\":\"wait\"%s,\"name\":\"wait\"}", p->n_flows,
                phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

/* Arrows from what the run waited for to its start, on the first of its tracks. */
static void put_arrows(
        struct rig_perfetto *p, const struct device *device, uint64_t value, uint32_t queue, uint64_t start)
{
        for (uint32_t i = 0; i < device->n_waits; i++) {
                const struct wait *wait = &device->waits[i];
                const struct device *on = wait->on > 0 ? get(p, wait->on) : NULL;
                uint64_t have = on ? RIG_MIN(on->n_past, (uint64_t)WINDOW) : 0;

                if (wait->value != value)
                        continue;
                for (uint64_t j = 0; j < have; j++) {
                        const struct past *past = &on->past[(on->n_past - 1 - j) % WINDOW];

                        if (past->value != wait->on_value)
                                continue;
                        p->n_flows++;
                        put_arrow_end(p, "s", on, past->queue, past->end - 1);
                        put_arrow_end(p, "f", device, queue, start);
                        break;
                }
        }
}

/* Drops the waits of this run and of earlier ones, whose records found no room. */
static void forget_waits(struct device *device, uint64_t value)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < device->n_waits; i++)
                if (device->waits[i].value > value)
                        device->waits[n++] = device->waits[i];
        device->n_waits = n;
}

/* Draws the run on each of its tracks. `first` is the first of them, where arrows end. */
static void draw_run(struct rig_perfetto *p, struct device *device, const struct rig_trace_run *run,
        uint32_t queues, uint32_t first)
{
        uint64_t start = run->started_nsec, end;
        char title[160];

        for (uint32_t i = 0; i < QUEUES; i++)
                if (queues & 1u << i)
                        start = RIG_MAX(start, device->ends[i]);
        end = RIG_MAX(run->ended_nsec, start + 1);
        rig_trace_run_title(run, title, sizeof(title));
        for (uint32_t i = 0; i < QUEUES; i++) {
                if (!(queues & 1u << i))
                        continue;
                event_begin(p, "X", device->pid);
                put(p, ",\"tid\":%" PRIu32, device->first_tid + i);
                write_usec(p, "ts", since_epoch(p, start));
                write_usec(p, "dur", since_epoch(p, end) - since_epoch(p, start));
                put(p, ",\"cat\":\"run\"");
                put_name(p, title);
                put_args(p, device, run);
                device->ends[i] = end;
        }
        put_arrows(p, device, run->value, first, start);
        device->past[device->n_past++ % WINDOW] =
                (struct past){.value = run->value, .end = end, .queue = first};
}

static int write_run(struct rig_perfetto *p, uint32_t number, const struct rig_trace_run *run)
{
        struct device *device;
        uint32_t queues;
        int r;

        r = device_get(p, number, &device);
        if (r < 0)
                return r;
        queues = run->queues & ((1u << device->n_queues) - 1);
        queues = queues != 0 ? queues : 1; /* one without parts is drawn too */
        draw_run(p, device, run, queues, (uint32_t)__builtin_ctz(queues));
        forget_waits(device, run->value);
        return 0;
}

static int note_wait(struct rig_perfetto *p, uint32_t number, const struct rig_trace_wait *wait)
{
        struct device *device;
        int r;

        r = device_get(p, number, &device);
        if (r < 0)
                return r;
        if (device->n_waits == WAITS_MAX && device->waits[0].value < wait->value)
                forget_waits(device, wait->value - 1);
        if (device->n_waits < WAITS_MAX)
                device->waits[device->n_waits++] =
                        (struct wait){.value = wait->value, .on = wait->on, .on_value = wait->on_value};
        return 0;
}

/* ---------------------------------------------------------------- memory */

static void write_memory(struct rig_perfetto *p, const struct rig_trace_memory *memory)
{
        char name[sizeof(memory->adapter) + 16];

        if (!p->counts)
                name_process(p, PID_MEMORY, "memory");
        p->counts = true;
        event_begin(p, "C", PID_MEMORY);
        write_usec(p, "ts", since_epoch(p, memory->nsec));
        snprintf(name, sizeof(name), "%.*s memory", (int)sizeof(memory->adapter), memory->adapter);
        put_name(p, name);
        put(p, ",\"args\":{\"live\":%" PRIu64 ",\"cached\":%" PRIu64 "}}", memory->live_bytes,
                memory->cached_bytes);
}

/* ---------------------------------------------------------------- the file */

int rig_perfetto_new(FILE *f, struct rig_perfetto **ret_perfetto)
{
        struct rig_perfetto *p;

        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->f = f;
        put(p, "{\"traceEvents\":[");
        *ret_perfetto = p;
        return 0;
}

struct rig_perfetto *rig_perfetto_free(struct rig_perfetto *p)
{
        if (!p)
                return NULL;
        for (uint32_t i = 0; i < p->n_devices; i++)
                device_free(p->devices[i]);
        free(p->devices);
        free(p);
        return NULL;
}

int rig_perfetto_record(struct rig_perfetto *p, const struct rig_trace_record *record)
{
        struct device *device;

        switch (record->kind) {
        case RIG_TRACE_DEVICE:
                return device_opened(p, record->device, &record->opened, &device);
        case RIG_TRACE_RUN:
                return write_run(p, record->device, &record->run);
        case RIG_TRACE_WAIT:
                return note_wait(p, record->device, &record->wait);
        case RIG_TRACE_MEMORY:
                write_memory(p, &record->memory);
                return 0;
        default:
                return 0; /* of a newer rigd */
        }
}

void rig_perfetto_span(struct rig_perfetto *p, uint32_t pid, uint32_t tid, const char *name,
        uint64_t begin_nsec, uint64_t end_nsec)
{
        uint64_t end = RIG_MAX(begin_nsec, end_nsec);

        event_begin(p, "X", pid);
        put(p, ",\"tid\":%" PRIu32, tid);
        write_usec(p, "ts", since_epoch(p, begin_nsec));
        write_usec(p, "dur", since_epoch(p, end) - since_epoch(p, begin_nsec));
        put(p, ",\"cat\":\"span\"");
        put_name(p, name);
        put(p, "}");
}

int rig_perfetto_finish(struct rig_perfetto *p, uint64_t dropped)
{
        char text[64];

        if (dropped > 0) {
                snprintf(text, sizeof(text), "%" PRIu64 " records found no room", dropped);
                event_begin(p, "i", PID_MEMORY);
                put(p, ",\"s\":\"g\"");
                write_usec(p, "ts", since_epoch(p, p->last));
                put_name(p, text);
                put(p, "}");
        }
        put(p, "\n],\"otherData\":{\"epoch_nsec\":%" PRIu64 ",\"dropped\":%" PRIu64 "}}\n", p->epoch,
                dropped);
        if (fflush(p->f) != 0)
                failed(p);
        return p->error;
}
