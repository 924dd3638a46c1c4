/* SPDX-License-Identifier: ISC */
/*
 * What ends a connection on the socket: each wrong thing that a client can say, with the sentence that says
 * what was wrong. A second client that is connected all the while notices nothing, and rigd holds nothing of
 * the first one afterwards.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/e2e/wire.h"

static struct rigd rigd;
static struct wire other; /* goes on */
static void *others_bytes;
static size_t fds_at_start;

static void set_up(void)
{
        rigd_start(&rigd, NULL);
        wire_open(&other, &rigd, WIRE_RING);
        wire_device(&other, 1, "memory:O");
        others_bytes = wire_buffer(&other, 1, 1, 4096);
        wire_fill(&other, 1, 1, 0x51515151);
        wire_sync(&other);
        fds_at_start = rigd_count_fds(&rigd);
}

static void tear_down(void)
{
        wire_run(&other, 1, 1, 0);
        wire_wait(&other, 1, 1);
        cr_assert_eq(*(uint8_t *)others_bytes, 0x51, "the other client does not go on");
        munmap(others_bytes, 4096);
        rigd_await_fds(&rigd, fds_at_start); /* nothing stays of the connection that ended */
        wire_close(&other);
        rigd_stop(&rigd);
}

TestSuite(broken, .init = set_up, .fini = tear_down, .timeout = 120);

struct row {
        const char *bytes;
        size_t n;
        int error;
        const char *text;
};
#define ROW(bytes, error, text)                                                                             \
        {                                                                                                   \
                bytes, sizeof(bytes) - 1, error, text                                                       \
        }

#define SYNC "\x82\x18\x21\xa1\x00\x01" /* [33, {0: 1}] */

/* Each is sent by a connection of its own. */
static void all_break(const struct row *rows, size_t n, enum wire_transport transport)
{
        for (size_t i = 0; i < n; i++) {
                struct wire w;

                wire_open(&w, &rigd, transport);
                wire_send_raw(&w, rows[i].bytes, rows[i].n, NULL, 0);
                wire_broken(&w, rows[i].error, rows[i].text);
        }
        wire_sync(&other);
}

/* ---------------------------------------------------------------- bytes */

static const struct row malformed[] = {
        ROW("\x82\x18\x21\xa1\x00", EBADMSG, "a packet ends inside a message"),
        ROW("\x82", EBADMSG, "a packet ends inside a message"),
        ROW("\x82\x18", EBADMSG, "a packet ends inside a message"),
        ROW(SYNC "\xff", EBADMSG, "indefinite"),
        ROW(SYNC SYNC "\x82", EBADMSG, "a packet ends inside a message"),
        ROW(SYNC "\x00", EBADMSG, "array"),
        ROW("\x82\x18\x21\xa1\x00\x18\x01", EBADMSG, "shortest"),
        ROW("\x82\x19\x00\x21\xa1\x00\x01", EBADMSG, "shortest"),
        ROW("\x98\x02\x18\x21\xa1\x00\x01", EBADMSG, "shortest"),
        ROW("\x9f\x18\x21\xa1\x00\x01\xff", EBADMSG, "indefinite"),
        ROW("\x82\x18\x21\xbf\x00\x01\xff", EBADMSG, "indefinite"),
        ROW("\x82\x18\x23\xa3\x00\x01\x01\x01\x02\x7f\x61\x61\xff", EBADMSG, "indefinite"),
        ROW("\x82\x18\x21\xa1\x00\x61\x61", EBADMSG, "serial"),
        ROW("\x82\x18\x21\xa1\x00\x20", EBADMSG, "serial"),
        ROW("\x82\x18\x21\xa1\x00\xf6", EBADMSG, "serial"),
        ROW("\x82\x18\x21\xa1\x00\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00", EBADMSG, "serial"),
        ROW("\x82\x18\x21\xa1\x00\x1b\x00\x00\x00\x01\x00\x00\x00\x00", EBADMSG, "serial"),
        ROW("\x82\x18\x21\xa0", EBADMSG, "serial"),
        ROW("\x82\x18\x21\xa2\x00\x01\x00\x01", EBADMSG, "twice"),
        ROW("\x82\x18\x21\xa1\x61\x30\x01", EBADMSG, "sync"),
        ROW("\x83\x18\x21\xa1\x00\x01\x00", EBADMSG, "array"),
        ROW("\x81\x18\x21", EBADMSG, "array"),
        ROW("\xa1\x00\x01", EBADMSG, "array"),
        ROW("\x82\x20\xa0", EBADMSG, "negative"),
        ROW("\x82\x61\x61\xa0", EBADMSG, "text"),
        ROW("\x82\x18\x21\x80", EBADMSG, "sync"),
        ROW("\x82\x18\x7f\xa0", EOPNOTSUPP, "127"),
        ROW("\x82\x1b\xff\xff\xff\xff\xff\xff\xff\xff\xa0", EOPNOTSUPP, "18446744073709551615"),
        ROW("\x82\x18\x23\xa3\x00\x01\x01\x01\x02\x62\xe4\x61", EBADMSG, "name"),
        ROW("\x82\x18\x23\xa3\x00\x01\x01\x01\x02\x62\x61\x00", EBADMSG, "name"),
        ROW("\x82\x18\x23\xa3\x00\x01\x01\x18\x3f\x02\x61\x61", EBADMSG, "device"),
};

Test(broken, malformed_packets_end_their_connection_by_the_table)
{
        all_break(malformed, RIG_ARRAY_SIZE(malformed), WIRE_SOCKET);
}

Test(broken, malformed_packets_end_a_connection_with_a_ring)
{
        all_break(malformed, RIG_ARRAY_SIZE(malformed), WIRE_RING);
}

/* Every cut of a run, which has a coder of its own. */
Test(broken, a_run_cut_at_any_byte)
{
        struct rig_msg_run run = {.work = 300,
                .n_buffers = 2,
                .buffers = {1, 70000},
                .n_points = 1,
                .has_points = true,
                .points = {{1, 1}},
                .has_time = true,
                .time = UINT64_C(1) << 40};
        uint8_t data[256];
        size_t n = wire_encode(data, 0, sizeof(data), RIG_MSG_RUN, &run);

        for (size_t i = 1; i < n; i++) {
                struct wire w;

                wire_open(&w, &rigd, WIRE_SOCKET);
                wire_send_raw(&w, data, i, NULL, 0);
                wire_broken(&w, EBADMSG, "a packet ends inside a message");
        }
}

BOTH(broken, an_empty_packet)
{
        struct wire w;

        wire_open(&w, &rigd, transport);
        cr_assert_eq(send(w.fd, "", 0, MSG_NOSIGNAL), 0);
        wire_broken(&w, EBADMSG, "a packet is empty");
}

/* Descriptors alone are no message. */
BOTH(broken, an_empty_packet_with_a_descriptor)
{
        char control[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec iov = {0};
        struct msghdr msg = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        int fd = eventfd(0, EFD_CLOEXEC);
        struct wire w;

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        wire_open(&w, &rigd, transport);
        cr_assert_eq(sendmsg(w.fd, &msg, MSG_NOSIGNAL), 0);
        wire_broken(&w, EBADMSG, "a packet is empty");
        close(fd);
}

BOTH(broken, a_packet_that_is_too_long)
{
        static uint8_t data[RIG_PROTO_PACKET_BYTES + 6];
        struct wire w;

        for (size_t i = 0; i + 6 <= sizeof(data); i += 6)
                memcpy(data + i, SYNC, 6);
        wire_open(&w, &rigd, transport);
        cr_assert_eq(send(w.fd, data, sizeof(data), MSG_NOSIGNAL), (ssize_t)sizeof(data));
        wire_broken(&w, EBADMSG, "more than 65536 bytes");
}

/* ---------------------------------------------------------------- order */

static void first_is(enum rig_msg_type type, const void *msg, const char *text)
{
        struct wire w;

        wire_open_fd(&w, rigd_connect(&rigd), WIRE_SOCKET);
        wire_send(&w, type, msg);
        wire_broken(&w, EPROTO, text);
}

Test(broken, the_first_message_must_be_a_hello)
{
        struct rig_msg_run run = {.work = 1};
        struct rig_msg_sync sync = {.serial = 1};
        struct rig_msg_device_open open = {.serial = 1, .device = 1, .name = rig_text("memory:M", 63)};
        struct rig_msg_buffer_drop drop = {.buffer = 1};
        struct rig_msg_done done = {.serial = 1};

        first_is(RIG_MSG_RUN, &run, "the first message is a run: it must be a hello");
        first_is(RIG_MSG_SYNC, &sync, "the first message is sync: it must be hello");
        first_is(RIG_MSG_DEVICE_OPEN, &open, "the first message is device-open");
        first_is(RIG_MSG_BUFFER_DROP, &drop, "the first message is buffer-drop");
        first_is(RIG_MSG_DONE, &done, "done is for rigd to say");
}

BOTH(broken, a_second_hello)
{
        struct rig_msg_hello m = {.serial = 7, .version = RIG_PROTOCOL_VERSION, .features = 3};
        struct wire w;

        wire_open(&w, &rigd, transport);
        wire_send(&w, RIG_MSG_HELLO, &m);
        wire_broken(&w, EPROTO, "a second hello");
}

Test(broken, a_hello_of_another_version)
{
        struct rig_msg_hello m = {.serial = 1, .version = RIG_PROTOCOL_VERSION + 1};
        struct wire w;

        wire_open_fd(&w, rigd_connect(&rigd), WIRE_SOCKET);
        wire_send(&w, RIG_MSG_HELLO, &m);
        wire_broken(&w, EPROTONOSUPPORT, "speaks version 2 of the protocol, and this rigd 1");
}

BOTH(broken, what_only_rigd_says)
{
        static const struct row rows[] = {
                ROW("\x82\x18\x40\xa1\x00\x01", EPROTO, "done is for rigd to say"),
                ROW("\x82\x18\x41\xa3\x00\x01\x01\x01\x02\x61\x61", EPROTO, "failed is for rigd to say"),
                ROW("\x82\x18\x46\xa2\x00\x01\x01\x01", EPROTO, "entry-done is for rigd to say"),
                ROW("\x82\x18\x60\xa2\x01\x01\x02\x61\x61", EPROTO, "broken is for rigd to say"),
                ROW("\x82\x18\x61\xa2\x01\x01\x02\x01", EPROTO, "reached is for rigd to say"),
                ROW("\x82\x18\x62\xa2\x01\x01\x02\x01", EPROTO, "ready is for rigd to say"),
                ROW("\x82\x18\x64\xa3\x01\x01\x02\x01\x03\x61\x61", EPROTO,
                        "device-lost is for rigd to say"),
        };

        all_break(rows, RIG_ARRAY_SIZE(rows), transport);
}

/* ---------------------------------------------------------------- the channel */

Test(broken, ordered_messages_on_the_socket_of_a_client_with_a_ring)
{
        static const struct row rows[] = {
                ROW("\x82\x03\xa1\x01\x01", EPROTO,
                        "buffer-drop came on the socket: it belongs on the ring"),
                ROW("\x82\x05\xa1\x01\x01", EPROTO, "work-drop came on the socket"),
                ROW("\x82\x06\xa1\x01\x01", EPROTO, "image-drop came on the socket"),
                ROW("\x82\x07\xa1\x01\x01", EPROTO, "device-close came on the socket"),
                ROW("\x82\x02\xa2\x01\x01\x02\x01", EPROTO, "host-done came on the socket"),
                ROW("\x82\x01\xa2\x01\x01\x02\x80", EPROTO, "run came on the socket"),
        };

        all_break(rows, RIG_ARRAY_SIZE(rows), WIRE_RING);
}

Test(broken, requests_on_the_ring)
{
        struct wire w;

        wire_open(&w, &rigd, WIRE_RING);
        wire_ring_raw(&w, SYNC, 6);
        wire_broken(&w, EPROTO, "sync came on the ring: it belongs on the socket");
}

/* ---------------------------------------------------------------- descriptors */

BOTH(broken, a_descriptor_that_no_message_names)
{
        struct rig_msg_sync m = {.serial = 1};
        int fds[2] = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
        struct wire w;

        wire_open(&w, &rigd, transport);
        wire_send_fds(&w, RIG_MSG_SYNC, &m, fds, 1);
        wire_broken(&w, EBADMSG, "descriptor 0 of a packet belongs to no message");

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_send_fds(&w, RIG_MSG_NOTIFY_EVENTFD,
                &(struct rig_msg_notify_eventfd){.serial = wire_serial(&w), .device = 1}, fds, 2);
        wire_broken(&w, EBADMSG, "descriptor 1 of a packet belongs to no message");
        close(fds[0]);
        close(fds[1]);
}

BOTH(broken, more_descriptors_than_a_packet_has)
{
        int fds[RIG_PROTO_PACKET_FDS + 1];
        char control[CMSG_SPACE(sizeof(fds))] = {0};
        struct iovec iov = {.iov_base = (char[]){SYNC}, .iov_len = 6};
        struct msghdr msg = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        struct wire w;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(fds); i++)
                fds[i] = eventfd(0, EFD_CLOEXEC);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(c), fds, sizeof(fds));
        wire_open(&w, &rigd, transport);
        cr_assert_eq(sendmsg(w.fd, &msg, MSG_NOSIGNAL), 6);
        wire_broken(&w, EBADMSG, "more than 4 descriptors");
        for (size_t i = 0; i < RIG_ARRAY_SIZE(fds); i++)
                close(fds[i]);
}

BOTH(broken, a_message_that_names_a_descriptor_its_packet_has_not)
{
        struct wire w;

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_send(&w, RIG_MSG_BUFFER_ADOPT,
                &(struct rig_msg_buffer_adopt){
                        .serial = wire_serial(&w), .buffer = 1, .device = 1, .bytes = 1});
        wire_broken(&w, EBADMSG, "buffer-adopt names descriptor 0, which its packet has not");

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_send(&w, RIG_MSG_BUFFER_IMPORT,
                &(struct rig_msg_buffer_import){
                        .serial = wire_serial(&w), .buffer = 1, .device = 1, .fd = 3});
        wire_broken(&w, EBADMSG, "buffer-import names descriptor 3, which its packet has not");

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_send(&w, RIG_MSG_NOTIFY_EVENTFD,
                &(struct rig_msg_notify_eventfd){.serial = wire_serial(&w), .device = 1, .fd = 1});
        wire_broken(&w, EBADMSG, "notify-eventfd names descriptor 1, which its packet has not");

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        wire_send(&w, RIG_MSG_IMAGE_LOAD,
                &(struct rig_msg_image_load){
                        .serial = wire_serial(&w), .image = 1, .device = 1, .bytes = 1});
        wire_broken(&w, EBADMSG, "image-load names descriptor 0, which its packet has not");
}

/* Two messages of a packet cannot have the same one. */
BOTH(broken, a_descriptor_that_is_named_twice)
{
        struct rig_msg_notify_eventfd m = {.serial = 100, .device = 1};
        uint8_t data[256];
        size_t n = wire_encode(data, 0, sizeof(data), RIG_MSG_NOTIFY_EVENTFD, &m);
        int fd = eventfd(0, EFD_CLOEXEC);
        struct wire w;

        wire_open(&w, &rigd, transport);
        wire_device(&w, 1, "memory:M");
        n = wire_encode(data, n, sizeof(data), RIG_MSG_NOTIFY_EVENTFD, &m);
        wire_send_raw(&w, data, n, &fd, 1);
        wire_broken(&w, EBADMSG, "notify-eventfd names descriptor 0, which its packet has not");
        close(fd);
}
