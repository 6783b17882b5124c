/* Rounding of fp32 to the two 16-bit formats (to nearest, ties to even) and back. */
#ifndef EMULATED_GPU_NARROW_FLOAT_H
#define EMULATED_GPU_NARROW_FLOAT_H

#include <cstdint>
#include <cstring>

namespace emulated
{
static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float bits_float(uint32_t bits)
{
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

/* Drops the lowest `dropped` bits. NaN keeps its sign and becomes quiet. */
static inline uint32_t round_bits(uint32_t bits, int dropped)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (bits | 0x00400000u) >> dropped;
    uint32_t odd = bits >> dropped & 1;
    return (bits + (1u << (dropped - 1)) - 1 + odd) >> dropped;
}
static inline uint16_t float_to_bf16(float x)
{
    return (float_bits(x) & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (uint16_t)round_bits(float_bits(x), 16);
}
static inline float bf16_to_float(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}
/* tf32 has fp32's range and 10 bits of mantissa. */
static inline float float_to_tf32(float x)
{
    return bits_float(round_bits(float_bits(x), 13) << 13);
}

static inline uint16_t float_to_fp16(float x)
{
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000u)
        return 0x7fff;
    if (magnitude >= 0x47800000u) /* 2^16 and infinity */
        return sign | 0x7c00;
    if (magnitude >= 0x38800000u) /* normal: 2^-14 and more; rounding may carry into infinity */
        return sign | (uint16_t)(round_bits(magnitude, 13) - ((127 - 15) << 10));
    /* Subnormal: adding 0.5 makes the processor round to a multiple of 2^-24. */
    float shifted = bits_float(magnitude) + 0.5f;
    return sign | (uint16_t)(float_bits(shifted) - 0x3f000000u);
}
static inline float fp16_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u)
        return bits_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest < 0x400u) { /* rest * 2^-24, exact */
        float magnitude = (float)rest * 5.9604644775390625e-8f;
        return bits_float(sign | float_bits(magnitude));
    }
    return bits_float(sign | ((rest << 13) + ((127u - 15u) << 23)));
}
} // namespace emulated

#endif
