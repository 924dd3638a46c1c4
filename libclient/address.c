/* SPDX-License-Identifier: ISC */
/*
 * Addresses.
 *
 * Without an address the environment's is taken, then the system's rigd where one answers, then the one of
 * the user's service manager, then a private one is started. A system's rigd that is there but may not be
 * used is an error and no reason to start another: the program would silently not share what everyone else
 * shares.
 */
#include "libclient/address.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#define SYSTEM_SOCKET  "/run/rig/rigd.sock"
#define USER_SOCKET    "/rig/rigd.sock" /* in $XDG_RUNTIME_DIR */
#define TRANSPORT_MARK ",transport="
#define CONNECT_SEC    30 /* the longest that a rigd with a full backlog is waited for */
#define GROUP_BYTES    4096

static const char *const transport_names[_RIG_TRANSPORT_MAX] = {
        [RIG_TRANSPORT_RING] = "ring",
        [RIG_TRANSPORT_WORDS] = "words",
        [RIG_TRANSPORT_SOCKET] = "socket",
};

const char *rig_transport_to_string(enum rig_transport transport)
{
        return (unsigned)transport < _RIG_TRANSPORT_MAX ? transport_names[transport] : NULL;
}

static int parse_transport(const char *name, enum rig_transport *ret_transport)
{
        for (size_t i = 0; i < _RIG_TRANSPORT_MAX; i++) {
                if (strcmp(name, transport_names[i]) == 0) {
                        *ret_transport = (enum rig_transport)i;
                        return 0;
                }
        }
        return rig_fail(-EINVAL, "no transport is called \"%s\": it is ring, words or socket", name);
}

/* Who may connect, for the sentence: the socket's group. */
static int fail_access(const char *path)
{
        char room[GROUP_BYTES];
        struct group group, *found = NULL;
        struct stat st;

        if (stat(path, &st) < 0)
                return rig_fail(-EACCES, "no permission to connect to %s", path);
        if (getgrgid_r(st.st_gid, &group, room, sizeof(room), &found) == 0 && found)
                return rig_fail(-EACCES,
                        "no permission to connect to %s: members of the group \"%s\" may. An admin adds a "
                        "user with "
                        "\"usermod -aG %s USER\", which holds from the next login on",
                        path, found->gr_name, found->gr_name);
        return rig_fail(-EACCES,
                "no permission to connect to %s: members of the group %u may, which has no name", path,
                (unsigned)st.st_gid);
}

static int fail_connect(const char *path, int error)
{
        switch (error) {
        case -ENOENT:
                return rig_fail(error, "no socket at %s: no rigd was started there", path);
        case -ECONNREFUSED:
                return rig_fail(error, "nobody listens at %s: the rigd that did is gone", path);
        case -EACCES:
        case -EPERM:
                return fail_access(path);
        case -EAGAIN:
                return rig_fail(-ETIMEDOUT, "rigd at %s takes no connection", path);
        case -EPROTOTYPE:
                return rig_fail(-ECONNREFUSED, "what listens at %s is no rigd", path);
        default:
                return rig_fail(error, "cannot connect to %s: %s", path, rig_strerror(error));
        }
}

static int connect_unix(const char *path, int *ret_fd)
{
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        struct timeval limit = {.tv_sec = CONNECT_SEC}, none = {0};
        _cleanup_(rig_closep) int fd = -EBADF;
        int r;

        if (strlen(path) == 0 || strlen(path) >= sizeof(sa.sun_path))
                return rig_fail(-EINVAL, "the path of a socket has 1 to %zu bytes", sizeof(sa.sun_path) - 1);
        strcpy(sa.sun_path, path);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return rig_fail(-errno, "cannot make a socket: %s", rig_strerror(errno));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        do {
                r = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
        } while (r == -EINTR);
        if (r < 0)
                return fail_connect(path, r);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

/* Takes over a socket the program has: it is consumed, also where it is no use. */
static int connect_fd(const char *number, int *ret_fd)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        socklen_t bytes = sizeof(int);
        int type = 0;
        char *end;
        long n;

        errno = 0;
        n = strtol(number, &end, 10);
        if (errno != 0 || end == number || *end != '\0' || n < 0 || n > INT32_MAX)
                return rig_fail(-EINVAL, "\"%s\" is no descriptor", number);
        fd = (int)n;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) < 0) {
                if (errno == EBADF)
                        rig_steal_fd(&fd);
                return rig_fail(-errno, "descriptor %ld is no socket", n);
        }
        if (type != SOCK_SEQPACKET)
                return rig_fail(-EINVAL, "descriptor %ld is a socket, but not of SOCK_SEQPACKET", n);
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                return rig_fail(-errno, "cannot set descriptor %ld to close on exec", n);
        *ret_fd = rig_steal_fd(&fd);
        return 0;
}

/* The system's rigd, else the one of the user's service manager, else one of this process's own. */
static int connect_default(int *ret_fd, char *origin, size_t size)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        char path[sizeof(((struct sockaddr_un *)0)->sun_path)] = SYSTEM_SOCKET;
        int r = connect_unix(path, ret_fd), n;

        if ((r == -ENOENT || r == -ECONNREFUSED) && runtime && runtime[0] == '/') {
                n = snprintf(path, sizeof(path), "%s" USER_SOCKET, runtime);
                if (n > 0 && (size_t)n < sizeof(path))
                        r = connect_unix(path, ret_fd);
        }
        if (r == 0)
                snprintf(origin, size, "rigd at %s", path);
        else if (r == -ENOENT || r == -ECONNREFUSED)
                r = rig_spawn(ret_fd, origin, size);
        return r;
}

static int connect_to(const char *where, int *ret_fd, char *origin, size_t size)
{
        if (strncmp(where, "unix:", 5) == 0) {
                snprintf(origin, size, "rigd at %s", where + 5);
                return connect_unix(where + 5, ret_fd);
        }
        if (strncmp(where, "fd:", 3) == 0) {
                snprintf(origin, size, "rigd on descriptor %s", where + 3);
                return connect_fd(where + 3, ret_fd);
        }
        if (strcmp(where, "private") == 0)
                return rig_spawn(ret_fd, origin, size);
        if (where[0] == '\0')
                return connect_default(ret_fd, origin, size);
        return rig_fail(-EINVAL, "\"%s\" is no address: it is unix:PATH, fd:N or private", where);
}

int rig_address_connect(
        const char *address, int *ret_fd, enum rig_transport *ret_transport, char *origin, size_t size)
{
        const char *transport = getenv("RIG_TRANSPORT");
        _cleanup_(rig_freep) char *where = NULL;
        char *mark = NULL, *next;
        int r;

        if (!address)
                address = getenv("RIG_ADDRESS");
        where = strdup(address ? address : "");
        if (!where)
                return rig_fail_memory();
        for (next = strstr(where, TRANSPORT_MARK); next; next = strstr(mark + 1, TRANSPORT_MARK))
                mark = next;
        if (mark) {
                *mark = '\0';
                transport = mark + strlen(TRANSPORT_MARK);
        }
        *ret_transport = RIG_TRANSPORT_RING;
        if (transport && transport[0] != '\0') {
                r = parse_transport(transport, ret_transport);
                if (r < 0)
                        return r;
        }
        return connect_to(where, ret_fd, origin, size);
}
