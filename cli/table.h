/* Aligned columns of text: cells are added row by row, then printed with two blanks between columns. Widths
 * count characters of UTF-8. Out of memory: cells are left out. */
#ifndef RUNG_CLI_TABLE_H
#define RUNG_CLI_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS 64

struct table {
    int columns;              /* at most TABLE_COLUMNS */
    int indent;               /* blanks before each row */
    unsigned long long right; /* a bit for each column that is aligned to the right */
    char **cells;
    size_t count;
};

void table_init(struct table *table, int columns, int indent);
void table_release(struct table *table);
/* The next cell, row by row. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *table, FILE *out);

#endif
