/* How the loops read and write stored tensors: reals are worked on where they lie, 16-bit floats in stretches
 * that are widened into a block on the stack (small enough for the first cache) and narrowed from it. */
#ifndef RUNG_KERNELS_CPU_STORED_H
#define RUNG_KERNELS_CPU_STORED_H

#include "kernels/cpu/loops_internal.h"

#define STRETCH 1024 /* elements of a block */

static inline bool is_narrow(enum device_precision precision)
{
    return precision == DEVICE_BF16 || precision == DEVICE_FP16;
}

/* Elements to take next, of so many that are left. */
static inline int64_t stretch_of(int64_t left, enum device_precision precision)
{
    return is_narrow(precision) && left > STRETCH ? STRETCH : left;
}

/* Elements at..at+count-1 of x. */
static inline const real *stored_read(real *block, const void *x, int64_t at, int64_t count,
                                      enum device_precision precision)
{
    if (!is_narrow(precision))
        return (const real *)x + at;
    LOOPS(widen)(block, (const uint16_t *)x + at, count, precision);
    return block;
}

/* Where to write elements from `at` on; stored_close puts them where they belong. */
static inline real *stored_open(real *block, void *x, int64_t at, enum device_precision precision)
{
    return is_narrow(precision) ? block : (real *)x + at;
}

static inline void stored_close(void *x, int64_t at, const real *block, int64_t count,
                                enum device_precision precision)
{
    if (is_narrow(precision))
        LOOPS(narrow)((uint16_t *)x + at, block, count, precision);
}

#endif
