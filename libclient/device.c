/* SPDX-License-Identifier: ISC */
/*
 * Devices.
 *
 * The library counts the values it submits itself, as rigd does when it accepts them: only this connection
 * submits to its devices. What was reached it reads from the device's word in the shared page, or without
 * one from what events told.
 *
 * A device is in the connection's table, where events find it, from the answer that opened it (handled in
 * the order of the socket, so that no event of an earlier device of the same number is taken for its own)
 * until it is closed. The last reference closes it, after the workers of a host device have finished what
 * was accepted.
 *
 * Failures of runs and the loss of the device are kept here until somebody is told; wait.c tells them.
 */
#include "libclient/device.h"

#include <string.h>

#include "libclient/host.h"
#include "libclient/notify.h"
#include "libclient/staging.h"
#include "libclient/wait.h"
#include "libclient/wire.h"
#include "libclient/work.h"

#define REASON_USEC (10 * RIG_USEC_PER_SEC) /* the longest that a loss is known without its reason */

static void device_free(struct rig_device *device)
{
        pthread_mutex_destroy(&device->once_mutex);
        rig_host_free(device->host);
        free(device->failures);
        free(device->uses);
        free(device);
}

/* A device that is being opened, and its workers, should its code run here: other threads see it complete.
 */
struct opening {
        struct rig_device *device;
        struct rig_host *host;
};

static int take_device(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        const struct rig_msg_device_done *m = &msg->device_done;
        struct opening *opening = call->data;
        struct rig_device *device = opening->device;
        struct rig *rig = device->rig;

        rig_text_copy(m->arch, device->arch, sizeof(device->arch));
        device->budget_bytes = m->budget;
        device->hang_usec = m->hang;
        device->flags = m->flags;
        device->n_queues = m->n_queues;
        memcpy(device->queues, m->queues, sizeof(device->queues[0]) * m->n_queues);
        if (m->flags & RIG_DEVICE_CLIENT_CODE)
                device->host = RIG_STEAL(opening->host);
        device->word = rig->words ? &rig->words->word[device->id - 1] : NULL;
        device->epoch = ++rig->epochs[device->id];
        rig->devices[device->id] = device;
        return 0;
}

static int device_new(struct rig *rig, const char *name, struct rig_device **ret_device)
{
        struct rig_device *device;

        if (strlen(name) > RIG_PROTO_NAME_MAX)
                return rig_fail(-ENOENT, "no adapter has a name of more than %u bytes", RIG_PROTO_NAME_MAX);
        device = calloc(1, sizeof(*device));
        if (!device)
                return rig_fail_memory();
        pthread_mutex_init(&device->once_mutex, NULL);
        device->failures = calloc(RIG_FAILURES_MAX, sizeof(*device->failures));
        if (!device->failures) {
                device_free(device);
                return rig_fail_memory();
        }
        device->rig = rig;
        device->refs = 1;
        rig_list_init(&device->notifies);
        strcpy(device->name, name);
        *ret_device = device;
        return 0;
}

static int device_ask(struct opening *opening)
{
        struct rig_device *device = opening->device;
        struct rig_msg_device_open m = {.name = rig_text(device->name, RIG_PROTO_NAME_MAX)};
        struct rig_request request = RIG_REQUEST(RIG_MSG_DEVICE_OPEN, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DEVICE_DONE);
        struct rig *rig = device->rig;
        int r;

        rig_lock_take(&rig->lock);
        r = rig_ids_take(&rig->device_ids, &device->id);
        rig_lock_drop(&rig->lock);
        if (r < 0)
                return r;

        m.device = device->id;
        call.take = take_device;
        call.data = opening;
        r = rig_wire_call(rig, &request, &call);
        if (r < 0) {
                rig_lock_take(&rig->lock);
                rig_ids_put(&rig->device_ids, device->id);
                rig_lock_drop(&rig->lock);
        }
        return r;
}

/* Tells rigd, and leaves the table. */
static void device_close(struct rig_device *device)
{
        struct rig_msg_device_close m = {.device = device->id};
        struct rig *rig = device->rig;

        if (rig_forked(rig))
                return;
        rig_lock_take(&rig->lock);
        rig->devices[device->id] = NULL;
        rig_notify_forget(device);
        if (rig_wire_order(rig, RIG_MSG_DEVICE_CLOSE, &m) == 0)
                rig_ids_put(&rig->device_ids, device->id);
        rig_lock_drop(&rig->lock);
}

int rig_device_open_internal(struct rig *rig, const char *name, struct rig_device **ret_device)
{
        struct rig_device *device = NULL;
        struct opening opening = {0};
        int r;

        r = device_new(rig, name, &device);
        if (r < 0)
                return r;
        device->internal = true;
        opening.device = device;
        r = rig_host_new(device, &opening.host);
        if (r == 0)
                r = device_ask(&opening);
        rig_host_free(opening.host);
        if (r < 0) {
                device_free(device);
                return r;
        }
        *ret_device = device;
        return 0;
}

RIG_API int rig_device_open(struct rig *rig, const char *name, struct rig_device **ret_device)
{
        struct rig_device *device;
        int r;

        if (!rig || !name || !ret_device)
                return rig_fail(-EINVAL, "a device needs a connection, a name and where to store it");
        r = rig_check(rig);
        if (r < 0)
                return r;
        r = rig_device_open_internal(rig, name, &device);
        if (r < 0)
                return r;
        device->internal = false;
        rig_ref(rig);
        *ret_device = device;
        return 0;
}

RIG_API struct rig_device *rig_device_ref(struct rig_device *device)
{
        /* relaxed: whoever refs holds a reference already */
        if (device)
                atomic_fetch_add_explicit(&device->refs, 1, memory_order_relaxed);
        return device;
}

static void device_end(struct rig_device *device)
{
        struct rig *rig = device->rig;
        bool internal = device->internal;

        /* rigd takes a close that comes before its program's code is done for a loss. */
        if (device->flags & RIG_DEVICE_CLIENT_CODE && rig_check(rig) == 0)
                (void)rig_await(device, rig_device_submitted(device), RIG_USEC_INFINITY);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(device->once); i++)
                rig_work_unref(device->once[i]);
        rig_stage_free(device->stage);
        device_close(device);
        device_free(device);
        if (!internal)
                rig_unref(rig);
}

RIG_API struct rig_device *rig_device_unref(struct rig_device *device)
{
        /* acq_rel: what others did with the device is before its end */
        if (!device || atomic_fetch_sub_explicit(&device->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        if (device->host)
                rig_host_end(device->host, device_end); /* now, or after the run that is calling */
        else
                device_end(device);
        return NULL;
}

RIG_API int rig_device_get_facts(struct rig_device *device, struct rig_device_facts *ret_facts)
{
        struct rig_device_facts facts = RIG_DEVICE_FACTS_INIT;
        uint32_t size;

        if (!device || !ret_facts || ret_facts->size < sizeof(ret_facts->size))
                return rig_fail(-EINVAL, "facts need a device and a struct that says its size");
        size = ret_facts->size;
        if (size > sizeof(facts))
                return rig_fail(-E2BIG, "the facts are of a newer header than the library");
        facts.size = size;
        facts.flags = device->flags;
        memcpy(facts.arch, device->arch, sizeof(facts.arch));
        facts.budget_bytes = device->budget_bytes;
        facts.hang_usec = device->hang_usec;
        facts.n_queues = device->n_queues;
        memcpy(facts.queues, device->queues, sizeof(facts.queues));
        memcpy(ret_facts, &facts, size);
        return 0;
}

RIG_API const char *rig_device_name(const struct rig_device *device)
{
        return device->name;
}

RIG_API struct rig *rig_device_rig(const struct rig_device *device)
{
        return device->rig;
}

RIG_API int rig_device_reaches(const struct rig_device *device, const struct rig_device *other)
{
        const uint32_t host = RIG_DEVICE_NAMES_HOST | RIG_DEVICE_BORROWS_HOST;

        if (!device || !other || device->rig != other->rig)
                return 0;
        return device == other || (device->flags & host && other->flags & RIG_DEVICE_HOST_ADDRESSED);
}

bool rig_device_runs(const struct rig_device *device, uint32_t runs, uint32_t *ret_queue)
{
        for (uint32_t i = 0; i < device->n_queues; i++) {
                if ((device->queues[i] & runs) == runs) {
                        *ret_queue = i;
                        return true;
                }
        }
        return false;
}

RIG_API uint64_t rig_device_submitted(struct rig_device *device)
{
        return atomic_load_explicit(&device->submitted, memory_order_acquire);
}

RIG_API uint64_t rig_device_signaled(struct rig_device *device)
{
        struct rig *rig = device->rig;

        if (!device->word && rig_check(rig) == 0) {
                rig_lock_take(&rig->lock);
                rig_wire_drain(rig);
                rig_lock_drop(&rig->lock);
        }
        return rig_device_now(device);
}

static bool told_lost(void *data)
{
        struct rig_device *device = data;

        return atomic_load_explicit(&device->lost, memory_order_acquire);
}

int rig_device_fail_lost(struct rig_device *device)
{
        struct rig *rig = device->rig;
        int r;

        if (!told_lost(device)) {
                r = rig_check(rig);
                if (r < 0)
                        return r;
                rig_lock_take(&rig->lock);
                r = rig_wire_wait(rig, told_lost, device, rig_deadline_usec(REASON_USEC), rig->spin_usec);
                rig_lock_drop(&rig->lock);
                if (r == -ETIMEDOUT)
                        return rig_fail(-ENODEV, "%s is lost, and rigd did not say why", device->name);
                if (r < 0)
                        return r;
        }
        return rig_fail(-ENODEV, "%s is lost: %s", device->name, device->lost_text);
}

RIG_API int rig_device_lost(struct rig_device *device)
{
        if (!device->word)
                (void)rig_device_signaled(device);
        return rig_device_lost_now(device) ? rig_device_fail_lost(device) : 0;
}

/* ---------------------------------------------------------------- events */

void rig_device_reached(struct rig_device *device, uint64_t value)
{
        /* release: pairs with rig_device_now() */
        if (value > atomic_load_explicit(&device->reached, memory_order_relaxed))
                atomic_store_explicit(&device->reached, value, memory_order_release);
        rig_notify_reached(device, value);
}

void rig_device_ready(struct rig_device *device, uint64_t value)
{
        if (value > atomic_load_explicit(&device->ready, memory_order_relaxed))
                atomic_store_explicit(&device->ready, value, memory_order_release);
}

void rig_device_told_lost(struct rig_device *device, const struct rig_msg_device_lost *msg)
{
        if (atomic_load_explicit(&device->lost, memory_order_relaxed))
                return;
        rig_text_copy(msg->text, device->lost_text, sizeof(device->lost_text));
        /* release: the text is there for who sees it */
        atomic_store_explicit(&device->lost, true, memory_order_release);
        atomic_store_explicit(&device->rig->seen_loss, true, memory_order_release);
        rig_notify_lost(device, -ENODEV);
}

/* Which memories the run used, as far as they were noted. */
static void find_memories(struct rig_device *device, struct rig_failure *failure)
{
        for (uint32_t i = 0; i < device->n_uses; i++) {
                struct rig_use *use = &device->uses[(device->uses_first + i) & (device->uses_room - 1)];

                if (use->value == failure->value && failure->n_memories < RIG_FAILURE_MEMORIES)
                        failure->memories[failure->n_memories++] = use->memory;
        }
}

static void forget_failure(struct rig_device *device, uint32_t i)
{
        device->n_failures--;
        memmove(&device->failures[i], &device->failures[i + 1],
                sizeof(*device->failures) * (device->n_failures - i));
}

void rig_device_run_failed(struct rig_device *device, const struct rig_msg_run_failed *msg)
{
        struct rig_failure *failure;

        /* With too many to keep, the oldest stands for the one after it. */
        if (device->n_failures == RIG_FAILURES_MAX)
                forget_failure(device, 1);
        failure = &device->failures[device->n_failures++];
        failure->value = msg->value;
        failure->error = msg->error > 0 ? -(int)msg->error : -EIO;
        failure->n_memories = 0;
        rig_text_copy(msg->text, failure->text, sizeof(failure->text));
        find_memories(device, failure);
        if (msg->lost)
                atomic_store_explicit(&device->rig->seen_loss, true, memory_order_release);
        if (device->host)
                rig_host_skip(device->host, msg->value);
        device->failures_told++;
}

/* ---------------------------------------------------------------- failures */

/* Forgets the uses of runs that can no longer be told to have failed. */
static void trim_uses(struct rig_device *device)
{
        uint64_t reached = rig_device_now(device);

        /* acquire: counted before the value was reached, and read after it was */
        if (device->word &&
                atomic_load_explicit(&device->word->failures, memory_order_acquire) != device->failures_told)
                return;
        while (device->n_uses > 0 && device->uses[device->uses_first].value <= reached) {
                device->uses_first = (device->uses_first + 1) & (device->uses_room - 1);
                device->n_uses--;
        }
}

int rig_device_use_room(struct rig_device *device, uint32_t n)
{
        uint32_t room = RIG_MAX(device->uses_room, 64u);
        struct rig_use *grown;

        if (device->n_uses + n > device->uses_room)
                trim_uses(device);
        if (device->n_uses + n <= device->uses_room)
                return 0;
        while (room < device->n_uses + n)
                room *= 2;
        grown = calloc(room, sizeof(*grown));
        if (!grown)
                return rig_fail_memory();
        for (uint32_t i = 0; i < device->n_uses; i++)
                grown[i] = device->uses[(device->uses_first + i) & (device->uses_room - 1)];
        free(device->uses);
        device->uses = grown;
        device->uses_room = room;
        device->uses_first = 0;
        return 0;
}

void rig_device_note_use(struct rig_device *device, uint64_t value, uint64_t memory)
{
        uint32_t i = (device->uses_first + device->n_uses) & (device->uses_room - 1);

        rig_assert(device->n_uses < device->uses_room);
        device->uses[i] = (struct rig_use){.value = value, .memory = memory};
        device->n_uses++;
}

static bool caught_up(void *data)
{
        const struct rig_device *device = data;

        /* acquire: pairs with rigd's count, which is before the value it passes */
        return (int32_t)(atomic_load_explicit(&device->word->failures, memory_order_acquire) -
                         device->failures_told) <= 0;
}

int rig_device_catch_up(struct rig_device *device)
{
        struct rig *rig = device->rig;

        if (!device->word) {
                rig_wire_drain(rig);
                return 0;
        }
        if (rig_likely(caught_up(device)))
                return 0;
        return rig_wire_wait(rig, caught_up, device, RIG_USEC_INFINITY, rig->spin_usec);
}

static int tell(struct rig_device *device, uint32_t i)
{
        const struct rig_failure *failure = &device->failures[i];
        int r;

        r = rig_fail(failure->error, "run %llu of %s failed: %s", (unsigned long long)failure->value,
                device->name, failure->text);
        forget_failure(device, i);
        return r;
}

int rig_device_tell_failure(struct rig_device *device, uint64_t first, uint64_t last)
{
        for (uint32_t i = 0; i < device->n_failures; i++)
                if (device->failures[i].value >= first && device->failures[i].value <= last)
                        return tell(device, i);
        return 0;
}

static bool failure_used(
        const struct rig_failure *failure, uint64_t memory, uint64_t last_write, uint64_t last_use)
{
        for (uint32_t i = 0; i < failure->n_memories; i++)
                if (failure->memories[i] == memory)
                        return true;
        return failure->value == last_use || failure->value == last_write;
}

int rig_device_tell_failure_of(
        struct rig_device *device, uint64_t memory, uint64_t last_write, uint64_t last_use)
{
        for (uint32_t i = 0; i < device->n_failures; i++)
                if (failure_used(&device->failures[i], memory, last_write, last_use))
                        return tell(device, i);
        return 0;
}
