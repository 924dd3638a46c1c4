/* SPDX-License-Identifier: ISC */
/* What a use does to memory: the bits of every `access`, on the wire and within. */
#ifndef RIG_ACCESS_H
#define RIG_ACCESS_H

#define RIG_ACCESS_READ  1u
#define RIG_ACCESS_WRITE 2u

#endif
