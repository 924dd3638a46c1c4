/* SPDX-License-Identifier: ISC */
/* A world for tests of the vfio-user way: a model on a thread of its own, and checks for programs with
 * threads. */
#ifndef RIG_TEST_PCI_WORLD_H
#define RIG_TEST_PCI_WORLD_H

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pci/transport.h"
#include "tests/models/model.h"
#include "tests/pci/device.h"

#define CHECK(x)                                                                                            \
        do {                                                                                                \
                if (!(x)) {                                                                                 \
                        fprintf(stderr, "%s:%d: %s(): not so: %s\n", __FILE__, __LINE__, __func__, #x);     \
                        abort();                                                                            \
                }                                                                                           \
        } while (0)

#define CHECK_EQ(a, b)                                                                                      \
        do {                                                                                                \
                uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                                            \
                if (a_ != b_) {                                                                             \
                        fprintf(stderr, "%s:%d: %s(): %s is 0x%" PRIx64 ", not %s, 0x%" PRIx64 "\n",        \
                                __FILE__, __LINE__, __func__, #a, a_, #b, b_);                              \
                        abort();                                                                            \
                }                                                                                           \
        } while (0)

/* Runs a test, whose name is its promise. */
#define RUN(test)                                                                                           \
        do {                                                                                                \
                printf("%s\n", #test);                                                                      \
                fflush(stdout);                                                                             \
                test();                                                                                     \
        } while (0)

struct world {
        char directory[64], path[96], where[112];
        struct device device;
        struct model *model;
        int listener;
        pthread_t thread;
        bool running;
        int served; /* what model_serve() ended with, once joined */
};

/* Starts a model that serves one client. */
void world_start(struct world *world, const struct model_options *options);
/* Waits until it has ended, because its client left or model_stop() told it to. */
void world_join(struct world *world);
/* Ends it. */
void world_stop(struct world *world);

/* Opens the function; fails the test where it cannot be. `answer_usec` 0: the default. */
struct rig_pci *world_open(struct world *world, uint64_t answer_usec);
struct rig_pci_options world_options(uint64_t answer_usec);

/* A short life of a driver: windows, interrupts, DMA, a reset. Return: the first error, or 0. */
int world_use(struct rig_pci *pci, uint64_t reset_usec, struct rig_error *e);

/* How many descriptors this process has. */
unsigned count_fds(void);

#endif
