/* SPDX-License-Identifier: ISC */
/*
 * Mappings of memory that clients share may fail a load or a store with SIGBUS, however their descriptor is
 * sealed: see guard.c. A guarded mapping gets a page of zeros there instead, and rigd goes on.
 */
#ifndef RIG_GUARD_H
#define RIG_GUARD_H

#include "base/base.h"

/* Guards a mapping of whole pages, until rig_guard_remove(). From any thread. Return: 0 or -ENOMEM. */
int rig_guard_add(void *start, size_t bytes);
/* Before it is unmapped. One that is not guarded is an error of ours. */
void rig_guard_remove(void *start);

#endif
