/* Layer norm (Ba et al. 2016): a team of threads takes a row, a warp or, where rows are long, a block. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/operations.h"

#define THREADS CUDA_REDUCE_THREADS
#define LONG_ROW 2048

template <int TEAM> __device__ static inline int64_t team_row()
{
    return (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
}

template <typename T, int TEAM>
__global__ void layer_norm_kernel(T *y, cuda_norm *saved, const T *x, const float *gain, const float *offset,
                                  int64_t rows, int64_t columns, size_t stride)
{
    const int64_t lane = blockIdx.y, row = team_row<TEAM>(), member = threadIdx.x % TEAM;
    const int64_t inside = row < rows ? row : rows - 1;            // all come to the sums
    const T *from = cuda_lane(x, stride, lane) + inside * columns; // (columns)
    T *to = cuda_lane(y, stride, lane) + inside * columns;         // (columns)
    const float *g = cuda_lane(gain, stride, lane), *o = cuda_lane(offset, stride, lane); // (columns)
    float sum = 0, squares = 0;

    for (int64_t j = member; j < columns; j += TEAM)
        sum += cuda_to_float(from[j]);
    const float mean = cuda_team_sum<TEAM>(sum) / (float)columns;
    for (int64_t j = member; j < columns; j += TEAM) {
        const float difference = cuda_to_float(from[j]) - mean;
        squares += difference * difference;
    }
    const float inverse = cuda_norm_inverse(cuda_team_sum<TEAM>(squares) / (float)columns);
    if (row >= rows)
        return;
    for (int64_t j = member; j < columns; j += TEAM)
        cuda_set(&to[j], (cuda_to_float(from[j]) - mean) * inverse * g[j] + o[j]);
    if (member == 0)
        cuda_lane(saved, stride, lane)[row] = {mean, inverse}; // (rows)
}

extern "C" void cuda_layer_norm(struct device *device, struct lanes lanes, void *y, real *saved,
                                const void *x, const real *gain, const real *offset, int64_t rows,
                                int64_t columns)
{
    struct cuda_device *cuda = cuda_of(device);

    if (rows <= 0 || columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        cuda_norm *norms = (cuda_norm *)saved;
        if (columns > LONG_ROW)
            CUDA_LAUNCH((layer_norm_kernel<T, THREADS>), dim3((unsigned)rows, (unsigned)lanes.count), THREADS,
                        0, cuda->stream, (T *)y, norms, (const T *)x, gain, offset, rows, columns,
                        lanes.stride);
        else
            CUDA_LAUNCH((layer_norm_kernel<T, CUDA_WARP>),
                        dim3((unsigned)cuda_divide_up(rows, THREADS / CUDA_WARP), (unsigned)lanes.count),
                        THREADS, 0, cuda->stream, (T *)y, norms, (const T *)x, gain, offset, rows, columns,
                        lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "layer_norm");
}

/* dgain sums dy x^, doffset sums dy, over the rows; x^ is x normalised. */
template <typename T> struct layer_values {
    const T *dy, *x;        // (rows, columns)
    const cuda_norm *saved; // (rows)
    int64_t columns;

    __device__ layer_values of_lane(size_t stride, int64_t lane) const
    {
        return {cuda_lane(dy, stride, lane), cuda_lane(x, stride, lane), cuda_lane(saved, stride, lane),
                columns};
    }
    __device__ void add(float sum[2], int64_t row, int64_t column) const
    {
        const cuda_norm norm = saved[row];
        const int64_t i = row * columns + column;
        const float d = cuda_to_float(dy[i]);
        sum[0] += d * ((cuda_to_float(x[i]) - norm.mean) * norm.inverse);
        sum[1] += d;
    }
};

/* dx = inverse (h - mean(h) - x^ mean(h x^)), h = dy gain; means over the row. */
template <typename T, int TEAM>
__global__ void layer_norm_backward_kernel(T *dx, const T *dy, const T *x, const cuda_norm *saved,
                                           const float *gain, int64_t rows, int64_t columns, size_t stride)
{
    const int64_t lane = blockIdx.y, row = team_row<TEAM>(), member = threadIdx.x % TEAM;
    const int64_t inside = row < rows ? row : rows - 1;              // all come to the sums
    const T *from = cuda_lane(x, stride, lane) + inside * columns;   // (columns)
    const T *above = cuda_lane(dy, stride, lane) + inside * columns; // (columns), may be dx
    T *to = cuda_lane(dx, stride, lane) + inside * columns;          // (columns)
    const float *g = cuda_lane(gain, stride, lane);                  // (columns)
    const cuda_norm norm = cuda_lane(saved, stride, lane)[inside];
    float sum = 0, products = 0;

    for (int64_t j = member; j < columns; j += TEAM) {
        const float h = cuda_to_float(above[j]) * g[j];
        sum += h;
        products += h * ((cuda_to_float(from[j]) - norm.mean) * norm.inverse);
    }
    const float mean = cuda_team_sum<TEAM>(sum) / (float)columns;
    const float slope = cuda_team_sum<TEAM>(products) / (float)columns;
    if (row >= rows)
        return;
    for (int64_t j = member; j < columns; j += TEAM) {
        const float h = cuda_to_float(above[j]) * g[j];
        const float normal = (cuda_to_float(from[j]) - norm.mean) * norm.inverse;
        cuda_set(&to[j], norm.inverse * (h - mean - normal * slope));
    }
}

extern "C" void cuda_layer_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain,
                                         real *doffset, const void *dy, const void *x, const real *saved,
                                         const real *gain, int64_t rows, int64_t columns, bool accumulate)
{
    struct cuda_device *cuda = cuda_of(device);

    if (rows <= 0 || columns <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        const cuda_norm *norms = (const cuda_norm *)saved;
        /* First, since dx may take the place of dy. */
        cuda_column_values<2>(cuda, lanes, {dgain, doffset},
                              layer_values<T>{(const T *)dy, (const T *)x, norms, columns}, rows, columns,
                              accumulate, "layer_norm_backward");
        if (columns > LONG_ROW)
            CUDA_LAUNCH((layer_norm_backward_kernel<T, THREADS>), dim3((unsigned)rows, (unsigned)lanes.count),
                        THREADS, 0, cuda->stream, (T *)dx, (const T *)dy, (const T *)x, norms, gain, rows,
                        columns, lanes.stride);
        else
            CUDA_LAUNCH((layer_norm_backward_kernel<T, CUDA_WARP>),
                        dim3((unsigned)cuda_divide_up(rows, THREADS / CUDA_WARP), (unsigned)lanes.count),
                        THREADS, 0, cuda->stream, (T *)dx, (const T *)dy, (const T *)x, norms, gain, rows,
                        columns, lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "layer_norm_backward");
}
