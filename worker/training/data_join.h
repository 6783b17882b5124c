/* The test rows' own table behind the training table. */
#ifndef RUNG_WORKER_TRAINING_DATA_JOIN_H
#define RUNG_WORKER_TRAINING_DATA_JOIN_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_kind.h"
#include "worker/training/data_roles.h"
#include "worker/training/data_source.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stdint.h>

struct join {
    enum data_format format; /* of both files, each as it was recognised */
    enum data_format test_format;
    enum header header;          /* data.header */
    const struct source *labels; /* data.test_labels; its path is NULL: they are in the table */
    const struct roles *roles;   /* of the training table's columns */
};

/* Appends the rows of `test`, which is as source_read left it, to `table`. Columns go by name when both files
 * have names, else by position; more of them are ignored with a note, missing ones are ERROR_USAGE (of
 * LIBSVM, they are 0). Labels from a file of their own become the target, wherever that is. */
int table_join_test(struct table *table, struct table *test, const struct join *join, json_t *notes,
                    struct error *err);

/* Classes of a target of texts that the test rows spell otherwise (`<=50K.` for `<=50K`): when a dot at the
 * end, blanks and case are all that differs, and they then match one to one, the training rows' spelling is
 * taken, with a note. ERROR_MEMORY. */
int classes_respell(struct table *table, int64_t target, json_t *notes, struct error *err);

/* ERROR_USAGE that names both sets when test rows have a class that the file of the training rows lacks.
 * label: (rows of data), names: of the classes. */
int classes_compare(const struct table *table, const int32_t *label, const json_t *names, struct error *err);

#endif
