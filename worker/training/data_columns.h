/* What each column of a table is, decided over the whole of it. */
#ifndef RUNG_WORKER_TRAINING_DATA_COLUMNS_H
#define RUNG_WORKER_TRAINING_DATA_COLUMNS_H

#include "base/error.h"
#include "worker/training/data_table.h"

enum column_use { COLUMN_EMPTY, COLUMN_NUMBERS, COLUMN_TEXTS };

struct column_summary {
    int64_t numbers, texts, codes, missing, doubtful; /* cells of each kind */
};
/* Over the rows from `from` on. */
struct column_summary column_summarise(const struct table *table, const struct column *column, int64_t from);
/* A few texts among numbers are mistakes (COLUMN_NUMBERS, and the cells are to be named); many, or codes with
 * leading zeros, make it a column of texts. */
enum column_use column_use(const struct column_summary *summary);

/* Counts the rows from 0 or 1 on, in each file anew: what a data frame's index becomes in a file. */
bool column_counts_rows(const struct table *table, const struct column *column);
/* Has a place in the header, but no name there of its own. */
bool column_is_unnamed(const struct table *table, int64_t c);

/* Gives the number cells of a column of texts an entry in its dictionary too. ERROR_MEMORY. */
int column_make_texts(const struct table *table, struct column *column, struct error *err);

#endif
