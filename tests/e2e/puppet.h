/* SPDX-License-Identifier: ISC */
/*
 * A client in a process of its own that does what the test tells it, one thing at a time: a call returns
 * when the puppet has done it and said so through a socket. So whatever a puppet does after another one's
 * call returned was caused by it, as law O4 has it.
 */
#ifndef RIG_TEST_PUPPET_H
#define RIG_TEST_PUPPET_H

#include "tests/e2e/wire.h"

struct puppet {
        pid_t pid;
        int fd; /* to it */
};

/* Starts one that is connected to rigd. */
void puppet_start(struct puppet *p, const struct rigd *rigd, enum wire_transport transport);
/* It closes its connection and ends. */
void puppet_stop(struct puppet *p);
/* SIGKILL, and waits until it is gone. */
void puppet_kill(struct puppet *p);

void puppet_device(struct puppet *p, uint32_t device, const char *name);
void puppet_adopt(struct puppet *p, uint32_t buffer, uint32_t device, int fd, uint64_t bytes);
void puppet_fill(struct puppet *p, uint32_t work, uint32_t device, uint32_t pattern);
void puppet_copy(struct puppet *p, uint32_t work, uint32_t device);
void puppet_sync(struct puppet *p);
/* It sends a request and does not wait: rigd has something to look at. */
void puppet_nudge(struct puppet *p);
/* Runs a work, with the time at which it does; or with a time that is a lie: long before everything. */
void puppet_run(struct puppet *p, uint32_t work, uint32_t dst, uint32_t src, bool lie);
/* It says that its device's code is done up to a value. */
void puppet_host_done(struct puppet *p, uint32_t device, uint64_t value);
/* Asks for access to a buffer without waiting for the answer; puppet_answer() waits. */
void puppet_ask_wait(struct puppet *p, uint32_t buffer, uint32_t access);
/* Return: 0, or the errno of the failure; `text` then has the sentence. */
int puppet_answer(struct puppet *p, char *text, size_t room);
/* Both. */
int puppet_wait(struct puppet *p, uint32_t buffer, uint32_t access, char *text, size_t room);
/* The value that a device has reached, as its client sees it. */
uint64_t puppet_signaled(struct puppet *p, uint32_t device);

#endif
