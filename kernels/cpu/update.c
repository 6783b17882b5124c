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

void LOOPS(sgd)(real *restrict weight, const real *restrict gradient, real *restrict velocity, int64_t count,
                const struct sgd_step *step)
{
    real rate = (real)step->learning_rate, momentum = (real)step->momentum, decay = (real)step->weight_decay;

    if (!velocity) {
        for (int64_t i = 0; i < count; i++)
            weight[i] -= rate * (gradient[i] + decay * weight[i]);
    } else if (step->nesterov) {
        for (int64_t i = 0; i < count; i++) {
            real g = gradient[i] + decay * weight[i];
            velocity[i] = flush(momentum * velocity[i] + g);
            weight[i] -= rate * (g + momentum * velocity[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            velocity[i] = flush(momentum * velocity[i] + (gradient[i] + decay * weight[i]));
            weight[i] -= rate * velocity[i];
        }
    }
}

void LOOPS(adamw)(real *restrict weight, const real *restrict gradient, real *restrict mean,
                  real *restrict square, int64_t count, const struct adamw_step *step)
{
    double correction1 = 1 - pow(step->beta1, (double)step->number);
    double correction2 = 1 - pow(step->beta2, (double)step->number);
    real keep = (real)(1 - step->learning_rate * step->weight_decay);
    real rate = (real)(step->learning_rate / correction1);
    real root = (real)(1 / sqrt(correction2)), epsilon = (real)step->epsilon;
    real beta1 = (real)step->beta1, beta2 = (real)step->beta2;
    real share1 = (real)(1 - step->beta1), share2 = (real)(1 - step->beta2);

    for (int64_t i = 0; i < count; i++) {
        real g = gradient[i];
        real m = flush(beta1 * mean[i] + share1 * g);
        real v = flush(beta2 * square[i] + share2 * g * g);
        mean[i] = m;
        square[i] = v;
        weight[i] = keep * weight[i] - rate * m / (ROOT(v) * root + epsilon);
    }
}
