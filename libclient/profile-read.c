/* SPDX-License-Identifier: ISC */
/*
 * Reading a profile that has stopped: its events one by one, and all of it as a file.
 *
 * The records stay in their ring, which nobody writes any more, and each reading begins at the first. What
 * rigd wrote there is shown as it is, with two exceptions: texts end (trace/ring.c), and a device whose own
 * record found no room has no name.
 *
 * A file is written beside the one it becomes and takes its place when all of it is there, so that nobody
 * finds half a trace; it is not forced to the disk, since a trace can be written again for as long as its
 * profile lives.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libclient/profile.h"
#include "trace/perfetto.h"

#define NAME_TRIES 100 /* names for the file that becomes the trace */

/* ---------------------------------------------------------------- devices */

static int by_number(const void *a, const void *b)
{
        const struct rig_trace_record *one = a, *other = b;

        return (one->device > other->device) - (one->device < other->device);
}

static const char *device_name(const struct rig_profile *profile, uint32_t number)
{
        const struct rig_trace_record key = {.device = number}, *found = NULL;

        if (profile->n_devices > 0)
                found = bsearch(&key, profile->devices, profile->n_devices, sizeof(key), by_number);
        return found ? found->opened.name : "";
}

int rig_profile_collect_devices(struct rig_profile *profile)
{
        struct rig_trace_record record;
        uint64_t room = 0;

        rig_profile_from_start(profile);
        while (rig_trace_ring_read(&profile->ring, &record)) {
                if (record.kind != RIG_TRACE_DEVICE)
                        continue;
                if (profile->n_devices == room) {
                        struct rig_trace_record *grown;

                        room = RIG_MAX(room * 2, UINT64_C(16));
                        grown = reallocarray(profile->devices, room, sizeof(*grown));
                        if (!grown)
                                return rig_fail_memory();
                        profile->devices = grown;
                }
                profile->devices[profile->n_devices++] = record;
        }
        rig_profile_from_start(profile);
        if (profile->n_devices > 0)
                qsort(profile->devices, profile->n_devices, sizeof(record), by_number);
        return 0;
}

/* ---------------------------------------------------------------- reading */

static int check_stopped(const struct rig_profile *profile)
{
        if (!profile)
                return rig_fail(-EINVAL, "no profile");
        /* acquire: pairs with stop() */
        if (!atomic_load_explicit(&profile->stopped, memory_order_acquire))
                return rig_fail(-EBUSY, "the profile still records: stop it first");
        return 0;
}

static void run_event(const struct rig_trace_run *run, struct rig_profile_event *e)
{
        rig_trace_run_title(run, e->name, sizeof(e->name));
        e->kind = RIG_EVENT_RUN;
        e->value = run->value;
        e->accepted_nsec = run->accepted_nsec;
        e->begin_nsec = run->started_nsec;
        e->end_nsec = run->ended_nsec;
        e->copied_bytes = run->copied_bytes;
        e->filled_bytes = run->filled_bytes;
        e->launches = run->launches;
        e->queues = run->queues;
        e->error = run->error;
}

/* Return: whether the record is an event. */
static bool record_event(const struct rig_profile *profile, const struct rig_trace_record *record,
        struct rig_profile_event *e)
{
        e->device_number = record->device;
        strcpy(e->device, device_name(profile, record->device));
        switch (record->kind) {
        case RIG_TRACE_RUN:
                run_event(&record->run, e);
                return true;
        case RIG_TRACE_WAIT:
                e->kind = RIG_EVENT_WAIT;
                e->value = record->wait.value;
                e->on_value = record->wait.on_value;
                e->on_device_number = record->wait.on;
                strcpy(e->on_device, device_name(profile, record->wait.on));
                return true;
        case RIG_TRACE_MEMORY:
                e->kind = RIG_EVENT_MEMORY;
                strcpy(e->name, record->memory.adapter);
                e->begin_nsec = record->memory.nsec;
                e->live_bytes = record->memory.live_bytes;
                e->cached_bytes = record->memory.cached_bytes;
                return true;
        default:
                return false;
        }
}

static bool next_event(struct rig_profile *profile, struct rig_profile_event *e)
{
        struct rig_trace_record record;
        const struct rig_span *span;

        while (rig_trace_ring_read(&profile->ring, &record)) {
                *e = (struct rig_profile_event)RIG_PROFILE_EVENT_INIT;
                if (record_event(profile, &record, e))
                        return true;
        }
        if (profile->next_span == profile->n_spans)
                return false;
        span = &profile->spans[profile->next_span++];
        *e = (struct rig_profile_event){.kind = RIG_EVENT_SPAN,
                .thread = span->thread,
                .begin_nsec = span->begin_nsec,
                .end_nsec = span->end_nsec};
        strcpy(e->name, span->name);
        return true;
}

RIG_API int rig_profile_next(struct rig_profile *profile, struct rig_profile_event *ret_event)
{
        struct rig_profile_event e;
        uint32_t size;
        int r;

        if (!ret_event || ret_event->size < sizeof(ret_event->size))
                return rig_fail(-EINVAL, "an event needs a struct that says its size");
        size = ret_event->size;
        if (size > sizeof(e))
                return rig_fail(-E2BIG, "the event is of a newer header than the library");
        r = check_stopped(profile);
        if (r < 0)
                return r;
        if (!next_event(profile, &e))
                return 0;
        e.size = size;
        memcpy(ret_event, &e, size);
        return 1;
}

RIG_API int rig_profile_rewind(struct rig_profile *profile)
{
        int r;

        r = check_stopped(profile);
        if (r < 0)
                return r;
        rig_profile_from_start(profile);
        return 0;
}

RIG_API uint64_t rig_profile_dropped(struct rig_profile *profile)
{
        uint64_t spans;

        if (!profile || rig_forked(profile->rig))
                return 0;
        rig_lock_take(&profile->lock);
        spans = profile->spans_dropped;
        rig_lock_drop(&profile->lock);
        return spans + rig_trace_ring_dropped(&profile->ring);
}

/* ---------------------------------------------------------------- writing */

/* The process as rigd has it, which may number it otherwise than it does itself (pid_namespaces(7)). */
static uint32_t own_pid(const struct rig_profile *profile)
{
        return profile->n_devices > 0 ? profile->devices[0].opened.pid : (uint32_t)getpid();
}

static int write_all(struct rig_profile *profile, struct rig_perfetto *perfetto)
{
        struct rig_trace_ring ring = profile->ring;
        struct rig_trace_record record;

        ring.head = ring.tail = 0;
        while (rig_trace_ring_read(&ring, &record)) {
                int r = rig_perfetto_record(perfetto, &record);

                if (r < 0)
                        return r;
        }
        for (uint64_t i = 0; i < profile->n_spans; i++) {
                const struct rig_span *span = &profile->spans[i];

                rig_perfetto_span(perfetto, own_pid(profile), span->thread, span->name, span->begin_nsec,
                        span->end_nsec);
        }
        return rig_perfetto_finish(perfetto, rig_profile_dropped(profile));
}

static int write_file(struct rig_profile *profile, FILE *f)
{
        struct rig_perfetto *perfetto;
        int r;

        r = rig_perfetto_new(f, &perfetto);
        if (r < 0)
                return r;
        r = write_all(profile, perfetto);
        rig_perfetto_free(perfetto);
        return r;
}

/* A file beside `path` that was not there, with the permissions of a new one. `name` has room for 32 more.
 */
static int open_beside(const char *path, char *name, size_t room, FILE **ret_file)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        FILE *f;

        for (int i = 0; fd < 0; i++) {
                snprintf(name, room, "%s.%d-%d.tmp", path, (int)getpid(), i);
                fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
                if (fd < 0 && (errno != EEXIST || i == NAME_TRIES))
                        return -errno;
        }
        f = fdopen(fd, "w");
        if (!f) {
                unlink(name);
                return -ENOMEM;
        }
        rig_steal_fd(&fd);
        *ret_file = f;
        return 0;
}

static int write_path(struct rig_profile *profile, const char *path, char *name, size_t room)
{
        struct stat st;
        FILE *f = NULL;
        int r;

        /* What is there is replaced, and a device or a socket is not to be. */
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        r = open_beside(path, name, room, &f);
        if (r < 0)
                return r;
        r = write_file(profile, f);
        if (fclose(f) != 0 && r == 0)
                r = -errno;
        if (r == 0 && rename(name, path) < 0)
                r = -errno;
        if (r < 0)
                unlink(name);
        return r;
}

RIG_API int rig_profile_write(struct rig_profile *profile, const char *path)
{
        _cleanup_(rig_freep) char *name = NULL;
        size_t room;
        int r;

        r = check_stopped(profile);
        if (r < 0)
                return r;
        if (!path || path[0] == '\0')
                return rig_fail(-EINVAL, "a trace needs the path of its file");
        room = strlen(path) + 32;
        name = malloc(room);
        if (!name)
                return rig_fail_memory();
        r = write_path(profile, path, name, room);
        if (r == -EINVAL)
                return rig_fail(r, "cannot write %s: it is there, and no file that can be replaced", path);
        return r < 0 ? rig_fail(r, "cannot write %s: %s", path, strerrordesc_np(-r)) : 0;
}
