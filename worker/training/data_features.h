/* From columns to features: numbers standardised, texts one-hot, both by the training rows only. */
#ifndef RUNG_WORKER_TRAINING_DATA_FEATURES_H
#define RUNG_WORKER_TRAINING_DATA_FEATURES_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_table.h"

#include <stdint.h>

/* Texts of a column that are one-hot encoded; a column with more is dropped. */
#define CATEGORIES_MAXIMUM 32

struct feature {
    int64_t column;
    int32_t entry; /* of the column's dictionary: 1 where it stands, else 0; CELL_IS_NUMBER: (value - mean) /
                      sd */
    double mean, sd; /* of the training rows, population form */
};

struct features {
    struct feature *feature;
    int64_t count, capacity;
};

/* Plans the features from the rows (of data, `train_rows` of them) that train. Columns that are empty,
 * constant in training, an unnamed index, or texts of too many kinds are dropped with a note. Cells that do
 * not fit: ERROR_USAGE. */
int features_fit(struct features *features, struct table *table, int64_t target, const int64_t *train,
                 int64_t train_rows, json_t *notes, struct error *err);
void features_release(struct features *features);
/* x (rows, count) of the given rows of data. ERROR_USAGE names a value too large for float32 once
 * standardised. */
int features_fill(const struct features *features, const struct table *table, const int64_t *rows,
                  int64_t count, float *x, struct error *err);
/* Array of {"name", "mean", "sd"} and {"name", "category"}, one a feature. New reference, NULL
 * without memory. */
json_t *features_to_json(const struct features *features, const struct table *table);

#endif
