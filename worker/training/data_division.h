/* The rows of each part, by the split that the settings ask for. */
#ifndef RUNG_WORKER_TRAINING_DATA_DIVISION_H
#define RUNG_WORKER_TRAINING_DATA_DIVISION_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_roles.h"
#include "worker/training/data_split.h"
#include "worker/training/data_table.h"
#include "worker/training/data_target.h"

#include <stdint.h>

/* Fills part[rows of data] with enum split: the rows of the training table's file by shares, at random, by
 * group or by time; those of a test table's file all test. ERROR_USAGE, ERROR_MEMORY. */
int table_divide(unsigned char *part, struct table *table, const struct roles *roles,
                 const struct target *target, const struct split_options *split, json_t *notes,
                 struct error *err);

#endif
