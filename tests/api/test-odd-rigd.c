/* SPDX-License-Identifier: ISC */
/*
 * A rigd that is not what it should be: it answers nonsense, hands over pages that are no such pages, or is
 * gone at any moment. Every call then returns an error with its sentence; none crashes, none hangs, and no
 * descriptor is left.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "base/base.h"
#include "tests/api/api.h"
#include "tests/api/fake-rigd.h"

static const char *const transports[] = {"ring", "words", "socket"};

/* Connects to a fake with a twist; returns what rig_connect() did. */
static int connect_twisted(enum twisted (*twist)(struct fake *fake, struct fake_answer *answer),
        const char *transport, struct rig **rig)
{
        struct fake *fake = calloc(1, sizeof(*fake));
        char address[64];
        int r;

        CHECK(fake);
        fake->twist = twist;
        fake_start(fake, address, sizeof(address), transport);
        *rig = NULL;
        r = rig_connect(address, rig);
        if (r == 0)
                rig_unref(*rig);
        fake_join(fake);
        free(fake);
        return r;
}

#define CONNECT_FAILS(expected, twist, transport)                                                           \
        do {                                                                                                \
                struct rig *rig_;                                                                           \
                CHECK_RETURNS(expected, connect_twisted(twist, transport, &rig_));                          \
                CHECK(rig_ == NULL);                                                                        \
        } while (0)

static enum twisted close_it(struct fake *fake, struct fake_answer *answer)
{
        return TWISTED_CLOSE;
}

static void connect_tells_that_rigd_is_gone(void)
{
        CONNECT_FAILS(-ECONNRESET, close_it, NULL);
}

static enum twisted garbage(struct fake *fake, struct fake_answer *answer)
{
        fake_send_bytes(fake, "this is no CBOR at all", 22);
        return TWISTED_NOT;
}

static enum twisted cut(struct fake *fake, struct fake_answer *answer)
{
        static const uint8_t half[] = {0x82, 0x18, 0x42, 0xa7, 0x00};

        fake_send_bytes(fake, half, sizeof(half));
        return TWISTED_NOT;
}

static enum twisted empty(struct fake *fake, struct fake_answer *answer)
{
        fake_send_bytes(fake, "", 0);
        fake_send_bytes(fake, "", 0);
        fake_send_bytes(fake, "x", 1);
        return TWISTED_NOT;
}

static enum twisted unknown_type(struct fake *fake, struct fake_answer *answer)
{
        static const uint8_t unknown[] = {0x82, 0x19, 0x03, 0xe7, 0xa0};

        fake_send_bytes(fake, unknown, sizeof(unknown));
        return TWISTED_NOT;
}

static enum twisted a_request(struct fake *fake, struct fake_answer *answer)
{
        struct rig_msg_sync m = {.serial = fake->serial};

        fake_send(fake, RIG_MSG_SYNC, &m, NULL, 0);
        return TWISTED_NOT;
}

static enum twisted too_long(struct fake *fake, struct fake_answer *answer)
{
        static const uint8_t zeros[RIG_PROTO_PACKET_BYTES + 1];

        fake_send_bytes(fake, zeros, sizeof(zeros));
        return TWISTED_NOT;
}

static void nonsense_for_an_answer_is_a_protocol_error(void)
{
        CONNECT_FAILS(-EPROTO, garbage, NULL);
        CONNECT_FAILS(-EPROTO, cut, NULL);
        CONNECT_FAILS(-EPROTO, empty, NULL);
        CONNECT_FAILS(-EPROTO, unknown_type, NULL);
        CONNECT_FAILS(-EPROTO, a_request, NULL);
        CONNECT_FAILS(-EPROTO, too_long, NULL);
}

static enum twisted wrong_serial(struct fake *fake, struct fake_answer *answer)
{
        answer->msg.hello_done.serial += 7;
        return TWISTED_SEND;
}

static enum twisted wrong_type(struct fake *fake, struct fake_answer *answer)
{
        struct rig_msg_done m = {.serial = fake->serial};

        fake_send(fake, RIG_MSG_DONE, &m, NULL, 0);
        return TWISTED_NOT;
}

static enum twisted failed_with_nothing(struct fake *fake, struct fake_answer *answer)
{
        struct rig_msg_failed m = {.serial = fake->serial, .error = 0};

        fake_send(fake, RIG_MSG_FAILED, &m, NULL, 0);
        return TWISTED_NOT;
}

static void an_answer_to_nothing_is_a_protocol_error(void)
{
        CONNECT_FAILS(-EPROTO, wrong_serial, NULL);
        CONNECT_FAILS(-EPROTO, wrong_type, NULL);
        CONNECT_FAILS(-EPROTO, failed_with_nothing, NULL);
}

static enum twisted other_version(struct fake *fake, struct fake_answer *answer)
{
        answer->msg.hello_done.version = RIG_PROTOCOL_VERSION + 1;
        return TWISTED_SEND;
}

static enum twisted refusing(struct fake *fake, struct fake_answer *answer)
{
        struct rig_msg_failed m = {.serial = fake->serial,
                .error = EDQUOT,
                .text = rig_text("enough clients", RIG_PROTO_TEXT_MAX)};

        fake_send(fake, RIG_MSG_FAILED, &m, NULL, 0);
        return TWISTED_NOT;
}

static enum twisted breaking(struct fake *fake, struct fake_answer *answer)
{
        struct rig_msg_broken m = {
                .error = EBADMSG, .text = rig_text("the hello was rude", RIG_PROTO_TEXT_MAX)};

        fake_send(fake, RIG_MSG_BROKEN, &m, NULL, 0);
        return TWISTED_CLOSE;
}

static void rigd_says_why_it_refuses(void)
{
        CONNECT_FAILS(-EPROTONOSUPPORT, other_version, NULL);
        CONNECT_FAILS(-EDQUOT, refusing, NULL);
        CHECK(strstr(rig_error(), "enough clients"));
        CONNECT_FAILS(-EPROTO, breaking, NULL);
        CHECK(strstr(rig_error(), "the hello was rude"));
}

/* ---------------------------------------------------------------- pages */

static void replace_fd(struct fake_answer *answer, size_t i, int fd)
{
        CHECK(i < answer->n_fds && fd >= 0);
        close(answer->fds[i]);
        answer->fds[i] = fd;
}

static int memfd(uint64_t bytes, int seals)
{
        int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
        return fd;
}

static enum twisted short_words(struct fake *fake, struct fake_answer *answer)
{
        replace_fd(answer, 0, memfd(RIG_WORDS_BYTES / 2, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
        return TWISTED_SEND;
}

static enum twisted unsealed_words(struct fake *fake, struct fake_answer *answer)
{
        replace_fd(answer, 0, memfd(RIG_WORDS_BYTES, 0));
        return TWISTED_SEND;
}

static enum twisted short_ring(struct fake *fake, struct fake_answer *answer)
{
        replace_fd(answer, 1, memfd(RIG_RING_FILE_BYTES / 2, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
        return TWISTED_SEND;
}

static enum twisted unsealed_ring(struct fake *fake, struct fake_answer *answer)
{
        replace_fd(answer, 1, memfd(RIG_RING_FILE_BYTES, 0));
        return TWISTED_SEND;
}

static enum twisted a_pipe_for_words(struct fake *fake, struct fake_answer *answer)
{
        int p[2];

        CHECK(pipe(p) == 0);
        close(p[1]);
        replace_fd(answer, 0, p[0]);
        return TWISTED_SEND;
}

static enum twisted no_such_fd(struct fake *fake, struct fake_answer *answer)
{
        answer->msg.hello_done.words = 3;
        return TWISTED_SEND;
}

static enum twisted no_doorbell(struct fake *fake, struct fake_answer *answer)
{
        answer->msg.hello_done.has_doorbell = false;
        return TWISTED_SEND;
}

static enum twisted promises_only(struct fake *fake, struct fake_answer *answer)
{
        answer->msg.hello_done.has_words = answer->msg.hello_done.has_ring = false;
        return TWISTED_SEND;
}

static void pages_are_checked_before_they_are_mapped(void)
{
        int before = test_count_fds();

        CONNECT_FAILS(-EPROTO, short_words, "ring");
        CONNECT_FAILS(-EPROTO, short_words, "words");
        CONNECT_FAILS(-EPROTO, unsealed_words, "words");
        CONNECT_FAILS(-EPROTO, short_ring, "ring");
        CONNECT_FAILS(-EPROTO, unsealed_ring, "ring");
        CONNECT_FAILS(-EPROTO, a_pipe_for_words, "ring");
        CONNECT_FAILS(-EPROTO, no_such_fd, "ring");
        CONNECT_FAILS(-EPROTO, no_doorbell, "ring");
        CONNECT_FAILS(-EPROTO, promises_only, "ring");
        CHECK(test_count_fds() == before);
}

static enum twisted more_fds(struct fake *fake, struct fake_answer *answer)
{
        while (answer->n_fds < RIG_PROTO_PACKET_FDS)
                answer->fds[answer->n_fds++] = memfd(1, 0);
        return TWISTED_SEND;
}

static void descriptors_that_nothing_names_are_closed(void)
{
        int before = test_count_fds();
        struct rig *rig;

        CHECK_RETURNS(0, connect_twisted(more_fds, "socket", &rig));
        CHECK_RETURNS(0, connect_twisted(more_fds, "ring", &rig));
        CHECK(test_count_fds() == before);
}

/* ---------------------------------------------------------------- a whole program, and a rigd that ends in
 * it */

static void noted(struct rig_device *device, uint64_t value, int error, void *data)
{
        ++*(int *)data;
}

/* A run of everything; stops at the first error, which it returns. */
static int program(struct rig *rig, int *notes)
{
        struct rig_device *m = NULL;
        struct rig_buffer *a = NULL, *b = NULL, *view = NULL;
        struct rig_work *w = NULL;
        struct rig_point p = {0};
        char bytes[64] = "some bytes";
        int fd = -1, r;

        r = rig_device_open(rig, "memory:M", &m);
        if (r == 0)
                r = rig_buffer_new(m, 4096, RIG_MEMORY_DEVICE, &a);
        if (r == 0)
                r = rig_buffer_new(m, 4096, RIG_MEMORY_PINNED, &b);
        if (r == 0)
                r = rig_buffer_write(a, 0, bytes, sizeof(bytes));
        if (r == 0)
                r = rig_buffer_view(a, 16, 32, &view);
        if (r == 0)
                r = rig_work_new(m, &w);
        if (r == 0)
                r = rig_work_slot(w, RIG_WRITE);
        if (r == 0)
                r = rig_work_fill(w, 0, 0, 0, 16, 1);
        if (r == 0)
                r = rig_work_prepare(w);
        for (int i = 0; i < 100 && r == 0; i++)
                r = rig_submit(w, &view, 1, NULL, 0, &p);
        if (r == 0)
                r = rig_notify(m, p.value, noted, notes);
        if (r == 0)
                r = rig_point_wait(&p, RIG_INFINITY);
        if (r == 0)
                r = rig_buffer_copy(b, 0, a, 16, 16, &p);
        if (r == 0)
                r = rig_point_wait(&p, RIG_INFINITY);
        if (r == 0)
                r = rig_buffer_export(a, &fd);
        if (r == 0)
                r = rig_buffer_wait(a, RIG_READ_WRITE, RIG_INFINITY);
        if (r == 0)
                r = rig_sync(rig);
        while (r == 0 && *notes == 0)
                r = rig_dispatch(rig, RIG_INFINITY) < 0 ? rig_failed(rig) : 0;
        if (fd >= 0)
                close(fd);
        rig_work_unref(w);
        rig_buffer_unref(view);
        rig_buffer_unref(b);
        rig_buffer_unref(a);
        rig_device_unref(m);
        return r;
}

/* Return: what the program did; `close_after`: messages before rigd is gone. */
static int run_program(struct fake *fake, const char *transport)
{
        char address[64];
        struct rig *rig;
        int r, notes = 0;

        fake_start(fake, address, sizeof(address), transport);
        r = rig_connect(address, &rig);
        if (r == 0) {
                r = program(rig, &notes);
                rig_unref(rig);
        }
        fake_join(fake);
        return r;
}

static void an_honest_one_serves_in_every_transport(void)
{
        for (size_t t = 0; t < 3; t++) {
                struct fake *fake = calloc(1, sizeof(*fake));

                CHECK_RETURNS(0, run_program(fake, transports[t]));
                free(fake);
        }
}

static void one_that_offers_less_is_taken_at_its_word(void)
{
        static const uint32_t hidden[] = {RIG_FEATURE_RING, RIG_FEATURE_RING | RIG_FEATURE_WORDS};

        for (size_t i = 0; i < 2; i++) {
                struct fake *fake = calloc(1, sizeof(*fake));

                fake->hide = hidden[i];
                CHECK_RETURNS(0, run_program(fake, "ring"));
                free(fake);
        }
}

static void one_that_ends_at_any_message_ends_every_call(void)
{
        int before = test_count_fds();

        for (size_t t = 0; t < 3; t++) {
                for (uint64_t n = 1;; n++) {
                        struct fake *fake = calloc(1, sizeof(*fake));
                        int r;

                        fake->close_after = n;
                        r = run_program(fake, transports[t]);
                        free(fake);
                        if (r == 0)
                                break; /* the program needs no more messages than that */
                        CHECK_RETURNS(-ECONNRESET, r);
                        CHECK(n < 1000);
                }
        }
        CHECK(test_count_fds() == before);
}

static void calls_after_the_end_return_its_error(void)
{
        struct fake *fake = calloc(1, sizeof(*fake));
        struct rig_adapter *adapters;
        struct rig_device *m, *other;
        struct rig_buffer *a, *b;
        struct rig *rig;
        char address[64];
        int fd;

        fake->close_after = 4;
        fake_start(fake, address, sizeof(address), NULL);
        OK(rig_connect(address, &rig));
        OK(rig_device_open(rig, "memory", &m));
        OK(rig_buffer_new(m, 16, RIG_MEMORY_DEVICE, &a));
        CHECK_RETURNS(-ECONNRESET, rig_sync(rig));
        CHECK_RETURNS(-ECONNRESET, rig_failed(rig));
        CHECK(strstr(rig_error(), "rigd is gone"));
        CHECK_RETURNS(-ECONNRESET, rig_sync(rig));
        CHECK_RETURNS(-ECONNRESET, rig_adapter_list(rig, &adapters));
        CHECK_RETURNS(-ECONNRESET, rig_device_open(rig, "memory", &other));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_new(m, 1, RIG_MEMORY_DEVICE, &b));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_view(a, 0, 1, &b));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_borrow(m, a, &b));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_export(a, &fd));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_wait(a, RIG_READ, RIG_INFINITY));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_write(a, 0, "x", 1));
        CHECK_RETURNS(-ECONNRESET, rig_buffer_fill(a, 0, 4, 1, NULL));
        CHECK_RETURNS(-ECONNRESET, rig_wait(m, 0, RIG_INFINITY));
        CHECK_RETURNS(-ECONNRESET, rig_notify_eventfd(m, 0, 0));
        CHECK_RETURNS(-ECONNRESET, rig_dispatch(rig, RIG_INFINITY));
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_unref(rig);
        fake_join(fake);
        free(fake);
}

/* ---------------------------------------------------------------- lies about memory */

static enum twisted short_memory(struct fake *fake, struct fake_answer *answer)
{
        if (answer->asked == RIG_MSG_BUFFER_NEW)
                replace_fd(answer, 0, memfd(1, F_SEAL_SHRINK));
        return TWISTED_SEND;
}

static enum twisted memory_beyond_all_numbers(struct fake *fake, struct fake_answer *answer)
{
        if (answer->asked == RIG_MSG_BUFFER_NEW)
                answer->msg.buffer_done.offset = RIG_PROTO_BYTES_MAX;
        return TWISTED_SEND;
}

static void write_to_twisted(enum twisted (*twist)(struct fake *fake, struct fake_answer *answer))
{
        struct fake *fake = calloc(1, sizeof(*fake));
        struct rig_device *m;
        struct rig_buffer *a;
        struct rig *rig;
        char address[64];

        fake->twist = twist;
        fake_start(fake, address, sizeof(address), NULL);
        OK(rig_connect(address, &rig));
        OK(rig_device_open(rig, "memory", &m));
        OK(rig_buffer_new(m, 65536, RIG_MEMORY_DEVICE, &a));
        CHECK_RETURNS(-EPROTO, rig_buffer_write(a, 65535, "x", 1));
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_unref(rig);
        fake_join(fake);
        free(fake);
}

static void a_descriptor_shorter_than_its_memory_is_not_mapped(void)
{
        write_to_twisted(short_memory);
        write_to_twisted(memory_beyond_all_numbers);
}

static enum twisted lying_head(struct fake *fake, struct fake_answer *answer)
{
        if (answer->asked == RIG_MSG_SYNC)
                atomic_store(&fake->words->head, UINT64_MAX / 2);
        return TWISTED_SEND;
}

static void a_head_beyond_the_tail_is_a_protocol_error(void)
{
        struct fake *fake = calloc(1, sizeof(*fake));
        struct rig_buffer *a, *view;
        struct rig_device *m;
        struct rig *rig;
        char address[64];
        int r = 0;

        fake->twist = lying_head;
        fake_start(fake, address, sizeof(address), "ring");
        OK(rig_connect(address, &rig));
        OK(rig_device_open(rig, "memory", &m));
        OK(rig_buffer_new(m, 16, RIG_MEMORY_DEVICE, &a));
        /* nothing may be published meanwhile that would make the fake store the honest head again */
        OK(rig_sync(rig));
        for (int i = 0; i < 100000 && r == 0; i++) {
                atomic_store(&fake->words->head, UINT64_MAX / 2);
                r = rig_buffer_view(a, 0, 1, &view);
                if (r == 0)
                        rig_buffer_unref(view);
        }
        CHECK_RETURNS(-EPROTO, r);
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_unref(rig);
        fake_join(fake);
        free(fake);
}

/* ---------------------------------------------------------------- anything at all */

static uint64_t next_random(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

/* Changes some byte of one in four answers, after the hello; or sends an event that nobody expects. */
static enum twisted mangle(struct fake *fake, struct fake_answer *answer)
{
        uint8_t out[4096];
        uint64_t dice = next_random(&fake->seed);
        ssize_t n;

        if (answer->asked == RIG_MSG_HELLO || dice % 4 != 0)
                return TWISTED_SEND;
        n = rig_codec_encode(answer->type, &answer->msg, out, sizeof(out));
        CHECK(n > 0);
        out[next_random(&fake->seed) % (uint64_t)n] ^= (uint8_t)(1u << (next_random(&fake->seed) % 8));
        (void)rig_packet_send(fake->fd, out, (size_t)n, answer->fds, answer->n_fds, 0);
        if (dice % 8 == 0)
                return TWISTED_CLOSE;
        /* the client may be waiting for the answer as it was: it gets the end instead */
        fake->close_after = fake->messages + 3;
        return TWISTED_NOT;
}

static void whatever_it_answers_every_call_returns(void)
{
        int failed = 0;

        for (uint64_t seed = 1; seed <= 300; seed++) {
                struct fake *fake = calloc(1, sizeof(*fake));

                fake->twist = mangle;
                fake->seed = seed;
                failed += run_program(fake, transports[seed % 3]) < 0;
                free(fake);
        }
        CHECK(failed > 100); /* else nothing was tried */
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(connect_tells_that_rigd_is_gone),
                TEST(nonsense_for_an_answer_is_a_protocol_error),
                TEST(an_answer_to_nothing_is_a_protocol_error),
                TEST(rigd_says_why_it_refuses),
                TEST(pages_are_checked_before_they_are_mapped),
                TEST(descriptors_that_nothing_names_are_closed),
                TEST(an_honest_one_serves_in_every_transport),
                TEST(one_that_offers_less_is_taken_at_its_word),
                TEST(one_that_ends_at_any_message_ends_every_call),
                TEST(calls_after_the_end_return_its_error),
                TEST(a_descriptor_shorter_than_its_memory_is_not_mapped),
                TEST(a_head_beyond_the_tail_is_a_protocol_error),
                TEST(whatever_it_answers_every_call_returns),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
