/* Labels in a file of their own. */
#ifndef RUNG_WORKER_TRAINING_DATA_LABELS_H
#define RUNG_WORKER_TRAINING_DATA_LABELS_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_source.h"
#include "worker/training/data_table.h"

/* Attaches the labels of a file (an IDX or NPY array, or a text of one label a line, perhaps with a header)
 * to the table, as its last column. `key` is the setting's name in messages. ERROR_USAGE: another number of
 * rows, or more than one column. */
int labels_attach(struct table *table, const struct source *source, const char *key, enum header header,
                  json_t *notes, struct error *err);

#endif
