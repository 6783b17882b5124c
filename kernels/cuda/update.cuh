/* What optimizer steps share: a lane's numbers, made from its state once a block, and the rules that move one
 * weight (formulas in kernels/device.h). */
#ifndef RUNG_KERNELS_CUDA_UPDATE_CUH
#define RUNG_KERNELS_CUDA_UPDATE_CUH

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"

/* The block's pointers; a lane's are cuda_update_of. */
struct cuda_update_tensors {
    float *weight;         // (count)
    const float *gradient; // (count)
    float *moment[2];      // (count) each, or NULL
    void *stored;          // (count), or NULL
    int64_t count, decayed;
    bool aligned; /* all of them, for packs of CUDA_UPDATE_PACK */
};
#define CUDA_UPDATE_PACK (CUDA_PACK_BYTES / (int)sizeof(float))

static inline cuda_update_tensors cuda_update_all(struct lanes lanes, const struct device_parameters *all)
{
    size_t stored = CUDA_UPDATE_PACK * device_stored_size(lanes.precision);
    bool aligned = cuda_aligned(all->weight, CUDA_PACK_BYTES) &&
                   cuda_aligned(all->gradient, CUDA_PACK_BYTES) &&
                   cuda_aligned(all->moment[0], CUDA_PACK_BYTES) &&
                   cuda_aligned(all->moment[1], CUDA_PACK_BYTES) && cuda_aligned(all->stored, stored);

    return {all->weight,  all->gradient, {all->moment[0], all->moment[1]}, all->stored, all->count,
            all->decayed, aligned};
}
__device__ static inline cuda_update_tensors cuda_update_of(cuda_update_tensors all, size_t stride,
                                                            int64_t lane)
{
    all.weight = cuda_lane(all.weight, stride, lane);
    all.gradient = cuda_lane(all.gradient, stride, lane);
    all.moment[0] = cuda_lane_or_null(all.moment[0], stride, lane);
    all.moment[1] = cuda_lane_or_null(all.moment[1], stride, lane);
    all.stored = cuda_lane_or_null((char *)all.stored, stride, lane);
    return all;
}

struct cuda_update_numbers {
    float factor; /* of the gradient */
    float rate, decay, momentum;
    float beta1, beta2, share1, share2; /* share: 1 - beta */
    float unbias1, root2;               /* 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
    float epsilon;
    bool nesterov;
};

/* x^n by squaring: pow would take longer than all the rest of a small update. */
__device__ static inline double cuda_power(double x, int64_t n)
{
    double y = 1;

    for (; n > 0; n /= 2, x *= x)
        y = n % 2 ? y * x : y;
    return y;
}

/* Two threads, of two warps, read them for their block, all of which must come. */
__device__ static inline cuda_update_numbers cuda_update_read(const struct lane_state *state)
{
    __shared__ cuda_update_numbers numbers;

    if (threadIdx.x == 32) /* the other half of what takes long */
        numbers.root2 = (float)(1 / sqrt(1 - cuda_power(state->beta2, state->updates + 1)));
    if (threadIdx.x == 0) {
        numbers.factor = (float)state->gradient_factor;
        numbers.rate = (float)state->learning_rate;
        numbers.decay = (float)state->weight_decay;
        numbers.momentum = (float)state->momentum;
        numbers.beta1 = (float)state->beta1;
        numbers.beta2 = (float)state->beta2;
        numbers.share1 = (float)(1 - state->beta1);
        numbers.share2 = (float)(1 - state->beta2);
        numbers.unbias1 = (float)(1 / (1 - cuda_power(state->beta1, state->updates + 1)));
        numbers.epsilon = (float)state->epsilon;
        numbers.nesterov = state->nesterov != 0;
    }
    __syncthreads();
    return numbers;
}

/* Moments without a gradient decay into nothing that could move a weight; they end as 0, as on every backend.
 */
__device__ static inline float cuda_flush(float x)
{
    return fabsf(x) < 1e-30f ? 0 : x; /* NaN stays */
}

/* Moments' new values in place, then the step they give: (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) +
 * epsilon). */
__device__ static inline float cuda_adam_direction(const cuda_update_numbers &a, float mean, float square)
{
    return mean * a.unbias1 / (sqrtf(square) * a.root2 + a.epsilon);
}
__device__ static inline float cuda_adam_move(const cuda_update_numbers &a, float g, float *mean,
                                              float *square)
{
    *mean = cuda_flush(a.beta1 * *mean + a.share1 * g);
    *square = cuda_flush(a.beta2 * *square + a.share2 * g * g);
    return cuda_adam_direction(a, *mean, *square);
}
__device__ static inline float cuda_sgd_move(const cuda_update_numbers &a, float g, float *velocity)
{
    *velocity = cuda_flush(a.momentum * *velocity + g);
    return a.nesterov ? g + a.momentum * *velocity : *velocity;
}

/* One step of lamb or lars, which give each tensor a rate of its own (update_trust.cu). */
void cuda_update_trusted(struct cuda_device *cuda, struct lanes lanes, enum device_optimizer optimizer,
                         cuda_update_tensors all, const struct device_parameters *parameters,
                         const struct lane_state *state);

#endif
