/* What the sum of squares of a lane's block of parameters tells: the gradient's norm and what an update
 * multiplies it by, and whether all is finite. The sum is float64, in which squares of float32 are too small
 * to overflow, so it is finite exactly if every element is. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/partial.cuh"

#define PACK (CUDA_PACK_BYTES / (int)sizeof(float))
#define ALONE 32768   /* up to here one block is quicker than two kernels */
#define ELEMENTS 8192 /* of each of several blocks */
#define BLOCKS 512

template <typename END>
__global__ void squares_kernel(const float *x, cuda_span<PACK> span, size_t stride, cuda_partials partials,
                               END end)
{
    const float *from = cuda_lane(x, stride, cuda_partials_lane(partials)); // (count)
    double sum = 0;

    cuda_each(span, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        const cuda_floats<n> v = cuda_load<n>(from + i);
        for (int k = 0; k < n; k++)
            sum += (double)v.value[k] * (double)v.value[k];
    });
    cuda_partials_end(partials, sum, end);
}

template <typename END>
static void squares(struct cuda_device *cuda, struct lanes lanes, const float *x, int64_t count, END end,
                    const char *what)
{
    cuda_span<PACK> span = cuda_span_of<PACK>(count, cuda_aligned(x, CUDA_PACK_BYTES));
    int64_t blocks = cuda_divide_up(count, ELEMENTS);

    blocks = count <= ALONE ? 1 : blocks < BLOCKS ? blocks : BLOCKS;
    cuda_partials_sum(cuda, lanes, blocks, end, what, [&](dim3 grid, cuda_partials partials) {
        CUDA_LAUNCH(squares_kernel<END>, grid, CUDA_REDUCE_THREADS, 0, cuda->stream, x, span, lanes.stride,
                    partials, end);
    });
}

struct measure_end {
    struct lane_state *state;
    size_t stride;

    __device__ void operator()(int64_t lane, double sum) const
    {
        struct lane_state *own = cuda_lane(state, stride, lane);
        const double norm = sqrt(sum) / own->loss_scale;
        const double clip = own->clip_norm > 0 ? own->clip_norm / (norm + 1e-6) : 1;

        own->finite = isfinite(sum) ? 1 : 0;
        own->gradient_norm = norm;
        own->gradient_factor = (clip < 1 ? clip : 1) / own->loss_scale;
    }
};

extern "C" void cuda_measure_gradient(struct device *device, struct lanes lanes, const real *gradient,
                                      int64_t count, struct lane_state *state)
{
    squares(cuda_of(device), lanes, gradient, count, measure_end{state, lanes.stride}, "measure_gradient");
}

struct finite_end {
    bool *finite; // (lanes), on the device

    __device__ void operator()(int64_t lane, double sum) const
    {
        finite[lane] = isfinite(sum);
    }
};

extern "C" void cuda_finite(struct device *device, struct lanes lanes, bool *finite, const real *x,
                            int64_t count)
{
    struct cuda_device *cuda = cuda_of(device);

    if (lanes.count <= 0)
        return;
    squares(cuda, lanes, x, count, finite_end{(bool *)cuda_answers(cuda)}, "finite");
    cuda_deliver(cuda, finite, cuda_answers(cuda), (size_t)lanes.count * sizeof(bool));
}
