/* The 16-bit copy of parameters that products read. */
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define PACK (CUDA_PACK_BYTES / (int)sizeof(float))

template <typename T>
__global__ void store_kernel(T *stored, const float *x, cuda_span<PACK> span, size_t stride)
{
    T *to = cuda_lane(stored, stride, blockIdx.y);        // (count)
    const float *from = cuda_lane(x, stride, blockIdx.y); // (count)

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_store_pack(to + i, cuda_load<n>(from + i));
    });
}

extern "C" void cuda_store(struct device *device, struct lanes lanes, void *stored, const real *x,
                           int64_t count)
{
    struct cuda_device *cuda = cuda_of(device);

    if (count <= 0 || device_stored_size(lanes.precision) == sizeof(real))
        return;
    cuda_with_stored(lanes.precision, [&](auto tag) {
        typedef decltype(tag) T;
        bool aligned = cuda_aligned(stored, PACK * sizeof(T)) && cuda_aligned(x, CUDA_PACK_BYTES);
        cuda_span<PACK> span = cuda_span_of<PACK>(count, aligned);
        dim3 grid = cuda_each_grid(cuda, lanes, cuda_span_work(span), CUDA_EACH_THREADS);
        CUDA_LAUNCH(store_kernel<T>, grid, CUDA_EACH_THREADS, 0, cuda->stream, (T *)stored, x, span,
                    lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "store");
}
