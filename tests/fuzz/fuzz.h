/* SPDX-License-Identifier: ISC */
/* What a fuzzer is: a function of any bytes that returns 0 and stops the program where something does not
 * hold. */
#ifndef RIG_FUZZ_H
#define RIG_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
