/* A layer's bias: y = f(product + bias), for products without an epilogue, and its gradient, the column sums
 * of the layer's. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/columns.cuh"

#define PACK (CUDA_PACK_BYTES / (int)sizeof(float))

/* Y: of y; T: of stored tensors. */
template <typename Y, typename T> struct bias_problem {
    Y *y;                 // (rows, columns)
    T *before;            // (rows, columns), or NULL
    const float *product; // (rows, columns), may be y
    const float *bias;    // (columns)
    int64_t rows, columns;
    size_t stride, product_stride; /* of the lanes */
};

template <int F, int N, typename Y, typename T>
__global__ void bias_activation_kernel(bias_problem<Y, T> problem)
{
    const int64_t lane = blockIdx.z, first = N * cuda_tile_column(), columns = problem.columns;
    const float *from = cuda_lane(problem.product, problem.product_stride, lane);
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

template <typename Y, typename T>
static void launch(struct cuda_device *cuda, struct lanes lanes, enum device_activation f,
                   bias_problem<Y, T> problem)
{
    bool aligned = problem.columns % PACK == 0 && problem.product_stride % CUDA_PACK_BYTES == 0 &&
                   cuda_aligned(problem.y, PACK * sizeof(Y)) &&
                   cuda_aligned(problem.before, PACK * sizeof(T)) &&
                   cuda_aligned(problem.product, CUDA_PACK_BYTES);
    int64_t packs = aligned ? problem.columns / PACK : problem.columns;
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, problem.rows, packs);

    cuda_with_function(f, [&](auto function) {
        const int F = decltype(function)::value;
        if (aligned)
            CUDA_LAUNCH((bias_activation_kernel<F, PACK, Y, T>), tiles.grid, tiles.block, 0, cuda->stream,
                        problem);
        else
            CUDA_LAUNCH((bias_activation_kernel<F, 1, Y, T>), tiles.grid, tiles.block, 0, cuda->stream,
                        problem);
    });
    cuda_note(cuda, cudaGetLastError(), "bias_activation");
}

extern "C" void cuda_bias_activation(struct cuda_device *cuda, struct lanes lanes, void *y, void *before,
                                     const real *product, size_t product_stride, const real *bias,
                                     int64_t rows, int64_t columns, enum device_activation f, bool wide)
{
    if (rows <= 0 || columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        T *keep = (T *)before;
        if (wide)
            launch<float, T>(cuda, lanes, f,
                             {(float *)y, keep, product, bias, rows, columns, lanes.stride, product_stride});
        else
            launch<T, T>(cuda, lanes, f,
                         {(T *)y, keep, product, bias, rows, columns, lanes.stride, product_stride});
    });
}

template <typename T> struct column_values {
    const T *x; // (rows, columns)
    int64_t columns;

    __device__ column_values of_lane(size_t stride, int64_t lane) const
    {
        return {cuda_lane(x, stride, lane), columns};
    }
    __device__ void add(float sum[1], int64_t row, int64_t column) const
    {
        sum[0] += cuda_to_float(x[row * columns + column]);
    }
};

extern "C" void cuda_column_sums(struct cuda_device *cuda, struct lanes lanes, real *sums, const void *x,
                                 int64_t rows, int64_t columns, bool accumulate)
{
    if (columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        cuda_column_values<1>(cuda, lanes, {sums}, column_values<T>{(const T *)x, columns}, rows, columns,
                              accumulate, "column_sums");
    });
}
