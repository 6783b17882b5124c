/* Softmax, cross-entropy and its gradient in one pass over the logits. With m the largest of a row and S the
 * sum of exp(x - m), -log p[c] = m - x[c] + log S, all of it at least 0, so nothing cancels; and
 *     loss     = a (-log p[label]) + b (sum_c w[c] (m - x[c]) + W log S),   a = (1 - s) w[label], b = s /
 * classes, slope[c] = (a + b W) p[c] - a [c = label] - b w[c],                   W = sum_c w[c]. */
#include "kernels/cuda/loss.cuh"
#include "kernels/cuda/operations.h"

#define THREADS CUDA_REDUCE_THREADS
#define BLOCKS 1024 /* of a lane, at most */

struct softmax_problem {
    const float *logits;       // (rows, classes)
    const int32_t *label;      // (rows)
    const float *class_weight; // (classes), shared; NULL: 1 each
    int64_t rows, classes;
};

__device__ static inline float weight_of(const softmax_problem &problem, int64_t class_)
{
    return problem.class_weight ? problem.class_weight[class_] : 1;
}

/* What a row's team knows of it. */
struct softmax_row {
    const float *x;
    int64_t label;
    float maximum, sum;
    float a, b;            /* see above; b is 0 without smoothing */
    float weights, spread; /* W, sum_c w[c] (m - x[c]); not needed without smoothing */
};

template <int TEAM>
__device__ static inline softmax_row row_read(const softmax_problem &problem, int64_t row, int64_t member,
                                              float smoothing)
{
    softmax_row it = {problem.logits + row * problem.classes, problem.label[row], -INFINITY, 0, 0, 0, 0, 0};

    it.a = (1 - smoothing) * weight_of(problem, it.label);
    it.b = smoothing / (float)problem.classes;
    for (int64_t c = member; c < problem.classes; c += TEAM)
        it.maximum = fmaxf(it.maximum, it.x[c]);
    it.maximum = cuda_team_combine<TEAM>(it.maximum, cuda_maximum());
    for (int64_t c = member; c < problem.classes; c += TEAM)
        it.sum += expf(it.x[c] - it.maximum);
    it.sum = cuda_team_sum<TEAM>(it.sum);
    if (smoothing > 0) {
        for (int64_t c = member; c < problem.classes; c += TEAM) {
            it.weights += weight_of(problem, c);
            it.spread += weight_of(problem, c) * (it.maximum - it.x[c]);
        }
        it.weights = cuda_team_sum<TEAM>(it.weights);
        it.spread = cuda_team_sum<TEAM>(it.spread);
    }
    return it;
}

__device__ static inline double row_loss(const softmax_row &it)
{
    const double log_sum = log((double)it.sum);
    const double label = (double)it.maximum - (double)it.x[it.label] + log_sum;
    const double rest = it.b > 0 ? (double)it.spread + (double)it.weights * log_sum : 0;
    return (double)it.a * label + (double)it.b * rest;
}

/* A team of TEAM threads takes a row: one where there are few classes, the whole block where there are many.
 */
template <typename T, int TEAM>
__global__ void softmax_kernel(T *gradient, softmax_problem problem, double scale, struct lane_state *state,
                               size_t stride, cuda_partials partials)
{
    const int64_t lane = cuda_partials_lane(partials), teams = THREADS / TEAM;
    const int64_t team = threadIdx.x / TEAM, member = threadIdx.x % TEAM;
    const struct lane_state *own = cuda_lane(state, stride, lane);
    const float factor = (float)(scale * own->loss_scale), smoothing = (float)own->label_smoothing;
    T *to = cuda_lane(gradient, stride, lane); // (rows, classes)
    double loss = 0;

    problem.logits = cuda_lane(problem.logits, stride, lane);
    problem.label = cuda_lane(problem.label, stride, lane);
    for (int64_t first = blockIdx.x * teams; first < problem.rows; first += gridDim.x * teams) {
        const int64_t row = first + team, inside = row < problem.rows ? row : problem.rows - 1;
        const softmax_row it = row_read<TEAM>(problem, inside, member, smoothing);
        if (row >= problem.rows)
            continue; /* all came together for the row; only the sum of losses lies ahead */
        const float share = (it.a + it.b * it.weights) / it.sum;
        for (int64_t c = member; c < problem.classes; c += TEAM) {
            float slope = share * expf(it.x[c] - it.maximum) - it.b * weight_of(problem, c);
            cuda_set(&to[row * problem.classes + c], factor * (c == it.label ? slope - it.a : slope));
        }
        if (member == 0)
            loss += row_loss(it);
    }
    cuda_partials_end(partials, loss, cuda_loss_end{state, stride});
}

template <typename T, int TEAM>
static void launch(struct cuda_device *cuda, struct lanes lanes, T *gradient, softmax_problem problem,
                   double scale, struct lane_state *state)
{
    int64_t blocks = cuda_divide_up(problem.rows, THREADS / TEAM);
    cuda_loss_end end = {state, lanes.stride};

    blocks = blocks < BLOCKS ? blocks : BLOCKS;
    cuda_partials_sum(cuda, lanes, blocks, end, "softmax_cross_entropy",
                      [&](dim3 grid, cuda_partials partials) {
                          CUDA_LAUNCH((softmax_kernel<T, TEAM>), grid, THREADS, 0, cuda->stream, gradient,
                                      problem, scale, state, lanes.stride, partials);
                      });
}

extern "C" void cuda_softmax_cross_entropy(struct device *device, struct lanes lanes, void *gradient,
                                           const real *logits, const int32_t *label, const real *class_weight,
                                           int64_t rows, int64_t classes, double scale,
                                           struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);
    softmax_problem problem = {logits, label, class_weight, rows, classes};

    if (rows <= 0 || classes <= 0)
        return;
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        if (classes <= 16)
            launch<T, 1>(cuda, lanes, (T *)gradient, problem, scale, state);
        else if (classes <= 64)
            launch<T, 8>(cuda, lanes, (T *)gradient, problem, scale, state);
        else if (classes <= 2048)
            launch<T, CUDA_WARP>(cuda, lanes, (T *)gradient, problem, scale, state);
        else
            launch<T, THREADS>(cuda, lanes, (T *)gradient, problem, scale, state);
    });
}
