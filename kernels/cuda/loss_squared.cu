/* Losses of regression: (prediction - target)^2, and Huber's, which grows only linearly beyond a bound. */
#include "kernels/cuda/loss.cuh"
#include "kernels/cuda/operations.h"

struct squared_loss {
    const float *prediction, *target; // (count)

    __device__ squared_loss of_lane(size_t stride, int64_t lane, const struct lane_state *) const
    {
        return {cuda_lane(prediction, stride, lane), cuda_lane(target, stride, lane)};
    }
    __device__ double at(int64_t i, float *slope) const
    {
        const float difference = prediction[i] - target[i];
        *slope = 2 * difference;
        return (double)difference * (double)difference;
    }
};

extern "C" void cuda_squared_error(struct device *device, struct lanes lanes, void *gradient,
                                   const real *prediction, const real *target, int64_t count, double scale,
                                   struct lane_state *state)
{
    cuda_loss(device, lanes, gradient, squared_loss{prediction, target}, count, scale, state,
              "squared_error");
}

struct huber_loss {
    const float *prediction, *target; // (count)
    double delta;

    __device__ huber_loss of_lane(size_t stride, int64_t lane, const struct lane_state *own) const
    {
        return {cuda_lane(prediction, stride, lane), cuda_lane(target, stride, lane), own->huber_delta};
    }
    __device__ double at(int64_t i, float *slope) const
    {
        const float difference = prediction[i] - target[i];
        const double r = fabs((double)difference);
        if (r > delta) {
            *slope = difference < 0 ? (float)-delta : (float)delta;
            return delta * (r - delta / 2);
        }
        *slope = difference;
        return r * r / 2; /* NaN comes here */
    }
};

extern "C" void cuda_huber_error(struct device *device, struct lanes lanes, void *gradient,
                                 const real *prediction, const real *target, int64_t count, double scale,
                                 struct lane_state *state)
{
    cuda_loss(device, lanes, gradient, huber_loss{prediction, target, 0}, count, scale, state, "huber_error");
}
