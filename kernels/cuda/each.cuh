/* Element-wise kernels: their grids, and the loops over a lane's elements, in a row or as a matrix. */
#ifndef RUNG_KERNELS_CUDA_EACH_CUH
#define RUNG_KERNELS_CUDA_EACH_CUH

#include "kernels/cuda/convert.cuh"

#define CUDA_EACH_THREADS 256
/* Blocks that keep a multiprocessor busy; beyond them, threads take several turns. */
#define CUDA_EACH_BLOCKS 8

static inline int64_t cuda_divide_up(int64_t x, int64_t by)
{
    return (x + by - 1) / by;
}

/* Blocks of `threads` for `work` items of each lane; lanes are y, of which CUDA allows 65,535. How many there
 * are must not matter to the result. */
static inline dim3 cuda_each_grid(const struct cuda_device *cuda, struct lanes lanes, int64_t work,
                                  int64_t threads)
{
    int64_t blocks = cuda_divide_up(work, threads), most = (int64_t)cuda->multiprocessors * CUDA_EACH_BLOCKS;

    return dim3((unsigned)(blocks < most ? blocks : most), (unsigned)lanes.count);
}

template <int N> struct cuda_width {
    static const int value = N;
};

/* How a lane's elements are cut: `packs` of N, then singly. */
template <int N> struct cuda_span {
    int64_t count, packs;
};
template <int N> __host__ __device__ static inline cuda_span<N> cuda_span_of(int64_t count, bool aligned)
{
    return {count, aligned ? count / N : 0};
}
template <int N> static inline int64_t cuda_span_work(cuda_span<N> span)
{
    int64_t rest = span.count - span.packs * N;
    return span.packs > rest ? span.packs : rest;
}

/* body(first element, cuda_width<how many>()) over a span, by thread `thread` of `threads`. */
template <int N, typename F>
__device__ static inline void cuda_each_of(cuda_span<N> span, int64_t thread, int64_t threads, F body)
{
    for (int64_t i = thread; i < span.packs; i += threads)
        body(i * N, cuda_width<N>());
    for (int64_t i = span.packs * N + thread; i < span.count; i += threads)
        body(i, cuda_width<1>());
}
/* ... over all of a lane's elements, by the threads of all blocks in x. */
template <int N, typename F> __device__ static inline void cuda_each(cuda_span<N> span, F body)
{
    cuda_each_of(span, (int64_t)blockIdx.x * blockDim.x + threadIdx.x, (int64_t)gridDim.x * blockDim.x, body);
}

/* A matrix, of which each thread keeps its columns: block (columns, rows), grid (columns, rows, lanes). */
struct cuda_tiles {
    dim3 grid, block;
};
static inline cuda_tiles cuda_tiles_of(const struct cuda_device *cuda, struct lanes lanes, int64_t rows,
                                       int64_t columns)
{
    unsigned width = 1;

    while (width < columns && width < CUDA_EACH_THREADS)
        width *= 2;
    int64_t height = CUDA_EACH_THREADS / width, across = cuda_divide_up(columns, width);
    int64_t most = (int64_t)cuda->multiprocessors * CUDA_EACH_BLOCKS / across;
    int64_t down = cuda_divide_up(rows, height);
    down = down < most ? down : most > 0 ? most : 1;
    return {dim3((unsigned)across, (unsigned)down, (unsigned)lanes.count), dim3(width, (unsigned)height)};
}

/* body(row) for the rows of this thread. */
template <typename F> __device__ static inline void cuda_each_row(int64_t rows, F body)
{
    const int64_t step = (int64_t)gridDim.y * blockDim.y;

    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += step)
        body(row);
}
__device__ static inline int64_t cuda_tile_column()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

#endif
