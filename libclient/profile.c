/* SPDX-License-Identifier: ISC */
/*
 * Profiles.
 *
 * rigd records, into a ring in this process's memory (trace/trace.h), so recording needs no thread here,
 * adds nothing to a call of the library, and costs a program without a profile nothing. The ring has room
 * for all that the profile will ever show; nothing is taken out of it before the profile has stopped, and
 * then it is read where it lies, as often as one likes.
 *
 * Spans are this process's own, in an array under a lock of its own, in the order they began. Each thread
 * that is in one has a stack of those it is in; the end of the last one frees it, so threads that come and
 * go leave nothing. There is room for as many spans as for records, so that a program which never stops its
 * profile holds no more memory than it asked for.
 *
 * The lock of spans is held for a few instructions and never while the connection's is taken, nor the other
 * way round; the mutex of stopping is held over its round trip, so that whoever stops a profile finds it
 * stopped on return.
 */
#include "libclient/profile.h"

#include <string.h>

#include "base/clock.h"

#define RECORDS_DEFAULT 65536u
#define DEPTH_MAX       32u

/* A thread that is in a span. */
struct thread {
        struct rig_list link; /* in its bucket */
        uint32_t tid;
        uint32_t depth;
        uint64_t open[DEPTH_MAX]; /* indices of spans; NO_SPAN: it found no room */
};
#define NO_SPAN UINT64_MAX

/* ---------------------------------------------------------------- life */

static void profile_free(struct rig_profile *profile)
{
        for (uint32_t i = 0; i < RIG_PROFILE_BUCKETS; i++)
                rig_list_for_each_safe (j, &profile->threads[i])
                        free(rig_list_entry(j, struct thread, link));
        rig_trace_ring_unmap(&profile->ring);
        pthread_mutex_destroy(&profile->stop_mutex);
        free(profile->spans);
        free(profile->devices);
        rig_unref(profile->rig);
        free(profile);
}

static void profile_freep(struct rig_profile **profile)
{
        if (*profile)
                profile_free(*profile);
}

static int profile_new(struct rig *rig, size_t records, struct rig_profile **ret_profile, int *ret_fd)
{
        _cleanup_(profile_freep) struct rig_profile *profile = NULL;
        int r;

        profile = calloc(1, sizeof(*profile));
        if (!profile)
                return rig_fail_memory();
        profile->refs = 1;
        profile->rig = rig_ref(rig);
        pthread_mutex_init(&profile->stop_mutex, NULL);
        for (uint32_t i = 0; i < RIG_PROFILE_BUCKETS; i++)
                rig_list_init(&profile->threads[i]);
        r = rig_trace_ring_new(records > 0 ? records : RECORDS_DEFAULT, &profile->ring, ret_fd);
        if (r == -E2BIG)
                return rig_fail(
                        -EDQUOT, "a profile of %zu records is more than rigd takes of anyone", records);
        if (r < 0)
                return rig_fail(r, "no memory for %zu records: %s", records, rig_strerror(r));
        *ret_profile = RIG_STEAL(profile);
        return 0;
}

RIG_API int rig_profile_start(struct rig *rig, size_t records, struct rig_profile **ret_profile)
{
        _cleanup_(profile_freep) struct rig_profile *profile = NULL;
        _cleanup_(rig_closep) int fd = -EBADF;
        struct rig_msg_trace_start m = {.fd = 0};
        struct rig_request request = RIG_REQUEST(RIG_MSG_TRACE_START, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DONE);
        int r;

        if (!rig || !ret_profile)
                return rig_fail(-EINVAL, "a profile needs a connection and where to store it");
        r = rig_check(rig);
        if (r < 0)
                return r;
        r = profile_new(rig, records, &profile, &fd);
        if (r < 0)
                return r;
        request.fds = &fd;
        request.n_fds = 1;
        r = rig_wire_call(rig, &request, &call);
        if (r < 0)
                return r;
        *ret_profile = RIG_STEAL(profile);
        return 0;
}

RIG_API struct rig_profile *rig_profile_ref(struct rig_profile *profile)
{
        /* relaxed: whoever refs holds a reference already */
        if (profile)
                atomic_fetch_add_explicit(&profile->refs, 1, memory_order_relaxed);
        return profile;
}

RIG_API struct rig_profile *rig_profile_unref(struct rig_profile *profile)
{
        /* acq_rel: what others did with the profile is before its end */
        if (!profile || atomic_fetch_sub_explicit(&profile->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        /* What fails with it is a connection that is broken, and records no more. */
        (void)rig_profile_stop(profile);
        profile_free(profile);
        return NULL;
}

/* ---------------------------------------------------------------- spans */

static struct thread *find_thread(struct rig_profile *profile, uint32_t tid)
{
        rig_list_for_each (i, &profile->threads[tid % RIG_PROFILE_BUCKETS]) {
                struct thread *thread = rig_list_entry(i, struct thread, link);

                if (thread->tid == tid)
                        return thread;
        }
        return NULL;
}

/* Room for a span. Return: its index, or NO_SPAN where there are as many as there may be. */
static int span_new(struct rig_profile *profile, uint64_t *ret_index)
{
        if (profile->n_spans == profile->ring.n_records) {
                profile->spans_dropped++;
                *ret_index = NO_SPAN;
                return 0;
        }
        if (profile->n_spans == profile->spans_room) {
                uint64_t room = RIG_MAX(profile->spans_room * 2, UINT64_C(64));
                struct rig_span *grown = reallocarray(profile->spans, room, sizeof(*grown));

                if (!grown)
                        return rig_fail_memory();
                profile->spans = grown;
                profile->spans_room = room;
        }
        *ret_index = profile->n_spans++;
        return 0;
}

static int thread_get(struct rig_profile *profile, uint32_t tid, struct thread **ret_thread)
{
        struct thread *thread = find_thread(profile, tid);

        if (!thread) {
                thread = calloc(1, sizeof(*thread));
                if (!thread)
                        return rig_fail_memory();
                thread->tid = tid;
                rig_list_append(&profile->threads[tid % RIG_PROFILE_BUCKETS], &thread->link);
        }
        *ret_thread = thread;
        return 0;
}

static void thread_drop(struct thread *thread)
{
        if (thread->depth > 0)
                return;
        rig_list_remove(&thread->link);
        free(thread);
}

static int begin(struct rig_profile *profile, uint32_t tid, const char *name)
{
        struct thread *thread = NULL;
        uint64_t index = NO_SPAN;
        int r;

        r = thread_get(profile, tid, &thread);
        if (r < 0)
                return r;
        if (thread->depth == DEPTH_MAX)
                return rig_fail(-EOVERFLOW, "this thread is in %u spans, the most there may be", DEPTH_MAX);
        r = span_new(profile, &index);
        if (r < 0) {
                thread_drop(thread);
                return r;
        }
        thread->open[thread->depth++] = index;
        if (index == NO_SPAN)
                return 0;
        profile->spans[index] = (struct rig_span){.thread = tid, .begin_nsec = rig_now_nsec()};
        strcpy(profile->spans[index].name, name);
        return 0;
}

/* Ends the innermost span of a thread, which has one. */
static void end(struct rig_profile *profile, struct thread *thread, uint64_t now_nsec)
{
        uint64_t index = thread->open[--thread->depth];

        if (index != NO_SPAN)
                profile->spans[index].end_nsec = now_nsec;
        thread_drop(thread);
}

/* Whether spans are recorded. 1; 0 where it has stopped; negative: the process forked since. */
static int check_spans(struct rig_profile *profile)
{
        if (!profile)
                return rig_fail(-EINVAL, "no profile");
        if (rig_forked(profile->rig))
                return rig_check(profile->rig);
        /* relaxed: whoever races with the stop is told by `closed` */
        return !atomic_load_explicit(&profile->stopped, memory_order_relaxed);
}

RIG_API int rig_profile_begin(struct rig_profile *profile, const char *name)
{
        int r;

        if (!name)
                return rig_fail(-EINVAL, "a span needs a name");
        if (strlen(name) >= sizeof(((struct rig_span *)0)->name))
                return rig_fail(-ENAMETOOLONG, "a span's name has at most %zu bytes",
                        sizeof(((struct rig_span *)0)->name) - 1);
        r = check_spans(profile);
        if (r <= 0)
                return r;
        rig_lock_take(&profile->lock);
        r = profile->closed ? 0 : begin(profile, (uint32_t)gettid(), name);
        rig_lock_drop(&profile->lock);
        return r;
}

RIG_API int rig_profile_end(struct rig_profile *profile)
{
        struct thread *thread;
        int r;

        r = check_spans(profile);
        if (r <= 0)
                return r;
        rig_lock_take(&profile->lock);
        if (!profile->closed) {
                thread = find_thread(profile, (uint32_t)gettid());
                if (thread)
                        end(profile, thread, rig_now_nsec());
                else
                        r = rig_fail(-ENOENT, "this thread is in no span");
        }
        rig_lock_drop(&profile->lock);
        return r < 0 ? r : 0;
}

static void close_spans(struct rig_profile *profile)
{
        uint64_t now_nsec;

        rig_lock_take(&profile->lock);
        profile->closed = true;
        now_nsec = rig_now_nsec();
        for (uint32_t i = 0; i < RIG_PROFILE_BUCKETS; i++)
                rig_list_for_each_safe (j, &profile->threads[i]) {
                        struct thread *thread = rig_list_entry(j, struct thread, link);

                        for (uint32_t depth = thread->depth; depth > 0; depth--)
                                end(profile, thread, now_nsec);
                }
        rig_lock_drop(&profile->lock);
}

/* ---------------------------------------------------------------- stopping */

static int ask_to_stop(struct rig *rig)
{
        struct rig_msg_trace_stop m = {0};
        struct rig_request request = RIG_REQUEST(RIG_MSG_TRACE_STOP, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DONE);
        int r;

        r = rig_check(rig);
        return r < 0 ? r : rig_wire_call(rig, &request, &call);
}

/* With stop_mutex held. */
static int stop(struct rig_profile *profile)
{
        int r, q;

        /* relaxed: written under the mutex alone */
        if (atomic_load_explicit(&profile->stopped, memory_order_relaxed))
                return 0;
        close_spans(profile);
        r = ask_to_stop(profile->rig);
        q = rig_profile_collect_devices(profile);
        /* release: pairs with check_stopped() */
        atomic_store_explicit(&profile->stopped, true, memory_order_release);
        return r < 0 ? r : q;
}

RIG_API int rig_profile_stop(struct rig_profile *profile)
{
        int r;

        if (!profile)
                return rig_fail(-EINVAL, "no profile");
        /* The locks may be held for ever by a thread that this process does not have. */
        if (rig_forked(profile->rig))
                return rig_check(profile->rig);
        pthread_mutex_lock(&profile->stop_mutex);
        r = stop(profile);
        pthread_mutex_unlock(&profile->stop_mutex);
        return r;
}
