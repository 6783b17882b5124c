/* Data: a table file read once, split, standardised; then shared read-only by every trial of a worker.
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
    int64_t features;            /* columns of x after preprocessing (constant ones dropped) */
    int64_t classes;             /* classification: >= 2; regression: 0 */
    float *x[SPLIT_COUNT];       /* (rows, features), standardised by training statistics */
    int32_t *label[SPLIT_COUNT]; /* (rows), classification */
    float *y[SPLIT_COUNT];       /* (rows), regression: standardised by training mean and sd */
    double target_mean, target_sd;
    json_t *preprocessing; /* columns, means, sds, class names: saved with the model */
    json_t *notes;         /* array of strings: what was decided or dropped */
};

/* `data`: the train.data object (path, target, validation, test, header, delimiter, task, ...); path
 * overrides data.path when not NULL (a fetched blob). seed: the sweep's. Errors: ERROR_USAGE with file, line,
 * column, what was found and the remedy; ERROR_RESOURCE if unreadable. */
int dataset_load(struct dataset *dataset, const json_t *data, const char *path, uint64_t seed,
                 struct error *err);
/* A view for the refit: training = train + validation rows, statistics computed anew on them, same test rows.
 */
int dataset_load_refit(struct dataset *dataset, const json_t *data, const char *path, uint64_t seed,
                       struct error *err);
void dataset_release(struct dataset *dataset);

#endif
