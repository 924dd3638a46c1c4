/* SPDX-License-Identifier: ISC */
/* Addresses: from what rig_connect() is given to a connected socket. */
#ifndef RIG_CLIENT_ADDRESS_H
#define RIG_CLIENT_ADDRESS_H

#include "libclient/client.h"

/**
 * rig_address_connect() - connect to an address
 * @address:       as rig_connect() takes it, or NULL
 * @ret_fd:        a connected socket
 * @ret_transport: what the address or the environment asks for
 * @origin:        where to write what was connected to, for sentences
 * @size:          its room
 *
 * Return: 0; a negative errno value with its sentence.
 */
int rig_address_connect(
        const char *address, int *ret_fd, enum rig_transport *ret_transport, char *origin, size_t size);

/* Starts a rigd of this process's own. As rig_address_connect(). (spawn.c) */
int rig_spawn(int *ret_fd, char *origin, size_t size);

#endif
