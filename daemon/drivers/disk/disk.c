/* SPDX-License-Identifier: ISC */
/*
 * The disk driver: files that clients opened, read and written by io_uring. A device has a ring of its own;
 * the core loop submits to it and takes its completions, and blocks on neither.
 *
 * A run. Handed-over runs wait in `runs`, oldest first, and only the oldest is in progress: contract 2. Its
 * parts start as parts.h says which may. A copy is cut into chunks of up to CHUNK_BYTES; up to OPS of them
 * are in flight, from all the parts that may run. A chunk that the kernel did only in part is continued
 * where it stopped. A sync is one fsync, which the order of parts and runs puts behind the writes it is
 * about.
 *
 * Blocking. The kernel reads within the submission where the page cache has the bytes, and puts it off where
 * it would block. Above INLINE_BYTES the copy itself is too much of the loop's time, so such chunks go to
 * the kernel's own workers (IOSQE_ASYNC), which also lets the chunks of one copy go in parallel. Measured on
 * two cores, page cache to memory: 4 KiB take 1.0 us inline and 5.4 us by a worker, 64 KiB 3.1 us and 7.3
 * us, 1 MiB 39 us and 47 us. Writes always go to the workers: most file systems would send them there
 * anyway, and a file that was opened with O_SYNC might be waited for within the submission.
 *
 * A client's file may stall for ever: a network file system, or a FUSE file of its own. Such a transfer
 * holds one of the kernel's workers, which all rings of the loop share. A device has at most OPS of them,
 * and WORKERS_MAX lets the kernel make more workers than that for very many devices, so that it holds up its
 * own client alone.
 *
 * Failure. A transfer that fails, fails its run, loses nothing else, and starts no further part of that run;
 * what is in flight is waited for. The sentence names what was done where. Where several chunks failed, the
 * first part's lowest offset is told. Only a ring that refuses to work is the device's fault.
 *
 * Files. Their bytes are reached through the descriptor alone, with the rights it was opened with. Its flags
 * belong to the client, who may set O_APPEND or O_NONBLOCK afterwards: that misplaces or fails its own
 * transfers, and the tries of one that says "again" are bounded. A file has no address and no length that
 * holds: a region of one is as long as an offset goes, and reading past the end is that run's failure.
 *
 * Deliberately not here: registered buffers and files (objects come and go by the run), O_DIRECT of our own
 * (the client opens as it wants), copies between two files or between two memories.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "daemon/drivers/drivers.h"
#include "daemon/drivers/parts.h"
#include "daemon/memory/closer.h"

#define CHUNK_BYTES       (UINT64_C(1) << 20)
#define INLINE_BYTES      65536u
#define OPS               8u
#define ROOM              16u
#define TRIES_MAX         16u
#define WORKERS_MAX       4096u
#define STOP_TIMEOUT_USEC (10 * RIG_USEC_PER_SEC)

/* A handed-over run. */
struct disk_run {
        uint64_t value;
        const struct rig_driver_work *work;
        struct rig_filled slots[RIG_SLOTS_MAX];
};

/* What is done of a part of the run in progress. */
struct progress {
        uint64_t bytes; /* all of it; a sync has one */
        uint64_t next;  /* what comes before this is done or in flight */
        uint32_t in_flight;
};

/* A transfer in flight, or a sync. */
struct op {
        uint32_t part;
        uint32_t tries;
        bool write, sync;
        int fd;
        uint64_t offset; /* in the file */
        uint8_t *host;
        uint64_t bytes; /* left to move */
};

struct disk_device {
        struct io_uring ring;
        struct disk_run runs[ROOM];
        unsigned head, tail; /* runs[head % ROOM] is the oldest */
        uint64_t reached;

        bool busy; /* the oldest is in progress: */
        struct rig_parts parts;
        struct progress progress[RIG_PARTS_MAX];
        uint32_t starting; /* bit i: part i is started, and some of it not yet in flight */

        int failed; /* 0, or the error of the run in progress, */
        uint32_t failed_part;
        uint64_t failed_offset;
        char failure[RIG_ERROR_TEXT_MAX];

        struct op ops[OPS];
        uint32_t free_ops; /* bit i: ops[i] */
};

#define ALL_OPS ((1u << OPS) - 1)

static struct disk_run *current(struct disk_device *disk)
{
        return &disk->runs[disk->head % ROOM];
}

/* ---------------------------------------------------------------- failures of a run */

/* Notes that a part failed, unless an earlier place of the run did. */
static void fail_run(struct disk_device *disk, uint32_t part, uint64_t offset, int error, const char *fmt,
        ...) _printf_(5, 6);
static void fail_run(
        struct disk_device *disk, uint32_t part, uint64_t offset, int error, const char *fmt, ...)
{
        va_list ap;

        disk->starting = 0;
        if (disk->failed &&
                (disk->failed_part < part || (disk->failed_part == part && disk->failed_offset <= offset)))
                return;
        disk->failed = error;
        disk->failed_part = part;
        disk->failed_offset = offset;
        va_start(ap, fmt);
        vsnprintf(disk->failure, sizeof(disk->failure), fmt, ap);
        va_end(ap);
}

static void fail_op(struct disk_device *disk, const struct op *op, int error)
{
        if (op->sync)
                fail_run(disk, op->part, 0, error, "part %u: syncing the file: %s (%s)", op->part,
                        strerror(-error), rig_errno_name(error));
        else
                fail_run(disk, op->part, op->offset, error,
                        "part %u: %s %" PRIu64 " bytes at byte %" PRIu64 " of the file: %s (%s)", op->part,
                        op->write ? "writing" : "reading", op->bytes, op->offset, strerror(-error),
                        rig_errno_name(error));
}

/* ---------------------------------------------------------------- transfers */

static void submit_op(struct disk_device *disk, struct op *op)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&disk->ring);

        rig_assert(sqe); /* the queue has an entry for each op */
        if (op->sync)
                io_uring_prep_fsync(sqe, op->fd, 0);
        else if (op->write)
                io_uring_prep_write(sqe, op->fd, op->host, (unsigned)op->bytes, op->offset);
        else
                io_uring_prep_read(sqe, op->fd, op->host, (unsigned)op->bytes, op->offset);
        if (op->write || op->bytes > INLINE_BYTES || op->tries > 0)
                io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
        io_uring_sqe_set_data(sqe, op);
}

/* Sets up what a part is about; it fails its run where the slots turn out to be what a disk does not copy
 * between. */
static void start_part(struct disk_device *disk, uint32_t i)
{
        const struct disk_run *run = current(disk);
        const struct rig_part *part = &run->work->parts[i];
        const struct rig_region *dst = run->slots[part->dst.slot].region,
                                *src = run->slots[part->src.slot].region;
        uint64_t bytes = rig_part_moves(part, run->slots);

        disk->parts.started |= 1u << i;
        disk->progress[i] = (struct progress){0};
        if (part->kind == RIG_PART_SYNC)
                bytes = dst ? 1 : 0;
        if (bytes == 0) {
                disk->parts.done |= 1u << i;
                return;
        }
        if (part->kind == RIG_PART_SYNC ? dst->host != NULL : !dst->host == !src->host) {
                fail_run(disk, i, 0, -EOPNOTSUPP,
                        "part %u: a disk copies between a file and the host's memory, and syncs files", i);
                return;
        }
        disk->progress[i].bytes = bytes;
        disk->starting |= 1u << i;
}

/* The next transfer of a part that has some left. */
static void fill_op(struct disk_device *disk, uint32_t i, struct op *op)
{
        const struct disk_run *run = current(disk);
        const struct rig_part *part = &run->work->parts[i];
        struct progress *p = &disk->progress[i];
        bool write = !run->slots[part->dst.slot].region->host;
        const struct rig_operand *file = write ? &part->dst : &part->src,
                                 *memory = write ? &part->src : &part->dst;
        const struct rig_filled *filled = &run->slots[file->slot];

        *op = (struct op){.part = i, .write = write, .fd = filled->region->fd};
        if (part->kind == RIG_PART_SYNC) {
                op->sync = true;
                op->bytes = 1;
        } else {
                op->offset = filled->offset + file->offset + p->next;
                op->host = rig_operand_host(memory, run->slots) + p->next;
                op->bytes = RIG_MIN(p->bytes - p->next, CHUNK_BYTES);
        }
        p->next += op->bytes;
        p->in_flight++;
        if (p->next == p->bytes)
                disk->starting &= ~(1u << i);
}

/* Puts transfers of the run in progress in flight, as many as fit. */
static void issue(struct disk_device *disk)
{
        while (disk->starting && disk->free_ops) {
                /* one chunk of each part in turn, so that all of them move */
                for (uint32_t left = disk->starting; left && disk->free_ops; left &= left - 1) {
                        struct op *op = &disk->ops[__builtin_ctz(disk->free_ops)];

                        disk->free_ops &= disk->free_ops - 1;
                        fill_op(disk, (uint32_t)__builtin_ctz(left), op);
                        submit_op(disk, op);
                }
        }
}

/* A transfer came back with `result`: continue it, or it is over. */
static void op_done(struct disk_device *disk, struct op *op, int result)
{
        struct progress *p = &disk->progress[op->part];
        bool again = (result == -EAGAIN || result == -EINTR) && ++op->tries < TRIES_MAX;

        if (result > 0 && !op->sync) {
                rig_assert((uint64_t)result <= op->bytes);
                op->offset += (uint64_t)result;
                op->host += result;
                op->bytes -= (uint64_t)result;
                op->tries = 0;
        }
        if (!disk->failed && (again || (result > 0 && op->bytes > 0))) {
                submit_op(disk, op);
                return;
        }
        if (result < 0)
                fail_op(disk, op, result);
        else if (result == 0 && !op->sync && op->write)
                fail_op(disk, op, -EIO);
        else if (result == 0 && !op->sync)
                fail_run(disk, op->part, op->offset, -ENODATA,
                        "part %u: the file ends at byte %" PRIu64 ", before the %" PRIu64
                        " bytes that are left to read",
                        op->part, op->offset, op->bytes);
        p->in_flight--;
        disk->free_ops |= 1u << (op - disk->ops);
        if (p->in_flight == 0 && p->next == p->bytes)
                disk->parts.done |= 1u << op->part;
}

/* ---------------------------------------------------------------- runs */

/* Starts what may start, of the run in progress and of the next ones once it is over. */
static void advance(struct rig_driver_device *device)
{
        struct disk_device *disk = device->drv;

        while (disk->busy || disk->head != disk->tail) {
                if (!disk->busy) {
                        rig_parts_init(&disk->parts, current(disk)->work);
                        disk->busy = true;
                        disk->starting = 0;
                        disk->failed = 0;
                }
                for (uint32_t ready; !disk->failed && (ready = rig_parts_ready(&disk->parts));)
                        start_part(disk, (uint32_t)__builtin_ctz(ready));
                issue(disk);
                if (disk->free_ops != ALL_OPS || !(disk->failed || rig_parts_all_done(&disk->parts)))
                        return;
                if (disk->failed)
                        rig_device_run_failed(
                                device, current(disk)->value, disk->failed, "%s", disk->failure);
                disk->reached = current(disk)->value;
                disk->busy = false;
                disk->head++;
        }
}

/* Tells the kernel about what was issued. Negative: the ring does not work any more. */
static int flush(struct rig_driver_device *device, struct rig_error *e)
{
        struct disk_device *disk = device->drv;
        int r;

        if (io_uring_sq_ready(&disk->ring) == 0)
                return 0;
        r = io_uring_submit(&disk->ring);
        if (r >= 0 && io_uring_sq_ready(&disk->ring) == 0)
                return 0;
        if (r < 0 && r != -EAGAIN && r != -EBUSY && r != -EINTR)
                return rig_error_set(
                        e, r, "io_uring takes no more work: %s (%s)", strerror(-r), rig_errno_name(r));
        rig_device_kick(device); /* the kernel is short of something: again from the next poll() */
        return 0;
}

static int disk_room(struct rig_driver_device *device, const struct rig_submission *submission)
{
        const struct disk_device *disk = device->drv;

        return disk->tail - disk->head < ROOM;
}

static int disk_hand_over(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        struct disk_device *disk = device->drv;
        struct disk_run *run;

        rig_assert(disk->tail - disk->head < ROOM); /* room() said so */
        run = &disk->runs[disk->tail++ % ROOM];
        run->value = submission->value;
        run->work = submission->work;
        memcpy(run->slots, submission->slots, submission->work->n_slots * sizeof(run->slots[0]));
        return 0;
}

static int disk_poll(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        struct disk_device *disk = device->drv;
        struct io_uring_cqe *cqe;
        int r;

        while (disk->free_ops != ALL_OPS && io_uring_peek_cqe(&disk->ring, &cqe) == 0) {
                struct op *op = io_uring_cqe_get_data(cqe);
                int result = cqe->res;

                io_uring_cqe_seen(&disk->ring, cqe);
                op_done(disk, op, result);
        }
        advance(device);
        r = flush(device, e);
        if (r < 0)
                return r;
        *ret_reached = disk->reached;
        return 0;
}

static void disk_commit(struct rig_driver_device *device)
{
        struct disk_device *disk = device->drv;
        uint64_t reached = disk->reached;

        advance(device);
        /* poll() meets the same error, and tells it; and the ring does not say that a run was over at once
         */
        if (flush(device, NULL) < 0 || disk->reached != reached)
                rig_device_kick(device);
}

static int disk_descriptor(struct rig_driver_device *device)
{
        struct disk_device *disk = device->drv;

        return disk->ring.ring_fd; /* polls readable while it holds completions */
}

/* ---------------------------------------------------------------- files */

static int block_device_bytes(int fd, uint64_t *ret_bytes)
{
        return ioctl(fd, BLKGETSIZE64, ret_bytes) < 0 ? -errno : 0;
}

/* What a file's descriptor admits. */
static int check_mode(int fd, uint32_t *ret_access, struct rig_error *e)
{
        static const uint32_t access[] = {
                [O_RDONLY] = RIG_ACCESS_READ,
                [O_WRONLY] = RIG_ACCESS_WRITE,
                [O_RDWR] = RIG_ACCESS_READ | RIG_ACCESS_WRITE,
        };
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0)
                return rig_error_set(e, -EBADF, "the descriptor cannot be looked at: %s", strerror(errno));
        if (flags & O_PATH || (flags & O_ACCMODE) == O_ACCMODE)
                return rig_error_set(e, -EPERM, "the file was opened neither to read nor to write");
        if (flags & O_APPEND && (flags & O_ACCMODE) != O_RDONLY)
                return rig_error_set(e, -EPERM,
                        "the file was opened with O_APPEND, so that no write would go where it belongs: "
                        "open it without");
        *ret_access = access[flags & O_ACCMODE];
        return 0;
}

static int disk_region_adopt(
        struct rig_driver_device *device, int fd, struct rig_region *ret_region, struct rig_error *e)
{
        uint64_t bytes = INT64_MAX; /* as far as an offset goes: a file may grow */
        uint32_t access = 0;
        mode_t mode;
        dev_t device_of;
        ino_t inode;
        int r = rig_foreign_stat(fd, &mode, &device_of, &inode);

        if (r < 0)
                return rig_error_set(e, -EBADF, "the descriptor cannot be looked at: %s", strerror(-r));
        if (!S_ISREG(mode) && !S_ISBLK(mode))
                return rig_error_set(
                        e, -EBADF, "the descriptor is neither a regular file nor a block device");
        r = check_mode(fd, &access, e);
        if (r < 0)
                return r;
        if (S_ISBLK(mode)) {
                r = block_device_bytes(fd, &bytes);
                if (r < 0)
                        return rig_error_set(
                                e, r, "the block device does not say its size: %s", strerror(-r));
        }
        *ret_region = (struct rig_region){.bytes = bytes, .fd = fd, .access = access};
        return 0;
}

static void disk_region_free(struct rig_driver_adapter *adapter, struct rig_region *region)
{
        region->fd = rig_foreign_close(region->fd);
}

/* ---------------------------------------------------------------- devices */

/* Why a ring cannot be had, for people; `room` bytes of it. */
static void describe_refusal(int error, char *ret, size_t room)
{
        if (error == -ENOSYS)
                snprintf(ret, room, "this kernel has no io_uring (CONFIG_IO_URING)");
        else if (error == -EPERM || error == -EACCES)
                snprintf(ret, room,
                        "io_uring is refused: set sysctl kernel.io_uring_disabled=0, or let rigd's system "
                        "call "
                        "filter pass io_uring_setup, io_uring_enter and io_uring_register");
        else if (error == -ENOMEM)
                snprintf(ret, room,
                        "io_uring gets no memory: raise rigd's limit of locked memory (LimitMEMLOCK=)");
        else
                snprintf(ret, room, "io_uring cannot be set up: %s (%s)", strerror(-error),
                        rig_errno_name(error));
}

/* A ring that has what this driver uses. */
static int open_ring(struct io_uring *ret_ring)
{
        unsigned workers[2] = {WORKERS_MAX, 0};
        int r = io_uring_queue_init(OPS, ret_ring, 0);

        if (r < 0)
                return r;
        /* IORING_FEAT_NODROP came with 5.5, IORING_OP_READ and _WRITE with 5.6 */
        if (!(ret_ring->features & IORING_FEAT_NODROP) || !(ret_ring->features & IORING_FEAT_RW_CUR_POS)) {
                io_uring_queue_exit(ret_ring);
                return -ENOSYS;
        }
        io_uring_ring_dontfork(ret_ring);
        /* kernels before 5.15 have no such limit to raise, and bound their workers themselves */
        io_uring_register_iowq_max_workers(ret_ring, workers);
        return 0;
}

static int disk_device_open(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        _cleanup_(rig_freep) struct disk_device *disk = NULL;
        char why[192];
        int r;

        if (options[0])
                return rig_error_set(e, -EINVAL, "a disk device has no options, and so no \"%s\"", options);
        disk = calloc(1, sizeof(*disk));
        if (!disk)
                return rig_error_set(e, -ENOMEM, "no memory for a device");
        r = open_ring(&disk->ring);
        if (r < 0) {
                describe_refusal(r, why, sizeof(why));
                return rig_error_set(e, r, "%s", why);
        }
        disk->free_ops = ALL_OPS;
        device->drv = RIG_STEAL(disk);
        device->facts = (struct rig_facts){
                .flags = RIG_DEVICE_FILES | RIG_DEVICE_NAMES_HOST,
                .n_queues = 4,
                .queues = {RIG_RUNS_COPY | RIG_RUNS_SYNC, RIG_RUNS_COPY | RIG_RUNS_SYNC,
                        RIG_RUNS_COPY | RIG_RUNS_SYNC, RIG_RUNS_COPY | RIG_RUNS_SYNC},
                .completion = RIG_COMPLETION_HOST,
        };
        return 0;
}

/* What is in flight cannot be called back from a file system, only waited for; a file may stall for ever. */
static int disk_stop(struct rig_driver_device *device)
{
        struct disk_device *disk = device->drv;
        uint64_t deadline = rig_deadline_usec(STOP_TIMEOUT_USEC);
        struct __kernel_timespec nap = {.tv_nsec = 10 * 1000 * 1000};
        struct io_uring_cqe *cqe;

        while (disk->free_ops != ALL_OPS) {
                if (io_uring_wait_cqe_timeout(&disk->ring, &cqe, &nap) == 0) {
                        struct op *op = io_uring_cqe_get_data(cqe);

                        disk->free_ops |= 1u << (op - disk->ops);
                        io_uring_cqe_seen(&disk->ring, cqe);
                } else if (rig_now_usec() >= deadline) {
                        return -EINPROGRESS;
                }
        }
        return 0;
}

static void disk_device_close(struct rig_driver_device *device)
{
        struct disk_device *disk = device->drv;

        io_uring_queue_exit(&disk->ring);
        free(disk);
        device->drv = NULL;
}

static int disk_discover(
        void (*found)(const struct rig_driver_adapter *adapter, void *userdata), void *userdata)
{
        struct rig_driver_adapter adapter = {
                .driver = &rig_driver_disk,
                .name = "disk",
                .about = "files that the client opened, by io_uring",
                .budget_bytes = INT64_MAX, /* files' bytes are no memory */
        };
        struct io_uring ring;
        int r;

        r = open_ring(&ring);
        if (r < 0)
                describe_refusal(r, adapter.unavailable, sizeof(adapter.unavailable));
        else
                io_uring_queue_exit(&ring);
        found(&adapter, userdata);
        return 0;
}

const struct rig_driver rig_driver_disk = {
        .name = "disk",
        .commit = disk_commit,
        .descriptor = disk_descriptor,
        .device_close = disk_device_close,
        .device_open = disk_device_open,
        .discover = disk_discover,
        .hand_over = disk_hand_over,
        .poll = disk_poll,
        .region_adopt = disk_region_adopt,
        .region_free = disk_region_free,
        .room = disk_room,
        .stop = disk_stop,
};
