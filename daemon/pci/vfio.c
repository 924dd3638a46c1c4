/* SPDX-License-Identifier: ISC */
/*
 * The way to a function through the kernel's VFIO: its group's file, a container with an IOMMU of type 1
 * (version 2), and the device's descriptor. (Linux, Documentation/driver-api/vfio.rst and <linux/vfio.h>)
 *
 * A group is opened by one process at a time, which is the lock; all its functions must be vfio-pci's, or
 * have no driver, before the kernel lets any be used. The kernel shows configuration space as the function
 * has it, but for what it keeps to itself: addresses of BARs, interrupts, and bits that could hurt the
 * machine.
 *
 * Memory is pinned when it is mapped, and counts against RLIMIT_MEMLOCK; the IOMMU lets the function reach
 * nothing else. Interrupts are routed by the kernel, which also enables them.
 *
 * Deliberately not here: iommufd, several functions of a group by several processes (no one can), write
 * combining (mappings of VFIO are uncached), and binding: `rigctl detach --vfio` does that.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/pci/region-info.h"
#include "daemon/pci/transport.h"

#define FIRST_ADDRESS (UINT64_C(1) << 32)
#define END_ADDRESS   (UINT64_C(1) << 38)
#define MAX_INFO      65536u /* bytes of an answer with capabilities */
#define MAX_VECTORS   2048u  /* of MSI-X */
#define LOOK_USEC     UINT64_C(1000)

struct vfio {
        struct rig_pci pci;
        int container, group, device;
        bool resets;
        uint64_t config_at; /* in `device` */
        struct rig_region_info regions[RIG_PCI_BARS];
        int routed; /* the index whose interrupts are routed, or negative */
};

static struct vfio *of(struct rig_pci *pci)
{
        return RIG_CONTAINER_OF(pci, struct vfio, pci);
}

static int failed(const struct rig_pci *pci, struct rig_error *e, const char *step)
{
        return rig_error_set(e, -errno, "%s: %s: %s", pci->name, step, strerror(errno));
}

/* ---------------------------------------------------------------- accesses */

static int access_device(struct rig_pci *pci, bool write, uint64_t at, void *data, uint64_t bytes,
        const char *step, struct rig_error *e)
{
        ssize_t n = write ? pwrite(of(pci)->device, data, bytes, (off_t)at)
                          : pread(of(pci)->device, data, bytes, (off_t)at);

        if (n < 0)
                return failed(pci, e, step);
        if ((uint64_t)n != bytes)
                return rig_error_set(e, -ENODEV, "%s: %s: %zd bytes of %" PRIu64, pci->name, step, n, bytes);
        return 0;
}

static int vfio_config_read(
        struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t *ret_value, struct rig_error *e)
{
        uint8_t d[4] = {0};
        int r = access_device(
                pci, false, of(pci)->config_at + at, d, bytes, "reading configuration space", e);

        if (r == 0)
                *ret_value = d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 | (uint32_t)d[3] << 24;
        return r;
}

static int vfio_config_write(
        struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t value, struct rig_error *e)
{
        uint8_t d[4] = {
                (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};

        return access_device(pci, true, of(pci)->config_at + at, d, bytes, "writing configuration space", e);
}

static int vfio_bar_read(
        struct rig_pci *pci, unsigned bar, uint64_t at, void *data, uint64_t bytes, struct rig_error *e)
{
        return access_device(
                pci, false, of(pci)->regions[bar].fd_offset + at, data, bytes, "reading a BAR", e);
}

static int vfio_bar_write(struct rig_pci *pci, unsigned bar, uint64_t at, const void *data, uint64_t bytes,
        struct rig_error *e)
{
        return access_device(pci, true, of(pci)->regions[bar].fd_offset + at, (void *)(uintptr_t)data, bytes,
                "writing a BAR", e);
}

static int vfio_map(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes,
        enum rig_caching caching, void **ret_host, struct rig_error *e)
{
        int r;

        if (caching == RIG_WRITE_COMBINING)
                return rig_error_set(e, -EOPNOTSUPP,
                        "%s: the kernel's VFIO maps BARs uncached, and not combining", pci->name);
        *ret_host = NULL;
        r = rig_region_info_map(&of(pci)->regions[bar], of(pci)->device, offset, bytes, ret_host);
        if (r < 0)
                return rig_error_set(e, r, "%s: mapping BAR %u failed: %s", pci->name, bar, strerror(-r));
        return 0;
}

static void vfio_unmap(struct rig_pci *pci, void *host, uint64_t bytes)
{
        if (host)
                munmap(host, bytes);
}

/* ---------------------------------------------------------------- interrupts, reset */

static int set_irqs(
        struct rig_pci *pci, uint32_t index, unsigned n, const int *eventfds, struct rig_error *e)
{
        size_t bytes = sizeof(struct vfio_irq_set) + n * sizeof(int);
        _cleanup_(rig_freep) struct vfio_irq_set *set = calloc(1, bytes);

        if (!set)
                return rig_error_set(e, -ENOMEM, "%s: no memory to route its interrupts", pci->name);
        *set = (struct vfio_irq_set){.argsz = (uint32_t)bytes,
                .flags = VFIO_IRQ_SET_ACTION_TRIGGER |
                         (n ? VFIO_IRQ_SET_DATA_EVENTFD : VFIO_IRQ_SET_DATA_NONE),
                .index = index,
                .count = n};
        if (n)
                memcpy(set->data, eventfds, n * sizeof(int));
        if (ioctl(of(pci)->device, VFIO_DEVICE_SET_IRQS, set) < 0)
                return failed(pci, e, n ? "routing interrupts" : "turning interrupts off");
        return 0;
}

static int vfio_interrupts(struct rig_pci *pci, unsigned n, const int *eventfds, struct rig_error *e)
{
        static const uint32_t indexes[] = {VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_MSI_IRQ_INDEX};
        struct vfio *v = of(pci);
        uint32_t most = 0;
        int r = v->routed < 0 ? 0 : set_irqs(pci, (uint32_t)v->routed, 0, NULL, e);

        if (r < 0)
                return r;
        v->routed = -1;
        for (unsigned i = 0; n && n <= MAX_VECTORS && i < RIG_ARRAY_SIZE(indexes); i++) {
                struct vfio_irq_info info = {.argsz = sizeof(info), .index = indexes[i]};

                if (ioctl(v->device, VFIO_DEVICE_GET_IRQ_INFO, &info) < 0)
                        return failed(pci, e, "asking for interrupts");
                if (info.count < n) {
                        most = RIG_MAX(most, info.count);
                        continue;
                }
                r = set_irqs(pci, indexes[i], n, eventfds, e);
                if (r == 0)
                        v->routed = (int)indexes[i];
                return r;
        }
        if (!n)
                return 0;
        return rig_error_set(
                e, -EOPNOTSUPP, "%s: it has %u interrupts by message, not %u", pci->name, most, n);
}

/* The kernel's call waits for the reset itself, with bounds of its own; then it is asked until it answers.
 */
static int vfio_reset(struct rig_pci *pci, uint64_t timeout_usec, struct rig_error *e)
{
        const struct timespec pause = {.tv_nsec = (long)(LOOK_USEC * RIG_NSEC_PER_USEC)};
        uint64_t deadline = rig_deadline_usec(timeout_usec);

        if (!of(pci)->resets)
                return rig_error_set(e, -EOPNOTSUPP, "%s: the kernel knows no reset for it", pci->name);
        if (ioctl(of(pci)->device, VFIO_DEVICE_RESET) < 0)
                return failed(pci, e, "resetting it");
        while (rig_pci_gone(pci)) {
                if (rig_now_usec() >= deadline)
                        return rig_error_set(
                                e, -ETIMEDOUT, "%s: it does not answer after its reset", pci->name);
                nanosleep(&pause, NULL);
        }
        return 0;
}

/* ---------------------------------------------------------------- DMA */

static int vfio_dma_map(struct rig_pci *pci, const struct rig_dma *dma, int fd, uint64_t offset,
        unsigned flags, struct rig_error *e)
{
        struct vfio_iommu_type1_dma_map map = {.argsz = sizeof(map),
                .flags = VFIO_DMA_MAP_FLAG_READ | (flags & RIG_DMA_READ_ONLY ? 0 : VFIO_DMA_MAP_FLAG_WRITE),
                .vaddr = (uintptr_t)dma->host,
                .iova = dma->ranges[0].address,
                .size = dma->ranges[0].bytes};

        if (ioctl(of(pci)->container, VFIO_IOMMU_MAP_DMA, &map) == 0)
                return 0;
        if (errno == ENOMEM)
                return rig_error_set(e, -ENOMEM,
                        "%s: %" PRIu64
                        " bytes could not be pinned for it: memory is short, or the limit on locked "
                        "memory is (LimitMEMLOCK= in rigd's unit)",
                        pci->name, dma->bytes);
        return failed(pci, e, "mapping memory for it");
}

static void vfio_dma_unmap(struct rig_pci *pci, const struct rig_dma *dma)
{
        struct vfio_iommu_type1_dma_unmap unmap = {
                .argsz = sizeof(unmap), .iova = dma->ranges[0].address, .size = dma->ranges[0].bytes};
        struct rig_error e = RIG_ERROR_NULL;

        if (ioctl(of(pci)->container, VFIO_IOMMU_UNMAP_DMA, &unmap) < 0) {
                failed(pci, &e, "unmapping memory of it");
                rig_pci_note(pci, &e);
        }
}

/* Narrows [*start, *end) to the widest part of it that the IOMMU translates. */
static void narrow(
        const struct vfio_iommu_type1_info_cap_iova_range *cap, uint32_t n, uint64_t *start, uint64_t *end)
{
        uint64_t best_start = *start, best_end = *start;

        for (uint32_t i = 0; i < n; i++) {
                uint64_t a = RIG_MAX(*start, (uint64_t)cap->iova_ranges[i].start);
                uint64_t b = RIG_MIN(*end - 1, (uint64_t)cap->iova_ranges[i].end) + 1;

                if (a < b && b - a > best_end - best_start) {
                        best_start = a;
                        best_end = b;
                }
        }
        *start = best_start;
        *end = best_end;
}

/* Kernels before 5.4 do not say what they translate: all of it is taken then. */
static int set_bounds(struct vfio *v, struct rig_error *e)
{
        _cleanup_(rig_freep) struct vfio_iommu_type1_info *info = calloc(1, MAX_INFO);
        uint64_t start = FIRST_ADDRESS, end = END_ADDRESS;
        unsigned left = MAX_INFO / sizeof(struct vfio_info_cap_header);
        int r;

        if (!info)
                return rig_error_set(e, -ENOMEM, "%s: no memory to open it", v->pci.name);
        info->argsz = MAX_INFO;
        if (ioctl(v->container, VFIO_IOMMU_GET_INFO, info) < 0)
                return failed(&v->pci, e, "asking what the IOMMU translates");
        for (uint32_t at = info->flags & VFIO_IOMMU_INFO_CAPS ? info->cap_offset : 0; at && left--;) {
                const struct vfio_info_cap_header *header = (const void *)((const char *)info + at);
                const struct vfio_iommu_type1_info_cap_iova_range *cap = (const void *)header;

                if (rig_range_outside(at, sizeof(*cap), MAX_INFO))
                        break;
                if (header->id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE)
                        narrow(cap,
                                RIG_MIN(cap->nr_iovas, (uint32_t)((MAX_INFO - at - sizeof(*cap)) /
                                                                  sizeof(cap->iova_ranges[0]))),
                                &start, &end);
                at = header->next;
        }
        if (start >= end)
                return rig_error_set(
                        e, -EPROTO, "%s: its IOMMU translates no address from 4 GiB on", v->pci.name);
        r = rig_dma_space_bounds(v->pci.space, rig_round_up(start, 4096), end & ~UINT64_C(4095));
        return r < 0 ? rig_error_set(e, r, "%s: no memory to open it", v->pci.name) : 0;
}

/* ---------------------------------------------------------------- from the beginning to the end */

static void vfio_close(struct rig_pci *pci)
{
        struct vfio *v = of(pci);

        for (unsigned i = 0; i < RIG_PCI_BARS; i++)
                rig_region_info_deinit(&v->regions[i]);
        rig_close(v->device);
        rig_close(v->group);
        rig_close(v->container);
        rig_pci_deinit(pci);
        free(v);
}

static const struct rig_pci_ops vfio_ops = {
        .way = RIG_PCI_VFIO,
        .bar_read = vfio_bar_read,
        .bar_write = vfio_bar_write,
        .close = vfio_close,
        .config_read = vfio_config_read,
        .config_write = vfio_config_write,
        .dma_map = vfio_dma_map,
        .dma_unmap = vfio_dma_unmap,
        .interrupts = vfio_interrupts,
        .map = vfio_map,
        .reset = vfio_reset,
        .unmap = vfio_unmap,
};

/* A member of the group whose driver is in the way, as "ADDRESS (DRIVER)"; or "" if none is found. */
static void find_in_the_way(
        const struct rig_pci_options *options, const char *group, char *text, size_t bytes)
{
        char path[512], link[512];
        DIR *d;

        text[0] = '\0';
        snprintf(path, sizeof(path), "%s/sys/kernel/iommu_groups/%s/devices", options->root, group);
        d = opendir(path);
        for (const struct dirent *entry; d && !text[0] && (entry = readdir(d));) {
                const char *driver;
                ssize_t n;

                snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%.32s/driver", options->root,
                        entry->d_name);
                n = readlink(path, link, sizeof(link) - 1);
                link[n < 0 ? 0 : n] = '\0';
                driver = strrchr(link, '/');
                /* bridges may keep theirs */
                if (driver && strcmp(driver, "/vfio-pci") != 0 && strcmp(driver, "/pcieport") != 0)
                        snprintf(text, bytes, "%.32s (%.48s)", entry->d_name, driver + 1);
        }
        if (d)
                closedir(d);
}

static int group_of(const struct rig_pci_options *options, const char *name, char *group, size_t bytes,
        struct rig_error *e)
{
        char path[512], link[512];
        const char *number;
        ssize_t n;

        snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/iommu_group", options->root, name);
        n = readlink(path, link, sizeof(link) - 1);
        if (n < 0)
                return rig_error_set(e, errno == ENOENT ? -EOPNOTSUPP : -errno,
                        "%s is in no IOMMU group: the machine has no IOMMU, or it is off (intel_iommu=on or "
                        "amd_iommu=on on the kernel's command line, and the firmware's setup)",
                        name);
        link[n] = '\0';
        number = strrchr(link, '/');
        snprintf(group, bytes, "%.16s", number ? number + 1 : link);
        return 0;
}

static int open_group(
        struct vfio *v, const struct rig_pci_options *options, const char *group, struct rig_error *e)
{
        const char *name = v->pci.name;
        char path[512];

        snprintf(path, sizeof(path), "%s/dev/vfio/vfio", options->root);
        v->container = open(path, O_RDWR | O_CLOEXEC);
        if (v->container < 0)
                return rig_error_set(e, -errno, "%s: %s: %s; is the module vfio-pci loaded?", name, path,
                        strerror(errno));
        snprintf(path, sizeof(path), "%s/dev/vfio/%.16s", options->root, group);
        v->group = open(path, O_RDWR | O_CLOEXEC);
        if (v->group >= 0)
                return 0;
        if (errno == EBUSY)
                return rig_error_set(e, -EBUSY, "%s: another process has its IOMMU group %s", name, group);
        if (errno == EACCES || errno == EPERM)
                return rig_error_set(e, -EACCES,
                        "%s: %s may not be opened; `rigctl detach %s --vfio` gives it to rigd", name, path,
                        name);
        return rig_error_set(e, -errno, "%s: %s: %s", name, path, strerror(errno));
}

static int open_device(
        struct vfio *v, const struct rig_pci_options *options, const char *group, struct rig_error *e)
{
        struct vfio_group_status status = {.argsz = sizeof(status)};
        char other[96];

        if (ioctl(v->container, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
                ioctl(v->container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1)
                return rig_error_set(e, -EOPNOTSUPP,
                        "%s: the kernel's VFIO has no IOMMU of type 1, version 2", v->pci.name);
        if (ioctl(v->group, VFIO_GROUP_GET_STATUS, &status) < 0)
                return failed(&v->pci, e, "asking for its IOMMU group");
        if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE)) {
                find_in_the_way(options, group, other, sizeof(other));
                return rig_error_set(e, -EBUSY,
                        "%s: its IOMMU group %s has a function that a kernel driver holds%s%s: an IOMMU "
                        "confines "
                        "all of a group or none",
                        v->pci.name, group, other[0] ? ": " : "", other);
        }
        if (ioctl(v->group, VFIO_GROUP_SET_CONTAINER, &v->container) < 0 ||
                ioctl(v->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) < 0)
                return failed(&v->pci, e, "giving it an IOMMU");
        v->device = ioctl(v->group, VFIO_GROUP_GET_DEVICE_FD, v->pci.name);
        return v->device < 0 ? failed(&v->pci, e, "opening it") : set_bounds(v, e);
}

static int get_region(struct vfio *v, uint32_t index, struct rig_region_info *region, struct rig_error *e)
{
        _cleanup_(rig_freep) struct vfio_region_info *info = calloc(1, MAX_INFO);
        const char *wrong;

        if (!info)
                return rig_error_set(e, -ENOMEM, "%s: no memory to open it", v->pci.name);
        *info = (struct vfio_region_info){.argsz = MAX_INFO, .index = index};
        if (ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, info) < 0)
                return failed(&v->pci, e, "asking for a region");
        wrong = rig_region_info_parse(region, info, RIG_MIN(info->argsz, MAX_INFO), index);
        return wrong ? rig_error_set(e, -EPROTO, "%s: region %u: %s", v->pci.name, index, wrong) : 0;
}

static int get_regions(struct vfio *v, struct rig_error *e)
{
        struct vfio_device_info info = {.argsz = sizeof(info)};
        struct rig_region_info config;
        int r;

        if (ioctl(v->device, VFIO_DEVICE_GET_INFO, &info) < 0)
                return failed(&v->pci, e, "asking what it is");
        v->resets = info.flags & VFIO_DEVICE_FLAGS_RESET;
        r = get_region(v, VFIO_PCI_CONFIG_REGION_INDEX, &config, e);
        if (r < 0)
                return r;
        v->config_at = config.fd_offset;
        v->pci.config_bytes = (uint32_t)RIG_MIN(config.bytes, UINT64_C(4096));
        rig_region_info_deinit(&config);
        for (unsigned i = 0; i < RIG_PCI_BARS; i++) {
                struct rig_region_info *region = &v->regions[i];

                r = get_region(v, VFIO_PCI_BAR0_REGION_INDEX + i, region, e);
                if (r < 0)
                        return r;
                v->pci.bars[i] = (struct rig_pci_bar){
                        .bytes = region->bytes, .mappable = rig_region_info_maps_all(region)};
        }
        return 0;
}

int rig_pci_vfio_open(const struct rig_pci_options *options, const struct rig_pci_address *address,
        const char *name, struct rig_pci **ret_pci, struct rig_error *e)
{
        struct vfio *v = calloc(1, sizeof(*v));
        int r = v ? rig_pci_init(&v->pci, &vfio_ops, name) : -ENOMEM;
        char group[32];

        if (r < 0) {
                free(v);
                return rig_error_set(e, r, "%s: no memory to open it", name);
        }
        v->container = v->group = v->device = -EBADF;
        v->routed = -1;
        for (unsigned i = 0; i < RIG_PCI_BARS; i++)
                v->regions[i].fd = -EBADF;
        r = group_of(options, name, group, sizeof(group), e);
        if (r == 0)
                r = open_group(v, options, group, e);
        if (r == 0)
                r = open_device(v, options, group, e);
        if (r == 0)
                r = get_regions(v, e);
        if (r < 0) {
                vfio_close(&v->pci);
                return r;
        }
        *ret_pci = &v->pci;
        return 0;
}
