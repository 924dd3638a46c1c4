/* SPDX-License-Identifier: ISC */
/*
 * A model that fails at its k-th message, for each k of a whole life: open, use, close. Whatever the message
 * was, the life ends in an error whose sentence names the function and a step, within a bound, and leaves
 * nothing behind.
 *
 * Three ways to fail: it answers no more, it dies, and it is gone from its bus (it reads as all ones). A
 * life does what a driver does, and asks at its end, where accesses to windows return no errors, what went
 * wrong.
 */
#include "tests/pci/world.h"

#define SHORT_USEC UINT64_C(20000) /* an answer that does not come is not waited for longer */

/* Return: what the life ended with. */
static int live(
        const char *fault, uint64_t answer_usec, struct world *w, struct rig_error *e, bool *ret_opened)
{
        struct model_options options = {.tick_usec = -1, .fault = fault, .trap_all = true};
        struct rig_pci_options o = world_options(answer_usec);
        struct rig_pci *pci = NULL;
        int r;

        world_start(w, &options);
        r = rig_pci_open_with(&o, w->where, &pci, e);
        *ret_opened = r == 0;
        if (r == 0)
                r = world_use(pci, o.answer_usec, e);
        rig_pci_close(pci);
        world_stop(w);
        return r;
}

static void fail_at_each(const char *name, uint64_t answer_usec)
{
        unsigned opened_and_failed = 0, k;
        bool opened;

        for (k = 1;; k++) {
                struct rig_error e = RIG_ERROR_NULL;
                char fault[32];
                struct world w;
                int r;

                CHECK(k < 1000);
                snprintf(fault, sizeof(fault), "%s@%u", name, k);
                r = live(fault, answer_usec, &w, &e, &opened);
                if (r == 0) /* so late that only closing met it */
                        break;
                CHECK(r == -ENODEV || r == -ETIMEDOUT || r == -EPROTO);
                CHECK_EQ(e.code, r);
                CHECK(strncmp(e.text, w.where, 10) == 0 && strlen(e.text) > strlen(w.where) + 10);
                opened_and_failed += opened;
        }
        printf("  %s: %u messages, %u of them after it was opened\n", name, k - 1, opened_and_failed);
        CHECK(opened_and_failed > 10 && k > opened_and_failed + 20);
}

static void without_a_fault_a_life_ends_well(void)
{
        struct rig_error e = RIG_ERROR_NULL;
        struct world w;
        bool opened;

        CHECK_EQ(live(NULL, 0, &w, &e, &opened), 0);
        CHECK(opened);
}

static void a_model_that_dies_at_any_message_is_an_error_that_names_the_step(void)
{
        fail_at_each("die", 0);
}

static void a_model_that_hangs_at_any_message_is_an_error_that_names_the_step(void)
{
        fail_at_each("hang", SHORT_USEC);
}

static void a_function_that_vanishes_at_any_message_is_an_error_that_names_the_step(void)
{
        fail_at_each("ones", 0);
}

int main(void)
{
        unsigned before = count_fds();

        RUN(without_a_fault_a_life_ends_well);
        RUN(a_model_that_dies_at_any_message_is_an_error_that_names_the_step);
        RUN(a_model_that_hangs_at_any_message_is_an_error_that_names_the_step);
        RUN(a_function_that_vanishes_at_any_message_is_an_error_that_names_the_step);
        CHECK_EQ(count_fds(), before);
        return 0;
}
