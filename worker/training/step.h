/* One optimizer step over one effective batch, in micro batches whose gradients add up to exactly the
 * batch's: each sample counts 1 / (samples in the effective batch), also in a short last batch; dropout and
 * the groups of batch norms go by the position in it. Which batch of the epoch it is, at which learning rate,
 * stands in the state in device memory, which a step moves on; so a step can be recorded and replayed. */
#ifndef RUNG_WORKER_TRAINING_STEP_H
#define RUNG_WORKER_TRAINING_STEP_H

#include "worker/training/loss.h"
#include "worker/training/memory.h"

/* One split in device memory. */
struct device_rows {
    const float *x;          /* (rows, features); NULL without features */
    const int32_t *category; /* (rows, categories); NULL without */
    const int32_t *label;    /* (rows); NULL for regression */
    const float *y;          /* (rows); NULL for classification */
};

/* What steps of one trial have in common; all borrowed. */
struct step_plan {
    const struct training_settings *settings;
    const struct derived *derived;
    const struct model *model;
    const struct memory *memory;
    struct device *device;
    struct lanes lanes;
    enum loss_kind loss;
    int64_t classes;
    const real *class_weight; /* (classes) in device memory, or NULL */
    struct device_rows rows;  /* to train on */
};

/* Adds the loss (training mode, summed over samples) of a batch of `count` rows to state->loss and leaves its
 * gradient, times the loss scale, in memory's gradients. */
void step_gradient(const struct step_plan *plan, int64_t count);
/* A whole step: looks up its learning rate, gradient, update, counts it. */
void step_run(const struct step_plan *plan, int64_t count);

/* Outputs in evaluation mode of `count` rows from `first` on, in their own order, left in the evaluation's
 * model_outputs. */
void step_evaluate(const struct step_plan *plan, const struct device_rows *rows, int64_t first,
                   int64_t count);

#endif
