/* What moves a lane's state on: the learning rate at a step's begin, its counters and loss scale at its end.
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define THREADS 128 /* a lane each */

__global__ void step_begin_kernel(struct lane_state *state, const double *rates, int64_t lanes, size_t stride)
{
    const int64_t lane = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (lane >= lanes)
        return;
    struct lane_state *own = cuda_lane(state, stride, lane);
    own->learning_rate = cuda_lane(rates, stride, lane)[own->step - own->epoch_first]; // (steps of the epoch)
}

__global__ void step_end_kernel(struct lane_state *state, int64_t lanes, size_t stride)
{
    const int64_t lane = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (lane < lanes)
        lane_state_end_step(cuda_lane(state, stride, lane));
}

static unsigned blocks_of(struct lanes lanes)
{
    return (unsigned)((lanes.count + THREADS - 1) / THREADS);
}

extern "C" void cuda_step_begin(struct device *device, struct lanes lanes, struct lane_state *state,
                                const double *rates)
{
    struct cuda_device *cuda = cuda_of(device);

    CUDA_LAUNCH(step_begin_kernel, blocks_of(lanes), THREADS, 0, cuda->stream, state, rates, lanes.count,
                lanes.stride);
    cuda_note(cuda, cudaGetLastError(), "step_begin");
}

extern "C" void cuda_step_end(struct device *device, struct lanes lanes, struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);

    CUDA_LAUNCH(step_end_kernel, blocks_of(lanes), THREADS, 0, cuda->stream, state, lanes.count,
                lanes.stride);
    cuda_note(cuda, cudaGetLastError(), "step_end");
}
