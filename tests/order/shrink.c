/* SPDX-License-Identifier: ISC */
/*
 * Trials and shrinking.
 *
 * A trial is a page of memory shared with the child that runs it: the child says there which seed it is at,
 * what broke and what it saw. A child that dies by a signal, or by a sanitizer, broke the law named "crash".
 * An alarm bounds each program, so that one that never ends dies too.
 *
 * Shrinking takes away chunks of steps, large ones first, then single steps, then makes numbers small, as
 * long as the same law stays broken. It starts again until nothing helps. It is greedy and finds a short
 * program, not the shortest.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/order/shrink.h"

#define PROGRAM_SECONDS 20 /* a program takes well under a millisecond */

struct rig_trial *rig_trial_new(void)
{
        void *p = mmap(
                NULL, sizeof(struct rig_trial), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        rig_assert(p != MAP_FAILED);
        return p;
}

static bool run_one(struct rig_trial *trial, FILE *trace)
{
        const char *law;

        alarm(PROGRAM_SECONDS);
        law = rig_program_run(&trial->program, &trial->sim, trace);
        if (!law)
                return true;
        snprintf(trial->law, sizeof(trial->law), "%s", law);
        snprintf(trial->text, sizeof(trial->text), "%s", trial->sim.text);
        return false;
}

static void batch(struct rig_trial *trial)
{
        for (uint64_t i = 0; i < trial->count; i++) {
                trial->seed = trial->first + i;
                rig_program_generate(&trial->program, trial->seed);
                if (!run_one(trial, NULL))
                        return;
                trial->programs++;
                for (unsigned k = 0; k < _RIG_SIM_FEATURE_MAX; k++)
                        trial->features[k] += trial->sim.features[k];
        }
}

static bool judge(struct rig_trial *trial, pid_t child)
{
        int status;

        rig_assert(child > 0 && waitpid(child, &status, 0) == child);
        if (trial->law[0])
                return false;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return true;
        snprintf(trial->law, sizeof(trial->law), "crash");
        snprintf(trial->text, sizeof(trial->text), "%s",
                !WIFSIGNALED(status)          ? "the process ended itself"
                : WTERMSIG(status) == SIGALRM ? "the program did not end"
                                              : strsignal(WTERMSIG(status)));
        return false;
}

/* What a leak checker finds when a child ends counts, but not after a law broke: nothing is torn down then.
 */
static _noreturn_ void leave(const struct rig_trial *trial)
{
        fflush(NULL);
        if (trial->law[0])
                _exit(1);
        exit(0);
}

bool rig_trial_batch(struct rig_trial *trial)
{
        pid_t child;

        trial->law[0] = 0;
        fflush(NULL);
        child = fork();
        if (child == 0) {
                batch(trial);
                leave(trial);
        }
        return judge(trial, child);
}

bool rig_trial_run(struct rig_trial *trial, FILE *trace)
{
        pid_t child;

        trial->law[0] = 0;
        fflush(NULL);
        child = fork();
        if (child == 0) {
                if (!trace && !freopen("/dev/null", "w", stderr))
                        _exit(1);
                run_one(trial, trace);
                leave(trial);
        }
        return judge(trial, child);
}

/* Whether the candidate breaks the same law; it then is the program from now on. */
static bool try(struct rig_trial *trial, struct rig_program *best, const struct rig_program *candidate,
        const char *law)
{
        trial->program = *candidate;
        if (rig_trial_run(trial, NULL) || strcmp(trial->law, law) != 0)
                return false;
        *best = *candidate;
        return true;
}

static bool shrink_steps(struct rig_trial *trial, struct rig_program *best, const char *law)
{
        bool any = false;

        for (unsigned chunk = best->n_steps / 2; chunk > 0; chunk /= 2)
                for (unsigned at = 0; at + chunk <= best->n_steps;) {
                        struct rig_program candidate = *best;

                        memmove(&candidate.steps[at], &candidate.steps[at + chunk],
                                (best->n_steps - at - chunk) * sizeof(candidate.steps[0]));
                        candidate.n_steps -= chunk;
                        if (try(trial, best, &candidate, law))
                                any = true;
                        else
                                at += chunk;
                }
        return any;
}

static bool shrink_number(
        struct rig_trial *trial, struct rig_program *best, unsigned step, unsigned arg, const char *law)
{
        const uint16_t old = best->steps[step].args[arg];
        const uint16_t smaller[] = {0, 1, 2, 3, old / 2, old % 8, old > 0 ? old - 1 : 0};

        for (unsigned i = 0; i < RIG_ARRAY_SIZE(smaller); i++) {
                struct rig_program candidate = *best;

                if (smaller[i] >= old)
                        continue;
                candidate.steps[step].args[arg] = smaller[i];
                if (try(trial, best, &candidate, law))
                        return true;
        }
        return false;
}

static bool shrink_numbers(struct rig_trial *trial, struct rig_program *best, const char *law)
{
        bool any = false;

        for (unsigned i = 0; i < best->n_steps; i++) {
                struct rig_program candidate = *best;

                candidate.steps[i].run = false;
                if (best->steps[i].run && try(trial, best, &candidate, law))
                        any = true;
                for (unsigned k = 0; k < RIG_PROGRAM_ARGS; k++)
                        any |= shrink_number(trial, best, i, k, law);
        }
        return any;
}

void rig_trial_shrink(struct rig_trial *trial)
{
        struct rig_program best = trial->program;
        char law[sizeof(trial->law)];

        memcpy(law, trial->law, sizeof(law));
        while (shrink_steps(trial, &best, law) || shrink_numbers(trial, &best, law))
                ;
        trial->program = best;
        rig_trial_run(trial, NULL);
}
