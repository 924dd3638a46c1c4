/* SPDX-License-Identifier: ISC */
/*
 * A crew of threads.
 *
 * A loop is opened under the lock and its items are claimed by one atomic counter, so a worker that comes
 * late finds it closed or takes what is left; it never meets the counter of another loop, because it joined
 * under the lock and the leader waits for all that joined before it opens the next.
 *
 * A sleeper reads `pokes` under the lock, together with what it found there was not to do; whoever gives it
 * something moves `pokes` afterwards, so that the sleep does not begin or ends.
 */
#include "libclient/crew.h"

#include <sched.h>
#include <signal.h>

#include "base/clock.h"
#include "base/futex.h"

#define SPIN_USEC   10 /* for the next loop, before a worker sleeps */
#define FINISH_USEC (50 * RIG_USEC_PER_MSEC)

struct start {
        struct rig_crew *crew;
        uint32_t worker;
};

void rig_crew_wake(struct rig_crew *crew, uint32_t n)
{
        /* seq_cst: moved before the look at `sleepers`, who count themselves before they look at it */
        atomic_fetch_add_explicit(&crew->pokes, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&crew->sleepers, memory_order_seq_cst) > 0)
                syscall(SYS_futex, &crew->pokes, FUTEX_WAKE, n, NULL, NULL, 0);
}

static void take_items(struct rig_crew *crew, uint32_t worker)
{
        struct rig_crew_loop *loop = &crew->loop;

        for (;;) {
                /* relaxed: only who takes what; the items were published by the lock */
                uint64_t from = atomic_fetch_add_explicit(&loop->next, loop->batch, memory_order_relaxed);

                if (from >= loop->n)
                        return;
                loop->items(loop->data, worker, from, from + RIG_MIN(loop->batch, loop->n - from));
        }
}

/* With the lock held, which is dropped meanwhile. */
static void join_loop(struct rig_crew *crew, uint32_t worker)
{
        crew->loop.joined++;
        rig_lock_drop(&crew->lock);
        take_items(crew, worker);
        rig_lock_take(&crew->lock);
        crew->loop.open = false; /* nothing is left to take */
        if (--crew->loop.joined == 0) {
                atomic_fetch_add_explicit(&crew->finished, 1, memory_order_relaxed);
                rig_futex_wake(&crew->finished);
        }
}

/* Sleeps until there may be something to do. With the lock held, which is dropped meanwhile. */
static void rest(struct rig_crew *crew)
{
        uint32_t seen = atomic_load_explicit(&crew->pokes, memory_order_relaxed);
        uint64_t until;

        rig_lock_drop(&crew->lock);
        until = rig_now_usec() + (crew->n_workers > 1 ? SPIN_USEC : 0);
        while (atomic_load_explicit(&crew->pokes, memory_order_relaxed) == seen && rig_now_usec() < until)
                rig_cpu_relax();
        /* seq_cst: counted before the last look at `pokes`, which rig_futex_wait() takes */
        atomic_fetch_add_explicit(&crew->sleepers, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&crew->pokes, memory_order_seq_cst) == seen)
                rig_futex_wait(&crew->pokes, seen, RIG_USEC_INFINITY);
        atomic_fetch_sub_explicit(&crew->sleepers, 1, memory_order_relaxed);
        rig_lock_take(&crew->lock);
}

static void *worker_main(void *arg)
{
        struct start start = *(struct start *)arg;
        struct rig_crew *crew = start.crew;

        free(arg);
        rig_lock_take(&crew->lock);
        while (!crew->stopping) {
                if (crew->loop.open) {
                        join_loop(crew, start.worker);
                } else if (crew->work && !crew->leading) {
                        crew->leading = true;
                        rig_lock_drop(&crew->lock);
                        if (!crew->lead(crew->data, start.worker))
                                return NULL;
                        rig_lock_take(&crew->lock);
                } else {
                        rest(crew);
                }
        }
        rig_lock_drop(&crew->lock);
        return NULL;
}

void rig_crew_for(
        struct rig_crew *crew, uint32_t worker, uint64_t n, uint64_t batch, rig_crew_items items, void *data)
{
        uint64_t chunks = (n + batch - 1) / batch;
        uint32_t seen;

        if (chunks <= 1 || crew->n_workers == 1) {
                items(data, worker, 0, n);
                return;
        }
        rig_lock_take(&crew->lock);
        crew->loop =
                (struct rig_crew_loop){.items = items, .data = data, .n = n, .batch = batch, .open = true};
        rig_lock_drop(&crew->lock);
        rig_crew_wake(crew, (uint32_t)RIG_MIN(chunks - 1, (uint64_t)crew->n_workers - 1));
        take_items(crew, worker);

        rig_lock_take(&crew->lock);
        crew->loop.open = false;
        while (crew->loop.joined > 0) {
                seen = atomic_load_explicit(&crew->finished, memory_order_relaxed);
                rig_lock_drop(&crew->lock);
                rig_futex_wait(&crew->finished, seen, FINISH_USEC);
                rig_lock_take(&crew->lock);
        }
        rig_lock_drop(&crew->lock);
}

static int start_worker(struct rig_crew *crew, uint32_t worker, const char *name)
{
        struct start *start = malloc(sizeof(*start));
        int r;

        if (!start)
                return -ENOMEM;
        *start = (struct start){.crew = crew, .worker = worker};
        r = -pthread_create(&crew->threads[worker], NULL, worker_main, start);
        if (r < 0)
                free(start);
        else
                pthread_setname_np(crew->threads[worker], name);
        return r;
}

int rig_crew_start(struct rig_crew *crew, uint32_t n_workers, const char *name,
        bool (*lead)(void *data, uint32_t worker), void *data)
{
        sigset_t all, before;
        uint32_t n = 0;
        int r = 0;

        crew->threads = calloc(n_workers, sizeof(*crew->threads));
        if (!crew->threads)
                return -ENOMEM;
        crew->lead = lead;
        crew->data = data;
        /* The program's signals are its own threads' to handle. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        rig_lock_take(&crew->lock); /* no worker looks before all of it is there */
        while (n < n_workers && r == 0) {
                r = start_worker(crew, n, name);
                n += r == 0;
        }
        crew->n_workers = n;
        rig_lock_drop(&crew->lock);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (n > 0)
                return 0;
        free(crew->threads);
        crew->threads = NULL;
        return r;
}

void rig_crew_stop(struct rig_crew *crew)
{
        pthread_t *threads = crew->threads;

        if (!threads)
                return;
        rig_lock_take(&crew->lock);
        crew->stopping = true;
        rig_lock_drop(&crew->lock);
        rig_crew_wake(crew, INT32_MAX);
        for (uint32_t i = 0; i < crew->n_workers; i++) {
                if (pthread_equal(threads[i], pthread_self()))
                        pthread_detach(threads[i]);
                else
                        pthread_join(threads[i], NULL);
        }
        crew->threads = NULL;
        free(threads);
}
