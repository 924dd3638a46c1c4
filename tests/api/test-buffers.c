/* SPDX-License-Identifier: ISC */
/* Buffers: memory, views, adopted bytes, copies between any two devices, and sharing. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/api/api.h"

#define BIG (9u << 20) /* more than the staging slots hold at once */

static struct rig *rig;
static struct rig_device *m;

static void open_all(void)
{
        rig = test_connect();
        OK(rig_device_open(rig, "memory:M", &m));
}

static void close_all(void)
{
        rig_device_unref(m);
        rig_unref(rig);
}

static struct rig_buffer *new_buffer(struct rig_device *device, uint64_t bytes)
{
        struct rig_buffer *b;

        OK(rig_buffer_new(device, bytes, RIG_MEMORY_DEVICE, &b));
        return b;
}

static uint8_t *pattern(size_t bytes, uint32_t seed)
{
        uint8_t *p = malloc(bytes);

        CHECK(p);
        for (size_t i = 0; i < bytes; i++)
                p[i] = test_byte(i, seed);
        return p;
}

static bool holds(struct rig_buffer *b, uint64_t offset, size_t bytes, uint32_t seed, uint64_t from)
{
        uint8_t *p = malloc(bytes);
        bool same = true;

        CHECK(p);
        OK(rig_buffer_read(b, offset, p, bytes));
        for (size_t i = 0; i < bytes && same; i++)
                same = p[i] == test_byte(from + i, seed);
        free(p);
        return same;
}

static void memory_starts_as_zeros_and_keeps_what_is_written(void)
{
        struct rig_buffer *b;
        uint8_t bytes[5] = "xxxx";

        open_all();
        b = new_buffer(m, 5);
        CHECK(rig_buffer_bytes(b) == 5 && rig_buffer_device(b) == m);
        OK(rig_buffer_read(b, 0, bytes, 5));
        CHECK(memcmp(bytes, "\0\0\0\0\0", 5) == 0);
        OK(rig_buffer_write(b, 0, "hello", 5));
        OK(rig_buffer_read(b, 0, bytes, 5));
        CHECK(memcmp(bytes, "hello", 5) == 0);
        CHECK(rig_buffer_ref(b) == b && rig_buffer_unref(b) == NULL && rig_buffer_unref(NULL) == NULL);
        rig_buffer_unref(b);
        close_all();
}

static void ranges_outside_are_refused(void)
{
        struct rig_buffer *b, *view;
        char bytes[8];

        open_all();
        b = new_buffer(m, 8);
        CHECK_RETURNS(-ERANGE, rig_buffer_write(b, 1, "12345678", 8));
        CHECK_RETURNS(-ERANGE, rig_buffer_read(b, UINT64_MAX, bytes, 2));
        CHECK_RETURNS(-ERANGE, rig_buffer_view(b, 8, 1, &view));
        CHECK_RETURNS(-ERANGE, rig_buffer_fill(b, 4, 8, 0, NULL));
        CHECK_RETURNS(-ERANGE, rig_buffer_copy(b, 0, b, 4, 8, NULL));
        CHECK_RETURNS(-EINVAL, rig_buffer_fill(b, 2, 4, 0, NULL));
        CHECK_RETURNS(-EINVAL, rig_buffer_new(m, 8, 9, &view));
        CHECK_RETURNS(-EOPNOTSUPP, rig_buffer_sync(b, NULL));
        rig_buffer_unref(b);
        close_all();
}

static void a_buffer_of_no_bytes_is_one_everywhere(void)
{
        struct rig_buffer *b, *view, *other;
        struct rig_point p;
        void *address;

        open_all();
        b = new_buffer(m, 0);
        other = new_buffer(m, 16);
        OK(rig_buffer_map(b, &address));
        CHECK(address);
        OK(rig_buffer_view(b, 0, 0, &view));
        OK(rig_buffer_write(b, 0, NULL, 0));
        OK(rig_buffer_copy(b, 0, other, 16, 0, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_buffer_fill(b, 0, 0, 1, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_buffer_wait(b, RIG_WRITE, RIG_INFINITY));
        rig_buffer_unref(view);
        rig_buffer_unref(other);
        rig_buffer_unref(b);
        close_all();
}

static void views_are_the_same_memory(void)
{
        struct rig_buffer *b, *view, *inner;
        void *whole, *part;
        char bytes[4];

        open_all();
        b = new_buffer(m, 100);
        OK(rig_buffer_view(b, 10, 50, &view));
        OK(rig_buffer_view(view, 5, 4, &inner));
        CHECK(rig_buffer_bytes(inner) == 4);
        OK(rig_buffer_write(inner, 0, "view", 4));
        OK(rig_buffer_read(b, 15, bytes, 4));
        CHECK(memcmp(bytes, "view", 4) == 0);
        OK(rig_buffer_map(b, &whole));
        OK(rig_buffer_map(inner, &part));
        CHECK((char *)part == (char *)whole + 15);
        /* a view keeps the memory */
        rig_buffer_unref(b);
        rig_buffer_unref(view);
        OK(rig_buffer_read(inner, 0, bytes, 4));
        CHECK(memcmp(bytes, "view", 4) == 0);
        rig_buffer_unref(inner);
        close_all();
}

static void order_O6_the_host_follows_fills_and_copies(void)
{
        struct rig_device *slow;
        struct rig_buffer *a, *b;
        uint32_t *words;
        void *address;

        open_all();
        OK(rig_device_open(rig, "memory:S,async", &slow));
        a = new_buffer(slow, 1 << 20);
        b = new_buffer(slow, 1 << 20);
        for (uint32_t i = 1; i <= 20; i++) {
                OK(rig_buffer_fill(a, 0, 1 << 20, i, NULL));
                OK(rig_buffer_copy(b, 0, a, 0, 1 << 20, NULL));
                OK(rig_buffer_wait(b, RIG_READ, RIG_INFINITY));
                OK(rig_buffer_map(b, &address));
                words = address;
                CHECK(words[0] == i && words[(1 << 18) - 1] == i);
        }
        rig_buffer_unref(a);
        rig_buffer_unref(b);
        rig_device_unref(slow);
        close_all();
}

static void adopted_bytes_are_the_programs(void)
{
        int fd = test_memfd(8192), unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct rig_buffer *b, *again, *none;
        char bytes[6];
        uint8_t *map;

        open_all();
        map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(map != MAP_FAILED && unsealed >= 0 && ftruncate(unsealed, 4096) == 0);
        memcpy(map + 4097, "adopt", 5);
        OK(rig_buffer_adopt(m, fd, 4097, 100, &b));
        OK(rig_buffer_adopt(m, fd, 0, 8192, &again));
        OK(rig_buffer_read(b, 0, bytes, 5));
        CHECK(memcmp(bytes, "adopt", 5) == 0);
        /* two buffers over one memfd are one memory */
        OK(rig_buffer_fill(again, 0, 8192, 0x41414141, NULL));
        OK(rig_buffer_read(b, 0, bytes, 5));
        CHECK(memcmp(bytes, "AAAAA", 5) == 0);
        CHECK_RETURNS(-ERANGE, rig_buffer_adopt(m, fd, 8000, 193, &none));
        CHECK_RETURNS(-EPERM, rig_buffer_adopt(m, unsealed, 0, 10, &none));
        CHECK_RETURNS(-EBADF, rig_buffer_adopt(m, -1, 0, 10, &none));
        CHECK_RETURNS(-EBADF, rig_buffer_adopt(m, 1000, 0, 10, &none));
        OK(rig_sync(rig)); /* what was refused broke nothing */
        rig_buffer_unref(again);
        rig_buffer_unref(b);
        munmap(map, 8192);
        close(unsealed);
        close(fd);
        close_all();
}

static void files_are_read_and_written_at_any_byte(void)
{
        uint8_t *bytes = pattern(BIG, 1);
        int fd = test_file(bytes, 5000, O_RDWR);
        struct rig_buffer *file, *copy;
        struct rig_device *disk;
        struct rig_point p;
        struct stat st;

        open_all();
        OK(rig_device_open(rig, "disk", &disk));
        OK(rig_buffer_adopt(disk, fd, 0, BIG, &file));
        CHECK(holds(file, 1, 4999, 1, 1));
        OK(rig_buffer_write(file, 4999, bytes + 4999, BIG - 4999)); /* it grows */
        CHECK(fstat(fd, &st) == 0 && st.st_size == BIG);
        CHECK(holds(file, 3, BIG - 3, 1, 3));
        OK(rig_buffer_sync(file, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        copy = new_buffer(m, BIG);
        OK(rig_buffer_copy(copy, 0, file, 0, BIG, NULL));
        CHECK(holds(copy, 0, BIG, 1, 0));
        OK(rig_buffer_fill(file, 4, 8, 0x42424242, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        OK(rig_buffer_read(file, 4, bytes, 8));
        CHECK(memcmp(bytes, "BBBBBBBB", 8) == 0);
        rig_buffer_unref(copy);
        rig_buffer_unref(file);
        rig_device_unref(disk);
        close(fd);
        free(bytes);
        close_all();
}

static void files_copy_to_files(void)
{
        uint8_t *bytes = pattern(BIG, 2);
        int from = test_file(bytes, BIG, O_RDONLY), to = test_file("", 0, O_RDWR),
            end = test_file("", 0, O_WRONLY);
        struct rig_buffer *src, *dst, *only;
        struct rig_device *disk;
        struct rig_point p;

        open_all();
        OK(rig_device_open(rig, "disk", &disk));
        OK(rig_buffer_adopt(disk, from, 0, BIG, &src));
        OK(rig_buffer_adopt(disk, to, 0, BIG, &dst));
        OK(rig_buffer_adopt(disk, end, 0, BIG, &only));
        OK(rig_buffer_copy(dst, 0, src, 0, BIG, &p));
        OK(rig_point_wait(&p, RIG_INFINITY));
        CHECK(holds(dst, 0, BIG, 2, 0));
        CHECK_RETURNS(-EACCES, rig_buffer_write(src, 0, "x", 1));
        CHECK_RETURNS(-EACCES, rig_buffer_copy(src, 0, dst, 0, 1, NULL));
        CHECK_RETURNS(-EACCES, rig_buffer_read(only, 0, bytes, 1));
        OK(rig_buffer_sync(only, &p)); /* a barrier needs no right to read */
        OK(rig_point_wait(&p, RIG_INFINITY));
        rig_buffer_unref(only);
        rig_buffer_unref(dst);
        rig_buffer_unref(src);
        rig_device_unref(disk);
        close(from);
        close(to);
        close(end);
        free(bytes);
        close_all();
}

static void a_failed_copy_is_told_once_and_loses_nothing(void)
{
        int fd = test_file("short", 5, O_RDONLY), out = test_file("", 0, O_RDWR);
        struct rig_buffer *file, *b, *other;
        struct rig_device *disk;
        struct rig_point p;
        char bytes[16];

        open_all();
        OK(rig_device_open(rig, "disk", &disk));
        OK(rig_buffer_adopt(disk, fd, 0, 100, &file));
        OK(rig_buffer_adopt(disk, out, 0, 100, &other));
        b = new_buffer(m, 100);
        OK(rig_buffer_copy(b, 0, file, 0, 100, &p));
        CHECK_RETURNS(-ENODATA, rig_point_wait(&p, RIG_INFINITY));
        CHECK_RETURNS(0, rig_point_wait(&p, RIG_INFINITY)); /* told already */
        OK(rig_buffer_copy(b, 0, file, 0, 100, NULL));
        OK(rig_buffer_write(other, 0, "other", 5));
        CHECK_RETURNS(0, rig_buffer_wait(other, RIG_WRITE, RIG_INFINITY)); /* its own runs are well */
        CHECK_RETURNS(-ENODATA, rig_buffer_wait(b, RIG_READ, RIG_INFINITY));
        CHECK_RETURNS(0, rig_buffer_wait(b, RIG_READ, RIG_INFINITY));
        CHECK_RETURNS(-ENODATA, rig_buffer_read(file, 4, bytes, 16));
        CHECK_RETURNS(
                -ENODATA, rig_buffer_copy(other, 0, file, 0, 100, NULL)); /* staged: told by the call */
        CHECK_RETURNS(0, rig_device_lost(disk));
        OK(rig_buffer_read(file, 0, bytes, 5));
        CHECK(memcmp(bytes, "short", 5) == 0);
        rig_buffer_unref(other);
        rig_buffer_unref(b);
        rig_buffer_unref(file);
        rig_device_unref(disk);
        close(fd);
        close(out);
        close_all();
}

static void memory_that_the_host_does_not_address_is_staged(void)
{
        struct rig_buffer *a, *b, *pinned, *on_m, *file;
        struct rig_device *one, *two, *disk;
        uint8_t *bytes = pattern(BIG, 3);
        int fd = test_file("", 0, O_RDWR);
        void *address;

        open_all();
        OK(rig_device_open(rig, "steered:0", &one));
        OK(rig_device_open(rig, "steered:1", &two));
        OK(rig_device_open(rig, "disk", &disk));
        a = new_buffer(one, BIG);
        b = new_buffer(two, BIG);
        on_m = new_buffer(m, BIG);
        OK(rig_buffer_adopt(disk, fd, 0, BIG, &file));
        CHECK_RETURNS(-EOPNOTSUPP, rig_buffer_map(a, &address));
        OK(rig_buffer_new(one, 64, RIG_MEMORY_PINNED, &pinned));
        OK(rig_buffer_map(pinned, &address));
        OK(rig_buffer_write(a, 0, bytes, BIG));
        CHECK(holds(a, 7, BIG - 7, 3, 7));
        OK(rig_buffer_copy(b, 0, a, 0, BIG, NULL)); /* from device to device */
        CHECK(holds(b, 0, BIG, 3, 0));
        OK(rig_buffer_copy(on_m, 0, b, 0, BIG, NULL)); /* to the host */
        CHECK(holds(on_m, 0, BIG, 3, 0));
        OK(rig_buffer_copy(file, 0, b, 1, BIG - 1, NULL)); /* to a file */
        CHECK(holds(file, 0, BIG - 1, 3, 1));
        OK(rig_buffer_fill(a, 0, BIG, 0, NULL));
        OK(rig_buffer_copy(a, 1, file, 0, BIG - 1, NULL)); /* and back */
        CHECK(holds(a, 1, BIG - 1, 3, 1));
        OK(rig_buffer_copy(pinned, 0, a, 1, 64, NULL)); /* one step */
        OK(rig_buffer_wait(pinned, RIG_READ, RIG_INFINITY));
        CHECK(memcmp(address, bytes + 1, 64) == 0);
        rig_buffer_unref(file);
        rig_buffer_unref(pinned);
        rig_buffer_unref(on_m);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        rig_device_unref(disk);
        rig_device_unref(two);
        rig_device_unref(one);
        close(fd);
        free(bytes);
        close_all();
}

static void borrowed_memory_is_not_copied(void)
{
        struct rig_buffer *on_m, *borrowed, *none, *own;
        struct rig_device *one, *narrow;
        uint32_t *words;
        void *address;

        open_all();
        OK(rig_device_open(rig, "steered:0", &one));
        OK(rig_device_open(rig, "steered:1,noborrow", &narrow));
        on_m = new_buffer(m, 4096);
        own = new_buffer(one, 4096);
        OK(rig_buffer_borrow(one, on_m, &borrowed));
        CHECK(rig_buffer_device(borrowed) == one && rig_buffer_bytes(borrowed) == 4096);
        OK(rig_buffer_fill(borrowed, 0, 4096, 77, NULL)); /* by the borrower */
        OK(rig_buffer_map(on_m, &address));
        OK(rig_buffer_wait(on_m, RIG_READ, RIG_INFINITY));
        words = address;
        CHECK(words[1023] == 77);
        CHECK_RETURNS(-EOPNOTSUPP, rig_buffer_borrow(narrow, on_m, &none));
        CHECK_RETURNS(-EOPNOTSUPP, rig_buffer_borrow(m, own, &none));
        CHECK(rig_device_reaches(one, m) == 1 && rig_device_reaches(narrow, m) == 0);
        rig_buffer_unref(own);
        rig_buffer_unref(borrowed);
        rig_buffer_unref(on_m);
        rig_device_unref(narrow);
        rig_device_unref(one);
        close_all();
}

static void order_O3_crosses_connections_that_share_memory(void)
{
        struct rig *other;
        struct rig_device *here, *there;
        struct rig_buffer *a, *b, *none;
        uint32_t word;
        int fd, stranger = test_memfd(4096);

        test_rigd_start();
        OK(rig_connect(NULL, &rig));
        OK(rig_connect(NULL, &other));
        OK(rig_device_open(rig, "memory:here,async", &here));
        OK(rig_device_open(other, "memory:there,async", &there));
        a = new_buffer(here, 1 << 20);
        OK(rig_buffer_export(a, &fd));
        OK(rig_buffer_import(there, fd, &b));
        CHECK(rig_buffer_bytes(b) >= 1 << 20);
        for (uint32_t i = 1; i <= 200; i++) {
                OK(rig_buffer_fill(i % 2 ? a : b, 0, 1 << 20, i, NULL));
                OK(rig_buffer_read(i % 2 ? b : a, (1 << 20) - 4, &word, 4));
                CHECK(word == i);
        }
        CHECK_RETURNS(-ESTALE, rig_buffer_import(there, stranger, &none));
        CHECK_RETURNS(-EXDEV, rig_buffer_copy(a, 0, b, 0, 4, NULL));
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        rig_device_unref(there);
        rig_device_unref(here);
        rig_unref(other);
        rig_unref(rig);
        close(fd);
        close(stranger);
        test_rigd_stop();
}

static void memory_M1_a_dropped_buffer_lives_until_its_work_is_done(void)
{
        struct rig_device *slow;
        struct rig_buffer *a, *b;
        uint32_t word;

        open_all();
        OK(rig_device_open(rig, "memory:S,async", &slow));
        b = new_buffer(slow, 1 << 20);
        for (uint32_t i = 1; i <= 100; i++) {
                a = new_buffer(slow, 1 << 20);
                OK(rig_buffer_fill(a, 0, 1 << 20, i, NULL));
                OK(rig_buffer_copy(b, 0, a, 0, 1 << 20, NULL));
                rig_buffer_unref(a);
                OK(rig_buffer_read(b, 4 * i, &word, 4));
                CHECK(word == i);
        }
        rig_buffer_unref(b);
        rig_device_unref(slow);
        close_all();
}

/* A view has no answer that could refuse it: one too many must not cost the connection. */
static void views_beyond_the_limit_of_objects_are_refused(void)
{
        enum { MORE_THAN_THE_LIMIT = 20000 };
        static struct rig_buffer *views[MORE_THAN_THE_LIMIT];
        struct rig_buffer *b, *one;
        int n = 0, r = 0;

        open_all();
        b = new_buffer(m, 4096);
        while (n < MORE_THAN_THE_LIMIT && (r = rig_buffer_view(b, 0, 1, &views[n])) == 0)
                n++;
        CHECK_RETURNS(-EDQUOT, r);
        CHECK(strstr(rig_error(), "ClientObjectsMax"));
        OK(rig_sync(rig));
        CHECK_RETURNS(-EDQUOT, rig_buffer_view(b, 0, 1, &one));
        while (n > 0)
                rig_buffer_unref(views[--n]);
        OK(rig_buffer_view(b, 0, 1, &one));
        OK(rig_buffer_write(one, 0, "v", 1));
        CHECK_RETURNS(0, rig_failed(rig));
        rig_buffer_unref(one);
        rig_buffer_unref(b);
        close_all();
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(memory_starts_as_zeros_and_keeps_what_is_written),
                TEST(ranges_outside_are_refused),
                TEST(views_beyond_the_limit_of_objects_are_refused),
                TEST(a_buffer_of_no_bytes_is_one_everywhere),
                TEST(views_are_the_same_memory),
                TEST(order_O6_the_host_follows_fills_and_copies),
                TEST(adopted_bytes_are_the_programs),
                TEST(files_are_read_and_written_at_any_byte),
                TEST(files_copy_to_files),
                TEST(a_failed_copy_is_told_once_and_loses_nothing),
                TEST(memory_that_the_host_does_not_address_is_staged),
                TEST(borrowed_memory_is_not_copied),
                TEST(order_O3_crosses_connections_that_share_memory),
                TEST(memory_M1_a_dropped_buffer_lives_until_its_work_is_done),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
