/* SPDX-License-Identifier: ISC */
/*
 * rigctl firmware fetch: fills rig's own folder with a vendor's images that are nowhere.
 *
 * What is on its way to NAME is .NAME.part beside it. It takes its name by rename(2), after all of it was
 * read back, had the pinned length and digest, and was synced: so there is never anything under the name but
 * the image, or what was there before. A part that is left by whatever ended the last fetch, a crash
 * included, is gone on with; one that turns out to be the start of something else is fetched once more from
 * its start. The part is locked while it is written, so two fetches do not write into one another's.
 *
 * Nothing else is written, and nothing is removed but parts that are wrong.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tools/rigctl/download.h"
#include "tools/rigctl/firmware.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"

#define TRIES_MAX     20 /* transfers that brought something, for one image */
#define LOCK_TRIES    8
#define PROGRESS_USEC (RIG_USEC_PER_SEC / 10)

struct fetch {
        struct ctl_firmware *f;
        const struct rig_firmware_image *image;
        char *folder, *path, *part; /* of the image */
        char *url;
        int fd; /* of the part, locked */
        uint64_t deadline_usec;

        /* progress, on a terminal */
        bool shown;
        uint64_t start_usec, start_bytes, shown_usec;
};

static void fetch_deinit(struct fetch *t)
{
        free(t->folder);
        free(t->path);
        free(t->part);
        free(t->url);
        t->fd = rig_close(t->fd);
}

/* ---------------------------------------------------------------- progress */

static void show_progress(void *userdata, uint64_t bytes)
{
        struct fetch *t = userdata;
        uint64_t now = rig_now_usec();
        _cleanup_(rig_freep) char *have = NULL, *all = NULL, *rate = NULL;
        double seconds;

        if (now - t->shown_usec < PROGRESS_USEC)
                return;
        t->shown_usec = now;
        if (bytes < t->start_bytes) { /* it started over */
                t->start_bytes = bytes;
                t->start_usec = now;
        }
        seconds = (double)(now - t->start_usec) / (double)RIG_USEC_PER_SEC;
        have = ctl_bytes(bytes);
        all = ctl_bytes(t->image->bytes);
        rate = ctl_bytes(seconds > 0 ? (uint64_t)((double)(bytes - t->start_bytes) / seconds) : 0);
        fprintf(stderr, "\r%s: %s of %s, %s/s\033[K", t->image->name, have, all, rate);
        t->shown = true;
}

static void end_progress(struct fetch *t)
{
        if (t->shown)
                fputs("\r\033[K", stderr);
        t->shown = false;
}

/* Says what went wrong, after the progress is off the line. Return: `error`. */
static int _printf_(3, 4) fail(struct fetch *t, int error, const char *fmt, ...)
{
        _cleanup_(rig_freep) char *text = NULL;
        _cleanup_(rig_freep) char *clean = NULL;
        va_list ap;

        va_start(ap, fmt);
        if (vasprintf(&text, fmt, ap) < 0)
                ctl_out_of_memory();
        va_end(ap);
        end_progress(t);
        clean = ctl_text_clean(text);
        ctl_fail(CTL_FAILED, "%s", clean);
        return error;
}

/* From here on, what fails returns -errno and has been said. */

/* ---------------------------------------------------------------- the part */

static int cannot_write(struct fetch *t, int error)
{
        bool denied = error == -EACCES || error == -EPERM;

        return fail(t, error, "cannot write %s: %s%s", t->part, strerror(-error),
                denied && t->f->ctl->where != CTL_USER
                        ? "; that is for root; with --user it is for a rigd of your own"
                        : "");
}

/* Makes the folder and those above it. */
static int make_folders(struct fetch *t)
{
        char *slash = t->folder;
        int r;

        while (slash) {
                slash = strchr(slash + 1, '/');
                if (slash)
                        *slash = '\0';
                r = mkdir(t->folder, 0755) < 0 && errno != EEXIST ? -errno : 0;
                if (slash)
                        *slash = '/';
                if (r < 0)
                        return cannot_write(t, r);
        }
        return 0;
}

/* Whether the part has its name still: who had it locked before may have given it the image's. */
static bool part_is_named(const struct fetch *t)
{
        struct stat a, b;

        return fstat(t->fd, &a) == 0 && lstat(t->part, &b) == 0 && a.st_dev == b.st_dev &&
               a.st_ino == b.st_ino;
}

static int open_part(struct fetch *t)
{
        struct stat st;

        for (int i = 0; i < LOCK_TRIES; i++) {
                t->fd = open(
                        t->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
                if (t->fd < 0 || fstat(t->fd, &st) < 0)
                        return cannot_write(t, -errno);
                if (!S_ISREG(st.st_mode))
                        return fail(t, -EINVAL, "cannot write %s: it is no regular file", t->part);
                if (flock(t->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
                        break;
                /* Where a file system has no locks, there is one fetch at a time by agreement alone. */
                if (part_is_named(t))
                        return 0;
                t->fd = rig_close(t->fd);
        }
        return fail(t, -EBUSY, "%s is being fetched by somebody else", t->image->name);
}

/* ---------------------------------------------------------------- one image */

/* The address of an image: the base, with the image's name before its query. */
static char *address(const char *base, const struct rig_firmware_image *image)
{
        size_t query = strcspn(base, "?"), n = query;

        while (n > 0 && base[n - 1] == '/')
                n--;
        return ctl_printf(
                "%.*s/%s%s", (int)n, base, image->upstream ? image->upstream : image->name, base + query);
}

/* Transfers until the part has the image's length. */
static int transfer(struct fetch *t)
{
        struct ctl_download download = {
                .url = t->url,
                .fd = t->fd,
                .bytes = t->image->bytes,
                .deadline_usec = t->deadline_usec,
                .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                .userdata = t,
        };
        struct rig_error e = RIG_ERROR_NULL;
        int r = -EAGAIN;

        for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++) {
                off_t before = lseek(t->fd, 0, SEEK_END);

                t->start_usec = rig_now_usec();
                t->start_bytes = (uint64_t)before;
                r = ctl_download(&download, &e);
                if (r == -EAGAIN && lseek(t->fd, 0, SEEK_END) == before)
                        break; /* it brought nothing */
        }
        if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
                return cannot_write(t, r);
        return r < 0 ? fail(t, r, "cannot fetch %s: %s", t->url, e.text) : 0;
}

static int give_name(struct fetch *t)
{
        _cleanup_(rig_closep) int folder = open(t->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (folder < 0 || fsync(t->fd) < 0 || rename(t->part, t->path) < 0 || fsync(folder) < 0)
                return cannot_write(t, -errno);
        end_progress(t);
        return 0;
}

/* Completes the part, and gives it its name where it is the image. */
static int complete(struct fetch *t)
{
        bool resumed = lseek(t->fd, 0, SEEK_END) > 0;

        for (;;) {
                _cleanup_(rig_freep) void *data = NULL;
                struct rig_error e = RIG_ERROR_NULL;
                int r = transfer(t);

                if (r < 0)
                        return r; /* and what came stays */
                r = rig_firmware_read(t->image, t->part, RIG_FIRMWARE_PLAIN, &data, &e);
                if (r == 0)
                        return give_name(t);
                if (r != -EBADMSG)
                        return fail(t, r, "%s: %s", t->part, e.text);
                if (ftruncate(t->fd, 0) < 0)
                        return cannot_write(t, -errno);
                if (!resumed)
                        return fail(t, r, "%s is not the image that is pinned: %s", t->url, e.text);
                resumed = false; /* what there was was no start of the image: once more, from there */
        }
}

static int fetch_image(struct fetch *t, const char *own, const char *from)
{
        const char *slash = strrchr(t->image->name, '/');
        size_t n = slash ? (size_t)(slash - t->image->name) : 0;
        int r;

        t->folder = ctl_printf("%s%s%.*s", own, n ? "/" : "", (int)n, t->image->name);
        t->path = ctl_printf("%s/%s", own, t->image->name);
        t->part = ctl_printf("%s/.%s.part", t->folder, slash ? slash + 1 : t->image->name);
        t->url = address(from, t->image);
        r = make_folders(t);
        if (r == 0)
                r = open_part(t);
        if (r == 0) {
                r = complete(t);
                if (r < 0 && lseek(t->fd, 0, SEEK_END) == 0)
                        unlink(t->part); /* nothing to go on with */
        }
        if (r == 0) {
                _cleanup_(rig_freep) char *clean = ctl_text_clean(t->path);

                printf("%s: fetched\n", clean);
        }
        return r;
}

/* ---------------------------------------------------------------- a vendor's */

/* Whether the next image would fare as badly. */
static bool is_final(int error)
{
        return error < 0 && error != -ENOENT && error != -EBADMSG && error != -EBUSY && error != -EIO;
}

static int fetch_all(struct ctl_firmware *f, const char *own, const char *from)
{
        uint64_t deadline_usec = rig_deadline_usec(f->ctl->time_usec);
        int status = CTL_DONE, r = 0;

        for (size_t i = 0; i < f->table.n && !is_final(r); i++) {
                _cleanup_(fetch_deinit) struct fetch t = {
                        .f = f, .image = &f->table.images[i], .fd = -EBADF, .deadline_usec = deadline_usec};
                _cleanup_(rig_firmware_deinit) struct rig_firmware found = {0};
                struct rig_error e = RIG_ERROR_NULL;

                if (!ctl_firmware_wanted(f, t.image))
                        continue;
                r = rig_firmware_find(t.image, &f->folders, NULL, &found, &e);
                if (r == 0) {
                        _cleanup_(rig_freep) char *clean = ctl_text_clean(found.path);

                        printf("%s: there already\n", clean);
                } else if (r == -ENOENT)
                        r = fetch_image(&t, own, from);
                else
                        fail(&t, r, "%s", e.text);
                if (r < 0)
                        status = r == -EACCES || r == -EPERM ? CTL_DENIED : CTL_FAILED;
                fflush(stdout);
        }
        return status;
}

int ctl_firmware_fetch(struct ctl_firmware *f)
{
        const char *from = f->ctl->from ? f->ctl->from : CTL_FIRMWARE_FROM;
        _cleanup_(rig_freep) char *own = NULL;
        struct rig_error e = RIG_ERROR_NULL;
        int status;

        if (!f->vendor)
                return ctl_fail(CTL_WRONG, "firmware fetch needs a vendor: rigctl firmware fetch VENDOR");
        if ((strncmp(from, "http://", 7) != 0 && strncmp(from, "https://", 8) != 0) || strchr(from, '#')) {
                _cleanup_(rig_freep) char *clean = ctl_text_clean(from);

                return ctl_fail(CTL_WRONG, "--from: \"%s\" is no http or https address of a folder", clean);
        }
        if (rig_firmware_own_folder(f->ctl->where == CTL_USER, &own, &e) < 0)
                return ctl_fail(CTL_FAILED, "%s", e.text);
        if (ctl_download_init() < 0)
                return ctl_fail(CTL_FAILED, "libcurl does not start");
        if (f->ctl->where != CTL_USER)
                umask(022); /* rigd, which is not root, is to read it */
        status = fetch_all(f, own, from);
        ctl_download_deinit();
        return status;
}
