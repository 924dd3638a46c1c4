/* SPDX-License-Identifier: ISC */
/* What the kit runs on: the drivers there are, and drivers that break one promise each. */
#ifndef KIT_SUBJECTS_H
#define KIT_SUBJECTS_H

#include "tests/kit/kit.h"

extern const struct kit_subject kit_subjects[]; /* no name: the end */

extern const struct kit_promise kit_own_memory[];
extern const struct kit_promise kit_own_disk[];
extern const struct kit_promise kit_own_steered[];

struct kit_mutant {
        struct kit_subject subject;
        const char *promise;               /* the one it breaks */
        const struct kit_subject *healthy; /* what it is but for that */
};
extern struct kit_mutant kit_mutants[]; /* no name: the end */
void kit_mutants_init(void);
void kit_mutants_deinit(void);

enum kit_subject_number {
        KIT_MEMORY,
        KIT_MEMORY_ASYNC,
        KIT_HOST,
        KIT_DISK,
        KIT_STEERED,
        KIT_STEERED_ROOM,
        KIT_STEERED_MANUAL,
        KIT_STEERED_STICKY,
};

#endif
