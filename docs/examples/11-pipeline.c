/* SPDX-License-Identifier: ISC */
/*
 * A pipeline over a file, ordered by memory alone. Block after block:
 *
 *         disk    copies the block into `raw`
 *         host    writes `raw` in upper case into `upper`, on all cores
 *         host    counts `upper`: bytes, lines and a checksum of each segment, on all cores
 *         host    folds the segments' results into the file's
 *         disk    copies `upper` into the result file
 *
 * No stage is told when to start. Each names what it reads and writes, so it follows the stage before it,
 * and the block that will use the same memory follows it. Several blocks are under way at once, in few
 * buffers: a file of any size goes through them.
 *
 * Then tools that are not rig's check the result: `tr` makes it again and `cmp` compares, `cksum` and `wc`
 * read it. What differs ends the program with an error.
 *
 * Usage: 11-pipeline [-b BLOCK_BYTES] INPUT OUTPUT
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS         8u     /* blocks under way at once */
#define SEGMENT       65536u /* bytes of a block that one group works on */
#define BLOCK_DEFAULT (4u << 20)
#define BLOCK_MAX     (256u << 20)

/* ------------------------------------------------------------------------------------------- the checksum
 *
 * POSIX cksum's CRC, which can be put together from parts: crc(AB) is crc(A) times x^(8|B|), plus crc(B).
 */
#define POLYNOMIAL 0x04c11db7u

static uint32_t crc_table[8][256];

static void crc_prepare(void)
{
        uint32_t byte, crc, i;

        for (byte = 0; byte < 256; byte++) {
                crc = byte << 24;
                for (i = 0; i < 8; i++)
                        crc = (crc << 1) ^ (crc >> 31 ? POLYNOMIAL : 0);
                crc_table[0][byte] = crc;
        }
        for (byte = 0; byte < 256; byte++)
                for (i = 1; i < 8; i++)
                        crc_table[i][byte] =
                                (crc_table[i - 1][byte] << 8) ^ crc_table[0][crc_table[i - 1][byte] >> 24];
}

static uint32_t crc_bytes(uint32_t crc, const uint8_t *p, uint64_t n)
{
        for (; n >= 8; n -= 8, p += 8)
                crc = crc_table[7][p[0] ^ crc >> 24] ^ crc_table[6][p[1] ^ (crc >> 16 & 0xff)] ^
                      crc_table[5][p[2] ^ (crc >> 8 & 0xff)] ^ crc_table[4][p[3] ^ (crc & 0xff)] ^
                      crc_table[3][p[4]] ^ crc_table[2][p[5]] ^ crc_table[1][p[6]] ^ crc_table[0][p[7]];
        for (; n > 0; n--, p++)
                crc = (crc << 8) ^ crc_table[0][crc >> 24 ^ *p];
        return crc;
}

static uint32_t crc_times(uint32_t a, uint32_t b)
{
        uint32_t r = 0;
        int i;

        for (i = 31; i >= 0; i--)
                r = (r << 1) ^ (r >> 31 ? POLYNOMIAL : 0) ^ (b >> i & 1 ? a : 0);
        return r;
}

static uint32_t crc_append(uint32_t crc, uint32_t next, uint64_t next_bytes)
{
        uint32_t power = 0x100; /* x^8, squared as many times as next_bytes has bits */

        for (; next_bytes > 0; next_bytes >>= 1, power = crc_times(power, power))
                if (next_bytes & 1)
                        crc = crc_times(crc, power);
        return crc ^ next;
}

/* cksum ends with the length, low byte first, and inverts. */
static uint32_t crc_finish(uint32_t crc, uint64_t bytes)
{
        uint8_t byte;

        for (; bytes > 0; bytes >>= 8) {
                byte = (uint8_t)bytes;
                crc = crc_bytes(crc, &byte, 1);
        }
        return ~crc;
}

/* ------------------------------------------------------------------------------------------- host code */

struct counts {
        uint64_t bytes, lines;
        uint64_t crc;
};

/* The parameters of all three functions; the run writes the two addresses. */
struct params {
        uint64_t from, to;
        uint64_t bytes; /* of the block */
};

enum stage { STAGE_UPPER, STAGE_COUNT, STAGES };

static uint64_t stage_nsec[STAGES]; /* of all cores together */

static uint64_t now_nsec(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t segment_bytes(const struct rig_group *group, const struct params *p)
{
        uint64_t left = p->bytes - (uint64_t)group->group[0] * SEGMENT;

        return left < SEGMENT ? left : SEGMENT;
}

static void upper_case(const struct rig_group *group, const void *data)
{
        const struct params *p = data;
        uint64_t at = (uint64_t)group->group[0] * SEGMENT, n = segment_bytes(group, p), i, t = now_nsec();
        const uint8_t *from = (const uint8_t *)(uintptr_t)p->from + at;
        uint8_t *to = (uint8_t *)(uintptr_t)p->to + at;

        for (i = 0; i < n; i++)
                to[i] = (uint8_t)(from[i] - (from[i] >= 'a' && from[i] <= 'z' ? 'a' - 'A' : 0));
        __atomic_fetch_add(&stage_nsec[STAGE_UPPER], now_nsec() - t, __ATOMIC_RELAXED);
}

static void count(const struct rig_group *group, const void *data)
{
        const struct params *p = data;
        uint64_t at = (uint64_t)group->group[0] * SEGMENT, n = segment_bytes(group, p), i, t = now_nsec();
        const uint8_t *from = (const uint8_t *)(uintptr_t)p->from + at;
        struct counts *to = (struct counts *)(uintptr_t)p->to + group->group[0];
        uint64_t lines = 0;

        for (i = 0; i < n; i++)
                lines += from[i] == '\n';
        to->bytes = n;
        to->lines = lines;
        to->crc = crc_bytes(0, from, n);
        __atomic_fetch_add(&stage_nsec[STAGE_COUNT], now_nsec() - t, __ATOMIC_RELAXED);
}

static void fold(const struct rig_group *group, const void *data)
{
        const struct params *p = data;
        const struct counts *from = (const struct counts *)(uintptr_t)p->from;
        struct counts *to = (struct counts *)(uintptr_t)p->to;
        uint64_t i, n = (p->bytes + SEGMENT - 1) / SEGMENT;

        for (i = 0; i < n; i++) {
                to->crc = crc_append((uint32_t)to->crc, (uint32_t)from[i].crc, from[i].bytes);
                to->bytes += from[i].bytes;
                to->lines += from[i].lines;
        }
}

/* ------------------------------------------------------------------------------------------- the pipeline
 */

/* A block's way through: where its bytes are, and the points that say how far it is. */
struct slot {
        struct rig_buffer *raw, *upper, *segments;
        struct rig_point read, written;
        uint64_t end; /* where in the file the block ends; 0: none was here yet */
};

/* The host's stages for blocks of one length, prepared once. */
struct stages {
        struct rig_work *upper, *count, *fold;
};

struct pipeline {
        struct rig *rig;
        struct rig_device *host, *reader, *writer; /* two on the disk: reads and writes overlap */
        struct rig_buffer *in, *out, *total;
        uint64_t bytes, block;
        struct slot slots[SLOTS];
        uint64_t started_nsec, shown_nsec;
};

static struct rig_work *stage_new(struct rig_device *host, rig_host_function function, uint64_t bytes,
        uint32_t groups, uint32_t to_access)
{
        const struct rig_patch patches[] = {
                {.at = offsetof(struct params, from), .slot = 0},
                {.at = offsetof(struct params, to), .slot = 1},
        };
        struct rig_launch launch = RIG_LAUNCH_INIT;
        struct params params = {0, 0, bytes};
        struct rig_work *work;

        check(rig_work_new(host, &work));
        check(rig_work_slot(work, RIG_READ));
        check(rig_work_slot(work, to_access));
        launch.function = function;
        launch.grid[0] = groups;
        launch.params = &params;
        launch.params_bytes = sizeof(params);
        launch.patches = patches;
        launch.n_patches = 2;
        check(rig_work_launch(work, 0, &launch));
        check(rig_work_prepare(work));
        return work;
}

static struct stages stages_new(struct rig_device *host, uint64_t bytes)
{
        uint32_t groups = (uint32_t)((bytes + SEGMENT - 1) / SEGMENT);
        struct stages s;

        s.upper = stage_new(host, upper_case, bytes, groups, RIG_WRITE);
        s.count = stage_new(host, count, bytes, groups, RIG_WRITE);
        s.fold = stage_new(host, fold, bytes, 1, RIG_READ_WRITE);
        return s;
}

static void stages_unref(struct stages *s)
{
        rig_work_unref(s->upper);
        rig_work_unref(s->count);
        rig_work_unref(s->fold);
}

/* In place on a terminal, else as lines; only once the file has shown to be a long one. */
static void show_progress(struct pipeline *p, uint64_t done)
{
        int terminal = isatty(STDERR_FILENO);
        uint64_t now = now_nsec(), every = terminal ? 100000000u : 2000000000u;

        if (now - p->started_nsec < 500000000u || now - p->shown_nsec < every)
                return;
        p->shown_nsec = now;
        fprintf(stderr, "%s%3" PRIu64 " %% of %.1f MiB, %.0f MB/s%s", terminal ? "\r" : "",
                p->bytes ? done * 100 / p->bytes : 100, (double)p->bytes / (1 << 20),
                (double)done * 1e3 / (double)(now - p->started_nsec), terminal ? " " : "\n");
}

/* Nothing needs this wait to be in order: it shows progress, and a failure ends the program early. */
static void slot_finish(struct pipeline *p, struct slot *s)
{
        if (s->end == 0)
                return;
        check(rig_point_wait(&s->read, RIG_INFINITY));
        check(rig_point_wait(&s->written, RIG_INFINITY));
        show_progress(p, s->end);
}

static void block_submit(
        struct pipeline *p, const struct stages *stages, struct slot *s, uint64_t at, uint64_t n)
{
        check(rig_buffer_copy(s->raw, 0, p->in, at, n, &s->read));
        check(rig_submit(stages->upper, (struct rig_buffer *[]){s->raw, s->upper}, 2, NULL, 0, NULL));
        check(rig_submit(stages->count, (struct rig_buffer *[]){s->upper, s->segments}, 2, NULL, 0, NULL));
        check(rig_submit(stages->fold, (struct rig_buffer *[]){s->segments, p->total}, 2, NULL, 0, NULL));
        check(rig_buffer_copy(p->out, at, s->upper, 0, n, &s->written));
        s->end = at + n;
}

static void pipeline_run(struct pipeline *p)
{
        uint64_t at, n, tail = p->bytes % p->block, i = 0;
        struct stages whole, last;
        struct rig_point synced;

        whole = stages_new(p->host, p->block);
        last = stages_new(p->host, tail ? tail : p->block);
        p->started_nsec = p->shown_nsec = now_nsec();
        for (at = 0; at < p->bytes; at += n, i++) {
                n = p->bytes - at < p->block ? p->bytes - at : p->block;
                slot_finish(p, &p->slots[i % SLOTS]);
                block_submit(p, n == p->block ? &whole : &last, &p->slots[i % SLOTS], at, n);
        }
        for (n = 0; n < SLOTS; n++, i++)
                slot_finish(p, &p->slots[i % SLOTS]);
        check(rig_buffer_sync(p->out, &synced));
        check(rig_point_wait(&synced, RIG_INFINITY));
        stages_unref(&whole);
        stages_unref(&last);
}

static void pipeline_open(struct pipeline *p, int in, int out)
{
        struct rig_device_facts facts = RIG_DEVICE_FACTS_INIT;
        uint64_t most, i;

        check(rig_connect(NULL, &p->rig));
        check(rig_device_open(p->rig, "host", &p->host));
        check(rig_device_open(p->rig, "disk", &p->reader));
        check(rig_device_open(p->rig, "disk", &p->writer));
        check(rig_buffer_adopt(p->reader, in, 0, p->bytes, &p->in));
        check(rig_buffer_adopt(p->writer, out, 0, p->bytes, &p->out));
        check(rig_buffer_new(p->host, sizeof(struct counts), RIG_MEMORY_DEVICE, &p->total));

        /* A quarter of what this program may hold, whatever the file's length. */
        check(rig_device_get_facts(p->host, &facts));
        most = facts.budget_bytes / 4 / (2 * SLOTS);
        if (p->block > most && most > 0)
                p->block = most;
        for (i = 0; i < SLOTS; i++) {
                struct slot *s = &p->slots[i];
                uint64_t segments = (p->block + SEGMENT - 1) / SEGMENT;

                check(rig_buffer_new(p->host, p->block, RIG_MEMORY_DEVICE, &s->raw));
                check(rig_buffer_new(p->host, p->block, RIG_MEMORY_DEVICE, &s->upper));
                check(rig_buffer_new(
                        p->host, segments * sizeof(struct counts), RIG_MEMORY_DEVICE, &s->segments));
        }
}

static void pipeline_close(struct pipeline *p)
{
        uint64_t i;

        for (i = 0; i < SLOTS; i++) {
                rig_buffer_unref(p->slots[i].raw);
                rig_buffer_unref(p->slots[i].upper);
                rig_buffer_unref(p->slots[i].segments);
        }
        rig_buffer_unref(p->in);
        rig_buffer_unref(p->out);
        rig_buffer_unref(p->total);
        rig_device_unref(p->reader);
        rig_device_unref(p->writer);
        rig_device_unref(p->host);
        rig_unref(p->rig);
}

/* ------------------------------------------------------------------------------------------- the check */

/* Runs a shell script with the two paths as $1 and $2. Return: its exit status; what it printed in `answer`.
 */
static int run_tools(const char *script, const char *input, const char *output, char *answer, size_t room)
{
        int ends[2], status = -1;
        ssize_t n = 0, got = 0;
        pid_t pid;

        if (pipe(ends) < 0 || (pid = fork()) < 0)
                return -1;
        if (pid == 0) {
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]);
                execl("/bin/sh", "sh", "-c", script, "sh", input, output, (char *)NULL);
                _exit(127);
        }
        close(ends[1]);
        while ((size_t)got < room - 1 && (n = read(ends[0], answer + got, room - 1 - (size_t)got)) > 0)
                got += n;
        answer[got] = '\0';
        close(ends[0]);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int check_result_file(const char *input, const char *output, const struct counts *total)
{
        char answer[512], expected[128];
        int r;

        r = run_tools("LC_ALL=C tr a-z A-Z <\"$1\" | LC_ALL=C cmp -- - \"$2\" 2>&1", input, output, answer,
                sizeof(answer));
        if (r != 0) {
                fprintf(stderr, "WRONG: tr and cmp find a difference: %s\n", answer);
                return 1;
        }
        printf("checked  by tr and cmp: every byte is as they make it\n");

        snprintf(expected, sizeof(expected), "%" PRIu32 " %" PRIu64 "\n%" PRIu64 "\n",
                crc_finish((uint32_t)total->crc, total->bytes), total->bytes, total->lines);
        r = run_tools("cksum <\"$2\" && wc -l <\"$2\"", input, output, answer, sizeof(answer));
        if (r != 0 || strcmp(answer, expected) != 0) {
                fprintf(stderr, "WRONG: cksum and wc say\n%sthis program counted\n%s", answer, expected);
                return 1;
        }
        printf("checked  by cksum and wc: the same checksum, bytes and lines\n");
        return 0;
}

/* ------------------------------------------------------------------------------------------- the program */

static void report_time(const struct pipeline *p, uint64_t nsec)
{
        static const char *const names[STAGES] = {"upper case", "count"};
        double mb = (double)p->bytes / 1e6;
        int i;

        if (isatty(STDERR_FILENO) && p->shown_nsec != p->started_nsec)
                fputs("\r\033[K", stderr);
        fprintf(stderr, "took     %.3f s, %.0f MB/s from file to file\n", (double)nsec / 1e9,
                mb * 1e9 / (double)(nsec ? nsec : 1));
        for (i = 0; i < STAGES && p->bytes > 0; i++)
                fprintf(stderr, "         %-10s %.3f s of a core, %.0f MB/s each\n", names[i],
                        (double)stage_nsec[i] / 1e9, mb * 1e9 / (double)(stage_nsec[i] ? stage_nsec[i] : 1));
}

/* Opens both files. Return: 0, or 1 when it has said what is wrong. */
static int files_open(const char *input, const char *output, int *ret_in, int *ret_out, uint64_t *ret_bytes)
{
        struct stat a, b;
        off_t end;

        *ret_in = open(input, O_RDONLY | O_CLOEXEC);
        if (*ret_in < 0 || fstat(*ret_in, &a) < 0 || (end = lseek(*ret_in, 0, SEEK_END)) < 0) {
                fprintf(stderr, "%s: cannot be read as a file: %s\n", input, strerror(errno));
                return 1;
        }
        if (S_ISDIR(a.st_mode)) {
                fprintf(stderr, "%s: a directory; name a file\n", input);
                return 1;
        }
        if (stat(output, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
                fprintf(stderr, "%s: the input itself; name another file for the result\n", output);
                return 1;
        }
        *ret_out = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (*ret_out < 0) {
                fprintf(stderr, "%s: %s\n", output, strerror(errno));
                return 1;
        }
        *ret_bytes = (uint64_t)end;
        return 0;
}

int main(int argc, char **argv)
{
        struct pipeline p;
        struct counts total;
        unsigned long long block = BLOCK_DEFAULT;
        int in, out, option;
        uint64_t nsec;

        memset(&p, 0, sizeof(p));
        while ((option = getopt(argc, argv, "b:")) == 'b')
                block = strtoull(optarg, NULL, 10);
        if (option != -1 || argc - optind != 2 || block == 0 || block > BLOCK_MAX) {
                fprintf(stderr, "Usage: %s [-b BLOCK_BYTES] INPUT OUTPUT\n", argv[0]);
                return 2;
        }
        p.block = block;
        if (files_open(argv[optind], argv[optind + 1], &in, &out, &p.bytes))
                return 1;
        crc_prepare();
        pipeline_open(&p, in, out);
        close(in);
        close(out);

        nsec = now_nsec();
        pipeline_run(&p);
        check(rig_buffer_read(p.total, 0, &total, sizeof(total)));
        nsec = now_nsec() - nsec;

        printf("read     %s: %" PRIu64 " bytes, in %" PRIu64 " blocks of up to %" PRIu64 "\n", argv[optind],
                p.bytes, (p.bytes + p.block - 1) / p.block, p.block);
        printf("wrote    %s: in upper case, %" PRIu64 " lines, cksum %" PRIu32 "\n", argv[optind + 1],
                total.lines, crc_finish((uint32_t)total.crc, total.bytes));
        fflush(stdout);
        report_time(&p, nsec);
        pipeline_close(&p);
        return check_result_file(argv[optind], argv[optind + 1], &total);
}
