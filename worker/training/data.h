/* Data: table files read once, split, preprocessed; then shared read-only by every trial of a worker.
 *
 * Splits train/validation/test are stratified (classification), seeded, fixed for the sweep. Statistics come
 * from the training part only. Rows are stored split by split, row-major float32. */
#ifndef RUNG_WORKER_TRAINING_DATA_H
#define RUNG_WORKER_TRAINING_DATA_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task { TASK_CLASSIFICATION, TASK_REGRESSION };
enum split { SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_TEST, SPLIT_COUNT };

struct dataset {
    enum task task;
    int64_t rows[SPLIT_COUNT];
    int64_t features;      /* columns of x after preprocessing (constant ones dropped) */
    int64_t categories;    /* columns with too many categories for one-hot: embedded by the model */
    int64_t classes;       /* classification: >= 2; regression: 0 */
    int64_t *cardinality;  /* (categories) numbers in use, from 0: not seen in training, or missing */
    int64_t *class_rows;   /* (classes) training rows of each; classification */
    float *x[SPLIT_COUNT]; /* (rows, features), preprocessed by training statistics */
    int32_t *category[SPLIT_COUNT]; /* (rows, categories); NULL without */
    int32_t *label[SPLIT_COUNT];    /* (rows), classification */
    float *y[SPLIT_COUNT];          /* (rows), regression: standardised by training mean and sd */
    double target_mean, target_sd;
    json_t *preprocessing; /* columns, means, sds, class names: saved with the model */
    json_t *notes;         /* array of strings: what was decided or dropped */
};

/* Where the files of `data` lie on this machine (fetched blobs); a NULL member: where `data` says. */
struct data_files {
    const char *path, *labels, *test_path, *test_labels;
};

/* `data`: the train.data object (path, labels, test_path, test_labels, target, validation, test, header,
 * delimiter, task,
 * ...). files: may be NULL. seed: the sweep's. Errors: ERROR_USAGE with file, line, column, what was found
 * and the remedy; ERROR_RESOURCE if unreadable. */
int dataset_load(struct dataset *dataset, const json_t *data, const struct data_files *files, uint64_t seed,
                 struct error *err);
/* A view for the refit: training = train + validation rows, statistics computed anew on them, same test rows.
 */
int dataset_load_refit(struct dataset *dataset, const json_t *data, const struct data_files *files,
                       uint64_t seed, struct error *err);
void dataset_release(struct dataset *dataset);

#endif
