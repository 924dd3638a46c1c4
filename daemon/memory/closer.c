/* SPDX-License-Identifier: ISC */
/*
 * Descriptors of memfds and eventfds are closed where they are: nothing of theirs leaves the kernel. Others
 * go to a queue that threads empty, up to THREADS_MAX of them, each started when all the others are at it,
 * and gone when nothing is left. So one file that never closes costs one thread and itself.
 *
 * Deliberately not done: telling whose descriptors are stuck. A user who stalls THREADS_MAX files keeps
 * those of others waiting in the queue, where each is one descriptor of rigd's LimitNOFILE= and holds up
 * nobody; killing the file system's server frees all of them.
 */
#include "daemon/memory/closer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#define THREADS_MAX 64u
#define STACK_BYTES ((size_t)64 << 10)
#define EVENTFD     "anon_inode:[eventfd]"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* under lock */
static int *queue;
static size_t n_queue, room;
static unsigned n_threads, n_closing;

static void *close_all(void *userdata)
{
        pthread_mutex_lock(&lock);
        while (n_queue) {
                int fd = queue[--n_queue];

                n_closing++;
                pthread_mutex_unlock(&lock);
                close(fd);
                pthread_mutex_lock(&lock);
                n_closing--;
        }
        n_threads--;
        pthread_mutex_unlock(&lock);
        return NULL;
}

/* One more thread, with the lock held. Where there is none to be had, the next descriptor tries again. */
static void start_thread(void)
{
        pthread_attr_t attributes;
        pthread_t thread;

        if (pthread_attr_init(&attributes) != 0)
                return;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (pthread_create(&thread, &attributes, close_all, NULL) == 0)
                n_threads++;
        pthread_attr_destroy(&attributes);
}

/* Files' names start with a slash: no file is called so. */
static bool is_eventfd(int fd)
{
        char path[64], name[sizeof(EVENTFD)];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, name, sizeof(name));
        return n == sizeof(name) - 1 && memcmp(name, EVENTFD, (size_t)n) == 0;
}

int rig_foreign_close(int fd)
{
        if (fd < 0)
                return -EBADF;
        /* Files of shared memory alone take seals. */
        if (fcntl(fd, F_GET_SEALS) >= 0 || is_eventfd(fd)) {
                close(fd);
                return -EBADF;
        }
        pthread_mutex_lock(&lock);
        if (n_queue == room) {
                int *more = realloc(queue, (room ? 2 * room : 64) * sizeof(*queue));

                if (more) {
                        queue = more;
                        room = room ? 2 * room : 64;
                }
        }
        /* Without memory for the queue it stays open: the lesser evil. */
        if (n_queue < room)
                queue[n_queue++] = fd;
        if (n_queue && n_threads < THREADS_MAX && n_threads == n_closing)
                start_thread();
        pthread_mutex_unlock(&lock);
        return -EBADF;
}

int rig_foreign_stat(int fd, mode_t *ret_mode, dev_t *ret_device, ino_t *ret_inode)
{
        struct statx s;

        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &s) < 0)
                return -errno;
        *ret_mode = s.stx_mode;
        *ret_device = makedev(s.stx_dev_major, s.stx_dev_minor);
        *ret_inode = s.stx_ino;
        return 0;
}

unsigned rig_foreign_waiting(void)
{
        unsigned n;

        pthread_mutex_lock(&lock);
        n = (unsigned)n_queue + n_closing;
        pthread_mutex_unlock(&lock);
        return n;
}
