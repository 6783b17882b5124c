/* Deciding whether the first row names the columns; see data_table.h. */
#include "base/text.h"
#include "worker/training/data_columns.h"
#include "worker/training/data_decoration.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RENAMED_NAMED 10 /* columns of a name given twice that are noted one by one */

static bool numbers_below(const struct table *table, const struct column *column)
{
    struct column_summary summary = column_summarise(table, column, 1);
    return table->rows > 1 && column_use(&summary) == COLUMN_NUMBERS;
}

static bool repeats_below(const struct table *table, const struct column *column)
{
    if (!column->text)
        return true;
    for (int64_t row = 1; row < table->rows; row++)
        if (column->text[row] == column->text[0])
            return true;
    return false;
}

/* What stands in the first row, by the columns below it. */
struct tops {
    int64_t names, values;   /* words and numbers above columns of numbers */
    int64_t texts, repeated; /* words above columns of texts; those that come again there */
    int64_t fresh;           /* words that do not, where most others do */
    bool rising;             /* the numbers of the row do, from left to right */
};

static struct tops look_at_tops(const struct table *table)
{
    struct tops tops = {.rising = true};
    double last = NAN;
    for (int64_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        enum cell_kind top = column_kind(column, 0);
        bool word = top == CELL_TEXT || top == CELL_DOUBTFUL;
        if (numbers_below(table, column)) {
            tops.names += word;
            tops.values += top == CELL_NUMBER;
        } else if (word) {
            bool again = repeats_below(table, column);
            tops.texts++;
            tops.repeated += again;
            tops.fresh += !again && (column->dictionary.count - 1) * 2 <= table->rows - 1;
        }
        /* Names in numbers, such as years and wavelengths, rise; a row of values hardly does. */
        if (top == CELL_NUMBER && !(isnan(last) || column->number[0] > last))
            tops.rising = false;
        last = top == CELL_NUMBER ? column->number[0] : last;
    }
    return tops;
}

/* With columns of numbers, the cells above them decide. Without, a header is a row of distinct words none of
 * which its column holds again. *why: what decided. */
static bool looks_like_header(const struct table *table, const char **why)
{
    struct tops tops = look_at_tops(table);
    if (tops.names > tops.values) {
        *why = "words stand above columns of numbers";
        return true;
    }
    if (tops.names || tops.values) {
        bool rising = tops.fresh && tops.repeated == 0 && tops.rising;
        *why = rising ? "its numbers rise and its texts never come again, unlike others of their columns"
                      : "numbers stand above columns of numbers";
        return rising;
    }
    *why = tops.repeated ? "its texts come again below"
           : tops.texts  ? "none of its texts comes again below; a guess, without columns of numbers"
                         : "nothing tells it from the others";
    return tops.texts > 0 && tops.repeated == 0;
}

static bool heading_has(const struct table *table, const char *name)
{
    for (int64_t c = 0; c < table->column_count; c++)
        if (!strcmp(table->heading[c], name))
            return true;
    return false;
}

/* Whether a target asked for by name is that, rather than an index written as text. */
static bool is_name(const char *target)
{
    double number;
    return target && !(number_parse(target, &number) && number == floor(number));
}

static bool decide(const struct table *table, enum header header, const char *target, json_t *notes)
{
    if (header != HEADER_AUTO)
        return header == HEADER_YES;
    if (is_name(target) && heading_has(table, target))
        return true;
    const char *why;
    bool found = looks_like_header(table, &why);
    note_add(notes,
             "%s: the first row is %s (\"%.40s\"...), since %s; data.header: true or false decides otherwise",
             table->label, found ? "a header" : "data", table->heading[0], why);
    return found;
}

/* The first free name of NAME.2, NAME.3, ... for the second, third, ... column of that name; linear in the
 * columns, and only for doubles. */
static char *rename_double(const struct table *table, int64_t c, int64_t ordinal)
{
    char *name = malloc(strlen(table->columns[c].name) + 24);
    for (int64_t k = ordinal; name; k++) {
        sprintf(name, "%s.%lld", table->columns[c].name, (long long)k);
        bool taken = false;
        for (int64_t other = 0; other < c && !taken; other++)
            taken = !strcmp(table->columns[other].name, name);
        if (!taken)
            break;
    }
    return name;
}

static int name_compare(const void *a, const void *b)
{
    const struct column *x = *(const struct column *const *)a, *y = *(const struct column *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

/* Which of the columns of its name each is, from 1. NULL without memory. */
static int64_t *count_doubles(const struct table *table)
{
    size_t count = (size_t)table->column_count;
    struct column **sorted = malloc(count * sizeof(struct column *));
    int64_t *ordinal = malloc(count * sizeof *ordinal);
    for (size_t i = 0; i < count && sorted; i++)
        sorted[i] = &table->columns[i];
    if (sorted && ordinal) {
        qsort(sorted, count, sizeof *sorted, name_compare);
        for (size_t i = 0; i < count; i++) {
            bool again = i > 0 && !strcmp(sorted[i - 1]->name, sorted[i]->name);
            ordinal[sorted[i] - table->columns] = again ? ordinal[sorted[i - 1] - table->columns] + 1 : 1;
        }
    } else {
        free(ordinal);
        ordinal = NULL;
    }
    free(sorted);
    return ordinal;
}

/* Renames the second and later columns of one name. */
static int separate_doubles(struct table *table, json_t *notes)
{
    int64_t *ordinal = count_doubles(table), renamed = 0;
    int failed = ordinal ? 0 : -1;
    for (int64_t c = 0; c < table->column_count && !failed; c++) {
        if (ordinal[c] < 2)
            continue;
        char *name = rename_double(table, c, ordinal[c]);
        if (!name) {
            failed = -1;
            break;
        }
        if (renamed++ < RENAMED_NAMED)
            note_add(notes, "%s: another column is called \"%.80s\"; column %lld is \"%.90s\" here",
                     table->label, table->columns[c].name, (long long)c + 1, name);
        free(table->columns[c].name);
        table->columns[c].name = name;
    }
    if (renamed > RENAMED_NAMED)
        note_add(notes, "%s: %lld more columns share a name, and are numbered likewise", table->label,
                 (long long)(renamed - RENAMED_NAMED));
    free(ordinal);
    return failed;
}

int table_name_columns(struct table *table, enum header header, const char *target, json_t *notes,
                       struct error *err)
{
    if (table->notes && notes)
        json_array_extend(notes, table->notes);
    if (table_read_decorations(table, err) < 0)
        return -1;
    table->first = decide(table, header, target, notes) ? 1 : 0;
    for (int64_t c = 0; c < table->column_count; c++) {
        char number[32];
        snprintf(number, sizeof number, "column_%lld", (long long)c);
        const char *text = table->first && *table->heading[c] ? table->heading[c] : number;
        table->columns[c].name = utf8_repair(text, strlen(text));
        if (!table->columns[c].name)
            return error_set(err, ERROR_MEMORY, "%s: no memory to name the columns", table->label);
    }
    if (separate_doubles(table, notes) < 0)
        return error_set(err, ERROR_MEMORY, "%s: no memory to name the columns", table->label);
    table_note_decorations(table, notes);
    if (table->rows == table->first)
        return error_set(err, ERROR_USAGE, "%s: has a header but no rows of data", table->label);
    return 0;
}
