/* Metrics of one split, accumulated over batches in double precision.
 *
 * Classification: loss (mean cross-entropy in nats), accuracy, balanced_accuracy (mean recall over the
 * classes present), f1 (macro, over the classes present or predicted) and, for two classes, auc (ranks; ties
 * count half). Regression: loss (mean squared error of standardised targets), rmse, mae and r2 in the
 * target's own units; with a huber_delta the loss is Huber's (kernels/device.h), so that it is of the kind
 * that was trained, without smoothing and class weights. Every mean is over samples, whatever the sizes of
 * the batches; what is undefined (no rows, one class, a constant target) is NaN. */
#ifndef RUNG_WORKER_TRAINING_METRICS_H
#define RUNG_WORKER_TRAINING_METRICS_H

#include "base/error.h"
#include "base/json.h"

#include <stdint.h>

struct metrics {
    int64_t classes; /* 0: regression */
    int64_t rows;    /* added so far */
    double loss_sum;
    /* classification; one allocation of 3 * classes counters */
    int64_t *correct, *present, *predicted; /* (classes) */
    /* two classes: what the rank statistic needs; both (capacity) */
    float *score;
    unsigned char *positive;
    int64_t capacity;
    /* regression, in target units */
    double target_sd, huber_delta;
    double square_sum, absolute_sum, target_mean, target_square_sum; /* the last two by Welford's update */
};

/* classes >= 2: classification; 0: regression, where target_sd turns standardised errors into target units
 * and huber_delta above 0 is of standardised errors; 0: squared ones. `rows` is the most that will be added
 * between two resets. ERROR_MEMORY. */
int metrics_init(struct metrics *metrics, int64_t classes, int64_t rows, double target_sd, double huber_delta,
                 struct error *err);
void metrics_release(struct metrics *metrics);
/* Back to no rows, keeping the memory. */
void metrics_reset(struct metrics *metrics);

/* logits (rows, classes) and labels (rows); a row whose logits are not all numbers is predicted as no class.
 * Rows beyond the number given to metrics_init are not taken into the auc. */
void metrics_add_logits(struct metrics *metrics, const float *logits, const int32_t *label, int64_t rows);
/* One logit a row: that of class 1 of two. */
void metrics_add_scores(struct metrics *metrics, const float *logit, const int32_t *label, int64_t rows);
/* Predictions and targets, both standardised (rows). */
void metrics_add_values(struct metrics *metrics, const float *prediction, const float *target, int64_t rows);

/* Puts PREFIXloss, PREFIXaccuracy, ... into `object`; prefix "validation_", "test_". -1 on no memory
 * (ERROR_MEMORY). */
int metrics_report(const struct metrics *metrics, const char *prefix, json_t *object, struct error *err);

#endif
