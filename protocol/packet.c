/* SPDX-License-Identifier: ISC */
/*
 * Packets: one sendmsg or recvmsg each.
 *
 * Invariant: whatever rig_packet_recv() returns, each descriptor that the kernel installed is either in
 * `ret_fds` or closed. The kernel cuts a list of descriptors where the room for them ends, and where it
 * cannot install one; both are MSG_CTRUNC. They are told apart by how many came: where fewer than there was
 * room for, this process ran out of descriptors, which is not the sender's fault.
 *
 * It keeps nothing between calls, queues nothing and never waits twice: what to do with -EAGAIN is the
 * caller's.
 */
#include "protocol/packet.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * RIG_PROTO_PACKET_FDS)];
};

static int send_with_fds(int socket, struct iovec *iov, const int *fds, size_t n_fds, int flags)
{
        union control control = {0};
        struct msghdr msg = {
                .msg_iov = iov,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = CMSG_SPACE(sizeof(int) * n_fds),
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
        return sendmsg(socket, &msg, flags) < 0 ? -errno : 0;
}

int rig_packet_send(int socket, const void *data, size_t bytes, const int *fds, size_t n_fds, unsigned flags)
{
        int how = MSG_NOSIGNAL | (flags & RIG_PACKET_DONTWAIT ? MSG_DONTWAIT : 0);
        struct iovec iov = {.iov_len = bytes};

        if (bytes == 0 || bytes > RIG_PROTO_PACKET_BYTES || n_fds > RIG_PROTO_PACKET_FDS)
                return -EINVAL;
        if (n_fds == 0)
                return send(socket, data, bytes, how) < 0 ? -errno : 0;
        memcpy(&iov.iov_base, &data, sizeof(data)); /* sendmsg() reads it only: its type cannot say so */
        return send_with_fds(socket, &iov, fds, n_fds, how);
}

/* Collects the descriptors of a packet. `fds` has room for all that the control bytes have room for. */
static void fds_collect(struct msghdr *msg, struct rig_packet_fds *fds)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
                size_t n;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                rig_assert(n <= RIG_PROTO_PACKET_FDS - fds->n);
                memcpy(&fds->fd[fds->n], CMSG_DATA(c), n * sizeof(int));
                fds->n += (uint32_t)n;
        }
}

/* Nothing was received: true where that is the end of the connection. */
static bool at_end(int socket)
{
        struct pollfd p = {.fd = socket, .events = POLLRDHUP};

        return poll(&p, 1, 0) != 0;
}

ssize_t rig_packet_recv(int socket, void *data, size_t room, unsigned flags, struct rig_packet_fds *ret_fds)
{
        int how = MSG_CMSG_CLOEXEC | (flags & RIG_PACKET_DONTWAIT ? MSG_DONTWAIT : 0);
        struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;
        union control control;
        struct iovec iov = {.iov_base = data, .iov_len = room};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        ssize_t n;

        if (ret_fds) {
                msg.msg_control = control.bytes;
                msg.msg_controllen = sizeof(control.bytes);
        }
        n = recvmsg(socket, &msg, how);
        if (n < 0)
                return -errno;
        fds_collect(&msg, &fds);
        if (ret_fds)
                *ret_fds = fds;
        if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                return msg.msg_flags & MSG_TRUNC || !ret_fds || fds.n == RIG_PROTO_PACKET_FDS ? -EBADMSG
                                                                                              : -EMFILE;
        if (n == 0 && !(fds.n == 0 && at_end(socket)))
                return -EBADMSG;
        return n;
}

int rig_packet_fds_take(struct rig_packet_fds *fds, uint32_t index)
{
        return index < fds->n ? rig_steal_fd(&fds->fd[index]) : -EBADF;
}

void rig_packet_fds_close(struct rig_packet_fds *fds)
{
        for (uint32_t i = 0; i < fds->n; i++)
                fds->fd[i] = rig_close(fds->fd[i]);
}

void rig_packet_hang_up(int socket)
{
        uint8_t byte;

        shutdown(socket, SHUT_RD);
        /* No more can come, so this ends; descriptors that nobody takes go with their packet. */
        while (recv(socket, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
                ;
}
