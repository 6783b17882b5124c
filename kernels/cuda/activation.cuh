/* Activation functions and their slopes, of one element. */
#ifndef RUNG_KERNELS_CUDA_ACTIVATION_CUH
#define RUNG_KERNELS_CUDA_ACTIVATION_CUH

#include "kernels/cuda/cuda.cuh"

/* The tanh form of gelu is x s(u), s the logistic function and u = x (A + B x^2). */
#define CUDA_GELU_A 1.5957691216057308f  /* 2 sqrt(2/pi) */
#define CUDA_GELU_B 0.07135481627260025f /* 2 sqrt(2/pi) 0.044715 */
/* Beyond it the slope is 0 or 1 to the last bit; x^2 would leave float32 far out, and 0 times infinity is
 * NaN.
 */
#define CUDA_GELU_FAR 1e4f

/* s(u) and 1 - s(u), both without cancellation or overflow. */
struct cuda_logistic {
    float s, rest;
};
__device__ static inline cuda_logistic cuda_logistic_of(float u)
{
    float t = expf(-fabsf(u)), near_one = 1 / (1 + t), near_zero = t * near_one;

    return u < 0 ? cuda_logistic{near_zero, near_one} : cuda_logistic{near_one, near_zero};
}

__device__ static inline float cuda_gelu_argument(float x)
{
    return x * (CUDA_GELU_A + CUDA_GELU_B * x * x);
}

/* d/dx (x s(u)) = s + x s (1 - s) (A + 3 B x^2) */
__device__ static inline float cuda_gelu_slope(float x)
{
    x = x > CUDA_GELU_FAR ? CUDA_GELU_FAR : x; /* NaN stays NaN */
    x = x < -CUDA_GELU_FAR ? -CUDA_GELU_FAR : x;
    cuda_logistic l = cuda_logistic_of(cuda_gelu_argument(x));
    return l.s + x * (l.s * l.rest) * (CUDA_GELU_A + 3 * CUDA_GELU_B * x * x);
}

template <int F> __device__ static inline float cuda_activate(float x)
{
    if (F == DEVICE_RELU)
        return x < 0 ? 0 : x; /* NaN stays NaN */
    if (F == DEVICE_GELU)
        return x * cuda_logistic_of(cuda_gelu_argument(x)).s;
    if (F == DEVICE_SILU)
        return x * cuda_logistic_of(x).s;
    if (F == DEVICE_TANH)
        return tanhf(x);
    return x;
}

/* gradient * f', from what f saves (device_saves_argument). */
template <int F> __device__ static inline float cuda_activate_backward(float gradient, float saved)
{
    if (F == DEVICE_RELU)
        return saved > 0 ? gradient : 0;
    if (F == DEVICE_GELU)
        return gradient * cuda_gelu_slope(saved);
    if (F == DEVICE_SILU) {
        cuda_logistic l = cuda_logistic_of(saved);
        return gradient * (l.s + saved * (l.s * l.rest));
    }
    if (F == DEVICE_TANH)
        return gradient * (1 - saved * saved);
    return gradient;
}

/* Calls launch(cuda_function<F>()). */
template <int F> struct cuda_function {
    static const int value = F;
};
template <typename L> static inline void cuda_with_function(enum device_activation f, L launch)
{
    if (f == DEVICE_RELU)
        launch(cuda_function<DEVICE_RELU>());
    else if (f == DEVICE_GELU)
        launch(cuda_function<DEVICE_GELU>());
    else if (f == DEVICE_SILU)
        launch(cuda_function<DEVICE_SILU>());
    else if (f == DEVICE_TANH)
        launch(cuda_function<DEVICE_TANH>());
    else
        launch(cuda_function<DEVICE_IDENTITY>());
}

#endif
