/* From columns to features: numbers scaled, texts one-hot or numbered, all by the training rows only. */
#ifndef RUNG_WORKER_TRAINING_DATA_FEATURES_H
#define RUNG_WORKER_TRAINING_DATA_FEATURES_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_categories.h"
#include "worker/training/data_preprocess.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stdint.h>

struct feature_options {
    enum preprocess preprocess;
    int64_t max_categories; /* different texts of a column that are still one-hot */
    const bool *excluded;   /* (columns of the table) no features: targets, group, time; borrowed */
    const json_t *missing;  /* data.missing, to be saved with the features; borrowed; NULL: none */
};
/* preprocess, max_categories and missing from the train.data object. */
int feature_options_read(struct feature_options *options, const json_t *data, struct error *err);

enum feature_kind {
    FEATURE_NUMBER,   /* scaled; a missing one is the training rows' mean or median */
    FEATURE_MISSING,  /* 1 where the column of numbers has none */
    FEATURE_CATEGORY, /* 1 where `entry` stands */
};

struct feature {
    enum feature_kind kind;
    int64_t column;
    int32_t
        entry; /* FEATURE_CATEGORY: of the column's dictionary; a missing one stands for all missing texts */
    struct scaling scaling; /* FEATURE_NUMBER */
};

struct features {
    enum preprocess preprocess;
    const json_t *missing;   /* borrowed from the options */
    struct feature *feature; /* (count): the columns of x */
    int64_t count, capacity;
    struct numbering *numbering; /* (numbering_count): the columns of `category` */
    int64_t numbering_count, numbering_capacity;
};

/* Plans the features from the rows (of data) that train: the first `train_rows` of `rows`; the rest of them,
 * to `all_rows`, is looked at for notes only. Columns that are empty, constant in training, an unnamed index,
 * or of texts that never come twice are dropped with a note. Cells that do not fit: ERROR_USAGE. */
int features_fit(struct features *features, struct table *table, const struct feature_options *options,
                 const int64_t *rows, int64_t train_rows, int64_t all_rows, json_t *notes, struct error *err);
void features_release(struct features *features);
/* x (count, features->count) of the given rows of data. ERROR_USAGE names a value too large for float32 once
 * scaled. */
int features_fill(const struct features *features, const struct table *table, const int64_t *rows,
                  int64_t count, float *x, struct error *err);
/* category (count, features->numbering_count) of the given rows of data. */
void features_fill_categories(const struct features *features, const struct table *table, const int64_t *rows,
                              int64_t count, int32_t *category);
/* Sets "preprocess", "missing" (what data.missing lists), "features" (one an entry of x) and "categories"
 * (one a numbered column): with docs/training.md all that it takes to apply them to another table. -1 without
 * memory. */
int features_describe(const struct features *features, const struct table *table, json_t *object);

#endif
