/* SPDX-License-Identifier: ISC */
/*
 * The kit that holds any driver to daemon/driver.h. It plays the core for one driver in one process: a loop,
 * an adapter's slow thread, the services of driver.h, and for a device whose work runs in the client, the
 * client.
 *
 *   kit.c        the core that is played
 *   bytes.c      works, buffers, and bytes moved in and out of them
 *   promises.c   the promises about work and memory
 *   lifecycle.c  the promises about devices, room, failures, faults and the end
 *   property.c   random submissions, compared with an interpreter that runs them one by one
 *   own-*.c      what one driver promises beyond driver.h
 *   subjects.c   the drivers under test
 *   mutants.c    drivers that break a promise on purpose, which the kit must refuse
 *   main.c       kit SUBJECT | kit --refuses MUTANT
 *
 * A promise is a function that opens what it needs, uses it, and says kit_broken() where the driver did not
 * keep it. Nothing of the kit aborts on a driver's error, so that one broken promise does not hide the next.
 */
#ifndef KIT_H
#define KIT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "daemon/driver.h"

#define KIT_DEVICES_MAX 4
#define KIT_RUNS_MAX    8192

struct kit;

/* Something that a driver promises. */
struct kit_promise {
        const char *name; /* NULL ends a list */
        void (*check)(struct kit *kit);
};

/* A driver under test. */
struct kit_subject {
        const char *name;
        const struct rig_driver *driver;
        const char *adapter; /* as discover() names it */
        const char *instance, *options;
        const char *image;      /* one with the entries "store", "fail" and "nop", or NULL */
        uint64_t patience_usec; /* how long work may take before it counts as never done */
        void (*fault)(struct rig_driver_device *device); /* makes a device fault, or NULL */
        /* lets a device run up to a value, where it waits to be told; or NULL */
        void (*release)(struct rig_driver_device *device, uint64_t value);
        const struct kit_promise *own; /* what this driver promises beyond driver.h, or NULL */
};

struct kit_run;

/* An adapter, as the core has it: with its slow thread. */
struct rig_adapter {
        struct rig_driver_adapter side; /* the driver's */
        struct kit *kit;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct rig_list queue; /* struct rig_slow_job: to run */
        struct rig_list done;  /* run, and not yet done() */
        bool quit;
};

/* A device, as the core has it. */
struct rig_device {
        struct rig_driver_device side; /* the driver's */
        struct kit *kit;
        bool open, stopped;
        int descriptor;
        atomic_bool kicked;

        uint64_t submitted, handed, reached;
        struct kit_run *runs; /* [value - 1] */
        bool faulted;
        struct rig_error fault;
        /* called for each value when poll() has told it */
        void (*on_reached)(struct rig_device *device, uint64_t value, void *userdata);
        void *userdata;

        bool handing;               /* hand_over() is on the stack */
        bool ran;                   /* the driver says that hand_over() ran its submission */
        uint64_t ready, client_ran; /* of a client device: told to, and did */
        bool client_slow;           /* the client does nothing */
};

/* What the core remembers of a run. */
struct kit_run {
        const struct rig_driver_work *work;
        struct rig_filled slots[RIG_SLOTS_MAX];
        int failed;
        char failure[RIG_ERROR_TEXT_MAX];
        bool client_fails;
};

struct kit {
        const struct kit_subject *subject;
        const char *promise;  /* which is being checked */
        unsigned broken;      /* times in all */
        unsigned broken_here; /* times by the promise being checked */
        bool quiet;
        struct rig_adapter adapter;
        struct rig_device devices[KIT_DEVICES_MAX];
        int wake; /* an eventfd */
        uint64_t random;
        struct {
                unsigned calls, slept;
        } prompt; /* prompt calls, and those that gave the processor away */
};

/* ---------------------------------------------------------------- running (kit.c) */

extern const struct kit_promise kit_promises[];   /* promises.c */
extern const struct kit_promise kit_lifecycle[];  /* lifecycle.c */
extern const struct kit_promise kit_properties[]; /* property.c */

/* Whether the kernel said what a file's storage has, in a_sync_brings_earlier_writes_to_storage. */
extern bool kit_saw_storage;

/*
 * Holds a subject to the promises, or to the one of that name. Return: how many were broken, or
 * KIT_UNAVAILABLE where the adapter says that it is.
 */
#define KIT_UNAVAILABLE UINT32_MAX
unsigned kit_hold(const struct kit_subject *subject, const char *promise, bool quiet);

void kit_broken(struct kit *kit, const char *fmt, ...) _printf_(2, 3);
#define kit_expect(kit, cond, ...) ((cond) ? true : (kit_broken(kit, __VA_ARGS__), false))

uint64_t kit_draw(struct kit *kit, uint64_t below);

/* ---------------------------------------------------------------- devices */

/* Opens a device with the subject's options, or others. NULL, and a broken promise, where it does not open.
 */
struct rig_device *kit_open(struct kit *kit);
int kit_try_open(struct kit *kit, const char *options, struct rig_device **ret_device, struct rig_error *e);
/* Stops a device that is lost or has work left, and closes it. */
void kit_close(struct rig_device *device);
/* Return: what stop() did. After -EINPROGRESS the adapter is reset, where it can be. */
int kit_stop(struct rig_device *device);

uint32_t kit_flags(const struct rig_device *device);
/* A queue that runs `kinds`, the `nth` of them counting round; -1: none does. */
int kit_queue(const struct rig_device *device, uint32_t kinds, unsigned nth);

/* ---------------------------------------------------------------- runs */

/* Hands a run over once there is room. Return: its value; 0, and a broken promise, where it cannot. */
uint64_t kit_submit(
        struct rig_device *device, const struct rig_driver_work *work, const struct rig_filled *slots);
uint64_t kit_submit_after(struct rig_device *device, const struct rig_driver_work *work,
        const struct rig_filled *slots, const struct rig_queue_wait *waits, uint32_t n_waits);
/* 1, 0 or negative, as room() says. */
int kit_room(struct rig_device *device, const struct rig_driver_work *work, const struct rig_filled *slots);
void kit_commit(struct rig_device *device);
/* Waits until a value is reached. False, and a broken promise, where it is not within the subject's
 * patience. */
bool kit_wait(struct rig_device *device, uint64_t value);
/* As kit_wait(), and no promise is broken where it is not, within `usec`. */
bool kit_reaches(struct rig_device *device, uint64_t value, uint64_t usec);
/* One turn of the loop, which may wait up to `usec` for something to do. */
void kit_turn(struct kit *kit, uint64_t usec);
/* Commits, and waits for all of it. */
bool kit_finish(struct rig_device *device);
/* Waits until the device faults. */
bool kit_faults(struct rig_device *device);

/* Calls of one device's ops on the slow thread. */
int kit_alloc(struct rig_device *device, uint64_t bytes, enum rig_memory_kind kind, struct rig_region *ret);
int kit_adopt(struct rig_device *device, int fd, struct rig_region *ret, struct rig_error *e);
int kit_borrow(struct rig_device *device, const struct rig_region *of, struct rig_region *ret);
void kit_free(struct kit *kit, struct rig_region *region);
int kit_image_load(struct rig_device *device, const void *image, size_t bytes, struct rig_driver_image *ret,
        struct rig_error *e);
int kit_image_entry(
        struct rig_device *device, const struct rig_driver_image *image, const char *name, uint64_t *ret);
void kit_image_unload(struct rig_device *device, struct rig_driver_image *image);

/* ---------------------------------------------------------------- bytes (bytes.c) */

/* A range of memory that a device's work can name. */
struct kit_buffer {
        struct rig_device *device;
        struct rig_region region;
        struct rig_region lent; /* what it was borrowed from, or none */
        bool is_file, is_host;  /* is_host: the kit's own host memory */
        int own_fd;             /* the kit's own descriptor of a file */
        uint64_t offset, bytes; /* in the region */
};

/* A buffer of the device's kind: its memory, or on a device of files, a file. Holds zeros. */
bool kit_buffer_near(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret);
/* One of another kind, that its copies reach: host memory, named or borrowed. False: it has no such reach.
 */
bool kit_buffer_far(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret);
/* The memory that a copy from or to a near buffer has at its other end: near, but for a device of files. */
bool kit_buffer_other(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret);
/* A near or far one whose bytes kit_get() sees without work of the device. */
bool kit_buffer_visible(struct rig_device *device, uint64_t bytes, uint64_t offset, struct kit_buffer *ret);
void kit_buffer_free(struct kit_buffer *buffer);
void kit_put(const struct kit_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes);
void kit_get(const struct kit_buffer *buffer, uint64_t offset, void *data, uint64_t bytes);
/* Random bytes, and what they were. */
void kit_scribble(struct kit *kit, const struct kit_buffer *buffer, uint8_t *ret_data);
struct rig_filled kit_filled(const struct kit_buffer *buffer);

/* Works. The parts' slots are the caller's to fill. Return: the part's index. */
struct rig_driver_work *kit_work(uint32_t n_slots);
uint32_t kit_part_copy(struct rig_driver_work *work, int queue, uint32_t after, uint32_t dst,
        uint64_t dst_offset, uint32_t src, uint64_t src_offset, uint64_t bytes);
uint32_t kit_part_fill(struct rig_driver_work *work, int queue, uint32_t after, uint32_t dst,
        uint64_t offset, uint64_t bytes, uint32_t pattern);
uint32_t kit_part_sync(struct rig_driver_work *work, int queue, uint32_t after, uint32_t dst);
/* Takes ownership of nothing: params and patches are copied. */
uint32_t kit_part_launch(struct rig_driver_work *work, int queue, uint32_t after,
        struct rig_driver_image *image, uint64_t entry, const void *params, uint32_t params_bytes,
        const struct rig_patch *patches, uint32_t n);
/* Lets the driver prepare it, which ends its making. */
bool kit_prepare(struct rig_device *device, struct rig_driver_work *work);
void kit_work_free(struct rig_device *device, struct rig_driver_work *work);

/* Runs one part on the host, for the client that the kit plays. */
void kit_interpret(const struct rig_part *part, const struct rig_filled *slots);

#endif
