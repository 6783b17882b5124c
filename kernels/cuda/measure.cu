/* The gradient's norm, whether it is finite, and what an update multiplies it by. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/squares.cuh"

struct measure_end {
    struct lane_state *state;
    size_t stride;

    __device__ void operator()(int64_t lane, double sum) const
    {
        struct lane_state *own = cuda_lane(state, stride, lane);
        const double norm = sqrt(sum) / own->loss_scale;
        const double clip = own->clip_norm > 0 ? own->clip_norm / (norm + 1e-6) : 1;

        own->finite = isfinite(sum) ? 1 : 0;
        own->gradient_norm = norm;
        own->gradient_factor = (clip < 1 ? clip : 1) / own->loss_scale;
    }
};

extern "C" void cuda_measure_gradient(struct device *device, struct lanes lanes, const real *gradient,
                                      int64_t count, struct lane_state *state)
{
    cuda_squares(cuda_of(device), lanes, gradient, count, measure_end{state, lanes.stride},
                 "measure_gradient");
}
