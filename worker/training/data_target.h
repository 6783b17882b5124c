/* The column to predict: the task it makes, and its labels. */
#ifndef RUNG_WORKER_TRAINING_DATA_TARGET_H
#define RUNG_WORKER_TRAINING_DATA_TARGET_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data.h"
#include "worker/training/data_table.h"

enum task_request { TASK_REQUEST_AUTO, TASK_REQUEST_CLASSIFICATION, TASK_REQUEST_REGRESSION };

struct target {
    int64_t column;
    enum task task;
    int64_t classes;
    int32_t *label; /* (rows of data) classification */
    double *value;  /* (rows of data) regression; borrowed from the table */
    json_t *names;  /* classification: array of the classes' names in the order of the labels; else NULL */
};

/* Labels of all rows; classes are sorted (numbers by value, texts by bytes). ERROR_USAGE names cells without
 * a usable label, or says that there is one class only. */
int target_read(struct target *target, struct table *table, int64_t column, enum task_request request,
                json_t *notes, struct error *err);
void target_release(struct target *target);

#endif
