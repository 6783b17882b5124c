/* Optimizer steps over a flat block of parameters. */
#include "kernels/cpu/loops_internal.h"

#include <math.h>

#ifdef RUNG_REAL_DOUBLE
#define ROOT sqrt
#define ABSOLUTE fabs
#else
#define ROOT sqrtf
#define ABSOLUTE fabsf
#endif

/* Moments of parameters without a gradient (dead units, constant pixels) decay into denormal numbers and stay
 * there, where some processors take 100 times as long. Nothing this small can move a float32 weight. */
#define TINY ((real)1e-30)

static inline real flush(real x)
{
    return ABSOLUTE(x) < TINY ? 0 : x; /* NaN stays */
}

/* sgd with g = factor gradient + decay w. */
static void descend(real *restrict weight, const real *restrict gradient, real *restrict velocity,
                    int64_t count, real factor, real decay, const struct lane_state *state)
{
    real rate = (real)state->learning_rate, momentum = (real)state->momentum;

    if (!velocity) {
        for (int64_t i = 0; i < count; i++)
            weight[i] -= rate * (factor * gradient[i] + decay * weight[i]);
    } else if (state->nesterov) {
        for (int64_t i = 0; i < count; i++) {
            real g = factor * gradient[i] + decay * weight[i];
            velocity[i] = flush(momentum * velocity[i] + g);
            weight[i] -= rate * (g + momentum * velocity[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            velocity[i] = flush(momentum * velocity[i] + (factor * gradient[i] + decay * weight[i]));
            weight[i] -= rate * velocity[i];
        }
    }
}

void LOOPS(sgd)(real *weight, const real *gradient, real *velocity, int64_t count, bool decayed,
                const struct lane_state *state)
{
    descend(weight, gradient, velocity, count, (real)state->gradient_factor,
            decayed ? (real)state->weight_decay : 0, state);
}

void LOOPS(lars)(real *weight, const real *gradient, real *velocity, int64_t count, double ratio,
                 bool decayed, const struct lane_state *state)
{
    descend(weight, gradient, velocity, count, (real)(state->gradient_factor * ratio),
            decayed ? (real)(state->weight_decay * ratio) : 0, state);
}

/* Numbers of a step by moments, the same for all parameters. */
struct moments {
    real beta1, beta2, share1, share2, epsilon;
    real correction; /* 1 / (1 - beta1^t) */
    real root;       /* 1 / sqrt(1 - beta2^t) */
};

static struct moments moments_of(const struct lane_state *state)
{
    double t = (double)(state->updates + 1);

    return (struct moments){
        .beta1 = (real)state->beta1,
        .beta2 = (real)state->beta2,
        .share1 = (real)(1 - state->beta1),
        .share2 = (real)(1 - state->beta2),
        .epsilon = (real)state->epsilon,
        .correction = (real)(1 / (1 - pow(state->beta1, t))),
        .root = (real)(1 / sqrt(1 - pow(state->beta2, t))),
    };
}

void LOOPS(adam)(real *restrict weight, const real *restrict gradient, real *restrict mean,
                 real *restrict square, int64_t count, bool decayed, bool decoupled,
                 const struct lane_state *state)
{
    const struct moments a = moments_of(state);
    double decay = decayed ? state->weight_decay : 0;
    real keep = decoupled ? (real)(1 - state->learning_rate * decay) : 1;
    real factor = (real)state->gradient_factor, added = decoupled ? 0 : (real)decay;
    real rate = (real)state->learning_rate * a.correction;

    for (int64_t i = 0; i < count; i++) {
        real g = factor * gradient[i] + added * weight[i];
        real m = flush(a.beta1 * mean[i] + a.share1 * g);
        real v = flush(a.beta2 * square[i] + a.share2 * g * g);
        mean[i] = m;
        square[i] = v;
        weight[i] = keep * weight[i] - rate * m / (ROOT(v) * a.root + a.epsilon);
    }
}

/* lamb's u. */
static inline real direction(real w, real m, real v, real decay, const struct moments *a)
{
    return m * a->correction / (ROOT(v) * a->root + a->epsilon) + decay * w;
}

double LOOPS(lamb_moments)(const real *restrict weight, const real *restrict gradient, real *restrict mean,
                           real *restrict square, int64_t count, bool decayed, const struct lane_state *state)
{
    const struct moments a = moments_of(state);
    real factor = (real)state->gradient_factor, decay = decayed ? (real)state->weight_decay : 0;
    double partial[WIDTH] = {0};

    for (int64_t first = 0; first < count; first += WIDTH) {
        int64_t size = count - first < WIDTH ? count - first : WIDTH;
        for (int64_t l = 0; l < size; l++) {
            int64_t i = first + l;
            real g = factor * gradient[i];
            real m = flush(a.beta1 * mean[i] + a.share1 * g);
            real v = flush(a.beta2 * square[i] + a.share2 * g * g);
            real u = direction(weight[i], m, v, decay, &a);
            mean[i] = m;
            square[i] = v;
            partial[l] += (double)u * (double)u;
        }
    }
    return sum_pairwise_double(partial);
}

void LOOPS(lamb)(real *restrict weight, const real *restrict mean, const real *restrict square, int64_t count,
                 double ratio, bool decayed, const struct lane_state *state)
{
    const struct moments a = moments_of(state);
    real decay = decayed ? (real)state->weight_decay : 0, rate = (real)(state->learning_rate * ratio);

    for (int64_t i = 0; i < count; i++)
        weight[i] -= rate * direction(weight[i], mean[i], square[i], decay, &a);
}
