/* SPDX-License-Identifier: ISC */
/* Huge pages with physical addresses, for a function that no IOMMU confines. See physical-memory.c. */
#ifndef RIG_PCI_PHYSICAL_MEMORY_H
#define RIG_PCI_PHYSICAL_MEMORY_H

#include "daemon/pci/dma.h"

struct rig_physical_memory;

/*
 * The memory of the function `name`, in a file below `root`/dev/hugepages, which is made when memory is
 * first asked for. *ret_left: whether a file of an earlier process is there: the function may still write
 * its pages.
 */
int rig_physical_memory_new(const char *root, const char *name, struct rig_physical_memory **ret_memory,
        bool *ret_left, struct rig_error *e);
/* `forget`: the function was reset, and writes no more: the file goes, else it stays. Return: NULL. */
struct rig_physical_memory *rig_physical_memory_free(struct rig_physical_memory *memory, bool forget);
/* The file of an earlier process goes: the function was reset. */
void rig_physical_memory_forget(struct rig_physical_memory *memory);

/* host, bytes and ranges of `ret_dma`, and `own`. As rig_dma_new() has them. */
int rig_physical_memory_alloc(struct rig_physical_memory *memory, uint64_t bytes, unsigned flags,
        struct rig_dma *ret_dma, struct rig_error *e);
void rig_physical_memory_return(struct rig_physical_memory *memory, struct rig_dma *dma);

#endif
