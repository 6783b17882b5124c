/* The losses: which one a trial has, and its gradient for a batch. kernels/device.h has the formulas. */
#ifndef RUNG_WORKER_TRAINING_LOSS_H
#define RUNG_WORKER_TRAINING_LOSS_H

#include "base/error.h"
#include "kernels/device.h"
#include "worker/training/settings.h"

/* classes: 0 for regression. Resolves auto; ERROR_USAGE for a loss that is not of this task. */
int loss_resolve(enum loss_kind loss, int64_t classes, enum loss_kind *resolved, struct error *err);
/* As settings call it. Static. */
const char *loss_name(enum loss_kind loss);
/* Columns of the model's output. */
int64_t loss_outputs(enum loss_kind loss, int64_t classes);
/* Whether its targets are labels. */
bool loss_of_labels(enum loss_kind loss);

/* Weights (classes) that make each class count alike: w[c] = N / (classes * rows of c), so that the mean
 * weight of the N training rows is 1; a class without rows has 0. */
void loss_class_weights(const int64_t *class_rows, int64_t classes, real *weights);

/* What a micro batch's loss is computed from, in device memory; label or target is NULL. */
struct loss_batch {
    void *gradient; /* (rows, outputs) stored */
    const real *outputs;
    const int32_t *label;
    const real *target;
    const real *class_weight; /* may be NULL */
    int64_t rows, classes;
};
/* Adds to state->loss; gradient = scale * state->loss_scale * its derivative. */
void loss_run(enum loss_kind loss, struct device *device, struct lanes lanes, const struct loss_batch *batch,
              double scale, struct lane_state *state);

#endif
