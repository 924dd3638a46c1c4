/* SPDX-License-Identifier: ISC */
/*
 * Servers that break the protocol. Between the client and a model that keeps to it stands a forger, which
 * passes messages on and spoils one answer: each answer of a whole life in turn, in each way that is listed,
 * and then each word of its payload. What the client must do is to end, with an error that has a sentence
 * where the answer cannot be right, and never to touch what is not its own (which the builds with sanitizers
 * see).
 *
 * The forger runs with and without a socket of its own for the server's commands, since the client reads
 * answers in two ways.
 */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/pci/world.h"

#define SHORT_USEC UINT64_C(40000) /* answers that never come are not waited for longer */
#define MAX_BYTES  (1u << 20)
#define MAX_FDS    32u
#define CLOSING                                                                                             \
        4u /* answers at the end that come while it is closed, where nobody is told; bytes behind an        \
            * answer are found by the call after it */

enum forgery {
        OTHER_ID,
        OTHER_COMMAND,
        A_COMMAND, /* of type 0, not an answer */
        UNKNOWN_TYPE,
        SIZE_ZERO,
        SIZE_BELOW_HEADER,
        SIZE_HUGE,
        SIZE_PROMISES_MORE,
        LONGER,
        SHORTER,
        TRAILING, /* bytes behind the answer */
        ERROR_WITH_PAYLOAD,
        ERROR_WITHOUT_NUMBER,
        ERROR_WITH_ANY_NUMBER,
        TOO_MANY_FDS,
        HALF_AND_CLOSE,
        HALF_AND_SILENCE,
        NOISE,
        CLOSE,
        LAST_THAT_MUST_FAIL = CLOSE,
        WITHOUT_FDS, /* right for most answers */
        ANOTHER_FD,  /* likewise */
        IN_PIECES,   /* right: a stream has no boundaries */
        WORD,        /* a word of the payload is another */
        FORGERIES,
};

struct forger {
        enum forgery forgery;
        unsigned at;   /* which answer, from 0 */
        unsigned word; /* which word of its payload */
        uint32_t value;
        unsigned answers; /* that came by */
        unsigned words;   /* that the answer `at` had */
        bool done;
        char path[112], server[96];
        int listener;
        pthread_t thread;
};

struct message {
        uint32_t header[4]; /* id and command, bytes, flags, error */
        uint8_t body[MAX_BYTES + 4];
        uint32_t bytes; /* of the body */
        int fds[MAX_FDS];
        unsigned n_fds;
};

static int receive(int fd, void *data, size_t bytes, struct message *m)
{
        for (size_t got = 0; got < bytes;) {
                char control[CMSG_SPACE(MAX_FDS * sizeof(int))] __attribute__((aligned(sizeof(size_t))));
                struct iovec iov = {(char *)data + got, bytes - got};
                struct msghdr h = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control)};
                ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);

                if (n <= 0)
                        return -1;
                for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
                        size_t k = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                        memcpy(m->fds + m->n_fds, CMSG_DATA(c), k * sizeof(int));
                        m->n_fds += (unsigned)k;
                }
                got += (size_t)n;
        }
        return 0;
}

static int receive_message(int fd, struct message *m)
{
        m->n_fds = 0;
        if (receive(fd, m->header, sizeof(m->header), m) < 0)
                return -1;
        CHECK(m->header[1] >= 16 && m->header[1] - 16 <= MAX_BYTES);
        m->bytes = m->header[1] - 16;
        return receive(fd, m->body, m->bytes, m);
}

/* Sends `bytes` of the message as it is. */
static void send_bytes(int fd, struct message *m, size_t from, size_t bytes)
{
        char control[CMSG_SPACE(MAX_FDS * sizeof(int))] __attribute__((aligned(sizeof(size_t))));
        uint8_t *all = malloc(16 + m->bytes + 16);
        struct iovec iov = {all + from, bytes};
        struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

        CHECK(all && from + bytes <= 16 + m->bytes + 16);
        memset(all, 0x5a, 16 + m->bytes + 16);
        memcpy(all, m->header, 16);
        memcpy(all + 16, m->body, m->bytes);
        if (m->n_fds && from == 0) {
                struct cmsghdr *c = (struct cmsghdr *)(void *)control;

                memset(control, 0, sizeof(control));
                h.msg_control = control;
                h.msg_controllen = CMSG_SPACE(m->n_fds * sizeof(int));
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(m->n_fds * sizeof(int));
                memcpy(CMSG_DATA(c), m->fds, m->n_fds * sizeof(int));
        }
        while (iov.iov_len) {
                ssize_t n = sendmsg(fd, &h, MSG_NOSIGNAL);

                if (n <= 0)
                        break; /* the client has left: it was right to */
                iov.iov_base = (char *)iov.iov_base + n;
                iov.iov_len -= (size_t)n;
                h.msg_control = NULL;
                h.msg_controllen = 0;
        }
        free(all);
}

static void close_fds(struct message *m)
{
        while (m->n_fds)
                close(m->fds[--m->n_fds]);
}

/* Changes the message in place. Return: how many bytes of it to send. */
static size_t forge(const struct forger *f, struct message *m)
{
        size_t all = 16 + m->bytes;
        uint32_t *size = &m->header[1], *flags = &m->header[2];

        switch (f->forgery) {
        case OTHER_ID:
                m->header[0] ^= 0x100;
                break;
        case OTHER_COMMAND:
                m->header[0] ^= 0x40000;
                break;
        case A_COMMAND:
                *flags &= ~15u;
                break;
        case UNKNOWN_TYPE:
                *flags |= 14;
                break;
        case SIZE_ZERO:
                *size = 0;
                break;
        case SIZE_BELOW_HEADER:
                *size = 15;
                break;
        case SIZE_HUGE:
                *size = UINT32_MAX;
                break;
        case SIZE_PROMISES_MORE:
                *size += 3;
                break;
        case LONGER:
                *size += 12;
                return all + 12;
        case SHORTER: /* an empty one becomes one of half a header */
                *size -= 4;
                return all - 4;
        case TRAILING:
                return all + 9;
        case ERROR_WITH_PAYLOAD:
                *flags |= 32;
                m->header[3] = EIO;
                *size = 16 + 8;
                return 24;
        case ERROR_WITHOUT_NUMBER:
                *flags |= 32;
                *size = 16;
                return 16;
        case ERROR_WITH_ANY_NUMBER:
                *flags |= 32;
                m->header[3] = 0x80000000u;
                *size = 16;
                return 16;
        case TOO_MANY_FDS:
                while (m->n_fds < 20)
                        m->fds[m->n_fds++] = dup(0);
                break;
        case ANOTHER_FD:
                m->fds[m->n_fds++] = dup(0);
                break;
        case WITHOUT_FDS:
                close_fds(m);
                break;
        case NOISE:
                for (size_t i = 0; i < 16; i++)
                        ((uint8_t *)m->header)[i] = (uint8_t)(i * 37 + f->at);
                break;
        case WORD:
                if (f->word < m->bytes / 4)
                        memcpy(m->body + 4 * f->word, &f->value, 4);
                break;
        default:
                break;
        }
        return all;
}

/* Passes an answer on, spoilt. False: the connection is to end. */
static bool pass_forged(struct forger *f, int client, struct message *m)
{
        size_t bytes = forge(f, m);

        f->words = m->bytes / 4;
        f->done = true;
        if (f->forgery == CLOSE)
                return false;
        if (f->forgery == HALF_AND_CLOSE || f->forgery == HALF_AND_SILENCE) {
                send_bytes(client, m, 0, bytes / 2);
                return f->forgery == HALF_AND_SILENCE;
        }
        if (f->forgery == IN_PIECES) {
                for (size_t i = 0; i < bytes; i += 5)
                        send_bytes(client, m, i, RIG_MIN(bytes - i, (size_t)5));
                return true;
        }
        send_bytes(client, m, 0, bytes);
        return true;
}

static bool pass(struct forger *f, int from, int to, bool from_server, struct message *m)
{
        bool go_on = true;

        if (receive_message(from, m) < 0) {
                close_fds(m);
                return false;
        }
        if (from_server && (m->header[2] & 15) == 1 && f->answers++ == f->at)
                go_on = pass_forged(f, to, m);
        else
                send_bytes(to, m, 0, 16 + m->bytes);
        close_fds(m);
        return go_on;
}

static void *be_between(void *own)
{
        struct forger *f = own;
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        struct message *m = malloc(sizeof(*m));
        int client = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
        int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
        bool go_on = true;

        memcpy(a.sun_path, f->server, strlen(f->server) + 1);
        CHECK(m && client >= 0 && connect(server, (struct sockaddr *)&a, sizeof(a)) == 0);
        while (go_on) {
                CHECK(poll(p, 2, -1) >= 0);
                if (p[1].revents)
                        go_on = pass(f, server, client, true, m);
                if (go_on && p[0].revents)
                        go_on = pass(f, client, server, false, m);
        }
        close(client);
        close(server);
        free(m);
        return NULL;
}

/* A life through a forger. Return: what it ended with. */
static int live(struct forger *f, bool twin, uint64_t answer_usec)
{
        struct model_options options = {.tick_usec = -1, .no_twin = !twin};
        struct rig_pci_options o = world_options(answer_usec);
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_pci *pci = NULL;
        struct world w;
        char where[128];
        int r;

        world_start(&w, &options);
        f->answers = f->words = 0;
        f->done = false;
        memcpy(f->server, w.path, sizeof(f->server));
        snprintf(f->path, sizeof(f->path), "%s.forged", w.path);
        snprintf(where, sizeof(where), "vfio-user:%s", f->path);
        f->listener = model_listen(f->path);
        CHECK(f->listener >= 0);
        CHECK_EQ(pthread_create(&f->thread, NULL, be_between, f), 0);
        r = rig_pci_open_with(&o, where, &pci, &e);
        if (r == 0)
                r = world_use(pci, o.answer_usec, &e);
        rig_pci_close(pci);
        CHECK_EQ(pthread_join(f->thread, NULL), 0);
        close(f->listener);
        unlink(f->path);
        world_stop(&w);
        if (r < 0) {
                CHECK_EQ(e.code, r);
                CHECK(strlen(e.text) > strlen("vfio-user:"));
        }
        return r;
}

/* How many answers a life has. */
static unsigned count_answers(bool twin)
{
        struct forger f = {.forgery = IN_PIECES, .at = UINT32_MAX};

        CHECK_EQ(live(&f, twin, 0), 0); /* in any time */
        return f.answers;
}

static void forge_each_answer(bool twin)
{
        unsigned n = count_answers(twin), failed = 0, all = 0;

        for (unsigned at = 0; at < n; at++) {
                for (int k = 0; k < WORD; k++) {
                        struct forger f = {.forgery = (enum forgery)k, .at = at};
                        int r = live(&f, twin, SHORT_USEC);

                        if (k <= LAST_THAT_MUST_FAIL && at + CLOSING + (k == TRAILING) < n && r == 0) {
                                fprintf(stderr, "forgery %d of answer %u of %u was taken\n", k, at, n);
                                abort();
                        }
                        if (k == IN_PIECES)
                                CHECK(r == 0 || r == -ETIMEDOUT);
                        failed += r < 0;
                        all++;
                }
        }
        printf("  %u answers, %u forgeries, %u lives ended by them\n", n, all, failed);
}

static void an_answer_that_cannot_be_right_is_an_error_with_a_socket_for_each_direction(void)
{
        forge_each_answer(true);
}

static void an_answer_that_cannot_be_right_is_an_error_with_one_socket(void)
{
        forge_each_answer(false);
}

static void any_word_of_any_answer_may_be_any_number(void)
{
        static const uint32_t values[] = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX};
        unsigned n = count_answers(true), all = 0, failed = 0;

        for (unsigned at = 0; at < n; at++) {
                struct forger f = {.forgery = WORD, .at = at};
                unsigned words = 1;

                for (f.word = 0; f.word < words; f.word++) {
                        /* the version's text is long, and its words are all alike */
                        for (unsigned i = 0; i < RIG_ARRAY_SIZE(values) && f.word < 16; i++) {
                                f.value = values[i];
                                failed += live(&f, true, SHORT_USEC) < 0;
                                words = RIG_MAX(words, f.words);
                                all++;
                        }
                }
        }
        printf("  %u words forged, %u lives ended by them\n", all, failed);
        CHECK(failed > 100 && failed < all);
}

int main(void)
{
        unsigned before = count_fds();

        RUN(an_answer_that_cannot_be_right_is_an_error_with_a_socket_for_each_direction);
        RUN(an_answer_that_cannot_be_right_is_an_error_with_one_socket);
        RUN(any_word_of_any_answer_may_be_any_number);
        CHECK_EQ(count_fds(), before);
        return 0;
}
