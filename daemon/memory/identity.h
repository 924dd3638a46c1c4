/* SPDX-License-Identifier: ISC */
/*
 * Which memory a descriptor names, by what the descriptor is and not by what a client says: the device and
 * inode number of its file. A memory that is registered keeps a descriptor of its file open, so the numbers
 * are not given to another file meanwhile.
 */
#ifndef RIG_IDENTITY_H
#define RIG_IDENTITY_H

#include <sys/stat.h>

#include "base/base.h"

struct rig_identity {
        dev_t device;
        ino_t inode;
        struct rig_identity *next; /* in its bucket; the table's */
        bool registered;
};

struct rig_identities {
        struct rig_identity **buckets;
        size_t n_buckets, n; /* n_buckets: 0 or a power of two */
};

void rig_identities_deinit(struct rig_identities *table); /* empty by then */

/* Registers `identity`, embedded in the memory, for the file of `fd`. -EEXIST: it is registered. -ENOMEM. */
int rig_identities_add(struct rig_identities *table, struct rig_identity *identity, int fd);
/* One that is not registered stays so. */
void rig_identities_remove(struct rig_identities *table, struct rig_identity *identity);
/* The identity registered for the file of `fd`. -ENOENT; -EBADF. */
int rig_identities_find(const struct rig_identities *table, int fd, struct rig_identity **ret_identity);

#endif
