/* The sum of squares of a lane's block of parameters, in float64: too small to overflow, so it is finite
 * exactly if every element is. */
#ifndef RUNG_KERNELS_CUDA_SQUARES_CUH
#define RUNG_KERNELS_CUDA_SQUARES_CUH

#include "kernels/cuda/partial.cuh"

#define CUDA_SQUARES_PACK (CUDA_PACK_BYTES / (int)sizeof(float))
#define CUDA_SQUARES_ALONE 32768   /* up to here one block is quicker than two kernels */
#define CUDA_SQUARES_ELEMENTS 8192 /* of each of several blocks */
#define CUDA_SQUARES_BLOCKS 512

template <typename END>
__global__ void cuda_squares_kernel(const float *x, cuda_span<CUDA_SQUARES_PACK> span, size_t stride,
                                    cuda_partials partials, END end)
{
    const float *from = cuda_lane(x, stride, cuda_partials_lane(partials)); // (count)
    double sum = 0;

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        const cuda_floats<n> v = cuda_load<n>(from + i);
        for (int k = 0; k < n; k++)
            sum += (double)v.value[k] * (double)v.value[k];
    });
    cuda_partials_end(partials, sum, end);
}

template <typename END>
static inline void cuda_squares(struct cuda_device *cuda, struct lanes lanes, const float *x, int64_t count,
                                END end, const char *what)
{
    cuda_span<CUDA_SQUARES_PACK> span =
        cuda_span_of<CUDA_SQUARES_PACK>(count, cuda_aligned(x, CUDA_PACK_BYTES));
    int64_t blocks = cuda_divide_up(count, CUDA_SQUARES_ELEMENTS);

    blocks = count <= CUDA_SQUARES_ALONE ? 1 : blocks < CUDA_SQUARES_BLOCKS ? blocks : CUDA_SQUARES_BLOCKS;
    cuda_partials_sum(cuda, lanes, blocks, end, what, [&](dim3 grid, cuda_partials partials) {
        CUDA_LAUNCH(cuda_squares_kernel<END>, grid, CUDA_REDUCE_THREADS, 0, cuda->stream, x, span,
                    lanes.stride, partials, end);
    });
}

#endif
