/* SPDX-License-Identifier: ISC */
/*
 * Works and images (daemon/work.h). A work is checked here once, with all that does not change from run to
 * run, so that accepting a run costs a comparison or two for each slot.
 */
#include "daemon/work.h"

#include <stdio.h>
#include <string.h>

#include "daemon/log/log.h"

/* ---------------------------------------------------------------- jobs */

struct work_job {
        struct rig_slow_job job;
        struct rig_work *work; /* or */
        struct rig_image *image;
};

/* Runs what ends a work or an image on its device's slow thread. */
static void defer(struct rig_device *d, struct rig_work *work, struct rig_image *image,
        void (*run)(struct rig_slow_job *), void (*done)(struct rig_slow_job *))
{
        struct work_job *j = calloc(1, sizeof(*j));

        if (!j) {
                rig_log_about(LOG_ERR, &RIG_LOG_OF_ADAPTER(d->adapter, RIG_LOG_OUT_OF_MEMORY),
                        "%s: no memory to release a work or an image: it stays", rig_device_describe(d));
                return;
        }
        j->work = work;
        j->image = image;
        j->job.run = run;
        j->job.done = done;
        rig_adapter_defer(&d->adapter->driver, &j->job);
}

/* ---------------------------------------------------------------- images */

struct rig_image *rig_image_new(struct rig_client *client, struct rig_device *device, uint32_t id)
{
        struct rig_image *i = calloc(1, sizeof(*i));

        if (!i)
                return NULL;
        i->refs = 1;
        i->client = rig_client_ref(client);
        i->device = rig_device_ref(device);
        i->id = id;
        return i;
}

struct rig_image *rig_image_ref(struct rig_image *image)
{
        image->refs++;
        return image;
}

static void image_free(struct rig_image *i)
{
        rig_client_return_object(i->client);
        rig_device_unref(i->device);
        rig_client_unref(i->client);
        free(i);
}

static void unload_run(struct rig_slow_job *job)
{
        struct rig_image *i = RIG_CONTAINER_OF(job, struct work_job, job)->image;

        i->device->adapter->driver.driver->image_unload(&i->device->driver, &i->driver);
}

static void unload_done(struct rig_slow_job *job)
{
        struct work_job *j = RIG_CONTAINER_OF(job, struct work_job, job);

        image_free(j->image);
        free(j);
}

struct rig_image *rig_image_unref(struct rig_image *image)
{
        if (!image || --image->refs)
                return NULL;
        if (image->loaded)
                defer(image->device, NULL, image, unload_run, unload_done);
        else
                image_free(image);
        return NULL;
}

/* ---------------------------------------------------------------- works */

struct rig_work *rig_work_ref(struct rig_work *work)
{
        work->refs++;
        return work;
}

static void work_free(struct rig_work *w)
{
        for (uint32_t i = 0; i < w->driver.n_slots; i++)
                rig_buffer_unref(w->bound[i]);
        for (uint32_t p = 0; p < w->driver.n_parts; p++) {
                rig_image_unref(w->images[p]);
                free(w->driver.parts[p].params);
                free(w->driver.parts[p].patches);
        }
        rig_client_return_object(w->client);
        rig_device_unref(w->device);
        rig_client_unref(w->client);
        free(w);
}

static void release_run(struct rig_slow_job *job)
{
        struct rig_work *w = RIG_CONTAINER_OF(job, struct work_job, job)->work;

        w->device->adapter->driver.driver->work_release(&w->device->driver, &w->driver);
}

static void release_done(struct rig_slow_job *job)
{
        struct work_job *j = RIG_CONTAINER_OF(job, struct work_job, job);

        work_free(j->work);
        free(j);
}

struct rig_work *rig_work_unref(struct rig_work *work)
{
        if (!work || --work->refs)
                return NULL;
        if (work->prepared && work->device->adapter->driver.driver->work_release)
                defer(work->device, work, NULL, release_run, release_done);
        else
                work_free(work);
        return NULL;
}

int rig_work_check_slot(
        const struct rig_work *work, uint32_t slot, const struct rig_buffer *buffer, struct rig_error *e)
{
        uint32_t access = work->driver.access[slot];

        if (rig_unlikely(buffer->bytes < work->least[slot]))
                return rig_error_set(e, -ERANGE,
                        "slot %u of work %u needs %llu bytes, and buffer %u has %llu", slot, work->id,
                        (unsigned long long)work->least[slot], buffer->id,
                        (unsigned long long)buffer->bytes);
        if (rig_unlikely(access & ~buffer->access))
                return rig_error_set(e, -EACCES, "slot %u of work %u %s buffer %u, whose memory is only %s",
                        slot, work->id, access & RIG_ACCESS_WRITE & ~buffer->access ? "writes" : "reads",
                        buffer->id, buffer->access & RIG_ACCESS_READ ? "read" : "written");
        if (rig_unlikely(!rig_buffer_reached_by(buffer, work->device)))
                return rig_error_set(e, -EXDEV,
                        "work %u is on device %u, which does not reach buffer %u on device %u: borrow it "
                        "there",
                        work->id, work->device->id, buffer->id, buffer->device->id);
        return 0;
}

static int bind_slots(struct rig_work *w, const struct rig_msg_work_new *msg, struct rig_error *e)
{
        w->driver.n_slots = msg->n_slots;
        for (uint32_t i = 0; i < msg->n_slots; i++) {
                struct rig_buffer *b;

                w->driver.access[i] = msg->slots[i].access;
                if (!msg->slots[i].access)
                        return rig_error_set(
                                e, -EINVAL, "slot %u has no access: 1 reads, 2 writes, 3 both", i);
                if (!msg->slots[i].has_buffer) {
                        w->open[w->n_open++] = (uint8_t)i;
                        continue;
                }
                b = rig_table_get(&w->client->buffers, msg->slots[i].buffer);
                if (!b)
                        return rig_error_set(e, -ENOENT, "slot %u is bound to buffer %u, which there is not",
                                i, msg->slots[i].buffer);
                w->bound[i] = rig_buffer_ref(b);
        }
        return 0;
}

/* Checks an operand, and raises what its slot needs at least. `bytes` may be RIG_WHOLE. */
static int check_operand(struct rig_work *w, uint32_t part, const struct rig_msg_operand *o, uint64_t bytes,
        uint32_t access, struct rig_operand *ret, struct rig_error *e)
{
        uint64_t end = o->offset;

        if (o->slot >= w->driver.n_slots)
                return rig_error_set(
                        e, -EINVAL, "part %u names slot %u of %u", part, o->slot, w->driver.n_slots);
        if (access & ~w->driver.access[o->slot])
                return rig_error_set(e, -EACCES, "part %u %s slot %u, which does not declare it", part,
                        access & RIG_ACCESS_WRITE ? "writes" : "reads", o->slot);
        if (bytes != RIG_WHOLE && rig_add_overflow(o->offset, bytes, &end))
                return rig_error_set(e, -ERANGE, "part %u ends past the largest offset", part);
        w->least[o->slot] = RIG_MAX(w->least[o->slot], end);
        *ret = (struct rig_operand){.slot = o->slot, .offset = o->offset};
        return 0;
}

static int check_launch(struct rig_work *w, uint32_t index, const struct rig_msg_part *m, struct rig_part *p,
        struct rig_error *e)
{
        p->entry = m->entry;
        memcpy(p->grid, (uint32_t[]){m->grid.x, m->grid.y, m->grid.z}, sizeof(p->grid));
        memcpy(p->group, (uint32_t[]){m->group.x, m->group.y, m->group.z}, sizeof(p->group));
        p->shared_bytes = m->shared;
        if (m->has_image) {
                struct rig_image *i = rig_table_get(&w->client->images, m->image);

                if (!i || i->device != w->device)
                        return rig_error_set(e, -ENOENT,
                                "part %u launches image %u, which device %u does not have", index, m->image,
                                w->device->id);
                w->images[index] = rig_image_ref(i);
                p->image = &i->driver;
        } else if (!(w->device->driver.facts.flags & RIG_DEVICE_CLIENT_CODE)) {
                return rig_error_set(e, -EINVAL, "part %u launches no image", index);
        }
        for (uint32_t i = 0; i < m->n_patches; i++)
                if (m->patches[i].slot >= w->driver.n_slots ||
                        rig_range_outside(m->patches[i].at, sizeof(uint64_t), m->params.bytes))
                        return rig_error_set(e, -EINVAL,
                                "patch %u of part %u is slot %u at byte %u: there are %u slots and %zu "
                                "bytes",
                                i, index, m->patches[i].slot, m->patches[i].at, w->driver.n_slots,
                                m->params.bytes);
        p->params = malloc(m->params.bytes + 1);
        p->patches = calloc(m->n_patches + 1, sizeof(*p->patches));
        if (!p->params || !p->patches)
                return -ENOMEM;
        p->params_bytes = (uint32_t)m->params.bytes;
        if (m->params.bytes)
                memcpy(p->params, m->params.data, m->params.bytes);
        p->n_patches = m->n_patches;
        for (uint32_t i = 0; i < m->n_patches; i++) {
                p->patches[i] = (struct rig_patch){
                        .at = m->patches[i].at, .slot = m->patches[i].slot, .addend = m->patches[i].addend};
                w->least[p->patches[i].slot] = RIG_MAX(w->least[p->patches[i].slot], p->patches[i].addend);
        }
        return 0;
}

static int check_part(struct rig_work *w, uint32_t index, const struct rig_msg_part *m, struct rig_error *e)
{
        static const uint32_t runs[RIG_PART_KIND_MAX] = {[RIG_PART_COPY] = RIG_RUNS_COPY,
                [RIG_PART_FILL] = RIG_RUNS_FILL,
                [RIG_PART_LAUNCH] = RIG_RUNS_LAUNCH,
                [RIG_PART_SYNC] = RIG_RUNS_SYNC};
        const struct rig_facts *facts = &w->device->driver.facts;
        struct rig_part *p = &w->driver.parts[index];
        bool moves = m->kind != RIG_PART_LAUNCH;
        int r = 0;

        w->driver.n_parts = index + 1;
        if (!m->kind || m->queue >= facts->n_queues || !(facts->queues[m->queue] & runs[m->kind]))
                return rig_error_set(e, -EOPNOTSUPP, "part %u: queue %u of %s runs no %s", index, m->queue,
                        rig_device_describe(w->device),
                        m->kind ? rig_part_kind_to_string(m->kind) : "part of kind 0");
        if (m->after >> index)
                return rig_error_set(e, -EINVAL, "part %u may come after earlier parts only", index);
        if (moves && !m->has_dst)
                return rig_error_set(e, -EINVAL, "part %u has no destination", index);
        if (m->kind == RIG_PART_COPY && !m->has_src)
                return rig_error_set(e, -EINVAL, "part %u copies from nowhere", index);
        p->kind = m->kind;
        p->queue = m->queue;
        p->after = m->after;
        p->bytes = m->has_bytes ? m->bytes : RIG_WHOLE;
        p->pattern = m->pattern;
        if (m->kind == RIG_PART_LAUNCH)
                return check_launch(w, index, m, p, e);
        if (m->kind == RIG_PART_FILL && ((p->bytes != RIG_WHOLE && p->bytes % 4) || m->dst.offset % 4))
                return rig_error_set(e, -EINVAL,
                        "part %u fills with 4 bytes, and %llu bytes at %llu are not whole ones", index,
                        (unsigned long long)p->bytes, (unsigned long long)m->dst.offset);
        r = check_operand(w, index, &m->dst, m->kind == RIG_PART_SYNC ? 0 : p->bytes,
                m->kind == RIG_PART_SYNC ? 0 : RIG_ACCESS_WRITE, &p->dst, e);
        if (r == 0 && m->kind == RIG_PART_COPY) {
                r = check_operand(w, index, &m->src, p->bytes, RIG_ACCESS_READ, &p->src, e);
                if (p->bytes == RIG_WHOLE)
                        w->pairs |= UINT64_C(1) << index;
        }
        return r;
}

int rig_work_new(struct rig_client *client, struct rig_device *device, const struct rig_msg_work_new *msg,
        struct rig_work **ret_work, struct rig_error *e)
{
        struct rig_work *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return -ENOMEM;
        w->refs = 1;
        w->client = rig_client_ref(client);
        w->device = rig_device_ref(device);
        w->id = msg->work;
        rig_text_copy(msg->name, w->name, sizeof(w->name));
        r = rig_client_charge_object(client, e);
        if (r < 0) {
                client->n_objects++; /* work_free() returns it */
                work_free(w);
                return r;
        }
        r = bind_slots(w, msg, e);
        for (uint32_t i = 0; i < RIG_MIN(msg->n_parts, RIG_PROTO_PARTS_MAX) && r == 0; i++)
                r = check_part(w, i, &msg->parts[i], e);
        for (uint32_t i = 0; i < w->driver.n_slots && r == 0; i++)
                if (w->bound[i])
                        r = rig_work_check_slot(w, i, w->bound[i], e);
        if (r < 0) {
                rig_work_unref(w);
                return r;
        }
        *ret_work = w;
        return 0;
}
