/* A model on a few rows, ready for steps, for the tests of the trainer's mathematics in both builds. */
#ifndef RUNG_TESTS_TRAINING_FIXTURE_H
#define RUNG_TESTS_TRAINING_FIXTURE_H

#include "worker/training/optimizer.h"
#include "worker/training/step.h"

struct training_bed {
    struct training_settings settings;
    struct derived derived;
    struct model model;
    struct memory_shape shape;
    struct memory memory;
    struct device *device;
    struct step_plan plan;
    real *class_weight; /* owned */
};

/* What a bed trains on, borrowed, in the order of an epoch: one of label and y. */
struct bed_rows {
    int64_t rows, features, categories, classes; /* classes 0: regression */
    const int64_t *cardinality;
    enum device_precision precision;
    float *x;
    int32_t *category, *label;
    float *y;
};

/* sgd without momentum, learning rate 0.1, one epoch of one batch, relu, no dropout. */
struct training_settings plain_settings(int64_t rows);

/* Parameters start at the model's own draw. Aborts the test on failure. */
void bed_init(struct training_bed *bed, const struct training_settings *settings, const struct bed_rows *rows,
              uint64_t seed);
void bed_release(struct training_bed *bed);

/* Mean loss (training mode) of `count` rows of batch number `batch` and, in memory's gradients, its gradient,
 * in step number `step`. */
double bed_gradient(struct training_bed *bed, int64_t batch, int64_t count, int64_t step);

/* Uniform in (-1, 1), from a seed. */
float random_value(uint64_t seed, uint32_t element);

#endif
