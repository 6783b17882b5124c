/* The whole trial in one block of device memory, so that it is one allocation, its size is known beforehand
 * from the same code that lays it out, and another lane is the same layout one stride further. */
#ifndef RUNG_WORKER_TRAINING_MEMORY_H
#define RUNG_WORKER_TRAINING_MEMORY_H

#include "worker/training/data.h"
#include "worker/training/model.h"

#include <stddef.h>

/* Moments an optimizer keeps for each parameter: sgd none or its velocity, adamw mean and square. */
#define MOMENTS 2
int moment_count(const struct training_settings *settings);

struct memory {
    void *block;
    size_t size; /* of the block, as laid out before it was allocated */
    /* (parameters) each */
    real *parameters;
    real *gradients;
    real *moments[MOMENTS]; /* NULL beyond moment_count */
    real *best;             /* the best epoch's parameters; NULL unless settings ask for them */
    struct activations activations;
    int32_t *label; /* (batch rows); NULL for regression */
    real *target;   /* (batch rows); NULL for classification */
    int32_t *order; /* (training rows): this epoch's */
    double *rates;  /* (steps of an epoch): this epoch's learning rates */
    struct lane_state *state;
};

/* Lays out for batches of at most `batch_rows` rows and allocates. ERROR_MEMORY names
 * the size. */
int memory_init(struct memory *memory, const struct model *model, const struct training_settings *settings,
                enum task task, int64_t batch_rows, int64_t training_rows, int64_t steps,
                struct device *device, struct error *err);
void memory_release(struct memory *memory, struct device *device);

#endif
