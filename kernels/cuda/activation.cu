/* Element-wise operations of a layer: y = f(x), and y += x for residual blocks. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define PACK(T) (CUDA_PACK_BYTES / (int)sizeof(T))

template <typename T, int F>
__global__ void activation_kernel(T *y, const T *x, cuda_span<PACK(T)> span, size_t stride)
{
    T *to = cuda_lane(y, stride, blockIdx.y);         // (count)
    const T *from = cuda_lane(x, stride, blockIdx.y); // (count)

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_floats<n> v = cuda_load<n>(from + i);
        for (int k = 0; k < n; k++)
            v.value[k] = cuda_activate<F>(v.value[k]);
        cuda_store_pack(to + i, v);
    });
}

extern "C" void cuda_activation(struct device *device, struct lanes lanes, void *y, const void *x,
                                int64_t count, enum device_activation f)
{
    struct cuda_device *cuda = cuda_of(device);

    if (count <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        bool aligned = cuda_aligned(y, CUDA_PACK_BYTES) && cuda_aligned(x, CUDA_PACK_BYTES);
        cuda_span<PACK(T)> span = cuda_span_of<PACK(T)>(count, aligned);
        dim3 grid = cuda_each_grid(cuda, lanes, cuda_span_work(span), CUDA_EACH_THREADS);
        cuda_with_function(f, [&](auto function) {
            CUDA_LAUNCH((activation_kernel<T, decltype(function)::value>), grid, CUDA_EACH_THREADS, 0,
                        cuda->stream, (T *)y, (const T *)x, span, lanes.stride);
        });
    });
    cuda_note(cuda, cudaGetLastError(), "activation");
}

template <typename T> __global__ void add_kernel(T *y, const T *x, cuda_span<PACK(T)> span, size_t stride)
{
    T *to = cuda_lane(y, stride, blockIdx.y);         // (count)
    const T *from = cuda_lane(x, stride, blockIdx.y); // (count)

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_floats<n> v = cuda_load<n>(to + i), more = cuda_load<n>(from + i);
        for (int k = 0; k < n; k++)
            v.value[k] += more.value[k];
        cuda_store_pack(to + i, v);
    });
}

extern "C" void cuda_add(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count)
{
    struct cuda_device *cuda = cuda_of(device);

    if (count <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        bool aligned = cuda_aligned(y, CUDA_PACK_BYTES) && cuda_aligned(x, CUDA_PACK_BYTES);
        cuda_span<PACK(T)> span = cuda_span_of<PACK(T)>(count, aligned);
        dim3 grid = cuda_each_grid(cuda, lanes, cuda_span_work(span), CUDA_EACH_THREADS);
        CUDA_LAUNCH(add_kernel<T>, grid, CUDA_EACH_THREADS, 0, cuda->stream, (T *)y, (const T *)x, span,
                    lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "add");
}
