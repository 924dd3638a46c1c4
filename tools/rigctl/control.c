/* SPDX-License-Identifier: ISC */
/*
 * What steers rigd itself: its log level, through the interface that systemd's services share
 * (org.freedesktop.LogControl1), and reading its configuration again.
 */
#include <stdio.h>
#include <string.h>

#include "tools/rigctl/bus.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/words.h"

#define LOG_PATH      "/org/freedesktop/LogControl1"
#define LOG_INTERFACE "org.freedesktop.LogControl1"
#define PROPERTIES    "org.freedesktop.DBus.Properties"

static const char *const levels[] = {"err", "warning", "notice", "info", "debug", NULL};

static int show_level(struct ctl *c)
{
        const struct ctl_call call = {LOG_PATH, PROPERTIES, "Get", "read the log level", NULL, false};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL, *answer = NULL;
        _cleanup_(ctl_value_deinit) struct ctl_value level = {0};
        _cleanup_(rig_freep) char *clean = NULL;
        int r = ctl_bus_message(c, &call, &message);

        if (r == CTL_DONE)
                r = ctl_bus_call(c, &call, message,
                        sd_bus_message_append(message, "ss", LOG_INTERFACE, "LogLevel"), &answer);
        if (r == CTL_DONE)
                r = ctl_bus_read(&call, answer, &level);
        if (r != CTL_DONE)
                return r;
        clean = ctl_text_clean(level.kind == CTL_TEXT ? level.text : "");
        puts(clean);
        return CTL_DONE;
}

static int set_level(struct ctl *c, const char *level)
{
        const struct ctl_call call = {
                LOG_PATH, PROPERTIES, "Set", "set the log level", "org.rig.rig1.set-log-level", false};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = ctl_bus_message(c, &call, &message);

        if (r != CTL_DONE)
                return r;
        r = sd_bus_message_append(message, "ssv", LOG_INTERFACE, "LogLevel", "s", level);
        return ctl_bus_call(c, &call, message, r, NULL);
}

int ctl_verb_log_level(struct ctl *c, char **args)
{
        _cleanup_(rig_freep) char *clean = NULL;
        _cleanup_(rig_freep) char *meant = NULL;

        if (!args[0])
                return show_level(c);
        for (const char *const *level = levels; *level; level++)
                if (strcmp(args[0], *level) == 0)
                        return set_level(c, *level);
        clean = ctl_text_clean(args[0]);
        meant = ctl_did_you_mean(args[0], levels, "");
        return ctl_fail(CTL_WRONG,
                "there is no log level \"%s\"; there are err, warning, notice, info and debug%s", clean,
                meant);
}

int ctl_verb_reload(struct ctl *c, char **args)
{
        const struct ctl_call call = {CTL_MANAGER_PATH, CTL_MANAGER, "Reload", "reload the configuration",
                "org.rig.rig1.reload", false};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL, *answer = NULL;
        _cleanup_(ctl_value_deinit) struct ctl_value remarks = {0};
        int r = ctl_bus_message(c, &call, &message);

        if (r == CTL_DONE)
                r = ctl_bus_call(c, &call, message, 0, &answer);
        if (r == CTL_DONE)
                r = ctl_bus_read(&call, answer, &remarks);
        for (size_t i = 0; r == CTL_DONE && remarks.kind == CTL_LIST && i < remarks.n; i++)
                if (remarks.items[i].kind == CTL_TEXT) {
                        _cleanup_(rig_freep) char *clean = ctl_text_clean(remarks.items[i].text);

                        puts(clean);
                }
        return r;
}
