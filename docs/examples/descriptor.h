/* SPDX-License-Identifier: ISC */
/* A descriptor goes from one process to another over a Unix socket (unix(7), SCM_RIGHTS). */
#ifndef DESCRIPTOR_H
#define DESCRIPTOR_H

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union descriptor_control {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
};

static inline int descriptor_send(int sock, int fd)
{
        union descriptor_control control;
        struct iovec one = {(char[1]){'d'}, 1};
        struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1};
        struct cmsghdr *c;

        memset(&control, 0, sizeof(control));
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        return sendmsg(sock, &m, 0) == 1 ? 0 : -1;
}

static inline int descriptor_receive(int sock)
{
        union descriptor_control control;
        char byte;
        struct iovec one = {&byte, 1};
        struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1};
        struct cmsghdr *c;
        int fd = -1;

        memset(&control, 0, sizeof(control));
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        if (recvmsg(sock, &m, 0) != 1)
                return -1;
        c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

#endif
