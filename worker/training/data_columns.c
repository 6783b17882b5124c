/* Columns of numbers and of texts; see data_columns.h. */
#include "worker/training/data_columns.h"

#include "base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct column_summary column_summarise(const struct table *table, const struct column *column, int64_t from)
{
    struct column_summary summary = {0};
    if (!column->text) { /* most columns: a loop without branches */
        int64_t finite = 0, missing = 0;
        for (int64_t row = from; row < table->rows; row++) {
            finite += fabs(column->number[row]) <= DBL_MAX;
            missing += column->number[row] != column->number[row];
        }
        summary.numbers = finite;
        summary.missing = missing;
        summary.texts = table->rows - from - finite - missing;
        return summary;
    }
    int64_t count[CELL_DOUBTFUL + 1] = {0};
    for (int64_t row = from; row < table->rows; row++)
        count[column_kind(column, row)]++;
    summary.numbers = count[CELL_NUMBER];
    summary.texts = count[CELL_TEXT];
    summary.codes = count[CELL_CODE];
    summary.missing = count[CELL_MISSING];
    summary.doubtful = count[CELL_DOUBTFUL];
    return summary;
}

enum column_use column_use(const struct column_summary *summary)
{
    if (summary->numbers == 0)
        return summary->texts + summary->codes + summary->doubtful ? COLUMN_TEXTS : COLUMN_EMPTY;
    /* One text in five cells is where mistakes end and mixtures begin, by the tables that were looked at. */
    return summary->codes == 0 && summary->texts * 4 <= summary->numbers ? COLUMN_NUMBERS : COLUMN_TEXTS;
}

static bool counts_from(const struct column *column, int64_t from, int64_t to)
{
    double start = column->number[from];
    if (start != 0 && start != 1)
        return false;
    for (int64_t row = from; row < to; row++)
        if (column->number[row] != start + (double)(row - from))
            return false;
    return true;
}

bool column_counts_rows(const struct table *table, const struct column *column)
{
    int64_t own = table_own_rows(table);
    return own - table->first >= 2 && counts_from(column, table->first, own) &&
           (own == table->rows || counts_from(column, own, table->rows));
}

bool column_is_unnamed(const struct table *table, int64_t c)
{
    return table->first && (!*table->heading[c] || !strncmp(table->heading[c], "Unnamed: ", 9));
}

int column_make_texts(const struct table *table, struct column *column, struct error *err)
{
    if (!column->text) {
        column->text = malloc((size_t)table->capacity * sizeof *column->text);
        if (!column->text)
            return error_set(err, ERROR_MEMORY, "%s: no memory for column \"%.80s\"", table->label,
                             column->name);
        memset(column->text, 0xff, (size_t)table->capacity * sizeof *column->text); /* CELL_IS_NUMBER */
    }
    for (int64_t row = 0; row < table->rows; row++) {
        if (column->text[row] != CELL_IS_NUMBER)
            continue;
        char text[NUMBER_SIZE];
        double number = column->number[row];
        enum cell_kind kind = isnan(number) ? CELL_MISSING : CELL_TEXT;
        if (kind == CELL_MISSING)
            *text = 0;
        else if (number == floor(number) && fabs(number) < 1e15)
            snprintf(text, sizeof text, "%.0f", number);
        else
            number_format(number, text);
        column->text[row] = dictionary_add(&column->dictionary, text, strlen(text), kind);
        if (column->text[row] < 0)
            return error_set(err, ERROR_MEMORY, "%s: no memory for column \"%.80s\"", table->label,
                             column->name);
    }
    return 0;
}
