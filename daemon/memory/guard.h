/* SPDX-License-Identifier: ISC */
/*
 * Mappings of memory that clients share may fail a load or a store with SIGBUS, however their descriptor is
 * sealed: see guard.c. A guarded mapping gets a page of zeros there instead, and rigd goes on.
 */
#ifndef RIG_GUARD_H
#define RIG_GUARD_H

#include "base/base.h"

struct rig_guard;

/* Guards a mapping of whole pages, until rig_guard_remove(). From any thread. Return: 0 or -ENOMEM. */
int rig_guard_add(void *start, size_t bytes, struct rig_guard **ret_guard);
/* Before it is unmapped. From any thread. */
void rig_guard_remove(struct rig_guard *guard);

#endif
