/* SPDX-License-Identifier: ISC */
/*
 * The log (daemon/log/log.h).
 *
 * Two ways out, decided once. Where standard error is the journal's (JOURNAL_STREAM names it), a line is one
 * datagram of fields to the journal's own socket, on a socket that does not block; should nobody be there,
 * it takes the other way. That is text on standard error, after a look whether it has room, with its
 * priority as sd-daemon(3) writes it where the journal reads it. RIG_JOURNAL_SOCKET names another socket
 * than the journal's, for tests.
 *
 * What a client sent may be part of a line: control characters never get out, so that a line stays one line.
 */
#include "daemon/log/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "daemon/log/limit.h"

#define LINE_BYTES   1024u
#define PACKET_BYTES 4096u
#define NOBODY       ((uid_t)-1) /* whose lines are not one user's */
#define SEND_BYTES   (1 << 20)   /* of lines that wait in our socket for the journal */

static int log_level = LOG_INFO;
static uint64_t n_dropped;
static uint64_t untold; /* of them, those that no line has told of yet */
static struct rig_log_limits limits;

/* ---------------------------------------------------------------- levels */

static const char *const names[] = {
        [LOG_ERR] = "err",
        [LOG_WARNING] = "warning",
        [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",
        [LOG_DEBUG] = "debug",
};

void rig_log_set_level(int level)
{
        log_level = level;
}

int rig_log_get_level(void)
{
        return log_level;
}

int rig_log_level_from_string(const char *name)
{
        for (int i = LOG_ERR; i <= LOG_DEBUG; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        return -EINVAL;
}

const char *rig_log_level_to_string(int level)
{
        return level < LOG_ERR || level > LOG_DEBUG ? NULL : names[level];
}

uint64_t rig_log_dropped(void)
{
        return n_dropped;
}

struct rig_log_about rig_log_of_peer(int fd)
{
        struct ucred cred = {0};
        socklen_t n = sizeof(cred);

        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n);
        return (struct rig_log_about){.pid = cred.pid, .uid = cred.uid, .limited = true};
}

/* ---------------------------------------------------------------- text */

struct text {
        char *data;
        size_t n, room;
};

void rig_log_clean(char *text)
{
        for (char *p = text; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
}

/* Appends, as far as there is room. */
static void _printf_(2, 0) addv(struct text *t, const char *fmt, va_list ap)
{
        int n = vsnprintf(t->data + t->n, t->room - t->n, fmt, ap);

        if (n < 0)
                return;
        rig_log_clean(t->data + t->n);
        t->n += RIG_MIN((size_t)n, t->room - t->n - 1);
}

static void _printf_(2, 3) add(struct text *t, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        addv(t, fmt, ap);
        va_end(ap);
}

/* A field of the journal's protocol, where it has a value: whole, or not at all. */
static void _printf_(3, 4) field(struct text *t, const char *name, const char *fmt, ...)
{
        struct text f = *t;
        va_list ap;

        add(&f, "%s=", name);
        va_start(ap, fmt);
        addv(&f, fmt, ap);
        va_end(ap);
        if (f.n + 1 >= f.room)
                return;
        f.data[f.n++] = '\n';
        *t = f;
}

/* ---------------------------------------------------------------- the journal */

struct line {
        int level;
        const struct rig_log_about *about; /* or NULL */
        const char *file;
        int number;
        const char *func;
        const char *text;
};

/* Whether what JOURNAL_STREAM names is our standard error: a child of a service may have it from its parent.
 */
static bool stderr_is_journal(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
               fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static bool to_journal(void)
{
        static int journal = -1;

        if (journal < 0)
                journal = stderr_is_journal();
        return journal;
}

static int journal_socket(struct sockaddr_un *address)
{
        static int fd = -EBADF;
        const char *path = getenv("RIG_JOURNAL_SOCKET");
        int bytes = SEND_BYTES;

        if (!path)
                path = "/run/systemd/journal/socket";
        if (strlen(path) >= sizeof(address->sun_path))
                return -ENAMETOOLONG;
        *address = (struct sockaddr_un){.sun_family = AF_UNIX};
        strcpy(address->sun_path, path);
        if (fd < 0) {
                fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                if (fd < 0)
                        return -errno;
                setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        }
        return fd;
}

static void about_fields(struct text *t, const struct rig_log_about *about)
{
        if (about->message_id)
                field(t, "MESSAGE_ID", "%s", about->message_id);
        if (about->adapter)
                field(t, "RIG_ADAPTER", "%s", about->adapter);
        if (about->device)
                field(t, "RIG_DEVICE", "%s", about->device);
        if (about->setting)
                field(t, "RIG_SETTING", "%s", about->setting);
        if (about->client)
                field(t, "RIG_CLIENT", "%llu", (unsigned long long)about->client);
        if (about->pid) {
                field(t, "RIG_PID", "%lld", (long long)about->pid);
                field(t, "RIG_UID", "%lu", (unsigned long)about->uid);
        }
}

/* The name of a file below the root of the sources. */
static const char *below_root(const char *file)
{
        while (strncmp(file, "../", 3) == 0)
                file += 3;
        return file;
}

/* Sends it with its fields. Return: 0; -EAGAIN: no room; others: nobody takes it. */
static int send_fields(const struct line *l)
{
        struct sockaddr_un address;
        char data[PACKET_BYTES];
        struct text t = {.data = data, .room = sizeof(data)};
        int fd = journal_socket(&address);

        if (fd < 0)
                return fd;
        field(&t, "MESSAGE", "%s", l->text);
        field(&t, "PRIORITY", "%d", l->level);
        field(&t, "SYSLOG_IDENTIFIER", "rigd");
        if (l->about)
                about_fields(&t, l->about);
        field(&t, "CODE_FILE", "%s", below_root(l->file));
        field(&t, "CODE_LINE", "%d", l->number);
        field(&t, "CODE_FUNC", "%s", l->func);
        if (sendto(fd, data, t.n, MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof(address)) >= 0)
                return 0;
        return errno == ENOBUFS ? -EAGAIN : -errno;
}

/* ---------------------------------------------------------------- standard error */

static bool writable(void)
{
        struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

        return poll(&p, 1, 0) == 1 && !(p.revents & (POLLERR | POLLNVAL));
}

static int write_text(const struct line *l)
{
        char data[LINE_BYTES + 16];
        struct text t = {.data = data, .room = sizeof(data) - 1};

        if (!writable())
                return -EAGAIN;
        if (to_journal())
                add(&t, "<%d>", l->level);
        else
                add(&t, "rigd: ");
        add(&t, "%s", l->text);
        data[t.n++] = '\n';
        return write(STDERR_FILENO, data, t.n) < 0 ? -errno : 0;
}

/* ---------------------------------------------------------------- lines */

static void put(const struct line *l)
{
        int r = to_journal() ? send_fields(l) : -ENOTSOCK;

        if (r < 0 && r != -EAGAIN)
                r = write_text(l);
        if (r < 0) {
                n_dropped++;
                untold++;
        }
}

/* A message of which lines were left out is not written any more for a while: says how many they were. */
static void tell_left_out(const struct rig_log_key *key)
{
        static const struct rig_log_about about = {.message_id = RIG_LOG_LEFT_OUT};
        char data[LINE_BYTES] = "";
        struct text t = {.data = data, .room = sizeof(data)};

        add(&t, "%u more lines ", key->left_out);
        if (key->uid != NOBODY)
                add(&t, "of uid %lu ", (unsigned long)key->uid);
        add(&t, "with the message id %s were left out", key->message_id);
        put(&(struct line){.level = LOG_WARNING,
                .about = &about,
                .file = __FILE__,
                .number = __LINE__,
                .func = __func__,
                .text = data});
}

/* Whether it may be written, and how many like it were left out before. */
static bool allowed(const struct rig_log_about *about, unsigned *ret_left_out)
{
        struct rig_log_key other;
        bool yes;

        *ret_left_out = 0;
        if (!about || !about->limited || !about->message_id)
                return true;
        yes = rig_log_limit_take(&limits, about->message_id, about->pid ? about->uid : NOBODY,
                rig_now_usec(), ret_left_out, &other);
        if (other.message_id)
                tell_left_out(&other);
        return yes;
}

void rig_log_write(const char *file, int line, const char *func, int level,
        const struct rig_log_about *about, const char *fmt, ...)
{
        char data[LINE_BYTES] = "";
        struct text t = {.data = data, .room = sizeof(data)};
        uint64_t dropped = untold;
        unsigned left_out;
        va_list ap;

        if (level > log_level || !allowed(about, &left_out))
                return;
        if (dropped)
                add(&t, "(%llu lines were dropped) ", (unsigned long long)dropped);
        va_start(ap, fmt);
        addv(&t, fmt, ap);
        va_end(ap);
        if (left_out)
                add(&t, " (%u like this were left out)", left_out);
        untold = 0;
        put(&(struct line){
                .level = level, .about = about, .file = file, .number = line, .func = func, .text = data});
        if (untold)
                untold += dropped;
}

void rig_log_finish(void)
{
        struct rig_log_key key;

        while (log_level >= LOG_WARNING && rig_log_limit_next(&limits, &key))
                tell_left_out(&key);
}
