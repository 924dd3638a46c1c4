/* SPDX-License-Identifier: ISC */
/*
 * A buffer of two processes: one exports its memory as a descriptor, the other imports it, and from then on
 * the work of both is one order. They tell each other "your turn" as soon as they have submitted, and
 * neither waits for work, its own or the other's. Both need the same rigd: set RIG_ADDRESS.
 */
#include "check.h"
#include "descriptor.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 1000

/* params[0] is the counter's address; params[1] is whose turn it is, so the sum tells whether one was lost.
 */
static void take_turn(const struct rig_group *group, const void *data)
{
        const uint64_t *params = data;
        uint64_t *counter = (uint64_t *)(uintptr_t)params[0];

        if (*counter % 2 == params[1])
                ++*counter;
}

static void submit_turn(struct rig_device *host, struct rig_buffer *counter, uint64_t parity)
{
        const struct rig_patch patch = {.at = 0, .slot = 0};
        const uint32_t access = RIG_READ_WRITE;
        struct rig_launch launch = RIG_LAUNCH_INIT;
        uint64_t params[] = {0, parity};

        launch.function = take_turn;
        launch.params = params;
        launch.params_bytes = sizeof(params);
        launch.patches = &patch;
        launch.n_patches = 1;
        check(rig_launch_once(host, &launch, &counter, &access, 1, NULL));
}

/* Each process: one connection, one host device of its own, and turns passed as single bytes. */
static int play(int sock, int first)
{
        struct rig *rig;
        struct rig_device *host;
        struct rig_buffer *counter;
        uint64_t sum = 0;
        int i, fd = -1;
        char turn = 't';

        check(rig_connect(NULL, &rig));
        check(rig_device_open(rig, "host", &host));
        if (first) {
                check(rig_buffer_new(host, sizeof(uint64_t), RIG_MEMORY_DEVICE, &counter));
                check(rig_buffer_export(counter, &fd));
                if (descriptor_send(sock, fd) < 0)
                        return 1;
        } else {
                fd = descriptor_receive(sock);
                check(rig_buffer_import(host, fd, &counter));
        }
        close(fd); /* the buffer holds the memory */
        for (i = 0; i < TURNS; i++) {
                if ((i > 0 || !first) && read(sock, &turn, 1) != 1)
                        return 1;
                submit_turn(host, counter, first ? 0 : 1);
                if (write(sock, &turn, 1) != 1)
                        return 1;
        }
        if (first) {
                if (read(sock, &turn, 1) != 1)
                        return 1;
                check(rig_buffer_read(counter, 0, &sum, sizeof(sum)));
                printf("two processes took %d turns each; the counter says %" PRIu64 "\n", TURNS, sum);
        }
        rig_buffer_unref(counter);
        rig_device_unref(host);
        rig_unref(rig);
        return first && sum != 2 * TURNS;
}

int main(void)
{
        int sock[2], status = 1, r;
        pid_t child;

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock) < 0)
                return 1;
        child = fork(); /* before either connects: a connection belongs to one process */
        if (child == 0) {
                close(sock[0]);
                exit(play(sock[1], 0));
        }
        close(sock[1]);
        r = play(sock[0], 1);
        waitpid(child, &status, 0);
        return r || status;
}
