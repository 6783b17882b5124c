/* The whole trial in one block of device memory, so that it is one allocation, its size is known beforehand
 * from the same code that lays it out, and another lane is the same layout one stride further. */
#ifndef RUNG_WORKER_TRAINING_MEMORY_H
#define RUNG_WORKER_TRAINING_MEMORY_H

#include "worker/training/model.h"

#include <stddef.h>

/* Moments an optimizer keeps for each parameter: sgd and lars none or their velocity, the others mean and
 * square. */
#define MOMENTS 2
int moment_count(const struct training_settings *settings);

/* As settings call it. Static. */
const char *precision_name(enum device_precision precision);

/* What a layout follows from. */
struct memory_shape {
    const struct model *model;
    const struct training_settings *settings;
    enum device_precision precision;
    bool labels;             /* targets are classes, not numbers */
    int64_t training_rows;   /* of an epoch */
    int64_t steps;           /* of an epoch */
    int64_t micro_rows;      /* most rows of one training pass */
    int64_t norm_batch;      /* rows of a batch norm's group */
    int64_t evaluation_rows; /* of one evaluation pass */
};

struct memory {
    void *block;
    size_t size; /* of the block, as laid out before it was allocated */
    struct blocks blocks;
    real *moments[MOMENTS]; /* (parameters) each; NULL beyond moment_count */
    real *best;             /* (values): the best epoch's; NULL unless settings ask for them */
    struct activations training, evaluation; /* in the same place: only one of them at a time */
    int32_t *label;                          /* (micro rows); NULL for regression */
    real *target;                            /* (micro rows); NULL for classification */
    int32_t *order;                          /* (training rows): this epoch's */
    double *rates;                           /* (steps): this epoch's learning rates */
    struct lane_state *state;
};

/* Bytes of the block. */
size_t memory_size(const struct memory_shape *shape);
/* What one row of a training pass takes, without rounding up to alignment. */
size_t memory_row_size(const struct memory_shape *shape);

/* Lays out and allocates; the state is zero. ERROR_MEMORY names the size. */
int memory_init(struct memory *memory, const struct memory_shape *shape, struct device *device,
                struct error *err);
void memory_release(struct memory *memory, struct device *device);

#endif
