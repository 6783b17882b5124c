/* Binary cross-entropy of logits: w (softplus(z) - z q), derivative w (s(z) - q), s the logistic function. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/loss.cuh"
#include "kernels/cuda/operations.h"

struct binary_loss {
    const float *logits;       // (rows)
    const int32_t *label;      // (rows)
    const float *class_weight; // (2), shared; NULL: 1 each
    float smoothing;

    __device__ binary_loss of_lane(size_t stride, int64_t lane, const struct lane_state *own) const
    {
        return {cuda_lane(logits, stride, lane), cuda_lane(label, stride, lane), class_weight,
                (float)own->label_smoothing};
    }
    __device__ double at(int64_t i, float *slope) const
    {
        const float z = logits[i], w = class_weight ? class_weight[label[i]] : 1;
        const float q = label[i] * (1 - smoothing) + smoothing / 2;
        const float softplus = (z > 0 ? z : 0) + log1pf(expf(-fabsf(z)));
        *slope = w * (cuda_logistic_of(z).s - q);
        return (double)w * ((double)softplus - (double)z * (double)q);
    }
};

extern "C" void cuda_binary_cross_entropy(struct device *device, struct lanes lanes, void *gradient,
                                          const real *logits, const int32_t *label, const real *class_weight,
                                          int64_t rows, double scale, struct lane_state *state)
{
    cuda_loss(device, lanes, gradient, binary_loss{logits, label, class_weight, 0}, rows, scale, state,
              "binary_cross_entropy");
}
