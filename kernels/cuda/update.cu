/* Optimizer steps that know no tensors: one pass over a lane's flat block of parameters. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/update.cuh"

/* Rules: move(numbers, decay (0 beyond the decayed part), gradient, weight and moments in place). */
struct rule_plain {
    static const int moments = 0;
    __device__ static void move(const cuda_update_numbers &a, float decay, float g, float *w, float *,
                                float *)
    {
        *w -= a.rate * (g + decay * *w);
    }
};
struct rule_momentum {
    static const int moments = 1;
    __device__ static void move(const cuda_update_numbers &a, float decay, float g, float *w, float *velocity,
                                float *)
    {
        *w -= a.rate * cuda_sgd_move(a, g + decay * *w, velocity);
    }
};
struct rule_adam {
    static const int moments = 2;
    __device__ static void move(const cuda_update_numbers &a, float decay, float g, float *w, float *mean,
                                float *square)
    {
        *w -= a.rate * cuda_adam_move(a, g + decay * *w, mean, square);
    }
};
struct rule_adamw {
    static const int moments = 2;
    __device__ static void move(const cuda_update_numbers &a, float decay, float g, float *w, float *mean,
                                float *square)
    {
        *w -= a.rate * decay * *w;
        *w -= a.rate * cuda_adam_move(a, g, mean, square);
    }
};

/* T: of the stored copy. */
template <typename T, typename RULE>
__global__ void update_kernel(cuda_update_tensors all, const struct lane_state *state, size_t stride)
{
    const struct lane_state *own = cuda_lane(state, stride, blockIdx.y);
    const cuda_update_tensors t = cuda_update_of(all, stride, blockIdx.y);

    if (!own->finite)
        return; /* the whole block */
    const cuda_update_numbers a = cuda_update_read(own);
    cuda_each(cuda_span_of<CUDA_UPDATE_PACK>(t.count, t.aligned), [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_floats<n> w = cuda_load<n>(t.weight + i), m = {}, v = {};
        const cuda_floats<n> g = cuda_load<n>(t.gradient + i);
        if (RULE::moments > 0)
            m = cuda_load<n>(t.moment[0] + i);
        if (RULE::moments > 1)
            v = cuda_load<n>(t.moment[1] + i);
        for (int k = 0; k < n; k++)
            RULE::move(a, i + k < t.decayed ? a.decay : 0, g.value[k] * a.factor, &w.value[k], &m.value[k],
                       &v.value[k]);
        cuda_store_pack(t.weight + i, w);
        if (RULE::moments > 0)
            cuda_store_pack(t.moment[0] + i, m);
        if (RULE::moments > 1)
            cuda_store_pack(t.moment[1] + i, v);
        if (t.stored)
            cuda_store_pack((T *)t.stored + i, w);
    });
}

template <typename RULE>
static void launch(struct cuda_device *cuda, struct lanes lanes, cuda_update_tensors all,
                   const struct lane_state *state)
{
    int64_t work = cuda_span_work(cuda_span_of<CUDA_UPDATE_PACK>(all.count, all.aligned));
    dim3 grid = cuda_each_grid(cuda, lanes, work, CUDA_EACH_THREADS);

    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        CUDA_LAUNCH((update_kernel<T, RULE>), grid, CUDA_EACH_THREADS, 0, cuda->stream, all, state,
                    lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "update");
}

extern "C" void cuda_update(struct device *device, struct lanes lanes, enum device_optimizer optimizer,
                            const struct device_parameters *parameters, const struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);
    cuda_update_tensors all = cuda_update_all(lanes, parameters);

    if (parameters->count <= 0)
        return;
    if (optimizer == DEVICE_LAMB || optimizer == DEVICE_LARS)
        cuda_update_trusted(cuda, lanes, optimizer, all, parameters, state);
    else if (optimizer == DEVICE_ADAM)
        launch<rule_adam>(cuda, lanes, all, state);
    else if (optimizer == DEVICE_ADAMW)
        launch<rule_adamw>(cuda, lanes, all, state);
    else if (all.moment[0])
        launch<rule_momentum>(cuda, lanes, all, state);
    else
        launch<rule_plain>(cuda, lanes, all, state);
}
