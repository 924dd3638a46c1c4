/* SPDX-License-Identifier: ISC */
/*
 * The pages a client and rigd share.
 *
 *   words  one page, rigd's: sealed F_SEAL_FUTURE_WRITE, so that a client can only read it. The word of each
 *          of the client's devices, how far rigd has read the ring, and whether rigd sleeps.
 *   ring   the client's: a page that says how far it has published and who of it sleeps, then the bytes of
 *          the run ring. Its contents are hostile to rigd, which copies out before it checks.
 *
 * The ring is a single-producer, single-consumer ring of bytes: a CBOR sequence (protocol/rig.cddl) with no
 * framing of its own. Positions count bytes ever published and never wrap. Both sides map the bytes twice in
 * a row, so that any message is contiguous. A publisher moves `tail` only at the end of a message.
 *
 * Sleeping. Each side says that it sleeps before it looks a last time, and looks whether the other sleeps
 * after it has published (both sequentially consistent: one of the two sees the other). rigd sleeps in epoll
 * and is woken by the doorbell, an eventfd that it watches edge-triggered and never reads; a client sleeps
 * in a futex on the low half of the word it waits for. A client with words and no ring has no place to say
 * so, and is woken whenever a word of it moves.
 */
#ifndef RIG_SHARED_H
#define RIG_SHARED_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RIG_PROTOCOL_VERSION 1

#define RIG_FEATURE_WORDS (1u << 0)
#define RIG_FEATURE_RING  (1u << 1)

#define RIG_WORDS_BYTES     4096u
#define RIG_RING_BYTES      65536u                   /* of messages; a power of two and whole pages */
#define RIG_RING_FILE_BYTES (4096u + RIG_RING_BYTES) /* the page of `struct rig_ring`, then the messages */

#define RIG_WORD_LOST (1u << 0) /* the device is lost: the reason follows on the socket */

/* One device's word, a cache line. All of it is written by rigd alone. */
struct rig_word {
        _Atomic uint64_t signaled; /* the last value reached; never moves backwards */
        _Atomic uint64_t ready;    /* a host device's work may run up to this value */
        _Atomic uint32_t flags;    /* RIG_WORD_LOST */
        _Atomic uint32_t failures; /* runs that failed so far; each has a run-failed event on the socket */
        uint32_t reserved[10];
};

struct rig_words {
        _Atomic uint64_t head; /* bytes of the ring that rigd has taken */
        uint32_t reserved0[14];
        _Atomic uint32_t sleeping; /* rigd sleeps: ring the doorbell after publishing. On a line of its own,
                                    * which stays in the publisher's cache while rigd is awake */
        uint32_t reserved1[15];
        struct rig_word word[62]; /* of device id i: word[i - 1] */
};

struct rig_ring {
        _Atomic uint64_t tail; /* bytes published */
        uint32_t reserved0[14];
        _Atomic uint32_t sleepers; /* threads of the client asleep on a word or on head */
        uint32_t reserved1[15];
};

static_assert(sizeof(struct rig_word) == 64, "a word is a cache line");
static_assert(sizeof(struct rig_words) == RIG_WORDS_BYTES, "the words are one page");
static_assert(offsetof(struct rig_words, sleeping) == 64, "sleeping is on the second line");
static_assert(offsetof(struct rig_words, word) == 128, "words start after two lines");
static_assert(offsetof(struct rig_ring, sleepers) == 64 && sizeof(struct rig_ring) == 128, "ring header");
static_assert((RIG_RING_BYTES & (RIG_RING_BYTES - 1)) == 0, "the ring's bytes are a power of two");

#endif
