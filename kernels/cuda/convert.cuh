/* Typed access: stored tensors are float, bf16 or fp16 in memory and float in registers; packs of elements
 * are moved by one access of up to 16 bytes where pointers allow it. */
#ifndef RUNG_KERNELS_CUDA_CONVERT_CUH
#define RUNG_KERNELS_CUDA_CONVERT_CUH

#include "kernels/cuda/cuda.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static_assert(sizeof(real) == sizeof(float), "the float64 build has no plugins");

__device__ static inline float cuda_to_float(float x)
{
    return x;
}
__device__ static inline float cuda_to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
__device__ static inline float cuda_to_float(__half x)
{
    return __half2float(x);
}

__device__ static inline void cuda_set(float *to, float x)
{
    *to = x;
}
__device__ static inline void cuda_set(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16(x);
}
__device__ static inline void cuda_set(__half *to, float x)
{
    *to = __float2half(x);
}

/* N elements in registers, and in memory at a multiple of their size. */
template <int N> struct cuda_floats {
    float value[N];
};
template <typename T, int N> struct alignas(sizeof(T) * N) cuda_pack {
    T value[N];
};

/* Bytes of the largest access there is. */
#define CUDA_PACK_BYTES 16

template <int N, typename T> __device__ static inline cuda_floats<N> cuda_load(const T *from)
{
    const cuda_pack<T, N> pack = *(const cuda_pack<T, N> *)from;
    cuda_floats<N> x;
    for (int k = 0; k < N; k++)
        x.value[k] = cuda_to_float(pack.value[k]);
    return x;
}
template <int N, typename T> __device__ static inline void cuda_store_pack(T *to, const cuda_floats<N> &x)
{
    cuda_pack<T, N> pack;
    for (int k = 0; k < N; k++)
        cuda_set(&pack.value[k], x.value[k]);
    *(cuda_pack<T, N> *)to = pack;
}

/* Are all lanes' tensors at p (may be NULL) aligned for packs of `bytes`? Lanes lie DEVICE_ALIGNMENT apart.
 */
static inline bool cuda_aligned(const void *p, size_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}

/* Calls launch(T()) with the type T of stored tensors. */
template <typename F> static inline void cuda_with_stored(enum device_precision precision, F launch)
{
    if (precision == DEVICE_BF16)
        launch(__nv_bfloat16());
    else if (precision == DEVICE_FP16)
        launch(__half());
    else
        launch(float());
}

#endif
