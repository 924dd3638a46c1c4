/* SPDX-License-Identifier: ISC */
/*
 * Messages by the walk of their field tables: made at random, and written by an encoder of the tests' own,
 * which shares nothing with the coders under test but the tables, checks nothing, and can do one thing wrong
 * on request. Golden vectors hold the tables themselves to the schema.
 */
#ifndef RIG_TEST_WALK_H
#define RIG_TEST_WALK_H

#include "protocol/codec.h"

struct rig_random {
        uint64_t state;
};

uint64_t rig_random_next(struct rig_random *r);
/* 0 to n - 1. */
uint64_t rig_random_below(struct rig_random *r, uint64_t n);

/*
 * Fills a message within all bounds, biased to the edges of numbers and forms; arrays of at most `elements`.
 * Texts and byte strings point at constants. What is absent is zero, as the decoder leaves it.
 */
void rig_random_message(struct rig_random *r, enum rig_msg_type type, uint32_t elements, union rig_msg *msg);

/* One thing to do wrong. Each applies to many places of a message; `nth` chooses one. */
enum rig_sabotage {
        RIG_SABOTAGE_NONE,
        RIG_SABOTAGE_ABOVE,      /* a number one above its bound */
        RIG_SABOTAGE_LONG,       /* a head that is not the shortest */
        RIG_SABOTAGE_INDEFINITE, /* an item of indefinite length */
        RIG_SABOTAGE_NEGATIVE,   /* a negative number */
        RIG_SABOTAGE_NUMBER,     /* a number in the place of anything else */
        RIG_SABOTAGE_TEXT,       /* a text in the place of anything else */
        RIG_SABOTAGE_BYTES,      /* a byte string in the place of anything else */
        RIG_SABOTAGE_ARRAY,      /* an empty array in the place of what is none */
        RIG_SABOTAGE_MAP,        /* an empty map in the place of what is none */
        RIG_SABOTAGE_TAG,        /* a tagged number */
        RIG_SABOTAGE_FLOAT,      /* a float */
        RIG_SABOTAGE_TRUE,       /* a boolean */
        RIG_SABOTAGE_RESERVED,   /* a byte that starts no item */
        RIG_SABOTAGE_MORE,       /* a string or an array one longer than its bound */
        RIG_SABOTAGE_FEWER,      /* a string or an array one shorter than its bound */
        RIG_SABOTAGE_NUL,        /* a text with a NUL */
        RIG_SABOTAGE_LATIN1,     /* a text that is not UTF-8 */
        RIG_SABOTAGE_SURROGATE,  /* a text with a surrogate */
        RIG_SABOTAGE_OVERLONG,   /* a text with a character in a form that is longer than needed */
        RIG_SABOTAGE_MISSING,    /* a required key left out */
        RIG_SABOTAGE_TWICE,      /* a known key twice */
        _RIG_SABOTAGE_MAX,

        /* These are none: a message with one is accepted and reads the same. */
        RIG_SABOTAGE_UNKNOWN_FIRST,
        RIG_SABOTAGE_UNKNOWN_LAST,
        RIG_SABOTAGE_REVERSED, /* the keys of a map, last to first */
};

struct rig_sabotaged {
        enum rig_sabotage what;
        size_t nth;
        const uint8_t *unknown; /* the value of an unknown key */
        size_t unknown_bytes;

        size_t seen;       /* places so far */
        bool hit;          /* the place was there */
        const char *field; /* its name in the schema */
};

/* Writes a message. `s` may be NULL. Aborts where `room` is too little. Return: the bytes. */
size_t rig_raw_encode(enum rig_msg_type type, const union rig_msg *msg, struct rig_sabotaged *s,
        uint8_t *out, size_t room);

#endif
