/* SPDX-License-Identifier: ISC */
/* The socket to a vfio-user server: calls and their answers, and the server's own commands. See the .c file.
 */
#ifndef RIG_VFIO_USER_CHANNEL_H
#define RIG_VFIO_USER_CHANNEL_H

#include <sys/uio.h>

#include "base/error.h"

#define RIG_CHANNEL_MAX_FDS 16u /* that one message brings or takes */

struct rig_channel;

/* The server reads or writes memory. Runs on any thread. 0, or a negative errno value for the server. */
typedef int (*rig_channel_dma)(void *own, bool write, uint64_t address, void *data, uint64_t bytes);

struct rig_channel_call {
        const char *step;      /* for sentences: "reading configuration space" */
        uint64_t at;           /* likewise: where */
        uint64_t timeout_usec; /* 0: the channel's */
        uint16_t command;

        struct iovec request[2]; /* the payload */
        const int *fds;          /* borrowed */
        unsigned n_fds;

        struct iovec reply[2];              /* where the answer's payload goes, in order */
        uint32_t reply_least;               /* bytes that it has at least */
        uint32_t reply_bytes;               /* out: that it had */
        int reply_fds[RIG_CHANNEL_MAX_FDS]; /* out: the caller's to close, whatever is returned */
        unsigned n_reply_fds;               /* out */
};

int rig_channel_open(const char *path, const char *name, uint64_t answer_usec, rig_channel_dma dma,
        void *own, struct rig_channel **ret_channel, struct rig_error *e);
struct rig_channel *rig_channel_close(struct rig_channel *channel);

/* After the version was agreed: commands of the server come on `twin` (consumed), or, if it is negative,
 * between answers. Starts the thread that listens for them. */
int rig_channel_listen(struct rig_channel *channel, int twin, struct rig_error *e);

/*
 * Sends a command and waits for its answer. Any thread; one at a time.
 * Return: 0; what the server answered as an error; -ENODEV (it closed the connection, or did before),
 * -ETIMEDOUT, -EPROTO (what it sent cannot be right): after these three the connection is over.
 */
int rig_channel_call(struct rig_channel *channel, struct rig_channel_call *call, struct rig_error *e);
/* Sends a command that gets no answer. Any thread, also while another one waits for an answer. */
int rig_channel_post(struct rig_channel *channel, struct rig_channel_call *call, struct rig_error *e);
/* Ends the connection for what was found in an answer. Return: -EPROTO. */
int rig_channel_broken(struct rig_channel *channel, const struct rig_channel_call *call, struct rig_error *e,
        const char *fmt, ...) _printf_(4, 5);

#endif
