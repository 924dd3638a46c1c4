/* SPDX-License-Identifier: ISC */
/*
 * Reads tables of images (firmware/table.h). The words of a table stay where they are in a copy of its text,
 * cut by zero bytes; the entries point at them. An entry is as good as one of the pinned table or the whole
 * table is refused, with its line.
 */
#include "firmware/table.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_BYTES_MAX  (1u << 20)
#define IMAGES_MAX      1024
#define BLANKS          " \t\r"
#define DIGITS_OF_BYTES 10 /* that RIG_FIRMWARE_BYTES_MAX has */

/* Return: false where it is no number. One that is too large is left to rig_firmware_image_check(). */
static bool parse_bytes(const char *word, uint64_t *ret)
{
        size_t n = strlen(word);

        if (n == 0 || n > DIGITS_OF_BYTES || strspn(word, "0123456789") != n)
                return false;
        *ret = strtoull(word, NULL, 10);
        return true;
}

/* Return: 0; 1 where the line has no image; -EINVAL. */
static int parse_line(char *line, struct rig_firmware_image *ret, struct rig_error *e)
{
        char *words[7], *place = NULL;
        int n = 0;

        line[strcspn(line, "#")] = '\0';
        for (char *w = strtok_r(line, BLANKS, &place); w && n < 7; w = strtok_r(NULL, BLANKS, &place))
                words[n++] = w;
        if (n == 0)
                return 1;
        if (n < 5 || n > 6)
                return rig_error_set(e, -EINVAL, "it has %s than vendor, GPU, name, length and SHA-256",
                        n < 5 ? "less" : "more");
        *ret = (struct rig_firmware_image){
                .vendor = words[0],
                .gpu = words[1],
                .name = words[2],
                .upstream = n == 6 ? words[5] : NULL,
                .purpose = "",
                .sha256 = words[4],
        };
        if (!parse_bytes(words[3], &ret->bytes))
                return rig_error_set(e, -EINVAL, "\"%.40s\" is no length", words[3]);
        return rig_firmware_image_check(ret, e);
}

static int parse_lines(
        char *text, struct rig_firmware_table *table, struct rig_firmware_image *images, struct rig_error *e)
{
        struct rig_error why = RIG_ERROR_NULL;
        unsigned number = 1;
        int r;

        for (char *line = text, *next; line; line = next, number++) {
                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                if (table->n == IMAGES_MAX)
                        return rig_error_set(e, -E2BIG, "a table has at most %d images", IMAGES_MAX - 1);
                r = parse_line(line, &images[table->n], &why);
                if (r == 0 && rig_firmware_image_get(table, images[table->n].name))
                        r = rig_error_set(&why, -EINVAL, "%.120s is there twice", images[table->n].name);
                if (r < 0)
                        return rig_error_set(e, r, "line %u: %s", number, why.text);
                table->n += r == 0;
        }
        return 0;
}

int rig_firmware_table_parse(
        const char *text, size_t bytes, struct rig_firmware_table *ret_table, struct rig_error *e)
{
        _cleanup_(rig_firmware_table_deinit) struct rig_firmware_table table = {0};
        int r;

        if (bytes > TEXT_BYTES_MAX)
                return rig_error_set(e, -E2BIG, "a table of images has at most a megabyte");
        if (memchr(text, '\0', bytes))
                return rig_error_set(e, -EINVAL, "a table of images has no zero bytes");
        table.owned[0] = calloc(1, bytes + 1);
        table.owned[1] = calloc(IMAGES_MAX, sizeof(struct rig_firmware_image));
        if (!table.owned[0] || !table.owned[1])
                return rig_error_set(e, -ENOMEM, "no memory for a table of images");
        if (bytes)
                memcpy(table.owned[0], text, bytes);
        table.images = table.owned[1];
        r = parse_lines(table.owned[0], &table, table.owned[1], e);
        if (r < 0)
                return r;
        *ret_table = table;
        table = (struct rig_firmware_table){0};
        return 0;
}

int rig_firmware_table_read(const char *path, struct rig_firmware_table *ret_table, struct rig_error *e)
{
        _cleanup_(rig_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        _cleanup_(rig_freep) char *text = NULL;
        size_t n = 0;
        struct stat st;
        ssize_t got;

        if (fd < 0 || fstat(fd, &st) < 0)
                return rig_error_set(e, -errno, "%s", strerror(errno));
        if (!S_ISREG(st.st_mode))
                return rig_error_set(e, -EINVAL, "it is no regular file");
        text = malloc(TEXT_BYTES_MAX + 1);
        if (!text)
                return rig_error_set(e, -ENOMEM, "no memory for a table of images");
        while ((got = read(fd, text + n, TEXT_BYTES_MAX + 1 - n)) > 0)
                n += (size_t)got;
        if (got < 0)
                return rig_error_set(e, -errno, "%s", strerror(errno));
        return rig_firmware_table_parse(text, n, ret_table, e);
}

void rig_firmware_table_deinit(struct rig_firmware_table *table)
{
        free(table->owned[0]);
        free(table->owned[1]);
        *table = (struct rig_firmware_table){0};
}
