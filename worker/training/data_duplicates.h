/* Rows that are equal: told, because they leak over a split, and dropped when asked for. */
#ifndef RUNG_WORKER_TRAINING_DATA_DUPLICATES_H
#define RUNG_WORKER_TRAINING_DATA_DUPLICATES_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_roles.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stdint.h>

struct duplicates {
    int64_t *first; /* (rows of data) the first row equal in every column: itself, if there is none before */
    int64_t count;  /* rows equal to an earlier one */
    int64_t contradicted; /* rows equal to an earlier one in all but the target */
};

/* Columns that only count the rows are not compared; missing cells are equal to each other. ERROR_MEMORY. */
int duplicates_find(struct duplicates *duplicates, const struct table *table, const struct roles *roles,
                    struct error *err);
void duplicates_release(struct duplicates *duplicates);
/* Drops all but the first of equal rows from the training table's file; a test table's rows stay as they are.
 * Told in `notes`. ERROR_MEMORY. */
int duplicates_drop(struct duplicates *duplicates, struct table *table, json_t *notes, struct error *err);
/* What is left of them: how many there are, and how many lie in another part (part[rows of data], enum split)
 * than a row they are equal to. ERROR_MEMORY. */
int duplicates_note(const struct duplicates *duplicates, const struct table *table, const unsigned char *part,
                    json_t *notes, struct error *err);

#endif
