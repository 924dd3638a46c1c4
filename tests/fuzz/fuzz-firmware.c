/* SPDX-License-Identifier: ISC */
/*
 * Any bytes, as a packed image and as a table of images. What may be said of them, whatever they are:
 *
 *   - unpacking writes into the room it was given alone, and needs no more memory than it promises;
 *   - it says one of the errors that unpack.h lists, with a sentence; and twice the same;
 *   - a file of them is no image, since its digest is not the pinned one;
 *   - a table that is read has entries that are well described, each once.
 *
 * The first byte says which it is, the second how much room there is. The room is a block of its own, so
 * that a sanitizer sees a write past its end; where there is no sanitizer, the address space is limited
 * instead.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "firmware/find.h"
#include "firmware/table.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_MAX (UINT64_C(192) << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static void limit_memory(void)
{
        static bool limited;
        struct rlimit limit = {MEMORY_MAX, MEMORY_MAX};

        if (!limited && !SANITIZED)
                rig_assert(setrlimit(RLIMIT_AS, &limit) == 0);
        limited = true;
}

/* Return: what unpacking said, the same both times. */
static int unpack(enum rig_firmware_packing packing, const uint8_t *data, size_t size, size_t room)
{
        uint8_t *out = malloc(room), *again = malloc(room);
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        rig_assert(out && again);
        r = rig_firmware_unpack(packing, data, size, out, room, &e);
        rig_assert(r == 0 || r == -EFBIG || r == -EBADMSG);
        rig_assert(r == 0 || (e.code == r && e.text[0] != '\0'));
        rig_assert(rig_firmware_unpack(packing, data, size, again, room, NULL) == r);
        rig_assert(r < 0 || memcmp(out, again, room) == 0);
        free(out);
        free(again);
        return r;
}

/* As a file: it is refused, for its digest where it could be unpacked. */
static void check_file(
        enum rig_firmware_packing packing, const uint8_t *data, size_t size, size_t room, int r)
{
        static const char nothing[] = "0000000000000000000000000000000000000000000000000000000000000000";
        const struct rig_firmware_image image = {"acme", "gpu1", "a", NULL, "", NULL, room, nothing};
        _cleanup_(rig_closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
        struct rig_error e = RIG_ERROR_NULL;
        void *read_data = NULL;
        char path[64];

        rig_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        rig_assert(rig_firmware_read(&image, path, packing, &read_data, &e) < 0);
        rig_assert(!read_data);
        if (r == 0)
                rig_assert(strstr(e.text, nothing));
}

static void check_table(const uint8_t *data, size_t size)
{
        struct rig_firmware_table table = {0};
        struct rig_error e = RIG_ERROR_NULL;
        int r = rig_firmware_table_parse((const char *)data, size, &table, &e);

        rig_assert(r == 0 || r == -EINVAL || r == -E2BIG);
        rig_assert(r == 0 ? !e.text[0] : e.code == r && e.text[0]);
        for (size_t i = 0; i < table.n; i++) {
                rig_assert(rig_firmware_image_check(&table.images[i], NULL) == 0);
                rig_assert(rig_firmware_image_get(&table, table.images[i].name) == &table.images[i]);
                /* It leads nowhere but down. */
                rig_assert(table.images[i].name[0] != '/' && table.images[i].name[0] != '.');
                rig_assert(!strstr(table.images[i].name, "/."));
        }
        rig_firmware_table_deinit(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        enum rig_firmware_packing packing;
        uint8_t *copy;
        size_t room;
        int r;

        limit_memory();
        if (size < 2)
                return 0;
        packing = (enum rig_firmware_packing)(data[0] % (RIG_FIRMWARE_PACKING_MAX + 1));
        room = (size_t)1 << data[1] % 18;
        copy = malloc(size - 1); /* one more, so that there is a block also for none */
        rig_assert(copy);
        memcpy(copy, data + 2, size - 2);
        if (packing == RIG_FIRMWARE_PACKING_MAX) {
                check_table(copy, size - 2);
        } else {
                r = unpack(packing, copy, size - 2, room);
                check_file(packing, copy, size - 2, room, r);
        }
        free(copy);
        return 0;
}
