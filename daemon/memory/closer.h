/* SPDX-License-Identifier: ISC */
/*
 * Closing what a client passed in.
 *
 * close(2) of a file asks whoever serves its file system (FUSE, NFS) and waits for the answer, which a
 * client that serves one itself may never give. So may fstat(2). Here nobody waits: what cannot stall is
 * closed at once, all else by threads that do nothing else.
 */
#ifndef RIG_CLOSER_H
#define RIG_CLOSER_H

#include <sys/stat.h>

#include "base/base.h"

/* Closes a descriptor of any kind, soon; negative ones are none. Never blocks, from any thread. Return:
 * -EBADF. */
int rig_foreign_close(int fd);

static inline void rig_foreign_closep(const int *fd)
{
        (void)rig_foreign_close(*fd);
}

/* What the kernel knows of a file without asking anybody: its kind, device and inode. Return: 0 or what
 * statx gives. */
int rig_foreign_stat(int fd, mode_t *ret_mode, dev_t *ret_device, ino_t *ret_inode);

/* Descriptors that wait to be closed. */
unsigned rig_foreign_waiting(void);

#endif
