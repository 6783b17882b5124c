/* The gradient of a bias: column sums of the layer's gradient. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/operations.h"

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
