/* SPDX-License-Identifier: ISC */
/*
 * Law O4: rigd accepts runs in the order of causality, whichever of its clients it looks at first.
 *
 * The schedule. rigd is stopped. A publishes a run that writes a shared memory; the call returns, and A
 * tells B; B publishes a run that copies that memory. All of it waits for rigd when it goes on, and it looks
 * at B first, because something came from B before. A naive reader takes what B has, then what A has,
 * accepts the copy before the write, and B gets the bytes from before it was told of the write.
 *
 * That the schedule is really so is part of the test: the same one is played with B lying about the time of
 * its call, so that rigd thinks nothing came before it and does what a naive reader does. B must then get
 * the old bytes. Were the clients looked at in another order, that play would fail.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/puppet.h"

#define BYTES 4096u

static struct rigd rigd;

static void set_up(void)
{
        rigd_start(&rigd, NULL);
}

static void tear_down(void)
{
        rigd_stop(&rigd);
}

TestSuite(order, .init = set_up, .fini = tear_down, .timeout = 300);

#define MEMORIES 4
static int memory_fd[MEMORIES];
static uint8_t *memory[MEMORIES];

static void make_memories(void)
{
        for (unsigned i = 0; i < MEMORIES; i++) {
                memory_fd[i] = sealed_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_SEAL);
                memory[i] = map_fd(memory_fd[i], BYTES);
        }
}

static void drop_memories(void)
{
        for (unsigned i = 0; i < MEMORIES; i++) {
                munmap(memory[i], BYTES);
                close(memory_fd[i]);
        }
}

/* Device 1, buffers 1 to MEMORIES over the memories, works 1 to 255 as asked for. */
static void prepare(struct puppet *p, enum wire_transport transport)
{
        puppet_start(p, &rigd, transport);
        puppet_device(p, 1, "memory:M");
        for (unsigned i = 0; i < MEMORIES; i++)
                puppet_adopt(p, i + 1, 1, memory_fd[i], BYTES);
        puppet_copy(p, 1, 1);
        puppet_sync(p);
}

/* ---------------------------------------------------------------- two processes */

/* Plays the schedule. Return: the first byte that B got. */
static uint8_t play_two(
        enum wire_transport a_speaks, enum wire_transport b_speaks, bool b_is_first, bool lie)
{
        struct puppet a, b;
        uint8_t got;

        make_memories();
        prepare(&a, a_speaks);
        prepare(&b, b_speaks);
        puppet_fill(&a, 2, 1, 0xaaaaaaaa);
        puppet_sync(&a);
        puppet_sync(&b);
        rigd_pause(&rigd);
        puppet_nudge(b_is_first ? &b : &a);
        puppet_run(&a, 2, 1, 0, false);
        puppet_run(&b, 1, 2, 1, lie); /* A has told the test, and the test tells B */
        rigd_resume(&rigd);
        cr_assert_eq(puppet_wait(&b, 2, 1, NULL, 0), 0);
        got = memory[1][0];
        for (unsigned i = 0; i < BYTES; i++)
                cr_assert_eq(memory[1][i], got);
        cr_assert_eq(puppet_wait(&a, 1, 1, NULL, 0), 0);
        cr_assert_eq(memory[0][0], 0xaa);
        puppet_stop(&a);
        puppet_stop(&b);
        drop_memories();
        return got;
}

static void two(enum wire_transport a_speaks, enum wire_transport b_speaks)
{
        cr_assert_eq(
                play_two(a_speaks, b_speaks, true, true), 0, "the schedule is not the one that is hard");
        cr_assert_eq(play_two(a_speaks, b_speaks, true, false), 0xaa,
                "what B was told of came after what it did");
        cr_assert_eq(play_two(a_speaks, b_speaks, false, false), 0xaa);
}

Test(order, O4_two_processes_with_rings)
{
        two(WIRE_RING, WIRE_RING);
}

Test(order, O4_two_processes_with_sockets)
{
        two(WIRE_SOCKET, WIRE_SOCKET);
}

Test(order, O4_a_ring_and_a_socket)
{
        two(WIRE_RING, WIRE_SOCKET);
        two(WIRE_SOCKET, WIRE_RING);
}

Test(order, O4_words_and_a_ring)
{
        two(WIRE_WORDS, WIRE_RING);
        two(WIRE_RING, WIRE_WORDS);
}

/* The write is the last of more runs than rigd takes from a client in a turn. */
static void behind_many(enum wire_transport transport)
{
        struct puppet a, b;

        make_memories();
        prepare(&a, transport);
        prepare(&b, transport);
        puppet_fill(&a, 2, 1, 0xaaaaaaaa);
        puppet_fill(&a, 3, 1, 0x33333333);
        puppet_sync(&a);
        puppet_sync(&b);
        rigd_pause(&rigd);
        puppet_nudge(&b);
        for (unsigned i = 0; i < (transport == WIRE_RING ? 2000 : 150); i++)
                puppet_run(&a, 3, 1, 0, false);
        puppet_run(&a, 2, 1, 0, false);
        puppet_run(&b, 1, 2, 1, false);
        rigd_resume(&rigd);
        cr_assert_eq(puppet_wait(&b, 2, 1, NULL, 0), 0);
        cr_assert_eq(memory[1][0], 0xaa);
        puppet_stop(&a);
        puppet_stop(&b);
        drop_memories();
}

Test(order, O4_a_write_behind_many_runs)
{
        behind_many(WIRE_RING);
        behind_many(WIRE_SOCKET);
}

/* An access of the host follows what its client was told of, too. */
static void host_access(enum wire_transport transport)
{
        struct puppet a, b;

        make_memories();
        prepare(&a, transport);
        prepare(&b, transport);
        puppet_fill(&a, 2, 1, 0xaaaaaaaa);
        puppet_sync(&a);
        puppet_sync(&b);
        rigd_pause(&rigd);
        puppet_nudge(&b);
        puppet_run(&a, 2, 1, 0, false);
        puppet_ask_wait(&b, 1, 1);
        rigd_resume(&rigd);
        cr_assert_eq(puppet_answer(&b, NULL, 0), 0);
        cr_assert_eq(memory[0][0], 0xaa);
        puppet_stop(&a);
        puppet_stop(&b);
        drop_memories();
}

Test(order, O4_O6_host_access_follows_what_its_client_was_told_of)
{
        host_access(WIRE_RING);
        host_access(WIRE_SOCKET);
}

/* A is gone when rigd goes on: what it had published is still first. */
static void gone(enum wire_transport transport)
{
        struct puppet a, b;

        make_memories();
        prepare(&a, transport);
        prepare(&b, transport);
        puppet_fill(&a, 2, 1, 0xaaaaaaaa);
        puppet_sync(&a);
        puppet_sync(&b);
        rigd_pause(&rigd);
        puppet_nudge(&b);
        puppet_run(&a, 2, 1, 0, false);
        puppet_kill(&a);
        puppet_run(&b, 1, 2, 1, false);
        rigd_resume(&rigd);
        cr_assert_eq(puppet_wait(&b, 2, 1, NULL, 0), 0);
        cr_assert_eq(memory[1][0], 0xaa);
        puppet_stop(&b);
        drop_memories();
}

Test(order, O4_L6_what_a_client_published_before_it_was_killed)
{
        gone(WIRE_RING);
        gone(WIRE_SOCKET);
}

/* ---------------------------------------------------------------- files */

/* Each has a device on the disk, with the same file as buffer 1, and memory as buffer 2. Return: the memory.
 */
static uint8_t *open_file_client(struct wire *w, int file, enum wire_transport transport)
{
        uint8_t *p;

        wire_open(w, &rigd, transport);
        wire_device(w, 1, "disk");
        wire_device(w, 2, "memory:M");
        wire_adopt(w, 1, 1, file, 0, BYTES);
        p = wire_buffer(w, 2, 2, BYTES);
        wire_copy(w, 1, 1);
        wire_sync(w);
        return p;
}

/* A writes the file, and B, who was told, reads it. Return: the first byte that B got. */
static uint8_t play_file(enum wire_transport transport, bool lie)
{
        int file = open(rigd.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        uint8_t *from, *to, got;
        struct wire a, b;

        cr_assert_geq(file, 0);
        cr_assert_eq(ftruncate(file, BYTES), 0);
        from = open_file_client(&a, file, transport);
        to = open_file_client(&b, file, transport);
        memset(from, 0xf1, BYTES);
        rigd_pause(&rigd);
        wire_send(&b, RIG_MSG_SYNC, &(struct rig_msg_sync){.serial = wire_serial(&b)});
        wire_run(&a, 1, 1, 2, 0);
        wire_run_at(&b, lie ? 0 : rig_now_nsec(), 1, (uint32_t[]){2, 1}, 2);
        rigd_resume(&rigd);
        wire_wait(&b, 2, 1);
        wire_wait(&a, 1, 1);
        got = to[0];
        cr_assert_eq(to[BYTES - 1], got);
        munmap(from, BYTES);
        munmap(to, BYTES);
        close(file);
        wire_close(&a);
        wire_close(&b);
        return got;
}

Test(order, O4_a_file_that_two_connections_opened)
{
        for (unsigned t = WIRE_RING; t <= WIRE_SOCKET; t++) {
                cr_assert_eq(play_file(t, true), 0, "the schedule is not the one that is hard");
                cr_assert_eq(play_file(t, false), 0xf1);
        }
}

/* ---------------------------------------------------------------- chains */

/* A writes, B copies that, C copies what B copied; rigd looks at C first, then at B. */
static uint8_t play_chain(const enum wire_transport *speaks, bool lie)
{
        struct puppet p[3];
        uint8_t got;

        make_memories();
        for (unsigned i = 0; i < 3; i++)
                prepare(&p[i], speaks[i]);
        puppet_fill(&p[0], 2, 1, 0xcccccccc);
        for (unsigned i = 0; i < 3; i++)
                puppet_sync(&p[i]);
        rigd_pause(&rigd);
        puppet_nudge(&p[2]);
        puppet_nudge(&p[1]);
        puppet_run(&p[0], 2, 1, 0, false);
        puppet_run(&p[1], 1, 2, 1, false);
        puppet_run(&p[2], 1, 3, 2, lie);
        rigd_resume(&rigd);
        cr_assert_eq(puppet_wait(&p[2], 3, 1, NULL, 0), 0);
        got = memory[2][BYTES - 1];
        for (unsigned i = 0; i < 3; i++)
                puppet_stop(&p[i]);
        drop_memories();
        return got;
}

Test(order, O4_a_chain_of_three_processes)
{
        static const enum wire_transport speaks[][3] = {{WIRE_RING, WIRE_RING, WIRE_RING},
                {WIRE_SOCKET, WIRE_SOCKET, WIRE_SOCKET}, {WIRE_RING, WIRE_SOCKET, WIRE_RING},
                {WIRE_SOCKET, WIRE_RING, WIRE_SOCKET}};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(speaks); i++) {
                cr_assert_eq(play_chain(speaks[i], true), 0, "the schedule is not the one that is hard");
                cr_assert_eq(play_chain(speaks[i], false), 0xcc);
        }
}

/* As many connections as a rigd has by default, each of which must follow the one before it. */
static void long_chain(unsigned n, enum wire_transport transport)
{
        struct wire *w = calloc(n, sizeof(*w));
        int first = sealed_memfd(16, F_SEAL_SHRINK | F_SEAL_SEAL), fd = first;
        uint8_t *last = NULL;

        cr_assert_not_null(w);
        for (unsigned i = 0; i < n; i++) {
                int next = sealed_memfd(16, F_SEAL_SHRINK | F_SEAL_SEAL);

                wire_open(&w[i], &rigd, transport);
                wire_device(&w[i], 1, "memory:M");
                wire_adopt(&w[i], 1, 1, fd, 0, 16);
                wire_adopt(&w[i], 2, 1, next, 0, 16);
                wire_copy(&w[i], 1, 1);
                if (i == n - 1)
                        last = map_fd(next, 16);
                if (fd != first)
                        close(fd);
                fd = next;
        }
        wire_fill(&w[0], 2, 1, 0x77777777);
        for (unsigned i = 0; i < n; i++)
                wire_sync(&w[i]);
        rigd_pause(&rigd);
        wire_send(&w[n - 1], RIG_MSG_SYNC, &(struct rig_msg_sync){.serial = wire_serial(&w[n - 1])});
        wire_run(&w[0], 2, 1, 0);
        for (unsigned i = 0; i < n; i++)
                wire_run(&w[i], 1, 2, 1, 0);
        rigd_resume(&rigd);
        wire_wait(&w[n - 1], 2, 1);
        cr_assert_eq(last[0], 0x77);
        for (unsigned i = 0; i < n; i++)
                wire_close(&w[i]);
        munmap(last, 16);
        close(fd);
        close(first);
        free(w);
}

Test(order, O4_a_chain_through_a_thousand_connections)
{
        long_chain(1000, WIRE_SOCKET);
        long_chain(1000, WIRE_RING);
}

/* ---------------------------------------------------------------- random schedules */

#define PUPPETS 4
#define STEPS   24

struct step {
        unsigned who, dst, src; /* dst == src: a fill, with a pattern of its own */
};

static uint32_t random_state;

static unsigned roll(unsigned n)
{
        random_state = random_state * 1664525u + 1013904223u;
        return (random_state >> 16) % n;
}

/* What the memories hold after the steps, one after another. */
static void follow_causality(const struct step *steps, uint8_t *model)
{
        for (unsigned i = 0; i < STEPS; i++)
                model[steps[i].dst] = steps[i].dst == steps[i].src ? (uint8_t)(i + 1) : model[steps[i].src];
}

/* Fills are works 10 + pattern; every puppet has all of them. */
static void play_steps(struct puppet *p, const struct step *steps, bool lie)
{
        rigd_pause(&rigd);
        for (unsigned i = 0; i < PUPPETS; i++)
                if (roll(2))
                        puppet_nudge(&p[roll(PUPPETS)]);
        for (unsigned i = 0; i < STEPS; i++) {
                const struct step *s = &steps[i];

                if (s->dst == s->src)
                        puppet_run(&p[s->who], 10 + i + 1, s->dst + 1, 0, lie);
                else
                        puppet_run(&p[s->who], 1, s->dst + 1, s->src + 1, lie);
        }
        rigd_resume(&rigd);
        for (unsigned i = 0; i < PUPPETS; i++)
                puppet_sync(&p[i]);
        for (unsigned i = 0; i < MEMORIES; i++)
                cr_assert_eq(puppet_wait(&p[0], i + 1, 1, NULL, 0), 0);
}

/* Return: how many of the rounds ended with what causality says. */
static unsigned play_rounds(unsigned seed, unsigned rounds, bool lie)
{
        struct puppet p[PUPPETS];
        unsigned right = 0;

        random_state = seed;
        make_memories();
        for (unsigned i = 0; i < PUPPETS; i++) {
                prepare(&p[i], i % 2 ? WIRE_SOCKET : WIRE_RING);
                for (uint32_t v = 1; v <= STEPS; v++)
                        puppet_fill(&p[i], 10 + v, 1, v * UINT32_C(0x01010101));
        }
        for (unsigned round = 0; round < rounds; round++) {
                uint8_t model[MEMORIES];
                struct step steps[STEPS];
                bool same = true;

                for (unsigned i = 0; i < MEMORIES; i++)
                        model[i] = memory[i][0];
                for (unsigned i = 0; i < STEPS; i++)
                        steps[i] = (struct step){roll(PUPPETS), roll(MEMORIES), roll(MEMORIES)};
                follow_causality(steps, model);
                play_steps(p, steps, lie);
                for (unsigned i = 0; i < MEMORIES; i++)
                        same = same && memory[i][0] == model[i] && memory[i][BYTES - 1] == model[i];
                if (!same && !lie)
                        fprintf(stderr, "seed %u, round %u\n", seed, round);
                right += same;
        }
        for (unsigned i = 0; i < PUPPETS; i++)
                puppet_stop(&p[i]);
        drop_memories();
        return right;
}

Test(order, O4_random_schedules_of_four_processes)
{
        cr_assert_lt(play_rounds(1, 20, true), 10u,
                "the schedules are not hard: lies about the time change nothing");
        for (unsigned seed = 1; seed <= 4; seed++)
                cr_assert_eq(play_rounds(seed, 25, false), 25u, "not in the order of causality");
}
