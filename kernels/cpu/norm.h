/* What both norms share: blocks of reals on the stack, whatever the tensor is stored in. */
#ifndef RUNG_KERNELS_CPU_NORM_H
#define RUNG_KERNELS_CPU_NORM_H

#include "kernels/cpu/stored.h"

#include <math.h>
#include <string.h>

#define NORM_BLOCK 256 /* elements: a few blocks stay in the first cache beside the data */
#define NORM_EPSILON ((real)1e-5)

static inline int64_t norm_block_of(int64_t left)
{
    return left < NORM_BLOCK ? left : NORM_BLOCK;
}

static inline void norm_load(real *block, const void *x, int64_t at, int64_t count,
                             enum device_precision precision)
{
    if (is_narrow(precision))
        LOOPS(widen)(block, (const uint16_t *)x + at, count, precision);
    else
        memcpy(block, (const real *)x + at, (size_t)count * sizeof(*block));
}

static inline void norm_store(void *y, int64_t at, const real *block, int64_t count,
                              enum device_precision precision)
{
    if (is_narrow(precision))
        LOOPS(narrow)((uint16_t *)y + at, block, count, precision);
    else
        memcpy((real *)y + at, block, (size_t)count * sizeof(*block));
}

static inline real norm_inverse(real variance)
{
#ifdef RUNG_REAL_DOUBLE
    return 1 / sqrt(variance + NORM_EPSILON);
#else
    return 1 / sqrtf(variance + NORM_EPSILON);
#endif
}

/* Adds a block to partial sums; blocks but the last are multiples of WIDTH. */
static inline void norm_accumulate(real partial[WIDTH], const real *block, int64_t count)
{
    int64_t j = 0;

    for (; j + WIDTH <= count; j += WIDTH)
        for (int l = 0; l < WIDTH; l++)
            partial[l] += block[j + l];
    for (int l = 0; j + l < count; l++)
        partial[l] += block[j + l];
}

static inline void norm_start_sums(real *dgain, real *doffset, int64_t columns, bool accumulate)
{
    if (accumulate)
        return;
    memset(dgain, 0, (size_t)columns * sizeof(*dgain));
    memset(doffset, 0, (size_t)columns * sizeof(*doffset));
}

#endif
