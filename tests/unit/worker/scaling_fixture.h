/* Scaling by the definitions, the slow way. */
#ifndef RUNG_TESTS_UNIT_WORKER_SCALING_FIXTURE_H
#define RUNG_TESTS_UNIT_WORKER_SCALING_FIXTURE_H

#include "tests/unit/worker/data_fixture.h"
#include "worker/training/data_preprocess.h"

#include <math.h>

static inline void check_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static inline double bisected_score(double p)
{
    double low = -6, high = 6;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(0.5 * erfc(-middle / sqrt(2)) < p ? &low : &high) = middle;
    }
    return low;
}

/* Interpolated from the left (the last of equal quantiles counts) and, mirrored, from the right; the mean of
 * both. */
static inline double slow_share(const double *quantile, int count, double x)
{
    double from_left = 0, from_right = 0;
    if (x <= quantile[0])
        return 0;
    if (x >= quantile[count - 1])
        return 1;
    for (int k = 0; k + 1 < count; k++)
        if (quantile[k] <= x && x < quantile[k + 1])
            from_left = k + (x - quantile[k]) / (quantile[k + 1] - quantile[k]);
    for (int k = count - 1; k > 0; k--)
        if (quantile[k - 1] < x && x <= quantile[k])
            from_right = k - (quantile[k] - x) / (quantile[k] - quantile[k - 1]);
    return (from_left + from_right) / 2 / (count - 1);
}

static inline double slow_score(const double *quantile, int count, double x)
{
    return bisected_score(fmin(fmax(slow_share(quantile, count, x), 1e-7), 1 - 1e-7));
}

#endif
