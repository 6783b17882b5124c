/* Sums over the rows of a matrix, column by column: blocks of 32 columns by 16 rows, in a fixed order. */
#ifndef RUNG_KERNELS_CUDA_COLUMNS_CUH
#define RUNG_KERNELS_CUDA_COLUMNS_CUH

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

#define CUDA_COLUMNS 32
#define CUDA_COLUMN_ROWS 16

/* The sum of x over a block's rows, for each of its columns; all threads of the column get it, and all of the
 * block must come. */
__device__ static inline float cuda_column_sum(float x)
{
    __shared__ float rows[CUDA_COLUMN_ROWS][CUDA_COLUMNS];
    float sum = 0;

    rows[threadIdx.y][threadIdx.x] = x;
    __syncthreads();
    for (int r = 0; r < CUDA_COLUMN_ROWS; r++)
        sum += rows[r][threadIdx.x];
    __syncthreads(); /* the next call may write again */
    return sum;
}

/* How rows are cut, by sizes alone: one part as long as that is quick (a second kernel costs as much as 500
 * rows here), else enough of them to fill a device, and few enough for the workspace. */
#define CUDA_COLUMN_PART_ROWS 512
#define CUDA_COLUMN_PARTS 512 /* times blocks of columns */
static inline int64_t cuda_column_parts(int64_t rows, int64_t columns)
{
    int64_t most = CUDA_COLUMN_PARTS / cuda_divide_up(columns, CUDA_COLUMNS);
    int64_t parts = rows <= CUDA_COLUMN_PART_ROWS ? 1 : cuda_divide_up(rows, CUDA_COLUMN_PART_ROWS / 2);

    return parts < most ? parts : most > 1 ? most : 1;
}

/* Where SUMS sums of each column go: into out, or first, of several parts, into the workspace. */
template <int SUMS> struct cuda_column_output {
    float *out[SUMS]; // (columns) each
    bool accumulate;
    float *part; // (lanes at once, SUMS, parts, columns)
    int64_t columns, parts, first_lane;
    size_t stride;
};

template <int SUMS>
__device__ static inline void cuda_column_write(const cuda_column_output<SUMS> &output, int64_t part,
                                                int64_t column, const float sum[SUMS])
{
    for (int s = 0; s < SUMS; s++) {
        if (output.parts > 1) {
            int64_t row = (blockIdx.z * SUMS + s) * output.parts + part;
            output.part[row * output.columns + column] = sum[s];
        } else {
            float *out = cuda_lane(output.out[s], output.stride, output.first_lane + blockIdx.z);
            out[column] = output.accumulate ? out[column] + sum[s] : sum[s];
        }
    }
}

/* The second kernel: adds up the parts in their order. */
template <int SUMS> __global__ void cuda_column_parts_kernel(cuda_column_output<SUMS> output)
{
    const int64_t column = (int64_t)blockIdx.x * CUDA_EACH_THREADS + threadIdx.x;
    const int64_t first = (blockIdx.z * SUMS + blockIdx.y) * output.parts;
    float sum = 0;

    if (column >= output.columns)
        return;
    for (int64_t p = 0; p < output.parts; p++)
        sum += output.part[(first + p) * output.columns + column];
    float *out = cuda_lane(output.out[blockIdx.y], output.stride, output.first_lane + blockIdx.z);
    out[column] = output.accumulate ? out[column] + sum : sum;
}

/* launch(grid, block, output): the kernel, whose blocks (columns, parts, lanes) end with cuda_column_write.
 * out: as in the struct. */
template <int SUMS, typename L>
static inline void cuda_column_launch(struct cuda_device *cuda, struct lanes lanes,
                                      cuda_column_output<SUMS> output, const char *what, L launch)
{
    size_t bytes = output.parts > 1 ? SUMS * output.parts * output.columns * sizeof(float) : 0;
    int64_t most = cuda_lanes_at_once(lanes, bytes);

    output.part = (float *)cuda->workspace;
    output.stride = lanes.stride;
    for (int64_t first = 0; first < lanes.count; first += most) {
        unsigned count = (unsigned)(lanes.count - first < most ? lanes.count - first : most);
        dim3 grid((unsigned)cuda_divide_up(output.columns, CUDA_COLUMNS), (unsigned)output.parts, count);

        output.first_lane = first;
        launch(grid, dim3(CUDA_COLUMNS, CUDA_COLUMN_ROWS), output);
        cuda_note(cuda, cudaGetLastError(), what);
        if (output.parts == 1)
            continue;
        dim3 blocks((unsigned)cuda_divide_up(output.columns, CUDA_EACH_THREADS), SUMS, count);
        CUDA_LAUNCH(cuda_column_parts_kernel<SUMS>, blocks, CUDA_EACH_THREADS, 0, cuda->stream, output);
        cuda_note(cuda, cudaGetLastError(), what);
    }
}

/* The usual kernel. VALUES is a struct with
 *     VALUES of_lane(size_t stride, int64_t lane): itself, with a lane's tensors;
 *     void add(float sum[SUMS], int64_t row, int64_t column). */
template <int SUMS, typename VALUES>
__global__ void cuda_column_sums_kernel(cuda_column_output<SUMS> output, VALUES values, int64_t rows)
{
    const int64_t column = (int64_t)blockIdx.x * CUDA_COLUMNS + threadIdx.x;
    const int64_t each = (rows + output.parts - 1) / output.parts, first = blockIdx.y * each;
    const int64_t end = first + each < rows ? first + each : rows;
    const VALUES here = values.of_lane(output.stride, output.first_lane + blockIdx.z);
    float sum[SUMS] = {0};

    if (column < output.columns)
        for (int64_t row = first + threadIdx.y; row < end; row += CUDA_COLUMN_ROWS)
            here.add(sum, row, column);
    for (int s = 0; s < SUMS; s++)
        sum[s] = cuda_column_sum(sum[s]);
    if (threadIdx.y == 0 && column < output.columns)
        cuda_column_write(output, blockIdx.y, column, sum);
}

template <int SUMS, typename VALUES>
static inline void cuda_column_values(struct cuda_device *cuda, struct lanes lanes, float *const (&out)[SUMS],
                                      VALUES values, int64_t rows, int64_t columns, bool accumulate,
                                      const char *what)
{
    cuda_column_output<SUMS> output = {};

    for (int s = 0; s < SUMS; s++)
        output.out[s] = out[s];
    output.accumulate = accumulate;
    output.columns = columns;
    output.parts = cuda_column_parts(rows, columns);
    cuda_column_launch(cuda, lanes, output, what, [&](dim3 grid, dim3 block, cuda_column_output<SUMS> to) {
        CUDA_LAUNCH((cuda_column_sums_kernel<SUMS, VALUES>), grid, block, 0, cuda->stream, to, values, rows);
    });
}

#endif
