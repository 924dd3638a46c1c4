/* SPDX-License-Identifier: ISC */
/*
 * Adapters (daemon/adapter.h).
 *
 * Memory that returns: a memory whose uses are over goes to the cache of the client that held it, where it
 * was nobody else's, else back to the driver on the slow thread. Its bytes leave the budget as soon as that
 * is decided: an allocation comes after the free in the same queue. What waits for memory is tried again
 * each time.
 */
#include "daemon/adapter.h"

#include <signal.h>
#include <string.h>

#include "daemon/client.h"
#include "daemon/device.h"
#include "daemon/log/log.h"

static const char *const state_names[RIG_ADAPTER_STATE_MAX] = {
        [RIG_ADAPTER_READY] = "ready",
        [RIG_ADAPTER_LOST] = "lost",
        [RIG_ADAPTER_RESETTING] = "resetting",
};

/* Which states may follow which. */
static const unsigned state_next[RIG_ADAPTER_STATE_MAX] = {
        [RIG_ADAPTER_READY] = 1u << RIG_ADAPTER_LOST,
        [RIG_ADAPTER_LOST] = 1u << RIG_ADAPTER_RESETTING | 1u << RIG_ADAPTER_READY,
        [RIG_ADAPTER_RESETTING] = 1u << RIG_ADAPTER_READY | 1u << RIG_ADAPTER_LOST,
};

static void set_state(struct rig_adapter *a, enum rig_adapter_state state)
{
        rig_assert(state_next[a->state] & 1u << state);
        if (state == RIG_ADAPTER_READY)
                rig_log_about(LOG_NOTICE, &RIG_LOG_OF_ADAPTER(a, RIG_LOG_ADAPTER_READY),
                        "adapter %s is ready again; it was %s", a->driver.name, state_names[a->state]);
        else
                rig_log_about(LOG_INFO, &RIG_LOG_OF_ADAPTER(a, NULL), "adapter %s: %s -> %s", a->driver.name,
                        state_names[a->state], state_names[state]);
        a->state = state;
        if (state == RIG_ADAPTER_READY)
                a->reason[0] = '\0';
        if (a->core->adapter_changed)
                a->core->adapter_changed(a, a->core->adapter_changed_userdata);
}

const char *rig_adapter_state_to_string(enum rig_adapter_state state)
{
        return state_names[state];
}

/* ---------------------------------------------------------------- the slow thread */

static void *slow_thread(void *userdata)
{
        struct rig_adapter *a = userdata;

        pthread_setname_np(pthread_self(), "rigd-slow");
        pthread_mutex_lock(&a->lock);
        for (;;) {
                struct rig_list *l = rig_list_pop(&a->jobs);
                struct rig_slow_job *job;

                if (!l && a->quit)
                        break;
                if (!l) {
                        pthread_cond_wait(&a->wake, &a->lock);
                        continue;
                }
                pthread_mutex_unlock(&a->lock);
                job = rig_list_entry(l, struct rig_slow_job, link);
                job->run(job);
                rig_post_job(a->core->post, job);
                pthread_mutex_lock(&a->lock);
        }
        pthread_mutex_unlock(&a->lock);
        return NULL;
}

/* A thread that takes no signals: those are the loop's. */
static int start_thread(struct rig_adapter *a)
{
        sigset_t all, before;
        pthread_attr_t attr;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, (size_t)256 << 10);
        r = pthread_create(&a->thread, &attr, slow_thread, a);
        pthread_attr_destroy(&attr);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        a->started = r == 0;
        return -r;
}

void rig_adapter_defer(struct rig_driver_adapter *adapter, struct rig_slow_job *job)
{
        struct rig_adapter *a = adapter->core;
        int r = 0;

        rig_assert(pthread_equal(pthread_self(), a->core->loop_thread));
        rig_list_init(&job->link);
        job->adapter = adapter;
        a->n_jobs++;
        if (!a->started)
                r = start_thread(a);
        if (r < 0) {
                /* No thread is to be had: late is better than never. */
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(a, RIG_LOG_ADAPTER_NO_THREAD),
                        "adapter %s: no thread (%s): the core waits for it", a->driver.name, strerror(-r));
                job->run(job);
                rig_post_job(a->core->post, job);
                return;
        }
        pthread_mutex_lock(&a->lock);
        rig_list_append(&a->jobs, &job->link);
        pthread_cond_signal(&a->wake);
        pthread_mutex_unlock(&a->lock);
}

void rig_adapter_job_done(struct rig_slow_job *job)
{
        struct rig_adapter *a = job->adapter->core;

        a->n_jobs--;
        job->done(job);
}

bool rig_adapter_busy(const struct rig_adapter *adapter)
{
        if (adapter->n_jobs)
                return true;
        rig_list_for_each (l, &adapter->devices)
                if (!rig_list_entry(l, struct rig_device, link)->lost)
                        return true;
        return false;
}

/* ---------------------------------------------------------------- life */

int rig_adapter_new(
        struct rig_core *core, const struct rig_driver_adapter *found, struct rig_adapter **ret_adapter)
{
        struct rig_adapter *a = calloc(1, sizeof(*a));

        if (!a)
                return -ENOMEM;
        a->core = core;
        a->driver = *found;
        a->driver.core = a;
        a->budget.limit_bytes = RIG_MIN(found->budget_bytes, core->config.adapter_memory_max);
        rig_list_init(&a->devices);
        rig_list_init(&a->parked);
        rig_list_init(&a->accounts);
        rig_list_init(&a->jobs);
        pthread_mutex_init(&a->lock, NULL);
        pthread_cond_init(&a->wake, NULL);
        rig_list_append(&core->adapters, &a->link);
        *ret_adapter = a;
        return 0;
}

struct rig_adapter *rig_adapter_free(struct rig_adapter *adapter)
{
        struct rig_adapter *a = adapter;

        if (!a)
                return NULL;
        if (a->started) {
                pthread_mutex_lock(&a->lock);
                a->quit = true;
                pthread_cond_signal(&a->wake);
                pthread_mutex_unlock(&a->lock);
                pthread_join(a->thread, NULL);
        }
        pthread_mutex_destroy(&a->lock);
        pthread_cond_destroy(&a->wake);
        rig_list_remove(&a->link);
        free(a);
        return NULL;
}

struct rig_adapter *rig_adapter_find(
        struct rig_core *core, char *name, const char **ret_instance, const char **ret_options)
{
        char *comma = strchr(name, ','), *colon;

        *ret_options = "";
        *ret_instance = "";
        if (comma) {
                *comma = '\0';
                *ret_options = comma + 1;
        }
        rig_list_for_each (l, &core->adapters) {
                struct rig_adapter *a = rig_list_entry(l, struct rig_adapter, link);
                size_t n = strlen(a->driver.name);

                if (strcmp(a->driver.name, name) == 0)
                        return a;
                if (a->driver.any_instance && strncmp(a->driver.name, name, n) == 0 && name[n] == ':') {
                        colon = name + n;
                        *ret_instance = colon + 1;
                        return a;
                }
        }
        return NULL;
}

static void retry_parked(struct rig_adapter *a)
{
        struct rig_list all, *l;

        rig_list_move_all(&a->parked, &all);
        while ((l = rig_list_pop(&all))) {
                struct rig_parked *p = rig_list_entry(l, struct rig_parked, link);

                p->retry(p);
        }
}

/* ---------------------------------------------------------------- loss */

struct reset_job {
        struct rig_slow_job job;
        struct rig_adapter *adapter;
        struct rig_error error;
        int r;
};

static void reset_run(struct rig_slow_job *job)
{
        struct reset_job *j = RIG_CONTAINER_OF(job, struct reset_job, job);

        j->r = j->adapter->driver.driver->adapter_reset(&j->adapter->driver, &j->error);
}

/* The adapter works again, or not; after a reset no work of its lost devices runs. */
static void reset_done(struct rig_slow_job *job)
{
        struct reset_job *j = RIG_CONTAINER_OF(job, struct reset_job, job);
        struct rig_adapter *a = j->adapter;

        if (j->r < 0) {
                set_state(a, RIG_ADAPTER_LOST);
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(a, RIG_LOG_ADAPTER_STAYS_LOST),
                        "adapter %s cannot be reset and stays lost: %s", a->driver.name, j->error.text);
        } else {
                rig_list_for_each_safe (l, &a->devices) {
                        struct rig_device *d = rig_list_entry(l, struct rig_device, link);

                        if (d->lost)
                                rig_device_ended(d);
                }
                a->needs_reset = false;
                set_state(a, RIG_ADAPTER_READY);
        }
        free(j);
        retry_parked(a);
        rig_core_settle(a->core);
}

static void reset(struct rig_adapter *a)
{
        struct reset_job *j;

        j = calloc(1, sizeof(*j));
        if (!j) {
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(a, RIG_LOG_ADAPTER_STAYS_LOST),
                        "adapter %s stays lost: no memory to reset it", a->driver.name);
                return;
        }
        j->adapter = a;
        j->job.run = reset_run;
        j->job.done = reset_done;
        set_state(a, RIG_ADAPTER_RESETTING);
        rig_adapter_defer(&a->driver, &j->job);
}

void rig_adapter_lose(struct rig_adapter *adapter, const char *reason)
{
        struct rig_list all;

        if (adapter->state != RIG_ADAPTER_READY)
                return;
        snprintf(adapter->reason, sizeof(adapter->reason), "%s", reason);
        set_state(adapter, RIG_ADAPTER_LOST);
        rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(adapter, RIG_LOG_ADAPTER_LOST), "adapter %s is lost: %s",
                adapter->driver.name, reason);
        adapter->n_stops++;
        rig_list_move_all(&adapter->devices, &all);
        while (!rig_list_empty(&all)) {
                struct rig_list *l = rig_list_pop(&all);

                rig_list_append(&adapter->devices, l);
                rig_device_lose(rig_list_entry(l, struct rig_device, link), reason, false);
        }
        retry_parked(adapter);
        rig_adapter_stopped(adapter, false);
}

bool rig_adapter_recovers(const struct rig_adapter *adapter)
{
        return adapter->state == RIG_ADAPTER_RESETTING ||
               (adapter->state == RIG_ADAPTER_LOST && adapter->n_stops);
}

void rig_adapter_stopped(struct rig_adapter *adapter, bool sticky)
{
        adapter->n_stops--;
        if (sticky && !adapter->driver.driver->adapter_reset) {
                /* Its memory stays away for good; who else is on the adapter goes on (L6). */
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(adapter, RIG_LOG_WORK_CANNOT_END),
                        "adapter %s: work of a lost device cannot be ended", adapter->driver.name);
                sticky = false;
        }
        adapter->needs_reset = adapter->needs_reset || sticky;
        if (sticky && adapter->state == RIG_ADAPTER_READY)
                rig_adapter_lose(adapter, "work of a lost device can only be ended by a reset");
        if (adapter->n_stops || adapter->state != RIG_ADAPTER_LOST)
                return;
        if (adapter->needs_reset)
                reset(adapter);
        else
                set_state(adapter, RIG_ADAPTER_READY);
        retry_parked(adapter);
}

/* ---------------------------------------------------------------- accounts */

int rig_account_new(struct rig_adapter *adapter, const char *client, uint64_t memory_bytes,
        uint64_t cache_bytes, struct rig_account **ret_account)
{
        struct rig_account *account = calloc(1, sizeof(*account));

        if (!account)
                return -ENOMEM;
        account->refs = 1;
        account->adapter = adapter;
        snprintf(account->client, sizeof(account->client), "%s", client);
        account->share = (struct rig_share){.budget = &adapter->budget,
                .client = account->client,
                .limit_bytes = RIG_MIN(memory_bytes, adapter->budget.limit_bytes)};
        rig_cache_init(&account->cache, &adapter->budget, cache_bytes);
        rig_list_append(&adapter->accounts, &account->link);
        *ret_account = account;
        return 0;
}

struct rig_account *rig_account_ref(struct rig_account *account)
{
        account->refs++;
        return account;
}

void rig_account_unref(struct rig_account *account)
{
        if (!account || --account->refs)
                return;
        rig_list_remove(&account->link);
        free(account);
}

static bool drop_one(struct rig_account *account)
{
        struct rig_region region;

        if (!rig_cache_drop(&account->cache, &region))
                return false;
        rig_adapter_free_region(account->adapter, &region);
        return true;
}

void rig_account_set_limits(struct rig_account *account, uint64_t memory_bytes, uint64_t cache_bytes)
{
        account->share.limit_bytes = RIG_MIN(memory_bytes, account->adapter->budget.limit_bytes);
        account->cache.limit_bytes = cache_bytes;
        while (account->cache.bytes > cache_bytes && drop_one(account))
                ;
}

void rig_account_close(struct rig_account *account)
{
        account->closed = true;
        while (drop_one(account))
                ;
        rig_account_unref(account);
}

bool rig_adapter_make_room(struct rig_adapter *adapter, uint64_t bytes)
{
        const struct rig_budget *b = &adapter->budget;

        rig_list_for_each (l, &adapter->accounts) {
                struct rig_account *account = rig_list_entry(l, struct rig_account, link);

                while (rig_range_outside(b->live_bytes + b->cached_bytes, bytes, b->limit_bytes) &&
                        drop_one(account))
                        ;
        }
        return !rig_range_outside(b->live_bytes + b->cached_bytes, bytes, b->limit_bytes);
}

/* ---------------------------------------------------------------- memory that returns */

struct free_job {
        struct rig_slow_job job;
        struct rig_adapter *adapter;
        struct rig_region region;
};

static void free_run(struct rig_slow_job *job)
{
        struct free_job *j = RIG_CONTAINER_OF(job, struct free_job, job);

        j->adapter->driver.driver->region_free(&j->adapter->driver, &j->region);
}

static void free_done(struct rig_slow_job *job)
{
        free(RIG_CONTAINER_OF(job, struct free_job, job));
}

void rig_adapter_free_region(struct rig_adapter *adapter, const struct rig_region *region)
{
        struct free_job *j = calloc(1, sizeof(*j));

        if (!j) {
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(adapter, RIG_LOG_OUT_OF_MEMORY),
                        "adapter %s: no memory to give back %llu bytes", adapter->driver.name,
                        (unsigned long long)region->bytes);
                return;
        }
        j->adapter = adapter;
        j->region = *region;
        j->job.run = free_run;
        j->job.done = free_done;
        rig_adapter_defer(&adapter->driver, &j->job);
}

void rig_adapter_memory_unref(struct rig_memory *memory)
{
        struct rig_adapter *a = memory->adapter;

        if (memory->refs == 1) {
                rig_identities_remove(&a->core->identities, &memory->identity);
                a->n_retiring++;
        }
        rig_memory_unref(memory, &a->core->order);
}

/* The account that pays for the memory, where it is one client's and may be cached for it. */
static struct rig_account *cached_by(const struct rig_memory *m)
{
        struct rig_holder *h;
        struct rig_account *account;

        if (m->shared || !m->charged_bytes || rig_list_empty(&m->holders))
                return NULL;
        h = rig_list_entry(m->holders.next, struct rig_holder, link);
        account = RIG_CONTAINER_OF(h->share, struct rig_account, share);
        return account->closed || account->adapter->state != RIG_ADAPTER_READY ? NULL : account;
}

void rig_adapter_memory_idle(struct rig_memory *memory)
{
        struct rig_adapter *a = memory->adapter;
        struct rig_account *account = cached_by(memory);
        struct rig_holder *h = rig_list_empty(&memory->holders)
                                       ? NULL
                                       : rig_list_entry(memory->holders.next, struct rig_holder, link);
        struct rig_account *holder =
                h && h->share ? RIG_CONTAINER_OF(h->share, struct rig_account, share) : NULL;

        while (!rig_list_empty(&memory->borrows)) {
                struct rig_borrow *b =
                        rig_list_entry(rig_list_pop(&memory->borrows), struct rig_borrow, link);

                rig_adapter_free_region(b->adapter->core, &b->region);
                rig_device_unref(b->device);
                free(b);
        }
        rig_device_unref(memory->device);
        if (!account || !rig_cache_put(&account->cache, &memory->region, memory->kind)) {
                if (memory->charged_bytes)
                        rig_budget_return(&a->budget, memory->charged_bytes);
                rig_adapter_free_region(a, &memory->region);
        }
        rig_memory_free(memory);
        rig_account_unref(holder);
        a->n_retiring--;
        retry_parked(a);
}
