/* SPDX-License-Identifier: ISC */
/*
 * A pairing heap (Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting
 * heap", 1986), with its nodes in the waiters. Children of a node are a list through `next`; `prev` is the
 * node before in that list, or the parent for its first.
 */
#include "daemon/order/waiter.h"

/* Joins two heaps, of which either may be NULL: the lesser root becomes the parent. */
static struct rig_waiter *meld(struct rig_waiter *a, struct rig_waiter *b)
{
        if (!a)
                return b;
        if (!b)
                return a;
        if (b->value < a->value) {
                struct rig_waiter *t = a;

                a = b;
                b = t;
        }
        b->prev = a;
        b->next = a->child;
        if (a->child)
                a->child->prev = b;
        a->child = b;
        return a;
}

/* Joins a list of siblings into one heap: in pairs from the left, then the pairs from the right. */
static struct rig_waiter *meld_siblings(struct rig_waiter *first)
{
        struct rig_waiter *pairs = NULL, *root = NULL;

        while (first) {
                struct rig_waiter *a = first, *b = a->next;

                first = b ? b->next : NULL;
                a->next = a->prev = NULL;
                if (b)
                        b->next = b->prev = NULL;
                a = meld(a, b);
                a->next = pairs;
                pairs = a;
        }
        while (pairs) {
                struct rig_waiter *next = pairs->next;

                pairs->next = NULL;
                root = meld(root, pairs);
                pairs = next;
        }
        return root;
}

void rig_waiters_add(struct rig_waiters *heap, struct rig_waiter *waiter, uint64_t value)
{
        rig_assert(!waiter->of);
        waiter->value = value;
        waiter->of = heap;
        waiter->child = waiter->next = waiter->prev = NULL;
        heap->root = meld(heap->root, waiter);
}

void rig_waiter_remove(struct rig_waiter *waiter)
{
        struct rig_waiters *heap = waiter->of;
        struct rig_waiter *below;

        if (!heap)
                return;
        below = meld_siblings(waiter->child);
        if (heap->root == waiter) {
                heap->root = below;
        } else {
                if (waiter->prev->child == waiter)
                        waiter->prev->child = waiter->next;
                else
                        waiter->prev->next = waiter->next;
                if (waiter->next)
                        waiter->next->prev = waiter->prev;
                heap->root = meld(heap->root, below);
        }
        waiter->of = NULL;
        waiter->child = waiter->next = waiter->prev = NULL;
}

void rig_waiters_reached(struct rig_waiters *heap, uint64_t value)
{
        while (heap->root && heap->root->value <= value) {
                struct rig_waiter *waiter = heap->root;

                rig_waiter_remove(waiter);
                waiter->wake(waiter);
        }
}
