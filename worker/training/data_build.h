/* Tables that come from elsewhere than delimited text, and changes to whole tables. */
#ifndef RUNG_WORKER_TRAINING_DATA_BUILD_H
#define RUNG_WORKER_TRAINING_DATA_BUILD_H

#include "base/error.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Far beyond what the trainer makes sense of; a column costs some 200 bytes before it has a row. */
#define TABLE_COLUMNS_MAXIMUM 1000000

/* A table of numbers, which are still to be set: without a header, its lines numbered from 1. ERROR_MEMORY.
 */
int table_init_numbers(struct table *table, const char *label, int64_t rows, int64_t columns,
                       struct error *err);
/* Names a column of such a table; printf-formatted. -1 without memory. */
int table_name_column(struct table *table, int64_t c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a column of NaN for all rows, its name copied; NULL with ERROR_MEMORY. */
struct column *table_attach_column(struct table *table, const char *name, struct error *err);
/* Makes every cell of a column without texts ready to become one (CELL_IS_NUMBER); -1 without memory. */
int column_allow_texts(const struct table *table, struct column *column);
/* Index of the column of that name, or -1. */
int64_t table_column_named(const struct table *table, const char *name);

/* Keeps the rows of data for which keep[row] is set (keep[0] being the first row behind a header). */
void table_keep_rows(struct table *table, const bool *keep);
/* Adds the rows of data of `other` behind those of `table`, and other's label as the name of their file.
 * from[c]: the column of `other` for column c, or -1: all `fill`. ERROR_MEMORY. */
int table_append(struct table *table, const struct table *other, const int64_t *from, double fill,
                 struct error *err);

#endif
