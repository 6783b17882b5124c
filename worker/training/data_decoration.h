/* Numbers as people write them: 1,234.50 and $5 and 12%. One such cell is a text; a column of them is
 * numbers. */
#ifndef RUNG_WORKER_TRAINING_DATA_DECORATION_H
#define RUNG_WORKER_TRAINING_DATA_DECORATION_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stddef.h>

enum decoration {
    DECORATION_THOUSANDS = 1,     /* 1,234.5, or blanks between thousands */
    DECORATION_DECIMAL_COMMA = 2, /* 7,4 or 1.234,5 */
    DECORATION_PERCENT = 4,       /* 12% is 12 */
    DECORATION_DOLLAR = 8,        /* one currency a column; the sign before or behind */
    DECORATION_POUND = 16,
    DECORATION_EURO = 32,
    DECORATION_YEN = 64,
    DECORATION_CODES = 128, /* of a column: digits in groups of three that are no numbers, but codes */
};

/* Which decorations a trimmed text has, and its value; 0: it is no such number. comma: commas are decimal. */
unsigned decoration_read(const char *text, size_t size, bool comma, double *value);

/* Makes numbers of every column whose texts, but one in five cells, are numbers decorated alike; the rows
 * from 1 on decide, row 0 may be a header. ERROR_MEMORY. */
int table_read_decorations(struct table *table, struct error *err);
/* Makes numbers of a column's DECORATION_CODES after all: another file has shown that they are. */
void column_read_codes(const struct table *table, struct column *column);
/* Says so, once columns have their names. */
void table_note_decorations(const struct table *table, json_t *notes);

#endif
