/* SPDX-License-Identifier: ISC */
/*
 * Descriptions of regions, which come with a list of capabilities behind them. The list is of the
 * describer's making: each of its entries lies inside the description, no more of them are followed than
 * would fit side by side, and areas lie inside the region. (<linux/vfio.h>)
 */
#include "daemon/pci/region-info.h"

#include <linux/vfio.h>
#include <string.h>
#include <sys/mman.h>

/* Reads the list of areas of a capability at `at`. False: it cannot be right, or there is no memory. */
static bool read_areas(struct rig_region_info *region, const uint8_t *info, uint32_t bytes, uint32_t at)
{
        struct vfio_region_info_cap_sparse_mmap sparse;

        if (rig_range_outside(at, sizeof(sparse), bytes))
                return false;
        memcpy(&sparse, info + at, sizeof(sparse));
        at += (uint32_t)sizeof(sparse);
        if (region->areas || sparse.nr_areas > (bytes - at) / sizeof(struct rig_region_area))
                return false;
        region->areas = calloc(RIG_MAX(sparse.nr_areas, 1u), sizeof(struct rig_region_area));
        if (!region->areas)
                return false;
        memcpy(region->areas, info + at, sparse.nr_areas * sizeof(struct rig_region_area));
        region->n_areas = sparse.nr_areas;
        for (uint32_t i = 0; i < region->n_areas; i++)
                if (rig_range_outside(region->areas[i].offset, region->areas[i].bytes, region->bytes))
                        return false;
        return true;
}

static bool read_capabilities(
        struct rig_region_info *region, const uint8_t *info, uint32_t bytes, uint32_t at)
{
        unsigned left = bytes / sizeof(struct vfio_info_cap_header);

        while (at) {
                struct vfio_info_cap_header header;

                if (!left-- || at < sizeof(struct vfio_region_info) ||
                        rig_range_outside(at, sizeof(header), bytes))
                        return false;
                memcpy(&header, info + at, sizeof(header));
                if (header.id == VFIO_REGION_INFO_CAP_SPARSE_MMAP && !read_areas(region, info, bytes, at))
                        return false;
                at = header.next;
        }
        return true;
}

const char *rig_region_info_parse(
        struct rig_region_info *region, const void *description, uint32_t bytes, uint32_t index)
{
        struct vfio_region_info info;

        *region = (struct rig_region_info){.fd = -EBADF};
        if (bytes < sizeof(info))
                return "it is described by too few bytes";
        memcpy(&info, description, sizeof(info));
        if (info.index != index)
                return "the answer is of another region";
        if (info.argsz < bytes)
                return "the answer is longer than it says";
        if (info.size > INT64_MAX)
                return "its size is no size";
        region->bytes = info.size;
        region->readable = info.flags & VFIO_REGION_INFO_FLAG_READ;
        region->writable = info.flags & VFIO_REGION_INFO_FLAG_WRITE;
        region->fd_offset = info.offset;
        if (info.flags & VFIO_REGION_INFO_FLAG_CAPS &&
                !read_capabilities(region, description, bytes, info.cap_offset))
                return "its capabilities loop, or leave the answer or the region";
        if (!(info.flags & VFIO_REGION_INFO_FLAG_MMAP)) {
                region->n_areas = 0;
        } else if (!region->areas) {
                region->areas = calloc(1, sizeof(struct rig_region_area));
                if (!region->areas)
                        return "there is no memory for its description";
                region->areas[0].bytes = region->bytes;
                region->n_areas = 1;
        }
        return NULL;
}

void rig_region_info_deinit(struct rig_region_info *region)
{
        region->fd = rig_close(region->fd);
        free(region->areas);
        region->areas = NULL;
        region->n_areas = 0;
}

bool rig_region_info_maps_all(const struct rig_region_info *region)
{
        for (uint32_t i = 0; i < region->n_areas; i++)
                if (region->areas[i].offset == 0 && region->areas[i].bytes == region->bytes)
                        return region->bytes > 0;
        return false;
}

int rig_region_info_map(
        const struct rig_region_info *region, int fd, uint64_t offset, uint64_t bytes, void **ret_host)
{
        uint64_t at = region->fd_offset + offset;
        void *host;

        if (!region->readable || !region->writable || at % (uint64_t)sysconf(_SC_PAGESIZE) || bytes % 8)
                return 0;
        for (uint32_t i = 0; i < region->n_areas; i++) {
                const struct rig_region_area *area = &region->areas[i];

                if (offset < area->offset || rig_range_outside(offset - area->offset, bytes, area->bytes))
                        continue;
                host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
                if (host == MAP_FAILED)
                        return -errno;
                *ret_host = host;
                return 1;
        }
        return 0;
}
