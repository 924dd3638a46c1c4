/* SPDX-License-Identifier: ISC */
/* A region of a function, as the kernel's VFIO and vfio-user servers describe it: struct vfio_region_info.
 */
#ifndef RIG_PCI_REGION_INFO_H
#define RIG_PCI_REGION_INFO_H

#include "base/base.h"

/* [offset, offset + bytes) of a region may be mapped. */
struct rig_region_area {
        uint64_t offset, bytes;
};

struct rig_region_info {
        uint64_t bytes;
        uint64_t fd_offset; /* of its first byte, in `fd` */
        int fd;             /* owned; or negative */
        bool readable, writable;
        struct rig_region_area *areas; /* inside the region */
        uint32_t n_areas;
};

/*
 * Reads a description of `bytes` bytes, its capabilities included, of the region `index`, into what is
 * zeroed. Return: NULL; else what is wrong with it: static text.
 */
const char *rig_region_info_parse(
        struct rig_region_info *region, const void *description, uint32_t bytes, uint32_t index);
void rig_region_info_deinit(struct rig_region_info *region);

/* Whether all of it may be mapped. */
bool rig_region_info_maps_all(const struct rig_region_info *region);
/*
 * Maps a part of `fd`, where an area has all of it, in whole pages and words, to read and write.
 * Return: 1, and the address; 0: it has to be accessed otherwise; what mmap() fails with.
 */
int rig_region_info_map(
        const struct rig_region_info *region, int fd, uint64_t offset, uint64_t bytes, void **ret_host);

#endif
