/* Groups and times of rows, and the split they make; see data_division.h. */
#include "worker/training/data_division.h"

#include "worker/training/data_columns.h"
#include "worker/training/data_messages.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A part with less or more of its share than this is worth a note. */
#define SHARE_LEAST 0.5
#define SHARE_MOST 1.5

static int no_memory(const struct table *table, struct error *err)
{
    return error_set(err, ERROR_MEMORY, "%s: no memory to split it", table->label);
}

static int64_t own_rows(const struct table *table)
{
    return table_own_rows(table) - table->first;
}

/* The group of each row, by the text of its cell; a row without one is a group of its own. */
static int read_groups(struct table *table, int64_t c, int32_t *group, int64_t *groups, json_t *notes,
                       struct error *err)
{
    struct column *column = &table->columns[c];
    int64_t alone = 0;
    if (column_make_texts(table, column, err) < 0)
        return -1;
    *groups = column->dictionary.count;
    for (int64_t row = 0; row < own_rows(table); row++) {
        group[row] = column->text[table->first + row];
        if (column->dictionary.kind[group[row]] != CELL_MISSING)
            continue;
        group[row] = (int32_t)(*groups + alone++);
    }
    *groups += alone;
    if (alone)
        note_add(notes, "%s: %lld rows without a group (column \"%.80s\") are each a group of their own",
                 table->label, (long long)alone, column->name);
    return 0;
}

static int divide_by_group(unsigned char *part, struct table *table, int64_t column,
                           const struct target *target, const struct split_options *split, json_t *notes,
                           struct error *err)
{
    int64_t rows = own_rows(table), groups;
    int32_t *group = malloc((size_t)rows * sizeof *group);
    if (!group)
        return no_memory(table, err);
    int failed = read_groups(table, column, group, &groups, notes, err);
    if (!failed)
        failed = split_groups(part, group, groups, target->label, target->classes, rows, split, err);
    free(group);
    return failed;
}

static int refuse_time(const struct table *table, int64_t c, int64_t row, struct error *err)
{
    const struct column *column = &table->columns[c];
    char number[NUMBER_SIZE];
    const char *found = column->text && column->text[row] != CELL_IS_NUMBER
                            ? dictionary_text(&column->dictionary, column->text[row])
                            : number_format(column->number[row], number);
    return error_set(
        err, ERROR_USAGE,
        "%s:%lld:%lld: found %s%.40s%s, expected a time in column \"%.80s\" (data.time): a number, "
        "or a date such as 2024-01-31, perhaps with a time behind it, the same way in all rows",
        table_file(table, row), (long long)table->line[row], (long long)c + 1, *found ? "'" : "nothing",
        found, *found ? "'" : "", column->name);
}

/* "2024-01", "2024-01-31", "2024/01/31 12:30:05": texts that sort as the times they stand for, while all have
 * the same separator. */
static bool is_date(const char *text, char separator)
{
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (text[i] == 0)
            return i == 7;
        if (form[i] == '-' ? text[i] != separator : !isdigit((unsigned char)text[i]))
            return false;
    }
    return text[10] == 0 || text[10] == 'T' || text[10] == ' ';
}

/* What stands behind the year of the first date. */
static char find_separator(const struct dictionary *dictionary)
{
    for (int32_t i = 0; i < dictionary->count; i++)
        if (is_date(dictionary_text(dictionary, i), '-'))
            return '-';
        else if (is_date(dictionary_text(dictionary, i), '/'))
            return '/';
    return '-';
}

struct dated {
    const char *text;
    int32_t entry;
};

static int dated_compare(const void *a, const void *b)
{
    return strcmp(((const struct dated *)a)->text, ((const struct dated *)b)->text);
}

/* The rank of each date among the column's. NULL without memory. */
static double *rank_dates(const struct dictionary *dictionary)
{
    struct dated *dated = malloc(((size_t)dictionary->count + 1) * sizeof *dated);
    double *rank = malloc(((size_t)dictionary->count + 1) * sizeof *rank);
    for (int32_t i = 0; i < dictionary->count && dated; i++)
        dated[i] = (struct dated){dictionary_text(dictionary, i), i};
    if (dated && rank) {
        qsort(dated, (size_t)dictionary->count, sizeof *dated, dated_compare);
        for (int32_t i = 0; i < dictionary->count; i++)
            rank[dated[i].entry] = i;
        free(dated);
        return rank;
    }
    free(dated);
    free(rank);
    return NULL;
}

static int read_times(const struct table *table, int64_t c, double *time, struct error *err)
{
    const struct column *column = &table->columns[c];
    struct column_summary summary = column_summarise(table, column, table->first);
    bool dates = summary.texts > summary.numbers;
    char separator = find_separator(&column->dictionary);
    double *rank = dates ? rank_dates(&column->dictionary) : NULL;
    int failed = dates && !rank ? no_memory(table, err) : 0;
    for (int64_t i = 0; i < own_rows(table) && !failed; i++) {
        int64_t row = table->first + i;
        enum cell_kind kind = column_kind(column, row);
        if (kind != (dates ? CELL_TEXT : CELL_NUMBER) || (dates && column->text[row] == CELL_IS_NUMBER) ||
            (dates && !is_date(dictionary_text(&column->dictionary, column->text[row]), separator)))
            failed = refuse_time(table, c, row, err);
        else
            time[i] = dates ? rank[column->text[row]] : column->number[row];
    }
    free(rank);
    return failed;
}

/* A class that only newer rows have would be judged without ever having been learned. */
static int check_classes(const unsigned char *part, const struct table *table, const struct target *target,
                         struct error *err)
{
    if (target->task != TASK_CLASSIFICATION)
        return 0;
    bool *trained = calloc((size_t)target->classes, sizeof *trained);
    if (!trained)
        return no_memory(table, err);
    int64_t class = -1;
    for (int64_t row = 0; row < own_rows(table); row++)
        if (part[row] == SPLIT_TRAIN)
            trained[target->label[row]] = true;
    for (int64_t c = 0; c < target->classes; c++)
        class = class < 0 && !trained[c] ? c : class;
    free(trained);
    if (class < 0)
        return 0;
    return error_set(err, ERROR_USAGE,
                     "%s: no row of class '%.80s' is old enough to train (data.time): leave its rows out, or "
                     "take smaller shares for data.validation and data.test",
                     table->label, json_string_value(json_array_get(target->names, (size_t) class)));
}

static int divide_by_time(unsigned char *part, const struct table *table, int64_t column,
                          const struct target *target, const struct split_options *split, struct error *err)
{
    int64_t rows = own_rows(table);
    double *time = malloc((size_t)rows * sizeof *time);
    if (!time)
        return no_memory(table, err);
    int failed = read_times(table, column, time, err);
    if (!failed) {
        failed = split_by_time(part, time, rows, split, err);
        if (failed)
            error_prefix(err, "%s", table->label);
    }
    free(time);
    return failed ? -1 : check_classes(part, table, target, err);
}

/* Groups and times that stay whole may leave a part far from its share; its score then says little. */
static void note_shares(const unsigned char *part, const struct table *table,
                        const struct split_options *split, const char *key, json_t *notes)
{
    const double wanted[SPLIT_COUNT] = {[SPLIT_VALIDATION] = split->validation, [SPLIT_TEST] = split->test};
    static const char *const names[SPLIT_COUNT] = {[SPLIT_VALIDATION] = "validation", [SPLIT_TEST] = "test"};
    int64_t rows = own_rows(table), count[SPLIT_COUNT] = {0};
    for (int64_t row = 0; row < rows; row++)
        count[part[row]]++;
    for (int i = SPLIT_VALIDATION; i < SPLIT_COUNT; i++) {
        double expected = wanted[i] * (double)rows;
        if ((double)count[i] < expected * SHARE_LEAST || (double)count[i] > expected * SHARE_MOST)
            note_add(notes,
                     "%s: data.%s takes %lld of %lld rows, not the %.0f of its share, since data.%s keeps "
                     "rows together",
                     table->label, names[i], (long long)count[i], (long long)rows, expected, key);
    }
}

int table_divide(unsigned char *part, struct table *table, const struct roles *roles,
                 const struct target *target, const struct split_options *split, json_t *notes,
                 struct error *err)
{
    int64_t own = own_rows(table);
    memset(part + own, SPLIT_TEST, (size_t)(table->rows - table->first - own));
    if (roles->time >= 0 && divide_by_time(part, table, roles->time, target, split, err) < 0)
        return -1;
    int failed = roles->time >= 0    ? 0
                 : roles->group >= 0 ? divide_by_group(part, table, roles->group, target, split, notes, err)
                                     : split_rows(part, target->label, target->classes, own,
                                                  split->validation, split->test, split->seed, err);
    if (failed)
        return error_prefix(err, "%s", table->label);
    if (roles->time >= 0 || roles->group >= 0)
        note_shares(part, table, split, roles->time >= 0 ? "time" : "group", notes);
    return 0;
}
