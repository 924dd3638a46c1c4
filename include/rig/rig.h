/* SPDX-License-Identifier: ISC */
/*
 * rig: memory on devices, and work ordered by the memory it reads and writes.
 *
 * A program connects to rigd, opens devices, allocates buffers on them and submits work that reads and
 * writes those buffers. Whatever reads a buffer follows its last write, whatever writes it follows every
 * use, on whichever device and in whichever process they were made; nobody names an event or a fence.
 *
 *         struct rig *rig;
 *         struct rig_device *m;
 *         struct rig_buffer *on_m;
 *         char back[6] = {0};
 *
 *         rig_connect(NULL, &rig);
 *         rig_device_open(rig, "memory:M", &m);
 *         rig_buffer_new(m, 5, 0, &on_m);
 *         rig_buffer_write(on_m, 0, "hello", 5);
 *         rig_buffer_read(on_m, 0, back, 5);
 *         puts(back);
 *
 * The header reads in this order: errors, connection, devices, buffers, work and runs, waiting, sharing,
 * host code, profiles.
 *
 * Conventions. Functions return 0 (or a count) or a negative errno value, and store results in `ret_`
 * parameters, on success only; rig_error() has the sentence. Every function may return -ENOMEM, -EINVAL for
 * an argument the comment rules out, and, once the connection is broken, what broke it (rig_failed()): each
 * comment lists the others. Sizes and offsets are bytes, times microseconds; RIG_INFINITY waits for ever.
 *
 * Objects are counted: a function that makes one gives its caller a reference, rig_x_unref() drops it and
 * returns NULL, and takes NULL. An object keeps what it is made of: a buffer its device, a device its
 * connection. Dropping a buffer or a work that runs still use is right and usual: the memory returns by
 * itself once they are done.
 *
 * Threads. MT-Safe: from any thread, beside any other call. A connection has one lock, which no call holds
 * while it waits; threads that want no lock between them open a connection each. The library starts no
 * thread but the workers of a host device, and calls back only from rig_dispatch().
 */
#ifndef RIG_RIG_H
#define RIG_RIG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RIG_API __attribute__((visibility("default")))
#else
#define RIG_API
#endif

struct rig;
struct rig_device;
struct rig_buffer;
struct rig_image;
struct rig_work;

#define RIG_INFINITY UINT64_MAX

/* ------------------------------------------------------------------------------------------- errors
 *
 * rig_error() is the sentence of this thread's last call that failed: what was wrong and what to do. It is
 * valid until the thread's next call. MT-Safe. Never blocks. Never NULL.
 */
RIG_API const char *rig_error(void);

/* Static text of an error code of this library, such as "the device is lost". MT-Safe. Never blocks. */
RIG_API const char *rig_strerror(int error);

/*
 * Errors with a meaning of their own:
 *   -ENODEV     the device is lost, or the memory was last used by work that is lost with one
 *   -ECONNRESET rigd is gone
 *   -EPROTO     rigd refused what this connection sent, and ended it
 *   -EDQUOT     the client's share of a limit is used up
 */

/* ------------------------------------------------------------------------------------------- connection */

/**
 * rig_connect() - connect to rigd
 * @address: where: NULL, or one of "unix:PATH", "fd:N" (a connected SOCK_SEQPACKET socket, consumed) and
 *           "private" (a rigd of this process's own, which ends with it). NULL takes $RIG_ADDRESS, else the
 *           system's rigd at /run/rig/rigd.sock, else the user's at $XDG_RUNTIME_DIR/rig/rigd.sock, else
 *           "private". A transport may follow a comma: ",transport=ring" (the default), "words" (submissions
 *           on the socket) or "socket" (no shared pages); $RIG_TRANSPORT sets the default.
 * @ret_rig: the connection
 *
 * MT-Safe. Blocks until rigd has answered the hello.
 * Return: 0; -ECONNREFUSED or -ENOENT (nobody listens), -EACCES (the socket's group may connect),
 * -EPROTONOSUPPORT (rigd speaks another version), -EPROTO (it turned the program away, and says why),
 * -ETIMEDOUT (it takes no connection), -ENOEXEC (no rigd to start).
 */
RIG_API int rig_connect(const char *address, struct rig **ret_rig);

RIG_API struct rig *rig_ref(struct rig *rig);
/* The last reference, the devices' and buffers' included, ends the connection; accepted work completes. */
RIG_API struct rig *rig_unref(struct rig *rig);

/* 0, or the error that broke the connection; rig_error() has its sentence. MT-Safe. Never blocks. */
RIG_API int rig_failed(struct rig *rig);

/*
 * A descriptor for the program's own event loop: it polls readable (POLLIN) when rig_dispatch() has
 * something to do. It is the library's, and the same for the life of the connection. MT-Safe. Never blocks.
 */
RIG_API int rig_get_fd(struct rig *rig);

/**
 * rig_dispatch() - run the callbacks that are due
 * @rig:          the connection
 * @timeout_usec: how long to wait for one; 0 does not wait
 *
 * Callbacks run in this thread, with no lock of the library held, and may call it.
 * MT-Safe. Blocks as asked. Return: the number of callbacks that ran.
 */
RIG_API int rig_dispatch(struct rig *rig, uint64_t timeout_usec);

/* Returns once rigd has accepted everything this connection sent before. MT-Safe. Blocks. */
RIG_API int rig_sync(struct rig *rig);

/* ------------------------------------------------------------------------------------------- devices
 *
 * An adapter is what rigd has: a GPU, the host's memory, the disk. A device is this program's handle on one:
 * a timeline of its own, queues, an address space. Its runs are numbered 1, 2, 3 ... in the order they are
 * submitted, and a value is reached once every run up to it has completed.
 */

#define RIG_RUNS_COPY   (1u << 0)
#define RIG_RUNS_FILL   (1u << 1)
#define RIG_RUNS_LAUNCH (1u << 2)
#define RIG_RUNS_SYNC   (1u << 3)

#define RIG_DEVICE_HOST_ADDRESSED (1u << 0) /* the host addresses its memory: rig_buffer_map() works */
#define RIG_DEVICE_NAMES_HOST                                                                               \
        (1u << 1)                         /* its work names any memory the host addresses, without a borrow \
                                           */
#define RIG_DEVICE_BORROWS_HOST (1u << 2) /* it borrows memory the host addresses (rig_buffer_borrow()) */
#define RIG_DEVICE_FILES        (1u << 3) /* its buffers are files' bytes (rig_buffer_adopt()) */
#define RIG_DEVICE_CLIENT_CODE  (1u << 4) /* its launches run in this process (rig_launch.function) */
#define RIG_DEVICE_LOADS_IMAGES                                                                             \
        (1u << 5) /* rig_image_load() works, as it does with RIG_DEVICE_CLIENT_CODE */

struct rig_adapter {
        uint32_t size;  /* of this struct, as the library knows it */
        uint32_t flags; /* none yet */
        char name[64];  /* what rig_device_open() takes: "disk", "memory:NAME" */
        char driver[64];
        char about[256];       /* for people */
        char unavailable[256]; /* why it cannot be opened now; "" where it can */
        uint64_t budget_bytes; /* the most it holds for all clients */
        uint32_t devices;      /* open on it now, everyone's */
        uint32_t reserved;
};

/**
 * rig_adapter_list() - what rigd has
 * @rig:          the connection
 * @ret_adapters: an array, which the caller frees with rig_adapter_list_free()
 *
 * MT-Safe. Blocks for a round trip. Return: the number of adapters.
 */
RIG_API int rig_adapter_list(struct rig *rig, struct rig_adapter **ret_adapters);
RIG_API void rig_adapter_list_free(struct rig_adapter *adapters);

/**
 * rig_device_open() - open a device by its adapter's name
 * @rig:        the connection
 * @name:       DRIVER[:INSTANCE][,OPTION...]: "host", "disk", "memory:M", "memory:M,async"
 * @ret_device: the device
 *
 * Opening an adapter twice makes two devices. MT-Safe. Blocks, as long as a boot where the adapter has one.
 * Return: 0; -ENOENT (no adapter of that name), -EINVAL (an option that it has not), -ENODEV (the adapter is
 * lost), -EDQUOT.
 */
RIG_API int rig_device_open(struct rig *rig, const char *name, struct rig_device **ret_device);
RIG_API struct rig_device *rig_device_ref(struct rig_device *device);
/*
 * The last reference, its buffers' and works' included, closes the device; accepted work completes. A host
 * device's does so before the call returns, because it runs in this process.
 */
RIG_API struct rig_device *rig_device_unref(struct rig_device *device);

struct rig_device_facts {
        uint32_t size;         /* set by RIG_DEVICE_FACTS_INIT */
        uint32_t flags;        /* RIG_DEVICE_... */
        char arch[64];         /* "x86_64", "gfx1201"; "" where it runs no launch */
        uint64_t budget_bytes; /* the most this client's buffers on it may hold */
        uint64_t hang_usec;    /* work that stands still this long is a hang; 0: nobody bounds it here */
        uint32_t n_queues;
        uint32_t queues[8]; /* of each, RIG_RUNS_... */
        uint32_t reserved[3];
};
#define RIG_DEVICE_FACTS_INIT                                                                               \
        {                                                                                                   \
                .size = sizeof(struct rig_device_facts)                                                     \
        }

/* The facts of a device, lost or not. MT-Safe. Never blocks. -E2BIG: `size` is of a newer header. */
RIG_API int rig_device_get_facts(struct rig_device *device, struct rig_device_facts *ret_facts);
RIG_API const char *rig_device_name(const struct rig_device *device);
RIG_API struct rig *rig_device_rig(const struct rig_device *device);

/* 1 where `device`'s work can name memory of `other` (after a borrow, where one is needed), else 0. MT-Safe.
 */
RIG_API int rig_device_reaches(const struct rig_device *device, const struct rig_device *other);

/* The last value given, and the last reached. A lost device still answers. MT-Safe. Never block. */
RIG_API uint64_t rig_device_submitted(struct rig_device *device);
RIG_API uint64_t rig_device_signaled(struct rig_device *device);

/*
 * 0, or -ENODEV once the device is lost, for good: rig_error() has the reason. Work that waited for it is
 * lost with it, and so is later use of the device and of memory it had not finished with; everything else
 * goes on. MT-Safe. Never blocks.
 */
RIG_API int rig_device_lost(struct rig_device *device);

/* Calls `callback` from rig_dispatch() once the device is lost; at most one is kept, NULL removes it.
 * MT-Safe. */
RIG_API int rig_device_on_lost(struct rig_device *device,
        void (*callback)(struct rig_device *device, const char *reason, void *data), void *data);

/* ------------------------------------------------------------------------------------------- buffers
 *
 * A buffer is a range of a memory on a device. Memory starts as zeros, or as bytes that this
 * program had in memory it dropped; never as another program's. Views are buffers over the same
 * memory, and order is kept by the whole memory.
 */

#define RIG_READ       1u
#define RIG_WRITE      2u
#define RIG_READ_WRITE 3u

#define RIG_MEMORY_DEVICE 0u /* the device's own memory */
#define RIG_MEMORY_PINNED 1u /* host memory that the device's work and the host both address */
#define RIG_MEMORY_MAPPED 2u /* the device's memory through a host window, else pinned */

/**
 * rig_buffer_new() - allocate memory on a device
 * @device:     where
 * @bytes:      how much; 0 is a buffer of no bytes
 * @memory:     RIG_MEMORY_...; where the host addresses the device's memory all are the same
 * @ret_buffer: the buffer
 *
 * An allocation that the budget refuses waits for memory in flight to return and tries again before it
 * fails. MT-Safe. Blocks. Return: 0; -ENOMEM, -EDQUOT (more than this client's share), -ENODEV, -EOPNOTSUPP
 * (a device of files).
 */
RIG_API int rig_buffer_new(
        struct rig_device *device, uint64_t bytes, uint32_t memory, struct rig_buffer **ret_buffer);

/**
 * rig_buffer_adopt() - a buffer over bytes the program already has
 * @device:     a device that names or borrows host memory, for a memfd; a device of files, for a file
 * @fd:         borrowed; its access mode is what the buffer admits. A memfd must be sealed with
 * F_SEAL_SHRINK and F_SEAL_SEAL, so that its pages stay
 * @offset:     where the buffer starts in it, any byte
 * @bytes:      its length; a file may be shorter, and grows when it is written
 * @ret_buffer: the buffer
 *
 * Two buffers over one memfd or one file are the same memory, in whichever process: their work is ordered.
 * MT-Safe. Blocks. Return: 0; -EPERM (a memfd without seals or of huge pages, a file opened for neither or
 * with O_APPEND), -EBADF (neither a memfd nor a regular file or block device), -ERANGE (bytes past the
 * memfd's end), -EOPNOTSUPP (the device takes no such descriptor), -EMFILE (rigd has no descriptor left),
 * -EDQUOT.
 */
RIG_API int rig_buffer_adopt(
        struct rig_device *device, int fd, uint64_t offset, uint64_t bytes, struct rig_buffer **ret_buffer);

/* A buffer over `bytes` of another's from `offset`. MT-Safe. May block on a full ring. -ERANGE: not inside
 * it. */
RIG_API int rig_buffer_view(
        struct rig_buffer *buffer, uint64_t offset, uint64_t bytes, struct rig_buffer **ret_buffer);

/*
 * A buffer on `device` over memory of another device, without a copy. MT-Safe. Blocks. -EOPNOTSUPP: `device`
 * cannot map it (rig_device_reaches()).
 */
RIG_API int rig_buffer_borrow(
        struct rig_device *device, struct rig_buffer *buffer, struct rig_buffer **ret_buffer);

RIG_API struct rig_buffer *rig_buffer_ref(struct rig_buffer *buffer);
RIG_API struct rig_buffer *rig_buffer_unref(struct rig_buffer *buffer);
RIG_API uint64_t rig_buffer_bytes(const struct rig_buffer *buffer);
RIG_API struct rig_device *rig_buffer_device(const struct rig_buffer *buffer);

/**
 * rig_buffer_map() - the buffer's bytes in this process
 * @buffer:      a buffer whose memory the host addresses
 * @ret_address: its first byte, valid while the buffer lives
 *
 * Reading and writing through it is the program's to order: rig_buffer_wait() before, work submitted after.
 * MT-Safe. Blocks for a mapping, the first time. Return: 0; -EOPNOTSUPP (the host does not address it).
 */
RIG_API int rig_buffer_map(struct rig_buffer *buffer, void **ret_address);

/**
 * rig_buffer_wait() - wait until the host may access a buffer
 * @buffer:       any buffer
 * @access:       RIG_READ waits for the last write, RIG_WRITE for every use
 * @timeout_usec: at most this long
 *
 * MT-Safe. Blocks. Return: 0; -ETIMEDOUT, -ENODEV, and the error of a run of this connection's on the buffer
 * that failed and was not told yet.
 */
RIG_API int rig_buffer_wait(struct rig_buffer *buffer, uint32_t access, uint64_t timeout_usec);

/*
 * Copy bytes between the program and a buffer, any device's, and return once they are there. They follow the
 * work on the buffer as rig_buffer_wait() does. MT-Safe. Block. -ERANGE: not inside the buffer; -EACCES: a
 * write to memory that is only read; -ENODEV; and what a file's copy failed with, such as -EIO, -ENOSPC, or
 * -ENODATA (the file ends before).
 */
RIG_API int rig_buffer_write(struct rig_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes);
RIG_API int rig_buffer_read(struct rig_buffer *buffer, uint64_t offset, void *data, uint64_t bytes);

/* A value of a device's timeline. Owns nothing. */
struct rig_point {
        struct rig_device *device;
        uint64_t value;
};

/**
 * rig_buffer_copy() - copy bytes from one buffer to another, as ordered work
 * @dst, @src:               any two buffers of one connection
 * @dst_offset, @src_offset: bytes into them
 * @bytes:                   how many
 * @ret_point:               when it is done; or NULL
 *
 * The device that runs it is the destination's where it can, else the source's, else one of the library's
 * own through staging memory. MT-Safe. Does not wait for the work, unless it goes through staging memory and
 * that is in use. Return: 0; -ERANGE, -EACCES, -ENODEV, -EXDEV (buffers of two connections), -EOPNOTSUPP (no
 * path between the two).
 */
RIG_API int rig_buffer_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes, struct rig_point *ret_point);

/* Fill with a repeated 32-bit pattern, as ordered work. `offset` and `bytes` are multiples of 4. As a copy.
 */
RIG_API int rig_buffer_fill(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t pattern,
        struct rig_point *ret_point);

/*
 * A barrier of a file's buffer, as ordered work: once it is done, the bytes of every earlier write to the
 * file have reached its storage, before any later change to the file system. As a copy. -EOPNOTSUPP: no
 * file.
 */
RIG_API int rig_buffer_sync(struct rig_buffer *buffer, struct rig_point *ret_point);

/* ------------------------------------------------------------------------------------------- work and runs
 *
 * A work is prepared once and run many times. It is made of parts, each on one of its device's queues, and
 * of slots: what its parts read and write, filled with buffers by each run or bound once. Parts of one queue
 * run in their order; a part runs after those of other queues that rig_work_after() names.
 *
 *         rig_work_new(device, &w);
 *         dst = rig_work_slot(w, RIG_WRITE);
 *         src = rig_work_slot(w, RIG_READ);
 *         rig_work_copy(w, 0, dst, 0, src, 0, RIG_WHOLE);
 *         rig_work_prepare(w);
 *         rig_submit(w, (struct rig_buffer *[]){a, b}, 2, NULL, 0, &done);
 *
 * A work is built by one thread; once prepared it is MT-Safe and never changes.
 */

#define RIG_WHOLE UINT64_MAX /* as a part's bytes: all of the slot's buffer, whatever its length */

RIG_API int rig_work_new(struct rig_device *device, struct rig_work **ret_work);
RIG_API struct rig_work *rig_work_ref(struct rig_work *work);
RIG_API struct rig_work *rig_work_unref(struct rig_work *work);

/* Adds a slot. What its parts do to it without declaring it is not ordered. Return: its index, up to 63. */
RIG_API int rig_work_slot(struct rig_work *work, uint32_t access);

/* Binds a slot to a buffer for every run; runs do not pass it then. The work keeps the buffer. */
RIG_API int rig_work_bind(struct rig_work *work, int slot, struct rig_buffer *buffer);

/* Add a part. Return: its index, up to 31. */
RIG_API int rig_work_copy(struct rig_work *work, int queue, int dst_slot, uint64_t dst_offset, int src_slot,
        uint64_t src_offset, uint64_t bytes);
RIG_API int rig_work_fill(
        struct rig_work *work, int queue, int slot, uint64_t offset, uint64_t bytes, uint32_t pattern);
RIG_API int rig_work_sync(struct rig_work *work, int queue, int slot);

/* One thread group of a launch on the host. Coordinates and counts are x, y, z. */
struct rig_group {
        uint32_t group[3];   /* which */
        uint32_t groups[3];  /* of how many: the launch's grid */
        uint32_t threads[3]; /* the launch's group: the function loops over them */
        uint32_t worker;     /* which of the device's workers runs it, from 0 */
        void *shared;        /* shared_bytes of memory for this group alone, with unspecified contents */
};
typedef void (*rig_host_function)(const struct rig_group *group, const void *params);

/* Writes the address of a slot's byte `addend` into the launch's parameters at `at`, as eight bytes. */
struct rig_patch {
        uint32_t at;
        int32_t slot;
        uint64_t addend;
};

struct rig_launch {
        uint32_t size;                   /* set by RIG_LAUNCH_INIT */
        uint32_t shared_bytes;           /* memory that the threads of a group share */
        rig_host_function function;      /* on a host device: what runs, or NULL and */
        struct rig_image *image;         /* the image that `entry` is of; kept by the work */
        uint64_t entry;                  /* rig_image_entry()'s */
        uint32_t grid[3];                /* groups on each axis */
        uint32_t group[3];               /* threads of a group on each axis */
        const void *params;              /* copied */
        const struct rig_patch *patches; /* copied */
        uint32_t params_bytes;           /* up to 4096 */
        uint32_t n_patches;              /* up to 32 */
};
#define RIG_LAUNCH_INIT                                                                                     \
        {                                                                                                   \
                .size = sizeof(struct rig_launch), .grid = {1, 1, 1}, .group = { 1, 1, 1 }                  \
        }

RIG_API int rig_work_launch(struct rig_work *work, int queue, const struct rig_launch *launch);

/* Part `part` starts after part `earlier`, which was added before it. */
RIG_API int rig_work_after(struct rig_work *work, int part, int earlier);

/*
 * Names the work in traces and profiles: at most 47 bytes of UTF-8, copied. Before rig_work_prepare().
 * MT-Unsafe: per work. Never blocks. -ENAMETOOLONG; -EILSEQ (no UTF-8); -EBUSY (it is prepared).
 */
RIG_API int rig_work_set_name(struct rig_work *work, const char *name);

/* Seals the work: it can be submitted from now on. Blocks for a round trip. -EOPNOTSUPP: a part the device's
 * queue does not run. */
RIG_API int rig_work_prepare(struct rig_work *work);

/**
 * rig_submit() - run a work once
 * @work:      a prepared work
 * @buffers:   one for each slot that is not bound, in their order; kept until the call returns
 * @n_buffers: how many
 * @points:    further points to follow, of this connection's devices; order by memory needs none
 * @n_points:  how many, up to 16
 * @ret_point: the run's point, or NULL
 *
 * The run starts once everything it follows is done: what wrote the memory it reads, what used the memory it
 * writes, and the earlier runs of its device.
 * MT-Safe. Does not wait for the work; may block on a full ring or a full socket. No allocation and, while
 * rigd is awake, no system call.
 * Return: 0; -ERANGE (a buffer too short for its slot), -EACCES (a write to memory that is only read),
 * -EXDEV (memory the device does not reach without a borrow, or another connection's object), -ENODEV.
 */
RIG_API int rig_submit(struct rig_work *work, struct rig_buffer *const *buffers, size_t n_buffers,
        const struct rig_point *points, size_t n_points, struct rig_point *ret_point);

/* Launch once, without preparing: `buffers` are the slots that `accesses` declare, in order. As
 * rig_submit(). */
RIG_API int rig_launch_once(struct rig_device *device, const struct rig_launch *launch,
        struct rig_buffer *const *buffers, const uint32_t *accesses, size_t n_buffers,
        struct rig_point *ret_point);

/* ------------------------------------------------------------------------------------------- waiting */

/**
 * rig_wait() - wait until a device reached a value
 * @device:       the device
 * @value:        at most rig_device_submitted()
 * @timeout_usec: at most this long; long work is no fault
 *
 * The memory the work wrote is then visible to this thread. MT-Safe. Blocks: it polls for a moment, then
 * sleeps. Return: 0; -ETIMEDOUT; -ENODEV (the device is lost before it reached the value); or the error of a
 * run up to `value` that failed and was not told by a wait yet: it was passed, and lost nothing but itself.
 */
RIG_API int rig_wait(struct rig_device *device, uint64_t value, uint64_t timeout_usec);
RIG_API int rig_point_wait(const struct rig_point *point, uint64_t timeout_usec);

/*
 * Calls `callback` from rig_dispatch() once the value is reached (error 0) or the device is lost (-ENODEV).
 * MT-Safe. Does not wait.
 */
RIG_API int rig_notify(struct rig_device *device, uint64_t value,
        void (*callback)(struct rig_device *device, uint64_t value, int error, void *data), void *data);

/* Adds 1 to an eventfd (eventfd(2)), borrowed, once the value is reached or the device is lost. MT-Safe.
 * Blocks for a round trip. -EBADF: no eventfd. */
RIG_API int rig_notify_eventfd(struct rig_device *device, uint64_t value, int eventfd);

/* ------------------------------------------------------------------------------------------- sharing
 *
 * A memory is shared with another process as a descriptor, sent any way processes send them (SCM_RIGHTS, a
 * child that inherits it). From then on both processes' work on it is one order.
 */

/* A descriptor for the memory the buffer lies in, all of it; the caller's to close. MT-Safe. Blocks.
 * -EACCES: a buffer of a file that admits less than the file was opened for. */
RIG_API int rig_buffer_export(struct rig_buffer *buffer, int *ret_fd);

/**
 * rig_buffer_import() - a buffer over memory another process exported
 * @device:     one that reaches it
 * @fd:         borrowed; recognised by what it is, not by what its sender says
 * @ret_buffer: a buffer over the whole memory; a view takes a part
 *
 * MT-Safe. Blocks. Return: 0; -ESTALE (rigd knows no such memory, or it returned already), -EOPNOTSUPP (the
 * device cannot map it), -EBADF (no descriptor), -EPERM (opened neither to read nor to write), -EDQUOT.
 */
RIG_API int rig_buffer_import(struct rig_device *device, int fd, struct rig_buffer **ret_buffer);

/* ------------------------------------------------------------------------------------------- code */

/**
 * rig_image_load() - load code on a device
 * @device:    the device
 * @image:     a binary in the device's format, copied: on a host device a shared object, whose functions are
 *             rig_host_function
 * @bytes:     its length
 * @ret_image: the image
 *
 * MT-Safe. Blocks. Return: 0; -ENOEXEC (not such a binary), -EOPNOTSUPP (the device loads none), -ENODEV.
 */
RIG_API int rig_image_load(
        struct rig_device *device, const void *image, size_t bytes, struct rig_image **ret_image);
RIG_API struct rig_image *rig_image_ref(struct rig_image *image);
RIG_API struct rig_image *rig_image_unref(struct rig_image *image);

/* What launches name a function of the image by. MT-Safe. Blocks for a round trip. -ENOENT: no such
 * function. */
RIG_API int rig_image_entry(struct rig_image *image, const char *name, uint64_t *ret_entry);

/* A host device's workers: as many as this process may use cores, unless set before its first run. */
RIG_API int rig_host_set_workers(struct rig_device *device, uint32_t workers);

/* ------------------------------------------------------------------------------------------- profiles
 *
 * A profile records what this connection's devices did while a part of the program ran: each run with its
 * times and bytes, what it waited for, the memory held; and spans that the program names. rigd records, into
 * memory of the program; recording costs a run about 0.15 us, and nothing where nobody records.
 *
 *         rig_profile_start(rig, 0, &profile);
 *         rig_profile_begin(profile, "warm up");
 *         ...
 *         rig_profile_end(profile);
 *         rig_profile_stop(profile);
 *         rig_profile_write(profile, "trace.json");     // ui.perfetto.dev opens it
 *
 * Times are CLOCK_MONOTONIC, in nanoseconds.
 */

struct rig_profile;

/**
 * rig_profile_start() - start to record
 * @rig:         whose devices; a connection records one profile at a time
 * @records:     room for so many records of 128 bytes, and as many spans, rounded up to a power of two, at
 * least 256; 0 is 65536. What finds no room is dropped and counted
 * @ret_profile: the profile
 *
 * MT-Safe. Blocks for a round trip. Return: 0; -EBUSY (one records already), -EDQUOT (more than rigd lets a
 * client have: ClientTraceMax=).
 */
RIG_API int rig_profile_start(struct rig *rig, size_t records, struct rig_profile **ret_profile);
RIG_API struct rig_profile *rig_profile_ref(struct rig_profile *profile);
/* With the last reference recording stops. */
RIG_API struct rig_profile *rig_profile_unref(struct rig_profile *profile);

/*
 * Name what this thread does from here to the matching end; spans nest, to a depth of 32 in each thread.
 * `name` is copied, up to 63 bytes. MT-Safe. Never block. Once the profile has stopped they do nothing,
 * successfully. -ENAMETOOLONG; -EOVERFLOW (too deep); -ENOENT (no span of this thread is open).
 */
RIG_API int rig_profile_begin(struct rig_profile *profile, const char *name);
RIG_API int rig_profile_end(struct rig_profile *profile);

/*
 * Stops recording; again does nothing. What rigd had accepted is recorded as far as it was over: wait first
 * for what the profile is to show. A run that is lost with its device is over once rigd has brought that to
 * an end. Spans that are open end here. MT-Safe. Blocks for a round trip. On a connection that is broken
 * what was recorded stays, and its error is returned.
 */
RIG_API int rig_profile_stop(struct rig_profile *profile);

#define RIG_EVENT_SPAN 1u /* name, thread, begin_nsec, end_nsec */
#define RIG_EVENT_RUN                                                                                       \
        2u /* name, device, value, accepted_nsec, begin_nsec, end_nsec, bytes, queues, error                \
            */
#define RIG_EVENT_WAIT   3u /* device's run `value` waited for on_device's on_value */
#define RIG_EVENT_MEMORY 4u /* name (of the adapter), begin_nsec, live_bytes, cached_bytes */

struct rig_profile_event {
        uint32_t size; /* set by RIG_PROFILE_EVENT_INIT */
        uint32_t kind; /* RIG_EVENT_... */
        char name[64];
        char device[64];    /* what it was opened as */
        char on_device[64]; /* likewise; "" where it is another program's */
        uint64_t value, on_value;
        uint64_t accepted_nsec; /* rigd took the run */
        uint64_t begin_nsec, end_nsec;
        uint64_t copied_bytes, filled_bytes;
        uint64_t live_bytes, cached_bytes;
        uint32_t device_number, on_device_number; /* rigd's, which tell devices of one name apart; 0: none */
        uint32_t thread;                          /* gettid(2) of the span's thread */
        uint32_t launches;
        uint32_t queues; /* bit q: the run has parts on queue q */
        int32_t error;   /* the run's: 0 or a negative errno value */
};
#define RIG_PROFILE_EVENT_INIT                                                                              \
        {                                                                                                   \
                .size = sizeof(struct rig_profile_event)                                                    \
        }

/*
 * Reads the next event of a stopped profile, runs in the order they were over, then spans in the order they
 * began. MT-Unsafe: per profile. Never blocks. Return: 1; 0 where there is no more; -EBUSY (it has not
 * stopped); -E2BIG: `size` is of a newer header.
 */
RIG_API int rig_profile_next(struct rig_profile *profile, struct rig_profile_event *ret_event);

/* Starts reading again from the first event. As rig_profile_next(). */
RIG_API int rig_profile_rewind(struct rig_profile *profile);

/* Records and spans that found no room. MT-Safe. Never blocks. */
RIG_API uint64_t rig_profile_dropped(struct rig_profile *profile);

/*
 * Writes a stopped profile as a file that Perfetto opens, as `rigctl trace` does: the whole file or none.
 * MT-Unsafe: per profile. Blocks. -EBUSY (it has not stopped); -EINVAL, -EISDIR (what is there is no regular
 * file), and what files fail with.
 */
RIG_API int rig_profile_write(struct rig_profile *profile, const char *path);

#ifdef __cplusplus
}
#endif

#endif
