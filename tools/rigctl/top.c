/* SPDX-License-Identifier: ISC */
/*
 * top: what adapters and clients do, over and over.
 *
 * Each frame is a sample of everything rigd counts, put beside the sample before it. The differences,
 * divided by the time between the two, are added to the records as further keys; then a frame is a list like
 * any other, sorted, tabled or written as JSON from its records. A rigd that started anew in between has
 * other counts and uses numbers of clients again: then, as in the first frame, there are no rates, which
 * shows as "-".
 *
 * rigd costs what two or three calls cost, once a frame. One that ends meanwhile is not started again by
 * being watched.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/rigctl/bus.h"
#include "tools/rigctl/lists.h"
#include "tools/rigctl/people.h"
#include "tools/rigctl/table.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"

#define ADAPTERS_SHARE 3 /* adapters take at most so much of the screen: a third */

struct sample {
        uint64_t nsec; /* when it was taken; 0: never */
        struct ctl_value manager, adapters, clients;
};

static const struct rate {
        const char *of, *key;
        double by; /* of the count, in a second */
} rates[] = {
        {"BusyUSec", "BusyPercent", 1e-4}, /* microseconds in a second are 1e6, which are 100 percent */
        {"RunsReached", "RunsPerSecond", 1},
        {"CopiedBytes", "CopiedBytesPerSecond", 1},
};

static const struct ctl_order orders[] = {
        {"time", 't', "BusyPercent", CTL_DESCENDS},
        {"runs", 'r', "RunsPerSecond", CTL_DESCENDS},
        {"copied", 'c', "CopiedBytesPerSecond", CTL_DESCENDS},
        {"bytes", 'b', "LiveBytes", CTL_DESCENDS},
        {"pid", 'p', "PID", CTL_ASCENDS},
        {"user", 'u', "UID", CTL_ASCENDS},
        {"number", 'n', "Number", CTL_ASCENDS},
};

struct top {
        struct ctl *ctl;
        const struct ctl_order *order;
        bool reverse;
        struct sample now, before;
};

/* ---------------------------------------------------------------- samples */

static void sample_deinit(struct sample *s)
{
        ctl_value_deinit(&s->manager);
        ctl_value_deinit(&s->adapters);
        ctl_value_deinit(&s->clients);
        *s = (struct sample){0};
}

static int take_sample(struct ctl *c, bool first, struct sample *ret_sample)
{
        struct sample s = {.nsec = rig_now_nsec()};
        int r = ctl_bus_manager(c, !first, &s.manager);

        if (r == CTL_DONE)
                r = ctl_bus_adapters(c, true, &s.adapters);
        if (r == CTL_DONE)
                r = ctl_bus_clients(c, true, &s.clients);
        if (r != CTL_DONE) {
                sample_deinit(&s);
                return r;
        }
        *ret_sample = s;
        return CTL_DONE;
}

/* The object of a list that has the same name, or the same number, as `like`. */
static const struct ctl_value *find_like(const struct ctl_value *list, const struct ctl_value *like)
{
        const char *name = ctl_value_text(like, "Name");
        uint64_t number = ctl_value_number(like, "Number");

        for (size_t i = 0; i < list->n; i++)
                if (ctl_value_number(&list->items[i], "Number") == number &&
                        strcmp(ctl_value_text(&list->items[i], "Name"), name) == 0)
                        return &list->items[i];
        return NULL;
}

/* Adds its rates to an object; `before` is what it was then, or NULL. */
static void add_rates(struct ctl_value *now, const struct ctl_value *before, double seconds)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(rates); i++) {
                uint64_t a = before ? ctl_value_number(before, rates[i].of) : 0,
                         b = ctl_value_number(now, rates[i].of);

                if (!before || b < a)
                        ctl_value_add(now, rates[i].key);
                else
                        ctl_value_add_real(now, rates[i].key, (double)(b - a) * rates[i].by / seconds);
        }
}

static void rate_sample(struct sample *now, const struct sample *before)
{
        bool same = before->nsec && ctl_value_number(&now->manager, "StartUSec") ==
                                            ctl_value_number(&before->manager, "StartUSec");
        double seconds = (double)RIG_MAX(now->nsec - before->nsec, UINT64_C(1)) / 1e9;

        add_rates(&now->manager, same ? &before->manager : NULL, seconds);
        for (size_t i = 0; i < now->adapters.n; i++)
                add_rates(&now->adapters.items[i],
                        same ? find_like(&before->adapters, &now->adapters.items[i]) : NULL, seconds);
        for (size_t i = 0; i < now->clients.n; i++)
                add_rates(&now->clients.items[i],
                        same ? find_like(&before->clients, &now->clients.items[i]) : NULL, seconds);
}

/* ---------------------------------------------------------------- a frame for people */

static char *rate_text(const struct ctl_value *map, const char *key)
{
        const struct ctl_value *v = ctl_value_find(map, key);

        return v && v->kind == CTL_REAL ? ctl_rate(v->real) : ctl_copy("");
}

static char *bytes_text(const struct ctl_value *map, const char *key)
{
        const struct ctl_value *v = ctl_value_find(map, key);

        if (!v || v->kind != CTL_REAL)
                return ctl_copy("");
        return v->real < 1e18 ? ctl_bytes((uint64_t)v->real) : ctl_copy("");
}

static char *percent_text(const struct ctl_value *map, const char *key)
{
        const struct ctl_value *v = ctl_value_find(map, key);

        if (!v || v->kind != CTL_REAL)
                return ctl_copy("");
        return v->real < 99999 ? ctl_printf("%.1f", v->real) : ctl_rate(v->real);
}

static const struct ctl_column adapter_columns[] = {
        {"ADAPTER", .at_least = 12},
        {"STATE", .at_least = 5},
        {"TIME%", .right = true},
        {"RUNS/S", .right = true},
        {"COPIED/S", .right = true},
        {"BYTES", .right = true},
        {"BUDGET", .right = true},
        {"CACHED", .right = true},
        {"DEVICES", .right = true, .extra = 1},
};

static void write_adapters(const struct top *t, FILE *f, size_t most)
{
        _cleanup_(ctl_table_deinit) struct ctl_table table;
        const struct ctl_value *list = &t->now.adapters;
        size_t n = list->n > most ? most - 1 : list->n;

        ctl_table_init(&table, adapter_columns, RIG_ARRAY_SIZE(adapter_columns));
        for (size_t i = 0; i < n; i++) {
                const struct ctl_value *a = &list->items[i];
                _cleanup_(rig_freep) char *trouble = ctl_adapter_trouble(a);

                ctl_table_add(&table, ctl_value_clean(a, "Name"));
                ctl_table_add(&table, ctl_adapter_state(a));
                ctl_table_add(&table, percent_text(a, "BusyPercent"));
                ctl_table_add(&table, rate_text(a, "RunsPerSecond"));
                ctl_table_add(&table, bytes_text(a, "CopiedBytesPerSecond"));
                ctl_table_add(&table, ctl_bytes(ctl_value_number(a, "LiveBytes")));
                ctl_table_add(&table, ctl_bytes(ctl_value_number(a, "BudgetBytes")));
                ctl_table_add(&table, ctl_bytes(ctl_value_number(a, "CachedBytes")));
                ctl_table_add(&table, ctl_count(ctl_value_number(a, "Devices")));
                if (*trouble)
                        ctl_table_warn(&table);
        }
        ctl_table_write(&table, f, &t->ctl->screen, t->ctl->legend);
        if (n < list->n)
                fprintf(f, "and %zu more\n", list->n - n);
}

static const struct ctl_column client_columns[] = {
        {"NUMBER", .right = true},
        {"PID", .right = true},
        {"USER", .at_least = 8},
        {"UNIT/COMMAND", .at_least = 12},
        {"COMMAND", .extra = 1},
        {"TIME%", .right = true},
        {"RUNS/S", .right = true},
        {"COPIED/S", .right = true},
        {"BYTES", .right = true},
        {"RUNS", .right = true},
        {"OBJECTS", .right = true, .extra = 2},
};

static void write_clients(const struct top *t, FILE *f, size_t most)
{
        _cleanup_(ctl_table_deinit) struct ctl_table table;
        const struct ctl_value *list = &t->now.clients;

        ctl_table_init(&table, client_columns, RIG_ARRAY_SIZE(client_columns));
        for (size_t i = 0; i < RIG_MIN(list->n, most); i++) {
                const struct ctl_value *k = &list->items[i];

                ctl_table_add(&table, ctl_count(ctl_value_number(k, "Number")));
                ctl_table_add(&table, ctl_count(ctl_value_number(k, "PID")));
                ctl_table_add(&table, ctl_copy(ctl_user_name(ctl_value_number(k, "UID"))));
                ctl_table_add(&table, ctl_client_origin(k));
                ctl_table_add(&table, ctl_value_clean(k, "Command"));
                ctl_table_add(&table, percent_text(k, "BusyPercent"));
                ctl_table_add(&table, rate_text(k, "RunsPerSecond"));
                ctl_table_add(&table, bytes_text(k, "CopiedBytesPerSecond"));
                ctl_table_add(&table, ctl_bytes(ctl_value_number(k, "LiveBytes")));
                ctl_table_add(&table, ctl_count(ctl_value_number(k, "RunsInFlight")));
                ctl_table_add(&table, ctl_count(ctl_value_number(k, "Objects")));
        }
        ctl_table_write(&table, f, &t->ctl->screen, t->ctl->legend);
}

/* A line of plain words, no longer than the screen. */
static void write_words(const struct top *t, FILE *f, char *words)
{
        fprintf(f, "%.*s\n", (int)ctl_text_fit(words, t->ctl->screen.columns), words);
        free(words);
}

static void write_head(const struct top *t, FILE *f)
{
        const struct ctl_value *m = &t->now.manager;
        _cleanup_(rig_freep) char *version = ctl_value_clean(m, "Version");
        _cleanup_(rig_freep) char *runs = rate_text(m, "RunsPerSecond");
        _cleanup_(rig_freep) char *copied = bytes_text(m, "CopiedBytesPerSecond");

        write_words(t, f,
                ctl_printf("rigd %s; clients %zu, devices %" PRIu64 "; runs/s %s, copied/s %s; by %s%s",
                        version, t->now.clients.n, ctl_value_number(m, "Devices"), *runs ? runs : "-",
                        *copied ? copied : "-", t->order->name, t->reverse ? ", reversed" : ""));
}

/* The frame as text. The caller frees. */
static char *compose(struct top *t)
{
        unsigned rows = t->ctl->screen.rows;
        size_t adapter_rows = rows == UINT32_MAX ? SIZE_MAX : RIG_MAX(rows / ADAPTERS_SHARE, 2u);
        char *text = NULL;
        size_t bytes;
        FILE *f = open_memstream(&text, &bytes);

        if (!f)
                ctl_out_of_memory();
        ctl_order_sort(&t->now.clients, t->order, t->reverse);
        write_head(t, f);
        fputc('\n', f);
        write_adapters(t, f, adapter_rows);
        fputc('\n', f);
        write_clients(t, f, rows);
        if (fclose(f) != 0)
                ctl_out_of_memory();
        return text;
}

/* ---------------------------------------------------------------- frame after frame */

static int next_sample(struct top *t)
{
        sample_deinit(&t->before);
        t->before = t->now;
        t->now = (struct sample){0};
        return take_sample(t->ctl, t->before.nsec == 0, &t->now);
}

static int print_frame(struct top *t, bool first)
{
        _cleanup_(rig_freep) char *text = NULL;
        struct ctl_value frame = {.kind = CTL_MAP};

        rate_sample(&t->now, &t->before);
        if (t->ctl->json == CTL_JSON_OFF) {
                text = compose(t);
                printf("%s%s", first ? "" : "\n", text);
                return ctl_flush();
        }
        ctl_order_sort(&t->now.clients, t->order, t->reverse);
        /* Lent for the time of writing: the next frame is compared with them. */
        *ctl_value_add(&frame, "Manager") = t->now.manager;
        *ctl_value_add(&frame, "Adapters") = t->now.adapters;
        *ctl_value_add(&frame, "Clients") = t->now.clients;
        ctl_wrote_json(t->ctl, &frame);
        for (size_t i = 0; i < frame.n; i++)
                frame.items[i] = (struct ctl_value){0};
        ctl_value_deinit(&frame);
        return ctl_flush();
}

static void sleep_until(uint64_t usec)
{
        struct timespec at = {.tv_sec = (time_t)(usec / RIG_USEC_PER_SEC),
                .tv_nsec = (long)(usec % RIG_USEC_PER_SEC * RIG_NSEC_PER_USEC)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
                ;
}

static int print_frames(struct top *t)
{
        uint64_t iterations = t->ctl->iterations;

        for (uint64_t i = 0; iterations == 0 || i < iterations; i++) {
                int r;

                if (i)
                        sleep_until(t->now.nsec / RIG_NSEC_PER_USEC + t->ctl->delay_usec);
                r = next_sample(t);
                if (r == CTL_DONE)
                        r = print_frame(t, i == 0);
                if (r != CTL_DONE)
                        return r;
        }
        return CTL_DONE;
}

/* Does what a key says. Return: whether it was the last. */
static bool take_key(struct top *t, int key)
{
        if (key == 'R')
                t->reverse = !t->reverse;
        for (size_t i = 0; i < RIG_ARRAY_SIZE(orders); i++)
                if (key == orders[i].key)
                        t->order = &orders[i];
        return key == 'q' || key == 'Q' || key == 4 || key == -EPIPE; /* 4: ^D */
}

static int draw(struct top *t)
{
        _cleanup_(rig_freep) char *text = NULL;

        ctl_screen_look(&t->ctl->screen);
        text = compose(t);
        return ctl_screen_draw(text, t->ctl->screen.rows);
}

/* Draws, and takes keys, until the next frame is due. Return: whether to go on. */
static bool watch_frame(struct top *t)
{
        uint64_t due = rig_now_usec() + t->ctl->delay_usec;

        rate_sample(&t->now, &t->before);
        for (;;) {
                uint64_t now;
                int key;

                if (draw(t) < 0)
                        return false;
                now = rig_now_usec();
                key = ctl_screen_key(due > now ? due - now : 0);
                if (key == CTL_KEY_NONE || key == ' ')
                        return true;
                if (take_key(t, key))
                        return false;
        }
}

static int watch(struct top *t)
{
        int r = next_sample(
                t); /* before the screen is taken: most of what can be wrong is told on the old one */
        uint64_t n = 0;

        if (r != CTL_DONE)
                return r;
        if (ctl_screen_enter() < 0)
                return ctl_fail(
                        CTL_FAILED, "top: the keyboard is no terminal; rigctl top --batch needs none");
        while (watch_frame(t) && (t->ctl->iterations == 0 || ++n < t->ctl->iterations)) {
                r = next_sample(t);
                if (r != CTL_DONE)
                        break;
        }
        ctl_screen_leave();
        return r;
}

int ctl_verb_top(struct ctl *c, char **args)
{
        struct top t = {.ctl = c, .order = &orders[0], .reverse = c->reverse};
        int r = CTL_DONE;

        if (c->json == CTL_JSON_PRETTY)
                c->json = CTL_JSON_SHORT; /* a frame is a line */
        if (c->sort)
                r = ctl_order_find(orders, RIG_ARRAY_SIZE(orders), c->sort, &t.order);
        if (r == CTL_DONE && (c->batch || c->json != CTL_JSON_OFF || !c->screen.terminal)) {
                c->screen.rows = UINT32_MAX;
                r = print_frames(&t);
        } else if (r == CTL_DONE) {
                r = watch(&t);
        }
        sample_deinit(&t.now);
        sample_deinit(&t.before);
        return r;
}
