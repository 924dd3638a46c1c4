/* SPDX-License-Identifier: ISC */
/*
 * Requests about memory: new buffers, adopted, borrowed, exported and imported ones, and views.
 *
 * An allocation is charged first, to the client's share and to the adapter's budget. Where it cannot be had,
 * caches are dropped; where that is not enough and memory is on its way back, it waits for that and tries
 * again (M3).
 *
 * A memory that processes share is found by its descriptor's identity. Each client reaches it as its own
 * descriptor allows: a file is read and written through the descriptor that this client opened (M4).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/memory/closer.h"
#include "daemon/request.h"

/* ---------------------------------------------------------------- answers */

/* Enters the buffer under the client's number and answers; the buffer's first reference is the table's. */
static int enter(struct rig_client *c, uint32_t id, struct rig_buffer *b)
{
        int r = rig_client_enter(c, &c->buffers, id, b, "buffer");

        if (r < 0)
                return r;
        b->id = id;
        return 0;
}

static void answer(struct rig_client *c, uint32_t serial, const struct rig_buffer *b, int fd)
{
        const struct rig_memory *m = b->memory;
        struct rig_msg_buffer_done msg = {.serial = serial,
                .bytes = b->bytes,
                .offset = b->offset,
                .memory = m ? RIG_MIN(m->region.bytes, RIG_PROTO_BYTES_MAX) : 0,
                .access = b->access,
                .flags = m && m->shared,
                .has_fd = fd >= 0};

        rig_client_send(c, RIG_MSG_BUFFER_DONE, &msg, &fd, fd >= 0);
}

/* Makes a buffer over a memory, enters it and answers, or fills the error. The object is charged by then. */
static int make(struct rig_client *c, struct rig_device *device, uint32_t serial, uint32_t id,
        struct rig_memory *memory, const struct rig_region *region, uint64_t offset, uint64_t bytes,
        uint32_t access, struct rig_account *account, int fd, struct rig_error *e)
{
        struct rig_buffer *b;
        int r;

        if (!access || (region && !(region->access & access)))
                return rig_error_set(e, -EPERM,
                        "the descriptor was opened for neither reading nor writing, or for what its memory "
                        "does "
                        "not admit");
        r = rig_client_charge_object(c, e);
        if (r < 0)
                return r;
        r = rig_buffer_new(c, device, memory, region, offset, bytes, account, &b, e);
        if (r < 0) {
                rig_client_return_object(c);
                return r;
        }
        b->access &= access;
        r = enter(c, id, b);
        if (r < 0) {
                rig_buffer_unref(b);
                return r;
        }
        answer(c, serial, b, fd);
        return 0;
}

#define ANY_ACCESS (RIG_ACCESS_READ | RIG_ACCESS_WRITE)

/* What a descriptor's open mode admits; 0 for neither. */
static uint32_t fd_access(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || flags & O_PATH)
                return 0;
        switch (flags & O_ACCMODE) {
        case O_RDONLY:
                return RIG_ACCESS_READ;
        case O_WRONLY:
                return RIG_ACCESS_WRITE;
        default:
                return ANY_ACCESS;
        }
}

/* ---------------------------------------------------------------- new */

struct new_request {
        struct rig_request q;
        struct rig_parked parked;
        struct rig_account *account; /* referenced */
        enum rig_memory_kind kind;
        uint64_t bytes, class_bytes;
        bool dropped; /* caches were dropped since it last asked the driver */
        struct rig_region region;
};

static void new_free(struct new_request *n)
{
        rig_account_unref(n->account);
        rig_request_free(&n->q);
}

static void new_fail(struct new_request *n)
{
        rig_account_unref(n->account);
        rig_request_fail(&n->q);
}

/* The region is there and charged to the budget: makes the buffer. */
static void new_made(struct new_request *n)
{
        struct rig_adapter *a = n->account->adapter;
        struct rig_memory *m = rig_memory_new(&n->region, n->kind, a, rig_adapter_memory_idle);

        if (!m) {
                rig_budget_return(&a->budget, n->region.bytes);
                rig_adapter_free_region(a, &n->region);
                n->q.r = -ENOMEM;
                new_fail(n);
                return;
        }
        m->charged_bytes = n->region.bytes;
        n->q.r = make(n->q.client, n->q.device, n->q.serial, n->q.id, m, &m->region, 0, n->bytes, ANY_ACCESS,
                n->account, n->region.host ? n->region.fd : -EBADF, &n->q.error);
        rig_adapter_memory_unref(m);
        if (n->q.r < 0)
                new_fail(n);
        else
                new_free(n);
}

static void new_run(struct rig_slow_job *job)
{
        struct new_request *n = RIG_CONTAINER_OF(job, struct new_request, q.job);
        struct rig_device *d = n->q.device;

        n->q.r = d->adapter->driver.driver->region_alloc(
                &d->driver, n->class_bytes, n->kind, &n->region, &n->q.error);
}

static void new_try(struct new_request *n);

static void new_retry(struct rig_parked *parked)
{
        new_try(RIG_CONTAINER_OF(parked, struct new_request, parked));
}

/* It cannot be had now: waits for memory that is on its way back, or fails. */
static void new_wait(struct new_request *n, int r)
{
        struct rig_adapter *a = n->account->adapter;

        if (a->n_retiring && a->state != RIG_ADAPTER_LOST) {
                n->parked.retry = new_retry;
                rig_list_append(&a->parked, &n->parked.link);
                return;
        }
        n->q.r = r;
        new_fail(n);
}

static void new_done(struct rig_slow_job *job)
{
        struct new_request *n = RIG_CONTAINER_OF(job, struct new_request, q.job);
        struct rig_adapter *a = n->account->adapter;

        rig_share_return(&n->account->share, n->class_bytes);
        if (n->q.r >= 0 && !rig_core_keeps_fd(a->core, n->region.fd)) {
                rig_adapter_free_region(a, &n->region);
                n->q.r = rig_error_set(&n->q.error, -EMFILE, RIG_NO_FDS);
        }
        if (n->q.r < 0) {
                rig_budget_return(&a->budget, n->class_bytes);
                if (n->q.r == -ENOMEM && !n->dropped && a->budget.cached_bytes) {
                        n->dropped = true;
                        rig_adapter_make_room(a, a->budget.limit_bytes - a->budget.live_bytes);
                        new_try(n);
                } else if (n->q.r == -ENOMEM) {
                        n->dropped = false;
                        new_wait(n, -ENOMEM);
                } else {
                        new_fail(n);
                }
                return;
        }
        if (n->region.bytes > n->class_bytes)
                a->budget.live_bytes += n->region.bytes - n->class_bytes;
        new_made(n);
}

static void new_try(struct new_request *n)
{
        struct rig_adapter *a = n->account->adapter;
        struct rig_device *d = n->q.device;
        int r;

        if (!rig_request_heard(&n->q)) {
                new_free(n);
                return;
        }
        if (d->lost) {
                n->q.r = rig_error_set(
                        &n->q.error, -ENODEV, "%s is lost: %s", rig_device_describe(d), d->reason);
                new_fail(n);
                return;
        }
        if (rig_cache_take(&n->account->cache, n->bytes, n->kind, &n->region)) {
                new_made(n);
                return;
        }
        r = rig_share_charge(&n->account->share, n->class_bytes, &n->q.error);
        if (r < 0) {
                new_wait(n, r);
                return;
        }
        r = rig_budget_charge(&a->budget, n->class_bytes, &n->q.error);
        if (r < 0 && rig_adapter_make_room(a, n->class_bytes))
                r = rig_budget_charge(&a->budget, n->class_bytes, &n->q.error);
        if (r < 0) {
                rig_share_return(&n->account->share, n->class_bytes);
                new_wait(n, r);
                return;
        }
        rig_request_defer(&n->q, new_run, new_done);
}

int rig_request_buffer_new(struct rig_client *client, const struct rig_msg_buffer_new *msg)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_account *account;
        struct new_request *n;
        uint64_t class_bytes = 0;
        int r;

        if (!d || rig_client_check_free(client, &client->buffers, msg->buffer, "buffer") < 0)
                return -EPROTO;
        if (d->driver.facts.flags & RIG_DEVICE_FILES)
                return rig_client_refuse(client, msg->serial, -EOPNOTSUPP,
                        &(struct rig_error){
                                .text = "a device of files has no memory of its own: adopt a file"});
        if (!msg->bytes) {
                r = make(
                        client, d, msg->serial, msg->buffer, NULL, NULL, 0, 0, ANY_ACCESS, NULL, -EBADF, &e);
                return r < 0 ? rig_client_refuse(client, msg->serial, r, &e) : RIG_TAKEN;
        }
        r = rig_cache_class_bytes(msg->bytes, &class_bytes);
        if (r < 0 || class_bytes > d->adapter->budget.limit_bytes) {
                rig_error_set(&e, -ENOMEM, "%llu bytes are more than %s has (%llu)",
                        (unsigned long long)msg->bytes, rig_device_describe(d),
                        (unsigned long long)d->adapter->budget.limit_bytes);
                return rig_client_refuse(client, msg->serial, -ENOMEM, &e);
        }
        r = rig_client_account(client, d->adapter, &account);
        n = r < 0 ? NULL : rig_request_new(client, d, msg->serial, msg->buffer, sizeof(*n));
        if (!n)
                return rig_client_refuse(client, msg->serial, -ENOMEM, &e);
        n->account = rig_account_ref(account);
        n->kind = msg->kind;
        n->bytes = msg->bytes;
        n->class_bytes = class_bytes;
        rig_list_init(&n->parked.link);
        new_try(n);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- adopt */

struct adopt_request {
        struct rig_request q;
        int fd;
        uint32_t access;
        uint64_t offset, bytes;
        struct rig_region region;
};

static void adopt_run(struct rig_slow_job *job)
{
        struct adopt_request *o = RIG_CONTAINER_OF(job, struct adopt_request, q.job);
        struct rig_device *d = o->q.device;

        if (d->driver.facts.flags & RIG_DEVICE_FILES)
                o->q.r = d->adapter->driver.driver->region_adopt(&d->driver, o->fd, &o->region, &o->q.error);
        else
                o->q.r = rig_region_adopt_memfd(o->fd, &o->region, &o->q.error);
        if (o->q.r < 0)
                o->fd = rig_foreign_close(o->fd);
}

/* The region of `memory` that `device` may use with `access`, if there is one already. */
static const struct rig_region *usable(
        const struct rig_memory *memory, const struct rig_device *device, uint32_t access)
{
        bool own = device->driver.facts.flags & RIG_DEVICE_FILES;

        if (!(access & ~memory->region.access) &&
                (own ? memory->device == device : memory->region.host != NULL))
                return &memory->region;
        rig_list_for_each (l, &memory->borrows) {
                struct rig_borrow *b = rig_list_entry(l, struct rig_borrow, link);

                if (!(access & ~b->region.access) && (b->device == device || (!own && b->region.host)))
                        return &b->region;
        }
        return NULL;
}

/* Adds a region to a memory, for `device`. */
static const struct rig_region *add_region(
        struct rig_memory *memory, struct rig_device *device, const struct rig_region *region)
{
        struct rig_borrow *b = calloc(1, sizeof(*b));

        if (!b)
                return NULL;
        b->adapter = &device->adapter->driver;
        b->device = rig_device_ref(device);
        b->region = *region;
        rig_list_append(&memory->borrows, &b->link);
        return &b->region;
}

static struct rig_memory *known_memory(struct rig_core *core, int fd)
{
        struct rig_identity *identity;

        if (rig_identities_find(&core->identities, fd, &identity) < 0)
                return NULL;
        return RIG_CONTAINER_OF(identity, struct rig_memory, identity);
}

/*
 * The memory that the adopted region is, new or known; `ret_region` is what the device uses. The region is
 * given back where one that serves is there. Return: a reference, or NULL where there is no memory for it.
 */
static struct rig_memory *adopted_memory(struct adopt_request *o, const struct rig_region **ret_region)
{
        struct rig_device *d = o->q.device;
        struct rig_core *core = d->adapter->core;
        struct rig_memory *m = known_memory(core, o->region.fd);

        if (m) {
                *ret_region = usable(m, d, o->access);
                if (*ret_region)
                        rig_adapter_free_region(d->adapter, &o->region);
                else
                        *ret_region = add_region(m, d, &o->region);
                if (!*ret_region)
                        rig_adapter_free_region(d->adapter, &o->region);
                return *ret_region ? rig_memory_ref(m) : NULL;
        }
        m = rig_memory_new(&o->region, RIG_MEMORY_DEVICE, d->adapter, rig_adapter_memory_idle);
        if (!m) {
                rig_adapter_free_region(d->adapter, &o->region);
                return NULL;
        }
        m->shared = true;
        if (d->driver.facts.flags & RIG_DEVICE_FILES)
                m->device = rig_device_ref(d);
        if (rig_identities_add(&core->identities, &m->identity, o->region.fd) < 0) {
                rig_device_unref(m->device);
                rig_memory_free(m);
                rig_adapter_free_region(d->adapter, &o->region);
                return NULL;
        }
        *ret_region = &m->region;
        return m;
}

/*
 * The buffer over an adopted memory. A memfd counts in the client's share, though its bytes are the client's
 * own: rigd maps it, and pages of it that work is the first to touch are rigd's doing.
 */
static int adopted(struct adopt_request *o, struct rig_memory *m, const struct rig_region *region)
{
        struct rig_account *account = NULL;
        int r = region->host ? rig_client_account(o->q.client, m->adapter, &account) : 0;

        if (r < 0)
                return r;
        return make(o->q.client, o->q.device, o->q.serial, o->q.id, m, region, o->offset, o->bytes,
                o->access, account, -EBADF, &o->q.error);
}

static void adopt_done(struct rig_slow_job *job)
{
        struct adopt_request *o = RIG_CONTAINER_OF(job, struct adopt_request, q.job);
        const struct rig_region *region = NULL;
        struct rig_memory *m = NULL;

        if (o->q.r >= 0 && !rig_request_heard(&o->q)) {
                rig_adapter_free_region(o->q.device->adapter, &o->region);
                rig_request_free(&o->q);
                return;
        }
        if (o->q.r >= 0 && rig_range_outside(o->offset, o->bytes, o->region.bytes)) {
                rig_adapter_free_region(o->q.device->adapter, &o->region);
                o->q.r = rig_error_set(&o->q.error, -ERANGE,
                        "%llu bytes at %llu are not inside the descriptor's %llu",
                        (unsigned long long)o->bytes, (unsigned long long)o->offset,
                        (unsigned long long)o->region.bytes);
        } else if (o->q.r >= 0) {
                o->access &= o->region.access;
                m = adopted_memory(o, &region);
                o->q.r = m ? adopted(o, m, region) : -ENOMEM;
        }
        if (m)
                rig_adapter_memory_unref(m);
        if (o->q.r < 0)
                rig_request_fail(&o->q);
        else
                rig_request_free(&o->q);
}

int rig_request_buffer_adopt(
        struct rig_client *client, const struct rig_msg_buffer_adopt *msg, struct rig_packet_fds *fds)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        struct adopt_request *o;
        struct rig_error e = RIG_ERROR_NULL;
        int fd;

        if (!d || rig_client_check_free(client, &client->buffers, msg->buffer, "buffer") < 0)
                return -EPROTO;
        fd = rig_packet_fds_take(fds, msg->fd);
        if (fd < 0)
                return rig_client_break(client, -EBADMSG,
                        "buffer-adopt names descriptor %u, which its packet has not", msg->fd);
        if (!rig_core_keeps_fd(client->core, fd)) {
                rig_foreign_close(fd);
                rig_error_set(&e, -EMFILE, RIG_NO_FDS);
                return rig_client_refuse(client, msg->serial, -EMFILE, &e);
        }
        o = rig_request_new(client, d, msg->serial, msg->buffer, sizeof(*o));
        if (!o) {
                rig_foreign_close(fd);
                return rig_client_refuse(client, msg->serial, -ENOMEM, &e);
        }
        o->access = fd_access(fd);
        o->fd = fd;
        o->offset = msg->offset;
        o->bytes = msg->bytes;
        if (!(d->driver.facts.flags & (RIG_DEVICE_FILES | RIG_DEVICE_NAMES_HOST))) {
                rig_foreign_close(fd);
                o->q.r = rig_error_set(&o->q.error, -EOPNOTSUPP,
                        "%s takes no descriptor: adopt it on a memory or host device and borrow it from "
                        "there",
                        rig_device_describe(d));
                rig_request_fail(&o->q);
                return RIG_TAKEN;
        }
        rig_request_defer(&o->q, adopt_run, adopt_done);
        return RIG_TAKEN;
}

/* ---------------------------------------------------------------- borrow, and import */

struct borrow_request {
        struct rig_request q;
        struct rig_memory *memory; /* referenced; a buffer of it is, too */
        const struct rig_region *of;
        struct rig_region region;
        uint64_t offset, bytes;
        uint32_t access;
};

static void borrow_run(struct rig_slow_job *job)
{
        struct borrow_request *o = RIG_CONTAINER_OF(job, struct borrow_request, q.job);
        struct rig_device *d = o->q.device;

        o->q.r = d->adapter->driver.driver->region_borrow(&d->driver, o->of, &o->region, &o->q.error);
}

static void borrow_done(struct rig_slow_job *job)
{
        struct borrow_request *o = RIG_CONTAINER_OF(job, struct borrow_request, q.job);
        const struct rig_region *region;

        if (o->q.r >= 0) {
                region = add_region(o->memory, o->q.device, &o->region);
                if (!region) {
                        rig_adapter_free_region(o->q.device->adapter, &o->region);
                        o->q.r = -ENOMEM;
                } else if (rig_request_heard(&o->q)) {
                        o->q.r = make(o->q.client, o->q.device, o->q.serial, o->q.id, o->memory, region,
                                o->offset, o->bytes, o->access, NULL, -EBADF, &o->q.error);
                }
        }
        rig_adapter_memory_unref(o->memory);
        if (o->q.r < 0)
                rig_request_fail(&o->q);
        else
                rig_request_free(&o->q);
}

/* Makes a buffer on `d` over a memory, by the region that `d` can use, or one that it borrows first. */
static int reach(struct rig_client *c, struct rig_device *d, uint32_t serial, uint32_t id,
        struct rig_memory *m, uint64_t offset, uint64_t bytes, uint32_t access)
{
        const struct rig_region *region = NULL;
        const struct rig_driver *ops = d->adapter->driver.driver;
        struct rig_error e = RIG_ERROR_NULL;
        struct borrow_request *o;
        int r;

        if (d->driver.facts.flags & RIG_DEVICE_NAMES_HOST && m->region.host)
                region = &m->region;
        rig_list_for_each (l, &m->borrows) {
                struct rig_borrow *b = rig_list_entry(l, struct rig_borrow, link);

                if (!region && b->device == d)
                        region = &b->region;
        }
        if (region) {
                r = make(c, d, serial, id, m, region, offset, bytes, access, NULL, -EBADF, &e);
                return r < 0 ? rig_client_refuse(c, serial, r, &e) : RIG_TAKEN;
        }
        if (!ops->region_borrow || !(d->driver.facts.flags & RIG_DEVICE_BORROWS_HOST) || !m->region.host) {
                rig_error_set(&e, -EOPNOTSUPP, "%s cannot map this memory: copy it instead",
                        rig_device_describe(d));
                return rig_client_refuse(c, serial, -EOPNOTSUPP, &e);
        }
        o = rig_request_new(c, d, serial, id, sizeof(*o));
        if (!o)
                return rig_client_refuse(c, serial, -ENOMEM, &e);
        o->memory = rig_memory_ref(m);
        o->of = &m->region;
        o->offset = offset;
        o->bytes = bytes;
        o->access = access;
        rig_request_defer(&o->q, borrow_run, borrow_done);
        return RIG_TAKEN;
}

int rig_request_buffer_borrow(struct rig_client *client, const struct rig_msg_buffer_borrow *msg)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        struct rig_buffer *of = d ? rig_client_buffer(client, msg->of) : NULL;
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        if (!of || rig_client_check_free(client, &client->buffers, msg->buffer, "buffer") < 0)
                return -EPROTO;
        if (rig_buffer_reached_by(of, d)) {
                r = make(client, d, msg->serial, msg->buffer, of->memory, of->region, of->offset, of->bytes,
                        of->access, NULL, -EBADF, &e);
                return r < 0 ? rig_client_refuse(client, msg->serial, r, &e) : RIG_TAKEN;
        }
        return reach(client, d, msg->serial, msg->buffer, of->memory, of->offset, of->bytes, of->access);
}

int rig_request_buffer_import(
        struct rig_client *client, const struct rig_msg_buffer_import *msg, struct rig_packet_fds *fds)
{
        struct rig_device *d = rig_client_device(client, msg->device);
        _cleanup_(rig_foreign_closep) int fd = -EBADF;
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_account *account;
        struct rig_memory *m;
        const struct rig_region *region;
        uint32_t access;
        int r;

        if (!d || rig_client_check_free(client, &client->buffers, msg->buffer, "buffer") < 0)
                return -EPROTO;
        fd = rig_packet_fds_take(fds, msg->fd);
        if (fd < 0)
                return rig_client_break(client, -EBADMSG,
                        "buffer-import names descriptor %u, which its packet has not", msg->fd);
        m = known_memory(client->core, fd);
        if (!m) {
                rig_error_set(&e, -ESTALE,
                        "no buffer here has the memory of this descriptor: export it first, and keep "
                        "a buffer of it until it was imported");
                return rig_client_refuse(client, msg->serial, -ESTALE, &e);
        }
        access = fd_access(fd);
        if (!m->charged_bytes)
                return reach(client, d, msg->serial, msg->buffer, m, 0, m->region.bytes, access);
        /* Every holder of an adapter's memory is charged for it: whoever is left pays. */
        region = d->driver.facts.flags & RIG_DEVICE_NAMES_HOST && m->region.host ? &m->region : NULL;
        r = region ? rig_client_account(client, m->adapter, &account) : 0;
        if (!region)
                return reach(client, d, msg->serial, msg->buffer, m, 0, m->region.bytes, access);
        if (r >= 0)
                r = make(client, d, msg->serial, msg->buffer, m, region, 0, m->region.bytes, access, account,
                        -EBADF, &e);
        return r < 0 ? rig_client_refuse(client, msg->serial, r, &e) : RIG_TAKEN;
}

/* ---------------------------------------------------------------- export, and views */

/* A descriptor that names a memory which has none of its own: nothing can be read from it. */
static int make_token(void)
{
        int fd = memfd_create("rig-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd >= 0 &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
                int r = -errno;

                rig_close(fd);
                return r;
        }
        return fd < 0 ? -errno : fd;
}

/* Who may only read a memory, or only write it, passes on no more than that. */
static int reopen(int fd, uint32_t access)
{
        char path[64];
        int r;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = open(path, (access == RIG_ACCESS_READ ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
        return r < 0 ? -errno : r;
}

int rig_request_buffer_export(struct rig_client *client, const struct rig_msg_buffer_export *msg)
{
        struct rig_buffer *b = rig_client_buffer(client, msg->buffer);
        struct rig_error e = RIG_ERROR_NULL;
        _cleanup_(rig_closep) int reopened = -EBADF;
        struct rig_memory *m;
        int fd, r;

        if (!b)
                return -EPROTO;
        m = b->memory;
        if (!m) {
                rig_error_set(&e, -EINVAL, "a buffer of no bytes has no memory to share");
                return rig_client_refuse(client, msg->serial, -EINVAL, &e);
        }
        fd = b->region->fd >= 0 ? b->region->fd : m->region.fd;
        if (fd < 0) {
                if (m->token < 0)
                        m->token = make_token();
                fd = m->token;
        }
        r = fd < 0                   ? fd
            : m->identity.registered ? 0
                                     : rig_identities_add(&client->core->identities, &m->identity, fd);
        if (r >= 0 && fd_access(fd) & ~b->access && fcntl(fd, F_GET_SEALS) < 0) {
                /* Whoever serves the file would be asked, and waited for. */
                rig_error_set(&e, -EACCES,
                        "the file was opened for more than this buffer admits, and is not opened again: "
                        "export a "
                        "buffer of who opened it");
                return rig_client_refuse(client, msg->serial, -EACCES, &e);
        }
        if (r >= 0 && fd_access(fd) & ~b->access)
                fd = r = reopened = reopen(fd, b->access);
        if (r < 0) {
                rig_error_set(&e, r, "no descriptor can be had: %s", strerror(-r));
                return rig_client_refuse(client, msg->serial, r, &e);
        }
        m->shared = true;
        answer(client, msg->serial, b, fd);
        return RIG_TAKEN;
}

int rig_request_buffer_view(struct rig_client *client, const struct rig_msg_buffer_view *msg)
{
        struct rig_buffer *of = rig_client_buffer(client, msg->of), *b;
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        if (!of || rig_client_check_free(client, &client->buffers, msg->buffer, "buffer") < 0)
                return -EPROTO;
        if (rig_range_outside(msg->offset, msg->bytes, of->bytes))
                return rig_client_break(client, -ERANGE,
                        "a view of %llu bytes at %llu is not inside buffer %u, which has %llu",
                        (unsigned long long)msg->bytes, (unsigned long long)msg->offset, msg->of,
                        (unsigned long long)of->bytes);
        r = rig_client_charge_unasked(client, &e);
        if (r == 0) {
                r = rig_buffer_new(client, of->device, of->memory, of->region, of->offset + msg->offset,
                        msg->bytes, NULL, &b, &e);
                if (r < 0)
                        rig_client_return_object(client);
        }
        if (r < 0)
                return rig_client_break(
                        client, r, "no view can be made: %s", e.code ? e.text : strerror(-r));
        b->access = of->access;
        r = enter(client, msg->buffer, b);
        if (r < 0) {
                rig_buffer_unref(b);
                return rig_client_break(client, r, "no view can be made: %s", strerror(-r));
        }
        return RIG_TAKEN;
}
