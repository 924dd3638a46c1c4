/* SPDX-License-Identifier: ISC */
/*
 * The test client (wire.h): the connection. Sending checks nothing but that the bytes went out. The doorbell
 * is rung with every publication, so that whether rigd sleeps plays no part in what a test sees.
 */
#include "tests/e2e/wire.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

void (*wire_sent)(void);

/* ---------------------------------------------------------------- the connection */

void wire_open_fd(struct wire *w, int fd, enum wire_transport transport)
{
        *w = (struct wire){.fd = fd, .transport = transport, .doorbell = -EBADF};
}

void wire_hello(struct wire *w)
{
        static const uint32_t features[] = {[WIRE_RING] = RIG_FEATURE_WORDS | RIG_FEATURE_RING,
                [WIRE_WORDS] = RIG_FEATURE_WORDS,
                [WIRE_SOCKET] = 0};
        struct rig_msg_hello m = {.serial = wire_serial(w),
                .version = RIG_PROTOCOL_VERSION,
                .library = rig_text("e2e", RIG_PROTO_NAME_MAX),
                .features = features[w->transport]};
        struct heard h;

        wire_send(w, RIG_MSG_HELLO, &m);
        wire_answer(w, m.serial, RIG_MSG_HELLO_DONE, &h);
        w->hello = h.msg.hello_done;
        cr_assert_eq(w->hello.features, m.features);
        if (w->hello.has_words)
                cr_assert_eq(rig_words_map(h.fds.fd[w->hello.words], &w->words), 0);
        if (w->hello.has_ring) {
                cr_assert_eq(rig_ring_map(h.fds.fd[w->hello.ring], &w->ring, &w->bytes), 0);
                w->doorbell = rig_packet_fds_take(&h.fds, w->hello.doorbell);
        }
        heard_done(&h);
}

void wire_open(struct wire *w, const struct rigd *rigd, enum wire_transport transport)
{
        wire_open_fd(w, rigd_connect(rigd), transport);
        wire_hello(w);
}

void wire_close(struct wire *w)
{
        for (size_t i = 0; i < w->n_kept; i++) {
                heard_done(w->kept[i]);
                free(w->kept[i]);
        }
        w->n_kept = 0;
        if (w->words)
                rig_words_unmap(w->words);
        if (w->ring)
                rig_ring_unmap(w->ring);
        w->words = NULL;
        w->ring = NULL;
        w->doorbell = rig_close(w->doorbell);
        w->fd = rig_close(w->fd);
}

/* ---------------------------------------------------------------- sending */

size_t wire_encode(uint8_t *out, size_t at, size_t room, enum rig_msg_type type, const void *msg)
{
        ssize_t n = rig_codec_encode(type, msg, out + at, room - at);

        cr_assert_gt(n, 0, "%s cannot be encoded", rig_msg_type_to_string(type));
        return at + (size_t)n;
}

void wire_send_raw(struct wire *w, const void *data, size_t bytes, const int *fds, size_t n_fds)
{
        int r;

        /* A client that must wait for room reads meanwhile, as rigd may wait for it in turn. */
        while ((r = rig_packet_send(w->fd, data, bytes, fds, n_fds, RIG_PACKET_DONTWAIT)) == -EAGAIN)
                cr_assert(wait_for(w->fd, POLLOUT), "rigd takes nothing");
        cr_assert(r == 0 || r == -EPIPE || r == -ECONNRESET, "sending: %s", strerror(-r));
        if (wire_sent)
                wire_sent();
}

void wire_ring_publish(struct wire *w, uint64_t tail)
{
        static const uint64_t one = 1;

        w->tail = tail;
        atomic_store(&w->ring->tail, tail);
        cr_assert_eq(write(w->doorbell, &one, sizeof(one)), (ssize_t)sizeof(one));
        if (wire_sent)
                wire_sent();
}

static void wait_for_room(struct wire *w, size_t bytes)
{
        uint64_t deadline = rig_deadline_usec(RIGD_WAIT_MS * RIG_USEC_PER_MSEC), head;

        while (head = atomic_load(&w->words->head), rig_ring_room(head, w->tail) < bytes) {
                atomic_fetch_add(&w->ring->sleepers, 1);
                if (atomic_load(&w->words->head) == head)
                        rig_futex_wait(
                                rig_word_low_const(&w->words->head), (uint32_t)head, RIG_USEC_PER_SEC);
                atomic_fetch_sub(&w->ring->sleepers, 1);
                cr_assert_lt(rig_now_usec(), deadline, "rigd takes nothing from the ring");
        }
}

void wire_ring_raw(struct wire *w, const void *data, size_t bytes)
{
        cr_assert_leq(bytes, (size_t)RIG_RING_BYTES);
        wait_for_room(w, bytes);
        memcpy(rig_ring_at(w->bytes, w->tail), data, bytes);
        wire_ring_publish(w, w->tail + bytes);
}

void wire_raw(struct wire *w, const void *data, size_t bytes)
{
        if (w->ring)
                wire_ring_raw(w, data, bytes);
        else
                wire_send_raw(w, data, bytes, NULL, 0);
}

/* A request's ring position: key 15 is the last of every request, and its flag the last of the scalars. */
static void set_follows(struct wire *w, enum rig_msg_type type, union rig_msg *m)
{
        bool *has;
        uint64_t *follows = rig_msg_follows(type, m, &has);

        if (follows && !*has) {
                *has = true;
                *follows = w->tail;
        }
}

static size_t message_bytes(enum rig_msg_type type)
{
        switch (type) {
#define BYTES(TYPE, member)                                                                                 \
        case TYPE:                                                                                          \
                return sizeof(((union rig_msg *)NULL)->member)
                BYTES(RIG_MSG_SYNC, sync);
                BYTES(RIG_MSG_ADAPTER_LIST, adapter_list);
                BYTES(RIG_MSG_DEVICE_OPEN, device_open);
                BYTES(RIG_MSG_BUFFER_NEW, buffer_new);
                BYTES(RIG_MSG_BUFFER_ADOPT, buffer_adopt);
                BYTES(RIG_MSG_BUFFER_BORROW, buffer_borrow);
                BYTES(RIG_MSG_BUFFER_EXPORT, buffer_export);
                BYTES(RIG_MSG_BUFFER_IMPORT, buffer_import);
                BYTES(RIG_MSG_BUFFER_WAIT, buffer_wait);
                BYTES(RIG_MSG_IMAGE_LOAD, image_load);
                BYTES(RIG_MSG_IMAGE_ENTRY, image_entry);
                BYTES(RIG_MSG_WORK_NEW, work_new);
                BYTES(RIG_MSG_NOTIFY, notify);
                BYTES(RIG_MSG_NOTIFY_EVENTFD, notify_eventfd);
#undef BYTES
        default:
                return 0;
        }
}

void wire_send_fds(struct wire *w, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds)
{
        static union rig_msg copy;
        uint8_t data[RIG_PROTO_PACKET_BYTES];
        const void *m = msg;

        if (w->ring && message_bytes(type)) {
                memcpy(&copy, msg, message_bytes(type));
                set_follows(w, type, &copy);
                m = &copy;
        }
        wire_send_raw(w, data, wire_encode(data, 0, sizeof(data), type, m), fds, n_fds);
}

void wire_send(struct wire *w, enum rig_msg_type type, const void *msg)
{
        uint8_t data[2048];

        if (w->ring && rig_msg_class(type) == RIG_MSG_CLASS_ORDERED)
                wire_ring_raw(w, data, wire_encode(data, 0, sizeof(data), type, msg));
        else
                wire_send_fds(w, type, msg, NULL, 0);
}

/* ---------------------------------------------------------------- hearing */

void heard_done(struct heard *h)
{
        rig_packet_fds_close(&h->fds);
}

/* Return: 1; 0 at the end of the connection. */
static int hear(struct wire *w, struct heard *h)
{
        struct rig_error e = RIG_ERROR_NULL;
        ssize_t n, m;

        do {
                cr_assert(wait_for(w->fd, POLLIN), "rigd says nothing");
                n = rig_packet_recv(w->fd, h->data, sizeof(h->data), RIG_PACKET_DONTWAIT, &h->fds);
        } while (n == -EAGAIN);
        if (n == 0 || n == -ECONNRESET)
                return 0;
        cr_assert_gt(n, 0, "receiving: %s", strerror((int)-n));
        m = rig_codec_decode(h->data, (size_t)n, &h->msg, &h->type, &e);
        cr_assert_eq(m, n, "rigd sent what is no message: %s", e.text);
        return 1;
}

static uint32_t serial_of(const struct heard *h)
{
        switch (h->type) {
        case RIG_MSG_DONE:
                return h->msg.done.serial;
        case RIG_MSG_FAILED:
                return h->msg.failed.serial;
        case RIG_MSG_HELLO_DONE:
                return h->msg.hello_done.serial;
        case RIG_MSG_ADAPTER_DONE:
                return h->msg.adapter_done.serial;
        case RIG_MSG_DEVICE_DONE:
                return h->msg.device_done.serial;
        case RIG_MSG_BUFFER_DONE:
                return h->msg.buffer_done.serial;
        case RIG_MSG_ENTRY_DONE:
                return h->msg.entry_done.serial;
        default:
                return 0;
        }
}

/* An answer to `serial`, where that is not 0, else an event of `type`. */
static bool matches(const struct heard *h, uint32_t serial, enum rig_msg_type type)
{
        return serial ? serial_of(h) == serial : h->type == type;
}

/* A copy, whose texts point into it. */
static void heard_copy(struct heard *to, const struct heard *from)
{
        size_t n = sizeof(to->data);

        memcpy(to->data, from->data, n);
        to->fds = from->fds;
        cr_assert_gt(rig_codec_decode(to->data, n, &to->msg, &to->type, NULL), 0);
}

static bool take_kept(struct wire *w, uint32_t serial, enum rig_msg_type type, struct heard *ret)
{
        for (size_t i = 0; i < w->n_kept; i++) {
                if (!matches(w->kept[i], serial, type))
                        continue;
                heard_copy(ret, w->kept[i]);
                free(w->kept[i]);
                w->n_kept--;
                memmove(&w->kept[i], &w->kept[i + 1], (w->n_kept - i) * sizeof(w->kept[0]));
                return true;
        }
        return false;
}

/* Reached events are many, and the newest says it all. */
static bool stands_for(const struct heard *newer, const struct heard *older)
{
        return newer->type == older->type &&
               ((newer->type == RIG_MSG_REACHED && newer->msg.reached.device == older->msg.reached.device) ||
                       (newer->type == RIG_MSG_READY && newer->msg.ready.device == older->msg.ready.device));
}

static void keep(struct wire *w, const struct heard *h)
{
        for (size_t i = 0; i < w->n_kept; i++)
                if (stands_for(h, w->kept[i])) {
                        heard_copy(w->kept[i], h);
                        return;
                }
        cr_assert_lt(w->n_kept, (size_t)KEPT_MAX, "nobody expects what rigd says: %s",
                rig_msg_type_to_string(h->type));
        w->kept[w->n_kept] = malloc(sizeof(*h));
        cr_assert_not_null(w->kept[w->n_kept]);
        heard_copy(w->kept[w->n_kept++], h);
}

static const char *sentence(const struct heard *h)
{
        static char text[RIG_PROTO_TEXT_MAX + 1];

        if (h->type == RIG_MSG_BROKEN)
                return rig_text_copy(h->msg.broken.text, text, sizeof(text));
        if (h->type == RIG_MSG_FAILED)
                return rig_text_copy(h->msg.failed.text, text, sizeof(text));
        return rig_msg_type_to_string(h->type);
}

static void expect(struct wire *w, uint32_t serial, enum rig_msg_type type, struct heard *ret)
{
        if (take_kept(w, serial, type, ret))
                return;
        for (;;) {
                cr_assert(hear(w, ret), "the connection ended before %s came", rig_msg_type_to_string(type));
                if (matches(ret, serial, type))
                        return;
                cr_assert_neq(ret->type, RIG_MSG_BROKEN, "it is broken: %s", sentence(ret));
                keep(w, ret);
        }
}

enum rig_msg_type wire_any_answer(struct wire *w, uint32_t serial, struct heard *ret)
{
        expect(w, serial, RIG_MSG_DONE, ret);
        return ret->type;
}

void wire_answer(struct wire *w, uint32_t serial, enum rig_msg_type type, struct heard *ret)
{
        expect(w, serial, type, ret);
        cr_assert_eq(ret->type, type, "not %s, but: %s", rig_msg_type_to_string(type), sentence(ret));
}

void wire_event(struct wire *w, enum rig_msg_type type, struct heard *ret)
{
        expect(w, 0, type, ret);
}

static void check_sentence(const struct heard *h, uint32_t got, int error, const char *text)
{
        cr_assert_eq((int)got, error, "%s (%s), and not %s", rig_errno_name(-(int)got), sentence(h),
                rig_errno_name(-error));
        cr_assert_not_null(strstr(sentence(h), text), "\"%s\" does not say \"%s\"", sentence(h), text);
}

void wire_failed(struct wire *w, uint32_t serial, int error, const char *text)
{
        struct heard h;

        wire_answer(w, serial, RIG_MSG_FAILED, &h);
        check_sentence(&h, h.msg.failed.error, error, text);
        heard_done(&h);
}

void wire_end(struct wire *w)
{
        struct heard h;

        while (hear(w, &h))
                heard_done(&h);
        wire_close(w);
}

void wire_broken(struct wire *w, int error, const char *text)
{
        struct heard h;

        expect(w, 0, RIG_MSG_BROKEN, &h);
        check_sentence(&h, h.msg.broken.error, error, text);
        cr_assert_eq(hear(w, &h), 0, "something comes after broken");
        wire_close(w);
}
