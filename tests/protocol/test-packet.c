/* SPDX-License-Identifier: ISC */
/*
 * Packets and their descriptors. Every test ends with as many open descriptors as it began with, whatever
 * was refused in between: the kernel's list of them is counted.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "protocol/packet.h"

static int here, there;     /* the two ends */
static size_t fds_at_start; /* open, the ends included */
static uint8_t data[2 * RIG_PROTO_PACKET_BYTES];

static size_t fds_open(void)
{
        size_t n = 0;
        DIR *d = opendir("/proc/self/fd");

        cr_assert_not_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

static void set_up(void)
{
        int s[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        here = s[0];
        there = s[1];
        fds_at_start = fds_open();
}

static void tear_down(void)
{
        cr_assert_eq(fds_open(), fds_at_start, "descriptors leak");
        close(here);
        close(there);
}

TestSuite(packet, .init = set_up, .fini = tear_down);

/* A descriptor that can be told from others by its size. */
static int fd_of_size(off_t size)
{
        int fd = memfd_create("test", MFD_CLOEXEC);

        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, size), 0);
        return fd;
}

static off_t size_of(int fd)
{
        struct stat st;

        cr_assert_eq(fstat(fd, &st), 0);
        return st.st_size;
}

/* What rig_packet_send() would refuse: any bytes with any number of descriptors, all of one file. */
static void send_raw(int socket, size_t bytes, size_t n_fds)
{
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int) * 16)];
        } control = {0};
        struct iovec iov = {.iov_base = data, .iov_len = bytes};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        int fd = fd_of_size(1), fds[16];

        for (size_t i = 0; i < n_fds; i++)
                fds[i] = fd;
        if (n_fds > 0) {
                msg.msg_control = control.bytes;
                msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
                CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
                CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, sizeof(int) * n_fds);
        }
        cr_assert_eq(sendmsg(socket, &msg, 0), (ssize_t)bytes, "%m");
        close(fd);
}

static ssize_t receive(struct rig_packet_fds *fds)
{
        return rig_packet_recv(there, data, RIG_PROTO_PACKET_BYTES, RIG_PACKET_DONTWAIT, fds);
}

Test(packet, packets_stay_apart_and_in_order)
{
        struct rig_packet_fds fds;

        cr_assert_eq(rig_packet_send(here, "one", 3, NULL, 0, 0), 0);
        cr_assert_eq(rig_packet_send(here, "three", 5, NULL, 0, RIG_PACKET_DONTWAIT), 0);
        cr_assert_eq(receive(&fds), 3);
        cr_assert_eq(fds.n, 0);
        cr_assert_arr_eq(data, "one", 3);
        cr_assert_eq(receive(NULL), 5);
        cr_assert_arr_eq(data, "three", 5);
        cr_assert_eq(receive(&fds), -EAGAIN);
}

Test(packet, descriptors_arrive_in_order_and_close_on_exec)
{
        struct rig_packet_fds fds = {.n = 99};
        int sent[RIG_PROTO_PACKET_FDS];

        for (int i = 0; i < (int)RIG_PROTO_PACKET_FDS; i++)
                sent[i] = fd_of_size(100 + i);
        cr_assert_eq(rig_packet_send(here, "x", 1, sent, RIG_PROTO_PACKET_FDS, 0), 0);
        cr_assert_eq(receive(&fds), 1);
        cr_assert_eq(fds.n, RIG_PROTO_PACKET_FDS);
        for (int i = 0; i < (int)RIG_PROTO_PACKET_FDS; i++) {
                cr_assert_eq(size_of(fds.fd[i]), 100 + i);
                cr_assert(fcntl(fds.fd[i], F_GETFD) & FD_CLOEXEC);
                cr_assert_eq(size_of(sent[i]), 100 + i, "what is sent is borrowed");
                close(sent[i]);
        }
        rig_packet_fds_close(&fds);
}

Test(packet, descriptors_are_taken_once_and_by_their_index)
{
        struct rig_packet_fds fds;
        int fd = fd_of_size(7), pair[2] = {fd, fd}, taken;

        cr_assert_eq(rig_packet_send(here, "x", 1, pair, 2, 0), 0);
        close(fd);
        cr_assert_eq(receive(&fds), 1);
        taken = rig_packet_fds_take(&fds, 1);
        cr_assert_eq(size_of(taken), 7);
        cr_assert_eq(rig_packet_fds_take(&fds, 1), -EBADF);
        cr_assert_eq(rig_packet_fds_take(&fds, 2), -EBADF);
        cr_assert_eq(rig_packet_fds_take(&fds, UINT32_MAX), -EBADF);
        rig_packet_fds_close(&fds);
        rig_packet_fds_close(&fds); /* nothing is left to close */
        cr_assert_eq(size_of(taken), 7, "what was taken is not closed");
        close(taken);
}

Test(packet, too_many_descriptors_are_refused_and_are_the_callers_to_close)
{
        struct rig_packet_fds fds = {.n = 99};
        int many[RIG_PROTO_PACKET_FDS + 1] = {here, here, here, here, here};

        cr_assert_eq(rig_packet_send(here, "x", 1, many, RIG_PROTO_PACKET_FDS + 1, 0), -EINVAL);
        for (size_t n = RIG_PROTO_PACKET_FDS + 1; n <= 16; n++) {
                send_raw(here, 5, n);
                cr_assert_eq(receive(&fds), -EBADMSG);
                cr_assert_leq(fds.n, RIG_PROTO_PACKET_FDS);
                rig_packet_fds_close(&fds);
                cr_assert_eq(fds_open(), fds_at_start);
        }
        send_raw(here, 5, 0);
        cr_assert_eq(receive(&fds), 5, "the connection goes on");
}

Test(packet, descriptors_are_refused_where_none_belong)
{
        for (size_t n = 1; n <= RIG_PROTO_PACKET_FDS; n++) {
                send_raw(here, 5, n);
                cr_assert_eq(receive(NULL), -EBADMSG);
                cr_assert_eq(fds_open(), fds_at_start);
        }
}

Test(packet, cut_packets_are_refused_and_their_descriptors_the_callers)
{
        struct rig_packet_fds fds;

        send_raw(here, RIG_PROTO_PACKET_BYTES + 1, 2);
        cr_assert_eq(receive(&fds), -EBADMSG);
        cr_assert_eq(fds.n, 2);
        rig_packet_fds_close(&fds);
        send_raw(here, 9, 4);
        cr_assert_eq(rig_packet_recv(there, data, 8, 0, &fds), -EBADMSG);
        cr_assert_eq(fds.n, 4);
        rig_packet_fds_close(&fds);
        send_raw(here, 9, 1);
        cr_assert_eq(rig_packet_recv(there, data, 9, 0, &fds), 9);
        rig_packet_fds_close(&fds);
}

Test(packet, the_longest_packet_passes)
{
        data[0] = 0x11;
        data[RIG_PROTO_PACKET_BYTES - 1] = 0x22;
        cr_assert_eq(rig_packet_send(here, data, RIG_PROTO_PACKET_BYTES, NULL, 0, 0), 0);
        memset(data, 0, sizeof(data));
        cr_assert_eq(receive(NULL), RIG_PROTO_PACKET_BYTES);
        cr_assert(data[0] == 0x11 && data[RIG_PROTO_PACKET_BYTES - 1] == 0x22);
        cr_assert_eq(rig_packet_send(here, data, RIG_PROTO_PACKET_BYTES + 1, NULL, 0, 0), -EINVAL);
        cr_assert_eq(rig_packet_send(here, data, 0, NULL, 0, 0), -EINVAL);
}

Test(packet, a_bad_descriptor_is_not_sent)
{
        int closed = fd_of_size(1);

        close(closed);
        cr_assert_eq(rig_packet_send(here, "x", 1, &closed, 1, 0), -EBADF);
        cr_assert_eq(receive(NULL), -EAGAIN);
}

Test(packet, a_process_without_room_for_descriptors_says_so_and_leaks_none)
{
        struct rlimit old, none;
        struct rig_packet_fds fds;
        ssize_t res;

        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
        for (rlim_t spare = 0; spare < RIG_PROTO_PACKET_FDS; spare++) {
                int probe = dup(here);

                send_raw(here, 3, RIG_PROTO_PACKET_FDS);
                none = (struct rlimit){.rlim_cur = (rlim_t)probe + spare, .rlim_max = old.rlim_max};
                close(probe); /* the lowest free one: `spare` are free below the limit */
                cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
                res = receive(&fds);
                cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
                cr_assert_eq(res, -EMFILE, "%zd with room for %u", res, (unsigned)spare);
                cr_assert_leq(fds.n, spare, "what there was room for is the caller's");
                rig_packet_fds_close(&fds);
                cr_assert_eq(fds_open(), fds_at_start);
        }
}

Test(packet, a_full_socket_is_waited_for_by_the_caller)
{
        int fd = fd_of_size(1), res;
        size_t n = 0, m = 0;

        while ((res = rig_packet_send(here, data, 4096, &fd, 1, RIG_PACKET_DONTWAIT)) == 0)
                n++;
        cr_assert_eq(res, -EAGAIN);
        cr_assert_eq(rig_packet_send(here, data, 4096, NULL, 0, RIG_PACKET_DONTWAIT), -EAGAIN);
        for (struct rig_packet_fds fds; receive(&fds) == 4096; m++) {
                cr_assert_eq(fds.n, 1);
                rig_packet_fds_close(&fds);
        }
        cr_assert_eq(n, m);
        cr_assert_gt(n, 0);
        close(fd);
}

Test(packet, the_end_is_told_from_an_empty_packet_while_the_other_side_is_there)
{
        struct rig_packet_fds fds;

        cr_assert_eq(send(here, "", 0, 0), 0);
        cr_assert_eq(receive(&fds), -EBADMSG);
        send_raw(here, 0, 3);
        cr_assert_eq(receive(&fds), -EBADMSG);
        send_raw(here, 4, 0);
        cr_assert_eq(shutdown(here, SHUT_WR), 0);
        cr_assert_eq(receive(&fds), 4, "what was sent before the end comes first");
        cr_assert_eq(receive(&fds), 0);
        cr_assert_eq(fds.n, 0);
        cr_assert_eq(receive(NULL), 0, "the end stays");
}

Test(packet, an_empty_packet_with_descriptors_is_never_the_end)
{
        struct rig_packet_fds fds;

        send_raw(here, 0, 1);
        cr_assert_eq(shutdown(here, SHUT_WR), 0);
        cr_assert_eq(receive(&fds), -EBADMSG);
        cr_assert_eq(receive(&fds), 0);
}

Test(packet, a_side_that_is_gone_is_an_error_and_no_signal)
{
        struct rig_packet_fds fds;
        int gone = here;

        cr_assert_neq(signal(SIGPIPE, SIG_DFL), SIG_ERR); /* whatever the runner made of it */
        cr_assert_eq(rig_packet_send(there, "unread", 6, NULL, 0, 0), 0);
        here = dup(there); /* so that as many are open at the end */
        close(gone);
        cr_assert_eq(receive(&fds), -ECONNRESET);
        cr_assert_eq(rig_packet_send(there, "x", 1, NULL, 0, 0), -EPIPE);
        cr_assert_eq(rig_packet_send(there, "x", 1, &here, 1, 0), -EPIPE);
}

Test(packet, what_is_no_socket_is_an_error)
{
        struct rig_packet_fds fds;
        int fd = fd_of_size(1);

        cr_assert_eq(rig_packet_send(fd, "x", 1, NULL, 0, 0), -ENOTSOCK);
        cr_assert_eq(rig_packet_recv(fd, data, sizeof(data), 0, &fds), -ENOTSOCK);
        close(fd);
}
