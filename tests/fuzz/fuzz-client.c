/* SPDX-License-Identifier: ISC */
/*
 * Any bytes, as what one client says to a core: packets with descriptors, and the contents of its ring.
 * Whatever they are:
 *
 *   - nothing asserts, and no sanitizer finds anything;
 *   - another client, the witness, is served as before, and its memory is what it was;
 *   - when the client is gone the core holds nothing of it: as many clients and descriptors as before.
 *
 * The client has said hello and made a few objects of each kind before, so that the bytes find something to
 * name.
 *
 * An input is a byte that says which transport, then chunks of a byte that says what it is, two that are the
 * length, and the bytes: a packet, bytes of the ring, the ring's tail as it is published, or a pause in
 * which rigd goes on, before which the bytes are written over the start of the trace that the client reads.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "daemon/client.h"
#include "daemon/log/log.h"
#include "protocol/packet.h"
#include "tests/fuzz/fuzz.h"
#include "trace/trace.h"

#define MEMORY_BYTES  (UINT64_C(1) << 20)
#define WITNESS_BYTES 4096u
#define WITNESS_BYTE  0x77
#define PAUSE_TURNS   20u
#define WAIT_USEC     (60 * RIG_USEC_PER_SEC)

enum { CHUNK_PACKET, CHUNK_RING, CHUNK_TAIL, CHUNK_PAUSE };

/* One end of a connection to the core. */
struct side {
        int fd;
        struct rig_ring *ring; /* or NULL */
        uint8_t *bytes;
        uint64_t tail;
        int doorbell;
};

static struct rig_core *core;
static struct side witness;
static struct rig_trace_ring traced; /* the last ring that was sent */
static uint8_t *witness_bytes;
static size_t fds_at_start;

/* Without pipes: a fuzzer makes some of its own, and a core none. */
static size_t count_fds(void)
{
        DIR *d = opendir("/proc/self/fd");
        struct dirent *entry;
        char target[64];
        size_t n = 0;

        rig_assert(d);
        while ((entry = readdir(d))) {
                ssize_t bytes = readlinkat(dirfd(d), entry->d_name, target, sizeof(target));

                n += bytes < 5 || memcmp(target, "pipe:", 5) != 0;
        }
        closedir(d);
        return n;
}

static void turn(uint64_t usec)
{
        rig_assert(rig_core_turn(core, usec) == 0);
}

/* ---------------------------------------------------------------- saying things */

static void say(struct side *s, enum rig_msg_type type, const void *msg, const int *fds, size_t n_fds)
{
        uint8_t data[4096];
        ssize_t n = rig_codec_encode(type, msg, data, sizeof(data));

        rig_assert(n > 0);
        rig_assert(rig_packet_send(s->fd, data, (size_t)n, fds, n_fds, RIG_PACKET_DONTWAIT) == 0);
}

/* Turns until rigd answers; what comes before is not looked at. */
static enum rig_msg_type answer(
        struct side *s, enum rig_msg_type type, union rig_msg *msg, struct rig_packet_fds *ret_fds)
{
        uint64_t deadline = rig_deadline_usec(WAIT_USEC);
        static uint8_t data[4096];
        enum rig_msg_type got;

        for (;;) {
                ssize_t n = rig_packet_recv(s->fd, data, sizeof(data), RIG_PACKET_DONTWAIT, ret_fds);

                if (n == -EAGAIN) {
                        rig_assert(rig_now_usec() < deadline);
                        turn(100);
                        continue;
                }
                rig_assert(n > 0 && rig_codec_decode(data, (size_t)n, msg, &got, NULL) == n);
                if (got == type || got == RIG_MSG_FAILED || got == RIG_MSG_BROKEN)
                        return got;
                rig_packet_fds_close(ret_fds);
        }
}

static void ask(
        struct side *s, enum rig_msg_type type, const void *msg, const int *fd, enum rig_msg_type expected)
{
        struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;
        static union rig_msg got;

        say(s, type, msg, fd, fd != NULL);
        rig_assert(answer(s, expected, &got, &fds) == expected);
        rig_packet_fds_close(&fds);
}

static void open_device(struct side *s, uint32_t id, const char *name)
{
        ask(s, RIG_MSG_DEVICE_OPEN,
                &(struct rig_msg_device_open){
                        .serial = id, .device = id, .name = rig_text(name, RIG_PROTO_NAME_MAX)},
                NULL, RIG_MSG_DEVICE_DONE);
}

static void hello(struct side *s, uint32_t features)
{
        struct rig_msg_hello m = {.serial = 1, .version = RIG_PROTOCOL_VERSION, .features = features};
        struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;
        struct rig_client *c;
        static union rig_msg got;
        int pair[2];

        *s = (struct side){.doorbell = -EBADF};
        rig_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        s->fd = pair[0];
        rig_assert(rig_client_new(core, pair[1], &c) == 0);
        say(s, RIG_MSG_HELLO, &m, NULL, 0);
        rig_assert(answer(s, RIG_MSG_HELLO_DONE, &got, &fds) == RIG_MSG_HELLO_DONE);
        if (got.hello_done.has_ring) {
                rig_assert(rig_ring_map(fds.fd[got.hello_done.ring], &s->ring, &s->bytes) == 0);
                s->doorbell = rig_packet_fds_take(&fds, got.hello_done.doorbell);
        }
        rig_packet_fds_close(&fds);
}

static int sealed_memfd(size_t bytes)
{
        int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        rig_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
        rig_assert(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
        return fd;
}

/* ---------------------------------------------------------------- the objects there are */

static void make_buffers(struct side *s)
{
        int fds[] = {sealed_memfd(4096), open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};

        rig_assert(fds[1] >= 0);
        for (uint32_t b = 1; b <= 3; b++)
                ask(s, RIG_MSG_BUFFER_NEW,
                        &(struct rig_msg_buffer_new){
                                .serial = b, .buffer = b, .device = b == 3 ? 4 : 1, .bytes = 4096},
                        NULL, RIG_MSG_BUFFER_DONE);
        for (uint32_t i = 0; i < 2; i++)
                ask(s, RIG_MSG_BUFFER_ADOPT,
                        &(struct rig_msg_buffer_adopt){
                                .serial = i + 1, .buffer = 4 + i, .device = i ? 3 : 1, .bytes = 4096},
                        &fds[i], RIG_MSG_BUFFER_DONE);
        close(fds[0]);
        close(fds[1]);
}

/* Works 1 and 2 fill and copy on memory, 3 copies on the disk, 4 runs on the host, 5 copies on async memory.
 */
static void make_works(struct side *s)
{
        static const uint32_t devices[] = {1, 1, 3, 2, 4}, kinds[] = {2, 1, 1, 3, 1};
        static struct rig_msg_work_new m;

        for (uint32_t i = 0; i < 5; i++) {
                uint32_t n = kinds[i] == 1 ? 2 : 1;

                m = (struct rig_msg_work_new){.serial = i + 1,
                        .work = i + 1,
                        .device = devices[i],
                        .n_slots = n,
                        .slots = {{.access = 2}, {.access = 1}},
                        .n_parts = 1};
                m.parts[0] = (struct rig_msg_part){.kind = kinds[i],
                        .has_dst = kinds[i] != 3,
                        .has_src = n == 2,
                        .src = {1, 0},
                        .has_pattern = kinds[i] == 2,
                        .pattern = 0x01020304};
                ask(s, RIG_MSG_WORK_NEW, &m, NULL, RIG_MSG_DONE);
        }
}

static void make_objects(struct side *s)
{
        open_device(s, 1, "memory:M");
        open_device(s, 2, "host");
        open_device(s, 3, "disk");
        open_device(s, 4, "memory:A,async");
        make_buffers(s);
        make_works(s);
}

/* ---------------------------------------------------------------- the core, and its witness */

static void start(void)
{
        struct rig_config config = RIG_CONFIG_DEFAULTS;
        struct rig_error e = RIG_ERROR_NULL;
        int fd;

        config.adapter_memory_max = MEMORY_BYTES; /* what a run moves is bounded by what there is */
        config.client_cache_max = MEMORY_BYTES / 4;
        config.client_runs_max = 64;
        config.poll_usec = 0;
        rig_log_set_level(LOG_ERR);
        rig_assert(rig_core_new(&config, rig_drivers, &core, &e) == 0);
        hello(&witness, 0);
        open_device(&witness, 1, "memory:W");
        fd = sealed_memfd(WITNESS_BYTES);
        witness_bytes = mmap(NULL, WITNESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        rig_assert(witness_bytes != MAP_FAILED);
        memset(witness_bytes, WITNESS_BYTE, WITNESS_BYTES);
        ask(&witness, RIG_MSG_BUFFER_ADOPT,
                &(struct rig_msg_buffer_adopt){
                        .serial = 1, .buffer = 1, .device = 1, .bytes = WITNESS_BYTES},
                &fd, RIG_MSG_BUFFER_DONE);
        close(fd);
        fds_at_start = count_fds();
}

static void check_witness(void)
{
        ask(&witness, RIG_MSG_SYNC, &(struct rig_msg_sync){.serial = 1}, NULL, RIG_MSG_DONE);
        for (size_t i = 0; i < WITNESS_BYTES; i++)
                rig_assert(witness_bytes[i] == WITNESS_BYTE);
}

/* The client is gone, and so is what it held: it all had descriptors. */
static void await_rest(void)
{
        uint64_t deadline = rig_deadline_usec(WAIT_USEC);

        while (core->n_clients > 1) {
                rig_assert(rig_now_usec() < deadline);
                turn(100);
        }
        while (count_fds() > fds_at_start) {
                rig_assert(rig_now_usec() < deadline);
                turn(100);
        }
}

/* ---------------------------------------------------------------- an input */

static int trace_memfd(void)
{
        int fd;

        rig_trace_ring_unmap(&traced);
        rig_assert(rig_trace_ring_new(256, &traced, &fd) == 0);
        return fd;
}

static size_t make_fds(unsigned kinds, int *fds)
{
        size_t n = 0;

        if (kinds & 1)
                fds[n++] = sealed_memfd(8192);
        if (kinds & 2)
                fds[n++] = eventfd(0, EFD_CLOEXEC);
        if (kinds & 4)
                fds[n++] = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (kinds & 8)
                fds[n++] = trace_memfd();
        return n;
}

static void publish(struct side *s, uint64_t tail)
{
        static const uint64_t one = 1;

        s->tail = tail;
        atomic_store(&s->ring->tail, tail);
        rig_assert(write(s->doorbell, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

static void send_packet(struct side *s, const uint8_t *data, size_t n, unsigned kinds)
{
        int fds[4];
        size_t n_fds = make_fds(kinds, fds);

        if (n)
                (void)rig_packet_send(s->fd, data, n, fds, n_fds, RIG_PACKET_DONTWAIT);
        for (size_t i = 0; i < n_fds; i++)
                close(fds[i]);
}

static void do_chunk(struct side *s, unsigned head, const uint8_t *data, size_t n)
{
        uint64_t tail = 0;

        switch (head & 3) {
        case CHUNK_PACKET:
                send_packet(s, data, n, head >> 2 & 15);
                break;
        case CHUNK_RING:
                if (s->ring)
                        for (size_t i = 0; i < n; i++)
                                *rig_ring_at(s->bytes, s->tail + i) = data[i];
                if (s->ring)
                        publish(s, s->tail + n);
                else
                        send_packet(s, data, n, 0);
                break;
        case CHUNK_TAIL:
                memcpy(&tail, data, RIG_MIN(n, sizeof(tail)));
                if (s->ring)
                        publish(s, tail);
                break;
        default:
                if (traced.page && n > 0)
                        memcpy(traced.page, data, RIG_MIN(n, (size_t)RIG_TRACE_PAGE_BYTES));
                for (unsigned i = 0; i < PAUSE_TURNS; i++)
                        turn(0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const uint32_t features[] = {0, RIG_FEATURE_WORDS, RIG_FEATURE_WORDS | RIG_FEATURE_RING};
        struct side s;
        size_t at = 1;

        if (!core)
                start();
        if (size < 1)
                return 0;
        hello(&s, features[data[0] % 3]);
        make_objects(&s);
        while (at + 3 <= size) {
                unsigned head = data[at];
                size_t n = RIG_MIN((size_t)(data[at + 1] | data[at + 2] << 8), size - at - 3);

                do_chunk(&s, head, data + at + 3, n);
                at += 3 + n;
        }
        for (unsigned i = 0; i < PAUSE_TURNS; i++)
                turn(0);
        close(s.fd);
        rig_close(s.doorbell);
        if (s.ring)
                rig_ring_unmap(s.ring);
        rig_trace_ring_unmap(&traced);
        await_rest();
        check_witness();
        return 0;
}
