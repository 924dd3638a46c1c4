/* SPDX-License-Identifier: ISC */
/*
 * See reload.h. Applying is writing into the core's own settings: it looks at PollUSec and ClientsMax each
 * time, and gives a connection its limits when it is made, so that those that are there keep theirs. What
 * cannot be changed under what was made with it stays as it was, in the core's settings too, which therefore
 * always say what counts.
 *
 * It runs on the core loop and reads files there: some small ones of this machine's administration, when an
 * admin says so. It is the one place where the loop looks at a file system.
 */
#include "daemon/main/reload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "daemon/log/log.h"

/* Sentences for whoever asked; the end is NULL at any time. */
struct remarks {
        char **sentences;
        size_t n;
        bool failed;
};

static void remarks_deinit(struct remarks *r)
{
        for (size_t i = 0; i < r->n; i++)
                free(r->sentences[i]);
        free(r->sentences);
}

static void remark(struct remarks *r, const char *sentence)
{
        char **more = realloc(r->sentences, (r->n + 2) * sizeof(*more));

        if (!more) {
                r->failed = true;
                return;
        }
        r->sentences = more;
        more[r->n] = strdup(sentence);
        more[r->n + 1] = NULL;
        if (more[r->n])
                r->n++;
        else
                r->failed = true;
}

void rig_reload_complain(const struct rig_config_read *read)
{
        static const struct rig_log_about about = {.message_id = RIG_LOG_CONFIG_WRONG};

        for (size_t i = 0; i < read->n_complaints; i++)
                rig_log_about(LOG_WARNING, &about, "configuration: %s", read->complaints[i]);
}

void rig_reload_ready(const struct rig_reload *reload, size_t n_wrong)
{
        char wrong[80] = "";

        if (n_wrong)
                snprintf(wrong, sizeof(wrong), "; its configuration has %zu mistake%s, which the log names",
                        n_wrong, n_wrong == 1 ? "" : "s");
        sd_notifyf(false, "READY=1\nSTATUS=%s%s", reload->serving, wrong);
}

/* A setting that is another one now: takes it over, or says that it waits. */
static void apply(struct rig_config *now, const struct rig_config *next, size_t i, char *changes,
        size_t bytes, struct remarks *remarks)
{
        char old[RIG_CONFIG_VALUE_BYTES], new[RIG_CONFIG_VALUE_BYTES], sentence[RIG_ERROR_TEXT_MAX];
        struct rig_log_about about = {.message_id = RIG_LOG_CONFIG_NEEDS_RESTART};
        size_t n = strlen(changes);

        rig_config_get(now, i, &about.setting, old, sizeof(old));
        rig_config_get(next, i, &about.setting, new, sizeof(new));
        if (rig_config_needs_restart(i)) {
                snprintf(sentence, sizeof(sentence),
                        "%s=%s counts after a restart of rigd; it stays %s until then", about.setting, new,
                        old);
                rig_log_about(LOG_NOTICE, &about, "configuration: %s", sentence);
                remark(remarks, sentence);
                return;
        }
        rig_config_copy(now, next, i);
        snprintf(changes + n, bytes - n, "%s%s is %s, was %s", n ? ", " : "", about.setting, new, old);
}

/* Return: how much of what was read is wrong. */
static size_t apply_all(
        struct rig_reload *reload, const struct rig_config_read *read, struct remarks *remarks)
{
        static const struct rig_log_about about = {.message_id = RIG_LOG_CONFIG_RELOADED};
        struct rig_config *now = &reload->core->config;
        char changes[768] = "";

        rig_reload_complain(read);
        for (size_t i = 0; i < read->n_complaints; i++)
                remark(remarks, read->complaints[i]);
        for (size_t i = 0; i < RIG_CONFIG_KEYS; i++)
                if (!read->wrong[i] && !rig_config_same(now, &read->config, i))
                        apply(now, &read->config, i, changes, sizeof(changes), remarks);
        rig_log_about(LOG_NOTICE, &about, "configuration read again, from %zu file%s: %s", read->n_paths,
                read->n_paths == 1 ? "" : "s", *changes ? changes : "nothing that counts now is different");
        rig_log_set_level((int)now->log_level);
        return read->n_complaints;
}

/* Reads all of it, or nothing. */
static int read_again(struct rig_reload *reload, struct rig_config_read **ret_read, struct rig_error *e)
{
        static const struct rig_log_about about = {.message_id = RIG_LOG_CONFIG_UNREADABLE};
        _cleanup_(rig_config_read_freep) struct rig_config_read *read = NULL;
        struct rig_error why = RIG_ERROR_NULL;
        int r = rig_config_read(reload->sources, &read, &why);

        if (r >= 0 && read->unreadable)
                r = rig_error_set(&why, -EINVAL, "%s", read->unreadable);
        if (r < 0) {
                rig_log_about(LOG_ERR, &about, "the configuration stays as it was: %s", why.text);
                return rig_error_set(e, r, "%s", why.text);
        }
        *ret_read = RIG_STEAL(read);
        return 0;
}

int rig_reload_run(struct rig_reload *reload, char ***ret_remarks, struct rig_error *e)
{
        _cleanup_(rig_config_read_freep) struct rig_config_read *read = NULL;
        _cleanup_(remarks_deinit) struct remarks remarks = {.sentences = calloc(1, sizeof(char *))};
        size_t wrong = 1;
        int r;

        sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=Reading its configuration again",
                rig_now_usec());
        r = remarks.sentences ? read_again(reload, &read, e)
                              : rig_error_set(e, -ENOMEM, "there is no memory");
        if (r >= 0)
                wrong = apply_all(reload, read, &remarks);
        rig_reload_ready(reload, wrong);
        if (r >= 0 && ret_remarks) {
                if (remarks.failed)
                        return rig_error_set(e, -ENOMEM, "there is no memory to say what was read");
                *ret_remarks = RIG_STEAL(remarks.sentences);
                remarks.n = 0;
        }
        return r;
}
