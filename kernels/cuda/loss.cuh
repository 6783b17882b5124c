/* Losses with their gradients in one pass: the sum of the losses goes to the lane's state. */
#ifndef RUNG_KERNELS_CUDA_LOSS_CUH
#define RUNG_KERNELS_CUDA_LOSS_CUH

#include "kernels/cuda/partial.cuh"

struct cuda_loss_end {
    struct lane_state *state;
    size_t stride;

    __device__ void operator()(int64_t lane, double sum) const
    {
        cuda_lane(state, stride, lane)->loss += sum;
    }
};

/* A loss of single elements is a struct with
 *     LOSS of_lane(size_t stride, int64_t lane, const struct lane_state *own): itself, with a lane's tensors;
 *     double at(int64_t i, float *slope): the loss of element i and its derivative. */
template <typename T, typename LOSS>
__global__ void cuda_loss_kernel(T *gradient, LOSS loss, int64_t count, double scale,
                                 struct lane_state *state, size_t stride, cuda_partials partials)
{
    const int64_t lane = cuda_partials_lane(partials);
    const struct lane_state *own = cuda_lane(state, stride, lane);
    const LOSS here = loss.of_lane(stride, lane, own);
    const float factor = (float)(scale * own->loss_scale);
    T *to = cuda_lane(gradient, stride, lane); // (count)
    double sum = 0;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_REDUCE_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * CUDA_REDUCE_THREADS) {
        float slope;
        sum += here.at(i, &slope);
        cuda_set(&to[i], factor * slope);
    }
    cuda_partials_end(partials, sum, cuda_loss_end{state, stride});
}

#define CUDA_LOSS_ELEMENTS 1024 /* of a block: few enough to be quick, enough to need no second kernel */
#define CUDA_LOSS_BLOCKS 512

template <typename LOSS>
static inline void cuda_loss(struct device *device, struct lanes lanes, void *gradient, LOSS loss,
                             int64_t count, double scale, struct lane_state *state, const char *what)
{
    struct cuda_device *cuda = cuda_of(device);
    int64_t blocks = cuda_divide_up(count, CUDA_LOSS_ELEMENTS);

    if (count <= 0)
        return;
    blocks = blocks < CUDA_LOSS_BLOCKS ? blocks : CUDA_LOSS_BLOCKS;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        cuda_loss_end end = {state, lanes.stride};
        cuda_partials_sum(cuda, lanes, blocks, end, what, [&](dim3 grid, cuda_partials partials) {
            CUDA_LAUNCH((cuda_loss_kernel<T, LOSS>), grid, CUDA_REDUCE_THREADS, 0, cuda->stream,
                        (T *)gradient, loss, count, scale, state, lanes.stride, partials);
        });
    });
}

#endif
