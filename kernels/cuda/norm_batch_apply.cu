/* Batch norm of evaluation: with the running statistics, so element by element. */
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/operations.h"

template <typename T>
__global__ void batch_norm_apply_kernel(T *y, const float *running, const T *x, const float *gain,
                                        const float *offset, int64_t rows, int64_t columns, size_t stride)
{
    const int64_t lane = blockIdx.z, column = cuda_tile_column();
    const T *from = cuda_lane(x, stride, lane);              // (rows, columns)
    T *to = cuda_lane(y, stride, lane);                      // (rows, columns)
    const float *average = cuda_lane(running, stride, lane); // (2, columns)

    if (column >= columns)
        return;
    const float mean = average[column], inverse = cuda_norm_inverse(average[columns + column]);
    const float g = cuda_lane(gain, stride, lane)[column], o = cuda_lane(offset, stride, lane)[column];
    cuda_each_row(rows, [&](int64_t row) {
        const int64_t i = row * columns + column;
        cuda_set(&to[i], (cuda_to_float(from[i]) - mean) * inverse * g + o);
    });
}

extern "C" void cuda_batch_norm_apply(struct device *device, struct lanes lanes, void *y, const real *running,
                                      const void *x, const real *gain, const real *offset, int64_t rows,
                                      int64_t columns)
{
    struct cuda_device *cuda = cuda_of(device);

    if (rows <= 0 || columns <= 0)
        return;
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, rows, columns);
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        CUDA_LAUNCH(batch_norm_apply_kernel<T>, tiles.grid, tiles.block, 0, cuda->stream, (T *)y, running,
                    (const T *)x, gain, offset, rows, columns, lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "batch_norm_apply");
}
