/* SPDX-License-Identifier: ISC */
/* See daemon/log.h. Priorities are written as sd-daemon(3) has them where the journal reads standard error.
 */
#include "daemon/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int log_level = LOG_INFO;
static unsigned dropped;

static const char *const names[] = {[LOG_ERR] = "err",
        [LOG_WARNING] = "warning",
        [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",
        [LOG_DEBUG] = "debug"};

void rig_log_set_level(int level)
{
        log_level = level;
}

int rig_log_level_from_string(const char *name)
{
        for (int i = LOG_ERR; i <= LOG_DEBUG; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        return -EINVAL;
}

static bool writable(void)
{
        struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

        return poll(&p, 1, 0) == 1 && !(p.revents & (POLLERR | POLLNVAL));
}

void rig_log(int level, const char *fmt, ...)
{
        static int journal = -1;
        char line[1024];
        va_list ap;
        int n, head;

        if (level > log_level)
                return;
        if (journal < 0)
                journal = getenv("JOURNAL_STREAM") != NULL;
        if (!writable()) {
                dropped++;
                return;
        }
        head = journal ? snprintf(line, sizeof(line), "<%d>", level)
                       : snprintf(line, sizeof(line), "rigd: ");
        if (dropped) {
                head += snprintf(
                        line + head, sizeof(line) - (size_t)head, "(%u lines were dropped) ", dropped);
                dropped = 0;
        }
        va_start(ap, fmt);
        n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
        va_end(ap);
        n = n < 0 ? head : head + n;
        n = RIG_MIN(n, (int)sizeof(line) - 2);
        line[n] = '\n';
        if (write(STDERR_FILENO, line, (size_t)n + 1) < 0)
                dropped++;
}
