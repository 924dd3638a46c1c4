/* SPDX-License-Identifier: ISC */
/*
 * What the tests of the library share: plain programs, since threads are involved. A program is a table of
 * tests, each named after the promise it holds; the first check that fails says where and ends the program
 * with 1. A test that hangs is ended by an alarm, which is a failure too.
 */
#ifndef RIG_TEST_API_H
#define RIG_TEST_API_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rig/rig.h>

#define TEST_SECONDS 120 /* the longest that one test may take */

struct test {
        const char *name;
        void (*run)(void);
};
#define TEST(f)                                                                                             \
        {                                                                                                   \
#f, f                                                                                       \
        }

extern const char *test_name; /* the one that runs */

#define CHECK(x)                                                                                            \
        do {                                                                                                \
                if (!(x))                                                                                   \
                        check_failed(#x, __FILE__, __LINE__);                                               \
        } while (0)

/* The call returns this; it may be negative. */
#define CHECK_RETURNS(expected, call) check_returns((expected), (call), #call, __FILE__, __LINE__)

/* The call succeeds. */
#define OK(call) check_ok((call), #call, __FILE__, __LINE__)

__attribute__((noreturn)) static inline void check_failed(const char *what, const char *file, int line)
{
        fprintf(stderr, "%s: %s:%d: not so: %s (last error: %s)\n", test_name, file, line, what,
                rig_error());
        _exit(1);
}

static inline int check_returns(long expected, long got, const char *call, const char *file, int line)
{
        if (got != expected) {
                fprintf(stderr, "%s: %s:%d: %s returned %ld (%s), not %ld (%s): %s\n", test_name, file, line,
                        call, got, got < 0 ? rig_strerror((int)got) : "", expected,
                        expected < 0 ? rig_strerror((int)expected) : "", rig_error());
                _exit(1);
        }
        /* A failure always comes with its sentence. */
        if (got < 0 && rig_error()[0] == '\0')
                check_failed("the error has a sentence", file, line);
        return (int)got;
}

static inline int check_ok(int r, const char *call, const char *file, int line)
{
        return r < 0 ? check_returns(0, r, call, file, line) : r;
}

/* Descriptors that the process has open. */
int test_count_fds(void);

/* A connection to a private rigd, in the transport that the environment chooses. */
struct rig *test_connect(void);

/* A rigd that connections share; the environment's address is its own until it is stopped. */
void test_rigd_start(void);
void test_rigd_start_with(const char *setting); /* "ClientsMax=1" */
void test_rigd_stop(void);
void test_rigd_kill(void); /* in the place of stopping it */

/* A file of these bytes with no name, open as `flags` say. */
int test_file(const void *data, size_t bytes, int flags);
/* A memfd of as many bytes, sealed as rig asks. */
int test_memfd(size_t bytes);
/* The byte that byte `i` of a test's pattern is. */
static inline uint8_t test_byte(uint64_t i, uint32_t seed)
{
        return (uint8_t)((i * 2654435761u + seed * 40503u) >> 7);
}

/* Runs the tests named on the command line, or all. Return: the program's exit status. */
int test_main(const struct test *tests, size_t n, int argc, char **argv);

#endif
