/* SPDX-License-Identifier: ISC */
/*
 * See guard.h. Seals keep a memfd's length, and the kernel's own mount of memfds has no limit that a page
 * could run into. What is left is: a machine whose vm.overcommit_memory is 2 has no commit left for a page
 * that nobody touched yet, or that the client punched out; a page cannot be read back from swap; a page is
 * poisoned by a memory error. Each raises SIGBUS in whoever touches the page, which must not be rigd's end.
 *
 * The handler maps a page of zeros of rigd's own over the one that failed and returns to the access, which
 * then succeeds. From then on rigd and the client see different bytes there; the client's work on that page
 * is wrong, as it would be had the client's own access failed. A SIGBUS anywhere else goes to whoever
 * handled it before us, or ends the process as it should.
 *
 * Invariants: a range is in the table for as long as rigd may touch it. The handler takes no lock and calls
 * nothing but mmap(2): ranges sit in chunks that are linked once and never freed, and a range's start is
 * written last and cleared first, so that what the handler finds is whole. Free ranges are in a list of
 * their own, so that adding and removing take no search.
 */
#include "daemon/memory/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define CHUNK_RANGES 1024

/* A range of addresses that is guarded. */
struct rig_guard {
        _Atomic uintptr_t start; /* 0: free */
        _Atomic uintptr_t end;
        struct rig_guard *next_free;
};

struct chunk {
        struct chunk *next;
        struct rig_guard ranges[CHUNK_RANGES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who add and remove */
static _Atomic(struct chunk *) chunks;
static struct rig_guard *free_ranges;
static struct sigaction previous;
static bool installed;
static size_t page_bytes;

static bool guarded(uintptr_t address)
{
        for (struct chunk *c = atomic_load(&chunks); c; c = c->next) {
                for (size_t i = 0; i < CHUNK_RANGES; i++) {
                        uintptr_t start = atomic_load(&c->ranges[i].start);

                        if (start && address >= start && address < atomic_load(&c->ranges[i].end))
                                return true;
                }
        }
        return false;
}

/* A SIGBUS that is not ours: as if we had never been here. */
static void pass_on(int number, siginfo_t *info, void *context)
{
        if (previous.sa_flags & SA_SIGINFO) {
                previous.sa_sigaction(number, info, context);
                return;
        }
        if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
                previous.sa_handler(number);
                return;
        }
        signal(number, SIG_DFL); /* the access is made again on return, and ends the process */
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
        uintptr_t page = (uintptr_t)info->si_addr & ~((uintptr_t)page_bytes - 1);
        int saved = errno;

        /* a code that is not the kernel's was sent by a process, and names no address */
        if (info->si_code <= 0 || !guarded((uintptr_t)info->si_addr) ||
                mmap((void *)page, page_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
                pass_on(number, info, context);
        errno = saved;
}

static void install(void)
{
        struct sigaction action = {
                .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

        if (installed)
                return;
        page_bytes = (size_t)sysconf(_SC_PAGESIZE);
        sigemptyset(&action.sa_mask);
        rig_assert(sigaction(SIGBUS, &action, &previous) == 0);
        installed = true;
}

/* Adds a chunk of free ranges to the table. */
static int grow(void)
{
        struct chunk *grown = calloc(1, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        for (size_t i = 0; i < CHUNK_RANGES; i++) {
                grown->ranges[i].next_free = free_ranges;
                free_ranges = &grown->ranges[i];
        }
        grown->next = atomic_load(&chunks);
        atomic_store(&chunks, grown);
        return 0;
}

int rig_guard_add(void *start, size_t bytes, struct rig_guard **ret_guard)
{
        struct rig_guard *range;
        int r = 0;

        pthread_mutex_lock(&lock);
        install();
        if (!free_ranges)
                r = grow();
        if (r == 0) {
                range = free_ranges;
                free_ranges = range->next_free;
                atomic_store(&range->end, (uintptr_t)start + bytes);
                atomic_store(&range->start, (uintptr_t)start);
                *ret_guard = range;
        }
        pthread_mutex_unlock(&lock);
        return r;
}

void rig_guard_remove(struct rig_guard *guard)
{
        pthread_mutex_lock(&lock);
        rig_assert(atomic_load(&guard->start) != 0);
        atomic_store(&guard->start, 0);
        guard->next_free = free_ranges;
        free_ranges = guard;
        pthread_mutex_unlock(&lock);
}
