/* SPDX-License-Identifier: ISC */
/*
 * Waiting.
 *
 * With words, a wait polls the device's word for a moment and then sleeps in a futex on it. Where there is a
 * ring it says so in the ring's page first; where there is none rigd wakes whoever may sleep whenever it
 * moves a word. Without words, events of every value come by themselves, and it sleeps on the socket.
 *
 * Every sleep is short enough that a rigd that is gone is noticed: a nap on a word ends after 50 ms with a
 * look at the socket, and the socket itself tells.
 *
 * A value that is reached says nothing about whether its run succeeded: failures are counted in the word
 * before their value is passed, so that a wait knows how many events it must have read before it may return
 * 0.
 */
#include "libclient/wait.h"

#include "base/futex.h"
#include "libclient/wire.h"
#include "protocol/ring.h"

#define NAP_USEC   (50 * RIG_USEC_PER_MSEC)
#define SPIN_CHECK 32 /* polls between looks at the clock */

struct wait {
        struct rig_device *device;
        uint64_t value;
};

static bool settled(void *data)
{
        const struct wait *w = data;

        return rig_device_now(w->device) >= w->value || rig_device_lost_now(w->device);
}

static bool spin(struct wait *w, uint64_t deadline_usec)
{
        uint64_t spin_usec = w->device->rig->spin_usec, until = 0;

        for (uint32_t i = 1;; i++) {
                if (settled(w))
                        return true;
                rig_cpu_relax();
                if (i % SPIN_CHECK != 0)
                        continue;
                if (until == 0)
                        until = RIG_MIN(rig_now_usec() + spin_usec, deadline_usec);
                else if (rig_now_usec() >= until)
                        return false;
        }
}

void rig_nap(struct rig *rig, const _Atomic uint64_t *word, uint64_t seen, uint64_t at_most_usec)
{
        int r = 0;

        /* seq_cst: said before the last look; rigd moves the word before it looks who sleeps */
        if (rig->ring)
                atomic_fetch_add_explicit(&rig->ring->sleepers, 1, memory_order_seq_cst);
        if (atomic_load_explicit(word, memory_order_seq_cst) == seen)
                r = rig_futex_wait(
                        rig_word_low_const(word), (uint32_t)seen, RIG_MIN(at_most_usec, NAP_USEC));
        if (rig->ring)
                atomic_fetch_sub_explicit(&rig->ring->sleepers, 1, memory_order_relaxed);
        if (r == -ETIMEDOUT) {
                rig_lock_take(&rig->lock);
                rig_wire_drain(rig);
                rig_lock_drop(&rig->lock);
        }
}

static int await_word(struct wait *w, uint64_t deadline_usec)
{
        struct rig *rig = w->device->rig;

        for (;;) {
                uint64_t seen = rig_device_now(w->device), left = RIG_USEC_INFINITY, now;
                int r;

                if (settled(w))
                        return 0;
                r = rig_check(rig);
                if (r < 0)
                        return r;
                if (deadline_usec != RIG_USEC_INFINITY) {
                        now = rig_now_usec();
                        if (now >= deadline_usec)
                                return -ETIMEDOUT;
                        left = deadline_usec - now;
                }
                rig_nap(rig, &w->device->word->signaled, seen, left);
        }
}

static int await_socket(struct wait *w, uint64_t deadline_usec)
{
        struct rig *rig = w->device->rig;
        int r;

        rig_lock_take(&rig->lock);
        rig_wire_drain(rig);
        r = rig_wire_wait(rig, settled, w, deadline_usec, rig->spin_usec);
        rig_lock_drop(&rig->lock);
        return r;
}

int rig_await(struct rig_device *device, uint64_t value, uint64_t deadline_usec)
{
        struct wait w = {.device = device, .value = value};
        int r = 0;

        if (rig_device_now(device) >= value)
                return 0;
        if (!device->word)
                r = await_socket(&w, deadline_usec);
        else if (!spin(&w, deadline_usec))
                r = await_word(&w, deadline_usec);
        if (r == -ETIMEDOUT)
                return rig_fail(r, "%s did not reach %llu in the time given", device->name,
                        (unsigned long long)value);
        /* A device may be lost after it reached the value. */
        if (r == 0 && rig_device_now(device) < value)
                return rig_device_fail_lost(device);
        return r;
}

RIG_API int rig_wait(struct rig_device *device, uint64_t value, uint64_t timeout_usec)
{
        struct rig *rig;
        int r;

        if (!device)
                return rig_fail(-EINVAL, "no device to wait for");
        rig = device->rig;
        r = rig_check(rig);
        if (r < 0)
                return r;
        if (value > rig_device_submitted(device))
                return rig_fail(-EINVAL, "%llu is not submitted to %s, whose last value is %llu",
                        (unsigned long long)value, device->name,
                        (unsigned long long)rig_device_submitted(device));
        if (rig_device_now(device) < value) {
                r = rig_await(device, value, rig_deadline_usec(timeout_usec));
                if (r < 0)
                        return r;
        }
        if (rig_likely(rig_device_faultless(device)))
                return 0;
        rig_lock_take(&rig->lock);
        r = rig_device_catch_up(device);
        if (r == 0)
                r = rig_device_tell_failure(device, 0, value);
        rig_lock_drop(&rig->lock);
        return r;
}

RIG_API int rig_point_wait(const struct rig_point *point, uint64_t timeout_usec)
{
        if (!point)
                return rig_fail(-EINVAL, "no point to wait for");
        return rig_wait(point->device, point->value, timeout_usec);
}
