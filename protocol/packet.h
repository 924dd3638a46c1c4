/* SPDX-License-Identifier: ISC */
/*
 * Packets with descriptors on an AF_UNIX SOCK_SEQPACKET socket.
 *
 * A packet is at most RIG_PROTO_PACKET_BYTES bytes and RIG_PROTO_PACKET_FDS descriptors. Descriptors that
 * are sent stay the sender's; those that are received are the receiver's, close on exec, and are all closed
 * where the packet is refused.
 */
#ifndef RIG_PACKET_H
#define RIG_PACKET_H

#include <sys/types.h>

#include "base/base.h"
#include "gen/rig-proto.h"

#define RIG_PACKET_DONTWAIT 1u /* -EAGAIN where the call would wait */

/* The descriptors of a packet, owned: -EBADF where one was taken. */
struct rig_packet_fds {
        uint32_t n;
        int fd[RIG_PROTO_PACKET_FDS];
};
#define RIG_PACKET_FDS_NULL                                                                                 \
        {                                                                                                   \
                0                                                                                           \
        }

/**
 * rig_packet_send() - send a packet
 * @socket: a connected socket
 * @data:   the bytes, at least one
 * @bytes:  how many, at most RIG_PROTO_PACKET_BYTES
 * @fds:    descriptors to send along, borrowed; NULL where there are none
 * @n_fds:  how many, at most RIG_PROTO_PACKET_FDS
 * @flags:  RIG_PACKET_...
 *
 * All or nothing is sent, and no signal raised. May block unless RIG_PACKET_DONTWAIT.
 * Return: 0; -EAGAIN, -EPIPE (the other side is gone), -EINVAL (too much or nothing), -EBADF (of @fds),
 * -ETOOMANYREFS (more descriptors in flight than the user may have), and what else sendmsg(2) gives.
 */
int rig_packet_send(
        int socket, const void *data, size_t bytes, const int *fds, size_t n_fds, unsigned flags);

/**
 * rig_packet_recv() - receive a packet
 * @socket:  a connected socket
 * @data:    where to store the bytes
 * @room:    how many there may be: RIG_PROTO_PACKET_BYTES, or less where the packets are known to be short
 * @flags:   RIG_PACKET_...
 * @ret_fds: its descriptors, which the caller then owns, also those of a packet that is refused; NULL where
 * the packet may have none
 *
 * The kernel tells neither an empty packet from the end of the connection, both being nothing. Here nothing
 * is the end where the other side has shut down or is gone, else it was an empty packet; so an empty packet
 * that is the last of a connection, or is followed by others and the end before it was looked at, reads as
 * the end.
 *
 * May block unless RIG_PACKET_DONTWAIT.
 * Return: the bytes, at least one; 0 at the end of the connection; -EAGAIN; -ECONNRESET (the other side is
 * gone and left packets unread); -EBADMSG (an empty packet, more bytes than @room, too many descriptors);
 * -EMFILE (this process has no room for the descriptors); and what else recvmsg(2) gives.
 */
ssize_t rig_packet_recv(int socket, void *data, size_t room, unsigned flags, struct rig_packet_fds *ret_fds);

/*
 * Takes descriptor `index` out of `fds`, which then no longer owns it. Return: the descriptor; -EBADF where
 * there is no such index, or it was taken before.
 */
int rig_packet_fds_take(struct rig_packet_fds *fds, uint32_t index);

/* Closes the descriptors that were not taken. */
void rig_packet_fds_close(struct rig_packet_fds *fds);

/*
 * Takes no more packets and throws away those that came: before a socket is closed whose other side is to
 * hear what was sent last. One that closes with unread packets resets the other side instead. Never blocks.
 */
void rig_packet_hang_up(int socket);

#endif
