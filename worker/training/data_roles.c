/* Finding columns; see data_roles.h. */
#include "worker/training/data_roles.h"

#include "base/text.h"
#include "worker/training/data_build.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LISTED_COLUMNS 12

/* "; its 3 columns are a, b, c (index 0 to 2, or -1 for the last)" */
static void list_columns(const struct table *table, struct text *text)
{
    int64_t count = table->column_count - table->attached;
    text_printf(text, "; its %lld column%s ", (long long)count, count == 1 ? " is" : "s are");
    for (int64_t c = 0; c < count && c < LISTED_COLUMNS; c++)
        text_printf(text, "%s%.40s", c ? ", " : "", table->columns[c].name);
    text_printf(text, "%s (index 0 to %lld, or -1 for the last)", count > LISTED_COLUMNS ? ", ..." : "",
                (long long)count - 1);
    if (count == 1 && table->delimiter)
        text_append(text,
                    "; fields are separated by commas, semicolons, tabs or blanks, and by nothing else");
}

/* The column's name that is meant: another case of it, or the nearest one; NULL: none. */
static const char *nearest_name(const struct table *table, const char *wanted)
{
    if (!wanted || !table->first)
        return NULL;
    const char **words = calloc((size_t)table->column_count + 1, sizeof *words);
    const char *near = NULL;
    for (int64_t c = 0; c < table->column_count && words; c++) {
        words[c] = table->columns[c].name;
        near = near || strcasecmp(words[c], wanted) != 0 ? near : words[c];
    }
    near = near || !words ? near : nearest_word(wanted, words);
    free(words);
    return near;
}

static int refuse(const struct table *table, const char *key, const json_t *given, const char *wanted,
                  struct error *err)
{
    struct text list;
    text_init(&list);
    const char *near = nearest_name(table, json_string_value(given));
    list_columns(table, &list);
    error_set(err, ERROR_USAGE, "data.%s: found %s, which is no column of %s%s%s%s%s%s", key, wanted,
              table->label, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "",
              table->first || !table->delimiter
                  ? ""
                  : ", whose first row is data (data.header: true says otherwise)",
              list.data ? list.data : "");
    text_release(&list);
    return -1;
}

int column_find(const struct table *table, const char *key, const json_t *wanted, int64_t *column,
                struct error *err)
{
    char text[400];
    double number = 0;
    bool index = json_is_integer(wanted);
    if (index) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(wanted));
        number = (double)json_integer_value(wanted);
    } else if (json_is_string(wanted)) {
        const char *name = json_string_value(wanted);
        *column = table_column_named(table, name);
        if (*column >= 0)
            return 0;
        snprintf(text, sizeof text, "'%.300s'", name);
        index = number_parse(name, &number) && number == floor(number);
    } else {
        char *found = json_canonical(wanted);
        error_set(err, ERROR_USAGE, "data.%s: found %.100s, accepted a column's name or index", key,
                  found ? found : "something else");
        free(found);
        return -1;
    }
    double count = (double)(table->column_count - table->attached);
    double at = number < 0 ? number + count : number;
    if (!index || at < 0 || at >= count)
        return refuse(table, key, wanted, text, err);
    *column = (int64_t)at;
    return 0;
}

static int refuse_missing(const struct table *table, struct error *err)
{
    struct text list;
    text_init(&list);
    list_columns(table, &list);
    error_set(err, ERROR_USAGE,
              "data.target: missing, expected the column of %s to predict, or data.labels, a file of its "
              "labels%s",
              table->label, list.data ? list.data : "");
    text_release(&list);
    return -1;
}

static int find_one_hot(struct roles *roles, const struct table *table, const json_t *list, struct error *err)
{
    size_t count = json_array_size(list);
    if (count < 2)
        return error_set(err, ERROR_USAGE,
                         "data.target: found a list of %zu, accepted two one-hot columns "
                         "or more, or one column without a list",
                         count);
    roles->one_hot = calloc(count, sizeof *roles->one_hot);
    if (!roles->one_hot)
        return error_set(err, ERROR_MEMORY, "no memory for the columns of data.target");
    for (size_t i = 0; i < count; i++) {
        int64_t *column = &roles->one_hot[i];
        if (column_find(table, "target", json_array_get(list, i), column, err) < 0)
            return -1;
        if (roles->excluded[*column])
            return error_set(err, ERROR_USAGE, "data.target: names column \"%.80s\" twice",
                             table->columns[*column].name);
        roles->excluded[*column] = true;
        roles->one_hot_count++;
    }
    roles->target = -1;
    return 0;
}

static int find_target(struct roles *roles, const struct table *table, const json_t *wanted, int64_t preset,
                       struct error *err)
{
    bool given = wanted && !json_is_null(wanted);
    if (json_is_array(wanted))
        return find_one_hot(roles, table, wanted, err);
    if (!given && preset < 0)
        return refuse_missing(table, err);
    roles->target = preset;
    if (given && column_find(table, "target", wanted, &roles->target, err) < 0)
        return -1;
    roles->excluded[roles->target] = true;
    return 0;
}

/* A second label would tell the first one. */
static void drop_label(struct roles *roles, const struct table *table, int64_t instead, json_t *notes)
{
    if (instead < 0 || roles->excluded[instead])
        return;
    roles->dropped[instead] = roles->excluded[instead] = true;
    note_add(notes, "%s: its labels are no feature, since data.labels has others", table->label);
}

/* A column that says how to split, and is no feature. */
static int find_splitter(struct roles *roles, const struct table *table, const json_t *data, const char *key,
                         int64_t *column, json_t *notes, struct error *err)
{
    const json_t *wanted = json_object_get(data, key);
    if (!wanted || json_is_null(wanted))
        return 0;
    if (column_find(table, key, wanted, column, err) < 0)
        return -1;
    const char *name = table->columns[*column].name;
    if (roles->excluded[*column])
        return error_set(err, ERROR_USAGE, "data.%s: column \"%.80s\" is the target already", key, name);
    roles->excluded[*column] = true;
    note_add(notes, "%s: column \"%.80s\" splits the rows (data.%s) and is no feature", table->label, name,
             key);
    return 0;
}

static int find_splitters(struct roles *roles, const struct table *table, const json_t *data, int64_t told,
                          json_t *notes, struct error *err)
{
    if (find_splitter(roles, table, data, "group", &roles->group, notes, err) < 0 ||
        find_splitter(roles, table, data, "time", &roles->time, notes, err) < 0)
        return -1;
    if (roles->group >= 0 && roles->time >= 0)
        return error_set(err, ERROR_USAGE,
                         "data.group and data.time: found both, accepted one of them: rows "
                         "of a group may be older and newer than the cut");
    if (told < 0 || roles->excluded[told])
        return 0;
    roles->excluded[told] = true;
    bool splits = roles->group < 0 && roles->time < 0;
    roles->group = splits ? told : roles->group;
    note_add(notes, "%s: column \"%.80s\" %s no feature", table->label, table->columns[told].name,
             splits ? "is the group by which rows are split (data.group decides otherwise), and" : "is");
    return 0;
}

static int drop_column(struct roles *roles, const struct table *table, const json_t *wanted,
                       struct error *err)
{
    int64_t column;
    if (column_find(table, "drop", wanted, &column, err) < 0)
        return -1;
    const char *name = table->columns[column].name;
    bool one_hot = roles->target < 0 && roles->excluded[column];
    if (column == roles->target || column == roles->group || column == roles->time || one_hot)
        return error_set(err, ERROR_USAGE, "data.drop: column \"%.80s\" is the %s, which is needed", name,
                         column == roles->group  ? "group"
                         : column == roles->time ? "time"
                                                 : "target");
    roles->dropped[column] = roles->excluded[column] = true;
    return 0;
}

static int find_dropped(struct roles *roles, const struct table *table, const json_t *wanted, json_t *notes,
                        struct error *err)
{
    struct mentions mentions = {0};
    size_t count = json_is_array(wanted) ? json_array_size(wanted) : wanted && !json_is_null(wanted);
    for (size_t i = 0; i < count; i++)
        if (drop_column(roles, table, json_is_array(wanted) ? json_array_get(wanted, i) : wanted, err) < 0)
            return -1;
    for (int64_t c = 0; c < table->column_count && count; c++)
        if (roles->dropped[c])
            mentions_add(&mentions, "%.30s", table->columns[c].name);
    mentions_note(&mentions, table->label, "left out", "that data.drop names", "", notes);
    return 0;
}

int roles_find(struct roles *roles, const struct table *table, const json_t *data, struct roles_told told,
               json_t *notes, struct error *err)
{
    *roles = (struct roles){.target = -1, .group = -1, .time = -1};
    roles->excluded = calloc((size_t)table->column_count + 1, sizeof *roles->excluded);
    roles->dropped = calloc((size_t)table->column_count + 1, sizeof *roles->dropped);
    int failed = roles->excluded && roles->dropped
                     ? 0
                     : error_set(err, ERROR_MEMORY, "%s: no memory for its columns", table->label);
    if (!failed)
        failed = find_target(roles, table, json_object_get(data, "target"), told.target, err);
    if (!failed)
        failed = find_splitters(roles, table, data, told.group, notes, err);
    if (!failed)
        drop_label(roles, table, told.instead, notes);
    if (!failed)
        failed = find_dropped(roles, table, json_object_get(data, "drop"), notes, err);
    if (failed)
        roles_release(roles);
    return failed;
}

void roles_release(struct roles *roles)
{
    free(roles->one_hot);
    free(roles->excluded);
    free(roles->dropped);
    memset(roles, 0, sizeof *roles);
}

/* 0 or 1, however it is written; -1: neither. */
static int flag_of(const struct column *column, int64_t row)
{
    if (!column->text || column->text[row] == CELL_IS_NUMBER)
        return column->number[row] == 0 ? 0 : column->number[row] == 1 ? 1 : -1;
    const char *text = dictionary_text(&column->dictionary, column->text[row]);
    return !strcasecmp(text, "true") ? 1 : !strcasecmp(text, "false") ? 0 : -1;
}

/* The place in the list of the column that holds 1. */
static int64_t find_hot(const struct roles *roles, const struct table *table, int64_t row, struct error *err)
{
    int64_t hot = -1, ones = 0;
    for (int64_t i = 0; i < roles->one_hot_count; i++) {
        const struct column *column = &table->columns[roles->one_hot[i]];
        int flag = flag_of(column, row);
        if (flag < 0)
            return error_set(err, ERROR_USAGE,
                             "%s:%lld:%lld: found neither 0 nor 1 in column \"%.80s\", one "
                             "of the one-hot ones of data.target",
                             table_file(table, row), (long long)table->line[row],
                             (long long)roles->one_hot[i] + 1, column->name);
        ones += flag;
        hot = flag ? i : hot;
    }
    if (ones == 1)
        return hot;
    return error_set(err, ERROR_USAGE,
                     "%s:%lld: found %lld of the %lld one-hot columns of data.target to be 1, expected one",
                     table_file(table, row), (long long)table->line[row], (long long)ones,
                     (long long)roles->one_hot_count);
}

static char *join_names(const struct roles *roles, const struct table *table)
{
    struct text text;
    text_init(&text);
    for (int64_t i = 0; i < roles->one_hot_count; i++)
        text_printf(&text, "%s%s", i ? ", " : "", table->columns[roles->one_hot[i]].name);
    return text_steal(&text);
}

int roles_join_one_hot(struct roles *roles, struct table *table, struct error *err)
{
    if (!roles->one_hot)
        return 0;
    char *name = join_names(roles, table);
    struct column *column = name ? table_attach_column(table, name, err) : NULL;
    free(name);
    if (!column || column_allow_texts(table, column) < 0)
        return error_set(err, ERROR_MEMORY, "%s: no memory for its labels", table->label);
    roles->target = table->column_count - 1;
    roles->excluded[roles->target] = true;
    for (int64_t row = table->first; row < table->rows; row++) {
        int64_t hot = find_hot(roles, table, row, err);
        if (hot < 0)
            return -1;
        const char *class = table->columns[roles->one_hot[hot]].name;
        column->text[row] = dictionary_add(&column->dictionary, class, strlen(class), CELL_TEXT);
        if (column->text[row] < 0)
            return error_set(err, ERROR_MEMORY, "%s: no memory for its labels", table->label);
    }
    return 0;
}
