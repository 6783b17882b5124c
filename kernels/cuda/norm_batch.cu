/* Ghost batch norm (Ioffe & Szegedy 2015; Hoffer et al. 2017), training: blocks of 32 columns take groups of
 * rows, one after the other. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/operations.h"

#define MOMENTUM 0.1f

/* How the rows of a batch are grouped. */
struct grouping {
    int64_t rows, group, groups;
};
static grouping grouping_of(int64_t rows, int64_t group)
{
    int64_t groups = cuda_divide_up(rows, group);

    return {rows, group, rows % group == 1 && groups > 1 ? groups - 1 : groups};
}
/* Rows of a group; its first is g * group. */
__host__ __device__ static inline int64_t group_rows(const grouping &by, int64_t g)
{
    return g < by.groups - 1 ? by.group : by.rows - g * by.group;
}

/* body(row's element) for this thread's rows of a group in its column. */
template <typename F>
__device__ static inline void each_of_group(const grouping &by, int64_t g, int64_t column, int64_t columns,
                                            F body)
{
    const int64_t first = g * by.group, end = first + group_rows(by, g);

    if (column < columns)
        for (int64_t row = first + threadIdx.y; row < end; row += CUDA_COLUMN_ROWS)
            body(row * columns + column);
}

/* A running mean or variance, moved towards a group's. */
__device__ static inline void move(float *running, float value)
{
    *running += MOMENTUM * (value - *running);
}

/* running: moved here where there is but one group; else see running_kernel. */
template <typename T>
__global__ void batch_norm_kernel(T *y, cuda_norm *saved, float *running, const T *x, const float *gain,
                                  const float *offset, grouping by, int64_t columns, size_t stride)
{
    const int64_t lane = blockIdx.z, column = (int64_t)blockIdx.x * CUDA_COLUMNS + threadIdx.x;
    const T *from = cuda_lane(x, stride, lane);        // (rows, columns)
    T *to = cuda_lane(y, stride, lane);                // (rows, columns)
    cuda_norm *norms = cuda_lane(saved, stride, lane); // (groups, columns)
    float *average = cuda_lane(running, stride, lane); // (2, columns)
    const bool inside = column < columns, writes = inside && threadIdx.y == 0;
    const float g = inside ? cuda_lane(gain, stride, lane)[column] : 0;   // of (columns)
    const float o = inside ? cuda_lane(offset, stride, lane)[column] : 0; // of (columns)

    for (int64_t k = blockIdx.y; k < by.groups; k += gridDim.y) {
        const float n = (float)group_rows(by, k);
        float sum = 0, squares = 0;

        each_of_group(by, k, column, columns, [&](int64_t i) { sum += cuda_to_float(from[i]); });
        const float mean = cuda_column_sum(sum) / n;
        each_of_group(by, k, column, columns, [&](int64_t i) {
            const float difference = cuda_to_float(from[i]) - mean;
            squares += difference * difference;
        });
        squares = cuda_column_sum(squares);
        const float inverse = cuda_norm_inverse(squares / n);
        each_of_group(by, k, column, columns, [&](int64_t i) {
            cuda_set(&to[i], (cuda_to_float(from[i]) - mean) * inverse * g + o);
        });
        if (writes)
            norms[k * columns + column] = {mean, inverse};
        if (writes && by.groups == 1 && n > 1) {
            move(&average[column], mean);
            move(&average[columns + column], squares / (n - 1));
        }
    }
}

/* Several groups, in their order. Variances come back from what is saved. */
__global__ void running_kernel(float *running, const cuda_norm *saved, grouping by, int64_t columns,
                               size_t stride)
{
    const int64_t lane = blockIdx.y, column = (int64_t)blockIdx.x * CUDA_EACH_THREADS + threadIdx.x;
    const cuda_norm *norms = cuda_lane(saved, stride, lane); // (groups, columns)
    float *average = cuda_lane(running, stride, lane);       // (2, columns)

    if (column >= columns)
        return;
    for (int64_t k = 0; k < by.groups; k++) {
        const cuda_norm norm = norms[k * columns + column];
        const double n = (double)group_rows(by, k), inverse = norm.inverse;
        const double variance = 1 / (inverse * inverse) - (double)CUDA_NORM_EPSILON;
        if (n == 1)
            continue;
        move(&average[column], norm.mean);
        move(&average[columns + column], variance < 0 ? 0 : (float)(variance * n / (n - 1)));
    }
}

extern "C" void cuda_batch_norm(struct device *device, struct lanes lanes, void *y, real *saved,
                                real *running, const void *x, const real *gain, const real *offset,
                                int64_t rows, int64_t columns, int64_t group)
{
    struct cuda_device *cuda = cuda_of(device);
    cuda_norm *norms = (cuda_norm *)saved;

    if (rows <= 0 || columns <= 0)
        return;
    grouping by = grouping_of(rows, group);
    dim3 grid((unsigned)cuda_divide_up(columns, CUDA_COLUMNS),
              (unsigned)(by.groups < 1024 ? by.groups : 1024), (unsigned)lanes.count);
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        CUDA_LAUNCH(batch_norm_kernel<T>, grid, dim3(CUDA_COLUMNS, CUDA_COLUMN_ROWS), 0, cuda->stream, (T *)y,
                    norms, running, (const T *)x, gain, offset, by, columns, lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "batch_norm");
    if (by.groups == 1)
        return;
    CUDA_LAUNCH(running_kernel,
                dim3((unsigned)cuda_divide_up(columns, CUDA_EACH_THREADS), (unsigned)lanes.count),
                CUDA_EACH_THREADS, 0, cuda->stream, running, norms, by, columns, lanes.stride);
    cuda_note(cuda, cudaGetLastError(), "batch_norm");
}

/* dx = gain inverse (dy - mean(dy) - x^ mean(dy x^)), x^ the normalised x and means over the group. A part of
 * the column sums is some groups in a row. */
template <typename T>
__global__ void batch_norm_backward_kernel(cuda_column_output<2> output, T *dx, const T *dy, const T *x,
                                           const cuda_norm *saved, const float *gain, grouping by)
{
    const int64_t lane = output.first_lane + blockIdx.z, columns = output.columns;
    const size_t stride = output.stride;
    const int64_t column = (int64_t)blockIdx.x * CUDA_COLUMNS + threadIdx.x;
    const int64_t each = (by.groups + output.parts - 1) / output.parts, first = blockIdx.y * each;
    const int64_t end = first + each < by.groups ? first + each : by.groups;
    const T *from = cuda_lane(x, stride, lane), *above = cuda_lane(dy, stride, lane); // (rows, columns)
    T *to = cuda_lane(dx, stride, lane);                                              // (rows, columns)
    const cuda_norm *norms = cuda_lane(saved, stride, lane);                          // (groups, columns)
    const float g = column < columns ? cuda_lane(gain, stride, lane)[column] : 0;     // of (columns)
    float total[2] = {0};                                                             // dgain, doffset

    for (int64_t k = first; k < end; k++) {
        const cuda_norm norm = column < columns ? norms[k * columns + column] : cuda_norm{0, 0};
        const float n = (float)group_rows(by, k);
        float sum = 0, products = 0;

        each_of_group(by, k, column, columns, [&](int64_t i) {
            const float d = cuda_to_float(above[i]);
            sum += d;
            products += d * ((cuda_to_float(from[i]) - norm.mean) * norm.inverse);
        });
        sum = cuda_column_sum(sum);
        products = cuda_column_sum(products);
        total[0] += products;
        total[1] += sum;
        each_of_group(by, k, column, columns, [&](int64_t i) {
            const float normal = (cuda_to_float(from[i]) - norm.mean) * norm.inverse;
            const float d = cuda_to_float(above[i]) - sum / n - normal * (products / n);
            cuda_set(&to[i], g * norm.inverse * d);
        });
    }
    if (threadIdx.y == 0 && column < columns)
        cuda_column_write(output, blockIdx.y, column, total);
}

extern "C" void cuda_batch_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain,
                                         real *doffset, const void *dy, const void *x, const real *saved,
                                         const real *gain, int64_t rows, int64_t columns, int64_t group,
                                         bool accumulate)
{
    struct cuda_device *cuda = cuda_of(device);
    cuda_column_output<2> output = {};

    if (rows <= 0 || columns <= 0)
        return;
    grouping by = grouping_of(rows, group);
    int64_t most = CUDA_COLUMN_PARTS / cuda_divide_up(columns, CUDA_COLUMNS);
    output.out[0] = dgain;
    output.out[1] = doffset;
    output.accumulate = accumulate;
    output.columns = columns;
    output.parts = by.groups < most ? by.groups : most > 1 ? most : 1;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        cuda_column_launch(
            cuda, lanes, output, "batch_norm_backward", [&](dim3 grid, dim3 block, cuda_column_output<2> to) {
                CUDA_LAUNCH(batch_norm_backward_kernel<T>, grid, block, 0, cuda->stream, to, (T *)dx,
                            (const T *)dy, (const T *)x, (const cuda_norm *)saved, gain, by);
            });
    });
}
