/* SPDX-License-Identifier: ISC */
/*
 * See sockets.h. systemd passes two kinds of descriptors, told apart by their names: the sockets of units,
 * and what an earlier rigd put into the store (FileDescriptorStoreMax=). This rigd stores nothing yet, so
 * that every name of the store is another version's. It is dropped: what nobody takes would stay open, and
 * be passed again, for ever.
 */
#include "daemon/main/sockets.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "daemon/log/log.h"

/* ---------------------------------------------------------------- of our own */

/* Removes the socket of a rigd that is gone: one that nobody listens on. */
static int remove_stale(const struct sockaddr_un *address)
{
        _cleanup_(rig_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct stat st;

        if (lstat(address->sun_path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(address->sun_path) < 0 ? -errno : 0;
}

/* Says why it cannot be listened at, and which folder is missing where that is it. */
static int cannot_listen(const char *path, int r, struct rig_error *e)
{
        const char *slash = strrchr(path, '/');
        const char *why = r == -EADDRINUSE ? "another rigd does"
                          : r == -EEXIST   ? "there is a file, and it is no socket"
                                           : strerror(-r);

        if (r == -ENOENT && slash && slash > path)
                return rig_error_set(e, r, "cannot listen on %s: %s: there is no folder %.*s", path, why,
                        (int)(slash - path), path);
        return rig_error_set(e, r, "cannot listen on %s: %s", path, why);
}

int rig_socket_listen(const char *path, int *ret_fd, struct rig_error *e)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(rig_closep) int fd = -EBADF;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return rig_error_set(e, -ENAMETOOLONG,
                        "--socket: the path has %zu bytes, and a socket's has at most %zu", strlen(path),
                        sizeof(address.sun_path) - 1);
        strcpy(address.sun_path, path);
        r = remove_stale(&address);
        if (r < 0)
                return cannot_listen(path, r, e);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                listen(fd, SOMAXCONN) < 0)
                return cannot_listen(path, -errno, e);
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

/* ---------------------------------------------------------------- systemd's */

struct passed {
        int n;
        char **names; /* of each; "unknown" where systemd named none */
};

static void passed_deinit(struct passed *p)
{
        for (int i = 0; p->names && p->names[i]; i++)
                free(p->names[i]);
        free(p->names);
}

static bool listens(int fd)
{
        return sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) > 0;
}

/* Whether the name is that of a socket unit, or none: not of the store. */
static bool of_a_socket_unit(const char *name)
{
        size_t n = strlen(name), suffix = strlen(".socket");

        return strcmp(name, "unknown") == 0 || (n > suffix && strcmp(name + n - suffix, ".socket") == 0);
}

/* Closes the i-th and takes it out of the store, so that the next rigd does not get it either. */
static void drop(const struct passed *p, int i)
{
        rig_close(SD_LISTEN_FDS_START + i);
        sd_notifyf(false, "FDSTOREREMOVE=1\nFDNAME=%s", p->names[i]);
}

/* Drops all but the listening ones. Return: how many others are left, which are no socket to listen on. */
static int drop_stored(const struct passed *p, bool also_named_sockets)
{
        static const struct rig_log_about about = {.message_id = RIG_LOG_STORED_UNKNOWN};
        char list[256] = "";
        int left = 0, dropped = 0;
        size_t n = 0;

        for (int i = 0; i < p->n; i++) {
                if (!also_named_sockets && listens(SD_LISTEN_FDS_START + i))
                        continue;
                if (!also_named_sockets && of_a_socket_unit(p->names[i])) {
                        left++;
                        continue;
                }
                if (n < sizeof(list))
                        n += (size_t)snprintf(
                                list + n, sizeof(list) - n, "%s%s", dropped ? ", " : "", p->names[i]);
                dropped++;
                drop(p, i);
        }
        if (dropped)
                rig_log_about(LOG_NOTICE, &about,
                        "closed %d descriptors that systemd passed and this rigd does not know: %s", dropped,
                        list);
        return left;
}

/* The only one that listens; -EINVAL where there is none or are several. */
static int find_listening(const struct passed *p, int *ret_fd)
{
        int found = 0;

        for (int i = 0; i < p->n; i++)
                if (listens(SD_LISTEN_FDS_START + i)) {
                        *ret_fd = SD_LISTEN_FDS_START + i;
                        found++;
                }
        return found == 1 ? 0 : -EINVAL;
}

int rig_socket_from_systemd(bool wanted, int *ret_fd, struct rig_error *e)
{
        _cleanup_(passed_deinit) struct passed p = {0};
        int fd = -EBADF, r;

        *ret_fd = -EBADF;
        p.n = sd_listen_fds_with_names(true, &p.names);
        if (p.n < 0)
                return rig_error_set(e, p.n,
                        "what systemd passed cannot be taken (LISTEN_FDS, LISTEN_FDNAMES): %s",
                        strerror(-p.n));
        if (!p.n)
                return 0;
        if (!wanted) {
                drop_stored(&p, true);
                return 0;
        }
        r = find_listening(&p, &fd);
        if (r < 0 || drop_stored(&p, false))
                return rig_error_set(e, -EINVAL,
                        "systemd passed %d descriptors: it takes one, a listening SOCK_SEQPACKET Unix "
                        "socket "
                        "(ListenSequentialPacket=)",
                        p.n);
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return rig_error_set(e, -errno, "its socket cannot be served: %s", strerror(errno));
        *ret_fd = fd;
        return 0;
}
