/* SPDX-License-Identifier: ISC */
/*
 * A profile: what every device did while a part of the program ran. Blocks of a file are read, put in upper
 * case and written, as named works on two devices; the program names what it does meanwhile. Afterwards it
 * reads what was recorded, and writes it as a trace that ui.perfetto.dev opens: profile.json, in this
 * folder.
 */
#include "check.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 8
#define BLOCK  4096
#define SLOTS  2 /* blocks under way at once */

static void make_upper(const struct rig_group *group, const void *data)
{
        char *text = (char *)(uintptr_t) * (const uint64_t *)data;
        int i;

        for (i = 0; i < BLOCK; i++)
                text[i] = (char)toupper((unsigned char)text[i]);
}

/* One work for each stage. Its name is what the profile calls its runs. */
static struct rig_work *copy_work(struct rig_device *device, const char *name)
{
        struct rig_work *work;

        check(rig_work_new(device, &work));
        check(rig_work_slot(work, RIG_WRITE));
        check(rig_work_slot(work, RIG_READ));
        check(rig_work_copy(work, 0, 0, 0, 1, 0, BLOCK));
        check(rig_work_set_name(work, name));
        check(rig_work_prepare(work));
        return work;
}

static struct rig_work *upper_work(struct rig_device *host)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        struct rig_launch launch = RIG_LAUNCH_INIT;
        struct rig_work *work;
        uint64_t address = 0;

        launch.function = make_upper;
        launch.params = &address;
        launch.params_bytes = sizeof(address);
        launch.patches = &patch;
        launch.n_patches = 1;
        check(rig_work_new(host, &work));
        check(rig_work_slot(work, RIG_READ_WRITE));
        check(rig_work_launch(work, 0, &launch));
        check(rig_work_set_name(work, "upper"));
        check(rig_work_prepare(work));
        return work;
}

/* Block i of both files, through one of the buffers in memory. */
static void submit_block(struct rig_work *works[3], struct rig_buffer *in, struct rig_buffer *out,
        struct rig_buffer *memory, uint64_t i)
{
        struct rig_buffer *from, *to;

        check(rig_buffer_view(in, i * BLOCK, BLOCK, &from));
        check(rig_buffer_view(out, i * BLOCK, BLOCK, &to));
        check(rig_submit(works[0], (struct rig_buffer *[]){memory, from}, 2, NULL, 0, NULL));
        check(rig_submit(works[1], &memory, 1, NULL, 0, NULL));
        check(rig_submit(works[2], (struct rig_buffer *[]){to, memory}, 2, NULL, 0, NULL));
        rig_buffer_unref(from);
        rig_buffer_unref(to);
}

static int file_of_text(void)
{
        char path[] = "rig-profile-XXXXXX", line[BLOCK];
        int i, fd = mkstemp(path);

        unlink(path);
        memset(line, 'r', sizeof(line));
        for (i = 0; i < BLOCKS; i++)
                if (write(fd, line, sizeof(line)) != (ssize_t)sizeof(line))
                        exit(1);
        return fd;
}

/* What was recorded of the stage: how often it ran, and what its runs moved. */
static void print_stage(struct rig_profile *profile, const char *name)
{
        struct rig_profile_event e = RIG_PROFILE_EVENT_INIT;
        uint64_t bytes = 0;
        int n = 0, ordered = 0;
        char device[64] = "";

        check(rig_profile_rewind(profile));
        while (check(rig_profile_next(profile, &e)) > 0) {
                if (e.kind != RIG_EVENT_RUN || strcmp(e.name, name) != 0)
                        continue;
                n++;
                bytes += e.copied_bytes;
                ordered += e.accepted_nsec <= e.begin_nsec && e.begin_nsec <= e.end_nsec;
                strcpy(device, e.device);
        }
        printf("%s, on %s: %d runs, %" PRIu64 " bytes%s\n", name, device, n, bytes,
                ordered == n ? "" : ", out of order");
}

static void print_spans(struct rig_profile *profile)
{
        struct rig_profile_event e = RIG_PROFILE_EVENT_INIT;

        check(rig_profile_rewind(profile));
        while (check(rig_profile_next(profile, &e)) > 0)
                if (e.kind == RIG_EVENT_SPAN)
                        printf("span %s%s\n", e.name, e.begin_nsec <= e.end_nsec ? "" : " without an end");
}

int main(void)
{
        struct rig *rig;
        struct rig_profile *profile;
        struct rig_device *disk, *host;
        struct rig_buffer *in, *out, *memory[SLOTS];
        struct rig_work *works[3];
        int i, fds[2] = {file_of_text(), file_of_text()};
        char last = 0;

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "disk", &disk));
        check(rig_device_open(rig, "host", &host));
        check(rig_buffer_adopt(disk, fds[0], 0, BLOCKS * BLOCK, &in));
        check(rig_buffer_adopt(disk, fds[1], 0, BLOCKS * BLOCK, &out));
        for (i = 0; i < SLOTS; i++)
                check(rig_buffer_new(host, BLOCK, RIG_MEMORY_DEVICE, &memory[i]));
        works[0] = copy_work(disk, "load");
        works[1] = upper_work(host);
        works[2] = copy_work(disk, "store");

        check(rig_profile_start(rig, 0, &profile));
        check(rig_profile_begin(profile, "the file"));
        check(rig_profile_begin(profile, "submit"));
        for (i = 0; i < BLOCKS; i++)
                submit_block(works, in, out, memory[i % SLOTS], (uint64_t)i);
        check(rig_profile_end(profile));
        check(rig_profile_begin(profile, "wait"));
        check(rig_buffer_wait(out, RIG_READ, RIG_INFINITY));
        check(rig_profile_end(profile));
        check(rig_profile_stop(profile)); /* which ends "the file" too */

        print_stage(profile, "load");
        print_stage(profile, "upper");
        print_stage(profile, "store");
        print_spans(profile);
        check(rig_profile_write(profile, "profile.json"));
        check(rig_buffer_read(out, BLOCKS * BLOCK - 1, &last, 1));
        printf("dropped: %" PRIu64 "; the file ends with %c\n", rig_profile_dropped(profile), last);

        rig_profile_unref(profile);
        for (i = 0; i < 3; i++)
                rig_work_unref(works[i]);
        for (i = 0; i < SLOTS; i++)
                rig_buffer_unref(memory[i]);
        rig_buffer_unref(in);
        rig_buffer_unref(out);
        rig_device_unref(host);
        rig_device_unref(disk);
        rig_unref(rig);
        return last != 'R';
}
