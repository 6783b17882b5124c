/* What normalisations share. */
#ifndef RUNG_KERNELS_CUDA_NORM_CUH
#define RUNG_KERNELS_CUDA_NORM_CUH

#define CUDA_NORM_EPSILON 1e-5f

/* Mean and 1 / sqrt(variance + epsilon) of a set, as they are saved. */
struct cuda_norm {
    float mean, inverse;
};

__device__ static inline float cuda_norm_inverse(float variance)
{
    return 1 / sqrtf(variance + CUDA_NORM_EPSILON);
}

#endif
