/* SPDX-License-Identifier: ISC */
/*
 * The heap of waiters against a plain array of who waits for what: random adding, removing from anywhere,
 * and reaching, where some of those woken wait again. It checks who is woken, in which order of values, and
 * that nobody else is.
 */
#include <criterion/criterion.h>

#include "daemon/order/waiter.h"

#define WAITERS 64

struct slot {
        struct rig_waiter waiter;
        bool waits;
        uint64_t again; /* waits for this much more once it is woken; 0: it does not */
        unsigned woken;
};

static struct slot slots[WAITERS];
static struct rig_waiters heap;
static uint64_t limit, last_woken;

static uint64_t draw(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

static void wake(struct rig_waiter *waiter)
{
        struct slot *slot = RIG_CONTAINER_OF(waiter, struct slot, waiter);

        cr_assert(slot->waits, "a waiter is woken that waits for nothing");
        cr_assert(waiter->value <= limit, "a waiter is woken for a value that was not reached");
        cr_assert(waiter->value >= last_woken, "waiters are woken out of order");
        cr_assert_null(waiter->of);
        last_woken = waiter->value;
        slot->waits = false;
        slot->woken++;
        if (slot->again) {
                slot->waits = true;
                rig_waiters_add(&heap, waiter, waiter->value + slot->again);
                slot->again = 0;
        }
}

static void reset(void)
{
        heap = (struct rig_waiters){0};
        limit = last_woken = 0;
        for (unsigned i = 0; i < WAITERS; i++)
                slots[i] = (struct slot){.waiter = {.wake = wake}};
}

static uint64_t least(void)
{
        uint64_t value = UINT64_MAX;

        for (unsigned i = 0; i < WAITERS; i++)
                if (slots[i].waits)
                        value = RIG_MIN(value, slots[i].waiter.value);
        return value;
}

static void reach(uint64_t value)
{
        limit = value;
        last_woken = 0;
        rig_waiters_reached(&heap, value);
        cr_assert(least() > value, "somebody waits for a value that was reached");
}

Test(order_waiters, are_woken_in_order_and_nobody_else_is, .init = reset)
{
        uint64_t state = 4711, at = 0;

        for (unsigned i = 0; i < 200000; i++) {
                struct slot *slot = &slots[draw(&state) % WAITERS];

                switch (draw(&state) % 8) {
                case 0:
                        reach(at += draw(&state) % 8);
                        break;
                case 1:
                        rig_waiter_remove(&slot->waiter);
                        slot->waits = false;
                        slot->again = 0;
                        break;
                default:
                        if (slot->waits)
                                break;
                        slot->waits = true;
                        slot->again = draw(&state) % 4 ? 0 : 1 + draw(&state) % 16;
                        rig_waiters_add(&heap, &slot->waiter, at + 1 + draw(&state) % 32);
                }
                cr_assert_eq(heap.root ? heap.root->value : UINT64_MAX, least());
        }
}

Test(order_waiters, remove_from_the_middle_keeps_the_others, .init = reset)
{
        for (unsigned gone = 0; gone < WAITERS; gone++) {
                reset();
                for (unsigned i = 0; i < WAITERS; i++) {
                        slots[i].waits = true;
                        rig_waiters_add(&heap, &slots[i].waiter, 1 + i * 37 % WAITERS);
                }
                reach(5); /* gives the heap a shape */
                rig_waiter_remove(&slots[gone].waiter);
                slots[gone].waits = false;
                reach(WAITERS);
                for (unsigned i = 0; i < WAITERS; i++)
                        cr_assert_eq(slots[i].woken, i != gone || 1 + i * 37 % WAITERS <= 5);
                cr_assert_null(heap.root);
        }
}

Test(order_waiters, one_that_waits_for_nothing_is_removed_as_nothing, .init = reset)
{
        slots[1].waits = true;
        rig_waiters_add(&heap, &slots[1].waiter, 7);
        rig_waiter_remove(&slots[0].waiter);
        cr_assert_eq(heap.root, &slots[1].waiter);
        reach(6);
        cr_assert_eq(slots[1].woken, 0);
        reach(7);
        cr_assert_eq(slots[1].woken, 1);
}

Test(order_waiters, a_woken_one_waits_again_within_the_same_value, .init = reset)
{
        slots[0].waits = true;
        slots[0].again = 3;
        rig_waiters_add(&heap, &slots[0].waiter, 1);
        reach(10);
        cr_assert_eq(slots[0].woken, 2);
}
