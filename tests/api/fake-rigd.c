/* SPDX-License-Identifier: ISC */
/*
 * The fake rigd. It keeps no order and no memory's contents: it is there to be on the other end of the wire,
 * honest until its twist makes it lie. Its thread ends when the client closes, when it is told to close, or
 * when what it is sent makes no sense, which is a failure of the library.
 */
#include "tests/api/fake-rigd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/futex.h"
#include "tests/api/api.h"

void fake_send_bytes(struct fake *fake, const void *data, size_t bytes)
{
        /* The client may be gone: that is its right. */
        (void)!send(fake->fd, data, bytes, MSG_NOSIGNAL);
}

void fake_send(struct fake *fake, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds)
{
        uint8_t out[RIG_PROTO_PACKET_BYTES];
        ssize_t n = rig_codec_encode(type, msg, out, sizeof(out));

        CHECK(n > 0);
        (void)rig_packet_send(fake->fd, out, (size_t)n, fds, n_fds, 0);
}

static bool answer(struct fake *fake, struct fake_answer *a)
{
        enum twisted twisted = fake->twist ? fake->twist(fake, a) : TWISTED_SEND;

        if (twisted == TWISTED_SEND)
                fake_send(fake, a->type, &a->msg, a->fds, a->n_fds);
        for (size_t i = 0; i < a->n_fds; i++)
                close(a->fds[i]);
        return twisted != TWISTED_CLOSE;
}

static int sealed_memfd(uint64_t bytes)
{
        int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
        CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
        return fd;
}

static void answer_hello(struct fake *fake, struct fake_answer *a, uint32_t wanted)
{
        struct rig_msg_hello_done *m = &a->msg.hello_done;

        a->type = RIG_MSG_HELLO_DONE;
        m->serial = fake->serial;
        m->version = RIG_PROTOCOL_VERSION;
        m->daemon = rig_text("fake", RIG_PROTO_NAME_MAX);
        m->features = wanted & ~fake->hide;
        m->runs = 64;
        m->objects = 1024;
        if (m->features & RIG_FEATURE_WORDS) {
                CHECK(rig_words_new(&fake->words_fd, &fake->words) == 0);
                fake->words->sleeping = 1;
                m->has_words = true;
                m->words = (uint32_t)a->n_fds;
                a->fds[a->n_fds++] = fcntl(fake->words_fd, F_DUPFD_CLOEXEC, 0);
        }
        if (m->features & RIG_FEATURE_RING) {
                CHECK(rig_ring_new(&fake->ring_fd) == 0);
                CHECK(rig_ring_map(fake->ring_fd, &fake->ring, &fake->ring_bytes) == 0);
                fake->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
                m->has_ring = m->has_doorbell = true;
                m->ring = (uint32_t)a->n_fds;
                a->fds[a->n_fds++] = fcntl(fake->ring_fd, F_DUPFD_CLOEXEC, 0);
                m->doorbell = (uint32_t)a->n_fds;
                a->fds[a->n_fds++] = fcntl(fake->doorbell, F_DUPFD_CLOEXEC, 0);
        }
}

static void answer_device(struct fake *fake, struct fake_answer *a, uint32_t device)
{
        struct rig_msg_device_done *m = &a->msg.device_done;

        a->type = RIG_MSG_DEVICE_DONE;
        m->serial = fake->serial;
        m->arch = rig_text("fake", RIG_PROTO_NAME_MAX);
        m->n_queues = 1;
        m->queues[0] = RIG_RUNS_COPY | RIG_RUNS_FILL | RIG_RUNS_LAUNCH;
        m->flags = fake->device_flags;
        fake->reached[device] = 0;
        if (fake->words)
                memset(&fake->words->word[device - 1], 0, sizeof(struct rig_word));
}

static void answer_buffer(struct fake *fake, struct fake_answer *a, uint64_t bytes)
{
        struct rig_msg_buffer_done *m = &a->msg.buffer_done;

        a->type = RIG_MSG_BUFFER_DONE;
        m->serial = fake->serial;
        m->bytes = m->memory = bytes;
        m->access = RIG_READ_WRITE;
        m->has_fd = true;
        a->fds[a->n_fds++] = sealed_memfd(bytes);
}

static void reach(struct fake *fake, uint32_t device, uint64_t value)
{
        struct rig_msg_reached m = {.device = device, .value = value};

        fake->reached[device] = value;
        if (fake->words) {
                atomic_store(&fake->words->word[device - 1].signaled, value);
                if (fake->ring && atomic_load(&fake->ring->sleepers) > 0)
                        rig_futex_wake(rig_word_low(&fake->words->word[device - 1].signaled));
        } else {
                fake_send(fake, RIG_MSG_REACHED, &m, NULL, 0);
        }
}

static void take_run(struct fake *fake, uint32_t work)
{
        uint32_t device = fake->work_device[work];

        CHECK(device != 0);
        if (!(fake->device_flags & RIG_DEVICE_CLIENT_CODE)) {
                reach(fake, device, fake->reached[device] + 1);
                return;
        }
        /* The client runs it: it may, at once. */
        fake->reached[device]++;
        if (fake->words) {
                atomic_store(&fake->words->word[device - 1].ready, fake->reached[device]);
                if (fake->ring)
                        rig_futex_wake(rig_word_low(&fake->words->word[device - 1].ready));
        } else {
                struct rig_msg_ready m = {.device = device, .value = fake->reached[device]};

                fake_send(fake, RIG_MSG_READY, &m, NULL, 0);
        }
}

static bool take_request(struct fake *fake, enum rig_msg_type type)
{
        struct fake_answer a = {.asked = type, .type = RIG_MSG_DONE};

        fake->serial = rig_msg_serial(type, &fake->msg);
        a.msg.done.serial = fake->serial;
        switch (type) {
        case RIG_MSG_HELLO:
                answer_hello(fake, &a, fake->msg.hello.features);
                break;
        case RIG_MSG_DEVICE_OPEN:
                answer_device(fake, &a, fake->msg.device_open.device);
                break;
        case RIG_MSG_BUFFER_NEW:
                answer_buffer(fake, &a, fake->msg.buffer_new.bytes);
                break;
        case RIG_MSG_BUFFER_ADOPT:
                answer_buffer(fake, &a, fake->msg.buffer_adopt.bytes);
                break;
        case RIG_MSG_BUFFER_BORROW:
        case RIG_MSG_BUFFER_IMPORT:
        case RIG_MSG_BUFFER_EXPORT:
                answer_buffer(fake, &a, 4096);
                break;
        case RIG_MSG_WORK_NEW:
                fake->work_device[fake->msg.work_new.work] = (uint8_t)fake->msg.work_new.device;
                break;
        case RIG_MSG_IMAGE_ENTRY:
                a.type = RIG_MSG_ENTRY_DONE;
                break;
        case RIG_MSG_ADAPTER_LIST:
                a.type = RIG_MSG_FAILED;
                a.msg.failed = (struct rig_msg_failed){.serial = fake->serial, .error = ENOENT};
                break;
        default:
                break;
        }
        if (!answer(fake, &a))
                return false;
        if (type == RIG_MSG_NOTIFY && fake->reached[fake->msg.notify.device] >= fake->msg.notify.value) {
                struct rig_msg_reached m = {
                        .device = fake->msg.notify.device, .value = fake->msg.notify.value};

                fake_send(fake, RIG_MSG_REACHED, &m, NULL, 0);
        }
        return true;
}

static bool take(struct fake *fake, enum rig_msg_type type)
{
        fake->messages++;
        if (fake->close_after > 0 && fake->messages >= fake->close_after)
                return false;
        if (type == RIG_MSG_RUN)
                take_run(fake, fake->msg.run.work);
        else if (type == RIG_MSG_HOST_DONE)
                reach(fake, fake->msg.host_done.device, fake->msg.host_done.value);
        else if (rig_msg_class(type) == RIG_MSG_CLASS_REQUEST)
                return take_request(fake, type);
        else
                CHECK(rig_msg_class(type) == RIG_MSG_CLASS_ORDERED);
        return true;
}

static bool take_ring(struct fake *fake)
{
        uint64_t tail;

        if (!fake->ring)
                return true;
        while (tail = atomic_load(&fake->ring->tail), tail != fake->head) {
                const uint8_t *at = fake->ring_bytes + (fake->head & (RIG_RING_BYTES - 1));
                enum rig_msg_type type;
                ssize_t n;

                n = rig_codec_decode(at, tail - fake->head, &fake->msg, &type, NULL);
                CHECK(n > 0);
                fake->head += (uint64_t)n;
                atomic_store(&fake->words->head, fake->head);
                if (!take(fake, type))
                        return false;
        }
        return true;
}

static bool take_packet(struct fake *fake, size_t bytes)
{
        const uint8_t *at = fake->packet;

        while (bytes > 0) {
                enum rig_msg_type type;
                ssize_t n;

                /* what a request follows is in the ring already */
                if (!take_ring(fake))
                        return false;
                n = rig_codec_decode(at, bytes, &fake->msg, &type, NULL);
                CHECK(n > 0);
                if (!take(fake, type))
                        return false;
                at += n;
                bytes -= (size_t)n;
        }
        return true;
}

static void *fake_main(void *data)
{
        struct fake *fake = data;
        bool open = true;

        while (open) {
                struct pollfd p[] = {
                        {.fd = fake->fd, .events = POLLIN}, {.fd = fake->doorbell, .events = POLLIN}};
                struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;
                eventfd_t rung;
                ssize_t n;

                CHECK(poll(p, fake->doorbell >= 0 ? 2 : 1, -1) > 0);
                if (p[1].revents & POLLIN)
                        (void)eventfd_read(fake->doorbell, &rung);
                open = take_ring(fake);
                if (!open || !(p[0].revents & (POLLIN | POLLHUP)))
                        continue;
                n = rig_packet_recv(fake->fd, fake->packet, sizeof(fake->packet), RIG_PACKET_DONTWAIT, &fds);
                if (n == -EAGAIN)
                        continue;
                open = n > 0 && take_packet(fake, (size_t)n);
                rig_packet_fds_close(&fds);
        }
        fake->fd = rig_close(fake->fd);
        return NULL;
}

void fake_start(struct fake *fake, char *address, size_t size, const char *transport)
{
        int pair[2];

        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        fake->client = pair[0];
        fake->fd = pair[1];
        fake->doorbell = fake->words_fd = fake->ring_fd = -EBADF;
        if (fake->device_flags == 0)
                fake->device_flags = RIG_DEVICE_HOST_ADDRESSED | RIG_DEVICE_NAMES_HOST;
        snprintf(address, size, "fd:%d%s%s", fake->client, transport ? ",transport=" : "",
                transport ? transport : "");
        CHECK(pthread_create(&fake->thread, NULL, fake_main, fake) == 0);
}

void fake_join(struct fake *fake)
{
        CHECK(pthread_join(fake->thread, NULL) == 0);
        if (fake->words)
                munmap(fake->words, RIG_WORDS_BYTES);
        rig_ring_unmap(fake->ring);
        rig_close(fake->doorbell);
        rig_close(fake->words_fd);
        rig_close(fake->ring_fd);
}
