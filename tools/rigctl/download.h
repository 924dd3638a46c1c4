/* SPDX-License-Identifier: ISC */
/* Fetches files whose length is known before, by HTTP, and goes on where it ended before. */
#ifndef RIGCTL_DOWNLOAD_H
#define RIGCTL_DOWNLOAD_H

#include "base/base.h"
#include "base/error.h"

struct ctl_download {
        const char *url;
        int fd;                 /* what is there is the start of it, and is appended to; borrowed */
        uint64_t bytes;         /* that the file has in all */
        uint64_t deadline_usec; /* RIG_USEC_INFINITY: none but that of a server that sends nothing */
        void (*progress)(void *userdata, uint64_t bytes_so_far); /* NULL: nobody looks */
        void *userdata;
};

/* Once, before the first, and after the last. Return: 0, or -ENOSYS. */
int ctl_download_init(void);
void ctl_download_deinit(void);

/**
 * ctl_download() - fetch what is not there yet
 *
 * Asks for what follows the bytes there are. A server that sends all of the file instead has it written from
 * the start. No byte is written past `bytes`.
 *
 * Return: 0: there are `bytes` bytes; -EAGAIN: it broke in the middle, or has to start over from what is
 * there now; -ETIMEDOUT: the deadline passed; -EHOSTUNREACH: no server answers; -ENOENT: it has no such
 * file; -EBADMSG: it has another; -EIO: it refuses; or why nothing can be written, as write(2) says.
 */
int ctl_download(const struct ctl_download *download, struct rig_error *e);

#endif
