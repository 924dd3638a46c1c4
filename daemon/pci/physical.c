/* SPDX-License-Identifier: ISC */
/*
 * The way to a function that nobody holds: its files under /sys/bus/pci/devices. (Linux,
 * Documentation/PCI/sysfs-pci.rst and ABI/testing/sysfs-bus-pci)
 *
 * Nothing confines the function: it reads and writes whatever physical address it is given. So that it is
 * given only ours, memory is of huge pages with a file of their own (physical-memory.c), bus mastering is
 * off until the driver asks for it, and a function is reset before the memory of an earlier process that
 * held it is let go of.
 *
 * The lock is one of the `config` file (flock(2)), which every process that takes a function this way holds;
 * it ends with the process. The kernel locks out nobody but its own drivers.
 *
 * Deliberately not here: interrupts, which no file gives; drivers poll. An IOMMU that translates is refused:
 * the function would address something else than we mean.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/pci/physical-memory.h"
#include "daemon/pci/transport.h"

#define RESOURCE_MEMORY UINT64_C(0x200) /* of the flags in `resource`: <linux/ioport.h> */
#define LOOK_USEC       UINT64_C(1000)
#define OPEN_RESET_USEC UINT64_C(5000000)

struct physical {
        struct rig_pci pci;
        char directory[384];
        int config;
        struct rig_physical_memory *memory;
        bool dirty; /* it may have been given memory since it was last reset */
};

static struct physical *of(struct rig_pci *pci)
{
        return RIG_CONTAINER_OF(pci, struct physical, pci);
}

/* Reads a small file of the function's, or of `root`, as text. */
static int read_text(const char *path, char *text, size_t bytes)
{
        _cleanup_(rig_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, text, bytes - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return 0;
}

/* ---------------------------------------------------------------- accesses */

static int physical_config_read(
        struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t *ret_value, struct rig_error *e)
{
        uint8_t d[4] = {0};
        ssize_t n = pread(of(pci)->config, d, bytes, at);

        if (n != (ssize_t)bytes)
                return rig_error_set(e, n < 0 ? -errno : -ENODEV,
                        "%s: reading configuration space at 0x%x: %s", pci->name, at,
                        n < 0 ? strerror(errno) : "it ends before");
        *ret_value = d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 | (uint32_t)d[3] << 24;
        return 0;
}

static int physical_config_write(
        struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t value, struct rig_error *e)
{
        uint8_t d[4] = {
                (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
        ssize_t n = pwrite(of(pci)->config, d, bytes, at);

        if (n != (ssize_t)bytes)
                return rig_error_set(e, n < 0 ? -errno : -ENODEV,
                        "%s: writing configuration space at 0x%x: %s", pci->name, at,
                        n < 0 ? strerror(errno) : "it ends before");
        return 0;
}

static int physical_map(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes,
        enum rig_caching caching, void **ret_host, struct rig_error *e)
{
        _cleanup_(rig_closep) int fd = -EBADF;
        bool combining = caching == RIG_WRITE_COMBINING;
        char path[448];
        void *host;

        snprintf(path, sizeof(path), "%s/resource%u%s", of(pci)->directory, bar, combining ? "_wc" : "");
        fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && combining)
                return rig_error_set(
                        e, -EOPNOTSUPP, "%s: this machine combines no writes to BAR %u", pci->name, bar);
        if (fd < 0)
                return rig_error_set(e, -errno, "%s: %s: %s", pci->name, path, strerror(errno));
        host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
        if (host == MAP_FAILED)
                return rig_error_set(
                        e, -errno, "%s: mapping BAR %u failed: %s", pci->name, bar, strerror(errno));
        *ret_host = host;
        return 0;
}

static void physical_unmap(struct rig_pci *pci, void *host, uint64_t bytes)
{
        munmap(host, bytes);
}

/* ---------------------------------------------------------------- interrupts, reset, DMA */

static int physical_interrupts(struct rig_pci *pci, unsigned n, const int *eventfds, struct rig_error *e)
{
        if (!n)
                return 0;
        return rig_error_set(e, -EOPNOTSUPP,
                "%s is taken physically, where no interrupts come; behind an IOMMU they do (`rigctl detach "
                "%s --vfio`)",
                pci->name, pci->name);
}

/* The kernel saves configuration space before, and restores it after; its own wait is bounded. */
static int physical_reset(struct rig_pci *pci, uint64_t timeout_usec, struct rig_error *e)
{
        const struct timespec pause = {.tv_nsec = (long)(LOOK_USEC * RIG_NSEC_PER_USEC)};
        struct physical *p = of(pci);
        _cleanup_(rig_closep) int fd = -EBADF;
        uint64_t deadline = rig_deadline_usec(timeout_usec);
        char path[448];

        snprintf(path, sizeof(path), "%s/reset", p->directory);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
                return rig_error_set(e, -EOPNOTSUPP, "%s: the kernel knows no reset for it", pci->name);
        if (fd < 0 || write(fd, "1", 1) != 1)
                return rig_error_set(e, -errno, "%s: resetting it: %s", pci->name, strerror(errno));
        while (rig_pci_gone(pci)) {
                if (rig_now_usec() >= deadline)
                        return rig_error_set(
                                e, -ETIMEDOUT, "%s: it does not answer after its reset", pci->name);
                nanosleep(&pause, NULL);
        }
        p->dirty = false;
        return 0;
}

static int physical_dma_new(
        struct rig_pci *pci, uint64_t bytes, unsigned flags, struct rig_dma *ret_dma, struct rig_error *e)
{
        int r = rig_physical_memory_alloc(of(pci)->memory, bytes, flags, ret_dma, e);

        if (r < 0)
                return r;
        ret_dma->pci = pci;
        of(pci)->dirty = true;
        return 0;
}

static void physical_dma_free(struct rig_pci *pci, struct rig_dma *dma)
{
        rig_physical_memory_return(of(pci)->memory, dma);
}

/* ---------------------------------------------------------------- from the beginning to the end */

static void physical_close(struct rig_pci *pci)
{
        struct physical *p = of(pci);

        p->memory = rig_physical_memory_free(p->memory, !p->dirty);
        rig_close(p->config);
        rig_pci_deinit(pci);
        free(p);
}

static const struct rig_pci_ops physical_ops = {
        .way = RIG_PCI_PHYSICAL,
        .close = physical_close,
        .config_read = physical_config_read,
        .config_write = physical_config_write,
        .dma_free = physical_dma_free,
        .dma_new = physical_dma_new,
        .interrupts = physical_interrupts,
        .map = physical_map,
        .reset = physical_reset,
        .unmap = physical_unmap,
};

/* "none [integrity] confidentiality": what is in brackets is on. (kernel_lockdown(7)) */
static int check_lockdown(const struct rig_pci_options *options, const char *name, struct rig_error *e)
{
        char path[384], text[128];

        snprintf(path, sizeof(path), "%.256s/sys/kernel/security/lockdown", options->root);
        if (read_text(path, text, sizeof(text)) < 0 || strstr(text, "[none]"))
                return 0; /* a kernel without lockdown has no such file */
        return rig_error_set(e, -EPERM,
                "%s: the kernel is locked down (secure boot), which forbids the physical way; `rigctl "
                "detach %s "
                "--vfio` takes it behind an IOMMU",
                name, name);
}

static int check_iommu(struct physical *p, struct rig_error *e)
{
        char path[448], text[32];

        snprintf(path, sizeof(path), "%s/iommu_group/type", p->directory);
        if (read_text(path, text, sizeof(text)) < 0 || strncmp(text, "identity", 8) == 0)
                return 0;
        return rig_error_set(e, -EBUSY,
                "%s: an IOMMU translates what it addresses; `rigctl detach %s --vfio` takes it behind the "
                "IOMMU",
                p->pci.name, p->pci.name);
}

static int open_config(struct physical *p, struct rig_error *e)
{
        const char *name = p->pci.name;
        struct stat st;
        char path[448];

        snprintf(path, sizeof(path), "%s/config", p->directory);
        p->config = open(path, O_RDWR | O_CLOEXEC);
        if (p->config < 0)
                return rig_error_set(e, -errno, "%s: %s: %s", name, path, strerror(errno));
        if (flock(p->config, LOCK_EX | LOCK_NB) < 0)
                return rig_error_set(e, errno == EWOULDBLOCK ? -EBUSY : -errno, "%s: %s", name,
                        errno == EWOULDBLOCK ? "another process has taken it" : strerror(errno));
        if (fstat(p->config, &st) < 0 || st.st_size < 256)
                return rig_error_set(e, -EPROTO, "%s: %s has less than 256 bytes", name, path);
        p->pci.config_bytes = (uint32_t)RIG_MIN(st.st_size, 4096);
        return 0;
}

/* Each line of `resource` is a first and a last address, and flags; the first six are the BARs. */
static int read_resources(struct physical *p, struct rig_error *e)
{
        char path[448], text[4096], *line = text;
        int r;

        snprintf(path, sizeof(path), "%s/resource", p->directory);
        r = read_text(path, text, sizeof(text));
        if (r < 0)
                return rig_error_set(e, r, "%s: %s: %s", p->pci.name, path, strerror(-r));
        for (unsigned i = 0; i < RIG_PCI_BARS; i++) {
                uint64_t first, last, flags;
                int n = 0;

                if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64 "%n", &first, &last, &flags, &n) != 3 ||
                        !n)
                        return rig_error_set(
                                e, -EPROTO, "%s: %s: line %u is no resource", p->pci.name, path, i + 1);
                line += n;
                if (!(flags & RESOURCE_MEMORY) || last <= first)
                        continue;
                p->pci.bars[i] = (struct rig_pci_bar){.bytes = last - first + 1, .mappable = true};
        }
        return 0;
}

/* Memory of an earlier process that held it is let go of once it was reset, and not before. */
static int open_memory(struct physical *p, const struct rig_pci_options *options, struct rig_error *e)
{
        struct rig_error own = RIG_ERROR_NULL;
        bool left;
        int r = rig_physical_memory_new(options->root, p->pci.name, &p->memory, &left, e);

        if (r < 0 || !left)
                return r;
        p->dirty = true;
        r = physical_reset(&p->pci, OPEN_RESET_USEC, &own);
        if (r < 0)
                return rig_error_set(e, r, "%s: it may still write memory of an earlier process, and %s",
                        p->pci.name, strchr(own.text, ' ') ? strchr(own.text, ' ') + 1 : own.text);
        rig_physical_memory_forget(p->memory);
        return 0;
}

int rig_pci_physical_open(const struct rig_pci_options *options, const struct rig_pci_address *address,
        const char *name, struct rig_pci **ret_pci, struct rig_error *e)
{
        struct physical *p = calloc(1, sizeof(*p));
        int r = p ? rig_pci_init(&p->pci, &physical_ops, name) : -ENOMEM;

        if (r < 0) {
                free(p);
                return rig_error_set(e, r, "%s: no memory to open it", name);
        }
        p->config = -EBADF;
        snprintf(p->directory, sizeof(p->directory), "%.256s/sys/bus/pci/devices/%s", options->root, name);
        r = check_lockdown(options, name, e);
        if (r == 0)
                r = check_iommu(p, e);
        if (r == 0)
                r = open_config(p, e);
        if (r == 0)
                r = read_resources(p, e);
        if (r == 0)
                r = open_memory(p, options, e);
        if (r < 0) {
                physical_close(&p->pci);
                return r;
        }
        *ret_pci = &p->pci;
        return 0;
}
