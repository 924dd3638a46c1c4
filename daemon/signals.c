/* SPDX-License-Identifier: ISC */
/*
 * write(2) to an eventfd blocks where its counter is full, and whether it does is a flag that the client can
 * change at any moment, since the open file is the client's too. The kernel itself signals eventfds without
 * blocking: an asynchronous read with IOCB_FLAG_RESFD does so when it completes (io_submit(2)). So each
 * signal is one read of one byte of /dev/zero, complete when the call returns.
 */
#include "daemon/signals.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

struct rig_signals {
        aio_context_t context;
        int zero;
};

int rig_signals_new(struct rig_signals **ret_signals)
{
        struct rig_signals *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        if (s->zero < 0 || syscall(SYS_io_setup, 4, &s->context) < 0) {
                int r = -errno;

                rig_signals_free(s);
                return r;
        }
        *ret_signals = s;
        return 0;
}

struct rig_signals *rig_signals_free(struct rig_signals *signals)
{
        if (!signals)
                return NULL;
        if (signals->context)
                syscall(SYS_io_destroy, signals->context);
        rig_close(signals->zero);
        free(signals);
        return NULL;
}

int rig_signals_check(int fd)
{
        char path[64], target[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';
        return strcmp(target, "anon_inode:[eventfd]") == 0 ? 0 : -EBADF;
}

int rig_signals_send(struct rig_signals *signals, int fd)
{
        char byte;
        struct io_event done;
        struct iocb read_zero = {.aio_lio_opcode = IOCB_CMD_PREAD,
                .aio_fildes = (uint32_t)signals->zero,
                .aio_buf = (uint64_t)(uintptr_t)&byte,
                .aio_nbytes = 1,
                .aio_flags = IOCB_FLAG_RESFD,
                .aio_resfd = (uint32_t)fd};
        struct iocb *all[] = {&read_zero};

        if (syscall(SYS_io_submit, signals->context, 1, all) < 0)
                return -errno;
        if (syscall(SYS_io_getevents, signals->context, 1, 1, &done, NULL) < 0)
                return -errno;
        return 0;
}
