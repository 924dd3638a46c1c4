/* SPDX-License-Identifier: ISC */
/*
 * The test client (wire.h): requests that tests make all the time. Those that do not say `ask` wait for the
 * answer, which must be the good one.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/wire.h"

static void done(struct wire *w, uint32_t serial)
{
        struct heard h;

        wire_answer(w, serial, RIG_MSG_DONE, &h);
        heard_done(&h);
}

void wire_sync(struct wire *w)
{
        struct rig_msg_sync m = {.serial = wire_serial(w)};

        wire_send(w, RIG_MSG_SYNC, &m);
        done(w, m.serial);
}

void wire_device(struct wire *w, uint32_t device, const char *name)
{
        struct rig_msg_device_open m = {
                .serial = wire_serial(w), .device = device, .name = rig_text(name, RIG_PROTO_NAME_MAX)};
        struct heard h;

        wire_send(w, RIG_MSG_DEVICE_OPEN, &m);
        wire_answer(w, m.serial, RIG_MSG_DEVICE_DONE, &h);
}

void wire_close_device(struct wire *w, uint32_t device)
{
        struct rig_msg_device_close m = {.device = device};

        wire_send(w, RIG_MSG_DEVICE_CLOSE, &m);
}

/* ---------------------------------------------------------------- memory */

int sealed_memfd(uint64_t bytes, int seals)
{
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
        if (seals)
                cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

void *map_fd(int fd, uint64_t bytes)
{
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        cr_assert_neq(p, MAP_FAILED, "%m");
        return p;
}

uint32_t wire_ask_buffer(struct wire *w, uint32_t buffer, uint32_t device, uint64_t bytes)
{
        struct rig_msg_buffer_new m = {
                .serial = wire_serial(w), .buffer = buffer, .device = device, .bytes = bytes};

        wire_send(w, RIG_MSG_BUFFER_NEW, &m);
        return m.serial;
}

void *wire_buffer(struct wire *w, uint32_t buffer, uint32_t device, uint64_t bytes)
{
        struct heard h;
        void *p = NULL;

        wire_answer(w, wire_ask_buffer(w, buffer, device, bytes), RIG_MSG_BUFFER_DONE, &h);
        cr_assert_eq(h.msg.buffer_done.bytes, bytes);
        if (h.msg.buffer_done.has_fd)
                p = map_fd(h.fds.fd[h.msg.buffer_done.fd], h.msg.buffer_done.memory);
        heard_done(&h);
        return p;
}

uint32_t wire_ask_adopt(
        struct wire *w, uint32_t buffer, uint32_t device, int fd, uint64_t offset, uint64_t bytes)
{
        struct rig_msg_buffer_adopt m = {.serial = wire_serial(w),
                .buffer = buffer,
                .device = device,
                .offset = offset,
                .bytes = bytes};

        wire_send_fds(w, RIG_MSG_BUFFER_ADOPT, &m, &fd, 1);
        return m.serial;
}

void wire_adopt(struct wire *w, uint32_t buffer, uint32_t device, int fd, uint64_t offset, uint64_t bytes)
{
        struct heard h;

        wire_answer(w, wire_ask_adopt(w, buffer, device, fd, offset, bytes), RIG_MSG_BUFFER_DONE, &h);
        heard_done(&h);
}

int wire_export(struct wire *w, uint32_t buffer)
{
        struct rig_msg_buffer_export m = {.serial = wire_serial(w), .buffer = buffer};
        struct heard h;
        int fd;

        wire_send(w, RIG_MSG_BUFFER_EXPORT, &m);
        wire_answer(w, m.serial, RIG_MSG_BUFFER_DONE, &h);
        cr_assert(h.msg.buffer_done.has_fd);
        cr_assert_eq(h.msg.buffer_done.flags, 1u);
        fd = rig_packet_fds_take(&h.fds, h.msg.buffer_done.fd);
        cr_assert_geq(fd, 0);
        heard_done(&h);
        return fd;
}

uint32_t wire_ask_import(struct wire *w, uint32_t buffer, uint32_t device, int fd)
{
        struct rig_msg_buffer_import m = {.serial = wire_serial(w), .buffer = buffer, .device = device};

        wire_send_fds(w, RIG_MSG_BUFFER_IMPORT, &m, &fd, 1);
        return m.serial;
}

void wire_import(struct wire *w, uint32_t buffer, uint32_t device, int fd)
{
        struct heard h;

        wire_answer(w, wire_ask_import(w, buffer, device, fd), RIG_MSG_BUFFER_DONE, &h);
        heard_done(&h);
}

void wire_drop_buffer(struct wire *w, uint32_t buffer)
{
        struct rig_msg_buffer_drop m = {.buffer = buffer};

        wire_send(w, RIG_MSG_BUFFER_DROP, &m);
}

/* ---------------------------------------------------------------- work */

uint32_t wire_ask_work(struct wire *w, struct rig_msg_work_new *msg)
{
        msg->serial = wire_serial(w);
        wire_send(w, RIG_MSG_WORK_NEW, msg);
        return msg->serial;
}

void wire_fill(struct wire *w, uint32_t work, uint32_t device, uint32_t pattern)
{
        static struct rig_msg_work_new m;

        m = (struct rig_msg_work_new){.work = work, .device = device, .n_slots = 1, .n_parts = 1};
        m.slots[0].access = 2;
        m.parts[0] =
                (struct rig_msg_part){.kind = 2, .has_dst = true, .has_pattern = true, .pattern = pattern};
        done(w, wire_ask_work(w, &m));
}

void wire_copy(struct wire *w, uint32_t work, uint32_t device)
{
        static struct rig_msg_work_new m;

        m = (struct rig_msg_work_new){.work = work, .device = device, .n_slots = 2, .n_parts = 1};
        m.slots[0].access = 2;
        m.slots[1].access = 1;
        m.parts[0] = (struct rig_msg_part){.kind = 1, .has_dst = true, .has_src = true, .src.slot = 1};
        done(w, wire_ask_work(w, &m));
}

void wire_drop_work(struct wire *w, uint32_t work)
{
        struct rig_msg_work_drop m = {.work = work};

        wire_send(w, RIG_MSG_WORK_DROP, &m);
}

void wire_run_at(struct wire *w, uint64_t time, uint32_t work, const uint32_t *buffers, uint32_t n)
{
        struct rig_msg_run m = {.work = work, .n_buffers = n, .has_time = true, .time = time};

        cr_assert_leq(n, RIG_PROTO_SLOTS_MAX);
        memcpy(m.buffers, buffers, n * sizeof(buffers[0]));
        wire_send(w, RIG_MSG_RUN, &m);
}

void wire_run(struct wire *w, uint32_t work, ...)
{
        uint64_t now = rig_now_nsec();
        uint32_t buffers[RIG_PROTO_SLOTS_MAX], n = 0, b;
        va_list ap;

        va_start(ap, work);
        while ((b = va_arg(ap, uint32_t)) && n < RIG_PROTO_SLOTS_MAX)
                buffers[n++] = b;
        va_end(ap);
        wire_run_at(w, now, work, buffers, n);
}

/* ---------------------------------------------------------------- waiting */

uint32_t wire_ask_wait(struct wire *w, uint32_t buffer, uint32_t access)
{
        struct rig_msg_buffer_wait m = {
                .serial = wire_serial(w), .buffer = buffer, .access = access, .time = rig_now_nsec()};

        wire_send(w, RIG_MSG_BUFFER_WAIT, &m);
        return m.serial;
}

void wire_wait(struct wire *w, uint32_t buffer, uint32_t access)
{
        done(w, wire_ask_wait(w, buffer, access));
}

void wire_value(struct wire *w, uint32_t device, uint64_t value)
{
        struct rig_msg_notify m = {.serial = wire_serial(w), .device = device, .value = value};
        struct heard h;

        wire_send(w, RIG_MSG_NOTIFY, &m);
        done(w, m.serial);
        do {
                wire_event(w, RIG_MSG_REACHED, &h);
        } while (h.msg.reached.device != device || h.msg.reached.value < value);
}
