/* The trainer's random numbers: Philox blocks with the trial's seed as key and the counter
 * {element, 0, epoch or step, purpose | layer << 8}. A number is a function of where it is used, so that it
 * is the same on every backend, after a resume, and however a batch is cut into micro batches. */
#ifndef RUNG_WORKER_TRAINING_RANDOM_H
#define RUNG_WORKER_TRAINING_RANDOM_H

#include <stdint.h>

enum random_purpose {
    RANDOM_INITIAL = 1,   /* weights; layer; element: its place in the layer */
    RANDOM_SHUFFLE = 2,   /* order of the rows; epoch; element: the row */
    RANDOM_DROPOUT = 3,   /* masks; step and layer; drawn by the device */
    RANDOM_EMBEDDING = 4, /* initial embeddings; which one; element: its place in the table */
};

uint32_t random_stream(enum random_purpose purpose, int layer);

/* Seed of a trial: words 0 and 1 of the Philox block keyed by the sweep's seed at (trial, "trial"). */
uint64_t trial_seed(uint64_t sweep_seed, int64_t trial);

/* values (count) uniform in the open interval (-bound, bound), elements `first`, first + 1, ... of a layer.
 */
void random_uniform(uint64_t seed, int layer, int64_t first, double *values, int64_t count, double bound);

/* values (count) standard normal, of embedding `embedding`: elements 2i and 2i + 1 by Box & Muller 1958 from
 * words of block i. */
void random_normal(uint64_t seed, int embedding, double *values, int64_t count);

/* The order of an epoch: 0..count-1 sorted by (word of the row, row). scratch (2 count). */
void random_order(uint64_t seed, int64_t epoch, int32_t *order, int64_t count, uint64_t *scratch);

#endif
