/* SPDX-License-Identifier: ISC */
/*
 * The host driver: the cores of the client's own process. rigd runs none of its code (S2): it says how far
 * the client's work may go, and the client says how far it has come. Which order the parts of a run take, on
 * which workers, is librig-client's; it owes this driver what a driver owes the core (driver.h).
 *
 * Three values tell the whole state: reached <= ready <= handed. hand_over() moves `handed`; commit() tells
 * the client about all of it at once, so that consecutive runs cost one store to the client's word;
 * client_done() moves `reached`, which no message can move back or beyond `ready`.
 *
 * There is no room to run out of: the client keeps its own list of what it submitted, and rigd bounds its
 * runs in flight. There is no hang bound (L5): the client may take as long as it wants, and only its own
 * work waits. Once the client died nothing of the device runs, which is all that stop() has to see to.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/drivers/drivers.h"

struct host_device {
        uint64_t handed;  /* the last value handed over */
        uint64_t ready;   /* the last value the client may run */
        uint64_t reached; /* the last value the client completed */
};

static int host_device_open(
        struct rig_driver_device *device, const char *instance, const char *options, struct rig_error *e)
{
        struct utsname machine;

        if (options[0])
                return rig_error_set(e, -EINVAL, "a host device has no options, and so no \"%s\"", options);
        if (uname(&machine) < 0)
                return rig_error_set(e, -errno, "uname failed: %s", strerror(errno));
        device->drv = calloc(1, sizeof(struct host_device));
        if (!device->drv)
                return rig_error_set(e, -ENOMEM, "no memory for a device");
        device->facts = (struct rig_facts){
                .flags = RIG_DEVICE_HOST_ADDRESSED | RIG_DEVICE_NAMES_HOST | RIG_DEVICE_CLIENT_CODE,
                .n_queues = 2,
                .queues = {RIG_RUNS_COPY | RIG_RUNS_FILL | RIG_RUNS_LAUNCH,
                        RIG_RUNS_COPY | RIG_RUNS_FILL | RIG_RUNS_LAUNCH},
                .completion = RIG_COMPLETION_HOST,
        };
        snprintf(device->facts.arch, sizeof(device->facts.arch), "%.63s", machine.machine);
        return 0;
}

static void host_device_close(struct rig_driver_device *device)
{
        free(device->drv);
        device->drv = NULL;
}

/* The client died or its device is lost: either way it is told no more values, and nothing of it runs in
 * rigd. */
static int host_stop(struct rig_driver_device *device)
{
        return 0;
}

static int host_hand_over(
        struct rig_driver_device *device, const struct rig_submission *submission, struct rig_error *e)
{
        struct host_device *host = device->drv;

        host->handed = submission->value;
        return 0;
}

static void host_commit(struct rig_driver_device *device)
{
        struct host_device *host = device->drv;

        if (host->ready == host->handed)
                return;
        host->ready = host->handed;
        rig_device_ready(device, host->ready);
}

static int host_client_done(struct rig_driver_device *device, uint64_t value, int error, const char *text)
{
        struct host_device *host = device->drv;

        if (value <= host->reached || value > host->ready)
                return -EINVAL;
        if (error)
                rig_device_run_failed(device, value, error, "%s", text && text[0] ? text : strerror(-error));
        host->reached = value;
        return 0;
}

static int host_poll(struct rig_driver_device *device, uint64_t *ret_reached, struct rig_error *e)
{
        const struct host_device *host = device->drv;

        *ret_reached = host->reached;
        return 0;
}

/* Its memory is as any host memory. Where the client maps it, only the client knows: it has no address here.
 */
static int host_region_alloc(struct rig_driver_device *device, uint64_t bytes, enum rig_memory_kind kind,
        struct rig_region *ret_region, struct rig_error *e)
{
        int r = rig_region_alloc_host(bytes, ret_region, e);

        if (r == 0)
                ret_region->address = 0;
        return r;
}

static void host_region_free(struct rig_driver_adapter *adapter, struct rig_region *region)
{
        rig_region_free_host(region);
}

/* What the kernel calls the processor, for people; "" where it does not say. */
static void processor_model(char *ret, size_t room)
{
        char line[256], model[128];
        FILE *f = fopen("/proc/cpuinfo", "re");

        ret[0] = 0;
        while (f && fgets(line, sizeof(line), f)) {
                if (sscanf(line, "model name : %127[^\n]", model) == 1) {
                        snprintf(ret, room, ", %s", model);
                        break;
                }
        }
        if (f)
                fclose(f);
}

static int host_discover(
        void (*found)(const struct rig_driver_adapter *adapter, void *userdata), void *userdata)
{
        uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        struct rig_driver_adapter adapter = {
                .driver = &rig_driver_host,
                .name = "host",
                .budget_bytes = pages / 2 * page_bytes, /* half of the machine's memory */
        };
        char model[160];

        processor_model(model, sizeof(model));
        snprintf(adapter.about, sizeof(adapter.about), "the client's own cores, %ld%s",
                sysconf(_SC_NPROCESSORS_ONLN), model);
        found(&adapter, userdata);
        return 0;
}

const struct rig_driver rig_driver_host = {
        .name = "host",
        .client_done = host_client_done,
        .commit = host_commit,
        .device_close = host_device_close,
        .device_open = host_device_open,
        .discover = host_discover,
        .hand_over = host_hand_over,
        .poll = host_poll,
        .region_alloc = host_region_alloc,
        .region_free = host_region_free,
        .stop = host_stop,
};
