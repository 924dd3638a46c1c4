/* SPDX-License-Identifier: ISC */
/*
 * Loss: a process dies in the middle of its own work on a memory it shares. Its device is lost, and so is
 * the memory it was writing: whoever uses that is told. All the rest goes on. Both need the same rigd: set
 * RIG_ADDRESS.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int running[2]; /* a pipe: the child's work says that it has begun */

static void die_halfway(const struct rig_group *group, const void *data)
{
        if (write(running[1], "r", 1) == 1)
                raise(SIGKILL);
}

static void child(int memory)
{
        struct rig_launch launch = RIG_LAUNCH_INIT;
        const uint32_t access = RIG_WRITE;
        struct rig_device *host;
        struct rig_buffer *shared;
        struct rig_point done;
        struct rig *rig;

        check(rig_connect(NULL, &rig)); /* a connection of its own */
        check(rig_device_open(rig, "host", &host));
        check(rig_buffer_import(host, memory, &shared));
        launch.function = die_halfway;
        check(rig_launch_once(host, &launch, &shared, &access, 1, &done));
        rig_point_wait(&done, RIG_INFINITY);
        exit(1); /* not reached: the work above ends this process */
}

int main(void)
{
        struct rig *rig;
        struct rig_device *m;
        struct rig_buffer *shared, *own;
        char byte, back[4] = {0};
        int memory, status, r;
        pid_t pid;

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "memory:M,async", &m));
        check(rig_buffer_new(m, 4096, RIG_MEMORY_DEVICE, &shared));
        check(rig_buffer_new(m, 4096, RIG_MEMORY_DEVICE, &own));
        check(rig_buffer_export(shared, &memory));
        if (pipe(running) < 0)
                return 1;
        pid = fork(); /* the child inherits the memory's descriptor */
        if (pid == 0)
                child(memory);
        close(running[1]);

        /* Once the child's work runs, this follows it: it waits for the child, and hears of its death. */
        if (read(running[0], &byte, 1) != 1)
                return 1;
        r = rig_buffer_wait(shared, RIG_READ, RIG_INFINITY);
        printf("the shared memory: %s\n", r < 0 ? rig_strerror(r) : "as if nothing had happened");
        waitpid(pid, &status, 0);
        printf("the child: %s\n", WIFSIGNALED(status) ? "killed" : "ended");

        /* This process lost no device, and its other memory is as it was. */
        printf("the device here: %s\n", rig_device_lost(m) ? "lost" : "goes on");
        check(rig_buffer_write(own, 0, "yes", 3));
        check(rig_buffer_read(own, 0, back, 3));
        printf("own memory works: %s\n", back);

        rig_buffer_unref(own);
        rig_buffer_unref(shared);
        rig_device_unref(m);
        rig_unref(rig);
        return r != -ENODEV;
}
