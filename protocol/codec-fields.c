/* SPDX-License-Identifier: ISC */
/*
 * Fields that many messages have, found by the field tables rather than by the name of each message. Not for
 * the hot path: the tables are searched.
 */
#include "protocol/codec.h"

uint64_t *rig_msg_follows(enum rig_msg_type type, union rig_msg *msg, bool **ret_has)
{
        const struct rig_codec_shape *shape = rig_codec_shape(type);

        for (uint32_t i = 0; shape && i < shape->n_fields; i++) {
                const struct rig_codec_field *f = &shape->fields[i];

                if (f->key != RIG_MSG_KEY_FOLLOWS || rig_msg_class(type) != RIG_MSG_CLASS_REQUEST)
                        continue;
                *ret_has = (bool *)((char *)msg + f->has);
                return (uint64_t *)(void *)((char *)msg + f->offset);
        }
        return NULL;
}
