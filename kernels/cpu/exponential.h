/* exp for loops the compiler turns into vector code. */
#ifndef RUNG_KERNELS_CPU_EXPONENTIAL_H
#define RUNG_KERNELS_CPU_EXPONENTIAL_H

#include "kernels/device.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef RUNG_REAL_DOUBLE
static inline real exponential(real x)
{
    return exp(x);
}
#else
/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2)/2; exp(r) by the polynomial of Cephes' expf (S.
 * Moshier). Error below 2 units in the last place over [-87, 88]; below, the result stays at exp(-87)
 * = 1.6e-38 (no denormals); above, at exp(88) = 1.7e38. NaN stays NaN. */
static inline real exponential(real x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    float bounded = x < -87.0f ? -87.0f : x;
    bounded = bounded > 88.0f ? 88.0f : bounded;
    float shifted = bounded * 1.44269504088896341f + magic;
    float n = shifted - magic;
    float r = bounded - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;

    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;

    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits << 23) + 0x3f800000u; /* n + 127 into the exponent; magic's own bits are shifted out */
    memcpy(&power, &bits, sizeof(power));
    return p * power;
}
#endif

#endif
