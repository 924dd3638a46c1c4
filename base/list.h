/* SPDX-License-Identifier: ISC */
/* A circular doubly linked list through a member of its elements. An unlinked member points at itself. */
#ifndef RIG_LIST_H
#define RIG_LIST_H

#include "base/base.h"

struct rig_list {
        struct rig_list *next, *prev;
};

#define RIG_LIST_INIT(l)                                                                                    \
        {                                                                                                   \
                &(l), &(l)                                                                                  \
        }
#define rig_list_entry(p, type, member) RIG_CONTAINER_OF(p, type, member)
#define rig_list_for_each(i, head)      for (struct rig_list *i = (head)->next; i != (head); i = i->next)
#define rig_list_for_each_safe(i, head)                                                                     \
        for (struct rig_list *i = (head)->next, *i##_next = i->next; i != (head);                           \
                i = i##_next, i##_next = i->next)

static inline void rig_list_init(struct rig_list *l)
{
        l->next = l->prev = l;
}

static inline bool rig_list_empty(const struct rig_list *l)
{
        return l->next == l;
}

/* Links `l` as the last element of `head`. */
static inline void rig_list_append(struct rig_list *head, struct rig_list *l)
{
        l->prev = head->prev;
        l->next = head;
        head->prev->next = l;
        head->prev = l;
}

/* Unlinks `l`; one that is not linked stays so. */
static inline void rig_list_remove(struct rig_list *l)
{
        l->prev->next = l->next;
        l->next->prev = l->prev;
        rig_list_init(l);
}

/* Moves every element of `from` to the empty list `to`. */
static inline void rig_list_move_all(struct rig_list *from, struct rig_list *to)
{
        rig_list_init(to);
        if (rig_list_empty(from))
                return;
        *to = *from;
        to->next->prev = to->prev->next = to;
        rig_list_init(from);
}

static inline struct rig_list *rig_list_pop(struct rig_list *head)
{
        struct rig_list *l = head->next;

        if (l == head)
                return NULL;
        rig_list_remove(l);
        return l;
}

#endif
