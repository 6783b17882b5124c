/* Sums in float64 over all of a lane's blocks: each block leaves its part in the workspace, then one block
 * adds them in their order; a lane of one block needs no second kernel. How a lane is cut into blocks must
 * depend on sizes only.
 *
 * END: what is done with the sum, by one thread: end(lane, sum). */
#ifndef RUNG_KERNELS_CUDA_PARTIAL_CUH
#define RUNG_KERNELS_CUDA_PARTIAL_CUH

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

/* Lane first_lane + blockIdx.y is here. */
struct cuda_partials {
    double *part; // (lanes at once, blocks)
    int64_t first_lane;
};

__device__ static inline int64_t cuda_partials_lane(cuda_partials partials)
{
    return partials.first_lane + blockIdx.y;
}

/* The end of a kernel whose threads hold `sum`; blocks of CUDA_REDUCE_THREADS. */
template <typename END>
__device__ static inline void cuda_partials_end(cuda_partials partials, double sum, END end)
{
    sum = cuda_block_sum(sum);
    if (threadIdx.x > 0)
        return;
    if (gridDim.x == 1)
        end(cuda_partials_lane(partials), sum);
    else
        partials.part[(int64_t)blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

template <typename END> __global__ void cuda_partials_kernel(cuda_partials partials, int64_t blocks, END end)
{
    const double *part = partials.part + blockIdx.y * blocks;
    double sum = 0;

    for (int64_t i = threadIdx.x; i < blocks; i += CUDA_REDUCE_THREADS)
        sum += part[i];
    sum = cuda_block_sum(sum);
    if (threadIdx.x == 0)
        end(cuda_partials_lane(partials), sum);
}

/* launch(grid, partials): the kernel that ends with cuda_partials_end, in blocks of CUDA_REDUCE_THREADS. */
template <typename END, typename L>
static inline void cuda_partials_sum(struct cuda_device *cuda, struct lanes lanes, int64_t blocks, END end,
                                     const char *what, L launch)
{
    int64_t most = cuda_lanes_at_once(lanes, blocks > 1 ? (size_t)blocks * sizeof(double) : 0);

    for (int64_t first = 0; first < lanes.count; first += most) {
        int64_t count = lanes.count - first < most ? lanes.count - first : most;
        cuda_partials partials = {(double *)cuda->workspace, first};

        launch(dim3((unsigned)blocks, (unsigned)count), partials);
        cuda_note(cuda, cudaGetLastError(), what);
        if (blocks == 1)
            continue;
        CUDA_LAUNCH(cuda_partials_kernel<END>, dim3(1, (unsigned)count), CUDA_REDUCE_THREADS, 0, cuda->stream,
                    partials, blocks, end);
        cuda_note(cuda, cudaGetLastError(), what);
    }
}

#endif
