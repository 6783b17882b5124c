/* gradient = gradient * mask / kept * f'(saved): a layer's way back through its dropout and its activation,
 * in one pass. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define PACK(T) (CUDA_PACK_BYTES / (int)sizeof(T))

template <typename T, int F>
__global__ void activation_backward_kernel(T *gradient, const T *saved, const unsigned char *mask,
                                           cuda_span<PACK(T)> span, const struct lane_state *state,
                                           size_t stride)
{
    const int64_t lane = blockIdx.y;
    T *g = cuda_lane(gradient, stride, lane);                          // (count)
    const T *argument = cuda_lane_or_null(saved, stride, lane);        // (count)
    const unsigned char *kept = cuda_lane_or_null(mask, stride, lane); // (count)
    const float share = kept ? cuda_dropout_of(cuda_lane(state, stride, lane)).factor : 1;

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_floats<n> v = cuda_load<n>(g + i);
        if (kept) {
            const cuda_pack<unsigned char, n> m = *(const cuda_pack<unsigned char, n> *)(kept + i);
            for (int k = 0; k < n; k++)
                v.value[k] = m.value[k] ? v.value[k] * share : 0;
        }
        if (F != DEVICE_IDENTITY) {
            const cuda_floats<n> x = cuda_load<n>(argument + i);
            for (int k = 0; k < n; k++)
                v.value[k] = cuda_activate_backward<F>(v.value[k], x.value[k]);
        }
        cuda_store_pack(g + i, v);
    });
}

extern "C" void cuda_activation_backward(struct device *device, struct lanes lanes, void *gradient,
                                         const void *saved, const unsigned char *mask, int64_t count,
                                         enum device_activation f, const struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);

    if (count <= 0 || (f == DEVICE_IDENTITY && !mask))
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        bool aligned = cuda_aligned(gradient, CUDA_PACK_BYTES) && cuda_aligned(saved, CUDA_PACK_BYTES) &&
                       cuda_aligned(mask, PACK(T));
        cuda_span<PACK(T)> span = cuda_span_of<PACK(T)>(count, aligned);
        dim3 grid = cuda_each_grid(cuda, lanes, cuda_span_work(span), CUDA_EACH_THREADS);
        cuda_with_function(f, [&](auto function) {
            CUDA_LAUNCH((activation_backward_kernel<T, decltype(function)::value>), grid, CUDA_EACH_THREADS,
                        0, cuda->stream, (T *)gradient, (const T *)saved, mask, span, state, lanes.stride);
        });
    });
    cuda_note(cuda, cudaGetLastError(), "activation_backward");
}
