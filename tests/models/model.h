/* SPDX-License-Identifier: ISC */
/*
 * Models of PCI functions: servers of the vfio-user protocol, for rigd directly and for QEMU.
 *
 * A model describes its function by tables (struct model_description) and answers what is left: reads and
 * writes of trapped registers, a reset, and a turn of its engine. The library has the socket, configuration
 * space, the descriptors of regions, interrupts and DMA.
 *
 * It is stricter than hardware. These are faults, which are recorded, and answered as all ones, or not at
 * all:
 *   - an access to a trapped BAR that is no register of its table, or has another width, or may not be
 *   - an access to a BAR whose memory is not decoded
 *   - DMA with bus mastering off, outside what is mapped, or a write to what the function may only read
 * A model adds its own by model_fault().
 *
 * One thread runs a model, and calls everything here.
 */
#ifndef RIG_MODEL_H
#define RIG_MODEL_H

#include "base/base.h"

#define MODEL_BARS 6u

#define MODEL_READ  1u
#define MODEL_WRITE 2u

struct model;

/* `count` registers of the same width, side by side; 0 stands for 1. */
struct model_register {
        const char *name;
        uint64_t at;
        uint32_t bytes;
        uint32_t access; /* MODEL_READ, MODEL_WRITE */
        uint32_t count;
};

struct model_area {
        uint64_t offset, bytes;
};

struct model_bar {
        uint64_t bytes; /* a power of two, or 0: no BAR */
        bool wide;      /* of 64 bits: the next one is its upper half */
        bool prefetchable;
        bool mapped; /* its memory is the client's to map: all of it, or `areas` */
        const struct model_area *areas;
        unsigned n_areas;
        const struct model_register *registers; /* of the trapped part; NULL: it is memory */
        unsigned n_registers;
        uint32_t sizes; /* bit n: it can be resized to 2^n MiB; `bytes` is what it begins with */
};

struct model_ops {
        /* Trapped accesses to registers of the table. Optional: without them, they are memory. Negative: a
         * fault, which the model recorded. */
        int (*read)(struct model *model, unsigned bar, uint64_t at, uint32_t bytes, uint64_t *ret_value);
        int (*write)(struct model *model, unsigned bar, uint64_t at, uint32_t bytes, uint64_t value);
        /* Optional: after the library's own. */
        void (*reset)(struct model *model);
        /* Optional: a turn of the engine, after each message, and as often as `tick_usec` says. DMA is best
         * done here: QEMU answers none while it waits for an access. */
        void (*tick)(struct model *model);
};

struct model_description {
        const char *name;
        uint16_t vendor, device, subvendor, subdevice;
        uint32_t class; /* 24 bits */
        uint8_t revision;
        struct model_bar bars[MODEL_BARS];

        bool pm, pcie;  /* capabilities; PCI Express brings FLR and extended configuration space */
        unsigned n_msi; /* vectors: a power of two, or 0 */
        unsigned n_msix;
        unsigned msix_bar;
        uint32_t msix_table, msix_pending; /* where in it */

        const struct model_ops *ops;
        const char *const *faults; /* names of the model's own, ending with NULL; or NULL */
};

struct model_options {
        const char *trace; /* a file that each access is written to, or NULL */
        bool message_dma;  /* DMA by messages even where memory is mapped */
        bool trap_all;     /* no BAR is mapped */
        bool no_twin;      /* no socket of its own for the server's commands */
        int64_t tick_usec; /* 0: without pause; negative: only after messages */
        const char *fault; /* "NAME" or "NAME@K": at the K-th access, from 1; or NULL */
};

/*
 * Faults that every model has, by name: at the K-th message of the client
 *   hang   it answers no more, and keeps the connection
 *   die    the connection ends
 *   ones   it is gone from its bus: reads are all ones, writes and DMA go nowhere, and no interrupt comes
 */

/* -EINVAL: a description or a fault that cannot be; -ENOMEM, and what opening the trace fails with. */
int model_new(const struct model_description *description, const struct model_options *options, void *own,
        struct model **ret_model);
struct model *model_free(struct model *model);
void *model_own(struct model *model);

/* A socket that listens at `path`, which is replaced. */
int model_listen(const char *path);
/* Serves one client on `fd` (consumed) until it leaves, or model_stop(). Return: 0; -ECONNABORTED: it died
 * as it was told to; -EPROTO: the client broke the protocol; other errors of the socket. */
int model_serve(struct model *model, int fd);
/* From any thread: ends model_serve(). */
void model_stop(struct model *model);
/*
 * A whole program: [--trace FILE] [--fault NAME[@K]] [--message-dma] [--no-twin] [--trap] [--tick USEC]
 * [--once] SOCKET. It serves clients one after another; with --once, one. Exit status: 0; 1: it could not
 * serve; 2: usage; 3: faults were recorded.
 */
int model_main(int argc, char **argv, const struct model_description *description, void *own);

/* ---------------------------------------------------------------- for the model */

/* The memory of a BAR, mapped or trapped. */
uint8_t *model_memory(struct model *model, unsigned bar);

/* DMA, as the function does it. -EFAULT: a fault was recorded; -EIO: by message, and the client did not
 * answer. */
int model_dma_read(struct model *model, uint64_t address, void *data, uint64_t bytes);
int model_dma_write(struct model *model, uint64_t address, const void *data, uint64_t bytes);
/* Where the client's memory lies here, to poll a word of it; NULL: not mapped as a whole. Recorded as
 * nothing. */
void *model_dma_pointer(struct model *model, uint64_t address, uint64_t bytes, bool write);
/* How many mappings the client has made. */
unsigned model_dma_mappings(const struct model *model);

/* Raises an interrupt. -ENXIO: none is enabled and routed of that vector, so that nothing happened. */
int model_interrupt(struct model *model, unsigned vector);

bool model_is_master(const struct model *model);
bool model_is_gone(const struct model *model); /* the fault `ones` has struck */
unsigned model_resets(const struct model *model);

/* Records what a driver must not do. */
void model_fault(struct model *model, const char *fmt, ...) _printf_(2, 3);
/* How many there were, and the first one's text ("" if none). */
unsigned model_faults(const struct model *model, const char **ret_first);
/* Whether the model's own fault `name` strikes now: the K-th time that it is asked. */
bool model_strikes(struct model *model, const char *name);
/* A line of the model's own in the trace. */
void model_trace(struct model *model, const char *fmt, ...) _printf_(2, 3);

#endif
