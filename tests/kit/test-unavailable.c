/* SPDX-License-Identifier: ISC */
/*
 * A machine whose io_uring is missing or refused: the disk adapter is listed, says why it cannot be opened
 * and which setting helps, and a device is refused with the same sentence. A system call filter of this
 * process plays such a machine, and so is a program of its own: test-unavailable EPERM|ENOSYS.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "daemon/drivers/drivers.h"

/* The core's services, which a device that does not open has no use for. */
void rig_device_kick(struct rig_driver_device *device)
{
        abort();
}

void rig_device_run_failed(struct rig_driver_device *device, uint64_t value, int error, const char *fmt, ...)
{
        abort();
}

void rig_device_ran(struct rig_driver_device *device)
{
        abort();
}

void rig_device_ready(struct rig_driver_device *device, uint64_t value)
{
        abort();
}

void rig_adapter_defer(struct rig_driver_adapter *adapter, struct rig_slow_job *job)
{
        abort();
}

/* From now on io_uring_setup() fails with `error` in this process. */
static bool filter_io_uring(int error)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = RIG_ARRAY_SIZE(code), .filter = code};

        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void found(const struct rig_driver_adapter *adapter, void *userdata)
{
        *(struct rig_driver_adapter *)userdata = *adapter;
}

int main(int argc, char **argv)
{
        bool missing = argc == 2 && strcmp(argv[1], "ENOSYS") == 0;
        const char *helps = missing ? "CONFIG_IO_URING" : "kernel.io_uring_disabled";
        struct rig_driver_adapter adapter = {0};
        struct rig_driver_device device = {.adapter = &adapter};
        struct rig_error e = RIG_ERROR_NULL;
        int error = missing ? ENOSYS : EPERM, r;

        if (!filter_io_uring(error)) {
                printf("skipped: this machine lets no process filter its system calls: %s\n",
                        strerror(errno));
                return 77;
        }
        if (rig_driver_disk.discover(found, &adapter) != 0 || strcmp(adapter.name, "disk") != 0) {
                fprintf(stderr, "the adapter is not listed\n");
                return 1;
        }
        if (!strstr(adapter.unavailable, helps)) {
                fprintf(stderr, "\"%s\" does not name %s\n", adapter.unavailable, helps);
                return 1;
        }
        r = rig_driver_disk.device_open(&device, "", "", &e);
        if (r != -error || !strstr(e.text, helps)) {
                fprintf(stderr, "opening returned %d: %s\n", r, e.text);
                return 1;
        }
        return 0;
}
