/* SPDX-License-Identifier: ISC */
/* Objects by small dense numbers: an array that grows. Owns none of them. */
#ifndef RIG_TABLE_H
#define RIG_TABLE_H

#include <string.h>

#include "base/base.h"

struct rig_table {
        void **slots;
        uint32_t room; /* slots there are */
        uint32_t n;    /* that are filled */
};

static inline void *rig_table_get(const struct rig_table *table, uint32_t id)
{
        return rig_likely(id < table->room) ? table->slots[id] : NULL;
}

/* Sets a slot that is empty. -ENOMEM: nothing changed. */
static inline int rig_table_set(struct rig_table *table, uint32_t id, void *object)
{
        if (id >= table->room) {
                uint32_t least = RIG_MAX(id + 1, 16u), room = RIG_MAX(table->room * 2, least);
                void **slots = realloc(table->slots, room * sizeof(*slots));

                if (!slots)
                        return -ENOMEM;
                memset(slots + table->room, 0, (room - table->room) * sizeof(*slots));
                table->slots = slots;
                table->room = room;
        }
        table->slots[id] = object;
        table->n++;
        return 0;
}

/* Empties a slot. Return: what was in it. */
static inline void *rig_table_take(struct rig_table *table, uint32_t id)
{
        void *object = rig_table_get(table, id);

        if (object) {
                table->slots[id] = NULL;
                table->n--;
        }
        return object;
}

static inline void rig_table_deinit(struct rig_table *table)
{
        free(table->slots);
        *table = (struct rig_table){0};
}

#endif
