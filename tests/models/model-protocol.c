/* SPDX-License-Identifier: ISC */
/*
 * What a model says on its socket: the server's side of the vfio-user protocol, version 0.1, for one client
 * at a time. (QEMU, docs/interop/vfio-user.rst)
 *
 * The loop takes one message after another and gives the engine a turn after each. Descriptors that a
 * message brings are closed with it, unless it kept them. A client that sends what cannot be read is left;
 * one that asks for what is not there gets an error.
 */
#include <inttypes.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "tests/models/model-internal.h"

enum {
        VERSION = 1,
        DMA_MAP,
        DMA_UNMAP,
        GET_INFO,
        GET_REGION_INFO,
        GET_REGION_IO_FDS,
        GET_IRQ_INFO,
        SET_IRQS,
        REGION_READ,
        REGION_WRITE,
        DEVICE_RESET = 13,
};

/* ---------------------------------------------------------------- messages */

void message_free(struct message *message)
{
        if (!message)
                return;
        while (message->n_fds)
                rig_close(message->fds[--message->n_fds]);
        if (message->body != message->few)
                free(message->body);
        free(message);
}

int protocol_send(int fd, const void *header, size_t header_bytes, const void *data, size_t bytes,
        const int *fds, unsigned n_fds)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
        } control;
        struct iovec iov[2] = {{(void *)(uintptr_t)header, header_bytes}, {(void *)(uintptr_t)data, bytes}};
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

        if (n_fds) {
                memset(&control, 0, sizeof(control));
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        }
        while (iov[0].iov_len + iov[1].iov_len) {
                ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                for (unsigned i = 0; i < 2; i++) {
                        size_t part = RIG_MIN((size_t)n, iov[i].iov_len);

                        if (!part)
                                continue; /* what is empty may have no address to add to */
                        iov[i].iov_base = (char *)iov[i].iov_base + part;
                        iov[i].iov_len -= part;
                        n -= (ssize_t)part;
                }
                m.msg_control = NULL;
                m.msg_controllen = 0;
        }
        return 0;
}

static int take_fds(struct msghdr *m, int *fds, unsigned *n_fds)
{
        int r = m->msg_flags & MSG_CTRUNC ? -EPROTO : 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        if (*n_fds < MAX_FDS) {
                                fds[(*n_fds)++] = fd;
                        } else {
                                close(fd);
                                r = -EPROTO;
                        }
                }
        }
        return r;
}

/* One recvmsg(). Return: how many bytes came; 0: the sender has left. */
static int receive_some(int fd, void *data, size_t bytes, bool wait, int *fds, unsigned *n_fds)
{
        for (;;) {
                char control[CMSG_SPACE(MAX_FDS * sizeof(int))] __attribute__((aligned(sizeof(size_t))));
                struct iovec iov = {data, bytes};
                struct msghdr m = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control)};
                ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                return take_fds(&m, fds, n_fds) < 0 ? -EPROTO : (int)n;
        }
}

/* Has at least `bytes` in the buffer, at its start, which fit. 1; 0: the sender left between messages. */
static int have(struct model *m, uint32_t bytes, bool wait)
{
        struct received *in = &m->received;

        while (in->end - in->start < bytes) {
                unsigned before = in->n_fds;
                int n;

                if (in->start) {
                        memmove(in->data, in->data + in->start, in->end - in->start);
                        in->fds_end -= RIG_MIN(in->fds_end, in->start);
                        in->end -= in->start;
                        in->start = 0;
                }
                n = receive_some(m->fd, in->data + in->end, sizeof(in->data) - in->end, wait || in->end,
                        in->fds, &in->n_fds);
                if (n < 0)
                        return n;
                if (n == 0)
                        return in->end ? -ECONNRESET : 0;
                in->end += (uint32_t)n;
                if (in->n_fds > before)
                        in->fds_end = in->end;
        }
        return 1;
}

/* Takes what is in the buffer of a message's `bytes`, and receives the rest. */
static int take(struct model *m, uint8_t *data, uint32_t bytes, struct message *message)
{
        struct received *in = &m->received;
        uint32_t part = RIG_MIN(bytes, in->end - in->start);

        memcpy(data, in->data + in->start, part);
        in->start += part;
        while (part < bytes) {
                int n = receive_some(m->fd, data + part, bytes - part, true, message->fds, &message->n_fds);

                if (n <= 0)
                        return n < 0 && n != -EAGAIN ? n : -ECONNRESET; /* half a message is none */
                part += (uint32_t)n;
        }
        return 1;
}

/* Memory for a body of the length that the header says. */
static int make_body(struct message *message)
{
        uint32_t all = message->header.bytes;

        if (all < sizeof(message->header) || all > MAX_MESSAGE)
                return -EPROTO;
        message->bytes = all - (uint32_t)sizeof(message->header);
        message->body = message->bytes < sizeof(message->few) ? message->few : malloc(message->bytes + 1);
        return message->body ? 1 : -ENOMEM;
}

static int receive_buffered(struct model *m, bool wait, struct message *message)
{
        struct received *in = &m->received;
        uint32_t start;
        int r = have(m, sizeof(message->header), wait);

        if (r <= 0)
                return r;
        start = in->start;
        memcpy(&message->header, in->data + start, sizeof(message->header));
        in->start += (uint32_t)sizeof(message->header);
        r = make_body(message);
        if (r < 0)
                return r;
        if (in->n_fds && start < in->fds_end && message->header.bytes >= in->fds_end - start) {
                memcpy(message->fds, in->fds, in->n_fds * sizeof(int));
                message->n_fds = in->n_fds;
                in->n_fds = 0;
        }
        return take(m, message->body, message->bytes, message);
}

/* The socket for commands of ours has answers alone. */
static int receive_whole(int fd, struct message *message)
{
        uint8_t *p = (uint8_t *)&message->header;
        size_t left = sizeof(message->header);
        bool in_body = false;

        for (;;) {
                int n = left ? receive_some(fd, p, left, true, message->fds, &message->n_fds) : 0;

                if (left && n <= 0)
                        return n;
                p += n;
                left -= (size_t)n;
                if (left)
                        continue;
                if (in_body)
                        return 1;
                n = make_body(message);
                if (n < 0)
                        return n;
                p = message->body;
                left = message->bytes;
                in_body = true;
        }
}

int protocol_receive(struct model *m, int fd, bool wait, struct message **ret_message)
{
        struct message *message = calloc(1, sizeof(*message));
        int r = !message      ? -ENOMEM
                : fd == m->fd ? receive_buffered(m, wait, message)
                              : receive_whole(fd, message);

        if (r <= 0) {
                message_free(message);
                return r;
        }
        *ret_message = message;
        return 1;
}

/* An answer of up to two parts. */
static int answer(struct model *m, const struct message *q, const void *a, size_t a_bytes, const void *b,
        size_t b_bytes, const int *fds, unsigned n_fds)
{
        struct {
                struct message_header header;
                uint8_t body[80];
        } reply = {{q->header.id, q->header.command, 0, FLAG_REPLY, 0}, {0}};

        rig_assert(a_bytes <= sizeof(reply.body));
        if (q->header.flags & FLAG_NO_REPLY)
                return 0;
        if (a_bytes)
                memcpy(reply.body, a, a_bytes);
        reply.header.bytes = (uint32_t)(sizeof(reply.header) + a_bytes + b_bytes);
        return protocol_send(m->fd, &reply, sizeof(reply.header) + a_bytes, b, b_bytes, fds, n_fds);
}

static int answer_error(struct model *m, const struct message *q, int error)
{
        struct message_header reply = {
                q->header.id, q->header.command, sizeof(reply), FLAG_REPLY | FLAG_ERROR, (uint32_t)-error};

        model_trace(m, "refused %u: %s", q->header.command, strerror(-error));
        if (q->header.flags & FLAG_NO_REPLY)
                return 0;
        return protocol_send(m->fd, &reply, sizeof(reply), NULL, 0, NULL, 0);
}

static int answer_result(struct model *m, const struct message *q, int r)
{
        return r < 0 ? answer_error(m, q, r) : answer(m, q, NULL, 0, NULL, 0, NULL, 0);
}

/* ---------------------------------------------------------------- version, device, regions */

/* The text without its blanks, so that what is looked for has one form. */
static void squeeze(char *text)
{
        char *to = text;

        for (; *text; text++)
                if (!strchr(" \t\r\n", *text))
                        *to++ = *text;
        *to = '\0';
}

static int do_version(struct model *m, struct message *q)
{
        static const char plain[] = "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576}}";
        static const char twin[] = "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576,"
                                   "\"twin_socket\":{\"supported\":true,\"fd_index\":0}}}";
        uint16_t version[2] = {0, 1};
        int pair[2], r;
        char *text = (char *)q->body + 4, *found;

        if (q->bytes < 4)
                return -EPROTO;
        memcpy(version, q->body, sizeof(version));
        if (version[0] != 0)
                return -EPROTO;
        version[1] = RIG_MIN(version[1], (uint16_t)1);
        q->body[q->bytes] = '\0';
        squeeze(text);
        model_trace(m, "version %s", text);
        found = strstr(text, "\"max_data_xfer_size\":");
        if (found)
                m->client_data = (uint32_t)RIG_MIN(
                        strtoull(strchr(found, ':') + 1, NULL, 10), (unsigned long long)MAX_DATA);
        if (m->options.no_twin || !strstr(text, "\"twin_socket\":{\"supported\":true"))
                return answer(m, q, version, sizeof(version), plain, sizeof(plain), NULL, 0);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        m->twin = pair[0];
        r = answer(m, q, version, sizeof(version), twin, sizeof(twin), &pair[1], 1);
        close(pair[1]);
        return r;
}

static int do_info(struct model *m, const struct message *q)
{
        uint32_t info[4] = {sizeof(info), VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
                VFIO_PCI_NUM_REGIONS, VFIO_PCI_NUM_IRQS};

        if (q->bytes < sizeof(info))
                return answer_error(m, q, -EINVAL);
        return answer(m, q, info, sizeof(info), NULL, 0, NULL, 0);
}

/* The parts of a mapped BAR, where they are not all of it, behind its description. */
static int answer_areas(struct model *m, const struct message *q, struct vfio_region_info *info, unsigned i)
{
        const struct model_bar *bar = &m->description->bars[i];
        struct vfio_region_info_cap_sparse_mmap sparse = {
                .header = {VFIO_REGION_INFO_CAP_SPARSE_MMAP, 1, 0}, .nr_areas = bar->n_areas};
        uint8_t behind[sizeof(*info) + sizeof(sparse)];
        uint32_t room = info->argsz;

        info->flags |= VFIO_REGION_INFO_FLAG_CAPS;
        info->cap_offset = sizeof(*info);
        info->argsz = (uint32_t)(sizeof(behind) + bar->n_areas * sizeof(struct model_area));
        if (info->argsz > room) { /* the client asks again with more room */
                info->cap_offset = 0;
                return answer(m, q, info, sizeof(*info), NULL, 0, &m->memory_fd[i], 1);
        }
        memcpy(behind, info, sizeof(*info));
        memcpy(behind + sizeof(*info), &sparse, sizeof(sparse));
        return answer(m, q, behind, sizeof(behind), bar->areas, bar->n_areas * sizeof(struct model_area),
                &m->memory_fd[i], 1);
}

static int do_region_info(struct model *m, const struct message *q)
{
        struct vfio_region_info info;
        bool mapped = false;
        uint32_t i;

        if (q->bytes < sizeof(info))
                return answer_error(m, q, -EINVAL);
        memcpy(&info, q->body, sizeof(info));
        i = info.index;
        if (i >= VFIO_PCI_NUM_REGIONS)
                return answer_error(m, q, -EINVAL);
        info = (struct vfio_region_info){.argsz = info.argsz, .index = i};
        if (i == CONFIG_REGION)
                info.size = m->description->pcie ? CONFIG_BYTES : 256;
        else if (i < MODEL_BARS)
                info.size = m->bar_bytes[i];
        if (info.size)
                info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
        mapped = i < MODEL_BARS && info.size && m->description->bars[i].mapped && !m->options.trap_all;
        if (mapped)
                info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
        if (mapped && m->description->bars[i].n_areas)
                return answer_areas(m, q, &info, i);
        info.argsz = sizeof(info);
        return answer(m, q, &info, sizeof(info), NULL, 0, mapped ? &m->memory_fd[i] : NULL, mapped);
}

/* ---------------------------------------------------------------- accesses */

static const struct model_register *find_register(
        const struct model_bar *bar, uint64_t at, uint32_t bytes, uint32_t access)
{
        for (unsigned i = 0; i < bar->n_registers; i++) {
                const struct model_register *r = &bar->registers[i];
                uint64_t all = (uint64_t)RIG_MAX(r->count, 1u) * r->bytes;

                if (at >= r->at && at - r->at < all && (at - r->at) % r->bytes == 0 && bytes == r->bytes &&
                        r->access & access)
                        return r;
        }
        return NULL;
}

/* The tables of MSI-X are memory of the library's: QEMU keeps its own, and the kernel's VFIO writes them. */
static bool is_msix_table(const struct model *m, unsigned bar, uint64_t at, uint32_t bytes)
{
        const struct model_description *d = m->description;

        return d->n_msix && bar == d->msix_bar &&
               ((at >= d->msix_table && at + bytes <= d->msix_table + 16ull * d->n_msix) ||
                       (at >= d->msix_pending &&
                               at + bytes <= d->msix_pending + 8ull * ((d->n_msix + 63) / 64)));
}

static bool is_memory(const struct model *m, unsigned bar, uint64_t at, uint32_t bytes)
{
        const struct model_bar *b = &m->description->bars[bar];

        if (!b->registers || (b->mapped && !b->n_areas) || is_msix_table(m, bar, at, bytes))
                return true;
        for (unsigned i = 0; i < b->n_areas; i++)
                if (at >= b->areas[i].offset &&
                        !rig_range_outside(at - b->areas[i].offset, bytes, b->areas[i].bytes))
                        return true;
        return false;
}

static void trace_access(struct model *m, const char *verb, unsigned bar, uint64_t at, const char *name,
        uint32_t bytes, uint64_t value)
{
        model_trace(m, "%s bar%u+0x%" PRIx64 " %s %u = 0x%" PRIx64, verb, bar, at, name, bytes, value);
}

/* A fault of an access, if it is one. */
static const struct model_register *check_access(
        struct model *m, unsigned bar, uint64_t at, uint32_t bytes, uint32_t access)
{
        const struct model_register *r = find_register(&m->description->bars[bar], at, bytes, access);

        if (!r)
                model_fault(m, "BAR %u has no register to %s at 0x%" PRIx64 " with %u bytes", bar,
                        access == MODEL_READ ? "read" : "write", at, bytes);
        return r;
}

static void bar_read(struct model *m, unsigned bar, uint64_t at, uint8_t *data, uint32_t bytes)
{
        const struct model_ops *ops = m->description->ops;
        const struct model_register *reg;
        uint64_t value = 0;

        if (!config_decodes(m)) {
                model_fault(m, "read of BAR %u, whose memory is not decoded", bar);
                memset(data, 0xff, bytes);
                return;
        }
        if (is_memory(m, bar, at, bytes)) {
                memcpy(data, m->memory[bar] + at, bytes);
                trace_access(m, "read", bar, at, "memory", bytes, 0);
                return;
        }
        reg = check_access(m, bar, at, bytes, MODEL_READ);
        if (reg && !(ops && ops->read))
                memcpy(&value, m->memory[bar] + at, bytes);
        else if (!reg || ops->read(m, bar, at, bytes, &value) < 0)
                value = UINT64_MAX;
        memcpy(data, &value, bytes);
        trace_access(m, "read", bar, at, reg ? reg->name : "nothing", bytes, value);
}

static void bar_write(struct model *m, unsigned bar, uint64_t at, const uint8_t *data, uint32_t bytes)
{
        const struct model_ops *ops = m->description->ops;
        const struct model_register *reg;
        uint64_t value = 0;

        if (!config_decodes(m)) {
                model_fault(m, "write to BAR %u, whose memory is not decoded", bar);
                return;
        }
        if (is_memory(m, bar, at, bytes)) {
                memcpy(m->memory[bar] + at, data, bytes);
                trace_access(m, "write", bar, at, "memory", bytes, 0);
                return;
        }
        reg = check_access(m, bar, at, bytes, MODEL_WRITE);
        if (!reg)
                return;
        memcpy(&value, data, bytes);
        trace_access(m, "write", bar, at, reg->name, bytes, value);
        if (ops && ops->write)
                ops->write(m, bar, at, bytes, value);
        else
                memcpy(m->memory[bar] + at, data, bytes);
}

struct access {
        uint64_t at;
        uint32_t region, count;
};

static int check_region(const struct model *m, const struct access *a)
{
        uint64_t size = a->region == CONFIG_REGION ? (m->description->pcie ? CONFIG_BYTES : 256u)
                        : a->region < MODEL_BARS   ? m->bar_bytes[a->region]
                                                   : 0;

        return a->count > MAX_DATA || rig_range_outside(a->at, a->count, size) ? -EINVAL : 0;
}

static int do_read(struct model *m, const struct message *q)
{
        _cleanup_(rig_freep) uint8_t *many = NULL;
        uint8_t few[64], *data = few;
        struct access a;
        int r;

        if (q->bytes != sizeof(a))
                return answer_error(m, q, -EINVAL);
        memcpy(&a, q->body, sizeof(a));
        r = check_region(m, &a);
        if (r < 0)
                return answer_error(m, q, r);
        if (a.count > sizeof(few))
                data = many = malloc(a.count);
        if (!data)
                return answer_error(m, q, -ENOMEM);
        if (m->gone)
                memset(data, 0xff, a.count);
        else if (a.region == CONFIG_REGION)
                config_read(m, (uint32_t)a.at, data, a.count);
        else
                bar_read(m, a.region, a.at, data, a.count);
        return answer(m, q, &a, sizeof(a), data, a.count, NULL, 0);
}

static int do_write(struct model *m, const struct message *q)
{
        const uint8_t *data = q->body + sizeof(struct access);
        struct access a;
        int r;

        if (q->bytes < sizeof(a))
                return answer_error(m, q, -EINVAL);
        memcpy(&a, q->body, sizeof(a));
        r = q->bytes == sizeof(a) + a.count ? check_region(m, &a) : -EINVAL;
        if (r < 0)
                return answer_error(m, q, r);
        if (m->gone)
                return answer(m, q, &a, sizeof(a), NULL, 0, NULL, 0);
        if (a.region == CONFIG_REGION) {
                model_trace(m, "write config+0x%" PRIx64 " %u", a.at, a.count);
                if (config_write(m, (uint32_t)a.at, data, a.count))
                        model_reset(m);
        } else {
                bar_write(m, a.region, a.at, data, a.count);
        }
        return answer(m, q, &a, sizeof(a), NULL, 0, NULL, 0);
}

/* ---------------------------------------------------------------- interrupts */

static unsigned vectors_of(const struct model *m, uint32_t index)
{
        return index == VFIO_PCI_MSI_IRQ_INDEX    ? m->description->n_msi
               : index == VFIO_PCI_MSIX_IRQ_INDEX ? m->description->n_msix
                                                  : 0;
}

static int do_irq_info(struct model *m, const struct message *q)
{
        struct vfio_irq_info info;

        if (q->bytes < sizeof(info))
                return answer_error(m, q, -EINVAL);
        memcpy(&info, q->body, sizeof(info));
        if (info.index >= VFIO_PCI_NUM_IRQS)
                return answer_error(m, q, -EINVAL);
        info.argsz = sizeof(info);
        info.count = vectors_of(m, info.index);
        info.flags = VFIO_IRQ_INFO_EVENTFD | (info.count ? VFIO_IRQ_INFO_NORESIZE : 0);
        return answer(m, q, &info, sizeof(info), NULL, 0, NULL, 0);
}

static int raise_fd(int fd)
{
        uint64_t one = 1;

        return fd < 0 ? -ENXIO : write(fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}

static int set_irqs(struct model *m, struct message *q)
{
        struct vfio_irq_set s;
        unsigned n;
        int *table;

        if (q->bytes < sizeof(s))
                return -EINVAL;
        memcpy(&s, q->body, sizeof(s));
        n = vectors_of(m, s.index);
        table = s.index == VFIO_PCI_MSIX_IRQ_INDEX ? m->msix : m->msi;
        if (s.index >= VFIO_PCI_NUM_IRQS || s.count > n || s.start > n - s.count)
                return -EINVAL;
        if (!(s.flags & VFIO_IRQ_SET_ACTION_TRIGGER))
                return 0; /* masks are the client's to keep */
        model_trace(
                m, "interrupts index %u flags 0x%x from %u, %u of them", s.index, s.flags, s.start, s.count);
        if (s.flags & VFIO_IRQ_SET_DATA_EVENTFD) {
                if (q->n_fds != s.count && q->n_fds)
                        return -EINVAL;
                for (unsigned i = 0; i < s.count; i++) {
                        rig_close(table[s.start + i]);
                        table[s.start + i] = q->n_fds ? rig_steal_fd(&q->fds[i]) : -EBADF;
                }
                return 0;
        }
        for (unsigned i = 0; !s.count && i < n; i++)
                table[i] = rig_close(table[i]);
        for (unsigned i = 0; i < s.count; i++)
                raise_fd(table[s.start + i]);
        return 0;
}

int model_interrupt(struct model *m, unsigned vector)
{
        model_trace(m, "interrupt %u", vector);
        if (m->gone)
                return -ENXIO;
        if (config_msix_enabled(m))
                return vector < m->description->n_msix ? raise_fd(m->msix[vector]) : -ENXIO;
        if (config_msi_enabled(m))
                return vector < m->description->n_msi ? raise_fd(m->msi[vector]) : -ENXIO;
        return -ENXIO;
}

/* ---------------------------------------------------------------- the loop */

static int do_unmap(struct model *m, const struct message *q)
{
        struct {
                uint32_t argsz, flags;
                uint64_t address, bytes;
        } ask;

        if (q->bytes < sizeof(ask))
                return answer_error(m, q, -EINVAL);
        memcpy(&ask, q->body, sizeof(ask));
        dma_unmap(m, ask.address, ask.bytes, ask.flags & VFIO_DMA_UNMAP_FLAG_ALL);
        return answer(m, q, &ask, sizeof(ask), NULL, 0, NULL, 0);
}

static int handle(struct model *m, struct message *q)
{
        switch (q->header.command) {
        case VERSION:
                return do_version(m, q);
        case DMA_MAP:
                return answer_result(m, q, dma_map(m, q->body, q->bytes, q->n_fds ? q->fds[0] : -EBADF));
        case DMA_UNMAP:
                return do_unmap(m, q);
        case GET_INFO:
                return do_info(m, q);
        case GET_REGION_INFO:
                return do_region_info(m, q);
        case GET_IRQ_INFO:
                return do_irq_info(m, q);
        case SET_IRQS:
                return answer_result(m, q, set_irqs(m, q));
        case REGION_READ:
                return do_read(m, q);
        case REGION_WRITE:
                return do_write(m, q);
        case DEVICE_RESET:
                if (!m->gone)
                        model_reset(m);
                return answer_result(m, q, 0);
        default:
                return answer_error(m, q, -EOPNOTSUPP);
        }
}

static bool has_engine(const struct model *m)
{
        return m->description->ops && m->description->ops->tick;
}

/* A model that hangs waits for its client to leave. */
static int hang(const struct model *m)
{
        struct pollfd p = {.fd = m->fd};

        return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : p.revents ? -ECONNRESET : 1;
}

/* Between messages, an engine that runs by itself has a turn now and then. 1: a message is there, or is to
 * be waited for; 0: none is. */
static int pause_for_message(struct model *m, bool *ret_wait)
{
        int64_t usec = has_engine(m) ? m->options.tick_usec : -1;
        struct pollfd p = {.fd = m->fd, .events = POLLIN};
        struct timespec t = {usec / 1000000, usec % 1000000 * 1000};

        *ret_wait = usec < 0;
        if (usec <= 0 || m->queue || m->received.end > m->received.start)
                return 1;
        return ppoll(&p, 1, &t, NULL) > 0 ? 1 : 0;
}

static int next_message(struct model *m, bool wait, struct message **ret_message)
{
        if (!m->queue)
                return protocol_receive(m, m->fd, wait, ret_message);
        *ret_message = m->queue;
        m->queue = m->queue->next;
        if (!m->queue)
                m->queue_end = &m->queue;
        return 1;
}

/* 1: go on. */
static int serve_message(struct model *m)
{
        struct message *q;
        bool wait;
        int r = pause_for_message(m, &wait);

        if (r == 0)
                return 1;
        r = next_message(m, wait, &q);
        if (r <= 0)
                return r == -EAGAIN ? 1 : r;
        if (model_strikes(m, "die"))
                r = -ECONNABORTED;
        else if ((q->header.flags & FLAG_TYPE) != 0)
                r = -EPROTO;
        else if (model_strikes(m, "hang"))
                m->hung = true;
        else {
                m->gone |= model_strikes(m, "ones");
                r = handle(m, q);
                r = r < 0 ? r : 1;
        }
        message_free(q);
        return r;
}

static void client_left(struct model *m)
{
        struct message *q;

        dma_unmap(m, 0, 0, true);
        for (unsigned i = 0; i < MAX_VECTORS; i++) {
                m->msi[i] = rig_close(m->msi[i]);
                m->msix[i] = rig_close(m->msix[i]);
        }
        while (m->queue && next_message(m, false, &q) > 0)
                message_free(q);
        while (m->received.n_fds)
                rig_close(m->received.fds[--m->received.n_fds]);
        m->received.start = m->received.end = 0;
        pthread_mutex_lock(&m->stop_lock);
        m->fd = rig_close(m->fd);
        pthread_mutex_unlock(&m->stop_lock);
        m->twin = rig_close(m->twin);
        m->hung = false;
}

int model_serve(struct model *m, int fd)
{
        struct timeval t = {.tv_sec = (time_t)(ANSWER_USEC / RIG_USEC_PER_SEC)};
        int r;

        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
        pthread_mutex_lock(&m->stop_lock);
        m->fd = fd;
        if (m->stop)
                shutdown(fd, SHUT_RDWR);
        pthread_mutex_unlock(&m->stop_lock);
        m->client_data = MAX_DATA;
        model_trace(m, "client");
        do {
                r = m->hung ? hang(m) : serve_message(m);
                if (r == 1 && !m->hung && has_engine(m))
                        m->description->ops->tick(m);
        } while (r == 1);
        client_left(m);
        model_trace(m, "client left");
        return r;
}
