/* SPDX-License-Identifier: ISC */
/*
 * A list under a mutex that is held for a few instructions, and an eventfd that the loop sleeps on. The flag
 * `pending` lets a loop that polls see that there is a job without taking the mutex.
 */
#include "daemon/post.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/adapter.h"

struct rig_post {
        pthread_mutex_t lock;
        struct rig_list jobs; /* under lock */
        _Atomic bool pending; /* jobs is not empty: release in rig_post_job(), acquire in rig_post_run() */
        int fd;
        sd_event_source *source;
};

/* Edge-triggered and never read: a write is an event, whatever the counter is. */
static int woken(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        rig_post_run(userdata);
        return 0;
}

int rig_post_new(sd_event *event, struct rig_post **ret_post)
{
        struct rig_post *post = calloc(1, sizeof(*post));
        int r;

        if (!post)
                return -ENOMEM;
        pthread_mutex_init(&post->lock, NULL);
        rig_list_init(&post->jobs);
        post->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = post->fd < 0 ? -errno
                         : sd_event_add_io(event, &post->source, post->fd, EPOLLIN | EPOLLET, woken, post);
        if (r < 0) {
                rig_post_free(post);
                return r;
        }
        sd_event_source_set_description(post->source, "jobs that slow threads have done");
        sd_event_source_set_priority(post->source, SD_EVENT_PRIORITY_IMPORTANT);
        *ret_post = post;
        return 0;
}

struct rig_post *rig_post_free(struct rig_post *post)
{
        if (!post)
                return NULL;
        sd_event_source_disable_unref(post->source);
        rig_close(post->fd);
        pthread_mutex_destroy(&post->lock);
        free(post);
        return NULL;
}

void rig_post_wake(struct rig_post *post)
{
        static const uint64_t one = 1;

        /* Fails only where the counter is full, and then the loop was woken already. */
        if (write(post->fd, &one, sizeof(one)) < 0)
                return;
}

void rig_post_job(struct rig_post *post, struct rig_slow_job *job)
{
        pthread_mutex_lock(&post->lock);
        rig_list_append(&post->jobs, &job->link);
        atomic_store_explicit(&post->pending, true, memory_order_release);
        pthread_mutex_unlock(&post->lock);
        rig_post_wake(post);
}

bool rig_post_run(struct rig_post *post)
{
        bool any = false;

        while (atomic_load_explicit(&post->pending, memory_order_acquire)) {
                struct rig_slow_job *job;
                struct rig_list *l;

                pthread_mutex_lock(&post->lock);
                l = rig_list_pop(&post->jobs);
                if (rig_list_empty(&post->jobs))
                        atomic_store_explicit(&post->pending, false, memory_order_relaxed);
                pthread_mutex_unlock(&post->lock);
                if (!l)
                        break;
                any = true;
                job = rig_list_entry(l, struct rig_slow_job, link);
                rig_adapter_job_done(job);
        }
        return any;
}
