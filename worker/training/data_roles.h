/* Which column is what: the target (one column, or one-hot ones), the group, the time; the rest is learned
 * from. */
#ifndef RUNG_WORKER_TRAINING_DATA_ROLES_H
#define RUNG_WORKER_TRAINING_DATA_ROLES_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stdint.h>

struct roles {
    int64_t target;
    int64_t *one_hot; /* (one_hot_count) the columns of a target that is a list */
    int64_t one_hot_count;
    int64_t group, time; /* -1: none */
    bool *excluded;      /* (columns, and one more): no features */
    bool *dropped;       /* (columns, and one more): of no use at all; excluded, too */
};

/* `wanted`: a name, an index from 0, or a negative one from the end; `key` is the setting's name in messages.
 * ERROR_USAGE lists the columns and the nearest name. */
int column_find(const struct table *table, const char *key, const json_t *wanted, int64_t *column,
                struct error *err);

/* What the files themselves say of their columns; -1: nothing. */
struct roles_told {
    int64_t target; /* labels in a file of their own, LIBSVM's first column */
    int64_t
        instead; /* a label that the target stands in for: LIBSVM's where there are others; never a feature */
    int64_t group; /* LIBSVM's qid: a group, unless the settings split otherwise; never a feature */
};
/* From the train.data object and what is `told`. With one-hot columns the target is still to be made of them.
 * Columns that are no features are told in `notes`. ERROR_USAGE, ERROR_MEMORY. */
int roles_find(struct roles *roles, const struct table *table, const json_t *data, struct roles_told told,
               json_t *notes, struct error *err);
void roles_release(struct roles *roles);

/* Attaches the column that one-hot columns make: the name of the one that holds 1. ERROR_USAGE names the line
 * of a row that has not exactly one. Nothing to do without a list. */
int roles_join_one_hot(struct roles *roles, struct table *table, struct error *err);

#endif
