/* SPDX-License-Identifier: ISC */
/*
 * Any bytes, as what a vfio-user server does instead of answering. Whatever it is:
 *
 *   - the client ends, with an error that has a sentence or with none, and no sanitizer finds anything;
 *   - what it sends is well formed to its end;
 *   - memory that is mapped for the function to read alone is not written;
 *   - when the function is closed, no descriptor is left of it.
 *
 * An input is a byte of what the server is like (enum trait), then steps, one for each answer that is due;
 * after the last of them the server answers honestly, or leaves. See enum step for their arguments. The
 * honest answers are of a function with a BAR that is mapped, one that is trapped, and one that is both, so
 * that a spoilt answer may come late in a life.
 *
 * Deliberately not here: files that are cut short while they are mapped, which is the end of any client.
 */
#include <linux/vfio.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "daemon/pci/transport.h"
#include "daemon/pci/vfio-user-wire.h"
#include "tests/fuzz/fuzz.h"

#define ANSWER_USEC  UINT64_C(20000)
#define FILE_BYTES   UINT64_C(16384)
#define MESSAGE_ROOM (WIRE_DEFAULT_TRANSFER_BYTES + 4096)
#define FDS_MAX      20u /* more than a message may bring */
#define RO_BYTE      0x77
#define FOREVER      255u /* commands: until the client has left */

enum trait {
        TRAIT_TWIN = 1,  /* commands on a socket of their own */
        TRAIT_LEAVE = 2, /* at the end of the steps */
        TRAIT_SMALL = 4, /* 256 bytes of configuration space */
        TRAIT_MSI = 8,   /* and no MSI-X */
};

enum step {
        STEP_HONEST,   /* count: so many answers are right */
        STEP_PATCH,    /* count, then (offset, byte): bytes of the answer are others, its header included */
        STEP_PAYLOAD,  /* length, bytes: instead of what follows the header */
        STEP_RAW,      /* length, bytes: instead of all of the answer */
        STEP_COMMAND,  /* command, where, offset, count (2), times: before the answer */
        STEP_ERROR,    /* number */
        STEP_SILENCE,  /* from here on */
        STEP_LEAVE,    /* ends the connection */
        STEP_FDS,      /* count, kind: descriptors with an answer that is right else */
        STEP_PIECES,   /* length: of each piece of the answer */
        STEP_TRAILING, /* length, bytes: behind the answer */
        STEPS,
};

struct server {
        const uint8_t *p, *end; /* of the steps that are left */
        uint8_t traits;
        unsigned honest; /* answers that are right, before the next step */
        bool silent;
        int fd, twin;
        uint8_t config[4096];
        uint64_t mapped; /* the address of the last mapping */
        uint8_t *in, *out;
        uint32_t out_bytes;
        int fds[FDS_MAX];
        unsigned n_fds;
};

static char directory[64], socket_path[96], where[112];
static int listener = -1, memory = -1;
static struct server server;

/* ---------------------------------------------------------------- the input */

static uint8_t next(void)
{
        return server.p < server.end ? *server.p++ : 0;
}

static uint32_t next_bytes(uint8_t *data, uint32_t most)
{
        uint32_t n = RIG_MIN((uint32_t)next(), most);

        n = RIG_MIN(n, (uint32_t)(server.end - server.p));
        memcpy(data, server.p, n);
        server.p += n;
        return n;
}

/* ---------------------------------------------------------------- bytes and descriptors */

/* False: the client has left, or reads no more. */
static bool send_bytes(int fd, const uint8_t *data, size_t bytes, const int *fds, unsigned n_fds)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
        } control = {0};
        struct iovec iov = {(void *)(uintptr_t)data, bytes};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

        if (n_fds) {
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                        .cmsg_len = CMSG_LEN(n_fds * sizeof(int))};
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        }
        while (iov.iov_len) {
                ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

                if (n <= 0)
                        return false;
                iov.iov_base = (char *)iov.iov_base + n;
                iov.iov_len -= (size_t)n;
                m.msg_control = NULL;
                m.msg_controllen = 0;
        }
        return true;
}

static bool receive_exactly(uint8_t *data, size_t bytes)
{
        while (bytes) {
                char control[CMSG_SPACE(FDS_MAX * sizeof(int))] __attribute__((aligned(sizeof(size_t))));
                struct iovec iov = {data, bytes};
                struct msghdr m = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control)};
                ssize_t n = recvmsg(server.fd, &m, MSG_CMSG_CLOEXEC);

                if (n <= 0)
                        return false;
                for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
                        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                                int fd;

                                memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                                close(fd);
                        }
                data += n;
                bytes -= (size_t)n;
        }
        return true;
}

static void add_fd(int fd)
{
        rig_assert(fd >= 0 && server.n_fds < FDS_MAX);
        server.fds[server.n_fds++] = fd;
}

static void drop_fds(void)
{
        while (server.n_fds)
                close(server.fds[--server.n_fds]);
}

/* ---------------------------------------------------------------- honest answers */

static void put32(uint32_t at, uint32_t value)
{
        memcpy(server.config + at, &value, 4);
}

/* Power management, MSI, MSI-X, PCI Express; a serial number and a resizable BAR in the extended space. */
static void fill_config(void)
{
        memset(server.config, 0, sizeof(server.config));
        put32(0x00, 0x72691209);
        put32(0x04, 0x00100000);
        put32(0x08, 0x03000001);
        put32(0x10, 0xc);  /* BAR 0: 64 bits, prefetchable */
        put32(0x34, 0x40); /* the list */
        put32(0x40, 0x00035001);
        put32(0x50, 0x00806005);
        put32(0x60, server.traits & TRAIT_MSI ? 0x00007009 : 0x00037011);
        put32(0x70, 0x00020010);
        if (server.traits & TRAIT_SMALL)
                return;
        put32(0x100, 0x11010003);
        put32(0x110, 0x00010015);
        put32(0x118, 0x00000020);
}

static void add(const void *data, uint32_t bytes)
{
        rig_assert(server.out_bytes + bytes <= MESSAGE_ROOM);
        memcpy(server.out + server.out_bytes, data, bytes);
        server.out_bytes += bytes;
}

static void answer_version(void)
{
        static const char plain[] = "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":4096}}";
        static const char with_twin[] = "{\"capabilities\":{\"max_msg_fds\":1,\"max_dma_maps\":100,"
                                        "\"twin_socket\":{\"supported\":true,\"fd_index\":0}}}";
        struct wire_version version = {WIRE_MAJOR, WIRE_MINOR};
        int pair[2];

        add(&version, sizeof(version));
        if (!(server.traits & TRAIT_TWIN) || server.twin >= 0) {
                add(plain, sizeof(plain));
                return;
        }
        add(with_twin, sizeof(with_twin));
        rig_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        server.twin = pair[0];
        add_fd(pair[1]);
}

static void answer_region(const uint8_t *ask)
{
        struct vfio_region_info info;
        struct vfio_region_info_cap_sparse_mmap sparse = {
                .header = {.id = VFIO_REGION_INFO_CAP_SPARSE_MMAP, .version = 1}, .nr_areas = 1};
        uint64_t area[2] = {4096, 4096};

        memcpy(&info, ask, sizeof(info));
        info = (struct vfio_region_info){.argsz = sizeof(info),
                .flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE,
                .index = info.index};
        if (info.index == VFIO_PCI_CONFIG_REGION_INDEX)
                info.size = server.traits & TRAIT_SMALL ? 256 : 4096;
        else if (info.index <= 4 && info.index % 2 == 0)
                info.size = info.index == 2 ? 4100 : FILE_BYTES;
        if (info.index == 0 || info.index == 4) {
                info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
                add_fd(dup(memory));
        }
        if (info.index == 4) {
                info.flags |= VFIO_REGION_INFO_FLAG_CAPS;
                info.cap_offset = sizeof(info);
                info.argsz += sizeof(sparse) + sizeof(area);
        }
        add(&info, sizeof(info));
        if (info.index == 4) {
                add(&sparse, sizeof(sparse));
                add(area, sizeof(area));
        }
}

static void answer_irqs(const uint8_t *ask)
{
        struct vfio_irq_info info;

        memcpy(&info, ask, sizeof(info));
        info.flags = VFIO_IRQ_INFO_EVENTFD;
        info.count =
                info.index == (server.traits & TRAIT_MSI ? VFIO_PCI_MSI_IRQ_INDEX : VFIO_PCI_MSIX_IRQ_INDEX)
                        ? 4
                        : 0;
        add(&info, sizeof(info));
}

static void answer_access(uint16_t command, const uint8_t *ask, uint32_t bytes)
{
        struct wire_region_access access;
        bool config, write = command == WIRE_REGION_WRITE;
        static const uint8_t zeros[4096];

        memcpy(&access, ask, sizeof(access));
        config = access.region == VFIO_PCI_CONFIG_REGION_INDEX;
        rig_assert(bytes == sizeof(access) + (write ? access.count : 0));
        rig_assert(!config || !rig_range_outside(access.offset, access.count, sizeof(server.config)));
        add(&access, sizeof(access));
        if (config && write)
                memcpy(server.config + access.offset, ask + sizeof(access), access.count);
        else if (!write)
                add(config ? server.config + access.offset : zeros, RIG_MIN(access.count, 4096u));
}

/* The answer that is right, into server.out; `h` is the command's header, and its payload is behind it. */
static void answer_honestly(const struct wire_header *h)
{
        const uint8_t *ask = server.in + sizeof(*h);
        struct wire_info info = {sizeof(info), VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
                VFIO_PCI_NUM_REGIONS, VFIO_PCI_NUM_IRQS};
        struct wire_header answer = {h->id, h->command, 0, WIRE_REPLY, 0};

        server.out_bytes = 0;
        add(&answer, sizeof(answer));
        switch (h->command) {
        case WIRE_VERSION:
                answer_version();
                break;
        case WIRE_GET_INFO:
                add(&info, sizeof(info));
                break;
        case WIRE_GET_REGION_INFO:
                answer_region(ask);
                break;
        case WIRE_GET_IRQ_INFO:
                answer_irqs(ask);
                break;
        case WIRE_REGION_READ:
        case WIRE_REGION_WRITE:
                answer_access(h->command, ask, h->bytes - (uint32_t)sizeof(*h));
                break;
        case WIRE_DMA_MAP:
                memcpy(&server.mapped, ask + offsetof(struct wire_dma_map, address), 8);
                break;
        case WIRE_DMA_UNMAP:
                add(ask, sizeof(struct wire_dma_unmap));
                break;
        default:
                rig_assert(h->command == WIRE_SET_IRQS || h->command == WIRE_RESET);
        }
        memcpy(server.out + offsetof(struct wire_header, bytes), &server.out_bytes, 4);
}

/* ---------------------------------------------------------------- steps */

/* Commands of the server's own, where the client reads them. Their answers are dropped as they come. */
static void send_commands(void)
{
        static const uint64_t bases[] = {0, UINT64_MAX - 127, UINT64_C(1) << 63};
        uint8_t what = next(), base = next() % 4;
        struct wire_dma_access access = {.address = base < 3 ? bases[base] : server.mapped};
        struct wire_header h = {.command = what & 3 ? WIRE_DMA_READ + (what & 1) : what >> 4,
                .flags = what & 8 ? WIRE_NO_REPLY : 0};
        uint32_t low, times;
        bool go_on = true;

        access.address += (uint64_t)next() << 4;
        low = next();
        access.count = low | (uint32_t)next() << 8;
        times = next();
        server.out_bytes = 0;
        h.bytes = (uint32_t)(sizeof(h) + sizeof(access));
        if (h.command == WIRE_DMA_WRITE)
                h.bytes += (uint32_t)access.count;
        add(&h, sizeof(h));
        add(&access, sizeof(access));
        memset(server.out + server.out_bytes, 0x5a, h.bytes - server.out_bytes);
        while (go_on && (times == FOREVER || times--)) {
                go_on = send_bytes(server.twin >= 0 ? server.twin : server.fd, server.out, h.bytes, NULL, 0);
                while (server.twin >= 0 &&
                        recv(server.twin, server.in + MESSAGE_ROOM / 2, MESSAGE_ROOM / 2, MSG_DONTWAIT) > 0)
                        ;
        }
}

static void add_fds(void)
{
        unsigned n = next() % (FDS_MAX + 1), kind = next() % 3;

        drop_fds();
        while (server.n_fds < n)
                add_fd(kind == 0    ? dup(memory)
                        : kind == 1 ? eventfd(0, EFD_CLOEXEC)
                                    : memfd_create("short", MFD_CLOEXEC));
}

static void patch(void)
{
        for (unsigned n = 1 + next() % 8; n; n--) {
                uint32_t at = next() % server.out_bytes;

                server.out[at] = next();
        }
}

static void become_an_error(void)
{
        struct wire_header h;

        memcpy(&h, server.out, sizeof(h));
        h.flags |= WIRE_ERROR;
        h.error = next();
        server.out_bytes = h.bytes = sizeof(h);
        memcpy(server.out, &h, sizeof(h));
}

/* Changes the answer as the next step says. False: the connection ends. */
static bool take_step(uint8_t step, size_t *piece)
{
        switch (step % STEPS) {
        case STEP_HONEST:
                server.honest = next();
                break;
        case STEP_PATCH:
                patch();
                break;
        case STEP_PAYLOAD:
                server.out_bytes = (uint32_t)sizeof(struct wire_header);
                server.out_bytes += next_bytes(server.out + server.out_bytes, 255);
                memcpy(server.out + offsetof(struct wire_header, bytes), &server.out_bytes, 4);
                break;
        case STEP_RAW:
                server.out_bytes = next_bytes(server.out, 255);
                break;
        case STEP_ERROR:
                become_an_error();
                break;
        case STEP_SILENCE:
                server.silent = true;
                break;
        case STEP_LEAVE:
                return false;
        case STEP_FDS:
                add_fds();
                break;
        case STEP_PIECES:
                *piece = 1 + next() % 64;
                break;
        case STEP_TRAILING:
                server.out_bytes += next_bytes(server.out + server.out_bytes, 64);
                break;
        default:
                break;
        }
        return true;
}

static bool answer(const struct wire_header *h)
{
        size_t piece = SIZE_MAX;
        bool stay = true;

        while (!server.honest && server.p < server.end && *server.p % STEPS == STEP_COMMAND) {
                server.p++;
                send_commands();
        }
        answer_honestly(h);
        if (server.honest)
                server.honest--;
        else if (server.p < server.end)
                stay = take_step(next(), &piece);
        else
                stay = !(server.traits & TRAIT_LEAVE);
        if (stay && !server.silent)
                for (size_t at = 0; at < server.out_bytes; at += RIG_MIN(piece, server.out_bytes - at))
                        send_bytes(server.fd, server.out + at, RIG_MIN(piece, server.out_bytes - at),
                                server.fds, at ? 0 : server.n_fds);
        drop_fds();
        return stay;
}

/* ---------------------------------------------------------------- the server */

/* Reads a message of the client's, which must be well formed. False: it has left. */
static bool read_message(struct wire_header *h)
{
        if (!receive_exactly(server.in, sizeof(*h)))
                return false;
        memcpy(h, server.in, sizeof(*h));
        rig_assert(h->bytes >= sizeof(*h) && h->bytes <= MESSAGE_ROOM);
        rig_assert((h->flags & ~(WIRE_NO_REPLY | WIRE_ERROR | WIRE_TYPE_MASK)) == 0);
        rig_assert((h->flags & WIRE_TYPE_MASK) <= WIRE_REPLY);
        return receive_exactly(server.in + sizeof(*h), h->bytes - sizeof(*h));
}

static void *serve(void *own)
{
        const struct timeval bound = {0, (suseconds_t)(2 * ANSWER_USEC)};
        struct wire_header h;
        bool stay = true;

        server.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        rig_assert(server.fd >= 0);
        setsockopt(server.fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
        while (stay && read_message(&h)) {
                if ((h.flags & WIRE_TYPE_MASK) == WIRE_REPLY)
                        continue; /* to a command of ours */
                if (h.flags & WIRE_NO_REPLY)
                        rig_assert(h.command == WIRE_REGION_WRITE);
                else
                        stay = answer(&h);
                if (server.twin >= 0)
                        setsockopt(server.twin, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
        }
        close(server.fd);
        rig_close(server.twin);
        return own;
}

/* ---------------------------------------------------------------- the client's life */

static void check(int r, const struct rig_error *e)
{
        rig_assert(r == 0 || (r < 0 && e->code == r && strlen(e->text) > strlen("vfio-user:")));
}

static void use_windows(struct rig_pci *pci)
{
        for (unsigned i = 0; i < RIG_PCI_BARS; i++) {
                struct rig_error e = RIG_ERROR_NULL;
                struct rig_window w = {0};
                uint8_t data[100] = {1};
                struct rig_pci_bar bar;
                uint64_t at;
                int r;

                rig_assert(rig_pci_bar(pci, i, &bar, &e) == 0);
                if (!bar.bytes)
                        continue;
                at = i == 4 && bar.bytes >= 8192 ? 4096 : 0;
                r = rig_pci_window(
                        pci, i, at, RIG_MIN(bar.bytes - at, UINT64_C(4096)), RIG_UNCACHED, &w, &e);
                check(r, &e);
                if (r == 0 && w.bytes >= sizeof(data)) {
                        rig_window_write32(&w, 4, 77);
                        (void)rig_window_read64(&w, 8);
                        rig_window_write(&w, w.bytes - 99, data, 99);
                        rig_window_read(&w, w.bytes - 99, data, 99);
                }
                rig_window_close(&w);
        }
}

static void use_memory(struct rig_pci *pci)
{
        struct rig_dma memory_rw = {0}, memory_ro = {0};
        struct rig_error e = RIG_ERROR_NULL;
        int r = rig_dma_new(pci, 4096, RIG_DMA_READ_ONLY, 0, &memory_ro, &e);

        check(r, &e);
        if (r < 0)
                return;
        memset(memory_ro.host, RO_BYTE, memory_ro.bytes);
        r = rig_dma_new(pci, 8192, 0, 0, &memory_rw, &e);
        check(r, &e);
        if (r == 0) {
                (void)rig_pci_set_master(pci, true);
                memset(memory_rw.host, 1, memory_rw.bytes);
                (void)rig_pci_gone(pci);
        }
        for (uint64_t i = 0; i < memory_ro.bytes; i++)
                rig_assert(((uint8_t *)memory_ro.host)[i] == RO_BYTE);
        rig_dma_free(&memory_rw);
        rig_dma_free(&memory_ro);
}

static void live(void)
{
        const struct rig_pci_options options = {.root = "", .answer_usec = ANSWER_USEC};
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_pci *pci = NULL;
        int r = rig_pci_open_with(&options, where, &pci, &e), eventfds[2];
        uint32_t at;

        check(r, &e);
        if (r < 0) {
                rig_assert(!pci);
                return;
        }
        for (unsigned i = 0; i < 2; i++)
                eventfds[i] = eventfd(0, EFD_CLOEXEC);
        use_windows(pci);
        (void)rig_pci_capability(pci, RIG_PCI_CAP_PCIE, &at);
        (void)rig_pci_extended_capability(pci, RIG_PCI_EXT_REBAR, &at);
        check(rig_pci_interrupts(pci, 2, eventfds, &e), &e);
        use_memory(pci);
        check(rig_pci_reset(pci, ANSWER_USEC, &e), &e);
        check(rig_pci_interrupts(pci, 0, NULL, &e), &e);
        check(rig_pci_failure(pci, &e), &e);
        rig_pci_close(pci);
        close(eventfds[0]);
        close(eventfds[1]);
}

static void remove_socket(void)
{
        unlink(socket_path);
        rmdir(directory);
}

/* Once: the socket that the servers listen on, in turn. */
static void prepare(void)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        const char *tmp = getenv("TMPDIR");

        if (listener >= 0)
                return;
        snprintf(directory, sizeof(directory), "%.40s/rig-fuzz-XXXXXX", tmp ? tmp : "/tmp");
        rig_assert(mkdtemp(directory));
        snprintf(socket_path, sizeof(socket_path), "%s/model", directory);
        snprintf(where, sizeof(where), "vfio-user:%s", socket_path);
        memcpy(a.sun_path, socket_path, strlen(socket_path) + 1);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        rig_assert(listener >= 0 && bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 &&
                   listen(listener, 1) == 0);
        rig_assert(atexit(remove_socket) == 0);
        memory = memfd_create("region", MFD_CLOEXEC);
        rig_assert(memory >= 0 && ftruncate(memory, (off_t)FILE_BYTES) == 0);
        server.in = malloc(MESSAGE_ROOM);
        server.out = malloc(MESSAGE_ROOM);
        rig_assert(server.in && server.out);
}

/* The lowest number that is free: a descriptor that is left behind moves it. */
static int lowest_fd(void)
{
        int fd = dup(memory);

        rig_assert(fd >= 0);
        close(fd);
        return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        pthread_t thread;
        int before;

        if (size == 0)
                return 0;
        prepare();
        before = lowest_fd();
        server = (struct server){.p = data + 1,
                .end = data + size,
                .traits = data[0],
                .fd = -1,
                .twin = -1,
                .in = server.in,
                .out = server.out};
        fill_config();
        rig_assert(pthread_create(&thread, NULL, serve, NULL) == 0);
        live();
        rig_assert(pthread_join(thread, NULL) == 0);
        rig_assert(lowest_fd() == before);
        return 0;
}
