/* SPDX-License-Identifier: ISC */
/*
 * Requests about code and works: images are loaded, entries looked up and works prepared by the driver, on
 * the slow thread, once rigd has checked what it can.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/memory/closer.h"
#include "daemon/request.h"

#define IMAGE_BYTES_MAX (UINT64_C(1) << 30)

/* ---------------------------------------------------------------- images */

struct load_request {
        struct rig_request q;
        struct rig_image *image; /* referenced */
        int fd;
        uint64_t bytes;
};

/* Reads the image into rigd's own memory: what the client could still change is not parsed. */
static int read_image(struct load_request *l, void **ret_bytes)
{
        int seals = fcntl(l->fd, F_GET_SEALS);
        _cleanup_(rig_freep) uint8_t *bytes = NULL;
        struct stat st;
        uint64_t at = 0;

        if (seals < 0 || !(seals & F_SEAL_WRITE) || !(seals & F_SEAL_SHRINK))
                return rig_error_set(&l->q.error, -EPERM,
                        "an image comes in a memfd with F_SEAL_WRITE and F_SEAL_SHRINK, and this one is not "
                        "sealed");
        if (fstat(l->fd, &st) < 0)
                return -errno;
        if (l->bytes > IMAGE_BYTES_MAX || (uint64_t)st.st_size < l->bytes)
                return rig_error_set(&l->q.error, -EINVAL,
                        "an image of %llu bytes in a memfd of %lld: the most is %llu",
                        (unsigned long long)l->bytes, (long long)st.st_size,
                        (unsigned long long)IMAGE_BYTES_MAX);
        bytes = malloc(l->bytes + 1);
        if (!bytes)
                return -ENOMEM;
        while (at < l->bytes) {
                ssize_t n = pread(l->fd, bytes + at, l->bytes - at, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                at += (uint64_t)n;
        }
        *ret_bytes = RIG_STEAL(bytes);
        return 0;
}

static void load_run(struct rig_slow_job *job)
{
        struct load_request *l = RIG_CONTAINER_OF(job, struct load_request, q.job);
        struct rig_device *d = l->q.device;
        _cleanup_(rig_freep) void *bytes = NULL;

        l->q.r = read_image(l, &bytes);
        l->fd = rig_foreign_close(l->fd);
        if (l->q.r >= 0)
                l->q.r = d->adapter->driver.driver->image_load(
                        &d->driver, bytes, (size_t)l->bytes, &l->image->driver, &l->q.error);
}

static void load_done(struct rig_slow_job *job)
{
        struct load_request *l = RIG_CONTAINER_OF(job, struct load_request, q.job);
        struct rig_client *c = l->q.client;

        l->image->loaded = l->q.r >= 0;
        if (l->q.r >= 0 && rig_request_heard(&l->q)) {
                l->q.r = rig_client_enter(c, &c->images, l->q.id, rig_image_ref(l->image), "image");
                if (l->q.r < 0)
                        rig_image_unref(l->image);
                else
                        rig_client_done(c, l->q.serial);
        }
        rig_image_unref(l->image);
        if (l->q.r < 0)
                rig_request_fail(&l->q);
        else
                rig_request_free(&l->q);
}

int rig_request_image_load(
        struct rig_client *client, const struct rig_msg_image_load *msg, struct rig_packet_fds *fds)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        _cleanup_(rig_foreign_closep) int fd = -EBADF;
        struct rig_error e = RIG_ERROR_NULL;
        struct load_request *l;
        int r;

        if (!d || rig_client_check_free(client, &client->images, msg->image, "image") < 0)
                return -EPROTO;
        fd = rig_packet_fds_take(fds, msg->fd);
        if (fd < 0)
                return rig_client_break(client, -EBADMSG,
                        "image-load names descriptor %u, which its packet has not", msg->fd);
        if (!(d->driver.facts.flags & RIG_DEVICE_LOADS_IMAGES)) {
                rig_error_set(&e, -EOPNOTSUPP, "%s loads no images", rig_device_describe(d));
                return rig_client_refuse(client, msg->serial, -EOPNOTSUPP, &e);
        }
        r = rig_client_charge_object(client, &e);
        if (r < 0)
                return rig_client_refuse(client, msg->serial, r, &e);
        l = rig_request_new(client, d, msg->serial, msg->image, sizeof(*l));
        if (l)
                l->image = rig_image_new(client, d, msg->image);
        if (!l || !l->image) {
                rig_client_return_object(client);
                if (l)
                        rig_request_free(&l->q);
                return rig_client_refuse(client, msg->serial, -ENOMEM, &e);
        }
        l->fd = rig_steal_fd(&fd);
        l->bytes = msg->bytes;
        rig_request_defer(&l->q, load_run, load_done);
        return RIG_TAKEN;
}

struct entry_request {
        struct rig_request q;
        struct rig_image *image; /* referenced */
        char name[RIG_PROTO_NAME_MAX + 1];
        uint64_t entry;
};

static void entry_run(struct rig_slow_job *job)
{
        struct entry_request *o = RIG_CONTAINER_OF(job, struct entry_request, q.job);
        struct rig_device *d = o->q.device;

        o->q.r = d->adapter->driver.driver->image_entry(&d->driver, &o->image->driver, o->name, &o->entry);
        if (o->q.r < 0)
                rig_error_set(&o->q.error, o->q.r, "the image has no function \"%s\"", o->name);
}

static void entry_done(struct rig_slow_job *job)
{
        struct entry_request *o = RIG_CONTAINER_OF(job, struct entry_request, q.job);
        struct rig_msg_entry_done m = {.serial = o->q.serial, .entry = o->entry};

        rig_image_unref(o->image);
        if (o->q.r < 0) {
                rig_request_fail(&o->q);
                return;
        }
        rig_client_send(o->q.client, RIG_MSG_ENTRY_DONE, &m, NULL, 0);
        rig_request_free(&o->q);
}

int rig_request_image_entry(struct rig_client *client, const struct rig_msg_image_entry *msg)
{
        struct rig_image *i = rig_table_get(&client->images, msg->image);
        struct rig_error e = RIG_ERROR_NULL;
        struct entry_request *o;

        if (!i)
                return rig_client_break(client, -ENOENT, "there is no image %u", msg->image);
        o = rig_request_new(client, i->device, msg->serial, msg->image, sizeof(*o));
        if (!o)
                return rig_client_refuse(client, msg->serial, -ENOMEM, &e);
        o->image = rig_image_ref(i);
        rig_text_copy(msg->name, o->name, sizeof(o->name));
        rig_request_defer(&o->q, entry_run, entry_done);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- works */

struct work_request {
        struct rig_request q;
        struct rig_work *work; /* referenced */
};

static void prepare_run(struct rig_slow_job *job)
{
        struct work_request *o = RIG_CONTAINER_OF(job, struct work_request, q.job);
        struct rig_device *d = o->q.device;

        o->q.r = d->adapter->driver.driver->work_prepare(&d->driver, &o->work->driver, &o->q.error);
}

static void prepared(struct work_request *o)
{
        struct rig_client *c = o->q.client;

        if (o->q.r >= 0 && rig_request_heard(&o->q)) {
                o->work->prepared = true;
                o->work->closed = !o->work->device->id;
                o->q.r = rig_client_enter(c, &c->works, o->q.id, rig_work_ref(o->work), "work");
                if (o->q.r < 0)
                        rig_work_unref(o->work);
                else
                        rig_client_done(c, o->q.serial);
        } else if (o->q.r >= 0) {
                o->work->prepared = true;
        }
        rig_work_unref(o->work);
        if (o->q.r < 0)
                rig_request_fail(&o->q);
        else
                rig_request_free(&o->q);
}

static void prepare_done(struct rig_slow_job *job)
{
        prepared(RIG_CONTAINER_OF(job, struct work_request, q.job));
}

int rig_request_work_new(struct rig_client *client, const struct rig_msg_work_new *msg)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        struct rig_error e = RIG_ERROR_NULL;
        struct work_request *o;
        struct rig_work *w;
        int r;

        if (!d || rig_client_check_free(client, &client->works, msg->work, "work") < 0)
                return -EPROTO;
        r = rig_work_new(client, d, msg, &w, &e);
        if (r == -ENOENT)
                return rig_client_break(client, r, "%s", e.text);
        if (r < 0)
                return rig_client_refuse(client, msg->serial, r, &e);
        o = rig_request_new(client, d, msg->serial, msg->work, sizeof(*o));
        if (!o) {
                rig_work_unref(w);
                return rig_client_refuse(client, msg->serial, -ENOMEM, &e);
        }
        o->work = w;
        if (d->adapter->driver.driver->work_prepare)
                rig_request_defer(&o->q, prepare_run, prepare_done);
        else
                prepared(o);
        return RIG_TAKEN;
}
