/* Sums in a fixed order: by shuffles within a warp, then over the warps of a block. No atomics, so a result
 * depends on sizes alone. */
#ifndef RUNG_KERNELS_CUDA_REDUCE_CUH
#define RUNG_KERNELS_CUDA_REDUCE_CUH

#include "kernels/cuda/cuda.cuh"

#define CUDA_WARP 32
#define CUDA_REDUCE_THREADS 256

struct cuda_sum {
    template <typename T> __device__ T operator()(T x, T y) const
    {
        return x + y;
    }
};
/* NaN loses, as in fmaxf. */
struct cuda_maximum {
    __device__ float operator()(float x, float y) const
    {
        return fmaxf(x, y);
    }
};

/* Combines x over teams of TEAM neighbouring threads; all of them get the result, and all threads of the
 * block must come. TEAM: a power of 2 up to a warp, or CUDA_REDUCE_THREADS, which is then the block. */
template <int TEAM, typename T, typename F> __device__ static inline T cuda_team_combine(T x, F combine)
{
    for (int distance = (TEAM < CUDA_WARP ? TEAM : CUDA_WARP) / 2; distance > 0; distance /= 2)
        x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));
    if (TEAM > CUDA_WARP) {
        __shared__ T warps[CUDA_REDUCE_THREADS / CUDA_WARP];
        if (threadIdx.x % CUDA_WARP == 0)
            warps[threadIdx.x / CUDA_WARP] = x;
        __syncthreads();
        x = warps[0];
        for (int w = 1; w < TEAM / CUDA_WARP; w++)
            x = combine(x, warps[w]);
        __syncthreads(); /* the next call may write again */
    }
    return x;
}
template <int TEAM, typename T> __device__ static inline T cuda_team_sum(T x)
{
    return cuda_team_combine<TEAM>(x, cuda_sum());
}
/* Over a block of CUDA_REDUCE_THREADS threads, one-dimensional. */
template <typename T> __device__ static inline T cuda_block_sum(T x)
{
    return cuda_team_combine<CUDA_REDUCE_THREADS>(x, cuda_sum());
}

/* The workspace's first half is for partial results, its second for answers to the host. */
#define CUDA_PARTIAL_BYTES (CUDA_WORKSPACE_BYTES / 2)
static inline void *cuda_answers(const struct cuda_device *cuda)
{
    return (char *)cuda->workspace + CUDA_PARTIAL_BYTES;
}

/* As many lanes as a grid can have and find room for their partial results, `bytes` each (0: none). */
static inline int64_t cuda_lanes_at_once(struct lanes lanes, size_t bytes)
{
    int64_t most = 65535, fit = bytes ? (int64_t)(CUDA_PARTIAL_BYTES / bytes) : most;

    most = fit < most ? fit : most;
    return most < lanes.count ? most : lanes.count;
}

#endif
