/* SPDX-License-Identifier: ISC */
/*
 * The way to a function that a program serves: a client of the vfio-user protocol.
 *
 * A model may be as wrong as a device, and more so: what it says of itself is checked before it is used.
 * Regions are mapped only where the file that came for them is a plain one and long enough; a model that
 * cuts it short afterwards takes its client down with a SIGBUS, which is why models are programs that an
 * admin chose. Regions that are not mapped are read by a call, and written by messages that get no answer:
 * posted, as writes to a bus are, and in the order they were made, since one socket carries all of it.
 *
 * Interrupts. A server signals the eventfds that it was given; as the kernel's vfio does, what is routed is
 * also enabled in configuration space, so that a model can hold a driver to it.
 *
 * DMA. Each mapping's descriptor goes to the server, which maps it. A server may ask for the same bytes by
 * messages, within what is mapped for it (rig_dma_space_copy()).
 *
 * Deliberately not here: migration, dirty pages, ioeventfds, several writes in one message; none is of use
 * to a driver of one function. The socket and all that can hang are vfio-user-channel.c's.
 */
#include <inttypes.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/pci/json.h"
#include "daemon/pci/region-info.h"
#include "daemon/pci/transport.h"
#include "daemon/pci/vfio-user-channel.h"
#include "daemon/pci/vfio-user-wire.h"

#define REGION_INFO_ROOM 65536u /* of a region's answer: some 4,000 areas */
#define MSI_ENABLE       0x0001u
#define MSIX_ENABLE      0x8000u
#define LEAST_USEC       UINT64_C(1) /* the least timeout that is one */

struct vfio_user {
        struct rig_pci pci;
        struct rig_channel *channel;
        bool resets;
        uint32_t n_irqs;
        uint32_t message_fds, transfer_bytes;
        uint64_t max_dma_maps, n_dma_maps;
        struct rig_region_info regions[RIG_PCI_BARS];
        uint32_t routed; /* the capability whose interrupts are routed, or 0 */
};

static struct vfio_user *of(struct rig_pci *pci)
{
        return RIG_CONTAINER_OF(pci, struct vfio_user, pci);
}

static void close_fds(struct rig_channel_call *call)
{
        while (call->n_reply_fds)
                close(call->reply_fds[--call->n_reply_fds]);
}

/* A call whose answer brings no descriptors; what comes anyhow is closed. */
static int simple_call(struct vfio_user *v, struct rig_channel_call *call, struct rig_error *e)
{
        int r = rig_channel_call(v->channel, call, e);

        close_fds(call);
        return r;
}

/* ---------------------------------------------------------------- version */

struct capabilities {
        uint64_t message_fds, transfer_bytes, dma_maps, twin_index;
        bool twin, twin_has_index;
};

static void read_capability(void *own, const char *path, enum rig_json_kind kind, uint64_t value)
{
        struct capabilities *c = own;
        bool number = kind == JSON_NUMBER;

        if (number && strcmp(path, "capabilities.max_msg_fds") == 0)
                c->message_fds = value;
        else if (number && strcmp(path, "capabilities.max_data_xfer_size") == 0)
                c->transfer_bytes = value;
        else if (number && strcmp(path, "capabilities.max_dma_maps") == 0)
                c->dma_maps = value;
        else if (kind == JSON_BOOL && strcmp(path, "capabilities.twin_socket.supported") == 0)
                c->twin = value;
        else if (number && strcmp(path, "capabilities.twin_socket.fd_index") == 0) {
                c->twin_index = value;
                c->twin_has_index = true;
        }
}

static int check_version(struct vfio_user *v, struct rig_channel_call *call,
        const struct wire_version *version, const char *text, struct capabilities *c, struct rig_error *e)
{
        size_t bytes = call->reply_bytes - sizeof(*version);

        if (version->major != WIRE_MAJOR || version->minor > WIRE_MINOR)
                return rig_channel_broken(v->channel, call, e, "the model speaks version %u.%u, not %u.%u",
                        version->major, version->minor, WIRE_MAJOR, WIRE_MINOR);
        if (bytes && (text[bytes - 1] != '\0' || rig_json_read(text, bytes - 1, read_capability, c) < 0))
                return rig_channel_broken(v->channel, call, e, "the model's capabilities are no JSON text");
        if (!c->transfer_bytes)
                return rig_channel_broken(
                        v->channel, call, e, "the model takes no data: max_data_xfer_size is 0");
        if (c->twin && (!c->twin_has_index || c->twin_index >= call->n_reply_fds))
                return rig_channel_broken(v->channel, call, e, "the model has a twin socket, and sent none");
        return 0;
}

static int negotiate(struct vfio_user *v, struct rig_error *e)
{
        static const char proposal[] =
                "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":1048576,"
                "\"twin_socket\":{\"supported\":true}}}";
        struct capabilities c = {.message_fds = WIRE_DEFAULT_MESSAGE_FDS,
                .transfer_bytes = WIRE_DEFAULT_TRANSFER_BYTES,
                .dma_maps = WIRE_DEFAULT_DMA_MAPS};
        struct wire_version mine = {WIRE_MAJOR, WIRE_MINOR}, theirs;
        char text[4096];
        struct rig_channel_call call = {
                .step = "agreeing on a version (another program may have this model)",
                .command = WIRE_VERSION,
                .request = {{&mine, sizeof(mine)}, {(void *)(uintptr_t)proposal, sizeof(proposal)}},
                .reply = {{&theirs, sizeof(theirs)}, {text, sizeof(text)}},
                .reply_least = sizeof(theirs)};
        int twin = -EBADF, r = rig_channel_call(v->channel, &call, e);

        if (r == 0)
                r = check_version(v, &call, &theirs, text, &c, e);
        if (r == 0 && c.twin)
                twin = rig_steal_fd(&call.reply_fds[c.twin_index]);
        for (unsigned i = 0; i < call.n_reply_fds; i++)
                rig_close(call.reply_fds[i]);
        if (r < 0)
                return r;
        v->message_fds = (uint32_t)RIG_MIN(c.message_fds, (uint64_t)RIG_CHANNEL_MAX_FDS);
        v->transfer_bytes = (uint32_t)RIG_MIN(c.transfer_bytes, (uint64_t)WIRE_DEFAULT_TRANSFER_BYTES);
        v->max_dma_maps = c.dma_maps;
        return rig_channel_listen(v->channel, twin, e);
}

/* ---------------------------------------------------------------- device and regions */

static int get_info(struct vfio_user *v, struct rig_error *e)
{
        struct wire_info ask = {.argsz = sizeof(ask)}, info;
        struct rig_channel_call call = {.step = "asking what the device is",
                .command = WIRE_GET_INFO,
                .request = {{&ask, sizeof(ask)}},
                .reply = {{&info, sizeof(info)}},
                .reply_least = sizeof(info)};
        int r = simple_call(v, &call, e);

        if (r < 0)
                return r;
        if (info.argsz < sizeof(info) || !(info.flags & VFIO_DEVICE_FLAGS_PCI) ||
                info.n_regions <= VFIO_PCI_CONFIG_REGION_INDEX)
                return rig_channel_broken(v->channel, &call, e,
                        "the model is no PCI function (flags 0x%x, %u regions)", info.flags, info.n_regions);
        v->resets = info.flags & VFIO_DEVICE_FLAGS_RESET;
        v->n_irqs = info.n_irqs;
        return 0;
}

/* Whether the file can carry all that may be mapped: past its end, an access is a SIGBUS. */
static bool file_is_long_enough(const struct rig_region_info *region)
{
        struct stat st;

        if (fstat(region->fd, &st) < 0 || !S_ISREG(st.st_mode) || region->fd_offset > INT64_MAX)
                return false;
        for (uint32_t i = 0; i < region->n_areas; i++) {
                const struct rig_region_area *area = &region->areas[i];

                if (rig_range_outside(area->offset, area->bytes, INT64_MAX - region->fd_offset) ||
                        rig_range_outside(
                                region->fd_offset + area->offset, area->bytes, (uint64_t)st.st_size))
                        return false;
        }
        return true;
}

/* What the answer says, into `region`, which takes its descriptor from the call. NULL, or what is wrong. */
static const char *parse_region(
        struct rig_region_info *region, struct rig_channel_call *call, const uint8_t *answer, uint32_t index)
{
        const char *wrong = rig_region_info_parse(region, answer, call->reply_bytes, index);

        if (wrong)
                return wrong;
        if (((const struct vfio_region_info *)(const void *)answer)->flags & VFIO_REGION_INFO_FLAG_MMAP) {
                if (!call->n_reply_fds)
                        return "it can be mapped, and no descriptor came";
                region->fd = rig_steal_fd(&call->reply_fds[--call->n_reply_fds]);
                if (!file_is_long_enough(region))
                        return "its file is not as long as the region";
        }
        return NULL;
}

/* Asks for a region, again with more room where its capabilities need it. */
static int get_region(
        struct vfio_user *v, uint32_t index, struct rig_region_info *region, struct rig_error *e)
{
        _cleanup_(rig_freep) uint8_t *answer = malloc(REGION_INFO_ROOM);
        struct vfio_region_info ask = {.argsz = 4096, .index = index}, info;
        struct rig_channel_call call = {.step = "asking for a region",
                .at = index,
                .command = WIRE_GET_REGION_INFO,
                .request = {{&ask, sizeof(ask)}},
                .reply = {{answer, REGION_INFO_ROOM}},
                .reply_least = sizeof(info)};
        const char *wrong;
        int r;

        *region = (struct rig_region_info){.fd = -EBADF};
        if (!answer)
                return rig_error_set(e, -ENOMEM, "%s: no memory to ask for its regions", v->pci.name);
        r = rig_channel_call(v->channel, &call, e);
        if (r < 0)
                return r;
        memcpy(&info, answer, sizeof(info));
        if (info.argsz > ask.argsz && info.argsz <= REGION_INFO_ROOM) {
                close_fds(&call);
                ask.argsz = info.argsz;
                r = rig_channel_call(v->channel, &call, e);
                if (r < 0)
                        return r;
                memcpy(&info, answer, sizeof(info));
        }
        wrong = parse_region(region, &call, answer, index);
        close_fds(&call);
        if (!wrong)
                return 0;
        rig_region_info_deinit(region);
        return rig_channel_broken(v->channel, &call, e, "%s", wrong);
}

static int get_regions(struct vfio_user *v, struct rig_error *e)
{
        struct rig_region_info config;
        int r = get_region(v, VFIO_PCI_CONFIG_REGION_INDEX, &config, e);

        if (r < 0)
                return r;
        rig_region_info_deinit(&config);
        if (config.bytes != 256 && config.bytes != 4096)
                return rig_error_set(e, -EPROTO,
                        "%s: its configuration space has %" PRIu64 " bytes, not 256 or 4096", v->pci.name,
                        config.bytes);
        v->pci.config_bytes = (uint32_t)config.bytes;
        for (unsigned i = 0; i < RIG_PCI_BARS; i++) {
                struct rig_region_info *region = &v->regions[i];

                r = get_region(v, VFIO_PCI_BAR0_REGION_INDEX + i, region, e);
                if (r < 0)
                        return r;
                v->pci.bars[i] = (struct rig_pci_bar){
                        .bytes = region->bytes, .mappable = rig_region_info_maps_all(region)};
        }
        return 0;
}

/* ---------------------------------------------------------------- accesses */

static int region_read(struct vfio_user *v, const char *step, uint32_t index, uint64_t at, void *data,
        uint32_t bytes, struct rig_error *e)
{
        struct wire_region_access ask = {at, index, bytes}, answer;
        struct rig_channel_call call = {.step = step,
                .at = at,
                .command = WIRE_REGION_READ,
                .request = {{&ask, sizeof(ask)}},
                .reply = {{&answer, sizeof(answer)}, {data, bytes}},
                .reply_least = (uint32_t)sizeof(answer) + bytes};
        int r = simple_call(v, &call, e);

        if (r < 0)
                return r;
        if (answer.offset != at || answer.region != index || answer.count != bytes)
                return rig_channel_broken(v->channel, &call, e, "the answer is of another access");
        return 0;
}

static int region_write(struct vfio_user *v, const char *step, uint32_t index, uint64_t at, const void *data,
        uint32_t bytes, bool posted, struct rig_error *e)
{
        struct wire_region_access ask = {at, index, bytes}, answer;
        struct rig_channel_call call = {.step = step,
                .at = at,
                .command = WIRE_REGION_WRITE,
                .request = {{&ask, sizeof(ask)}, {(void *)(uintptr_t)data, bytes}},
                .reply = {{&answer, sizeof(answer)}},
                .reply_least = sizeof(answer)};
        int r = posted ? rig_channel_post(v->channel, &call, e) : simple_call(v, &call, e);

        if (r < 0 || posted)
                return r;
        if (answer.offset != at || answer.region != index || answer.count != bytes)
                return rig_channel_broken(v->channel, &call, e, "the answer is of another access");
        return 0;
}

static int vfio_user_config_read(
        struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t *ret_value, struct rig_error *e)
{
        uint8_t data[4] = {0};
        int r = region_read(
                of(pci), "reading configuration space", VFIO_PCI_CONFIG_REGION_INDEX, at, data, bytes, e);

        if (r == 0)
                *ret_value =
                        data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        return r;
}

static int vfio_user_config_write(
        struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t value, struct rig_error *e)
{
        uint8_t data[4] = {
                (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};

        return region_write(of(pci), "writing configuration space", VFIO_PCI_CONFIG_REGION_INDEX, at, data,
                bytes, false, e);
}

static int vfio_user_bar_read(
        struct rig_pci *pci, unsigned bar, uint64_t at, void *data, uint64_t bytes, struct rig_error *e)
{
        struct vfio_user *v = of(pci);
        int r = 0;

        for (uint8_t *p = data; r == 0 && bytes;) {
                uint32_t part = (uint32_t)RIG_MIN(bytes, (uint64_t)v->transfer_bytes);

                r = region_read(v, "reading a BAR", VFIO_PCI_BAR0_REGION_INDEX + bar, at, p, part, e);
                p += part;
                at += part;
                bytes -= part;
        }
        return r;
}

static int vfio_user_bar_write(struct rig_pci *pci, unsigned bar, uint64_t at, const void *data,
        uint64_t bytes, struct rig_error *e)
{
        struct vfio_user *v = of(pci);
        int r = 0;

        for (const uint8_t *p = data; r == 0 && bytes;) {
                uint32_t part = (uint32_t)RIG_MIN(bytes, (uint64_t)v->transfer_bytes);

                r = region_write(v, "writing a BAR", VFIO_PCI_BAR0_REGION_INDEX + bar, at, p, part, true, e);
                p += part;
                at += part;
                bytes -= part;
        }
        return r;
}

static int vfio_user_map(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes,
        enum rig_caching caching, void **ret_host, struct rig_error *e)
{
        const struct rig_region_info *region = &of(pci)->regions[bar];
        int r;

        *ret_host = NULL;
        r = rig_region_info_map(region, region->fd, offset, bytes, ret_host);
        if (r < 0)
                return rig_error_set(e, r, "%s: mapping BAR %u failed: %s", pci->name, bar, strerror(-r));
        return 0;
}

static void vfio_user_unmap(struct rig_pci *pci, void *host, uint64_t bytes)
{
        if (host)
                munmap(host, bytes);
}

/* ---------------------------------------------------------------- interrupts */

static int irq_count(struct vfio_user *v, uint32_t index, uint32_t *ret_count, struct rig_error *e)
{
        struct vfio_irq_info ask = {.argsz = sizeof(ask), .index = index}, info;
        struct rig_channel_call call = {.step = "asking for interrupts",
                .at = index,
                .command = WIRE_GET_IRQ_INFO,
                .request = {{&ask, sizeof(ask)}},
                .reply = {{&info, sizeof(info)}},
                .reply_least = sizeof(info)};
        int r;

        *ret_count = 0;
        if (index >= v->n_irqs)
                return 0;
        r = simple_call(v, &call, e);
        if (r < 0)
                return r;
        if (info.index != index)
                return rig_channel_broken(v->channel, &call, e, "the answer is of other interrupts");
        *ret_count = info.flags & VFIO_IRQ_INFO_EVENTFD ? info.count : 0;
        return 0;
}

static int set_irqs(struct vfio_user *v, uint32_t index, uint32_t start, const int *eventfds, uint32_t n,
        struct rig_error *e)
{
        struct vfio_irq_set set = {.argsz = sizeof(set),
                .flags = VFIO_IRQ_SET_ACTION_TRIGGER |
                         (n ? VFIO_IRQ_SET_DATA_EVENTFD : VFIO_IRQ_SET_DATA_NONE),
                .index = index,
                .start = start,
                .count = n};
        struct rig_channel_call call = {.step = n ? "routing interrupts" : "turning interrupts off",
                .at = start,
                .command = WIRE_SET_IRQS,
                .request = {{&set, sizeof(set)}},
                .fds = eventfds,
                .n_fds = n};

        return simple_call(v, &call, e);
}

/* Turns a capability's enable bit, in its word at +2, on or off. */
static int enable(struct vfio_user *v, uint32_t capability, bool on, struct rig_error *e)
{
        uint32_t bit = capability == RIG_PCI_CAP_MSIX ? MSIX_ENABLE : MSI_ENABLE, at, control;
        int r = rig_pci_capability(&v->pci, (uint8_t)capability, &at);

        if (r < 0)
                return rig_error_set(e, r == -ENOENT ? -EPROTO : r,
                        "%s: it has interrupts, and no capability 0x%x that enables them", v->pci.name,
                        capability);
        r = vfio_user_config_read(&v->pci, at + 2, 2, &control, e);
        if (r < 0)
                return r;
        return vfio_user_config_write(&v->pci, at + 2, 2, on ? control | bit : control & ~bit, e);
}

static uint32_t index_of(uint32_t capability)
{
        return capability == RIG_PCI_CAP_MSIX ? VFIO_PCI_MSIX_IRQ_INDEX : VFIO_PCI_MSI_IRQ_INDEX;
}

static int unroute(struct vfio_user *v, struct rig_error *e)
{
        int r;

        if (!v->routed)
                return 0;
        r = enable(v, v->routed, false, e);
        if (r == 0)
                r = set_irqs(v, index_of(v->routed), 0, NULL, 0, e);
        if (r == 0)
                v->routed = 0;
        return r;
}

static int route(
        struct vfio_user *v, uint32_t capability, unsigned n, const int *eventfds, struct rig_error *e)
{
        unsigned at_once = RIG_MAX(v->message_fds, 1u);
        int r = 0;

        v->routed = capability;
        for (unsigned i = 0; r == 0 && i < n; i += at_once)
                r = set_irqs(v, index_of(capability), i, eventfds + i, RIG_MIN(at_once, n - i), e);
        return r == 0 ? enable(v, capability, true, e) : r;
}

static int vfio_user_interrupts(struct rig_pci *pci, unsigned n, const int *eventfds, struct rig_error *e)
{
        static const uint32_t capabilities[] = {RIG_PCI_CAP_MSIX, RIG_PCI_CAP_MSI};
        struct vfio_user *v = of(pci);
        uint32_t most = 0;
        int r = unroute(v, e);

        if (r < 0 || !n)
                return r;
        for (unsigned i = 0; i < RIG_ARRAY_SIZE(capabilities); i++) {
                uint32_t count;

                r = irq_count(v, index_of(capabilities[i]), &count, e);
                if (r < 0)
                        return r;
                if (count >= n)
                        return route(v, capabilities[i], n, eventfds, e);
                most = RIG_MAX(most, count);
        }
        return rig_error_set(
                e, -EOPNOTSUPP, "%s: it has %u interrupts by message, not %u", pci->name, most, n);
}

/* ---------------------------------------------------------------- reset, DMA */

static int vfio_user_reset(struct rig_pci *pci, uint64_t timeout_usec, struct rig_error *e)
{
        struct vfio_user *v = of(pci);
        struct rig_channel_call call = {.step = "resetting it",
                .command = WIRE_RESET,
                .timeout_usec = RIG_MAX(timeout_usec, LEAST_USEC)};
        int r;

        if (!v->resets)
                return rig_error_set(e, -EOPNOTSUPP, "%s: its model does not reset", pci->name);
        r = simple_call(v, &call, e);
        return r == 0 && v->routed ? enable(v, v->routed, true, e) : r;
}

static int vfio_user_dma_map(struct rig_pci *pci, const struct rig_dma *dma, int fd, uint64_t offset,
        unsigned flags, struct rig_error *e)
{
        struct vfio_user *v = of(pci);
        struct wire_dma_map map = {.argsz = sizeof(map),
                .flags = WIRE_DMA_READABLE | (flags & RIG_DMA_READ_ONLY ? 0 : WIRE_DMA_WRITABLE),
                .offset = offset,
                .address = dma->ranges[0].address,
                .bytes = dma->ranges[0].bytes};
        struct rig_channel_call call = {.step = "mapping memory for it",
                .at = map.address,
                .command = WIRE_DMA_MAP,
                .request = {{&map, sizeof(map)}},
                .fds = &fd,
                .n_fds = v->message_fds ? 1 : 0};
        int r;

        if (v->n_dma_maps >= v->max_dma_maps)
                return rig_error_set(e, -ENOSPC, "%s: its model takes no more than %" PRIu64 " mappings",
                        pci->name, v->max_dma_maps);
        r = simple_call(v, &call, e);
        if (r == 0)
                v->n_dma_maps++;
        return r;
}

/* What fails here is kept: the model is gone, or refuses to let go of what it has no other hold of. */
static void vfio_user_dma_unmap(struct rig_pci *pci, const struct rig_dma *dma)
{
        struct vfio_user *v = of(pci);
        struct rig_error e = RIG_ERROR_NULL;
        struct wire_dma_unmap unmap = {
                .argsz = sizeof(unmap), .address = dma->ranges[0].address, .bytes = dma->ranges[0].bytes};
        struct wire_dma_unmap answer;
        struct rig_channel_call call = {.step = "unmapping memory of it",
                .at = unmap.address,
                .command = WIRE_DMA_UNMAP,
                .request = {{&unmap, sizeof(unmap)}},
                .reply = {{&answer, sizeof(answer)}},
                .reply_least = sizeof(answer)};
        int r = simple_call(v, &call, &e);

        v->n_dma_maps--;
        if (r == 0 && (answer.address != unmap.address || answer.bytes != unmap.bytes))
                r = rig_channel_broken(v->channel, &call, &e, "the answer is of another mapping");
        if (r < 0)
                rig_pci_note(pci, &e);
}

static int serve_dma(void *own, bool write, uint64_t address, void *data, uint64_t bytes)
{
        struct vfio_user *v = own;

        return rig_dma_space_copy(v->pci.space, write, address, data, bytes);
}

/* ---------------------------------------------------------------- from the beginning to the end */

static void vfio_user_close(struct rig_pci *pci)
{
        struct vfio_user *v = of(pci);

        v->channel = rig_channel_close(v->channel); /* its thread ends before the mappings do */
        for (unsigned i = 0; i < RIG_PCI_BARS; i++)
                rig_region_info_deinit(&v->regions[i]);
        rig_pci_deinit(pci);
        free(v);
}

static const struct rig_pci_ops vfio_user_ops = {
        .way = RIG_PCI_VFIO_USER,
        .bar_read = vfio_user_bar_read,
        .bar_write = vfio_user_bar_write,
        .close = vfio_user_close,
        .config_read = vfio_user_config_read,
        .config_write = vfio_user_config_write,
        .dma_map = vfio_user_dma_map,
        .dma_unmap = vfio_user_dma_unmap,
        .interrupts = vfio_user_interrupts,
        .map = vfio_user_map,
        .reset = vfio_user_reset,
        .unmap = vfio_user_unmap,
};

int rig_pci_vfio_user_open(const struct rig_pci_options *options, const char *path, const char *name,
        struct rig_pci **ret_pci, struct rig_error *e)
{
        struct vfio_user *v = calloc(1, sizeof(*v));
        int r = v ? rig_pci_init(&v->pci, &vfio_user_ops, name) : -ENOMEM;

        if (r < 0) {
                free(v);
                return rig_error_set(e, r, "%s: no memory to open it", name);
        }
        for (unsigned i = 0; i < RIG_PCI_BARS; i++)
                v->regions[i].fd = -EBADF;
        r = rig_channel_open(path, name, options->answer_usec, serve_dma, v, &v->channel, e);
        if (r == 0)
                r = negotiate(v, e);
        if (r == 0)
                r = get_info(v, e);
        if (r == 0)
                r = get_regions(v, e);
        if (r < 0) {
                vfio_user_close(&v->pci);
                return r;
        }
        *ret_pci = &v->pci;
        return 0;
}
