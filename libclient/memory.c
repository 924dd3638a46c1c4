/* SPDX-License-Identifier: ISC */
/*
 * Memories.
 *
 * The library keeps stamps of its own for a memory that no other connection can use, so that a wait for it
 * is a look at a word. They say which value of which device wrote and used it last, for a few devices; when
 * more use it, those whose use is over make room, and where none is, the memory is left to rigd, which knows
 * all of them.
 *
 * A mapping is made once, when the host first needs it, and lives as long as the memory: addresses that were
 * given to the program or to host code stay.
 */
#include "libclient/memory.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE_BYTES UINT64_C(4096)

struct rig_memory *rig_memory_ref(struct rig_memory *memory)
{
        /* relaxed: whoever refs holds a reference already */
        atomic_fetch_add_explicit(&memory->refs, 1, memory_order_relaxed);
        return memory;
}

/* Where its mapping starts, and how long it is: mappings are whole pages of the descriptor. */
static uint64_t lead_in(const struct rig_memory *memory)
{
        return memory->fd_offset & (PAGE_BYTES - 1);
}

struct rig_memory *rig_memory_unref(struct rig_memory *memory)
{
        uint8_t *map;

        /* acq_rel: what others did with the memory is before its end */
        if (!memory || atomic_fetch_sub_explicit(&memory->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        map = atomic_load_explicit(&memory->map, memory_order_relaxed);
        if (map && memory->bytes > 0)
                munmap(map - lead_in(memory), memory->bytes + lead_in(memory));
        rig_close(memory->fd);
        free(memory);
        return NULL;
}

static int map_bytes(const struct rig_memory *memory, uint8_t **ret_map)
{
        int prot = memory->access == RIG_READ ? PROT_READ : PROT_READ | PROT_WRITE;
        uint64_t skip = lead_in(memory);
        struct stat st;
        uint8_t *map;

        if (fstat(memory->fd, &st) < 0 ||
                rig_range_outside(memory->fd_offset, memory->bytes, (uint64_t)st.st_size))
                return rig_fail(-EPROTO, "the descriptor of a memory is shorter than its %llu bytes",
                        (unsigned long long)memory->bytes);
        map = mmap(
                NULL, memory->bytes + skip, prot, MAP_SHARED, memory->fd, (off_t)(memory->fd_offset - skip));
        if (map == MAP_FAILED)
                return rig_fail(-errno, "cannot map a memory of %llu bytes: %s",
                        (unsigned long long)memory->bytes, rig_strerror(errno));
        *ret_map = map + skip;
        return 0;
}

int rig_memory_map(struct rig_memory *memory, uint8_t **ret_map)
{
        static uint8_t nothing; /* the address of no bytes */
        uint8_t *map, *seen = NULL;
        int r;

        /* acquire: pairs with the exchange below */
        map = atomic_load_explicit(&memory->map, memory_order_acquire);
        if (map) {
                *ret_map = map;
                return 0;
        }
        if (!memory->host && memory->bytes > 0)
                return rig_fail(-EOPNOTSUPP, "the host does not address this memory");
        map = &nothing;
        if (memory->bytes > 0) {
                r = map_bytes(memory, &map);
                if (r < 0)
                        return r;
        }
        if (!atomic_compare_exchange_strong_explicit(
                    &memory->map, &seen, map, memory_order_acq_rel, memory_order_acquire)) {
                /* another thread was first */
                if (memory->bytes > 0)
                        munmap(map - lead_in(memory), memory->bytes + lead_in(memory));
                map = seen;
        }
        *ret_map = map;
        return 0;
}

static bool over(const struct rig *rig, const struct rig_stamp *stamp)
{
        const struct rig_device *device = rig->devices[stamp->device];

        return device && device->epoch == stamp->epoch && rig_device_now(device) >= stamp->last_use;
}

static struct rig_stamp *find_stamp(struct rig_memory *memory, const struct rig_device *device)
{
        for (uint32_t i = 0; i < memory->n_stamps; i++) {
                struct rig_stamp *stamp = &memory->stamps[i];

                if (stamp->device == device->id && stamp->epoch == device->epoch)
                        return stamp;
        }
        return NULL;
}

/* A stamp for a device that has none: new, or of a device whose use is over. */
static struct rig_stamp *free_stamp(struct rig_memory *memory, const struct rig_device *device)
{
        if (memory->n_stamps < RIG_STAMPS_MAX)
                return &memory->stamps[memory->n_stamps++];
        for (uint32_t i = 0; i < memory->n_stamps; i++)
                if (over(device->rig, &memory->stamps[i]))
                        return &memory->stamps[i];
        return NULL;
}

void rig_memory_touch_slowly(
        struct rig_memory *memory, const struct rig_device *device, uint64_t value, uint32_t access)
{
        struct rig_stamp *stamp = find_stamp(memory, device);

        if (!stamp) {
                stamp = free_stamp(memory, device);
                if (!stamp) {
                        memory->crowded = true;
                        return;
                }
                *stamp = (struct rig_stamp){.device = device->id, .epoch = device->epoch};
        }
        stamp->last_use = value;
        if (access & RIG_WRITE)
                stamp->last_write = value;
}
