/* y = f(y + bias), for products without an epilogue. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define PACK (CUDA_PACK_BYTES / (int)sizeof(float))

template <typename Y, typename T, int F, int N>
__global__ void bias_activation_kernel(Y *y, T *before, const float *bias, int64_t rows, int64_t columns,
                                       size_t stride)
{
    const int64_t lane = blockIdx.z, first = N * cuda_tile_column();
    Y *to = cuda_lane(y, stride, lane);                // (rows, columns)
    T *keep = cuda_lane_or_null(before, stride, lane); // (rows, columns)
    const float *own = cuda_lane(bias, stride, lane);  // (columns)
    cuda_floats<N> b;

    if (first >= columns)
        return;
    for (int k = 0; k < N; k++)
        b.value[k] = own[first + k];
    cuda_each_row(rows, [&](int64_t row) {
        const int64_t i = row * columns + first;
        cuda_floats<N> v = cuda_load<N>(to + i);
        for (int k = 0; k < N; k++)
            v.value[k] += b.value[k];
        if (keep)
            cuda_store_pack(keep + i, v);
        for (int k = 0; k < N; k++)
            v.value[k] = cuda_activate<F>(v.value[k]);
        cuda_store_pack(to + i, v);
    });
}

template <typename Y, typename T, int F>
static void launch(struct cuda_device *cuda, struct lanes lanes, Y *y, T *before, const real *bias,
                   int64_t rows, int64_t columns)
{
    bool aligned =
        columns % PACK == 0 && cuda_aligned(y, PACK * sizeof(Y)) && cuda_aligned(before, PACK * sizeof(T));
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, rows, aligned ? columns / PACK : columns);

    if (aligned)
        CUDA_LAUNCH((bias_activation_kernel<Y, T, F, PACK>), tiles.grid, tiles.block, 0, cuda->stream, y,
                    before, bias, rows, columns, lanes.stride);
    else
        CUDA_LAUNCH((bias_activation_kernel<Y, T, F, 1>), tiles.grid, tiles.block, 0, cuda->stream, y, before,
                    bias, rows, columns, lanes.stride);
}

extern "C" void cuda_bias_activation(struct cuda_device *cuda, struct lanes lanes, void *y, void *before,
                                     const real *bias, int64_t rows, int64_t columns,
                                     enum device_activation f, bool wide)
{
    if (rows <= 0 || columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        cuda_with_function(f, [&](auto function) {
            const int F = decltype(function)::value;
            if (wide)
                launch<float, T, F>(cuda, lanes, (float *)y, (T *)before, bias, rows, columns);
            else
                launch<T, T, F>(cuda, lanes, (T *)y, (T *)before, bias, rows, columns);
        });
    });
    cuda_note(cuda, cudaGetLastError(), "bias_activation");
}
