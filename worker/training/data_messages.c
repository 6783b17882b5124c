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
}

void misfits_release(struct misfits *misfits)
{
    text_release(&misfits->cells);
}

/* "FILE:LINE:COLUMN: found"; of labels from another file "FILE:LINE: its label in OTHER: found". */
static void name_place(struct text *text, const struct table *table, int64_t c, int64_t row)
{
    const char *other = table->columns[c].file[row >= table_own_rows(table)];
    text_printf(text, "%s:%lld:", table_file(table, row), (long long)table->line[row]);
    if (other)
        text_printf(text, " its label in %s: found ", other);
    else
        text_printf(text, "%lld: found ", (long long)c + 1);
}

static void add_cell(struct misfits *misfits, const struct table *table, int64_t c, int64_t row,
                     const char *expected)
{
    misfits->count++;
    if (misfits->named == NAMED)
        return;
    misfits->named++;
    const struct column *column = &table->columns[c];
    char number[NUMBER_SIZE];
    const char *found = column->text && column->text[row] != CELL_IS_NUMBER
                            ? dictionary_text(&column->dictionary, column->text[row])
                            : number_format(column->number[row], number);
    text_append(&misfits->cells, "\n");
    name_place(&misfits->cells, table, c, row);
    text_printf(&misfits->cells, "%s%.*s%s, expected %s (column \"%.*s\")", *found ? "'" : "nothing",
                SHOWN_BYTES, found, *found ? "'" : "", expected, SHOWN_BYTES, column->name);
}

void misfits_add_numbers(struct misfits *misfits, const struct table *table, int64_t c)
{
    for (int64_t row = table->first; row < table->rows; row++) {
        enum cell_kind kind = column_kind(&table->columns[c], row);
        if (kind == CELL_TEXT || kind == CELL_CODE)
            add_cell(misfits, table, c, row, "a number");
    }
}

void misfits_add_labels(struct misfits *misfits, const struct table *table, int64_t c, bool doubtful)
{
    for (int64_t row = table->first; row < table->rows; row++) {
        enum cell_kind kind = column_kind(&table->columns[c], row);
        bool missing = kind == CELL_MISSING || (doubtful && kind == CELL_DOUBTFUL);
        misfits->labels = misfits->labels || missing;
        if (missing)
            add_cell(misfits, table, c, row, "a label");
        if (doubtful && (kind == CELL_TEXT || kind == CELL_CODE))
            add_cell(misfits, table, c, row, "a number");
    }
}

int misfits_report(const struct misfits *misfits, const struct table *table, struct error *err)
{
    if (misfits->count == 0)
        return 0;
    return error_set(err, ERROR_USAGE, "%s: %lld cell%s cannot be used%s%s\n%s", table->label,
                     (long long)misfits->count, misfits->count == 1 ? "" : "s",
                     misfits->cells.data ? misfits->cells.data : "",
                     misfits->count > misfits->named ? "\n..." : "",
                     misfits->labels ? "Rows without a label teach nothing: leave them out of the file"
                                     : "Mend them, or list in data.missing what stands for no value");
}

void mentions_add(struct mentions *mentions, const char *format, ...)
{
    char name[160];
    va_list arguments;
    if (mentions->count++ >= MENTIONS_NAMED)
        return;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    text_printf(&mentions->names, "%s%s", mentions->count > 1 ? ", " : "", name);
}

void mentions_note(struct mentions *mentions, const char *label, const char *done, const char *why,
                   const char *remedy, json_t *notes)
{
    if (mentions->count)
        note_add(notes, "%s: %s %lld column%s %s: %s%s%s", label, done, (long long)mentions->count,
                 mentions->count == 1 ? "" : "s", why, mentions->names.data ? mentions->names.data : "",
                 mentions->count > MENTIONS_NAMED ? ", ..." : "", remedy);
    text_release(&mentions->names);
}

int column_refuse_far(const struct table *table, int64_t c, int64_t row, double centre, double scale,
                      struct error *err)
{
    const struct column *column = &table->columns[c];
    int64_t at = table->first + row;
    return error_set(
        err, ERROR_USAGE,
        "%s:%lld:%lld: found %g, too far from the training rows (column \"%.*s\", centre %g, scale %g); mend "
        "it, list it in data.missing, or leave its row out",
        table_file(table, at), (long long)table->line[at], (long long)c + 1, column->number[at], SHOWN_BYTES,
        column->name, centre, scale);
}

void note_add(json_t *notes, const char *format, ...)
{
    char text[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *valid = utf8_repair(text, strlen(text));
    if (notes && valid)
        json_array_append_new(notes, json_string(valid));
    free(valid);
}
