/* Misfits, far values and notes; see data_messages.h. */
#include "worker/training/data_messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 4        /* misfits listed one by one in a message; the rest is counted */
#define SHOWN_BYTES 40 /* of a cell or a name */

void misfits_init(struct misfits *misfits)
{
    memset(misfits, 0, sizeof *misfits);
    text_init(&misfits->cells);
    text_init(&misfits->gaps);
}

void misfits_release(struct misfits *misfits)
{
    text_release(&misfits->cells);
    text_release(&misfits->gaps);
}

static void add_cell(struct misfits *misfits, const struct table *table, int64_t c, int64_t row,
                     const char *expected)
{
    misfits->cell_count++;
    if (misfits->cells_named == NAMED)
        return;
    misfits->cells_named++;
    const struct column *column = &table->columns[c];
    const char *found = dictionary_text(&column->dictionary, column->text[row]);
    text_printf(&misfits->cells, "\n%s:%lld:%lld: found %s%.*s%s, expected %s (column \"%.*s\")",
                table->label, (long long)table->line[row], (long long)c + 1, *found ? "'" : "nothing",
                SHOWN_BYTES, found, *found ? "'" : "", expected, SHOWN_BYTES, column->name);
}

void misfits_add_numbers(struct misfits *misfits, const struct table *table, int64_t c)
{
    const struct column *column = &table->columns[c];
    int64_t gaps = 0, first[3] = {0};
    for (int64_t row = table->first; row < table->rows && column->text; row++) {
        enum cell_kind kind = column_kind(column, row);
        if (kind == CELL_TEXT || kind == CELL_CODE)
            add_cell(misfits, table, c, row, "a number");
        if ((kind == CELL_MISSING || kind == CELL_DOUBTFUL) && gaps++ < 3)
            first[gaps - 1] = table->line[row];
    }
    if (gaps == 0)
        return;
    misfits->gap_count += gaps;
    if (misfits->gaps_named == NAMED)
        return;
    misfits->gaps_named++;
    text_printf(&misfits->gaps, "\n%s: column \"%.*s\": %lld of %lld missing, first at line", table->label,
                SHOWN_BYTES, column->name, (long long)gaps, (long long)(table->rows - table->first));
    for (int64_t i = 0; i < gaps && i < 3; i++)
        text_printf(&misfits->gaps, "%s %lld", i ? "," : "", (long long)first[i]);
}

void misfits_add_labels(struct misfits *misfits, const struct table *table, int64_t c, bool doubtful)
{
    const struct column *column = &table->columns[c];
    for (int64_t row = table->first; row < table->rows && column->text; row++) {
        enum cell_kind kind = column_kind(column, row);
        if (kind == CELL_MISSING || (doubtful && kind == CELL_DOUBTFUL))
            add_cell(misfits, table, c, row, "a label");
        if (doubtful && (kind == CELL_TEXT || kind == CELL_CODE))
            add_cell(misfits, table, c, row, "a number");
    }
}

int misfits_report(const struct misfits *misfits, const struct table *table, struct error *err)
{
    if (misfits->cell_count == 0 && misfits->gap_count == 0)
        return 0;
    struct text all;
    text_init(&all);
    if (misfits->cell_count)
        text_printf(&all, "%s: %lld cell%s cannot be used%s%s", table->label, (long long)misfits->cell_count,
                    misfits->cell_count == 1 ? "" : "s", misfits->cells.data ? misfits->cells.data : "",
                    misfits->cell_count > misfits->cells_named ? "\n..." : "");
    if (misfits->gap_count)
        text_printf(
            &all,
            "%s%s: %lld number%s missing%s\nFill them in, or leave out those rows or columns; this version "
            "does not impute",
            misfits->cell_count ? "\n" : "", table->label, (long long)misfits->gap_count,
            misfits->gap_count == 1 ? " is" : "s are", misfits->gaps.data ? misfits->gaps.data : "");
    error_set(err, ERROR_USAGE, "%s", all.data ? all.data : "cells that cannot be used");
    text_release(&all);
    return -1;
}

int column_refuse_far(const struct table *table, int64_t c, int64_t row, double mean, double sd,
                      struct error *err)
{
    const struct column *column = &table->columns[c];
    int64_t at = table->first + row;
    return error_set(
        err, ERROR_USAGE,
        "%s:%lld:%lld: found %g, too far from the training rows (column \"%.*s\", mean %g, sd %g)",
        table->label, (long long)table->line[at], (long long)c + 1, column->number[at], SHOWN_BYTES,
        column->name, mean, sd);
}

void note_add(json_t *notes, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *valid = utf8_repair(text, strlen(text));
    if (notes && valid)
        json_array_append_new(notes, json_string(valid));
    free(valid);
}
