/* Counter-based random numbers: Philox 4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as
 * 1, 2, 3"). A number is a function of key and counter only; nothing has state. */
#ifndef RUNG_BASE_RANDOM_H
#define RUNG_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct philox {
    uint32_t word[4];
};

/* One block of four words for a 128-bit counter {c0,c1,c2,c3} and a 64-bit key. */
struct philox philox4x32(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3);

/* FNV-1a, 64 bits. */
uint64_t fnv1a64(const void *bytes, size_t size);

/* A sample in the open interval (0, 1), 52 bits: (k + 0.5) * 2^-52 (with 53 bits the largest k would round up
 * to 1). Counter = (trial, name hash low, name hash high, draw), key = seed. Words 0 (high) and 1 of the
 * block make the 52 bits. Never changes within a database version. */
double random_unit(uint64_t seed, uint32_t trial, uint64_t name_hash, uint32_t draw);
/* An integer in [0, bound), bound > 0, unbiased: 64-bit numbers from words (0, 1), then (2, 3), are rejected
 * where they would favour a remainder; further blocks add 65536 to the draw, so keep draw below that. */
uint64_t random_below(uint64_t seed, uint32_t trial, uint64_t name_hash, uint32_t draw, uint64_t bound);

#endif
