/* What of dropout its forward and its backward pass share. */
#ifndef RUNG_KERNELS_CUDA_DROPOUT_CUH
#define RUNG_KERNELS_CUDA_DROPOUT_CUH

#include "kernels/cuda/cuda.cuh"

struct cuda_dropout_numbers {
    uint32_t threshold; /* t: half words below it drop */
    float factor;       /* 1 / (1 - t / 2^16), of the probability there is, so that the mean is kept */
};

__device__ static inline cuda_dropout_numbers cuda_dropout_of(const struct lane_state *state)
{
    const double t = state->dropout * 65536 + 0.5;
    const uint32_t threshold = t < 65535 ? (uint32_t)t : 65535;

    return {threshold, (float)(65536.0 / (65536.0 - threshold))};
}

#endif
