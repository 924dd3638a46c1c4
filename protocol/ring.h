/* SPDX-License-Identifier: ISC */
/*
 * The shared pages of protocol/shared.h: making them, mapping them, and the arithmetic of the ring.
 *
 * The ring's messages are mapped twice in a row, so that the bytes from any position are contiguous.
 */
#ifndef RIG_RING_H
#define RIG_RING_H

#include <string.h>

#include "base/base.h"
#include "protocol/shared.h"

/**
 * rig_words_new() - make a page of words
 * @ret_fd:    a memfd of it, which its owner sends to the client; nobody can map it to write any more
 * @ret_words: the one mapping that can be written, of zeros
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM; -EOPNOTSUPP (the kernel has no F_SEAL_FUTURE_WRITE).
 */
int rig_words_new(int *ret_fd, struct rig_words **ret_words);

/* Maps a page of words to read. `fd` is borrowed. -EPERM: it is not sealed as words are, or not as long. */
int rig_words_map(int fd, const struct rig_words **ret_words);
void rig_words_unmap(const struct rig_words *words);

/**
 * rig_ring_new() - make a ring
 * @ret_fd: a memfd of it, sealed against another length
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM.
 */
int rig_ring_new(int *ret_fd);

/**
 * rig_ring_map() - map a ring, to read and to write
 * @fd:         its memfd, borrowed
 * @ret_header: its first page
 * @ret_bytes:  its messages: 2 * RIG_RING_BYTES that can be accessed, the second half being the first again
 *
 * Return: 0; -EPERM (it is not sealed as a ring is, or not as long), -EOPNOTSUPP (pages larger than 4096
 * bytes), -ENOMEM.
 */
int rig_ring_map(int fd, struct rig_ring **ret_header, uint8_t **ret_bytes);
void rig_ring_unmap(struct rig_ring *header);

/* The half of a 64-bit word that changes with each value: what sleepers sleep on. */
static inline _Atomic uint32_t *rig_word_low(_Atomic uint64_t *word)
{
        return (_Atomic uint32_t *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static inline const _Atomic uint32_t *rig_word_low_const(const _Atomic uint64_t *word)
{
        return (const _Atomic uint32_t *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/*
 * True where no ring can be between these positions: its other side lies. Everything below is for positions
 * of which this was asked, or which are the caller's own.
 */
static inline bool rig_ring_lies(uint64_t head, uint64_t tail)
{
        return tail - head > RIG_RING_BYTES;
}

/* Bytes that may be published before `head` moves. */
static inline size_t rig_ring_room(uint64_t head, uint64_t tail)
{
        return RIG_RING_BYTES - (size_t)(tail - head);
}

/* Where the byte of a position is; RIG_RING_BYTES can be accessed from there. */
static inline uint8_t *rig_ring_at(uint8_t *bytes, uint64_t position)
{
        return bytes + (position & (RIG_RING_BYTES - 1));
}

/* Copies `n` bytes from a position out of the ring, at most RIG_RING_BYTES. */
static inline void rig_ring_copy(const uint8_t *bytes, uint64_t from, size_t n, uint8_t *out)
{
        memcpy(out, bytes + (from & (RIG_RING_BYTES - 1)), n);
}

#endif
