/* Aligned columns of text. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, int columns, int indent)
{
    *table = (struct table){.columns = columns < TABLE_COLUMNS ? columns : TABLE_COLUMNS, .indent = indent};
}

void table_release(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    *table = (struct table){0};
}

void table_cell(struct table *table, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    char **cells = realloc(table->cells, (table->count + 1) * sizeof(*cells));
    if (!cells) {
        return;
    }
    table->cells = cells;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    cells[table->count++] = length < 0 ? NULL : text;
}

static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

static const char *cell_at(const struct table *table, size_t row, int column)
{
    size_t index = row * (size_t)table->columns + (size_t)column;
    return index < table->count && table->cells[index] ? table->cells[index] : "";
}

static void print_row(const struct table *table, size_t row, const int *widths, FILE *out)
{
    int last = table->columns - 1; /* no blanks at the end of a line */
    while (last > 0 && cell_at(table, row, last)[0] == '\0') {
        last--;
    }
    fprintf(out, "%*s", table->indent, "");
    for (int column = 0; column <= last; column++) {
        const char *cell = cell_at(table, row, column);
        int padding = widths[column] - width_of(cell);
        if (table->right >> column & 1) {
            fprintf(out, "%*s%s", padding, "", cell);
        } else {
            fprintf(out, "%s%*s", cell, column < last ? padding : 0, "");
        }
        fputs(column < last ? "  " : "\n", out);
    }
}

void table_print(const struct table *table, FILE *out)
{
    int widths[TABLE_COLUMNS] = {0};
    if (table->columns < 1) {
        return;
    }
    size_t rows = (table->count + (size_t)table->columns - 1) / (size_t)table->columns;
    for (size_t i = 0; i < table->count; i++) {
        int *width = &widths[i % (size_t)table->columns];
        int own = table->cells[i] ? width_of(table->cells[i]) : 0;
        *width = own > *width ? own : *width;
    }
    for (size_t row = 0; row < rows; row++) {
        print_row(table, row, widths, out);
    }
}
