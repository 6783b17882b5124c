/* y = f(product + bias), for products without an epilogue. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define PACK (CUDA_PACK_BYTES / (int)sizeof(float))

/* X, Y: of the product and of y; T: of stored tensors. */
template <typename X, typename Y, typename T> struct bias_problem {
    Y *y;              // (rows, columns)
    T *before;         // (rows, columns), or NULL
    const X *product;  // (rows, columns), may be y
    const float *bias; // (columns)
    int64_t rows, columns;
    size_t stride, product_stride; /* of the lanes */
};

template <int F, int N, typename X, typename Y, typename T>
__global__ void bias_activation_kernel(bias_problem<X, Y, T> problem)
{
    const int64_t lane = blockIdx.z, first = N * cuda_tile_column(), columns = problem.columns;
    const X *from = cuda_lane(problem.product, problem.product_stride, lane);
    Y *to = cuda_lane(problem.y, problem.stride, lane);
    T *keep = cuda_lane_or_null(problem.before, problem.stride, lane);
    const float *bias = cuda_lane(problem.bias, problem.stride, lane);
    cuda_floats<N> b;

    if (first >= columns)
        return;
    for (int k = 0; k < N; k++)
        b.value[k] = bias[first + k];
    cuda_each_row(problem.rows, [&](int64_t row) {
        const int64_t i = row * columns + first;
        cuda_floats<N> v = cuda_load<N>(from + i);
        for (int k = 0; k < N; k++)
            v.value[k] += b.value[k];
        if (keep)
            cuda_store_pack(keep + i, v);
        for (int k = 0; k < N; k++)
            v.value[k] = cuda_activate<F>(v.value[k]);
        cuda_store_pack(to + i, v);
    });
}

template <typename X, typename Y, typename T>
static void launch(struct cuda_device *cuda, struct lanes lanes, enum device_activation f,
                   bias_problem<X, Y, T> problem)
{
    bool aligned = problem.columns % PACK == 0 && problem.product_stride % CUDA_PACK_BYTES == 0 &&
                   cuda_aligned(problem.y, PACK * sizeof(Y)) &&
                   cuda_aligned(problem.before, PACK * sizeof(T)) &&
                   cuda_aligned(problem.product, PACK * sizeof(X));
    int64_t packs = aligned ? problem.columns / PACK : problem.columns;
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, problem.rows, packs);

    cuda_with_function(f, [&](auto function) {
        const int F = decltype(function)::value;
        if (aligned)
            CUDA_LAUNCH((bias_activation_kernel<F, PACK, X, Y, T>), tiles.grid, tiles.block, 0, cuda->stream,
                        problem);
        else
            CUDA_LAUNCH((bias_activation_kernel<F, 1, X, Y, T>), tiles.grid, tiles.block, 0, cuda->stream,
                        problem);
    });
    cuda_note(cuda, cudaGetLastError(), "bias_activation");
}

extern "C" void cuda_bias_activation_of(struct cuda_device *cuda, struct lanes lanes, void *y, void *before,
                                        const real *product, size_t product_stride, const real *bias,
                                        int64_t rows, int64_t columns, enum device_activation f, bool wide)
{
    if (rows <= 0 || columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        if (wide)
            launch<float, float, T>(
                cuda, lanes, f,
                {(float *)y, (T *)before, product, bias, rows, columns, lanes.stride, product_stride});
        else
            launch<float, T, T>(
                cuda, lanes, f,
                {(T *)y, (T *)before, product, bias, rows, columns, lanes.stride, product_stride});
    });
}

extern "C" void cuda_bias_activation(struct cuda_device *cuda, struct lanes lanes, void *y, void *before,
                                     const real *bias, int64_t rows, int64_t columns,
                                     enum device_activation f, bool wide)
{
    if (rows <= 0 || columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        if (wide)
            launch<float, float, T>(
                cuda, lanes, f,
                {(float *)y, (T *)before, (const float *)y, bias, rows, columns, lanes.stride, lanes.stride});
        else
            launch<T, T, T>(
                cuda, lanes, f,
                {(T *)y, (T *)before, (const T *)y, bias, rows, columns, lanes.stride, lanes.stride});
    });
}
