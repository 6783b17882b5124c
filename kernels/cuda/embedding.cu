/* Embeddings: rows of a lane's table put beside the numeric features, and the gradient's way back to them. */
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

#define WARP 32
#define WARPS 8 /* of a block */

/* One category of each row. */
struct categories_of {
    const int32_t *category; // (rows, categories)
    int64_t categories, which;
};
__device__ static inline int32_t category_at(const categories_of &of, int64_t row)
{
    return of.category[row * of.categories + of.which];
}
__device__ static inline categories_of categories_of_lane(categories_of of, size_t stride, int64_t lane)
{
    return {cuda_lane(of.category, stride, lane), of.categories, of.which};
}

template <typename T>
__global__ void embedding_forward_kernel(T *y, int64_t y_stride, const float *table, categories_of of,
                                         int64_t rows, int64_t width, size_t stride)
{
    const int64_t column = cuda_tile_column();
    const categories_of own = categories_of_lane(of, stride, blockIdx.z);
    const float *from = cuda_lane(table, stride, blockIdx.z); // (entries, width)
    T *to = cuda_lane(y, stride, blockIdx.z);                 // (rows, y_stride), from its first column on

    if (column >= width)
        return;
    cuda_each_row(rows, [&](int64_t row) {
        cuda_set(&to[row * y_stride + column], from[category_at(own, row) * width + column]);
    });
}

extern "C" void cuda_embedding_forward(struct device *device, struct lanes lanes, void *y, int64_t stride,
                                       int64_t first, const real *table, const int32_t *category,
                                       int64_t categories, int64_t which, int64_t rows, int64_t width)
{
    struct cuda_device *cuda = cuda_of(device);

    if (rows <= 0 || width <= 0)
        return;
    cuda_tiles tiles = cuda_tiles_of(cuda, lanes, rows, width);
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        CUDA_LAUNCH(embedding_forward_kernel<T>, tiles.grid, tiles.block, 0, cuda->stream, (T *)y + first,
                    stride, table, categories_of{category, categories, which}, rows, width, lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "embedding_forward");
}

/* A warp looks for the rows of one entry, 32 at a time, and adds up what it finds in order, each of its
 * threads one column: no two write the same sum, and the order is that of the rows. */
template <typename T>
__global__ void embedding_backward_kernel(float *dtable, const T *dy, int64_t dy_stride, categories_of of,
                                          int64_t rows, int64_t entries, int64_t width, bool accumulate,
                                          size_t stride)
{
    const categories_of own = categories_of_lane(of, stride, blockIdx.z);
    const T *from = cuda_lane(dy, stride, blockIdx.z); // (rows, dy_stride), from its first column on
    float *to = cuda_lane(dtable, stride, blockIdx.z); // (entries, width)
    const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;

    for (int64_t entry = (int64_t)blockIdx.y * WARPS + threadIdx.y; entry < entries;
         entry += (int64_t)gridDim.y * WARPS) {
        float sum = 0;
        for (int64_t row = 0; row < rows; row += WARP) {
            const int64_t looked_at = row + threadIdx.x;
            const bool is = looked_at < rows && category_at(own, looked_at) == entry;
            for (unsigned found = __ballot_sync(0xffffffffu, is); found; found &= found - 1)
                if (column < width)
                    sum += cuda_to_float(from[(row + __ffs((int)found) - 1) * dy_stride + column]);
        }
        if (column < width)
            to[entry * width + column] = accumulate ? to[entry * width + column] + sum : sum;
    }
}

extern "C" void cuda_embedding_backward(struct device *device, struct lanes lanes, real *dtable,
                                        const void *dy, int64_t stride, int64_t first,
                                        const int32_t *category, int64_t categories, int64_t which,
                                        int64_t rows, int64_t entries, int64_t width, bool accumulate)
{
    struct cuda_device *cuda = cuda_of(device);

    if (entries <= 0 || width <= 0)
        return;
    int64_t down = cuda_divide_up(entries, WARPS), most = (int64_t)cuda->multiprocessors * CUDA_EACH_BLOCKS;
    dim3 grid((unsigned)cuda_divide_up(width, WARP), (unsigned)(down < most ? down : most),
              (unsigned)lanes.count);
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        CUDA_LAUNCH(embedding_backward_kernel<T>, grid, dim3(WARP, WARPS), 0, cuda->stream, dtable,
                    (const T *)dy + first, stride, categories_of{category, categories, which}, rows, entries,
                    width, accumulate, lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "embedding_backward");
}
