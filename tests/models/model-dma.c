/* SPDX-License-Identifier: ISC */
/*
 * A model's accesses to its client's memory: through the descriptors that came with mappings, or by
 * messages.
 *
 * Mappings are kept in an array in the order of their addresses. An access is checked as a whole before its
 * first byte moves, so that a fault leaves nothing half done.
 *
 * By message, and without a twin socket, the answer comes between whatever the client is sending at the
 * time: those messages are put aside, and done in their order once the answer is here.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/models/model-internal.h"

#define DMA_READ  11u
#define DMA_WRITE 12u

struct dma_message {
        struct message_header header;
        uint64_t address, count;
};

/* The first mapping that ends behind `address`. */
static unsigned lower_bound(const struct model *m, uint64_t address)
{
        unsigned low = 0, high = m->n_mappings;

        while (low < high) {
                unsigned middle = (low + high) / 2;
                const struct mapping *map = &m->mappings[middle];

                if (map->address + (map->bytes - 1) < address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void remove_at(struct model *m, unsigned i)
{
        if (m->mappings[i].host)
                munmap(m->mappings[i].host, m->mappings[i].bytes);
        m->n_mappings--;
        memmove(&m->mappings[i], &m->mappings[i + 1], (m->n_mappings - i) * sizeof(*m->mappings));
}

static int insert(struct model *m, unsigned i, const struct mapping *map)
{
        if (m->n_mappings == m->mappings_room) {
                unsigned room = RIG_MAX(2 * m->mappings_room, 64u);
                struct mapping *more = realloc(m->mappings, room * sizeof(*more));

                if (!more)
                        return -ENOMEM;
                m->mappings = more;
                m->mappings_room = room;
        }
        memmove(&m->mappings[i + 1], &m->mappings[i], (m->n_mappings - i) * sizeof(*m->mappings));
        m->mappings[i] = *map;
        m->n_mappings++;
        return 0;
}

/* `fd` is borrowed, and negative where none came. */
int dma_map(struct model *m, const uint8_t *body, uint32_t bytes, int fd)
{
        struct {
                uint32_t argsz, flags;
                uint64_t offset, address, bytes;
        } ask;
        struct mapping map = {0};
        unsigned i;
        int r;

        if (bytes != sizeof(ask))
                return -EINVAL;
        memcpy(&ask, body, sizeof(ask));
        if (ask.argsz != sizeof(ask) || !ask.bytes || ask.address + (ask.bytes - 1) < ask.address ||
                ask.offset > INT64_MAX || !(ask.flags & 3) || ask.flags & ~3u)
                return -EINVAL;
        map = (struct mapping){.address = ask.address, .bytes = ask.bytes, .access = ask.flags & 3};
        i = lower_bound(m, ask.address);
        if (i < m->n_mappings && m->mappings[i].address <= ask.address + (ask.bytes - 1))
                return -EEXIST;
        if (fd >= 0) {
                int protection = (map.access & MODEL_READ ? PROT_READ : 0) |
                                 (map.access & MODEL_WRITE ? PROT_WRITE : 0);
                void *host = mmap(NULL, ask.bytes, protection, MAP_SHARED, fd, (off_t)ask.offset);

                if (host == MAP_FAILED)
                        return -errno;
                map.host = host;
        }
        r = insert(m, i, &map);
        if (r < 0 && map.host)
                munmap(map.host, map.bytes);
        model_trace(m, "map 0x%" PRIx64 " 0x%" PRIx64 " %s%s", map.address, map.bytes,
                map.access & MODEL_WRITE ? "rw" : "r", map.host ? "" : " by message");
        return r;
}

/* QEMU unmaps large ranges that hold few mappings or none: all that lies inside goes. */
void dma_unmap(struct model *m, uint64_t address, uint64_t bytes, bool all)
{
        unsigned i = all ? 0 : lower_bound(m, address);

        while (i < m->n_mappings) {
                const struct mapping *map = &m->mappings[i];

                if (!all && (map->address < address || map->address - address >= bytes ||
                                    map->bytes > bytes - (map->address - address)))
                        break;
                model_trace(m, "unmap 0x%" PRIx64 " 0x%" PRIx64, map->address, map->bytes);
                remove_at(m, i);
        }
}

unsigned model_dma_mappings(const struct model *m)
{
        return m->n_mappings;
}

static struct mapping *mapping_of(struct model *m, uint64_t address)
{
        unsigned i = lower_bound(m, address);

        return i < m->n_mappings && m->mappings[i].address <= address ? &m->mappings[i] : NULL;
}

void *model_dma_pointer(struct model *m, uint64_t address, uint64_t bytes, bool write)
{
        const struct mapping *map = mapping_of(m, address);

        if (!map || !map->host || bytes > map->bytes - (address - map->address) || m->gone ||
                !model_is_master(m) || (write && !(map->access & MODEL_WRITE)))
                return NULL;
        return map->host + (address - map->address);
}

/* Records why an access may not be, if it may not. */
static int check(struct model *m, uint64_t address, uint64_t bytes, bool write)
{
        const char *verb = write ? "write" : "read";

        if (!model_is_master(m)) {
                model_fault(m, "DMA %s at 0x%" PRIx64 " with bus mastering off", verb, address);
                return -EFAULT;
        }
        for (uint64_t at = address, left = bytes; left;) {
                const struct mapping *map = mapping_of(m, at);
                uint64_t part;

                if (!map || !(map->access & (write ? MODEL_WRITE : MODEL_READ))) {
                        model_fault(m, "DMA %s at 0x%" PRIx64 ": %s", verb, at,
                                map ? "the function may only read there" : "nothing is mapped");
                        return -EFAULT;
                }
                part = RIG_MIN(left, map->bytes - (at - map->address));
                at += part;
                left -= part;
        }
        return 0;
}

/* Waits for the answer to message `id` on `fd`, and puts aside what else comes. */
static struct message *wait_answer(struct model *m, int fd, uint16_t id)
{
        struct message *message;

        while (protocol_receive(m, fd, true, &message) > 0) {
                if ((message->header.flags & FLAG_TYPE) == FLAG_REPLY && message->header.id == id)
                        return message;
                if (fd != m->fd || (message->header.flags & FLAG_TYPE) == FLAG_REPLY) {
                        message_free(message);
                        return NULL;
                }
                *m->queue_end = message;
                m->queue_end = &message->next;
        }
        return NULL;
}

/* One message and its answer, of at most MAX_DATA bytes. */
static int by_message(struct model *m, bool write, uint64_t address, uint8_t *data, uint32_t bytes)
{
        struct dma_message ask = {.header = {.id = m->next_id++,
                                          .command = write ? DMA_WRITE : DMA_READ,
                                          .bytes = (uint32_t)sizeof(ask) + (write ? bytes : 0)},
                .address = address,
                .count = bytes};
        int fd = m->twin >= 0 ? m->twin : m->fd, r;
        struct message *answer;
        bool right;

        r = protocol_send(fd, &ask, sizeof(ask), data, write ? bytes : 0, NULL, 0);
        answer = r < 0 ? NULL : wait_answer(m, fd, ask.header.id);
        if (!answer)
                return -EIO;
        right = !(answer->header.flags & FLAG_ERROR) && answer->bytes == 16 + (write ? 0 : bytes) &&
                memcmp(answer->body, &ask.address, 8) == 0;
        if (right && !write)
                memcpy(data, answer->body + 16, bytes);
        message_free(answer);
        return right ? 0 : -EIO;
}

static int access_memory(struct model *m, bool write, uint64_t address, uint8_t *data, uint64_t bytes)
{
        int r = m->gone ? -EIO : check(m, address, bytes, write);

        while (r == 0 && bytes) {
                struct mapping *map = mapping_of(m, address);
                uint64_t part;

                if (!map) /* the client took it away while it was asked */
                        return -EIO;
                part = RIG_MIN(bytes, map->bytes - (address - map->address));
                if (!map->host || m->options.message_dma) {
                        part = RIG_MIN(part, (uint64_t)m->client_data);
                        r = by_message(m, write, address, data, (uint32_t)part);
                } else if (write) {
                        memcpy(map->host + (address - map->address), data, part);
                } else {
                        memcpy(data, map->host + (address - map->address), part);
                }
                address += part;
                data += part;
                bytes -= part;
        }
        return r;
}

int model_dma_read(struct model *m, uint64_t address, void *data, uint64_t bytes)
{
        return access_memory(m, false, address, data, bytes);
}

int model_dma_write(struct model *m, uint64_t address, const void *data, uint64_t bytes)
{
        return access_memory(m, true, address, (void *)(uintptr_t)data, bytes);
}
