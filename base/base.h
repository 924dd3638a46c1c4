/* SPDX-License-Identifier: ISC */
/*
 * The few things every file of rig leans on: ownership that ends with its scope, assertions that stay in
 * every build, and sizes that cannot overflow unseen. It knows no other folder.
 *
 * Ownership: a local that owns something is declared `_cleanup_(rig_x_freep)` and starts as NULL or -EBADF;
 * it leaves the function through RIG_STEAL() or rig_steal_fd(). A destructor accepts NULL.
 */
#ifndef RIG_BASE_H
#define RIG_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f)      __attribute__((cleanup(f)))
#define _printf_(a, b)    __attribute__((format(printf, a, b)))
#define _noreturn_        __attribute__((noreturn))
#define _unused_          __attribute__((unused))
#define RIG_CACHELINE     64
#define RIG_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define RIG_STEAL(p)                                                                                        \
        ({                                                                                                  \
                __auto_type stolen_ = (p);                                                                  \
                (p) = NULL;                                                                                 \
                stolen_;                                                                                    \
        })
#define RIG_CONTAINER_OF(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define RIG_MIN(a, b)                                                                                       \
        ({                                                                                                  \
                __auto_type a_ = (a);                                                                       \
                __auto_type b_ = (b);                                                                       \
                a_ < b_ ? a_ : b_;                                                                          \
        })
#define RIG_MAX(a, b)                                                                                       \
        ({                                                                                                  \
                __auto_type a_ = (a);                                                                       \
                __auto_type b_ = (b);                                                                       \
                a_ > b_ ? a_ : b_;                                                                          \
        })
#define rig_likely(x)   __builtin_expect(!!(x), 1)
#define rig_unlikely(x) __builtin_expect(!!(x), 0)

/* For our own invariants only: what a client or a device sends is checked and refused, never asserted. */
#define rig_assert(x) (rig_likely(x) ? (void)0 : rig_assert_failed(#x, __FILE__, __LINE__, __func__))
_noreturn_ void rig_assert_failed(const char *expr, const char *file, int line, const char *func);

/* Sets *ret to a + b; true where it overflowed. */
#define rig_add_overflow(a, b, ret) __builtin_add_overflow(a, b, ret)
#define rig_mul_overflow(a, b, ret) __builtin_mul_overflow(a, b, ret)

/* True where [offset, offset + bytes) does not lie in [0, size). */
static inline bool rig_range_outside(uint64_t offset, uint64_t bytes, uint64_t size)
{
        return offset > size || bytes > size - offset;
}

static inline uint64_t rig_round_up(uint64_t n, uint64_t power_of_two)
{
        return (n + power_of_two - 1) & ~(power_of_two - 1);
}

static inline void rig_freep(void *p)
{
        free(*(void **)p);
}

/* Closes `fd` unless it is negative, keeping errno. Return: -EBADF, so that `fd = rig_close(fd)`. */
static inline int rig_close(int fd)
{
        if (fd >= 0) {
                int saved = errno;
                close(fd);
                errno = saved;
        }
        return -EBADF;
}

static inline void rig_closep(int *fd)
{
        *fd = rig_close(*fd);
}

static inline int rig_steal_fd(int *fd)
{
        int stolen = *fd;
        *fd = -EBADF;
        return stolen;
}

#endif
