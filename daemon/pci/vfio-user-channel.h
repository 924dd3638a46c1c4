/* SPDX-License-Identifier: ISC */
/* The socket to a vfio-user server: calls and their answers, and the server's own commands. See the .c file.
 */
#ifndef RIG_VFIO_USER_CHANNEL_H
#define RIG_VFIO_USER_CHANNEL_H

#include <sys/uio.h>

#include "base/error.h"

#define CHANNEL_MAX_FDS 16u /* that one message brings or takes */

struct channel;

/* The server reads or writes memory. Runs on any thread. 0, or a negative errno value for the server. */
typedef int (*channel_dma)(void *own, bool write, uint64_t address, void *data, uint64_t bytes);

struct channel_call {
        const char *step;      /* for sentences: "reading configuration space" */
        uint64_t at;           /* likewise: where */
        uint64_t timeout_usec; /* 0: the channel's */
        uint16_t command;

        struct iovec request[2]; /* the payload */
        const int *fds;          /* borrowed */
        unsigned n_fds;

        struct iovec reply[2];          /* where the answer's payload goes, in order */
        uint32_t reply_least;           /* bytes that it has at least */
        uint32_t reply_bytes;           /* out: that it had */
        int reply_fds[CHANNEL_MAX_FDS]; /* out: the caller's to close, whatever is returned */
        unsigned n_reply_fds;           /* out */
};

int channel_open(const char *path, const char *name, uint64_t answer_usec, channel_dma dma, void *own,
        struct channel **ret_channel, struct rig_error *e);
struct channel *channel_close(struct channel *channel);

/* After the version was agreed: commands of the server come on `twin` (consumed), or, if it is negative,
 * between answers. Starts the thread that listens for them. */
int channel_listen(struct channel *channel, int twin, struct rig_error *e);

/*
 * Sends a command and waits for its answer. Any thread; one at a time.
 * Return: 0; what the server answered as an error; -ENODEV (it closed the connection, or did before),
 * -ETIMEDOUT, -EPROTO (what it sent cannot be right): after these three the connection is over.
 */
int channel_call(struct channel *channel, struct channel_call *call, struct rig_error *e);
/* Sends a command that gets no answer. Any thread, also while another one waits for an answer. */
int channel_post(struct channel *channel, struct channel_call *call, struct rig_error *e);
/* Ends the connection for what was found in an answer. Return: -EPROTO. */
int channel_broken(struct channel *channel, const struct channel_call *call, struct rig_error *e,
        const char *fmt, ...) _printf_(4, 5);

#endif
