/* gradient = gradient * mask / kept * f'(saved): a layer's way back through its dropout and its activation,
 * in one pass; and with its bias's gradient, the column sums of the result. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/operations.h"

#define PACK(T) (CUDA_PACK_BYTES / (int)sizeof(T))

template <typename T, int F>
__global__ void activation_backward_kernel(T *gradient, const T *saved, const unsigned char *mask,
                                           cuda_span<PACK(T)> span, const struct lane_state *state,
                                           size_t stride)
{
    const int64_t lane = blockIdx.y;
    T *g = cuda_lane(gradient, stride, lane);                          // (count)
    const T *argument = cuda_lane_or_null(saved, stride, lane);        // (count)
    const unsigned char *kept = cuda_lane_or_null(mask, stride, lane); // (count)
    const float share = kept ? cuda_dropout_of(cuda_lane(state, stride, lane)).factor : 1;

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_floats<n> v = cuda_load<n>(g + i);
        if (kept) {
            const cuda_pack<unsigned char, n> m = *(const cuda_pack<unsigned char, n> *)(kept + i);
            for (int k = 0; k < n; k++)
                v.value[k] = m.value[k] ? v.value[k] * share : 0;
        }
        if (F != DEVICE_IDENTITY) {
            const cuda_floats<n> x = cuda_load<n>(argument + i);
            for (int k = 0; k < n; k++)
                v.value[k] = cuda_activate_backward<F>(v.value[k], x.value[k]);
        }
        cuda_store_pack(g + i, v);
    });
}

extern "C" void cuda_activation_backward(struct device *device, struct lanes lanes, void *gradient,
                                         const void *saved, const unsigned char *mask, int64_t count,
                                         enum device_activation f, const struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);

    if (count <= 0 || (f == DEVICE_IDENTITY && !mask))
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        bool aligned = cuda_aligned(gradient, CUDA_PACK_BYTES) && cuda_aligned(saved, CUDA_PACK_BYTES) &&
                       cuda_aligned(mask, PACK(T));
        cuda_span<PACK(T)> span = cuda_span_of<PACK(T)>(count, aligned);
        dim3 grid = cuda_each_grid(cuda, lanes, cuda_span_work(span), CUDA_EACH_THREADS);
        cuda_with_function(f, [&](auto function) {
            CUDA_LAUNCH((activation_backward_kernel<T, decltype(function)::value>), grid, CUDA_EACH_THREADS,
                        0, cuda->stream, (T *)gradient, (const T *)saved, mask, span, state, lanes.stride);
        });
    });
    cuda_note(cuda, cudaGetLastError(), "activation_backward");
}

/* What the second kernel reads and writes, of all lanes. */
template <typename T> struct layer_gradient {
    T *gradient;               // (rows, columns)
    const T *saved;            // (rows, columns); not read for the identity
    const unsigned char *mask; // (rows, columns), or NULL
    const struct lane_state *state;
    int64_t rows;
};

#define AT_ONCE 4 /* rows that a thread reads before it writes one, so that it waits once for all of them */

template <typename T, int F>
__global__ void activation_backward_bias_kernel(cuda_column_output<1> output, layer_gradient<T> all)
{
    const int64_t lane = output.first_lane + blockIdx.z, columns = output.columns;
    const int64_t column = (int64_t)blockIdx.x * CUDA_COLUMNS + threadIdx.x;
    const int64_t each = (all.rows + output.parts - 1) / output.parts, first = blockIdx.y * each;
    const int64_t end = column >= columns ? 0 : first + each < all.rows ? first + each : all.rows;
    T *gradient = cuda_lane(all.gradient, output.stride, lane);
    const T *saved = cuda_lane_or_null(all.saved, output.stride, lane);
    const unsigned char *mask = cuda_lane_or_null(all.mask, output.stride, lane);
    const float share = mask ? cuda_dropout_of(cuda_lane(all.state, output.stride, lane)).factor : 1;
    float sum = 0;

    for (int64_t row = first + threadIdx.y; row < end; row += AT_ONCE * CUDA_COLUMN_ROWS) {
        T result[AT_ONCE] = {};
        for (int k = 0; k < AT_ONCE && row + k * CUDA_COLUMN_ROWS < end; k++) {
            const int64_t i = (row + k * CUDA_COLUMN_ROWS) * columns + column;
            float v = cuda_to_float(gradient[i]);
            if (mask)
                v = mask[i] ? v * share : 0;
            if (F != DEVICE_IDENTITY)
                v = cuda_activate_backward<F>(v, cuda_to_float(saved[i]));
            cuda_set(&result[k], v);
        }
        for (int k = 0; k < AT_ONCE && row + k * CUDA_COLUMN_ROWS < end; k++) {
            gradient[(row + k * CUDA_COLUMN_ROWS) * columns + column] = result[k];
            sum += cuda_to_float(result[k]);
        }
    }
    sum = cuda_column_sum(sum);
    if (threadIdx.y == 0 && column < columns)
        cuda_column_write(output, blockIdx.y, column, &sum);
}

extern "C" void cuda_activation_backward_bias(struct device *device, struct lanes lanes, void *gradient,
                                              real *dbias, const void *saved, const unsigned char *mask,
                                              int64_t rows, int64_t columns, enum device_activation f,
                                              bool accumulate, const struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);
    cuda_column_output<1> output = {};

    if (columns <= 0)
        return;
    output.out[0] = dbias;
    output.accumulate = accumulate;
    output.columns = columns;
    output.parts = cuda_column_parts(rows, columns);
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        const layer_gradient<T> all = {(T *)gradient, (const T *)saved, mask, state, rows};
        cuda_with_function(f, [&](auto function) {
            const int F = decltype(function)::value;
            cuda_column_launch(cuda, lanes, output, "activation_backward_bias",
                               [&](dim3 grid, dim3 block, cuda_column_output<1> to) {
                                   CUDA_LAUNCH((activation_backward_bias_kernel<T, F>), grid, block, 0,
                                               cuda->stream, to, all);
                               });
        });
    });
}
