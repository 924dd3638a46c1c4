/* SPDX-License-Identifier: ISC */
/*
 * Memory that a function and the host both address (DMA).
 *
 * Behind an IOMMU, and for a model, it is any memory, mapped for the function at addresses that the caller
 * chooses or dma.c does. Physically it is huge pages of a file under /dev/hugepages, named by their physical
 * addresses, which outlive this process until the function is next reset: no page that the function may
 * still write is reused before.
 *
 * Addresses that dma.c chooses begin at 4 GiB and end below 2^38, as far as the IOMMU goes: what each
 * machine's IOMMU and each device that rig drives can address. A device that addresses less says so with
 * RIG_DMA_AT.
 */
#ifndef RIG_DMA_H
#define RIG_DMA_H

#include "daemon/pci/pci.h"

struct rig_dma_range {
        uint64_t address; /* as the function addresses it */
        uint64_t bytes;
};

struct rig_dma {
        void *host;
        uint64_t bytes;
        unsigned n_ranges; /* 1 where it is contiguous for the function */
        struct rig_dma_range *ranges;
        struct rig_pci *pci;
        void *own; /* the transport's, or dma.c's */
};

#define RIG_DMA_CONTIGUOUS (1u << 0) /* one range */
#define RIG_DMA_AT         (1u << 1) /* at `address`; -EOPNOTSUPP physically */
#define RIG_DMA_READ_ONLY  (1u << 2) /* the function only reads it */

/**
 * rig_dma_new() - memory for a function
 * @bytes:   rounded up to whole pages (physically: huge pages are shared out in parts of 4096 bytes)
 * @flags:   RIG_DMA_...
 * @address: with RIG_DMA_AT, where the function is to address it: a multiple of the page size
 *
 * Zeroed. Slow. Return: 0; -EINVAL (0 bytes, no whole page); -ENOMEM with a sentence that says which memory
 * is short and how more is had; -ENOSPC (no such contiguous memory, or no more mappings), -EEXIST (something
 * is mapped at that address); what the way there fails with.
 */
int rig_dma_new(struct rig_pci *pci, uint64_t bytes, unsigned flags, uint64_t address,
        struct rig_dma *ret_dma, struct rig_error *e);
/* Maps memory of a descriptor (a memfd, borrowed) that the caller has, likewise: `offset` and `bytes` are
 * whole pages inside it, and it stays so long. -EOPNOTSUPP physically. */
int rig_dma_map(struct rig_pci *pci, int fd, uint64_t offset, uint64_t bytes, unsigned flags,
        uint64_t address, struct rig_dma *ret_dma, struct rig_error *e);
/* The function must not use it any more. Accepts one that is zeroed or freed. Slow. */
void rig_dma_free(struct rig_dma *dma);

#endif
