/* SPDX-License-Identifier: ISC */
/* Profiles: what is recorded of runs, waits, memory and spans, and of nobody else. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/api/api.h"

#define EVENTS_MAX 4096

static struct rig *rig;
static struct rig_device *host, *m;
static struct rig_profile *profile;

/* Of the last profile that was read. */
static struct rig_profile_event events[EVENTS_MAX];
static size_t n_events;

static uint64_t now_nsec(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void open_all(void)
{
        rig = test_connect();
        OK(rig_device_open(rig, "host", &host));
        OK(rig_device_open(rig, "memory:M,async", &m));
}

static void close_all(void)
{
        rig_device_unref(m);
        rig_device_unref(host);
        rig_unref(rig);
}

static struct rig_buffer *new_buffer(struct rig_device *device, uint64_t bytes)
{
        struct rig_buffer *b;

        OK(rig_buffer_new(device, bytes, RIG_MEMORY_DEVICE, &b));
        return b;
}

static void read_events(void)
{
        for (n_events = 0;; n_events++) {
                struct rig_profile_event *e = &events[n_events];

                CHECK(n_events < EVENTS_MAX);
                *e = (struct rig_profile_event)RIG_PROFILE_EVENT_INIT;
                if (OK(rig_profile_next(profile, e)) == 0)
                        break;
        }
}

static void stop_and_read(void)
{
        OK(rig_profile_stop(profile));
        read_events();
}

/* The event `i`-th of its kind; of the device, where one is given. */
static const struct rig_profile_event *event(uint32_t kind, const char *device, size_t i)
{
        for (size_t j = 0; j < n_events; j++)
                if (events[j].kind == kind && (!device || strcmp(events[j].device, device) == 0) && i-- == 0)
                        return &events[j];
        return NULL;
}

static size_t count(uint32_t kind, const char *device)
{
        size_t n = 0;

        while (event(kind, device, n))
                n++;
        return n;
}

/* ---------------------------------------------------------------- runs */

static void runs_are_recorded_with_their_names_bytes_and_times(void)
{
        const struct rig_profile_event *e;
        struct rig_buffer *a, *b;
        struct rig_work *work;
        struct rig_point p;
        uint64_t before, after;

        open_all();
        a = new_buffer(m, 4096);
        b = new_buffer(m, 4096);
        OK(rig_work_new(m, &work));
        OK(rig_work_slot(work, RIG_WRITE));
        OK(rig_work_slot(work, RIG_READ));
        OK(rig_work_copy(work, 0, 0, 0, 1, 0, 4000));
        OK(rig_work_fill(work, 0, 0, 4000, 64, 7));
        OK(rig_work_set_name(work, "die Größe"));
        OK(rig_work_prepare(work));
        OK(rig_buffer_fill(a, 0, 4096, 1, NULL)); /* before the profile: not in it */
        OK(rig_buffer_wait(a, RIG_READ, RIG_INFINITY));

        OK(rig_profile_start(rig, 0, &profile));
        before = now_nsec();
        OK(rig_submit(work, (struct rig_buffer *[]){b, a}, 2, NULL, 0, NULL));
        OK(rig_buffer_copy(a, 0, b, 100, 300, NULL));
        OK(rig_buffer_fill(a, 0, 128, 9, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_profile_stop(profile));
        after = now_nsec();
        OK(rig_buffer_fill(a, 0, 4096, 1, NULL)); /* after it: not in it */
        OK(rig_sync(rig));
        read_events();

        CHECK(count(RIG_EVENT_RUN, NULL) == 3 && count(RIG_EVENT_SPAN, NULL) == 0);
        for (size_t i = 0; i < 3; i++) {
                e = event(RIG_EVENT_RUN, NULL, i);
                CHECK(strcmp(e->device, "memory:M,async") == 0 && e->device_number > 0);
                CHECK(e->value == p.value - 2 + i && e->error == 0 && e->launches == 0 && e->queues == 1);
                CHECK(before <= e->accepted_nsec && e->accepted_nsec <= e->begin_nsec);
                CHECK(e->begin_nsec <= e->end_nsec && e->end_nsec <= after);
                /* a device's runs are one after another */
                CHECK(i == 0 || event(RIG_EVENT_RUN, NULL, i - 1)->end_nsec <= e->begin_nsec);
        }
        e = event(RIG_EVENT_RUN, NULL, 0);
        CHECK(strcmp(e->name, "die Größe") == 0 && e->copied_bytes == 4000 && e->filled_bytes == 64);
        e = event(RIG_EVENT_RUN, NULL, 1);
        CHECK(strcmp(e->name, "copy 300 bytes") == 0 && e->copied_bytes == 300 && e->filled_bytes == 0);
        e = event(RIG_EVENT_RUN, NULL, 2);
        CHECK(strcmp(e->name, "fill 128 bytes") == 0 && e->copied_bytes == 0 && e->filled_bytes == 128);
        CHECK(rig_profile_dropped(profile) == 0);
        rig_profile_unref(profile);
        rig_work_unref(work);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        close_all();
}

static void names_of_works_are_checked(void)
{
        char name[49];
        struct rig_work *work;

        open_all();
        memset(name, 'n', sizeof(name));
        name[48] = '\0';
        OK(rig_work_new(m, &work));
        CHECK_RETURNS(-ENAMETOOLONG, rig_work_set_name(work, name));
        name[47] = '\0';
        OK(rig_work_set_name(work, name));
        CHECK_RETURNS(-EILSEQ, rig_work_set_name(work, "latin \xfc"));
        CHECK_RETURNS(-EINVAL, rig_work_set_name(work, NULL));
        CHECK_RETURNS(-EINVAL, rig_work_set_name(NULL, "name"));
        OK(rig_work_prepare(work));
        CHECK_RETURNS(-EBUSY, rig_work_set_name(work, "late"));

        OK(rig_profile_start(rig, 0, &profile));
        OK(rig_submit(work, NULL, 0, NULL, 0, NULL));
        OK(rig_wait(m, 1, RIG_INFINITY));
        stop_and_read();
        CHECK(count(RIG_EVENT_RUN, NULL) == 1 && strcmp(event(RIG_EVENT_RUN, NULL, 0)->name, name) == 0);
        rig_profile_unref(profile);
        rig_work_unref(work);
        close_all();
}

static void a_failed_run_has_its_error_and_a_lost_one_too(void)
{
        static const char names[] = "steered-image\nfail\nfault\nnop\n";
        static const char *const entries[] = {"nop", "fail", "fault"};
        static const int errors[] = {0, -EIO, -ENODEV};
        struct rig_device *steered, *again;
        struct rig_image *image;
        struct rig_point p;

        rig = test_connect();
        OK(rig_device_open(rig, "steered:0", &steered));
        OK(rig_image_load(steered, names, sizeof(names) - 1, &image));
        OK(rig_profile_start(rig, 0, &profile));
        for (size_t i = 0; i < 3; i++) {
                struct rig_launch launch = RIG_LAUNCH_INIT;

                launch.image = image;
                OK(rig_image_entry(image, entries[i], &launch.entry));
                OK(rig_launch_once(steered, &launch, NULL, NULL, 0, &p));
                (void)rig_point_wait(&p, RIG_INFINITY);
        }
        CHECK_RETURNS(-ENODEV, rig_device_lost(steered));
        /* The lost run is over once the adapter is known to do no more of it, which an open waits for. */
        OK(rig_device_open(rig, "steered:0", &again));
        rig_device_unref(again);
        stop_and_read();
        CHECK(count(RIG_EVENT_RUN, "steered:0") == 3);
        for (size_t i = 0; i < 3; i++) {
                CHECK(event(RIG_EVENT_RUN, "steered:0", i)->error == errors[i]);
                CHECK(event(RIG_EVENT_RUN, "steered:0", i)->launches == 1);
        }
        rig_profile_unref(profile);
        rig_image_unref(image);
        rig_device_unref(steered);
        rig_unref(rig);
}

/* ---------------------------------------------------------------- waits and memory */

static _Atomic bool gate;

static void wait_for_gate(const struct rig_group *group, const void *params)
{
        while (!atomic_load(&gate))
                usleep(100);
}

static struct rig_point launch_gated(struct rig_device *device, struct rig_buffer *buffer)
{
        struct rig_launch launch = RIG_LAUNCH_INIT;
        const uint32_t access = RIG_READ_WRITE;
        struct rig_point p;

        launch.function = wait_for_gate;
        OK(rig_launch_once(device, &launch, &buffer, &access, 1, &p));
        return p;
}

static void a_run_that_waits_for_another_device_says_for_which(void)
{
        const struct rig_profile_event *e, *run, *waited;
        struct rig_buffer *a, *b;
        struct rig_point first, copy, last;

        open_all();
        a = new_buffer(m, 64);
        b = new_buffer(m, 64);
        OK(rig_profile_start(rig, 0, &profile));
        gate = false;
        first = launch_gated(host, a);              /* on the host: writes a */
        OK(rig_buffer_copy(b, 0, a, 0, 64, &copy)); /* on m: reads a */
        last = launch_gated(host, b);               /* on the host: writes b */
        CHECK(copy.device == m);
        OK(rig_sync(rig)); /* all is accepted before anything is over */
        gate = true;
        OK(rig_point_wait(&last, RIG_INFINITY));
        stop_and_read();

        CHECK(count(RIG_EVENT_WAIT, NULL) == 2);
        e = event(RIG_EVENT_WAIT, "memory:M,async", 0);
        CHECK(e && e->value == copy.value && e->on_value == first.value);
        CHECK(strcmp(e->on_device, "host") == 0 && e->on_device_number != e->device_number);
        run = event(RIG_EVENT_RUN, "memory:M,async", 0);
        waited = event(RIG_EVENT_RUN, "host", 0);
        CHECK(run->value == copy.value && waited->value == first.value);
        CHECK(waited->end_nsec <= run->end_nsec && run->accepted_nsec <= waited->end_nsec);
        CHECK(e < run && waited < run); /* a wait is told before the run that waited */

        e = event(RIG_EVENT_WAIT, "host", 0);
        CHECK(e && e->value == last.value && e->on_value == copy.value);
        CHECK(strcmp(e->on_device, "memory:M,async") == 0);
        CHECK(waited->launches == 1 && strcmp(waited->name, "launch") == 0);
        rig_profile_unref(profile);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        close_all();
}

static void memory_is_recorded_as_it_is_held(void)
{
        const struct rig_profile_event *e = NULL;
        struct rig_buffer *a;
        size_t n;

        open_all();
        OK(rig_profile_start(rig, 0, &profile));
        a = new_buffer(m, 1 << 20);
        stop_and_read();
        n = count(RIG_EVENT_MEMORY, NULL);
        CHECK(n > 0);
        e = event(RIG_EVENT_MEMORY, NULL, n - 1);
        CHECK(strcmp(e->name, "memory") == 0 && e->live_bytes >= 1 << 20 && e->begin_nsec > 0);
        rig_profile_unref(profile);
        rig_buffer_unref(a);
        close_all();
}

/* ---------------------------------------------------------------- spans */

static void *span_elsewhere(void *data)
{
        CHECK_RETURNS(-ENOENT, rig_profile_end(profile)); /* another thread's span is none of this one's */
        OK(rig_profile_begin(profile, "elsewhere"));
        *(uint32_t *)data = (uint32_t)gettid();
        OK(rig_profile_end(profile));
        return NULL;
}

static void spans_nest_in_their_threads(void)
{
        const struct rig_profile_event *outer, *inner, *other, *open;
        uint64_t before, after;
        pthread_t thread;
        uint32_t tid;

        open_all();
        OK(rig_profile_start(rig, 0, &profile));
        before = now_nsec();
        OK(rig_profile_begin(profile, "outer"));
        OK(rig_profile_begin(profile, ""));
        CHECK(pthread_create(&thread, NULL, span_elsewhere, &tid) == 0 && pthread_join(thread, NULL) == 0);
        OK(rig_profile_end(profile));
        OK(rig_profile_end(profile));
        CHECK_RETURNS(-ENOENT, rig_profile_end(profile));
        OK(rig_profile_begin(profile, "left open"));
        stop_and_read();
        after = now_nsec();
        CHECK(count(RIG_EVENT_SPAN, NULL) == 4);
        outer = event(RIG_EVENT_SPAN, NULL, 0);
        inner = event(RIG_EVENT_SPAN, NULL, 1);
        other = event(RIG_EVENT_SPAN, NULL, 2);
        open = event(RIG_EVENT_SPAN, NULL, 3);
        CHECK(strcmp(outer->name, "outer") == 0 && strcmp(inner->name, "") == 0);
        CHECK(strcmp(other->name, "elsewhere") == 0 && strcmp(open->name, "left open") == 0);
        CHECK(outer->thread == (uint32_t)gettid() && inner->thread == outer->thread);
        CHECK(other->thread == tid && tid != outer->thread);
        CHECK(before <= outer->begin_nsec && outer->begin_nsec <= inner->begin_nsec);
        CHECK(inner->begin_nsec <= other->begin_nsec && other->begin_nsec <= other->end_nsec);
        CHECK(other->end_nsec <= inner->end_nsec && inner->end_nsec <= outer->end_nsec);
        CHECK(outer->end_nsec <= open->begin_nsec && open->begin_nsec <= open->end_nsec);
        CHECK(open->end_nsec <= after);
        rig_profile_unref(profile);
        close_all();
}

static void spans_have_bounds(void)
{
        char name[65];

        open_all();
        memset(name, 's', sizeof(name));
        name[64] = '\0';
        OK(rig_profile_start(rig, 1, &profile)); /* 256 records, and spans */
        CHECK_RETURNS(-ENAMETOOLONG, rig_profile_begin(profile, name));
        CHECK_RETURNS(-EINVAL, rig_profile_begin(profile, NULL));
        name[63] = '\0';
        for (int i = 0; i < 32; i++)
                OK(rig_profile_begin(profile, name));
        CHECK_RETURNS(-EOVERFLOW, rig_profile_begin(profile, name));
        for (int i = 0; i < 32; i++)
                OK(rig_profile_end(profile));
        CHECK_RETURNS(-ENOENT, rig_profile_end(profile));
        for (int i = 0; i < 300; i++) {
                OK(rig_profile_begin(profile, "many"));
                OK(rig_profile_end(profile));
        }
        CHECK(rig_profile_dropped(profile) == 32 + 300 - 256);
        stop_and_read();
        CHECK(count(RIG_EVENT_SPAN, NULL) == 256);
        CHECK(strcmp(event(RIG_EVENT_SPAN, NULL, 0)->name, name) == 0);

        /* once it has stopped they do nothing, successfully */
        OK(rig_profile_end(profile));
        OK(rig_profile_begin(profile, "late"));
        OK(rig_profile_rewind(profile));
        read_events();
        CHECK(count(RIG_EVENT_SPAN, NULL) == 256);
        rig_profile_unref(profile);
        close_all();
}

static void *span_on(void *data)
{
        _Atomic bool *on = data;

        while (atomic_load(on)) {
                OK(rig_profile_begin(profile, "outer"));
                OK(rig_profile_begin(profile, "inner"));
                (void)rig_profile_dropped(profile);
                OK(rig_profile_end(profile));
                OK(rig_profile_end(profile));
        }
        return NULL;
}

static void threads_span_while_another_stops(void)
{
        _Atomic bool on = true;
        pthread_t threads[4];

        open_all();
        OK(rig_profile_start(rig, 0, &profile));
        for (size_t i = 0; i < 4; i++)
                CHECK(pthread_create(&threads[i], NULL, span_on, &on) == 0);
        for (int i = 0; i < 20; i++)
                OK(rig_sync(rig));
        OK(rig_profile_stop(profile));
        OK(rig_sync(rig));
        atomic_store(&on, false);
        for (size_t i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        rig_profile_unref(profile);
        close_all();
}

/* ---------------------------------------------------------------- life */

static void one_profile_records_at_a_time(void)
{
        struct rig_profile *second;

        open_all();
        CHECK_RETURNS(-EINVAL, rig_profile_start(NULL, 0, &second));
        CHECK_RETURNS(-EINVAL, rig_profile_start(rig, 0, NULL));
        OK(rig_profile_start(rig, 0, &profile));
        CHECK_RETURNS(-EBUSY, rig_profile_start(rig, 0, &second));
        OK(rig_profile_stop(profile));
        OK(rig_profile_stop(profile)); /* again does nothing */
        OK(rig_profile_start(rig, 0, &second));
        CHECK(rig_profile_ref(second) == second && rig_profile_unref(second) == NULL);
        CHECK_RETURNS(-EBUSY, rig_profile_start(rig, 0, &profile));
        rig_profile_unref(profile);
        rig_profile_unref(second); /* which stops it */
        OK(rig_profile_start(rig, 0, &profile));
        rig_profile_unref(profile);
        CHECK(rig_profile_unref(NULL) == NULL && rig_profile_ref(NULL) == NULL);
        CHECK_RETURNS(-EINVAL, rig_profile_stop(NULL));
        CHECK_RETURNS(-EINVAL, rig_profile_begin(NULL, "none"));
        CHECK_RETURNS(-EINVAL, rig_profile_end(NULL));
        close_all();
}

static void a_profile_keeps_its_connection(void)
{
        int before = test_count_fds();
        struct rig_buffer *a;

        open_all();
        OK(rig_profile_start(rig, 0, &profile));
        a = new_buffer(m, 64);
        OK(rig_buffer_fill(a, 0, 64, 1, NULL));
        OK(rig_buffer_wait(a, RIG_READ, RIG_INFINITY));
        rig_buffer_unref(a);
        close_all();
        stop_and_read();
        CHECK(count(RIG_EVENT_RUN, "memory:M,async") == 1); /* its name outlives it */
        rig_profile_unref(profile);
        CHECK(test_count_fds() == before);
}

static void what_finds_no_room_is_dropped_and_counted(void)
{
        struct rig_buffer *a;
        struct rig_point p;
        size_t told;

        open_all();
        a = new_buffer(m, 64);
        OK(rig_profile_start(rig, 1, &profile)); /* 256 records */
        for (uint32_t i = 0; i < 1000; i++)
                OK(rig_buffer_fill(a, 0, 64, i, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        stop_and_read();
        told = count(RIG_EVENT_RUN, NULL) + count(RIG_EVENT_WAIT, NULL) + count(RIG_EVENT_MEMORY, NULL);
        CHECK(told == 254); /* two are the devices' */
        CHECK(rig_profile_dropped(profile) >= 1000 - 254);
        /* the first that came */
        CHECK(event(RIG_EVENT_RUN, NULL, 0)->value == 1 && event(RIG_EVENT_RUN, NULL, 200)->value == 201);
        rig_profile_unref(profile);
        CHECK_RETURNS(-EDQUOT, rig_profile_start(rig, (16 << 20) / 128 + 1, &profile)); /* ClientTraceMax */
        CHECK(strstr(rig_error(), "ClientTraceMax"));
        CHECK_RETURNS(-EDQUOT, rig_profile_start(rig, SIZE_MAX, &profile));
        rig_buffer_unref(a);
        close_all();
}

static void events_are_read_again_and_as_far_as_their_size(void)
{
        static struct rig_profile_event first[EVENTS_MAX];
        struct rig_profile_event e = RIG_PROFILE_EVENT_INIT;
        struct rig_buffer *a;
        size_t n;

        open_all();
        a = new_buffer(m, 64);
        OK(rig_profile_start(rig, 0, &profile));
        CHECK_RETURNS(-EBUSY, rig_profile_next(profile, &e));
        CHECK_RETURNS(-EBUSY, rig_profile_rewind(profile));
        CHECK_RETURNS(-EBUSY, rig_profile_write(profile, "trace.json"));
        OK(rig_profile_begin(profile, "span"));
        OK(rig_buffer_fill(a, 0, 64, 1, NULL));
        OK(rig_buffer_wait(a, RIG_READ, RIG_INFINITY));
        stop_and_read();
        n = n_events;
        memcpy(first, events, sizeof(first));
        CHECK(n >= 2);
        CHECK_RETURNS(0, rig_profile_next(profile, &e));
        OK(rig_profile_rewind(profile));
        read_events();
        CHECK(n_events == n && memcmp(first, events, n * sizeof(e)) == 0);

        OK(rig_profile_rewind(profile));
        e.size = 0;
        CHECK_RETURNS(-EINVAL, rig_profile_next(profile, &e));
        CHECK_RETURNS(-EINVAL, rig_profile_next(profile, NULL));
        e.size = sizeof(e) + 8;
        CHECK_RETURNS(-E2BIG, rig_profile_next(profile, &e));
        memset(&e, 0x55, sizeof(e));
        e.size = offsetof(struct rig_profile_event, device); /* an older header's */
        CHECK_RETURNS(1, rig_profile_next(profile, &e));     /* the refused calls read nothing */
        CHECK(e.size == offsetof(struct rig_profile_event, device) && e.kind == first[0].kind);
        CHECK(strcmp(e.name, first[0].name) == 0 && e.device[0] == 0x55 && e.value == 0x5555555555555555);
        rig_profile_unref(profile);
        rig_buffer_unref(a);
        close_all();
}

/* ---------------------------------------------------------------- others */

static void a_profile_shows_nothing_of_another_program(void)
{
        const struct rig_profile_event *e;
        struct rig_buffer *a, *theirs, *copy;
        struct rig_device *their_host;
        struct rig_profile *their_profile;
        struct rig *they;
        struct rig_point p;
        int fd;

        test_rigd_start();
        OK(rig_connect(NULL, &they));
        OK(rig_device_open(they, "host", &their_host));
        OK(rig_connect(NULL, &rig));
        OK(rig_device_open(rig, "memory:ours", &m));
        a = new_buffer(m, 64);
        copy = new_buffer(m, 64);
        OK(rig_buffer_export(a, &fd));
        OK(rig_buffer_import(their_host, fd, &theirs));
        close(fd);
        OK(rig_profile_start(rig, 0, &profile));
        OK(rig_profile_start(they, 0, &their_profile)); /* each has its own */
        gate = false;
        launch_gated(their_host, theirs);
        OK(rig_sync(they));
        OK(rig_buffer_copy(copy, 0, a, 0, 64, &p)); /* follows their launch */
        OK(rig_sync(rig));
        gate = true;
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_profile_stop(their_profile));
        stop_and_read();

        CHECK(count(RIG_EVENT_RUN, NULL) == 1 && count(RIG_EVENT_RUN, "memory:ours") == 1);
        CHECK(count(RIG_EVENT_WAIT, NULL) == 1);
        e = event(RIG_EVENT_WAIT, "memory:ours", 0);
        CHECK(e->value == p.value && e->on_device[0] == '\0' && e->on_device_number == 0);
        rig_profile_unref(profile);
        profile = their_profile;
        read_events();
        CHECK(count(RIG_EVENT_RUN, "host") == 1 && count(RIG_EVENT_RUN, NULL) == 1);
        rig_profile_unref(their_profile);
        rig_buffer_unref(theirs);
        rig_buffer_unref(copy);
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_device_unref(their_host);
        rig_unref(rig);
        rig_unref(they);
        test_rigd_stop();
}

static void what_was_recorded_outlives_rigd(void)
{
        struct rig_buffer *a;

        test_rigd_start();
        OK(rig_connect(NULL, &rig));
        OK(rig_device_open(rig, "memory:M", &m));
        a = new_buffer(m, 64);
        OK(rig_profile_start(rig, 0, &profile));
        OK(rig_profile_begin(profile, "span"));
        OK(rig_buffer_fill(a, 0, 64, 1, NULL));
        OK(rig_buffer_wait(a, RIG_READ, RIG_INFINITY));
        OK(rig_sync(rig)); /* rigd has seen that it is over */
        test_rigd_kill();
        CHECK_RETURNS(-ECONNRESET, rig_sync(rig));
        OK(rig_profile_begin(profile, "afterwards"));
        CHECK_RETURNS(-ECONNRESET, rig_profile_stop(profile));
        OK(rig_profile_stop(profile));
        read_events();
        CHECK(count(RIG_EVENT_RUN, "memory:M") == 1 && count(RIG_EVENT_SPAN, NULL) == 2);
        OK(rig_profile_write(profile, "/tmp/rig-test-profile.json"));
        CHECK(unlink("/tmp/rig-test-profile.json") == 0);
        rig_profile_unref(profile);
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_unref(rig);
}

static void a_forked_child_records_nothing(void)
{
        int status;
        pid_t pid;

        open_all();
        OK(rig_profile_start(rig, 0, &profile));
        OK(rig_profile_begin(profile, "parent's"));
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                CHECK_RETURNS(-ECONNRESET, rig_profile_begin(profile, "child's"));
                CHECK_RETURNS(-ECONNRESET, rig_profile_end(profile));
                CHECK_RETURNS(-ECONNRESET, rig_profile_stop(profile));
                CHECK(rig_profile_dropped(profile) == 0);
                _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        OK(rig_profile_end(profile));
        stop_and_read();
        CHECK(count(RIG_EVENT_SPAN, NULL) == 1);
        rig_profile_unref(profile);
        close_all();
}

/* ---------------------------------------------------------------- files */

static size_t read_file(const char *path, char *text, size_t room)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        CHECK(fd >= 0);
        n = read(fd, text, room - 1);
        CHECK(n >= 0);
        close(fd);
        text[n] = '\0';
        return (size_t)n;
}

static int count_files(const char *folder)
{
        char command[128];
        FILE *f;
        int n;

        snprintf(command, sizeof(command), "ls -A %s | wc -l", folder);
        f = popen(command, "r");
        CHECK(f && fscanf(f, "%d", &n) == 1);
        pclose(f);
        return n;
}

static void record_something(void)
{
        struct rig_buffer *a;

        open_all();
        a = new_buffer(m, 64);
        OK(rig_profile_start(rig, 0, &profile));
        OK(rig_profile_begin(profile, "the span"));
        OK(rig_buffer_fill(a, 0, 64, 1, NULL));
        OK(rig_buffer_wait(a, RIG_READ, RIG_INFINITY));
        OK(rig_profile_stop(profile));
        rig_buffer_unref(a);
}

static void the_file_is_written_whole_or_not_at_all(void)
{
        char folder[] = "/tmp/rig-test-XXXXXX", path[64], other[64], first[8192], second[8192];
        mode_t mask = umask(027);
        struct stat st;
        size_t n;

        CHECK(mkdtemp(folder));
        record_something();
        snprintf(path, sizeof(path), "%s/trace.json", folder);
        OK(rig_profile_write(profile, path));
        n = read_file(path, first, sizeof(first));
        CHECK(n < sizeof(first) - 1 && strncmp(first, "{\"traceEvents\":[", 16) == 0);
        CHECK(strcmp(first + n - 3, "}}\n") == 0);
        CHECK(strstr(first, "\"the span\"") && strstr(first, "\"fill 64 bytes\"") &&
                strstr(first, "memory:M"));
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640); /* as the umask has it */
        umask(mask);

        OK(rig_profile_write(profile, path)); /* over the one that is there */
        CHECK(read_file(path, second, sizeof(second)) == n && memcmp(first, second, n) == 0);
        CHECK(count_files(folder) == 1);

        snprintf(other, sizeof(other), "%s/none/trace.json", folder);
        CHECK_RETURNS(-ENOENT, rig_profile_write(profile, other));
        CHECK(strstr(rig_error(), other));
        CHECK_RETURNS(-EISDIR, rig_profile_write(profile, folder));
        CHECK_RETURNS(-EINVAL, rig_profile_write(profile, "/dev/null")); /* which is not to be replaced */
        CHECK_RETURNS(-EINVAL, rig_profile_write(profile, ""));
        CHECK_RETURNS(-EINVAL, rig_profile_write(profile, NULL));
        CHECK(count_files(folder) == 1 && read_file(path, second, sizeof(second)) == n);
        CHECK(unlink(path) == 0 && rmdir(folder) == 0);
        rig_profile_unref(profile);
        close_all();
}

static void a_disk_that_is_full_keeps_the_file_there_was(void)
{
        char folder[] = "/tmp/rig-test-XXXXXX", path[64], text[16];
        int status, fd;
        pid_t pid;

        CHECK(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/trace.json", folder);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && write(fd, "kept", 4) == 4);
        close(fd);
        pid = fork(); /* whose files cannot be longer than a few bytes */
        CHECK(pid >= 0);
        if (pid == 0) {
                const struct rlimit none = {.rlim_cur = 100, .rlim_max = 100};

                signal(SIGXFSZ, SIG_IGN);
                record_something();
                CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
                CHECK_RETURNS(-EFBIG, rig_profile_write(profile, path));
                CHECK(strstr(rig_error(), path));
                rig_profile_unref(profile);
                close_all();
                exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(read_file(path, text, sizeof(text)) == 4 && strcmp(text, "kept") == 0);
        CHECK(count_files(folder) == 1 && unlink(path) == 0 && rmdir(folder) == 0);
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(a_disk_that_is_full_keeps_the_file_there_was),
                TEST(runs_are_recorded_with_their_names_bytes_and_times),
                TEST(names_of_works_are_checked),
                TEST(a_failed_run_has_its_error_and_a_lost_one_too),
                TEST(a_run_that_waits_for_another_device_says_for_which),
                TEST(memory_is_recorded_as_it_is_held),
                TEST(spans_nest_in_their_threads),
                TEST(spans_have_bounds),
                TEST(threads_span_while_another_stops),
                TEST(one_profile_records_at_a_time),
                TEST(a_profile_keeps_its_connection),
                TEST(what_finds_no_room_is_dropped_and_counted),
                TEST(events_are_read_again_and_as_far_as_their_size),
                TEST(a_profile_shows_nothing_of_another_program),
                TEST(what_was_recorded_outlives_rigd),
                TEST(a_forked_child_records_nothing),
                TEST(the_file_is_written_whole_or_not_at_all),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
