/* SPDX-License-Identifier: ISC */
/*
 * The connection.
 *
 * It is made by an address and a hello, in which both sides say what they speak and rigd hands over the
 * shared pages, which are checked before they are believed. It ends with its last reference: devices hold
 * one each, buffers, works and images hold their device's, so nothing outlives it.
 *
 * A process that forked has a copy of the connection and must not use it: both would count values and move
 * the ring's tail. A page that the kernel wipes in the child says so; every call looks at it first, before
 * the lock, which a thread that the child does not have may have held.
 */
#include "libclient/client.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "libclient/address.h"
#include "libclient/device.h"
#include "libclient/notify.h"
#include "libclient/wire.h"
#include "protocol/ring.h"

#define LIBRARY    "librig-client " RIG_CLIENT_VERSION
#define HELLO_USEC (60 * RIG_USEC_PER_SEC) /* the longest that a hello may take */
#define SPIN_USEC  50

/* ---------------------------------------------------------------- processes */

static const uint32_t no_process;
const uint32_t *rig_process_page = &no_process;
static _Atomic(uint32_t *) process_page; /* the same, once it is there */
static pthread_mutex_t process_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_processes; /* numbers given in this process and its ancestors */

static void wipe_page(void)
{
        *atomic_load_explicit(&process_page, memory_order_relaxed) = 0;
}

static int process_init(void)
{
        uint32_t *page;

        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return rig_fail_memory();
        atomic_store_explicit(&process_page, page, memory_order_relaxed);
        if (madvise(page, 4096, MADV_WIPEONFORK) < 0)
                pthread_atfork(NULL, NULL, wipe_page); /* a kernel before 4.14 */
        return 0;
}

/* Gives this process its number, if it has none. */
static int process_enter(void)
{
        uint32_t *page;
        int r = 0;

        pthread_mutex_lock(&process_mutex);
        page = atomic_load_explicit(&process_page, memory_order_relaxed);
        if (!page)
                r = process_init();
        if (r == 0) {
                page = atomic_load_explicit(&process_page, memory_order_relaxed);
                if (*page == 0)
                        *page = ++n_processes;
                /* Written once, before this process has a connection: read by all of them without a lock. */
                if (rig_process_page != page)
                        rig_process_page = page;
        }
        pthread_mutex_unlock(&process_mutex);
        return r;
}

int rig_check_slowly(struct rig *rig)
{
        int broken;

        if (rig_forked(rig))
                return rig_fail(-ECONNRESET, "the connection is of the process that forked: connect again");
        broken = atomic_load_explicit(&rig->broken, memory_order_acquire);
        return broken < 0 ? rig_fail(broken, "%s", rig->broken_text) : 0;
}

/* ---------------------------------------------------------------- life */

static void connection_free(struct rig *rig)
{
        rig_notify_deinit(rig);
        rig_list_for_each_safe (i, &rig->calls) {
                struct rig_call *call = rig_list_entry(i, struct rig_call, link);

                if (call->orphan)
                        free(call);
        }
        rig_words_unmap(rig->words);
        rig_ring_unmap(rig->ring);
        rig_close(rig->doorbell);
        rig_close(rig->fd);
        rig_ids_deinit(&rig->device_ids);
        rig_ids_deinit(&rig->buffer_ids);
        rig_ids_deinit(&rig->work_ids);
        rig_ids_deinit(&rig->image_ids);
        pthread_mutex_destroy(&rig->stage_mutex);
        free(rig->outbox);
        free(rig->inbox);
        free(rig->msg);
        free(rig);
}

static void connection_freep(struct rig **rig)
{
        if (*rig)
                connection_free(*rig);
}

RIG_API struct rig *rig_ref(struct rig *rig)
{
        /* relaxed: whoever refs holds a reference already */
        if (rig)
                atomic_fetch_add_explicit(&rig->refs, 1, memory_order_relaxed);
        return rig;
}

RIG_API struct rig *rig_unref(struct rig *rig)
{
        /* acq_rel: what others did with the connection is before its end */
        if (!rig || atomic_fetch_sub_explicit(&rig->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        rig_device_unref(rig->stage_device);
        connection_free(rig);
        return NULL;
}

static int connection_new(struct rig **ret_rig)
{
        _cleanup_(connection_freep) struct rig *rig = NULL;
        cpu_set_t cpus;

        rig = calloc(1, sizeof(*rig));
        if (!rig)
                return rig_fail_memory();
        rig->refs = 1;
        rig->process = *rig_process_page;
        rig->fd = rig->doorbell = rig->due_fd = rig->poll_fd = -EBADF;
        rig->device_ids.max = RIG_PROTO_DEVICE_ID_MAX;
        rig->buffer_ids.max = RIG_PROTO_BUFFER_ID_MAX;
        rig->work_ids.max = RIG_PROTO_WORK_ID_MAX;
        rig->image_ids.max = RIG_PROTO_IMAGE_ID_MAX;
        rig_list_init(&rig->calls);
        rig_list_init(&rig->due);
        pthread_mutex_init(&rig->stage_mutex, NULL);
        /* Polling on the only core keeps rigd from what is waited for. */
        if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0 || CPU_COUNT(&cpus) > 1)
                rig->spin_usec = SPIN_USEC;
        rig->outbox = malloc(RIG_PROTO_PACKET_BYTES);
        rig->inbox = malloc(RIG_PROTO_PACKET_BYTES);
        rig->msg = malloc(sizeof(*rig->msg));
        if (!rig->outbox || !rig->inbox || !rig->msg)
                return rig_fail_memory();
        *ret_rig = RIG_STEAL(rig);
        return 0;
}

/* ---------------------------------------------------------------- hello */

struct hello {
        struct rig *rig;
        uint32_t version, features;
        int words, ring, doorbell;
};

static int take_hello(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        const struct rig_msg_hello_done *m = &msg->hello_done;
        struct hello *hello = call->data;

        hello->version = m->version;
        hello->features = m->features;
        rig_take_limits(hello->rig, m->objects, m->runs);
        if (m->has_words)
                hello->words = rig_packet_fds_take(fds, m->words);
        if (m->has_ring)
                hello->ring = rig_packet_fds_take(fds, m->ring);
        if (m->has_doorbell)
                hello->doorbell = rig_packet_fds_take(fds, m->doorbell);
        return 0;
}

static int map_pages(struct rig *rig, struct hello *hello)
{
        int r = 0;

        if (rig->transport != RIG_TRANSPORT_SOCKET)
                r = rig_words_map(hello->words, &rig->words);
        if (r < 0)
                return rig_fail(-EPROTO, "%s sent no page of words, or not a sealed one of %u bytes",
                        rig->origin, RIG_WORDS_BYTES);
        if (rig->transport != RIG_TRANSPORT_RING)
                return 0;
        r = rig_ring_map(hello->ring, &rig->ring, &rig->ring_bytes);
        if (r < 0 || hello->doorbell < 0)
                return rig_fail(-EPROTO,
                        "%s sent no ring with its doorbell, or not a sealed one of %u bytes", rig->origin,
                        RIG_RING_FILE_BYTES);
        rig->doorbell = rig_steal_fd(&hello->doorbell);
        return 0;
}

/* What both sides take: rigd may offer less than was asked for. */
static int agree(struct rig *rig, struct hello *hello)
{
        if (hello->version != RIG_PROTOCOL_VERSION)
                return rig_fail(-EPROTONOSUPPORT, "%s speaks version %u of the protocol, this library %d",
                        rig->origin, hello->version, RIG_PROTOCOL_VERSION);
        if (!(hello->features & RIG_FEATURE_WORDS))
                rig->transport = RIG_TRANSPORT_SOCKET;
        else if (!(hello->features & RIG_FEATURE_RING))
                rig->transport =
                        rig->transport == RIG_TRANSPORT_SOCKET ? RIG_TRANSPORT_SOCKET : RIG_TRANSPORT_WORDS;
        return map_pages(rig, hello);
}

static int say_hello(struct rig *rig, struct hello *hello)
{
        static const uint32_t features[_RIG_TRANSPORT_MAX] = {
                [RIG_TRANSPORT_RING] = RIG_FEATURE_WORDS | RIG_FEATURE_RING,
                [RIG_TRANSPORT_WORDS] = RIG_FEATURE_WORDS,
        };
        struct rig_msg_hello m = {.version = RIG_PROTOCOL_VERSION,
                .library = rig_text(LIBRARY, RIG_PROTO_NAME_MAX),
                .features = features[rig->transport]};
        struct rig_request request = {.type = RIG_MSG_HELLO, .msg = &m, .serial = &m.serial};
        struct rig_call *call = calloc(1, sizeof(*call));
        int r;

        if (!call)
                return rig_fail_memory();
        call->expect = RIG_MSG_HELLO_DONE;
        call->take = take_hello;
        call->data = hello;
        r = rig_wire_call_until(rig, &request, call, rig_deadline_usec(HELLO_USEC));
        if (r == -ETIMEDOUT)
                return rig_fail(r, "%s did not answer the hello", rig->origin);
        if (r == -ECONNRESET)
                return rig_fail(r, "%s ended before it answered the hello", rig->origin);
        return r < 0 ? r : agree(rig, hello);
}

static int connection_hello(struct rig *rig)
{
        struct hello hello = {.rig = rig, .words = -EBADF, .ring = -EBADF, .doorbell = -EBADF};
        int r;

        r = say_hello(rig, &hello);
        rig_close(hello.words);
        rig_close(hello.ring);
        rig_close(hello.doorbell);
        return r;
}

RIG_API int rig_connect(const char *address, struct rig **ret_rig)
{
        _cleanup_(connection_freep) struct rig *rig = NULL;
        int r;

        if (!ret_rig)
                return rig_fail(-EINVAL, "nowhere to store the connection");
        r = process_enter();
        if (r < 0)
                return r;
        r = connection_new(&rig);
        if (r < 0)
                return r;
        r = rig_address_connect(address, &rig->fd, &rig->transport, rig->origin, sizeof(rig->origin));
        if (r < 0)
                return r;
        r = connection_hello(rig);
        if (r < 0)
                return r;
        *ret_rig = RIG_STEAL(rig);
        return 0;
}

/* ---------------------------------------------------------------- small calls */

RIG_API int rig_failed(struct rig *rig)
{
        if (!rig)
                return rig_fail(-EINVAL, "no connection");
        if (!rig_forked(rig)) {
                rig_lock_take(&rig->lock);
                rig_wire_drain(rig);
                rig_lock_drop(&rig->lock);
        }
        return rig_check(rig);
}

RIG_API int rig_sync(struct rig *rig)
{
        struct rig_msg_sync m = {0};
        struct rig_request request = RIG_REQUEST(RIG_MSG_SYNC, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_DONE);
        int r;

        if (!rig)
                return rig_fail(-EINVAL, "no connection");
        r = rig_check(rig);
        return r < 0 ? r : rig_wire_call(rig, &request, &call);
}

static int take_adapter(struct rig_call *call, const union rig_msg *msg, struct rig_packet_fds *fds)
{
        const struct rig_msg_adapter_done *m = &msg->adapter_done;
        struct rig_adapter *adapter = call->data;

        adapter->size = sizeof(*adapter);
        rig_text_copy(m->name, adapter->name, sizeof(adapter->name));
        rig_text_copy(m->driver, adapter->driver, sizeof(adapter->driver));
        rig_text_copy(m->about, adapter->about, sizeof(adapter->about));
        if (m->has_unavailable)
                rig_text_copy(m->unavailable, adapter->unavailable, sizeof(adapter->unavailable));
        adapter->flags = m->flags;
        adapter->budget_bytes = m->budget;
        adapter->devices = m->devices;
        return 0;
}

static int ask_adapter(struct rig *rig, uint32_t index, struct rig_adapter *adapter)
{
        struct rig_msg_adapter_list m = {.index = index};
        struct rig_request request = RIG_REQUEST(RIG_MSG_ADAPTER_LIST, m);
        struct rig_call call = RIG_CALL_INIT(RIG_MSG_ADAPTER_DONE);

        call.take = take_adapter;
        call.data = adapter;
        return rig_wire_call(rig, &request, &call);
}

RIG_API int rig_adapter_list(struct rig *rig, struct rig_adapter **ret_adapters)
{
        _cleanup_(rig_freep) struct rig_adapter *adapters = NULL;
        uint32_t n = 0;
        int r;

        if (!rig || !ret_adapters)
                return rig_fail(-EINVAL, "a list needs a connection and where to store it");
        r = rig_check(rig);
        if (r < 0)
                return r;
        for (;; n++) {
                struct rig_adapter *grown = reallocarray(adapters, n + 1, sizeof(*grown));

                if (!grown)
                        return rig_fail_memory();
                adapters = grown;
                memset(&adapters[n], 0, sizeof(adapters[n]));
                r = ask_adapter(rig, n, &adapters[n]);
                if (r == -ENOENT)
                        break;
                if (r < 0)
                        return r;
                if (n == UINT16_MAX)
                        return rig_fail(-EPROTO, "rigd's list of adapters does not end");
        }
        *ret_adapters = RIG_STEAL(adapters);
        return (int)n;
}

RIG_API void rig_adapter_list_free(struct rig_adapter *adapters)
{
        free(adapters);
}
