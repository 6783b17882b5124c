/* Activations and their slopes, for loops the compiler turns into vector code. */
#ifndef RUNG_KERNELS_CPU_CURVES_H
#define RUNG_KERNELS_CPU_CURVES_H

#include "kernels/cpu/exponential.h"

/* gelu(x) = x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3), s the logistic function: the tanh form without a
 * tanh. */
#define GELU_A ((real)1.5957691216057308)  /* 2 sqrt(2/pi) */
#define GELU_B ((real)0.07135481627260025) /* 2 sqrt(2/pi) 0.044715 */

/* exp(-2u); s = 1 / (1 + it), and 1 - s = it * s without cancellation. */
static inline real gelu_tail(real x)
{
    return exponential(-x * (GELU_A + GELU_B * x * x));
}

/* Since the exponential ends at 1e-38 and not at 0, a term x s (1 - s) would grow far out; at this bound it
 * is nothing. NaN stays NaN. */
static inline real bounded(real x)
{
    const real far = (real)1e4;
    x = x > far ? far : x;
    return x < -far ? -far : x;
}

/* d/dx (x s) = s + x s (1 - s) (A + 3 B x^2). */
static inline real gelu_slope(real x)
{
    x = bounded(x);
    real tail = gelu_tail(x), s = 1 / (1 + tail);
    return s + x * s * (tail * s) * (GELU_A + 3 * GELU_B * x * x);
}

/* d/dx (x s(x)) = s + x s (1 - s). */
static inline real silu_slope(real x)
{
    x = bounded(x);
    real tail = exponential(-x), s = 1 / (1 + tail);
    return s + x * s * (tail * s);
}

#ifdef RUNG_REAL_DOUBLE
static inline real hyperbolic_tangent(real x)
{
    return tanh(x);
}
#else
/* (1 - e) / (1 + e), e = exp(-2 |x|); near 0, where that cancels, x + x^3 P(x^2) with the polynomial of
 * Cephes' tanhf (S. Moshier). NaN stays NaN. */
static inline real hyperbolic_tangent(real x)
{
    float size = fabsf(x), e = exponential(-2 * size), far = (1 - e) / (1 + e), z = x * x;

    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = p * z * x + x;
    return size < 0.625f ? near : copysignf(far, x);
}
#endif

#endif
