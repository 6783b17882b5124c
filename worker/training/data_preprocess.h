/* Scaling of one column of numbers by statistics of its training rows. */
#ifndef RUNG_WORKER_TRAINING_DATA_PREPROCESS_H
#define RUNG_WORKER_TRAINING_DATA_PREPROCESS_H

#include "base/error.h"
#include "base/json.h"

#include <stdint.h>

/* In the order of the choices of data.preprocess. */
enum preprocess { PREPROCESS_STANDARD, PREPROCESS_QUANTILE, PREPROCESS_ROBUST, PREPROCESS_NONE };
extern const char *const preprocess_names[]; /* ends with NULL */

#define QUANTILES_MAXIMUM 1000

struct scaling {
    enum preprocess preprocess;
    double fill;          /* stands for a missing number, before it is scaled: the median under robust and
                             quantile, else the mean */
    double centre, scale; /* standard: mean, standard deviation in population form; robust: median, distance
                             of the quartiles, or the standard deviation where that is 0; none: 0, 1 */
    double *quantile; /* (quantiles) ascending, evenly spaced in probability from the least to the greatest */
    int64_t quantiles;
};

/* value (count >= 2, not all equal, finite): the training rows' numbers, left in another order. ERROR_MEMORY,
 * or ERROR_USAGE when they lie too far apart (or too close) for double precision. */
int scaling_fit(struct scaling *scaling, enum preprocess preprocess, double *value, int64_t count,
                struct error *err);
void scaling_release(struct scaling *scaling);
/* standard, robust: (x - centre) / scale. quantile: the normal score of x's share of the training rows,
 * linear between quantiles, the mean of both ends where several are equal, within those of 1e-7 and 1 - 1e-7
 * (+-5.2). NaN: of `fill`. */
double scaling_apply(const struct scaling *scaling, double x);
/* Adds the statistics to a feature's description. -1 without memory. */
int scaling_describe(const struct scaling *scaling, json_t *object);

#endif
