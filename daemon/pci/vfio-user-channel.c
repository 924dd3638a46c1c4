/* SPDX-License-Identifier: ISC */
/*
 * The socket to a vfio-user server, and everything about it that can hang or lie.
 *
 * One call at a time has an answer outstanding (the lock `calls`); messages that get no answer go out beside
 * it (the lock `sending` keeps each in one piece). The server has commands of its own, reads and writes of
 * memory:
 *
 *   - on a socket of their own, where the server has twin sockets: a thread serves them, and the socket of
 * the calls carries answers alone, so that one recvmsg() takes a whole answer;
 *   - else between answers. Who waits for an answer serves them; while nobody does, the thread does.
 *
 * Not trusted: an answer has the number and the command of the call that waits, a length that the call
 * admits, descriptors only as many as a message may bring, and comes before the deadline as a whole, however
 * slowly its bytes drip. Anything else ends the connection: with a stream there is no telling where the next
 * message would begin. It ends once, for all threads, and the sentence that says why is what each later call
 * returns.
 *
 * A server without twin sockets that writes memory by messages while we fill its socket with writes that get
 * no answer can block both of us; the deadline ends that, and the connection. Deliberately not here: more
 * than one call under way, and starting again.
 */
#include "daemon/pci/vfio-user-channel.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "daemon/pci/vfio-user-wire.h"

struct rig_channel {
        char *name;
        uint64_t answer_usec;
        rig_channel_dma dma;
        void *own;
        int fd, twin, wake;

        pthread_t thread;
        bool listening;

        pthread_mutex_t calls; /* who reads from `fd` */
        pthread_mutex_t sending;
        uint16_t next_id; /* under sending */
        uint8_t *bounce;  /* of whoever reads commands: the thread with a twin, else under calls */

        pthread_mutex_t dead_lock;
        bool dead;      /* set under it, once */
        char what[128]; /* under it: ended the connection */
};

/* Descriptors that came with a message, until somebody takes them. */
struct bag {
        int fds[RIG_CHANNEL_MAX_FDS];
        unsigned n;
};

static void empty_bag(struct bag *bag)
{
        while (bag->n)
                close(bag->fds[--bag->n]);
}

/* ---------------------------------------------------------------- the end of a connection */

/*
 * Ends the connection, or finds it ended: what ended it first is what each caller gets, after its own step.
 * Return: `code`, or -ENODEV where it had ended before.
 */
static int end_with(struct rig_channel *c, struct rig_error *e, int code, const char *step, uint64_t at,
        const char *what)
{
        char first[sizeof(c->what)];

        pthread_mutex_lock(&c->dead_lock);
        if (c->dead)
                code = -ENODEV;
        else
                snprintf(c->what, sizeof(c->what), "%s", what);
        __atomic_store_n(&c->dead, true, __ATOMIC_RELEASE);
        memcpy(first, c->what, sizeof(first));
        pthread_mutex_unlock(&c->dead_lock);
        shutdown(c->fd, SHUT_RDWR);
        if (c->twin >= 0)
                shutdown(c->twin, SHUT_RDWR);
        return rig_error_set(e, code, "%.80s: %s, at 0x%" PRIx64 ": %s", c->name, step, at, first);
}

int rig_channel_broken(struct rig_channel *c, const struct rig_channel_call *call, struct rig_error *e,
        const char *fmt, ...)
{
        char what[sizeof(c->what)];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(what, sizeof(what), fmt, ap);
        va_end(ap);
        return end_with(c, e, -EPROTO, call->step, call->at, what);
}

/* `r`: what sending or receiving failed with. */
static int lost(struct rig_channel *c, struct rig_error *e, int r, const char *step, uint64_t at)
{
        const char *what = strerror(-r);

        if (r == -EPIPE || r == -ECONNRESET) {
                r = -ENODEV;
                what = "the model closed the connection";
        } else if (r == -ETIMEDOUT) {
                what = "the model did not answer in time";
        } else if (r == -EPROTO) {
                what = "what the model sent is no answer to it";
        }
        return end_with(c, e, r, step, at, what);
}

static bool is_dead(struct rig_channel *c)
{
        return __atomic_load_n(&c->dead, __ATOMIC_ACQUIRE);
}

/* ---------------------------------------------------------------- bytes */

static void skip(struct iovec *iov, unsigned n, size_t bytes)
{
        for (unsigned i = 0; i < n; i++) {
                size_t part = RIG_MIN(bytes, iov[i].iov_len);

                if (!part)
                        continue; /* what is empty may have no address to add to */
                iov[i].iov_base = (char *)iov[i].iov_base + part;
                iov[i].iov_len -= part;
                bytes -= part;
        }
}

static size_t total(const struct iovec *iov, unsigned n)
{
        size_t bytes = 0;

        for (unsigned i = 0; i < n; i++)
                bytes += iov[i].iov_len;
        return bytes;
}

/* What a failed call on a socket with a timeout means, and whether there is time left to try again. */
static int try_again(int error, uint64_t deadline)
{
        if (error != EINTR && error != EAGAIN)
                return -error;
        return rig_now_usec() >= deadline ? -ETIMEDOUT : 0;
}

/* Sends all of it. The sockets have timeouts of their own, so that no single call is without a bound. */
static int send_all(int fd, struct iovec *iov, unsigned n, const int *fds, unsigned n_fds, uint64_t deadline)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(RIG_CHANNEL_MAX_FDS * sizeof(int))];
        } control;
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};

        if (n_fds) {
                memset(&control, 0, sizeof(control));
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        }
        while (total(iov, n)) {
                ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL);

                if (sent < 0) {
                        int r = try_again(errno, deadline);

                        if (r < 0)
                                return r;
                        continue;
                }
                skip(iov, n, (size_t)sent);
                m.msg_control = NULL;
                m.msg_controllen = 0;
                /* One that takes a little at a time is as late as one that takes nothing. */
                if (total(iov, n) && rig_now_usec() >= deadline)
                        return -ETIMEDOUT;
        }
        return 0;
}

static int take_fds(struct msghdr *m, struct bag *bag)
{
        int r = m->msg_flags & MSG_CTRUNC ? -EPROTO : 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        if (bag->n == RIG_CHANNEL_MAX_FDS) {
                                close(fd);
                                r = -EPROTO;
                        } else {
                                bag->fds[bag->n++] = fd;
                        }
                }
        }
        return r;
}

/* Receives at least `least` bytes, and at most what `iov` holds, which is left at what is missing. */
static int receive(int fd, struct iovec *iov, unsigned n, size_t least, struct bag *bag, uint64_t deadline)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(RIG_CHANNEL_MAX_FDS * sizeof(int))];
        } control;
        size_t all = total(iov, n);

        while (all - total(iov, n) < least) {
                struct msghdr m = {.msg_iov = iov,
                        .msg_iovlen = n,
                        .msg_control = &control,
                        .msg_controllen = sizeof(control)};
                ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
                int r = got < 0 ? try_again(errno, deadline) : got == 0 ? -ECONNRESET : take_fds(&m, bag);

                if (r < 0)
                        return r;
                if (got > 0)
                        skip(iov, n, (size_t)got);
                if (rig_now_usec() >= deadline && all - total(iov, n) < least)
                        return -ETIMEDOUT;
        }
        return 0;
}

static int receive_exactly(int fd, void *data, size_t bytes, struct bag *bag, uint64_t deadline)
{
        struct iovec iov = {data, bytes};

        return receive(fd, &iov, 1, bytes, bag, deadline);
}

/* ---------------------------------------------------------------- the server's commands */

/* Reads the payload of a command of the server's into the bounce buffer, and does it. */
static int do_command(struct rig_channel *c, int fd, const struct wire_header *h,
        struct wire_dma_access *access, uint64_t deadline, int *ret_error)
{
        bool write = h->command == WIRE_DMA_WRITE;
        struct bag bag = {.n = 0};
        int r;

        if (h->command != WIRE_DMA_READ && !write)
                return -EPROTO;
        if (h->bytes < sizeof(*h) + sizeof(*access))
                return -EPROTO;
        r = receive_exactly(fd, access, sizeof(*access), &bag, deadline);
        empty_bag(&bag);
        if (r < 0)
                return r;
        if (access->count > WIRE_DEFAULT_TRANSFER_BYTES ||
                h->bytes != sizeof(*h) + sizeof(*access) + (write ? access->count : 0))
                return -EPROTO;
        if (write) {
                r = receive_exactly(fd, c->bounce, access->count, &bag, deadline);
                empty_bag(&bag);
                if (r < 0)
                        return r;
        }
        *ret_error = c->dma(c->own, write, access->address, c->bounce, access->count);
        return 0;
}

/* A command whose header was read from `fd`: does it, and answers. */
static int serve(struct rig_channel *c, int fd, const struct wire_header *h, uint64_t deadline)
{
        struct wire_header answer = {h->id, h->command, sizeof(answer), WIRE_REPLY, 0};
        struct wire_dma_access access;
        struct iovec iov[3] = {{&answer, sizeof(answer)}, {&access, 0}, {c->bounce, 0}};
        int error = 0, r;

        if ((h->flags & WIRE_TYPE_MASK) != 0)
                return -EPROTO;
        r = do_command(c, fd, h, &access, deadline, &error);
        if (r < 0 || h->flags & WIRE_NO_REPLY)
                return r;
        if (error < 0) {
                answer.flags |= WIRE_ERROR;
                answer.error = (uint32_t)-error;
        } else {
                iov[1].iov_len = sizeof(access);
                iov[2].iov_len = h->command == WIRE_DMA_READ ? access.count : 0;
                answer.bytes = (uint32_t)total(iov, 3);
        }
        if (fd == c->twin)
                return send_all(fd, iov, 3, NULL, 0, deadline);
        pthread_mutex_lock(&c->sending);
        r = send_all(fd, iov, 3, NULL, 0, deadline);
        pthread_mutex_unlock(&c->sending);
        return r;
}

/* One command, from the beginning. */
static int serve_next(struct rig_channel *c, int fd)
{
        uint64_t deadline = rig_deadline_usec(c->answer_usec);
        struct bag bag = {.n = 0};
        struct wire_header h;
        int r = receive_exactly(fd, &h, sizeof(h), &bag, deadline);

        empty_bag(&bag);
        return r < 0 ? r : serve(c, fd, &h, deadline);
}

/*
 * Waits for commands while nobody waits for an answer. It has no deadline of its own: it ends by `wake`, and
 * when the connection does.
 */
static void *listen_to_server(void *own)
{
        struct rig_channel *c = own;
        int fd = c->twin >= 0 ? c->twin : c->fd;
        struct pollfd p[2] = {{.fd = c->wake, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        int r = 0;

        while (r == 0 && !is_dead(c)) {
                if (poll(p, 2, -1) < 0 && errno != EINTR)
                        break;
                if (p[0].revents)
                        break;
                if (c->twin >= 0) {
                        r = p[1].revents ? serve_next(c, fd) : 0;
                        continue;
                }
                pthread_mutex_lock(&c->calls);
                if (poll(&p[1], 1, 0) == 1) /* else whoever waited for an answer took it */
                        r = serve_next(c, fd);
                pthread_mutex_unlock(&c->calls);
        }
        if (r < 0)
                lost(c, NULL, r, "serving a command of the model's", 0);
        return NULL;
}

/* ---------------------------------------------------------------- calls */

static int send_call(struct rig_channel *c, struct rig_channel_call *call, bool answered, uint64_t deadline,
        uint16_t *ret_id)
{
        struct wire_header h = {.command = call->command, .flags = answered ? 0 : WIRE_NO_REPLY};
        struct iovec iov[3] = {{&h, sizeof(h)}, call->request[0], call->request[1]};
        int r;

        h.bytes = (uint32_t)total(iov, 3);
        pthread_mutex_lock(&c->sending);
        *ret_id = h.id = c->next_id++;
        r = send_all(c->fd, iov, 3, call->fds, call->n_fds, deadline);
        pthread_mutex_unlock(&c->sending);
        return r;
}

/* The rest of an answer whose header, and `got` bytes more, were read. */
static int take_answer(struct rig_channel *c, struct rig_channel_call *call, const struct wire_header *h,
        uint16_t id, size_t got, struct bag *bag, uint64_t deadline, int *ret_error)
{
        struct iovec iov[2] = {call->reply[0], call->reply[1]};
        size_t room = total(iov, 2), bytes;

        if ((h->flags & WIRE_TYPE_MASK) != WIRE_REPLY || h->id != id || h->command != call->command ||
                h->bytes < sizeof(*h))
                return -EPROTO;
        bytes = h->bytes - sizeof(*h);
        if (h->flags & WIRE_ERROR) {
                /* the specification lets the number be left out, and nothing follow */
                *ret_error = h->error > 0 && h->error < 4096 ? -(int)h->error : -EIO;
                return bytes || got ? -EPROTO : 0;
        }
        if (bytes < call->reply_least || bytes > room || got > bytes)
                return -EPROTO;
        call->reply_bytes = (uint32_t)bytes;
        for (unsigned i = 0; i < 2; i++) {
                iov[i].iov_len = RIG_MIN(iov[i].iov_len, bytes);
                bytes -= iov[i].iov_len;
        }
        skip(iov, 2, got);
        return receive(c->fd, iov, 2, total(iov, 2), bag, deadline);
}

static int wait_answer(struct rig_channel *c, struct rig_channel_call *call, uint16_t id, struct bag *bag,
        uint64_t deadline, int *ret_error)
{
        for (;;) {
                struct wire_header h;
                struct iovec iov[3] = {{&h, sizeof(h)}, call->reply[0], call->reply[1]};
                size_t all = total(iov, 3);
                /* with a twin nothing but the answer can come: its end is not known, but all of it is ours
                 */
                unsigned n = c->twin >= 0 ? 3 : 1;
                int r = receive(c->fd, iov, n, sizeof(h), bag, deadline);

                if (r < 0)
                        return r;
                if ((h.flags & WIRE_TYPE_MASK) == WIRE_REPLY || c->twin >= 0)
                        return take_answer(
                                c, call, &h, id, all - total(iov, 3) - sizeof(h), bag, deadline, ret_error);
                empty_bag(bag);
                r = serve(c, c->fd, &h, deadline);
                if (r < 0)
                        return r;
                if (rig_now_usec() >= deadline)
                        return -ETIMEDOUT; /* commands without end are no answer */
        }
}

/* The kernel's own bound for each receive, where a call may take longer than others. */
static void set_timeout(int fd, int option, uint64_t usec)
{
        struct timeval t = {(time_t)(usec / RIG_USEC_PER_SEC), (suseconds_t)(usec % RIG_USEC_PER_SEC)};

        setsockopt(fd, SOL_SOCKET, option, &t, sizeof(t));
}

int rig_channel_call(struct rig_channel *c, struct rig_channel_call *call, struct rig_error *e)
{
        uint64_t timeout = call->timeout_usec ? call->timeout_usec : c->answer_usec;
        uint64_t deadline;
        struct bag bag = {.n = 0};
        int r, error = 0;
        uint16_t id;

        call->n_reply_fds = 0;
        call->reply_bytes = 0;
        pthread_mutex_lock(&c->calls);
        if (is_dead(c)) {
                pthread_mutex_unlock(&c->calls);
                return lost(c, e, -ENODEV, call->step, call->at);
        }
        if (call->timeout_usec)
                set_timeout(c->fd, SO_RCVTIMEO, timeout);
        deadline = rig_deadline_usec(timeout);
        r = send_call(c, call, true, deadline, &id);
        if (r == 0)
                r = wait_answer(c, call, id, &bag, deadline, &error);
        if (call->timeout_usec)
                set_timeout(c->fd, SO_RCVTIMEO, c->answer_usec);
        pthread_mutex_unlock(&c->calls);
        if (r < 0 || error < 0) {
                empty_bag(&bag);
                if (r < 0)
                        return lost(c, e, r, call->step, call->at);
                return rig_error_set(e, error, "%.80s: %s, at 0x%" PRIx64 ": the model answered: %s",
                        c->name, call->step, call->at, strerror(-error));
        }
        memcpy(call->reply_fds, bag.fds, bag.n * sizeof(int));
        call->n_reply_fds = bag.n;
        return 0;
}

int rig_channel_post(struct rig_channel *c, struct rig_channel_call *call, struct rig_error *e)
{
        uint16_t id;
        int r;

        if (is_dead(c))
                return lost(c, e, -ENODEV, call->step, call->at);
        r = send_call(c, call, false, rig_deadline_usec(c->answer_usec), &id);
        return r < 0 ? lost(c, e, r, call->step, call->at) : 0;
}

/* ---------------------------------------------------------------- from the beginning to the end */

static int connect_to(const char *path, const char *name, uint64_t answer_usec, struct rig_error *e)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(rig_closep) int fd = -EBADF;
        int r;

        if (strlen(path) == 0 || strlen(path) >= sizeof(address.sun_path))
                return rig_error_set(e, -EINVAL, "%.80s...: a socket's path has 1 to %zu bytes", name,
                        sizeof(address.sun_path) - 1);
        memcpy(address.sun_path, path, strlen(path));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return rig_error_set(e, -errno, "%s: a socket could not be made: %s", name, strerror(errno));
        set_timeout(fd, SO_SNDTIMEO, answer_usec); /* of connect() as well */
        set_timeout(fd, SO_RCVTIMEO, answer_usec);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
                r = errno == EAGAIN ? -ETIMEDOUT : -errno;
                return rig_error_set(e, r == -ECONNREFUSED ? -ENOENT : r, "%s: %s", name,
                        r == -ECONNREFUSED ? "no model serves this socket"
                        : r == -ENOENT     ? "there is no such socket"
                                           : strerror(-r));
        }
        return rig_steal_fd(&fd);
}

int rig_channel_open(const char *path, const char *name, uint64_t answer_usec, rig_channel_dma dma,
        void *own, struct rig_channel **ret_channel, struct rig_error *e)
{
        int fd = connect_to(path, name, answer_usec, e);
        struct rig_channel *c;

        if (fd < 0)
                return fd;
        c = calloc(1, sizeof(*c));
        if (!c) {
                close(fd);
                return rig_error_set(e, -ENOMEM, "%s: no memory for a connection", name);
        }
        *c = (struct rig_channel){
                .answer_usec = answer_usec, .dma = dma, .own = own, .fd = fd, .twin = -EBADF};
        pthread_mutex_init(&c->calls, NULL);
        pthread_mutex_init(&c->sending, NULL);
        pthread_mutex_init(&c->dead_lock, NULL);
        c->name = strdup(name);
        c->wake = eventfd(0, EFD_CLOEXEC);
        c->bounce = malloc(WIRE_DEFAULT_TRANSFER_BYTES);
        if (!c->name || c->wake < 0 || !c->bounce) {
                rig_channel_close(c);
                return rig_error_set(e, -ENOMEM, "%s: no memory or descriptors for a connection", name);
        }
        *ret_channel = c;
        return 0;
}

int rig_channel_listen(struct rig_channel *c, int twin, struct rig_error *e)
{
        int r;

        c->twin = twin;
        if (twin >= 0) {
                set_timeout(twin, SO_SNDTIMEO, c->answer_usec);
                set_timeout(twin, SO_RCVTIMEO, c->answer_usec);
        }
        r = -pthread_create(&c->thread, NULL, listen_to_server, c);
        if (r < 0)
                return rig_error_set(e, r, "%s: a thread could not be started: %s", c->name, strerror(-r));
        c->listening = true;
        return 0;
}

struct rig_channel *rig_channel_close(struct rig_channel *c)
{
        uint64_t one = 1;

        if (!c)
                return NULL;
        if (c->listening) {
                shutdown(c->fd, SHUT_RDWR);
                if (c->twin >= 0)
                        shutdown(c->twin, SHUT_RDWR);
                if (write(c->wake, &one, sizeof(one)) == sizeof(one))
                        pthread_join(c->thread, NULL);
        }
        rig_close(c->fd);
        rig_close(c->twin);
        rig_close(c->wake);
        pthread_mutex_destroy(&c->calls);
        pthread_mutex_destroy(&c->sending);
        pthread_mutex_destroy(&c->dead_lock);
        free(c->bounce);
        free(c->name);
        free(c);
        return NULL;
}
