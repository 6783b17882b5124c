/* Which rows train, validate and test: stratified, seeded, and the same for every trial of a sweep. */
#ifndef RUNG_WORKER_TRAINING_DATA_SPLIT_H
#define RUNG_WORKER_TRAINING_DATA_SPLIT_H

#include "base/error.h"

#include <stdint.h>

/* Fills part[rows] with enum split. `label` (rows, values below `classes`) or NULL: not stratified. Each part
 * has its share of every class to within two rows, and every class a row for training. Errors:
 * ERROR_USAGE when a part that was asked for stays empty, ERROR_MEMORY. */
int split_rows(unsigned char *part, const int32_t *label, int64_t classes, int64_t rows, double validation,
               double test, uint64_t seed, struct error *err);

#endif
