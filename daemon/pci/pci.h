/* SPDX-License-Identifier: ISC */
/*
 * PCI functions, as a driver that boots a device itself has them: configuration space, windows onto BARs,
 * interrupts, reset, bus mastering, and memory that the function may access.
 *
 *     rig_pci_open()           takes a function, exclusively; it is quiet: no bus mastering, no interrupts
 *     rig_pci_window()         a part of a BAR, to read and write
 *     rig_pci_interrupts()     MSI-X or MSI as eventfds
 *     rig_dma_new()            memory that the function and the host address (dma.h)
 *     rig_pci_set_master()     lets it access memory
 *     rig_pci_reset()
 *     rig_pci_close()          master off, reset where it can be, given back
 *
 * Three ways lead to a function, and a driver never learns which:
 *
 *     vfio       the kernel's vfio-pci holds it, and an IOMMU confines it to what is mapped for it
 *     physical   nobody holds it: its files under /sys/bus/pci; memory is named by its physical address
 *     vfio-user  a program serves it on a socket (a model)
 *
 * Threads. A function belongs to its adapter's slow thread. Windows and DMA memory, once they are there, are
 * accessed from any thread. Nothing here waits without a bound.
 *
 * A function that is gone (unplugged, its bus down, its model dead) answers all ones. rig_pci_gone() tells
 * that from a register that holds them: it reads the vendor's id, which never is all ones. Accesses to
 * windows return no errors; what went wrong first is kept, and rig_pci_failure() says it, so that a step of
 * a boot asks once at its end.
 */
#ifndef RIG_PCI_H
#define RIG_PCI_H

#include "base/base.h"
#include "base/error.h"

struct rig_pci;

/* ---------------------------------------------------------------- which one */

/* A bus address, 0000:03:00.0. Domains of virtual host bridges (VMD) have more than four digits. */
struct rig_pci_address {
        uint32_t domain;
        uint8_t bus, device, function;
};

#define RIG_PCI_ADDRESS_TEXT_MAX sizeof("ffffffff:ff:1f.7")

/* "03:00.0" is of domain 0. -EINVAL. */
int rig_pci_address_parse(const char *text, struct rig_pci_address *ret_address);
/* `text` has RIG_PCI_ADDRESS_TEXT_MAX bytes. Return: `text`. */
const char *rig_pci_address_format(const struct rig_pci_address *address, char *text);

struct rig_pci_id {
        uint16_t vendor, device, subvendor, subdevice;
        uint32_t class; /* base class, subclass, interface: 0x030000 is a VGA controller */
        uint8_t revision;
};

/* ---------------------------------------------------------------- taking it */

enum rig_pci_way {
        RIG_PCI_VFIO,
        RIG_PCI_PHYSICAL,
        RIG_PCI_VFIO_USER,
        RIG_PCI_WAY_MAX,
};
const char *rig_pci_way_to_string(enum rig_pci_way way);

/**
 * rig_pci_open() - take a function
 * @where:   its bus address; or "vfio-user:PATH", the socket of a model
 * @ret_pci: the function; nobody else can take it before rig_pci_close() or this process ends
 *
 * The way follows from the machine: vfio where vfio-pci holds it, physical where no driver does. Its memory
 * is decoded, its bus mastering and its interrupts are off. Slow.
 *
 * Return: 0; -EINVAL (no bus address), -ENOENT (no such function), -EBUSY (a kernel driver, or another
 * process, has it, or an IOMMU is in the way), -EACCES, -EPERM (the kernel is locked down), -EOPNOTSUPP (the
 * machine has no such way), -EPROTO (its configuration space cannot be right, or its model breaks the
 * protocol), -ETIMEDOUT, -ENODEV (it answers no more), -ENOMEM; each with a sentence that says what is in
 * the way and what mends it. A refusal changes nothing, but that a function whose process was killed is
 * reset.
 */
int rig_pci_open(const char *where, struct rig_pci **ret_pci, struct rig_error *e);
/* Every window and all DMA memory of it must be closed before. NULL is accepted. Slow. Return: NULL. */
struct rig_pci *rig_pci_close(struct rig_pci *pci);

static inline void rig_pci_closep(struct rig_pci **pci)
{
        *pci = rig_pci_close(*pci);
}

enum rig_pci_way rig_pci_way(const struct rig_pci *pci);
const struct rig_pci_id *rig_pci_id(const struct rig_pci *pci);
/* Its bus address, or "vfio-user:PATH": for sentences. */
const char *rig_pci_name(const struct rig_pci *pci);

/* Whether the function answers no more. Slow. */
bool rig_pci_gone(struct rig_pci *pci);

/*
 * What went wrong first since the function was opened, in any access from any thread: a code and a sentence
 * that names the access. 0: nothing did. `e` may be NULL. Prompt.
 */
int rig_pci_failure(struct rig_pci *pci, struct rig_error *e);

/* ---------------------------------------------------------------- configuration space
 *
 * `bytes` is 1, 2 or 4, and `at` a multiple of it: asserted. Slow. -ENODEV: it is gone; -ERANGE: past its
 * end (4096 bytes, or 256 where it has no extended space, or its reader may not see more); else what the way
 * there says.
 */
int rig_pci_config_read(struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t *ret_value);
int rig_pci_config_write(struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t value);

/* Where the first capability of an id lies. -ENOENT: it has none; -EPROTO: the list loops, overlaps or
 * leaves the space (all of it is checked each time). */
int rig_pci_capability(struct rig_pci *pci, uint8_t id, uint32_t *ret_at);
int rig_pci_extended_capability(struct rig_pci *pci, uint16_t id, uint32_t *ret_at);

#define RIG_PCI_CAP_PM      0x01
#define RIG_PCI_CAP_MSI     0x05
#define RIG_PCI_CAP_PCIE    0x10
#define RIG_PCI_CAP_MSIX    0x11
#define RIG_PCI_EXT_REBAR   0x15
#define RIG_PCI_EXT_VFREBAR 0x24

/* ---------------------------------------------------------------- windows */

#define RIG_PCI_BARS 6u

struct rig_pci_bar {
        uint64_t bytes; /* 0: it has no memory there, or it is the upper half of the one before */
        bool prefetchable;
        bool mappable; /* all of it: a window has a host address */
};
/* What a BAR is. Prompt. -EINVAL: no function has a BAR of that number. */
int rig_pci_bar(struct rig_pci *pci, unsigned bar, struct rig_pci_bar *ret_bar, struct rig_error *e);

enum rig_caching {
        RIG_UNCACHED,        /* each access is one transaction, in order */
        RIG_WRITE_COMBINING, /* writes may be merged and reordered until rig_wc_flush(); for bulk copies */
};

struct rig_window {
        volatile uint8_t *host; /* or NULL: each access is a message (vfio-user, trapped) */
        uint64_t mapped_bytes;  /* `bytes`, a multiple of 8; or 0 where there is no host address */
        uint64_t bytes;
        struct rig_pci *pci;
        unsigned bar;
        uint64_t offset; /* into the BAR */
        enum rig_caching caching;
};

/**
 * rig_pci_window() - a part of a BAR, to read and write
 * @bar, @offset, @bytes: which; inside the BAR, on multiples of 4096, but that it may end where the BAR does
 *
 * Write combining is for prefetchable BARs; a model's memory is not combined, which is one of the ways it
 * may be. Slow. Return: 0; -ERANGE, -EOPNOTSUPP (write combining that this function or machine cannot have),
 * and what mapping fails with. The window ends with rig_window_close(), before its function does.
 */
int rig_pci_window(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes,
        enum rig_caching caching, struct rig_window *ret_window, struct rig_error *e);
/* Accepts one that is zeroed or closed. Slow. */
void rig_window_close(struct rig_window *window);

/* Accesses without a host address, and assertions that fail. Not for drivers. */
uint64_t rig_window_trapped_read(const struct rig_window *window, uint64_t at, uint32_t bytes);
void rig_window_trapped_write(const struct rig_window *window, uint64_t at, uint32_t bytes, uint64_t value);

/*
 * rig_window_read8() ... read64(), write8() ... write64(): accesses of 1, 2, 4 and 8 bytes, each one load or
 * store of that width where the window has a host address, and in the order they are made, but for what
 * write combining says. `at` is a multiple of the width and inside the window: asserted. Values are the
 * host's; a machine of the other byte order would swap them here. A function that is gone reads as all ones.
 *
 * A load is a read transaction, and ends when its answer is here; the writes before it to the same function
 * have arrived then. A store is a posted write: it ends before it has arrived.
 */
#define RIG_WINDOW_ACCESS(bits)                                                                             \
        static inline uint##bits##_t rig_window_read##bits(const struct rig_window *window, uint64_t at)    \
        {                                                                                                   \
                rig_assert(at % (bits / 8) == 0);                                                           \
                if (rig_likely(at < window->mapped_bytes))                                                  \
                        return *(const volatile uint##bits##_t *)(window->host + at);                       \
                return (uint##bits##_t)rig_window_trapped_read(window, at, bits / 8);                       \
        }                                                                                                   \
        static inline void rig_window_write##bits(                                                          \
                const struct rig_window *window, uint64_t at, uint##bits##_t value)                         \
        {                                                                                                   \
                rig_assert(at % (bits / 8) == 0);                                                           \
                if (rig_likely(at < window->mapped_bytes))                                                  \
                        *(volatile uint##bits##_t *)(window->host + at) = value;                            \
                else                                                                                        \
                        rig_window_trapped_write(window, at, bits / 8, value);                              \
        }
RIG_WINDOW_ACCESS(8)
RIG_WINDOW_ACCESS(16)
RIG_WINDOW_ACCESS(32)
RIG_WINDOW_ACCESS(64)
#undef RIG_WINDOW_ACCESS

/*
 * Copies that are right for device memory: aligned words of 1, 2, 4 and 8 bytes (16 into write combining),
 * in ascending order, each byte of the window accessed once, at any alignment; nothing outside is touched.
 * Inside the window: asserted. Not for registers that are not memory.
 */
void rig_window_read(const struct rig_window *window, uint64_t at, void *data, uint64_t bytes);
void rig_window_write(const struct rig_window *window, uint64_t at, const void *data, uint64_t bytes);

/* ---------------------------------------------------------------- barriers, by what they are for */

/*
 * Orders stores to DMA memory before a later store to an uncached window that tells the device of them:
 * before a doorbell. It makes no transaction of its own: the stores are in memory before the doorbell's
 * posted write leaves the processor, and a device that reads memory because of it finds them. On x86-64 the
 * processor keeps that order by itself, and only the compiler is held.
 */
static inline void rig_dma_to_device(void)
{
#if defined(__x86_64__)
        __asm__ volatile("" ::: "memory");
#elif defined(__aarch64__)
        __asm__ volatile("dmb oshst" ::: "memory");
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Orders a load from DMA memory that saw the device's news (a valid bit, a fence's value) before later loads
 * of what it announces. It makes no transaction: a device's writes reach memory in the order it made them,
 * and this holds the processor to reading them so. On x86-64 it does by itself.
 */
static inline void rig_dma_from_device(void)
{
#if defined(__x86_64__)
        __asm__ volatile("" ::: "memory");
#elif defined(__aarch64__)
        __asm__ volatile("dmb oshld" ::: "memory");
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Orders stores to write-combining windows before a later store to any window. What the processor gathered
 * goes out as posted writes, of up to a cache line each; posted writes arrive in the order in which they
 * left. That they have arrived is known after a load from the same function, and not before.
 */
static inline void rig_wc_flush(void)
{
#if defined(__x86_64__)
        __asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
        __asm__ volatile("dsb st" ::: "memory");
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* ---------------------------------------------------------------- interrupts, reset, bus mastering */

/**
 * rig_pci_interrupts() - route the function's interrupts to eventfds
 * @n:        how many vectors; of MSI-X if it has so many, else of MSI
 * @eventfds: borrowed; each counts one for an interrupt
 *
 * 0 vectors turn them off. A second call replaces the first. INTx is not offered: it is a level that a
 * driver would have to acknowledge and unmask, and each device that rig drives has messages. Physically
 * there are none at all (no file of sysfs gives them): a driver polls where this is refused. Slow. Return:
 * 0; -EOPNOTSUPP (it has not so many, or the way there gives none).
 */
int rig_pci_interrupts(struct rig_pci *pci, unsigned n, const int *eventfds, struct rig_error *e);

/*
 * Resets the function (FLR, else what the machine offers) and waits until it answers, at most
 * `timeout_usec`. Its configuration is as after rig_pci_open(); mappings of DMA memory and routed interrupts
 * are as before. Slow. -EOPNOTSUPP: it cannot be reset; -ETIMEDOUT; -ENODEV.
 */
int rig_pci_reset(struct rig_pci *pci, uint64_t timeout_usec, struct rig_error *e);

/* Lets the function access memory, or no more. Slow. */
int rig_pci_set_master(struct rig_pci *pci, bool on);

#endif
