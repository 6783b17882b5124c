/* Columns and cells of a table; see data_table.h. */
#include "worker/training/data_table.h"

#include <stdlib.h>
#include <string.h>

void data_table_release(struct table *table)
{
    for (int64_t c = 0; c < table->column_count; c++) {
        free(table->columns[c].name);
        free(table->columns[c].number);
        free(table->columns[c].text);
        dictionary_release(&table->columns[c].dictionary);
        free(table->heading[c]);
    }
    free(table->columns);
    free(table->heading);
    free(table->line);
    json_decref(table->notes);
    memset(table, 0, sizeof *table);
}

int table_add_column(struct table *table)
{
    int64_t count = table->column_count;
    if ((count & (count - 1)) == 0) { /* capacities are the powers of two */
        size_t wanted = count ? (size_t)count * 2 : 1;
        struct column *columns = realloc(table->columns, wanted * sizeof *columns);
        if (!columns)
            return -1;
        table->columns = columns;
        char **heading = realloc(table->heading, wanted * sizeof *heading);
        if (!heading)
            return -1;
        table->heading = heading;
    }
    memset(&table->columns[count], 0, sizeof *table->columns);
    table->heading[count] = NULL;
    table->column_count++;
    table->columns[count].number = malloc((size_t)table->capacity * sizeof(double));
    return table->columns[count].number ? 0 : -1;
}

int table_grow_rows(struct table *table)
{
    int64_t capacity = table->capacity * 2;
    int64_t *line = realloc(table->line, (size_t)capacity * sizeof *line);
    if (!line)
        return -1;
    table->line = line;
    for (int64_t c = 0; c < table->column_count; c++) {
        struct column *column = &table->columns[c];
        double *number = realloc(column->number, (size_t)capacity * sizeof *number);
        if (!number)
            return -1;
        column->number = number;
        if (!column->text)
            continue;
        int32_t *text = realloc(column->text, (size_t)capacity * sizeof *text);
        if (!text)
            return -1;
        column->text = text;
    }
    table->capacity = capacity;
    return 0;
}

int table_put_cell(struct table *table, int64_t c, int64_t row, const char *text, size_t size,
                   const struct cell_rules *rules)
{
    struct column *column = &table->columns[c];
    enum cell_kind kind = cell_read(text, size, rules, &column->number[row]);
    if (kind == CELL_NUMBER) {
        if (column->text)
            column->text[row] = CELL_IS_NUMBER;
        return 0;
    }
    column->number[row] = NAN;
    if (!column->text) {
        column->text = malloc((size_t)table->capacity * sizeof *column->text);
        if (!column->text)
            return -1;
        memset(column->text, 0xff, (size_t)table->capacity * sizeof *column->text); /* CELL_IS_NUMBER */
    }
    column->text[row] = dictionary_add(&column->dictionary, text, size, kind);
    return column->text[row] < 0 ? -1 : 0;
}
