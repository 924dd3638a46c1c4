/* SPDX-License-Identifier: ISC */
/*
 * The contract between rigd's core and a driver.
 *
 * A driver runs one kind of hardware. It is one table of functions, `struct rig_driver`, and owes the core
 * three properties of each device it opens:
 *
 *   1. work on a queue runs in the order it was handed over, and a part after the parts its `after` names;
 *   2. a value's work starts after the previous value's work on that device completed, on every queue, and
 *      after the points the submission carries;
 *   3. the core learns, from poll(), that a prefix completed or that the device faulted.
 *
 * What a run wrote is visible to every reader once poll() has told its value.
 *
 * In exchange the core promises: each region is freed once, after every use of it is over; after stop() only
 * region_free(), image_unload(), work_release() and device_close() follow; hang bounds are kept by the core;
 * the calls of one device are made one at a time. A driver never waits for another device, never sees a
 * client, and never orders memory: that is done when hand_over() is called.
 *
 * Two kinds of calls. *Prompt* ones run on the core loop and must not block: not on hardware, a lock that is
 * held for long, or a file. *Slow* ones run on the adapter's own thread, one at a time, and may; while they
 * do, prompt ones of the adapter's devices still come. The comment of each op says which it is, and the core
 * checks it (driver.c).
 *
 * Errors are negative errno values with a sentence in the `struct rig_error`. Optional ops may be NULL.
 * The smallest driver is drivers/memory/memory.c; tests/kit/ holds any driver to this page.
 */
#ifndef RIG_DRIVER_H
#define RIG_DRIVER_H

#include "base/access.h"
#include "base/error.h"
#include "base/list.h"

struct rig_adapter;
struct rig_device;
struct rig_driver;

/* ---------------------------------------------------------------- facts */

#define RIG_RUNS_COPY   (1u << 0)
#define RIG_RUNS_FILL   (1u << 1)
#define RIG_RUNS_LAUNCH (1u << 2)
#define RIG_RUNS_SYNC   (1u << 3)

#define RIG_QUEUES_MAX 8

/* The device's flags, as the wire and rig.h carry them. */
#define RIG_DEVICE_HOST_ADDRESSED (1u << 0) /* regions of it have a host address and a descriptor */
#define RIG_DEVICE_NAMES_HOST     (1u << 1) /* its work names any region with a host address */
#define RIG_DEVICE_BORROWS_HOST   (1u << 2) /* region_borrow() takes regions with a host address */
#define RIG_DEVICE_FILES          (1u << 3) /* its regions are files, from region_adopt() */
#define RIG_DEVICE_CLIENT_CODE    (1u << 4) /* its work runs in the client's process */
#define RIG_DEVICE_LOADS_IMAGES   (1u << 5)

/* How a device's word advances: what another device's queue may wait on. */
enum rig_completion {
        RIG_COMPLETION_HOST,   /* the host writes it, from poll() */
        RIG_COMPLETION_STORE,  /* the queue stores it to the word's address */
        RIG_COMPLETION_OBJECT, /* an object of the driver's API completes */
        RIG_COMPLETION_MAX,
};
const char *rig_completion_to_string(enum rig_completion completion);

/* Stated once, when the device opens. */
struct rig_facts {
        char arch[64];  /* "" where it runs no launch */
        uint32_t flags; /* RIG_DEVICE_... */
        uint32_t n_queues;
        uint32_t queues[RIG_QUEUES_MAX]; /* what each runs: RIG_RUNS_... */
        enum rig_completion completion;
        uint32_t waits_on;  /* bit c: its queues wait for words of completion c */
        uint32_t max_waits; /* such waits that one submission carries */
        uint64_t hang_usec; /* work that stands still this long is a hang; 0: never (L4, L5) */
};

/* ---------------------------------------------------------------- memory */

enum rig_memory_kind {
        RIG_MEMORY_DEVICE, /* the device's own */
        RIG_MEMORY_PINNED, /* host memory that the device's work addresses too */
        RIG_MEMORY_MAPPED, /* the device's own through a host window, else pinned */
        RIG_MEMORY_KIND_MAX,
};
const char *rig_memory_kind_to_string(enum rig_memory_kind kind);

/* Memory of an adapter. Made by a driver on the slow thread; its fields never change. */
struct rig_region {
        uint64_t bytes;
        uint64_t address; /* as the device's work addresses its first byte; 0 where it does by other means */
        void *host;       /* where rigd addresses it, or NULL */
        int fd;          /* a sealed memfd that maps it in a client, or a file; -EBADF where there is none */
        uint32_t access; /* RIG_ACCESS_...: what it admits */
        void *drv;       /* the driver's */
};

/* ---------------------------------------------------------------- work */

enum rig_part_kind {
        RIG_PART_COPY = 1, /* src to dst */
        RIG_PART_FILL,     /* dst with a repeated 32-bit pattern */
        RIG_PART_LAUNCH,
        RIG_PART_SYNC, /* dst, a file: its earlier bytes reach storage before later changes to the file
                          system */
        RIG_PART_KIND_MAX,
};
const char *rig_part_kind_to_string(enum rig_part_kind kind);

#define RIG_PARTS_MAX 32
#define RIG_SLOTS_MAX 64
#define RIG_WHOLE     UINT64_MAX /* as a part's bytes: from its offset to the end of the slot's buffer */

struct rig_operand {
        uint32_t slot;
        uint64_t offset; /* into the slot's buffer */
};

struct rig_patch {
        uint32_t at; /* byte of params that takes the eight-byte address */
        uint32_t slot;
        uint64_t addend;
};

struct rig_part {
        enum rig_part_kind kind;
        uint32_t queue;
        uint32_t after; /* bit i: part i first; only earlier parts */
        struct rig_operand dst, src;
        uint64_t bytes; /* or RIG_WHOLE */
        uint32_t pattern;
        struct rig_driver_image *image; /* or NULL */
        uint64_t entry;
        uint32_t grid[3], group[3];
        uint32_t shared_bytes;
        uint32_t params_bytes, n_patches;
        uint8_t *params;
        struct rig_patch *patches;
};

/* A prepared work. The core has checked it: slots, queues, edges and kinds are the device's. */
struct rig_driver_work {
        uint32_t n_slots, n_parts;
        uint32_t access[RIG_SLOTS_MAX]; /* RIG_ACCESS_... of each slot */
        struct rig_part parts[RIG_PARTS_MAX];
        void *drv; /* what work_prepare() made */
};

/* A slot of a run: a buffer, which is a range of a region. The core has checked that every part fits. */
struct rig_filled {
        const struct rig_region *region; /* NULL for a buffer of no bytes */
        uint64_t offset, bytes;
};

/* A point that the device's queue waits for itself. */
struct rig_queue_wait {
        struct rig_driver_device *producer;
        uint64_t value;
};

struct rig_submission {
        uint64_t value;
        const struct rig_driver_work *work; /* lives until the value completed or stop() returned */
        const struct rig_filled *slots;     /* valid during the call */
        const struct rig_queue_wait *waits; /* valid during the call */
        uint32_t n_waits;
};

/* Bytes that a copy or fill moves in this run. */
uint64_t rig_part_moves(const struct rig_part *part, const struct rig_filled *slots);

/* ---------------------------------------------------------------- the driver's objects */

/* An adapter, as discover() found it. */
struct rig_driver_adapter {
        const struct rig_driver *driver;
        struct rig_adapter *core; /* for the services below */
        char name[64];            /* what opens it: "disk", "nv:0" */
        char about[256];
        char unavailable[256]; /* why it cannot be opened, or "" */
        bool any_instance;     /* "memory:M" opens the adapter "memory", whatever M is */
        uint64_t budget_bytes; /* the most that all regions hold */
        void *drv;
};

/* A device: one client's handle on an adapter. */
struct rig_driver_device {
        struct rig_driver_adapter *adapter;
        struct rig_device *core; /* for the services below */
        struct rig_facts facts;  /* filled by device_open() */
        void *drv;
};

struct rig_driver_image {
        void *drv;
};

/* ---------------------------------------------------------------- the table */

struct rig_driver {
        const char *name;

        /*
         * Finds the machine's adapters, calling `found` for each with a struct it fills; the core copies it.
         * Prompt, once when rigd starts. Mandatory.
         */
        int (*discover)(
                void (*found)(const struct rig_driver_adapter *adapter, void *userdata), void *userdata);

        /*
         * Opens a device: `instance` is what follows the colon ("" where nothing), `options` what follows
         * the comma (""). Fills facts and drv. Slow. Mandatory. Undone by device_close().
         */
        int (*device_open)(struct rig_driver_device *device, const char *instance, const char *options,
                struct rig_error *e);
        /* Ends a device whose work is over, or that was stopped. Slow. Mandatory. */
        void (*device_close)(struct rig_driver_device *device);
        /*
         * The device is lost: make its work end. Returns 0 once no work of it runs or will; -EINPROGRESS
         * where that cannot be had without adapter_reset(), and memory it used stays away until then. Slow.
         * Mandatory.
         */
        int (*stop)(struct rig_driver_device *device);
        /* Brings a lost adapter back: no work of any of its devices runs afterwards. Slow. Optional. */
        int (*adapter_reset)(struct rig_driver_adapter *adapter, struct rig_error *e);

        /*
         * Memory. `bytes` is more than 0. -ENOMEM where the device has none left. Zeroed, as every client
         * sees it. Slow. region_alloc() is mandatory but for a device of files, region_free() always; adopt
         * is for a device of files, borrow for one with RIG_DEVICE_BORROWS_HOST.
         */
        int (*region_alloc)(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
                struct rig_region *ret_region, struct rig_error *e);
        /* `fd` is consumed on success. Fills access from how it was opened. */
        int (*region_adopt)(struct rig_driver_device *device, int fd, struct rig_region *ret_region,
                struct rig_error *e);
        int (*region_borrow)(struct rig_driver_device *device, const struct rig_region *of,
                struct rig_region *ret_region, struct rig_error *e);
        /* May come after the device that made it was closed. Slow. */
        void (*region_free)(struct rig_driver_adapter *adapter, struct rig_region *region);

        /* Code. `bytes` are the core's copy, valid during the call. Slow. Optional, all three or none. */
        int (*image_load)(struct rig_driver_device *device, const void *image, size_t bytes,
                struct rig_driver_image *ret_image, struct rig_error *e);
        int (*image_entry)(struct rig_driver_device *device, const struct rig_driver_image *image,
                const char *name, uint64_t *ret_entry);
        void (*image_unload)(struct rig_driver_device *device, struct rig_driver_image *image);

        /* Encodes what every run of a work shares, into work->drv. Slow. Optional, both or none. */
        int (*work_prepare)(
                struct rig_driver_device *device, struct rig_driver_work *work, struct rig_error *e);
        void (*work_release)(struct rig_driver_device *device, struct rig_driver_work *work);

        /*
         * Room: 1, the submission fits now; 0, not until a value of this device is reached; negative, it
         * never fits. Prompt. Optional: always 1.
         */
        int (*room)(struct rig_driver_device *device, const struct rig_submission *submission);
        /*
         * Takes a submission, the value after the last one taken but for values that the core passed. May
         * run it at once. Negative loses the device. Prompt. Mandatory.
         */
        int (*hand_over)(struct rig_driver_device *device, const struct rig_submission *submission,
                struct rig_error *e);
        /* Starts what was handed over since the last commit: a doorbell. Prompt. Optional. */
        void (*commit)(struct rig_driver_device *device);
        /*
         * The last value reached: every submission up to it completed and its writes are visible. Reports
         * runs that failed with rig_device_run_failed(), before their value. Negative: the device faulted,
         * and is lost. Prompt, often: a few nanoseconds where nothing happened. Mandatory.
         */
        int (*poll)(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e);
        /* A descriptor that polls readable when poll() has news; the driver's. Prompt, once. Optional. */
        int (*descriptor)(struct rig_driver_device *device);

        /*
         * The client says that its work up to `value` completed; `error` is that run's, 0 or a negative
         * errno value. -EINVAL: it was not handed over. Prompt. Mandatory where the work runs in the client.
         */
        int (*client_done)(struct rig_driver_device *device, uint64_t value, int error, const char *text);
};

/*
 * Checks that the mandatory ops are there and that optional ones come in their groups. Asserts: a table that
 * is wrong is our own error.
 */
void rig_driver_check(const struct rig_driver *driver);

/* The drivers rigd is built with, NULL at the end (drivers/drivers.c). */
extern const struct rig_driver *const rig_drivers[];

/* ---------------------------------------------------------------- what the core offers a driver */

/* The device has news: poll() it soon. From any thread; never blocks. */
void rig_device_kick(struct rig_driver_device *device);

/* The run `value` failed by itself: its copy could not be done. It loses nothing. Prompt. */
void rig_device_run_failed(struct rig_driver_device *device, uint64_t value, int error, const char *fmt, ...)
        _printf_(4, 5);

/* hand_over() has run its submission to the end: so a trace has the time. Prompt, from hand_over(). */
void rig_device_ran(struct rig_driver_device *device);

/* Tells the client of a device with RIG_DEVICE_CLIENT_CODE that it may run its work up to `value`. Prompt.
 */
void rig_device_ready(struct rig_driver_device *device, uint64_t value);

/* Work for the adapter's slow thread: run() there, then done() on the core loop. Owned by the caller. */
struct rig_slow_job {
        struct rig_list link;               /* the core's, from rig_adapter_defer() until done() */
        struct rig_driver_adapter *adapter; /* the core's */
        void (*run)(struct rig_slow_job *job);
        void (*done)(struct rig_slow_job *job);
};
/* Queues a job behind the adapter's earlier ones. Prompt. */
void rig_adapter_defer(struct rig_driver_adapter *adapter, struct rig_slow_job *job);

/* ---------------------------------------------------------------- memory that is the host's
 * (memory/region.c) */

/* A new region: a memfd, sealed against resizing, mapped. For drivers whose memory the host addresses. Slow.
 */
int rig_region_alloc_host(uint64_t bytes, struct rig_region *ret_region, struct rig_error *e);
/* A region over a client's memfd, checked and mapped (M4). `fd` is consumed on success. Slow. */
int rig_region_adopt_memfd(int fd, struct rig_region *ret_region, struct rig_error *e);
/* Undoes either. Slow. */
void rig_region_free_host(struct rig_region *region);

#endif
