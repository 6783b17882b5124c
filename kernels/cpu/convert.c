/* 16-bit floats to reals and back, and tf32's rounding: in integers, since every compiler makes vector code
 * of that for every instruction set. */
#include "kernels/cpu/loops_internal.h"

#include <string.h>

static inline uint32_t bits_of(real x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

#define INFINITE 0x7f800000u
#define MAGNITUDE 0x7fffffffu

/* Adds just so much that cutting off `low` bits rounds to nearest, ties to even. */
static inline uint32_t rounded(uint32_t bits, int low)
{
    return bits + (1u << (low - 1)) - 1 + (bits >> low & 1);
}

static inline uint16_t bf16_of(real x)
{
    uint32_t bits = bits_of(x);
    uint32_t number = rounded(bits, 16) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & MAGNITUDE) > INFINITE ? nan : number);
}

/* Halves: 5 bits of exponent with bias 15, 10 of mantissa. Multiplying by 2^112 moves the exponent's bias and
 * makes denormals normal. */
static inline float float_of_fp16(uint16_t half)
{
    uint32_t magnitude = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;
    float scaled = float_of(magnitude) * 0x1p112f;
    uint32_t special = magnitude | INFINITE, bits;

    memcpy(&bits, &scaled, sizeof(bits));
    return float_of((magnitude >= 0x0f800000u ? special : bits) | sign);
}

#define FP16_SMALLEST_NORMAL 0x38800000u /* 2^-14 */
#define FP16_OVERFLOW 0x477ff000u        /* 65520 and beyond round to infinity */

static inline uint16_t fp16_of(real x)
{
    uint32_t bits = bits_of(x), magnitude = bits & MAGNITUDE;
    uint32_t normal = (rounded(magnitude, 13) - (112u << 23)) >> 13;
    /* Adding 1/2 leaves multiples of 2^-24, the denormals' unit, in the lowest bits. */
    float shifted = float_of(magnitude < FP16_SMALLEST_NORMAL ? magnitude : 0) + 0.5f;
    uint32_t small = bits_of((real)shifted) - 0x3f000000u;
    uint32_t number = magnitude < FP16_SMALLEST_NORMAL ? small : normal;

    number = magnitude >= FP16_OVERFLOW ? 0x7c00u : number;
    number = magnitude > INFINITE ? 0x7e00u : number;
    return (uint16_t)(number | (bits >> 16 & 0x8000u));
}

void LOOPS(widen)(real *restrict y, const uint16_t *restrict x, int64_t count,
                  enum device_precision precision)
{
    if (precision == DEVICE_BF16)
        for (int64_t i = 0; i < count; i++)
            y[i] = float_of((uint32_t)x[i] << 16);
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = float_of_fp16(x[i]);
}

void LOOPS(narrow)(uint16_t *restrict y, const real *restrict x, int64_t count,
                   enum device_precision precision)
{
    if (precision == DEVICE_BF16)
        for (int64_t i = 0; i < count; i++)
            y[i] = bf16_of(x[i]);
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = fp16_of(x[i]);
}

void LOOPS(round_tf32)(real *restrict y, const real *restrict x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(x[i]);
        y[i] = float_of((bits & MAGNITUDE) > INFINITE ? bits : rounded(bits, 13) & ~0x1fffu);
    }
}
