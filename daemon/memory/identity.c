/* SPDX-License-Identifier: ISC */
/*
 * See identity.h. A hash table of chains through nodes that live in the memories they identify. Invariants:
 * no two registered nodes name the same file, and the table is never more than three quarters full.
 *
 * The table does not keep the file alive: whoever registers holds a descriptor of it until it unregisters.
 */
#include "daemon/memory/identity.h"

#include "daemon/memory/closer.h"

#define BUCKETS_MIN 64

/* Inode numbers are small and dense, and clients choose them on file systems of their own: mix all bits. */
static uint64_t mix(uint64_t x)
{
        x ^= x >> 32;
        x *= UINT64_C(0x9e3779b97f4a7c15);
        x ^= x >> 29;
        x *= UINT64_C(0xd6e8feb86659fd93);
        return x ^ (x >> 32);
}

static struct rig_identity **bucket_of(
        struct rig_identity **buckets, size_t n_buckets, dev_t device, ino_t inode)
{
        return &buckets[mix(mix(device) + inode) & (n_buckets - 1)];
}

static struct rig_identity *find(const struct rig_identities *table, dev_t device, ino_t inode)
{
        struct rig_identity *i;

        if (table->n_buckets == 0)
                return NULL;
        i = *bucket_of(table->buckets, table->n_buckets, device, inode);
        while (i && (i->device != device || i->inode != inode))
                i = i->next;
        return i;
}

static int grow(struct rig_identities *table)
{
        size_t n_buckets = table->n_buckets ? 2 * table->n_buckets : BUCKETS_MIN;
        struct rig_identity **buckets = calloc(n_buckets, sizeof(*buckets));

        if (!buckets)
                return -ENOMEM;
        for (size_t b = 0; b < table->n_buckets; b++) {
                for (struct rig_identity *i = table->buckets[b], *next; i; i = next) {
                        struct rig_identity **to = bucket_of(buckets, n_buckets, i->device, i->inode);

                        next = i->next;
                        i->next = *to;
                        *to = i;
                }
        }
        free(table->buckets);
        table->buckets = buckets;
        table->n_buckets = n_buckets;
        return 0;
}

void rig_identities_deinit(struct rig_identities *table)
{
        rig_assert(table->n == 0);
        free(table->buckets);
        *table = (struct rig_identities){0};
}

int rig_identities_add(struct rig_identities *table, struct rig_identity *identity, int fd)
{
        struct rig_identity **bucket;
        mode_t mode;
        dev_t device;
        ino_t inode;
        int r = rig_foreign_stat(fd, &mode, &device, &inode);

        if (r < 0)
                return r;
        if (find(table, device, inode))
                return -EEXIST;
        if (table->n >= table->n_buckets / 4 * 3 && grow(table) < 0)
                return -ENOMEM;
        bucket = bucket_of(table->buckets, table->n_buckets, device, inode);
        *identity =
                (struct rig_identity){.device = device, .inode = inode, .next = *bucket, .registered = true};
        *bucket = identity;
        table->n++;
        return 0;
}

void rig_identities_remove(struct rig_identities *table, struct rig_identity *identity)
{
        struct rig_identity **at;

        if (!identity->registered)
                return;
        at = bucket_of(table->buckets, table->n_buckets, identity->device, identity->inode);
        while (*at != identity) {
                rig_assert(*at);
                at = &(*at)->next;
        }
        *at = identity->next;
        identity->next = NULL;
        identity->registered = false;
        table->n--;
}

int rig_identities_find(const struct rig_identities *table, int fd, struct rig_identity **ret_identity)
{
        struct rig_identity *found;
        mode_t mode;
        dev_t device;
        ino_t inode;
        int r = rig_foreign_stat(fd, &mode, &device, &inode);

        if (r < 0)
                return r;
        found = find(table, device, inode);
        if (!found)
                return -ENOENT;
        *ret_identity = found;
        return 0;
}
