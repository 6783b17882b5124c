/* Fitting and applying the scaling of a column of numbers; see data_preprocess.h. */
#include "worker/training/data_preprocess.h"

#include "base/normal.h"
#include "worker/training/data_sort.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_LEAST 1e-7 /* normal scores end here, at +-5.2: no value may stand for certainty */

const char *const preprocess_names[] = {"standard", "quantile", "robust", "none", NULL};

/* Linear between the sorted values. */
static double value_at(const double *sorted, int64_t count, double share)
{
    double place = share * (double)(count - 1);
    int64_t below = (int64_t)floor(place);
    if (below >= count - 1)
        return sorted[count - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (place - (double)below);
}

/* Two passes: the mean first, so that the squares do not cancel. */
static void fit_moments(const double *value, int64_t count, double *mean, double *sd)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += value[i];
    *mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double miss = value[i] - *mean;
        squares += miss * miss;
    }
    *sd = sqrt(squares / (double)count);
}

static int fit_quantiles(struct scaling *scaling, const double *sorted, int64_t count, struct error *err)
{
    scaling->quantiles = count < QUANTILES_MAXIMUM ? count : QUANTILES_MAXIMUM;
    scaling->quantile = malloc((size_t)scaling->quantiles * sizeof *scaling->quantile);
    if (!scaling->quantile)
        return error_set(err, ERROR_MEMORY, "no memory for its quantiles");
    for (int64_t k = 0; k < scaling->quantiles; k++)
        scaling->quantile[k] = value_at(sorted, count, (double)k / (double)(scaling->quantiles - 1));
    return 0;
}

static int refuse_spread(enum preprocess preprocess, double low, double high, struct error *err)
{
    return error_set(err, ERROR_USAGE, "spans %g to %g, too far %s: give its logarithm%s", low, high,
                     preprocess == PREPROCESS_QUANTILE ? "for double precision"
                                                       : "to standardise in double precision",
                     preprocess == PREPROCESS_QUANTILE ? "" : ", or set data.preprocess: quantile");
}

int scaling_fit(struct scaling *scaling, enum preprocess preprocess, double *value, int64_t count,
                struct error *err)
{
    double mean, sd;
    memset(scaling, 0, sizeof *scaling);
    scaling->preprocess = preprocess;
    scaling->scale = 1;
    fit_moments(value, count, &mean, &sd);
    scaling->fill = mean;
    if (preprocess == PREPROCESS_ROBUST || preprocess == PREPROCESS_QUANTILE) {
        numbers_sort(value, count);
        scaling->fill = value_at(value, count, 0.5);
    }
    if (preprocess == PREPROCESS_STANDARD || preprocess == PREPROCESS_ROBUST)
        scaling->centre = scaling->fill;
    if (preprocess == PREPROCESS_STANDARD)
        scaling->scale = sd;
    if (preprocess == PREPROCESS_ROBUST) {
        double quartiles = value_at(value, count, 0.75) - value_at(value, count, 0.25);
        scaling->scale = quartiles > 0 ? quartiles : sd;
    }
    if (preprocess == PREPROCESS_QUANTILE && isfinite(value[count - 1] - value[0]))
        return fit_quantiles(scaling, value, count, err);
    if (preprocess != PREPROCESS_QUANTILE && isfinite(scaling->fill) && isfinite(scaling->scale) &&
        scaling->scale > 0)
        return 0;
    numbers_sort(value, count);
    return refuse_spread(preprocess, value[0], value[count - 1], err);
}

void scaling_release(struct scaling *scaling)
{
    free(scaling->quantile);
    memset(scaling, 0, sizeof *scaling);
}

/* Number of quantiles below x, or (`equal`) not above it. Without branches that depend on the data: they
 * could not be foretold, and each would cost more than the comparison. */
static int64_t quantiles_below(const struct scaling *scaling, double x, bool equal)
{
    const double *from = scaling->quantile;
    int64_t count = scaling->quantiles;
    while (count > 1) {
        int64_t half = count / 2;
        from += (from[half - 1] < x) | (equal & (from[half - 1] == x)) ? half : 0;
        count -= half;
    }
    return from - scaling->quantile + ((*from < x) | (equal & (*from == x)));
}

/* The share of the training rows below x. */
static double share_of(const struct scaling *scaling, double x)
{
    const double *quantile = scaling->quantile;
    double last = (double)(scaling->quantiles - 1);
    if (x <= quantile[0])
        return 0;
    if (x >= quantile[scaling->quantiles - 1])
        return 1;
    int64_t next = quantiles_below(scaling, x, false);
    if (quantile[next] == x) { /* several equal ones: the middle of their shares */
        int64_t behind = quantiles_below(scaling, x, true);
        return ((double)next + (double)(behind - 1)) / 2 / last;
    }
    double step = (x - quantile[next - 1]) / (quantile[next] - quantile[next - 1]);
    return ((double)(next - 1) + step) / last;
}

double scaling_apply(const struct scaling *scaling, double x)
{
    if (isnan(x))
        x = scaling->fill;
    if (scaling->preprocess != PREPROCESS_QUANTILE)
        return (x - scaling->centre) / scaling->scale;
    double share = share_of(scaling, x);
    share = share < SHARE_LEAST ? SHARE_LEAST : share > 1 - SHARE_LEAST ? 1 - SHARE_LEAST : share;
    return normal_quantile(share);
}

static int describe_quantiles(const struct scaling *scaling, json_t *object)
{
    json_t *array = json_array();
    int failed = 0;
    for (int64_t k = 0; k < scaling->quantiles; k++)
        failed |= json_array_append_new(array, json_number(scaling->quantile[k]));
    return failed | json_object_set_new(object, "quantiles", array);
}

int scaling_describe(const struct scaling *scaling, json_t *object)
{
    int failed = json_object_set_new(object, "fill", json_number(scaling->fill));
    switch (scaling->preprocess) {
    case PREPROCESS_STANDARD:
        failed |= json_object_set_new(object, "mean", json_number(scaling->centre)) |
                  json_object_set_new(object, "sd", json_number(scaling->scale));
        break;
    case PREPROCESS_ROBUST:
        failed |= json_object_set_new(object, "median", json_number(scaling->centre)) |
                  json_object_set_new(object, "scale", json_number(scaling->scale));
        break;
    case PREPROCESS_QUANTILE:
        failed |= describe_quantiles(scaling, object);
        break;
    case PREPROCESS_NONE:
        break;
    }
    return failed ? -1 : 0;
}
