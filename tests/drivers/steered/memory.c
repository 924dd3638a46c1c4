/* SPDX-License-Identifier: ISC */
/*
 * The steered driver's memory. Every region gets a range of made-up addresses that no pointer of the process
 * has, with a gap behind it, and work reaches memory through them alone: what it names by a host address, or
 * beyond a region's end, is a fault as it would be on a device with page tables.
 *
 * The address space is the adapter's. Addresses are never given twice, so that a stale one faults.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/order/order.h"
#include "tests/drivers/steered/internal.h"

#define ADDRESS_BASE UINT64_C(0x5700000000000000)
#define GAP_BYTES    UINT64_C(65536)

enum backing {
        PRIVATE,  /* memory that only the device reaches */
        PINNED,   /* the host's, made here */
        BORROWED, /* the host's, another region's */
};

struct steered_region {
        struct rig_list link;
        uint64_t address, bytes;
        uint32_t access;
        enum backing backing;
        uint8_t *host;
        struct rig_region pinned;
};

/* Gives a region its addresses. */
static void link_region(struct steered_adapter *adapter, struct steered_region *region)
{
        pthread_mutex_lock(&steered_lock);
        region->address = ADDRESS_BASE + adapter->next_address;
        adapter->next_address += rig_round_up(region->bytes, GAP_BYTES) + GAP_BYTES;
        rig_list_append(&adapter->regions, &region->link);
        pthread_mutex_unlock(&steered_lock);
}

static int back_private(struct steered_region *region, uint64_t bytes, struct rig_error *e)
{
        void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (host == MAP_FAILED)
                return rig_error_set(e, -ENOMEM, "the steered device has no %" PRIu64 " bytes left", bytes);
        region->host = host;
        region->bytes = bytes;
        return 0;
}

static int back_pinned(struct steered_region *region, uint64_t bytes, struct rig_error *e)
{
        int r = rig_region_alloc_host(bytes, &region->pinned, e);

        if (r < 0)
                return r;
        region->host = region->pinned.host;
        region->bytes = region->pinned.bytes;
        return 0;
}

int steered_region_alloc(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        _cleanup_(rig_freep) struct steered_region *region = calloc(1, sizeof(*region));
        bool pinned = kind != RIG_MEMORY_DEVICE;
        int r;

        if (!region)
                return rig_error_set(e, -ENOMEM, "no memory for a region");
        region->backing = pinned ? PINNED : PRIVATE;
        region->access = RIG_ACCESS_READ | RIG_ACCESS_WRITE;
        r = pinned ? back_pinned(region, bytes, e) : back_private(region, bytes, e);
        if (r < 0)
                return r;
        link_region(steered_adapter_of(device->adapter), region);
        *ret_region = (struct rig_region){
                .bytes = region->bytes,
                .address = region->address,
                .host = pinned ? region->host : NULL,
                .fd = pinned ? region->pinned.fd : -EBADF,
                .access = region->access,
                .drv = region,
        };
        region = NULL;
        return 0;
}

int steered_region_borrow(struct rig_driver_device *device, const struct rig_region *of,
        struct rig_region *ret_region, struct rig_error *e)
{
        struct steered_region *region;

        if (!(device->facts.flags & RIG_DEVICE_BORROWS_HOST) || !of->host)
                return rig_error_set(e, -EOPNOTSUPP, "the steered device maps %s",
                        of->host ? "no memory of others" : "only memory that the host addresses");
        region = calloc(1, sizeof(*region));
        if (!region)
                return rig_error_set(e, -ENOMEM, "no memory for a region");
        region->backing = BORROWED;
        region->access = of->access;
        region->host = of->host;
        region->bytes = of->bytes;
        link_region(steered_adapter_of(device->adapter), region);
        *ret_region = (struct rig_region){
                .bytes = of->bytes,
                .address = region->address,
                .host = of->host,
                .fd = -EBADF,
                .access = of->access,
                .drv = region,
        };
        return 0;
}

void steered_region_free(struct rig_driver_adapter *adapter, struct rig_region *region)
{
        struct steered_region *own = region->drv;

        pthread_mutex_lock(&steered_lock);
        rig_list_remove(&own->link);
        pthread_mutex_unlock(&steered_lock);
        if (own->backing == PRIVATE)
                munmap(own->host, own->bytes);
        else if (own->backing == PINNED)
                rig_region_free_host(&own->pinned);
        free(own);
        region->drv = NULL;
}

int steered_translate(struct steered_adapter *adapter, uint64_t address, uint64_t bytes, uint32_t access,
        void **ret_host, struct rig_error *e)
{
        const struct steered_region *found = NULL;
        uint8_t *host = NULL;

        pthread_mutex_lock(&steered_lock);
        rig_list_for_each (i, &adapter->regions) {
                const struct steered_region *region = rig_list_entry(i, struct steered_region, link);

                if (address >= region->address &&
                        !rig_range_outside(address - region->address, bytes, region->bytes))
                        found = region;
        }
        if (found && (access & ~found->access) == 0)
                host = found->host + (address - found->address);
        pthread_mutex_unlock(&steered_lock);
        if (!host)
                return rig_error_set(e, -EFAULT,
                        "the steered device faulted: %s of %" PRIu64 " bytes at 0x%" PRIx64 ", %s",
                        access & RIG_ACCESS_WRITE ? "a write" : "a read", bytes, address,
                        found ? "which is only read" : "which it does not map");
        *ret_host = host;
        return 0;
}
