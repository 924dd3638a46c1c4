/* SPDX-License-Identifier: ISC */
/*
 * A rigd of the test's own: started with a socket in a folder of its own, watched, and stopped. Where a test
 * does not say otherwise, it ends with status 0 after SIGTERM, which under a leak checker says that it held
 * nothing any more.
 */
#ifndef RIG_TEST_RIGD_H
#define RIG_TEST_RIGD_H

#include <sys/types.h>

#include "base/base.h"

#define RIGD_WAIT_MS 60000 /* the most that anything is waited for */

struct rigd {
        pid_t pid;
        int pidfd;
        int log;         /* a file that has what it wrote to standard error */
        char folder[64]; /* of the socket */
        char path[96];
};

/* How many descriptors the next ones may have; 0: as many as the test. */
extern unsigned rigd_fds_max;

/* Starts it and returns once it listens. The strings are options, up to a NULL. */
void rigd_start(struct rigd *rigd, ...) __attribute__((sentinel));

/* SIGTERM, and status 0; the socket is gone then. Prints the log where that is not so. */
void rigd_stop(struct rigd *rigd);
/* SIGKILL. */
void rigd_kill(struct rigd *rigd);
/* Waits for its end. Return: as waitpid(2) has it. */
int rigd_wait(struct rigd *rigd);
/* Frees what is left of one that ended; rigd_stop() and rigd_kill() do it. */
void rigd_forget(struct rigd *rigd);

/* Whether the log has the text by now. */
bool rigd_log_has(const struct rigd *rigd, const char *text);
void rigd_log_print(const struct rigd *rigd);

/* A connected socket. */
int rigd_connect(const struct rigd *rigd);

/*
 * Stops it where it sleeps and has nothing to do (SIGSTOP), so that what is sent until rigd_resume() waits
 * for it all at once. It then looks first at the connection that something came from first.
 */
void rigd_pause(struct rigd *rigd);
void rigd_resume(struct rigd *rigd);

/* What it holds: /proc has it. */
size_t rigd_count_fds(const struct rigd *rigd);
size_t rigd_count_maps(const struct rigd *rigd);
/* Waits until it has so many: what an ended client held has returned. */
void rigd_await_fds(const struct rigd *rigd, size_t n);
void rigd_await_maps(const struct rigd *rigd, size_t n);
size_t rigd_resident_kib(const struct rigd *rigd);
/* Voluntary context switches of all its threads: how often one of them slept. */
uint64_t rigd_count_sleeps(const struct rigd *rigd);

/* Runs rigd with arguments, up to a NULL, to its end; `text` gets what it printed. Return: its exit status,
 * or -1. */
int rigd_run(char *text, size_t room, ...) __attribute__((sentinel));

/* Waits until a descriptor has one of `events`. False: it did not in time. */
bool wait_for(int fd, short events);

/* The program: the one that was built, or the one that $RIG_TEST_RIGD names, such as one with other
 * sanitizers. */
const char *rigd_program(void);

/* True where the sanitizers are built in. */
bool with_sanitizers(void);

#endif
