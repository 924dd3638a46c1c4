/* SPDX-License-Identifier: ISC */
/*
 * What a way to a function provides, and what the ways share. For daemon/pci/ and its tests alone.
 *
 * Each op runs on the function's slow thread unless it says otherwise, waits no longer than a bound, and on
 * failure fills `e` with a sentence that names the step. pci.c keeps the first of them (rig_pci_failure()).
 */
#ifndef RIG_PCI_TRANSPORT_H
#define RIG_PCI_TRANSPORT_H

#include <pthread.h>

#include "daemon/pci/dma.h"
#include "daemon/pci/pci.h"

/* Registers of configuration space that more than one file reads. (PCI Local Bus 3.0, 6.1) */
#define RIG_PCI_COMMAND              0x04u
#define RIG_PCI_COMMAND_MEMORY       0x0002u
#define RIG_PCI_COMMAND_MASTER       0x0004u
#define RIG_PCI_COMMAND_INTX_DISABLE 0x0400u
#define RIG_PCI_STATUS               0x06u
#define RIG_PCI_STATUS_LIST          0x0010u
#define RIG_PCI_BAR0                 0x10u

/* How functions are looked for: tests point it elsewhere. */
struct rig_pci_options {
        const char *root;     /* before /sys, /dev and /proc; "" */
        uint64_t answer_usec; /* a model's answer comes within it */
};

#define RIG_PCI_OPTIONS_DEFAULT                                                                             \
        {                                                                                                   \
                .root = "", .answer_usec = UINT64_C(5000000)                                                \
        }

int rig_pci_open_with(const struct rig_pci_options *options, const char *where, struct rig_pci **ret_pci,
        struct rig_error *e);

struct rig_pci_ops {
        enum rig_pci_way way;

        /* Mandatory. `bytes` and `at` were checked. From any thread. */
        int (*config_read)(
                struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t *ret_value, struct rig_error *e);
        int (*config_write)(
                struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t value, struct rig_error *e);

        /* Mandatory. *ret_host is NULL where accesses are messages. Undone by unmap(), which NULL is given
         * to as well. The range was checked. */
        int (*map)(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes,
                enum rig_caching caching, void **ret_host, struct rig_error *e);
        void (*unmap)(struct rig_pci *pci, void *host, uint64_t bytes);

        /* Optional: where map() never gives NULL. From any thread. */
        int (*bar_read)(struct rig_pci *pci, unsigned bar, uint64_t at, void *data, uint64_t bytes,
                struct rig_error *e);
        int (*bar_write)(struct rig_pci *pci, unsigned bar, uint64_t at, const void *data, uint64_t bytes,
                struct rig_error *e);

        /* Mandatory. */
        int (*interrupts)(struct rig_pci *pci, unsigned n, const int *eventfds, struct rig_error *e);
        int (*reset)(struct rig_pci *pci, uint64_t timeout_usec, struct rig_error *e);

        /* Mandatory, but where dma_new() is there: tells the function's IOMMU, or its model, of memory at
         * dma->ranges[0]. `fd` is borrowed, and dma->host maps it from `offset` on. */
        int (*dma_map)(struct rig_pci *pci, const struct rig_dma *dma, int fd, uint64_t offset,
                unsigned flags, struct rig_error *e);
        void (*dma_unmap)(struct rig_pci *pci, const struct rig_dma *dma);

        /* Optional: memory of the way's own, instead of a memfd at addresses that dma.c chooses. */
        int (*dma_new)(struct rig_pci *pci, uint64_t bytes, unsigned flags, struct rig_dma *ret_dma,
                struct rig_error *e);
        void (*dma_free)(struct rig_pci *pci, struct rig_dma *dma);

        /* Mandatory: frees all of it, whatever state it is in. */
        void (*close)(struct rig_pci *pci);
};

/* The part of a function that all ways have; each embeds it first in its own. */
struct rig_pci {
        const struct rig_pci_ops *ops;
        char *name;
        struct rig_pci_id id;
        uint32_t config_bytes;
        struct rig_pci_bar bars[RIG_PCI_BARS]; /* `bytes` and `mappable` are the way's */
        struct rig_dma_space *space;           /* what is mapped for it: dma.c */

        pthread_mutex_t failure_lock;
        struct rig_error failure; /* under it: the first */
};

/* Before anything else; undone by rig_pci_deinit(), which a way's close() ends with. */
int rig_pci_init(struct rig_pci *pci, const struct rig_pci_ops *ops, const char *name);
void rig_pci_deinit(struct rig_pci *pci);

/* Keeps a failure if it is the first. Any thread. Return: its code. */
int rig_pci_note(struct rig_pci *pci, const struct rig_error *e);

int rig_pci_vfio_user_open(const struct rig_pci_options *options, const char *path, const char *name,
        struct rig_pci **ret_pci, struct rig_error *e);
int rig_pci_vfio_open(const struct rig_pci_options *options, const struct rig_pci_address *address,
        const char *name, struct rig_pci **ret_pci, struct rig_error *e);
int rig_pci_physical_open(const struct rig_pci_options *options, const struct rig_pci_address *address,
        const char *name, struct rig_pci **ret_pci, struct rig_error *e);

/* ---------------------------------------------------------------- capability lists: capability.c */

/* Reads the 4 bytes at `at`, a multiple of 4 below the space's end. */
typedef int (*rig_pci_config_reader)(void *own, uint32_t at, uint32_t *ret_value);

#define RIG_PCI_ANY UINT32_MAX /* of ids: none is looked for */

/*
 * Walks a whole list, checks it, and finds the first capability of `id`. `bytes` is how much configuration
 * space there is to read. -ENOENT, -EPROTO as rig_pci_capability() has them; 0 for RIG_PCI_ANY in a list
 * that is right, and *ret_at is not written then; what the reader fails with.
 */
int rig_pci_capability_find(
        rig_pci_config_reader reader, void *own, uint32_t bytes, uint32_t id, uint32_t *ret_at);
int rig_pci_extended_capability_find(
        rig_pci_config_reader reader, void *own, uint32_t bytes, uint32_t id, uint32_t *ret_at);

/* ---------------------------------------------------------------- what is mapped: dma.c */

struct rig_dma_space *rig_dma_space_new(void);
struct rig_dma_space *rig_dma_space_free(struct rig_dma_space *space);
/* Bounds where dma.c puts memory that needs no certain address: [start, end), in pages; of what an IOMMU can
 * translate. Before any memory is mapped. -ENOMEM. */
int rig_dma_space_bounds(struct rig_dma_space *space, uint64_t start, uint64_t end);
/*
 * Copies between `data` and the memory mapped at `address`, as the function would. Any thread.
 * -EFAULT: not all of it is mapped so that the function may do it; nothing was copied.
 */
int rig_dma_space_copy(
        struct rig_dma_space *space, bool write, uint64_t address, void *data, uint64_t bytes);

#endif
