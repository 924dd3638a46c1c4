/* SPDX-License-Identifier: ISC */
/*
 * What the disk driver promises beyond driver.h: which descriptors it takes with which access, and what
 * becomes of copies that a file does not let through. A failing copy names its place and loses nothing.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "daemon/memory/closer.h"
#include "daemon/order/order.h"
#include "tests/kit/subjects.h"

#define MIB (UINT64_C(1) << 20)

/* A named file of some bytes, until scratch_remove(). */
static char scratch[256];

static int scratch_make(uint64_t bytes)
{
        const char *folder = getenv("TMPDIR");
        int fd;

        snprintf(scratch, sizeof(scratch), "%s/rig-disk-%d", folder ? folder : "/tmp", (int)getpid());
        fd = open(scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        rig_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
        return fd;
}

static void scratch_remove(void)
{
        unlink(scratch);
}

/* Adopts what `flags` opens, and expects an access or an error. Consumes `fd`. */
static void expect_adopted(struct rig_device *device, int fd, int want, const char *what)
{
        uint64_t deadline = rig_deadline_usec(10 * RIG_USEC_PER_SEC);
        struct rig_region region;
        struct rig_error e;
        int r;

        rig_assert(fd >= 0);
        r = kit_adopt(device, fd, &region, &e);
        kit_expect(device->kit, (r < 0 ? r : (int)region.access) == want, "%s: %d with access %u: %s", what,
                r, r < 0 ? 0 : region.access, r < 0 ? e.text : "");
        if (r < 0) {
                close(fd);
                return;
        }
        kit_expect(device->kit, !region.host && region.fd == fd, "%s: host %p, fd %d", what, region.host,
                region.fd);
        kit_free(device->kit, &region);
        /* A thread closes it that may wait for the file. */
        while (rig_foreign_waiting() && rig_now_usec() < deadline)
                usleep(1000);
        kit_expect(device->kit, fcntl(fd, F_GETFD) < 0, "%s: the descriptor is left open", what);
}

/* A file's access is how it was opened; what is no file, or could not keep an offset, is refused. */
static void files_are_adopted_as_they_were_opened(struct kit *kit)
{
        struct rig_device *device = kit_open(kit);
        int pipes[2], fd = scratch_make(10);

        if (!device)
                return;
        expect_adopted(device, fd, RIG_ACCESS_READ | RIG_ACCESS_WRITE, "a file to read and write");
        expect_adopted(device, open(scratch, O_RDONLY | O_CLOEXEC), RIG_ACCESS_READ, "a file to read");
        expect_adopted(device, open(scratch, O_WRONLY | O_CLOEXEC), RIG_ACCESS_WRITE, "a file to write");
        expect_adopted(device, open(scratch, O_RDONLY | O_APPEND | O_CLOEXEC), RIG_ACCESS_READ,
                "a file to read, O_APPEND");
        expect_adopted(
                device, open(scratch, O_WRONLY | O_APPEND | O_CLOEXEC), -EPERM, "a file to append to");
        expect_adopted(device, open(scratch, O_PATH | O_CLOEXEC), -EPERM, "a file's path");
        expect_adopted(device, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -EBADF, "a folder");
        expect_adopted(device, open("/dev/null", O_RDWR | O_CLOEXEC), -EBADF, "a character device");
        rig_assert(pipe2(pipes, O_CLOEXEC) == 0);
        expect_adopted(device, pipes[0], -EBADF, "a pipe");
        close(pipes[1]);
        scratch_remove();
        kit_close(device);
}

/* ---------------------------------------------------------------- copies that fail */

/* A device, a file and memory, and works that copy between them. */
struct stage {
        struct rig_device *device;
        struct rig_region file;
        struct kit_buffer memory;
        struct rig_driver_work *read, *write;
};

/* Consumes `fd`. */
static bool stage_init(struct stage *s, struct kit *kit, int fd, uint64_t bytes)
{
        struct rig_error e;

        *s = (struct stage){.device = kit_open(kit)};
        if (!s->device ||
                !kit_expect(kit, kit_adopt(s->device, fd, &s->file, &e) == 0, "no file: %s", e.text))
                return false;
        if (!kit_buffer_far(s->device, bytes, 0, &s->memory))
                return false;
        s->read = kit_work(2);
        kit_part_copy(s->read, 0, 0, 1, 0, 0, 0, RIG_WHOLE);
        s->write = kit_work(2);
        kit_part_copy(s->write, 0, 0, 0, 0, 1, 0, RIG_WHOLE);
        return true;
}

static void stage_deinit(struct stage *s)
{
        kit_work_free(s->device, s->read);
        kit_work_free(s->device, s->write);
        kit_buffer_free(&s->memory);
        kit_free(s->device->kit, &s->file);
        kit_close(s->device);
}

/* Copies `bytes` at a place in the file, and expects an error, or 0, and a sentence that has `place` in it.
 */
static void expect_copy(
        struct stage *s, bool write, uint64_t offset, uint64_t bytes, int error, uint64_t place)
{
        struct rig_filled slots[2] = {{&s->file, offset, bytes}, {&s->memory.region, 0, bytes}};
        uint64_t value = kit_submit(s->device, write ? s->write : s->read, slots);
        const struct kit_run *run = &s->device->runs[value - 1];
        char name[64];

        if (!value || !kit_finish(s->device))
                return;
        kit_expect(s->device->kit, run->failed == error,
                "%s of %" PRIu64 " bytes at %" PRIu64 " failed with %d, not %d: %s",
                write ? "a write" : "a read", bytes, offset, run->failed, error, run->failure);
        snprintf(name, sizeof(name), "byte %" PRIu64, place);
        if (error && place != UINT64_MAX)
                kit_expect(s->device->kit, strstr(run->failure, name), "\"%s\" does not name %s",
                        run->failure, name);
        kit_expect(s->device->kit, !s->device->faulted, "the device is lost");
}

/* A file that ends too early is an error of that copy, which says where it ends. */
static void a_short_file_is_an_error_of_its_copy(struct kit *kit)
{
        struct stage s;

        if (!stage_init(&s, kit, scratch_make(3 * MIB + 5), 4 * MIB))
                return;
        expect_copy(&s, false, 0, 3 * MIB + 5, 0, 0);
        expect_copy(&s, false, 0, 3 * MIB + 6, -ENODATA, 3 * MIB + 5);
        expect_copy(&s, false, MIB, 3 * MIB, -ENODATA, 3 * MIB + 5);
        expect_copy(&s, false, 5 * MIB, 10, -ENODATA, 5 * MIB);
        expect_copy(&s, false, 10, 100, 0, 0);
        rig_assert(truncate(scratch, 1000) == 0);
        expect_copy(&s, false, 900, 200, -ENODATA, 1000);
        expect_copy(&s, true, 900, 200, 0, 0); /* and grows when it is written */
        expect_copy(&s, false, 900, 200, 0, 0);
        scratch_remove();
        stage_deinit(&s);
}

/* What the descriptor does not admit the kernel refuses, whatever the core let through. */
static void read_only_files_refuse_writes(struct kit *kit)
{
        struct stage s;

        close(scratch_make(5000));
        if (!stage_init(&s, kit, open(scratch, O_RDONLY | O_CLOEXEC), 5000))
                return;
        expect_copy(&s, true, 3, 100, -EBADF, 3);
        expect_copy(&s, false, 3, 100, 0, 0);
        scratch_remove();
        stage_deinit(&s);
}

/* A write that the limits of files refuse fails with their error, and the next one is served. */
static void a_full_file_is_an_error_of_its_copy(struct kit *kit)
{
        struct rlimit old, low = {2 * MIB, RLIM_INFINITY};
        struct stage s;

        if (!stage_init(&s, kit, scratch_make(0), 4 * MIB))
                return;
        rig_assert(getrlimit(RLIMIT_FSIZE, &old) == 0);
        low.rlim_max = old.rlim_max;
        rig_assert(setrlimit(RLIMIT_FSIZE, &low) == 0);
        expect_copy(&s, true, 0, 3 * MIB, -EFBIG, 2 * MIB);
        expect_copy(&s, true, 0, 2 * MIB, 0, 0);
        rig_assert(setrlimit(RLIMIT_FSIZE, &old) == 0);
        expect_copy(&s, true, 0, 3 * MIB, 0, 0);
        scratch_remove();
        stage_deinit(&s);
}

/* Between two files, or two memories, a disk copies nothing, and says so. */
static void only_files_and_memory_are_copied(struct kit *kit)
{
        struct rig_filled slots[2];
        struct stage s;

        if (!stage_init(&s, kit, scratch_make(5000), 5000))
                return;
        for (unsigned files = 0; files < 2; files++) {
                uint64_t value;

                slots[0] = slots[1] = files ? (struct rig_filled){&s.file, 0, 100} : kit_filled(&s.memory);
                value = kit_submit(s.device, s.read, slots);
                if (value && kit_finish(s.device))
                        kit_expect(kit, s.device->runs[value - 1].failed == -EOPNOTSUPP, "it was copied");
        }
        expect_copy(&s, false, 0, 5000, 0, 0);
        scratch_remove();
        stage_deinit(&s);
}

/* A client may change its descriptor's flags at any time: its copies may fail then, and nothing else does.
 */
static void changed_flags_hurt_nobody(struct kit *kit)
{
        int fd = scratch_make(3 * MIB), own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        struct stage s;

        if (!stage_init(&s, kit, fd, 3 * MIB))
                return;
        rig_assert(fcntl(own, F_SETFL, O_NONBLOCK) == 0);
        expect_copy(&s, false, 0, 3 * MIB, 0, 0);
        expect_copy(&s, true, 7, 2 * MIB, 0, 0);
        rig_assert(fcntl(own, F_SETFL, O_APPEND) == 0);
        expect_copy(&s, true, 7, 100, 0, 0);
        kit_expect(kit, lseek(own, 0, SEEK_END) == (off_t)(3 * MIB + 100), "O_APPEND did not append");
        close(own);
        scratch_remove();
        stage_deinit(&s);
}

/* Any offset, any length: a file far larger than memory is reached at its far end. */
static void far_offsets_are_reached(struct kit *kit)
{
        uint64_t far = (UINT64_C(1) << 33) + 12345;
        uint8_t data[300], got[300];
        struct stage s;

        if (!stage_init(&s, kit, scratch_make(0), sizeof(data)))
                return;
        kit_scribble(kit, &s.memory, data);
        expect_copy(&s, true, far, sizeof(data), 0, 0);
        memset(got, 0, sizeof(got));
        kit_put(&s.memory, 0, got, sizeof(got));
        expect_copy(&s, false, far, sizeof(data), 0, 0);
        kit_get(&s.memory, 0, got, sizeof(got));
        kit_expect(kit, memcmp(got, data, sizeof(data)) == 0, "the bytes differ");
        scratch_remove();
        stage_deinit(&s);
}

/* After a part fails, no later part of its run starts, and the first failure in the work's order is the one
 * told. */
static void the_first_failure_is_told(struct kit *kit)
{
        struct rig_driver_work *work = kit_work(3);
        uint8_t mark = 0x66, got = 0;
        struct rig_filled slots[3];
        struct stage s;
        uint64_t value;

        if (!stage_init(&s, kit, scratch_make(100), 5000))
                return;
        kit_put(&s.memory, 4000, &mark, 1);
        slots[0] = (struct rig_filled){&s.file, 0, 100};
        slots[1] = (struct rig_filled){&s.file, 1000, 100}; /* behind the end */
        slots[2] = (struct rig_filled){&s.memory.region, 0, 5000};
        kit_part_copy(work, 0, 0, 2, 0, 0, 0, 100);
        kit_part_copy(work, 1, 1, 2, 200, 1, 0, 100);
        kit_part_copy(work, 2, 2, 2, 4000, 0, 0, 100);
        value = kit_submit(s.device, work, slots);
        if (value && kit_finish(s.device)) {
                const char *text = s.device->runs[value - 1].failure;

                kit_expect(kit, strncmp(text, "part 1: ", 8) == 0, "\"%s\" is not of part 1", text);
                kit_get(&s.memory, 4000, &got, 1);
                kit_expect(kit, got == mark, "a part ran after one it follows had failed");
        }
        kit_work_free(s.device, work);
        scratch_remove();
        stage_deinit(&s);
}

const struct kit_promise kit_own_disk[] = {
        {"files_are_adopted_as_they_were_opened", files_are_adopted_as_they_were_opened},
        {"a_short_file_is_an_error_of_its_copy", a_short_file_is_an_error_of_its_copy},
        {"read_only_files_refuse_writes", read_only_files_refuse_writes},
        {"a_full_file_is_an_error_of_its_copy", a_full_file_is_an_error_of_its_copy},
        {"only_files_and_memory_are_copied", only_files_and_memory_are_copied},
        {"changed_flags_hurt_nobody", changed_flags_hurt_nobody},
        {"far_offsets_are_reached", far_offsets_are_reached},
        {"the_first_failure_is_told", the_first_failure_is_told},
        {NULL, NULL},
};
