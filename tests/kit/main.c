/* SPDX-License-Identifier: ISC */
/*
 * kit SUBJECT [PROMISE] holds a driver to its promises.
 * kit --refuses MUTANT wants a broken driver to be found out, and the healthy one not to be.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/kit/subjects.h"

#define SKIPPED 77

static int hold(const char *name, const char *promise)
{
        for (const struct kit_subject *s = kit_subjects; s->name; s++) {
                unsigned broken;

                if (strcmp(s->name, name) != 0)
                        continue;
                broken = kit_hold(s, promise, false);
                if (broken == KIT_UNAVAILABLE)
                        return SKIPPED;
                printf("%s: %u promises broken\n", name, broken);
                return broken != 0;
        }
        fprintf(stderr, "there is no subject %s\n", name);
        return 2;
}

static int refuse(const char *name)
{
        kit_mutants_init();
        for (const struct kit_mutant *m = kit_mutants; m->subject.name; m++) {
                unsigned broken, healthy;

                if (strcmp(m->subject.name, name) != 0)
                        continue;
                broken = kit_hold(&m->subject, m->promise, true);
                if (broken == KIT_UNAVAILABLE)
                        return SKIPPED;
                healthy = kit_hold(m->healthy, m->promise, false);
                kit_mutants_deinit();
                if (!broken && !kit_saw_storage && strncmp(m->promise, "a_sync", 6) == 0) {
                        printf("skipped: the kernel does not say which pages of a file are dirty\n");
                        return SKIPPED;
                }
                if (!broken)
                        fprintf(stderr, "%s: the kit did not see that %s is broken\n", name, m->promise);
                return !(broken && !healthy);
        }
        fprintf(stderr, "there is no mutant %s\n", name);
        return 2;
}

int main(int argc, char **argv)
{
        signal(SIGXFSZ, SIG_IGN);
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc == 3 && strcmp(argv[1], "--refuses") == 0)
                return refuse(argv[2]);
        if (argc == 2 || argc == 3)
                return hold(argv[1], argc == 3 ? argv[2] : NULL);
        fprintf(stderr, "kit SUBJECT [PROMISE] | kit --refuses MUTANT\n");
        return 2;
}
