/* SPDX-License-Identifier: ISC */
/*
 * Finds pinned images (firmware/find.h).
 *
 * Memory is bounded by what is pinned before a byte is read: a plain file is read only if it has the pinned
 * length, a packed one only if it is not longer than what packs nothing could be, and it is unpacked into a
 * block of the pinned length. Only regular files are read, so nothing here waits for a fifo or a device.
 *
 * Not done here: nothing is fetched, and nothing is kept between two calls. An image is read once for each
 * boot of a GPU.
 */
#include "firmware/find.h"

#include <fcntl.h>
#include <nettle/sha2.h>
#include <nettle/version.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What packs nothing is longer than its content by less than one byte in 128, and by heads and checks. */
#define PACKED_BYTES_MAX(bytes) ((bytes) + (bytes) / 128 + 65536)

static const char *const suffixes[RIG_FIRMWARE_PACKING_MAX] = {
        [RIG_FIRMWARE_PLAIN] = "",
        [RIG_FIRMWARE_ZST] = ".zst",
        [RIG_FIRMWARE_XZ] = ".xz",
};

/* Since nettle 4, a digest's length is not said. */
#if NETTLE_VERSION_MAJOR >= 4
#define SHA256_DIGEST(ctx, digest) sha256_digest(ctx, digest)
#else
#define SHA256_DIGEST(ctx, digest) sha256_digest(ctx, SHA256_DIGEST_SIZE, digest)
#endif

static void sha256_digits(const void *data, size_t bytes, char ret[static RIG_FIRMWARE_DIGITS + 1])
{
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx ctx;

        sha256_init(&ctx);
        sha256_update(&ctx, bytes, data);
        SHA256_DIGEST(&ctx, digest);
        for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++)
                snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* ---------------------------------------------------------------- one file */

/* Reads what `st` says is in it. */
static int read_all(int fd, size_t bytes, void **ret_data, struct rig_error *e)
{
        _cleanup_(rig_freep) uint8_t *data = malloc(bytes + 1);
        size_t n = 0;

        if (!data)
                return rig_error_set(e, -ENOMEM, "no memory for its %zu bytes", bytes);
        while (n < bytes + 1) { /* the one more tells that it grew */
                ssize_t got = read(fd, data + n, bytes + 1 - n);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return rig_error_set(e, -errno, "it cannot be read: %s", strerror(errno));
                if (got == 0)
                        break;
                n += (size_t)got;
        }
        if (n != bytes)
                return rig_error_set(e, -EBADMSG, "it changed while it was read");
        *ret_data = RIG_STEAL(data);
        return 0;
}

static int check_length(const struct rig_firmware_image *image, enum rig_firmware_packing packing,
        const struct stat *st, struct rig_error *e)
{
        uint64_t bytes = (uint64_t)st->st_size;

        if (!S_ISREG(st->st_mode))
                return rig_error_set(e, -EINVAL, "it is no regular file");
        if (packing == RIG_FIRMWARE_PLAIN && bytes != image->bytes)
                return rig_error_set(e, bytes > image->bytes ? -EFBIG : -EBADMSG,
                        "it has %llu bytes, not %llu", (unsigned long long)bytes,
                        (unsigned long long)image->bytes);
        if (packing != RIG_FIRMWARE_PLAIN && bytes > PACKED_BYTES_MAX(image->bytes))
                return rig_error_set(e, -EFBIG, "it has %llu bytes, more than any packing of %llu",
                        (unsigned long long)bytes, (unsigned long long)image->bytes);
        return 0;
}

/* Puts what is unpacked in the place of the packed `*data`. */
static int unpack(
        size_t bytes, enum rig_firmware_packing packing, size_t n_out, void **data, struct rig_error *e)
{
        _cleanup_(rig_freep) void *packed = *data;
        int r;

        *data = malloc(n_out);
        if (!*data)
                return rig_error_set(e, -ENOMEM, "no memory for its %zu bytes", n_out);
        r = rig_firmware_unpack(packing, packed, bytes, *data, n_out, e);
        return r;
}

int rig_firmware_read(const struct rig_firmware_image *image, const char *path,
        enum rig_firmware_packing packing, void **ret_data, struct rig_error *e)
{
        _cleanup_(rig_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        char digits[RIG_FIRMWARE_DIGITS + 1];
        _cleanup_(rig_freep) void *data = NULL;
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return rig_error_set(e, -errno, "it cannot be read: %s", strerror(errno));
        r = check_length(image, packing, &st, e);
        if (r == 0)
                r = read_all(fd, (size_t)st.st_size, &data, e);
        if (r == 0 && packing != RIG_FIRMWARE_PLAIN)
                r = unpack((size_t)st.st_size, packing, image->bytes, &data, e);
        if (r < 0)
                return r;
        sha256_digits(data, image->bytes, digits);
        if (strcmp(digits, image->sha256) != 0)
                return rig_error_set(e, -EBADMSG, "its SHA-256 is %s, not %s", digits, image->sha256);
        *ret_data = RIG_STEAL(data);
        return 0;
}

void rig_firmware_deinit(struct rig_firmware *firmware)
{
        free(firmware->data);
        free(firmware->path);
        *firmware = (struct rig_firmware){0};
}

/* ---------------------------------------------------------------- all places */

void rig_firmware_remarks_deinit(struct rig_firmware_remarks *remarks)
{
        for (size_t i = 0; i < remarks->n; i++)
                free(remarks->items[i].path);
        free(remarks->items);
        *remarks = (struct rig_firmware_remarks){0};
}

/* Consumes `path`. */
static int remark(struct rig_firmware_remarks *remarks, char *path, const struct rig_error *why)
{
        struct rig_firmware_remark *items =
                realloc(remarks->items, (remarks->n + 1) * sizeof(*remarks->items));

        if (!items) {
                free(path);
                return -ENOMEM;
        }
        remarks->items = items;
        items[remarks->n++] = (struct rig_firmware_remark){path, *why};
        return 0;
}

/* Return: 0: it is there; 1: it is not; -ENOMEM. */
static int look(const struct rig_firmware_image *image, const char *folder,
        enum rig_firmware_packing packing, struct rig_firmware_remarks *remarks, struct rig_firmware *ret)
{
        _cleanup_(rig_freep) char *path = NULL;
        struct rig_error why = RIG_ERROR_NULL;
        void *data;
        int r;

        if (asprintf(&path, "%s/%s%s", folder, image->name, suffixes[packing]) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = rig_firmware_read(image, path, packing, &data, &why);
        if (r == -ENOMEM)
                return r;
        if (r == -ENOENT || r == -ENOTDIR)
                return 1;
        if (r < 0) {
                r = remark(remarks, RIG_STEAL(path), &why);
                return r < 0 ? r : 1;
        }
        *ret = (struct rig_firmware){data, image->bytes, RIG_STEAL(path), packing};
        return 0;
}

static int missing(const struct rig_firmware_image *image, const struct rig_firmware_folders *folders,
        const struct rig_firmware_remarks *remarks, struct rig_error *e)
{
        char places[RIG_ERROR_TEXT_MAX] = "";
        size_t n = 0;

        for (size_t i = 0; i < folders->n && n < sizeof(places); i++)
                n += (size_t)snprintf(
                        places + n, sizeof(places) - n, "%s%s", i ? ", " : "", folders->paths[i]);
        return rig_error_set(e, -ENOENT, "firmware %s is missing: SHA-256 %s, looked for in %s%s%s",
                image->name, image->sha256, folders->n ? places : "no folder",
                remarks->n ? "; not it: " : "", remarks->n ? remarks->items[0].path : "");
}

static int find(const struct rig_firmware_image *image, const struct rig_firmware_folders *folders,
        struct rig_firmware_remarks *remarks, struct rig_firmware *ret)
{
        int r = 1;

        for (size_t i = 0; i < folders->n && r == 1; i++)
                for (int packing = 0; packing < RIG_FIRMWARE_PACKING_MAX && r == 1; packing++)
                        r = look(image, folders->paths[i], (enum rig_firmware_packing)packing, remarks, ret);
        return r;
}

int rig_firmware_find(const struct rig_firmware_image *image, const struct rig_firmware_folders *folders,
        struct rig_firmware_remarks *ret_remarks, struct rig_firmware *ret, struct rig_error *e)
{
        _cleanup_(rig_firmware_remarks_deinit) struct rig_firmware_remarks remarks = {0};
        int r = find(image, folders, &remarks, ret);

        if (r < 0)
                return rig_error_set(e, r, "no memory to read firmware %s", image->name);
        if (r == 1)
                r = missing(image, folders, &remarks, e);
        if (ret_remarks) {
                *ret_remarks = remarks;
                remarks = (struct rig_firmware_remarks){0};
        }
        return r;
}
