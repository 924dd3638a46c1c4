/* SPDX-License-Identifier: ISC */
/*
 * Identities of the client's objects.
 *
 * rigd keeps its objects in tables indexed by these numbers, so they stay dense: the one returned last is
 * given first. A number is returned only once the message that drops its object is published, and whatever
 * names it next is published after that, so rigd never sees two objects of one number.
 */
#include "libclient/ids.h"

#include "libclient/fail.h"

int rig_ids_take(struct rig_ids *ids, uint32_t *ret_id)
{
        if (ids->n_free > 0) {
                *ret_id = ids->free[--ids->n_free];
                return 0;
        }
        if (ids->given == ids->max)
                return rig_fail(-EDQUOT, "all %u objects of this kind are in use", ids->max);
        if (ids->given == ids->room) {
                uint32_t room = RIG_MAX(ids->room * 2, 16u);
                uint32_t *grown = reallocarray(ids->free, room, sizeof(*grown));

                if (!grown)
                        return rig_fail_memory();
                ids->free = grown;
                ids->room = room;
        }
        *ret_id = ++ids->given;
        return 0;
}

void rig_ids_put(struct rig_ids *ids, uint32_t id)
{
        rig_assert(ids->n_free < ids->room);
        ids->free[ids->n_free++] = id;
}

void rig_ids_deinit(struct rig_ids *ids)
{
        free(ids->free);
}
