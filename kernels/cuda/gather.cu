/* A batch is a gather: rows of the shared data, found through the lane's order at the lane's step. */
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define PACK (CUDA_PACK_BYTES / (int)sizeof(float))

/* Rows of a batch in one lane, see struct device_rows_of. */
struct rows_found {
    const int32_t *order; // (rows), NULL: the rows in order from `first`
    int64_t first;
};
__device__ static inline rows_found rows_find(const struct device_rows_of &of, size_t stride, int64_t lane)
{
    if (!of.order)
        return {NULL, of.first};
    const struct lane_state *state = cuda_lane(of.state, stride, lane);
    const int64_t batches = state->step - state->epoch_first;
    return {cuda_lane(of.order, stride, lane) + batches * of.batch + of.first, 0};
}
__device__ static inline int64_t row_source(const rows_found &rows, int64_t row)
{
    return rows.order ? rows.order[row] : rows.first + row;
}

template <typename T, int N>
__global__ void gather_kernel(T *y, int64_t y_stride, const float *source, struct device_rows_of of,
                              int64_t rows, int64_t columns, size_t stride)
{
    const int64_t column = N * cuda_tile_column();
    const rows_found found = rows_find(of, stride, blockIdx.z);
    T *to = cuda_lane(y, stride, blockIdx.z); // (rows, y_stride); source (any, columns)

    if (column >= columns)
        return;
    cuda_each_row(rows, [&](int64_t row) {
        const float *from = source + row_source(found, row) * columns + column;
        cuda_store_pack(to + row * y_stride + column, cuda_load<N>(from));
    });
}

template <typename T>
static void launch(struct cuda_device *cuda, struct lanes lanes, T *y, int64_t stride, const float *source,
                   struct device_rows_of of, int64_t rows, int64_t columns)
{
    if (rows <= 0 || columns <= 0)
        return;
    bool aligned = columns % PACK == 0 && stride % PACK == 0 && cuda_aligned(y, PACK * sizeof(T)) &&
                   cuda_aligned(source, CUDA_PACK_BYTES);
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, rows, aligned ? columns / PACK : columns);
    if (aligned)
        CUDA_LAUNCH((gather_kernel<T, PACK>), tiles.grid, tiles.block, 0, cuda->stream, y, stride, source, of,
                    rows, columns, lanes.stride);
    else
        CUDA_LAUNCH((gather_kernel<T, 1>), tiles.grid, tiles.block, 0, cuda->stream, y, stride, source, of,
                    rows, columns, lanes.stride);
    cuda_note(cuda, cudaGetLastError(), "gather");
}

extern "C" void cuda_gather(struct device *device, struct lanes lanes, void *y, int64_t stride,
                            const float *source, struct device_rows_of of, int64_t rows, int64_t columns)
{
    struct cuda_device *cuda = cuda_of(device);

    cuda_with_stored(lanes.precision, [&](auto stored) {
        launch(cuda, lanes, (decltype(stored) *)y, stride, source, of, rows, columns);
    });
}

extern "C" void cuda_gather_real(struct device *device, struct lanes lanes, real *y, const float *source,
                                 struct device_rows_of of, int64_t rows, int64_t columns)
{
    launch(cuda_of(device), lanes, y, columns, source, of, rows, columns);
}

__global__ void gather_integers_kernel(int32_t *y, const int32_t *source, struct device_rows_of of,
                                       int64_t rows, int64_t columns, size_t stride)
{
    const int64_t column = cuda_tile_column();
    const rows_found found = rows_find(of, stride, blockIdx.z);
    int32_t *to = cuda_lane(y, stride, blockIdx.z); // (rows, columns); source (any, columns)

    if (column >= columns)
        return;
    cuda_each_row(rows, [&](int64_t row) {
        to[row * columns + column] = source[row_source(found, row) * columns + column];
    });
}

extern "C" void cuda_gather_integers(struct device *device, struct lanes lanes, int32_t *y,
                                     const int32_t *source, struct device_rows_of of, int64_t rows,
                                     int64_t columns)
{
    struct cuda_device *cuda = cuda_of(device);

    if (rows <= 0 || columns <= 0)
        return;
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, rows, columns);
    CUDA_LAUNCH(gather_integers_kernel, tiles.grid, tiles.block, 0, cuda->stream, y, source, of, rows,
                columns, lanes.stride);
    cuda_note(cuda, cudaGetLastError(), "gather_integers");
}
