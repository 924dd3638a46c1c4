/* SPDX-License-Identifier: ISC */
/*
 * The loop (daemon/core.h).
 *
 * Turning. A turn costs a glance at each active client's ring and each busy device's word, tens of
 * nanoseconds. The event loop proper (sockets, doorbells, timers, threads' notes) is looked at about every
 * LOOK_USEC while the core is awake, since that costs a system call, and is all there is once it sleeps.
 *
 * Sleeping. The core sets each active client's `sleeping` flag, then looks at every ring once more; a client
 * publishes, then looks at the flag. Both are sequentially consistent, so one of them sees the other.
 */
#include "daemon/core.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "daemon/adapter.h"
#include "daemon/client.h"
#include "daemon/log/log.h"
#include "daemon/post.h"
#include "daemon/signals.h"
#include "daemon/trace.h"

#define LOOK_USEC         20u /* between looks at the event loop while awake */
#define ACCEPTS_MAX       64u /* connections accepted before others get their turn */
#define CLOCK_TURNS       16u /* idle turns between looks at the clock */
#define ACCEPT_PAUSE_USEC (UINT64_C(100) * RIG_USEC_PER_MSEC)
#define DRAIN_USEC        (UINT64_C(5) * RIG_USEC_PER_SEC)
#define DRAIN_LOOK_USEC   (UINT64_C(10) * RIG_USEC_PER_MSEC)
#define FDS_RESERVED      ((rlim_t)64)
#define HANG_CHECK_USEC   (UINT64_C(20) * RIG_USEC_PER_MSEC)

/* ---------------------------------------------------------------- adapters */

struct discovery {
        struct rig_core *core;
        int error;
};

static void found(const struct rig_driver_adapter *adapter, void *userdata)
{
        struct discovery *d = userdata;
        struct rig_adapter *a;

        if (!d->error)
                d->error = rig_adapter_new(d->core, adapter, &a);
}

static int discover(struct rig_core *core, const struct rig_driver *const *drivers, struct rig_error *e)
{
        for (; *drivers; drivers++) {
                struct discovery d = {.core = core};
                int r;

                rig_driver_check(*drivers);
                r = (*drivers)->discover(found, &d);
                if (r < 0 || d.error)
                        return rig_error_set(e, r < 0 ? r : d.error, "the driver %s finds no adapters: %s",
                                (*drivers)->name, strerror(r < 0 ? -r : -d.error));
        }
        return 0;
}

/* ---------------------------------------------------------------- hangs */

static int hang_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rig_core *core = userdata;
        bool bounded = false;

        rig_core_poll_devices(core);
        rig_list_for_each_safe (l, &core->busy) {
                struct rig_device *d = rig_list_entry(l, struct rig_device, busy);
                uint64_t bound = d->driver.facts.hang_usec;

                if (rig_timeline_hangs(d->timeline, rig_now_usec(), bound)) {
                        char reason[RIG_ERROR_TEXT_MAX];

                        snprintf(reason, sizeof(reason),
                                "its work stood still for %llu ms: value %llu was not reached",
                                (unsigned long long)(bound / RIG_USEC_PER_MSEC),
                                (unsigned long long)d->timeline->reached + 1);
                        rig_adapter_lose(d->adapter, reason);
                        bounded = true;
                        break; /* the list of busy devices changed: the next check does the others */
                }
                bounded = bounded || bound;
        }
        rig_core_settle(core);
        core->hang_timer_armed = bounded;
        if (!bounded)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return sd_event_source_set_time_relative(source, HANG_CHECK_USEC);
}

void rig_core_arm_hang_timer(struct rig_core *core)
{
        if (core->hang_timer_armed)
                return;
        core->hang_timer_armed = true;
        sd_event_source_set_time_relative(core->hang_timer, HANG_CHECK_USEC);
        sd_event_source_set_enabled(core->hang_timer, SD_EVENT_ON);
}

/* ---------------------------------------------------------------- life */

static int fds_max(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT32_MAX)
                return INT32_MAX;
        return (int)limit.rlim_cur - (int)RIG_MIN(limit.rlim_cur / 4, FDS_RESERVED);
}

bool rig_core_keeps_fd(const struct rig_core *core, int fd)
{
        return fd < core->fds_max;
}

int rig_core_new(const struct rig_config *config, const struct rig_driver *const *drivers,
        struct rig_core **ret_core, struct rig_error *e)
{
        struct rig_core *core = calloc(1, sizeof(*core));
        int r;

        if (!core)
                return -ENOMEM;
        core->config = *config;
        core->loop_thread = pthread_self();
        core->listen_fd = -EBADF;
        core->fds_max = fds_max();
        rig_order_init(&core->order);
        rig_list_init(&core->adapters);
        rig_list_init(&core->clients);
        rig_list_init(&core->active);
        rig_list_init(&core->stalled);
        rig_list_init(&core->busy);
        rig_list_init(&core->traces);
        core->start_usec = rig_clock_usec(CLOCK_REALTIME);
        core->msg = malloc(sizeof(*core->msg));
        r = core->msg ? sd_event_default(&core->event) : -ENOMEM;
        if (r >= 0)
                r = rig_post_new(core->event, &core->post);
        if (r >= 0)
                r = rig_signals_new(&core->signals);
        if (r >= 0)
                r = sd_event_add_time_relative(core->event, &core->hang_timer, CLOCK_MONOTONIC,
                        HANG_CHECK_USEC, RIG_USEC_PER_MSEC, hang_timer, core);
        if (r >= 0)
                r = sd_event_source_set_enabled(core->hang_timer, SD_EVENT_OFF);
        if (r >= 0)
                sd_event_source_set_description(core->hang_timer, "hang bounds");
        if (r < 0)
                rig_error_set(e, r, "the core cannot start: %s", strerror(-r));
        else
                r = discover(core, drivers, e);
        if (r < 0) {
                rig_core_free(core);
                return r;
        }
        *ret_core = core;
        return 0;
}

/* Ends every client, and lets what they held return as far as it does by itself. */
static void end_clients(struct rig_core *core)
{
        while (!rig_list_empty(&core->clients))
                rig_client_end(rig_list_entry(core->clients.next, struct rig_client, link));
        rig_core_settle(core);
}

struct rig_core *rig_core_free(struct rig_core *core)
{
        if (!core || core->left_behind)
                return NULL; /* slow threads still use it */
        end_clients(core);
        while (!rig_list_empty(&core->adapters))
                rig_adapter_free(rig_list_entry(core->adapters.next, struct rig_adapter, link));
        sd_event_source_disable_unref(core->listen_source);
        sd_event_source_disable_unref(core->accept_timer);
        rig_close(core->listen_fd);
        sd_event_source_disable_unref(core->hang_timer);
        rig_signals_free(core->signals);
        rig_post_free(core->post);
        rig_identities_deinit(&core->identities);
        sd_event_unref(core->event);
        while (core->bites) {
                struct rig_bite *bite = core->bites;

                core->bites = bite->next;
                free(bite);
        }
        free(core->msg);
        free(core);
        return NULL;
}

/* ---------------------------------------------------------------- connections */

/* Says why before it closes: an end without a word would look like a rigd that died. */
static void turn_away(struct rig_core *core, int fd, int error, const char *text)
{
        struct rig_msg_broken m = {.error = (uint32_t)error};
        struct rig_log_about about = rig_log_of_peer(fd);
        uint8_t data[RIG_ERROR_TEXT_MAX + 64];
        ssize_t n;

        core->n_refused++;
        about.message_id = error == EMFILE ? RIG_LOG_CONNECTION_DESCRIPTORS : RIG_LOG_CONNECTIONS_MAX;
        about.setting = error == EMFILE ? "LimitNOFILE" : "ClientsMax";
        rig_log_about(LOG_WARNING, &about, "a connection was refused: %s (pid %d, uid %u)", text,
                (int)about.pid, (unsigned)about.uid);
        m.text = rig_text(text, RIG_PROTO_TEXT_MAX);
        n = rig_codec_encode(RIG_MSG_BROKEN, &m, data, sizeof(data));
        if (n > 0)
                (void)rig_packet_send(fd, data, (size_t)n, NULL, 0, RIG_PACKET_DONTWAIT);
        rig_packet_hang_up(fd);
        rig_close(fd);
}

/* No descriptor is left: connections wait in the socket's queue for a while, rather than spin the loop. */
static void pause_accepting(struct rig_core *core)
{
        rig_log_about(LOG_WARNING,
                &(struct rig_log_about){.message_id = RIG_LOG_ACCEPTING_PAUSED, .limited = true},
                "no connection is accepted for a while: %s", strerror(errno));
        sd_event_source_set_enabled(core->listen_source, SD_EVENT_OFF);
        sd_event_source_set_time_relative(core->accept_timer, ACCEPT_PAUSE_USEC);
        sd_event_source_set_enabled(core->accept_timer, SD_EVENT_ONESHOT);
}

static int accept_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rig_core *core = userdata;

        return sd_event_source_set_enabled(core->listen_source, SD_EVENT_ON);
}

static int accepts(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct rig_core *core = userdata;
        struct rig_client *c;

        for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
                int r, s = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

                if (s < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
                        pause_accepting(core);
                if (s < 0)
                        break;
                if (core->n_clients >= core->config.clients_max) {
                        char text[RIG_ERROR_TEXT_MAX];

                        snprintf(text, sizeof(text), "there are %u connections, and ClientsMax is %llu",
                                core->n_clients, (unsigned long long)core->config.clients_max);
                        turn_away(core, s, EUSERS, text);
                        continue;
                }
                if (!rig_core_keeps_fd(core, s)) {
                        turn_away(core, s, EMFILE, RIG_NO_FDS);
                        continue;
                }
                r = rig_client_new(core, s, &c);
                if (r < 0)
                        rig_log_about(LOG_WARNING,
                                &(struct rig_log_about){
                                        .message_id = RIG_LOG_CLIENT_UNSERVED, .limited = true},
                                "a connection cannot be served: %s", strerror(-r));
        }
        return 0;
}

int rig_core_listen(struct rig_core *core, int fd)
{
        int r = sd_event_add_io(core->event, &core->listen_source, fd, EPOLLIN, accepts, core);

        if (r >= 0)
                r = sd_event_add_time_relative(core->event, &core->accept_timer, CLOCK_MONOTONIC,
                        ACCEPT_PAUSE_USEC, RIG_USEC_PER_MSEC, accept_timer, core);
        if (r >= 0)
                r = sd_event_source_set_enabled(core->accept_timer, SD_EVENT_OFF);
        if (r < 0) {
                rig_close(fd);
                return r;
        }
        core->listen_fd = fd;
        sd_event_source_set_description(core->listen_source, "listening socket");
        return 0;
}

int rig_core_serve(struct rig_core *core, int fd)
{
        struct rig_client *c;
        int r = rig_client_new(core, fd, &c);

        core->private_client = r >= 0;
        return r;
}

/* ---------------------------------------------------------------- turning */

struct rig_bite *rig_core_bite(struct rig_core *core)
{
        struct rig_bite *bite = core->bites;

        if (!bite)
                return malloc(sizeof(*bite));
        core->bites = bite->next;
        return bite;
}

void rig_core_bite_done(struct rig_core *core, struct rig_bite *bite)
{
        bite->next = core->bites;
        core->bites = bite;
}

bool rig_core_poll_devices(struct rig_core *core)
{
        struct rig_list round, *l;
        bool moved = false;

        /* A fault takes devices off whatever list they are on. */
        rig_list_move_all(&core->busy, &round);
        while ((l = rig_list_pop(&round))) {
                rig_list_append(&core->busy, l);
                moved = rig_device_poll(rig_list_entry(l, struct rig_device, busy)) || moved;
        }
        return moved;
}

void rig_core_count_usage(struct rig_core *core)
{
        uint64_t now_nsec = rig_now_nsec();

        rig_list_for_each (l, &core->busy)
                rig_device_count_busy(rig_list_entry(l, struct rig_device, busy), now_nsec);
        core->usage = (struct rig_usage){0};
        rig_list_for_each (l, &core->adapters)
                rig_usage_add(&core->usage, &rig_list_entry(l, struct rig_adapter, link)->usage);
}

void rig_core_settle(struct rig_core *core)
{
        do
                rig_order_run(&core->order);
        while (!rig_list_empty(&core->busy) && rig_core_poll_devices(core));
}

/* Gives each active client its share of the turn. */
static bool take_from_clients(struct rig_core *core)
{
        struct rig_list round, *l;
        bool any = false;

        /* Clients end, and wake others, while they are taken from. */
        rig_list_move_all(&core->active, &round);
        while ((l = rig_list_pop(&round))) {
                struct rig_client *c = rig_client_ref(rig_list_entry(l, struct rig_client, active));

                rig_list_append(&core->active, l);
                if (rig_client_take(c)) {
                        any = true;
                        rig_core_settle(core);
                }
                rig_client_unref(c);
        }
        return any;
}

static void look_at_clock(struct rig_core *core)
{
        core->now_nsec = rig_now_nsec();
        core->now_usec = core->now_nsec / RIG_NSEC_PER_USEC;
}

/* One look at everything that can be looked at without a system call. Return: whether something happened. */
static bool turn(struct rig_core *core)
{
        bool any = take_from_clients(core);

        if (rig_post_run(core->post))
                any = true;
        if (atomic_load_explicit(&core->kicked, memory_order_relaxed) &&
                atomic_exchange_explicit(&core->kicked, false, memory_order_acquire))
                any = true;
        /* What the event loop called since the last turn may have left something due, too. */
        if (any || !rig_list_empty(&core->busy) || !rig_list_empty(&core->order.due) ||
                !rig_list_empty(&core->order.woken))
                rig_core_settle(core);
        if (rig_traced(core))
                rig_trace_memory(core, false);
        return any;
}

/* Lets active clients rest that have been quiet: those that have published meanwhile stay. */
static void rest_clients(struct rig_core *core)
{
        struct rig_list round, *l;

        rig_list_move_all(&core->active, &round);
        while ((l = rig_list_pop(&round))) {
                struct rig_client *c = rig_list_entry(l, struct rig_client, active);

                if (core->now_usec - c->active_usec < core->config.poll_usec || !rig_client_rest(c))
                        rig_list_append(&core->active, l);
        }
}

/* Sleeps until a descriptor, a timer or a note has something, unless it has already. */
static int sleep_until_event(struct rig_core *core)
{
        int r;

        if (rig_traced(core))
                rig_trace_memory(core, true);
        core->n_sleeps++;
        core->now_nsec = 0;
        atomic_store_explicit(&core->asleep, true, memory_order_seq_cst);
        r = sd_event_run(core->event,
                atomic_load_explicit(&core->kicked, memory_order_seq_cst) ? 0 : RIG_USEC_INFINITY);
        atomic_store_explicit(&core->asleep, false, memory_order_relaxed);
        return r;
}

int rig_core_turn(struct rig_core *core, uint64_t usec)
{
        int r;

        look_at_clock(core);
        turn(core);
        core->now_nsec = 0;
        atomic_store_explicit(&core->asleep, true, memory_order_seq_cst);
        r = sd_event_run(core->event, atomic_load_explicit(&core->kicked, memory_order_seq_cst) ? 0 : usec);
        atomic_store_explicit(&core->asleep, false, memory_order_relaxed);
        rest_clients(core);
        return r < 0 ? r : 0;
}

/* Values reached so far, of every device that there is. */
static uint64_t values_reached(const struct rig_core *core)
{
        uint64_t n = 0;

        rig_list_for_each (l, &core->order.timelines)
                n += rig_list_entry(l, struct rig_timeline, all)->reached;
        return n;
}

/* Whether something is still to complete, once what is due was done. */
static bool busy(struct rig_core *core)
{
        rig_core_settle(core);
        rig_list_for_each (l, &core->adapters)
                if (rig_adapter_busy(rig_list_entry(l, struct rig_adapter, link)))
                        return true;
        return false;
}

/*
 * Completes what clients that are gone had handed over, and lets their memory return. Work that does not end
 * is left behind after DRAIN_USEC, counted from the last value reached where `patient`.
 */
static int drain(struct rig_core *core, bool patient)
{
        uint64_t deadline_usec = rig_deadline_usec(DRAIN_USEC), reached = values_reached(core);

        while (busy(core)) {
                int r = rig_core_turn(core, DRAIN_LOOK_USEC);

                if (r < 0)
                        return r;
                if (patient && values_reached(core) != reached) {
                        reached = values_reached(core);
                        deadline_usec = rig_deadline_usec(DRAIN_USEC);
                }
                if (rig_now_usec() >= deadline_usec) {
                        rig_log_about(LOG_WARNING,
                                &(struct rig_log_about){.message_id = RIG_LOG_WORK_LEFT_BEHIND},
                                "work that does not end is left behind");
                        core->left_behind = true;
                        return 0;
                }
        }
        return 0;
}

/* Turns until the core is told to stop. */
static int turn_until_stopped(struct rig_core *core)
{
        uint64_t looked_usec = 0;
        unsigned turns = 0;
        bool any = false;
        int r;

        look_at_clock(core);
        while (!core->stopping) {
                if (turn(core))
                        any = true;
                else
                        rig_cpu_relax();
                if (++turns % CLOCK_TURNS && !rig_list_empty(&core->active))
                        continue;
                look_at_clock(core);
                if (any)
                        core->busy_usec = core->now_usec;
                any = false;
                if (core->now_usec - looked_usec >= LOOK_USEC) {
                        r = sd_event_run(core->event, 0);
                        if (r < 0)
                                return r;
                        any = r > 0;
                        looked_usec = core->now_usec;
                        rest_clients(core);
                }
                if (any || core->now_usec - core->busy_usec < core->config.poll_usec ||
                        !rig_list_empty(&core->active))
                        continue;
                r = sleep_until_event(core);
                if (r < 0)
                        return r;
                look_at_clock(core);
                any = true;
        }
        return 0;
}

int rig_core_run(struct rig_core *core)
{
        int r = turn_until_stopped(core);
        bool alone = core->private_client && rig_list_empty(&core->clients);

        end_clients(core);
        return r < 0 ? r : drain(core, alone);
}

void rig_core_stop(struct rig_core *core)
{
        core->stopping = true;
}
