/* SPDX-License-Identifier: ISC */
/* The socket that rigd listens on, and what else systemd passes to it. */
#ifndef RIG_SOCKETS_H
#define RIG_SOCKETS_H

#include "base/error.h"

/* Listens at a path; a socket that nobody listens on any more is replaced. -EINVAL etc. with a sentence. */
int rig_socket_listen(const char *path, int *ret_fd, struct rig_error *e);

/**
 * rig_socket_from_systemd() - what systemd passed
 * @wanted: whether a listening socket is looked for
 * @ret_fd: it, not blocking; -EBADF where it is not wanted, or where systemd passed nothing
 *
 * What its store of descriptors holds for a rigd that had other names is closed and leaves the store.
 * Return: 0; -EINVAL with a sentence where what was passed is no socket to listen on, or several.
 */
int rig_socket_from_systemd(bool wanted, int *ret_fd, struct rig_error *e);

#endif
