/* SPDX-License-Identifier: ISC */
/*
 * Puppets (puppet.h): a command is a struct with at most one descriptor, and is answered by a struct. A
 * puppet whose own expectations fail dies of it, and the test fails because no answer comes.
 */
#include "tests/e2e/puppet.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum op { DEVICE, ADOPT, FILL, COPY, SYNC, NUDGE, RUN, HOST_DONE, ASK_WAIT, ANSWER, SIGNALED, STOP };

struct command {
        enum op op;
        uint32_t a, b, c;
        uint64_t v;
        char name[64];
};

struct reply {
        uint64_t v;
        char text[RIG_PROTO_TEXT_MAX + 1];
};

/* ---------------------------------------------------------------- the puppet's side */

static void run(struct wire *w, const struct command *c)
{
        uint64_t time = c->v ? 0 : rig_now_nsec();
        uint32_t buffers[] = {c->b, c->c};

        wire_run_at(w, time, c->a, buffers, c->c ? 2 : 1);
}

static void answer(struct wire *w, uint32_t serial, struct reply *reply)
{
        struct heard h;

        if (wire_any_answer(w, serial, &h) == RIG_MSG_FAILED) {
                reply->v = h.msg.failed.error;
                rig_text_copy(h.msg.failed.text, reply->text, sizeof(reply->text));
        }
        heard_done(&h);
}

static uint64_t signaled(struct wire *w, uint32_t device)
{
        wire_sync(w);
        if (w->words)
                return atomic_load(&w->words->word[device - 1].signaled);
        for (size_t i = 0; i < w->n_kept; i++)
                if (w->kept[i]->type == RIG_MSG_REACHED && w->kept[i]->msg.reached.device == device)
                        return w->kept[i]->msg.reached.value;
        return 0;
}

static void obey(struct wire *w, const struct command *c, int fd, struct reply *reply)
{
        static uint32_t asked;

        switch (c->op) {
        case DEVICE:
                wire_device(w, c->a, c->name);
                break;
        case ADOPT:
                wire_adopt(w, c->a, c->b, fd, 0, c->v);
                break;
        case FILL:
                wire_fill(w, c->a, c->b, c->c);
                break;
        case COPY:
                wire_copy(w, c->a, c->b);
                break;
        case SYNC:
                wire_sync(w);
                break;
        case NUDGE:
                wire_send(w, RIG_MSG_SYNC, &(struct rig_msg_sync){.serial = wire_serial(w)});
                break;
        case RUN:
                run(w, c);
                break;
        case HOST_DONE:
                wire_send(w, RIG_MSG_HOST_DONE, &(struct rig_msg_host_done){.device = c->a, .value = c->v});
                break;
        case ASK_WAIT:
                asked = wire_ask_wait(w, c->a, c->b);
                break;
        case ANSWER:
                answer(w, asked, reply);
                break;
        case SIGNALED:
                reply->v = signaled(w, c->a);
                break;
        case STOP:
                break;
        }
}

static void _noreturn_ live(int control, const struct rigd *rigd, enum wire_transport transport)
{
        struct command c = {.op = STOP};
        struct wire w;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        wire_open(&w, rigd, transport);
        do {
                struct rig_packet_fds fds = RIG_PACKET_FDS_NULL;
                struct reply reply = {0};

                if (rig_packet_recv(control, &c, sizeof(c), 0, &fds) != (ssize_t)sizeof(c))
                        _exit(1);
                obey(&w, &c, fds.n ? fds.fd[0] : -EBADF, &reply);
                rig_packet_fds_close(&fds);
                if (c.op == STOP)
                        wire_close(&w);
                if (rig_packet_send(control, &reply, sizeof(reply), NULL, 0, 0) < 0)
                        _exit(1);
        } while (c.op != STOP);
        _exit(0);
}

/* ---------------------------------------------------------------- the test's side */

void puppet_start(struct puppet *p, const struct rigd *rigd, enum wire_transport transport)
{
        int s[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        fflush(NULL);
        p->pid = fork();
        cr_assert_geq(p->pid, 0);
        if (p->pid == 0) {
                close(s[0]);
                live(s[1], rigd, transport);
        }
        close(s[1]);
        p->fd = s[0];
}

static struct reply order(struct puppet *p, const struct command *c, const int *fd)
{
        struct reply reply;

        cr_assert_eq(rig_packet_send(p->fd, c, sizeof(*c), fd, fd != NULL, 0), 0);
        cr_assert(wait_for(p->fd, POLLIN), "a puppet does not answer");
        cr_assert_eq(rig_packet_recv(p->fd, &reply, sizeof(reply), 0, NULL), (ssize_t)sizeof(reply),
                "a puppet died");
        return reply;
}

static void reap(struct puppet *p, bool killed)
{
        int status;

        cr_assert_eq(waitpid(p->pid, &status, 0), p->pid);
        cr_assert(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        p->fd = rig_close(p->fd);
}

void puppet_stop(struct puppet *p)
{
        order(p, &(struct command){.op = STOP}, NULL);
        reap(p, false);
}

void puppet_kill(struct puppet *p)
{
        kill(p->pid, SIGKILL);
        reap(p, true);
}

void puppet_device(struct puppet *p, uint32_t device, const char *name)
{
        struct command c = {.op = DEVICE, .a = device};

        snprintf(c.name, sizeof(c.name), "%s", name);
        order(p, &c, NULL);
}

void puppet_adopt(struct puppet *p, uint32_t buffer, uint32_t device, int fd, uint64_t bytes)
{
        order(p, &(struct command){.op = ADOPT, .a = buffer, .b = device, .v = bytes}, &fd);
}

void puppet_fill(struct puppet *p, uint32_t work, uint32_t device, uint32_t pattern)
{
        order(p, &(struct command){.op = FILL, .a = work, .b = device, .c = pattern}, NULL);
}

void puppet_copy(struct puppet *p, uint32_t work, uint32_t device)
{
        order(p, &(struct command){.op = COPY, .a = work, .b = device}, NULL);
}

void puppet_sync(struct puppet *p)
{
        order(p, &(struct command){.op = SYNC}, NULL);
}

void puppet_nudge(struct puppet *p)
{
        order(p, &(struct command){.op = NUDGE}, NULL);
}

void puppet_run(struct puppet *p, uint32_t work, uint32_t dst, uint32_t src, bool lie)
{
        order(p, &(struct command){.op = RUN, .a = work, .b = dst, .c = src, .v = lie}, NULL);
}

void puppet_host_done(struct puppet *p, uint32_t device, uint64_t value)
{
        order(p, &(struct command){.op = HOST_DONE, .a = device, .v = value}, NULL);
}

void puppet_ask_wait(struct puppet *p, uint32_t buffer, uint32_t access)
{
        order(p, &(struct command){.op = ASK_WAIT, .a = buffer, .b = access}, NULL);
}

int puppet_answer(struct puppet *p, char *text, size_t room)
{
        struct reply reply = order(p, &(struct command){.op = ANSWER}, NULL);

        if (text)
                snprintf(text, room, "%s", reply.text);
        return (int)reply.v;
}

int puppet_wait(struct puppet *p, uint32_t buffer, uint32_t access, char *text, size_t room)
{
        puppet_ask_wait(p, buffer, access);
        return puppet_answer(p, text, room);
}

uint64_t puppet_signaled(struct puppet *p, uint32_t device)
{
        return order(p, &(struct command){.op = SIGNALED, .a = device}, NULL).v;
}
