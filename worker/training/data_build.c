/* Tables from arrays, columns added, rows kept or appended; see data_build.h. */
#include "worker/training/data_build.h"

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(const char *label, struct error *err)
{
    return error_set(err, ERROR_MEMORY, "%s: no memory to hold the table", label);
}

int table_init_numbers(struct table *table, const char *label, int64_t rows, int64_t columns,
                       struct error *err)
{
    memset(table, 0, sizeof *table);
    if (columns > TABLE_COLUMNS_MAXIMUM)
        return error_set(err, ERROR_USAGE, "%s: found %lld columns, accepted at most %d: keep fewer features",
                         label, (long long)columns, TABLE_COLUMNS_MAXIMUM);
    table->label = label;
    table->capacity = rows ? rows : 1;
    table->line = malloc((size_t)table->capacity * sizeof *table->line);
    int failed = table->line ? 0 : -1;
    for (int64_t c = 0; c < columns && !failed; c++)
        failed = table_add_column(table);
    if (failed) {
        data_table_release(table);
        return no_memory(label, err);
    }
    table->rows = rows;
    for (int64_t row = 0; row < rows; row++)
        table->line[row] = row + 1;
    return 0;
}

int table_name_column(struct table *table, int64_t c, const char *format, ...)
{
    char name[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    table->columns[c].name = strdup(name);
    table->heading[c] = strdup(name);
    return table->columns[c].name && table->heading[c] ? 0 : -1;
}

struct column *table_attach_column(struct table *table, const char *name, struct error *err)
{
    if (table_add_column(table) < 0) {
        no_memory(table->label, err);
        return NULL;
    }
    struct column *column = &table->columns[table->column_count - 1];
    column->name = utf8_repair(name, strlen(name));
    table->heading[table->column_count - 1] = strdup(name);
    if (!column->name || !table->heading[table->column_count - 1]) {
        no_memory(table->label, err);
        return NULL;
    }
    for (int64_t row = 0; row < table->rows; row++)
        column->number[row] = NAN;
    table->attached++;
    return column;
}

int column_allow_texts(const struct table *table, struct column *column)
{
    if (column->text)
        return 0;
    column->text = malloc((size_t)table->capacity * sizeof *column->text);
    if (!column->text)
        return -1;
    memset(column->text, 0xff, (size_t)table->capacity * sizeof *column->text); /* CELL_IS_NUMBER */
    return 0;
}

int64_t table_column_named(const struct table *table, const char *name)
{
    for (int64_t c = 0; c < table->column_count; c++)
        if (!strcmp(table->columns[c].name, name))
            return c;
    return -1;
}

void table_keep_rows(struct table *table, const bool *keep)
{
    int64_t first = table->first, own = table_own_rows(table), kept_own = own;
    for (int64_t c = -1; c < table->column_count; c++) {
        struct column *column = c < 0 ? NULL : &table->columns[c];
        int64_t kept = first;
        for (int64_t row = first; row < table->rows; row++) {
            if (row == own)
                kept_own = kept;
            if (!keep[row - first])
                continue;
            if (!column)
                table->line[kept] = table->line[row];
            else
                column->number[kept] = column->number[row];
            if (column && column->text)
                column->text[kept] = column->text[row];
            kept++;
        }
        if (c + 1 == table->column_count)
            table->rows = kept;
    }
    if (table->appended_label)
        table->appended = kept_own;
}

/* Cells of one column; an entry of the other dictionary is looked up once. */
static int append_column(struct table *table, struct column *column, const struct table *other,
                         const struct column *source)
{
    int64_t count = other->rows - other->first;
    memcpy(column->number + table->rows, source->number + other->first, (size_t)count * sizeof(double));
    column->written |= source->written;
    column->file[1] = source->file[0];
    if (!source->text) {
        for (int64_t i = 0; i < count && column->text; i++)
            column->text[table->rows + i] = CELL_IS_NUMBER;
        return 0;
    }
    const struct dictionary *dictionary = &source->dictionary;
    int32_t *entry_of = malloc(((size_t)dictionary->count + 1) * sizeof *entry_of);
    int failed = !entry_of || column_allow_texts(table, column) < 0;
    for (int32_t entry = 0; entry < dictionary->count && !failed; entry++)
        entry_of[entry] = -1;
    for (int64_t i = 0; i < count && !failed; i++) {
        int32_t entry = source->text[other->first + i];
        if (entry == CELL_IS_NUMBER) {
            column->text[table->rows + i] = CELL_IS_NUMBER;
            continue;
        }
        if (entry_of[entry] < 0) {
            const char *text = dictionary_text(dictionary, entry);
            entry_of[entry] = dictionary_add(&column->dictionary, text, strlen(text),
                                             (enum cell_kind)dictionary->kind[entry]);
        }
        column->text[table->rows + i] = entry_of[entry];
        failed = entry_of[entry] < 0;
    }
    free(entry_of);
    return failed ? -1 : 0;
}

int table_append(struct table *table, const struct table *other, const int64_t *from, double fill,
                 struct error *err)
{
    int64_t count = other->rows - other->first;
    while (table->capacity < table->rows + count)
        if (table_grow_rows(table) < 0)
            return no_memory(table->label, err);
    for (int64_t c = 0; c < table->column_count; c++) {
        struct column *column = &table->columns[c];
        if (from[c] >= 0 && append_column(table, column, other, &other->columns[from[c]]) < 0)
            return no_memory(table->label, err);
        for (int64_t i = 0; i < count && from[c] < 0; i++) {
            column->number[table->rows + i] = fill;
            if (column->text)
                column->text[table->rows + i] = CELL_IS_NUMBER;
        }
    }
    memcpy(table->line + table->rows, other->line + other->first, (size_t)count * sizeof *table->line);
    table->appended_label = other->label;
    table->appended = table->rows;
    table->rows += count;
    return 0;
}
