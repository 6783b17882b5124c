/* Which rows train, validate and test: seeded, and the same for every trial of a sweep on every worker. */
#ifndef RUNG_WORKER_TRAINING_DATA_SPLIT_H
#define RUNG_WORKER_TRAINING_DATA_SPLIT_H

#include "base/error.h"

#include <stdint.h>

/* What all ways to split need to know. */
struct split_options {
    double validation, test; /* shares of the rows */
    uint64_t seed;
};

/* Each fills part[rows] with enum split. Errors: ERROR_USAGE when a part that was asked for stays empty,
 * ERROR_MEMORY. */

/* `label` (rows, values below `classes`) or NULL: not stratified. Each part has its share of every class to
 * within two rows, and every class a row for training. */
int split_rows(unsigned char *part, const int32_t *label, int64_t classes, int64_t rows, double validation,
               double test, uint64_t seed, struct error *err);

/* All rows of one group (group[rows], values below `groups`) in one part. Groups are dealt from large to
 * small (by powers of two, in random order among those), each to the part that lacks most of what it has:
 * rows, and rows of each class. Every class has a group for training. */
int split_groups(unsigned char *part, const int32_t *group, int64_t groups, const int32_t *label,
                 int64_t classes, int64_t rows, const struct split_options *options, struct error *err);

/* The newest rows test, those before them validate; rows of one time stay together, so that a cut lies at the
 * change of time nearest to where the shares would have it. time[rows]: finite. */
int split_by_time(unsigned char *part, const double *time, int64_t rows, const struct split_options *options,
                  struct error *err);

/* ERROR_USAGE unless each part has the rows it needs. */
int split_check(const unsigned char *part, int64_t rows, double test, struct error *err);

#endif
