/* The column to predict; see data_target.h. */
#include "worker/training/data_target.h"

#include "base/text.h"
#include "worker/training/data_columns.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AUTOMATIC_CLASSES 20 /* different integers that are still taken for classes */
#define LISTED_COLUMNS 12

static int refuse_target(const struct table *table, const char *wanted, struct error *err)
{
    struct text list;
    text_init(&list);
    const char **words = calloc((size_t)table->column_count + 1, sizeof *words);
    for (int64_t c = 0; c < table->column_count; c++) {
        if (words)
            words[c] = table->columns[c].name;
        if (c < LISTED_COLUMNS)
            text_printf(&list, "%s%.40s", c ? ", " : "", table->columns[c].name);
    }
    const char *near = words && table->first ? nearest_word(wanted, words) : NULL;
    error_set(err, ERROR_USAGE,
              "data.target: found %s, which is no column of %s%s%s%s%s; its %lld columns are %s%s (index 0 "
              "to %lld, or "
              "-1 for the last)",
              wanted, table->label, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "",
              table->first ? "" : ", whose first row is data (data.header: true says otherwise)",
              (long long)table->column_count, list.data ? list.data : "",
              table->column_count > LISTED_COLUMNS ? ", ..." : "", (long long)table->column_count - 1);
    free(words);
    text_release(&list);
    return -1;
}

int target_find(const struct table *table, const json_t *wanted, int64_t *column, struct error *err)
{
    char text[400];
    double number = 0;
    bool index = json_is_integer(wanted);
    if (index) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(wanted));
        number = (double)json_integer_value(wanted);
    } else if (json_is_string(wanted)) {
        const char *name = json_string_value(wanted);
        for (int64_t c = 0; c < table->column_count; c++) {
            if (strcmp(table->columns[c].name, name))
                continue;
            *column = c;
            return 0;
        }
        snprintf(text, sizeof text, "'%.300s'", name);
        index = number_parse(name, &number) && number == floor(number);
    } else {
        return error_set(err, ERROR_USAGE, "data.target: missing, expected a column's name or index");
    }
    double at = number < 0 ? number + (double)table->column_count : number;
    if (!index || at < 0 || at >= (double)table->column_count)
        return refuse_target(table, text, err);
    *column = (int64_t)at;
    return 0;
}

/* At most AUTOMATIC_CLASSES different values, all integers? */
static bool few_integers(const struct table *table, const struct column *column)
{
    double seen[AUTOMATIC_CLASSES];
    int count = 0;
    for (int64_t row = table->first; row < table->rows; row++) {
        double value = column->number[row];
        int i = 0;
        while (i < count && seen[i] != value)
            i++;
        if (i < count)
            continue;
        if (count == AUTOMATIC_CLASSES || value != floor(value))
            return false;
        seen[count++] = value;
    }
    return true;
}

/* What becomes of the column's dictionary: entries that occur, in the order of their texts. */
struct named {
    const char *text;
    int32_t entry;
};

static int named_compare(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

static int number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int name_class(struct target *target, const char *text)
{
    char *valid = utf8_repair(text, strlen(text));
    int failed = valid ? json_array_append_new(target->names, json_string(valid)) : -1;
    free(valid);
    return failed;
}

static int label_texts(struct target *target, const struct table *table, const struct column *column)
{
    int32_t entries = column->dictionary.count;
    struct named *named = malloc((size_t)entries * sizeof *named);
    int32_t *label_of = malloc((size_t)entries * sizeof *label_of);
    int failed = named && label_of ? 0 : -1;
    if (!failed) {
        memset(label_of, -1, (size_t)entries * sizeof *label_of);
        int32_t used = 0;
        for (int64_t row = table->first; row < table->rows; row++) {
            int32_t entry = column->text[row];
            if (label_of[entry] >= 0)
                continue;
            label_of[entry] = 0;
            named[used++] = (struct named){dictionary_text(&column->dictionary, entry), entry};
        }
        qsort(named, (size_t)used, sizeof *named, named_compare);
        for (int32_t i = 0; i < used; i++) {
            label_of[named[i].entry] = i;
            failed |= name_class(target, named[i].text);
        }
        for (int64_t row = table->first; row < table->rows; row++)
            target->label[row - table->first] = label_of[column->text[row]];
        target->classes = used;
    }
    free(named);
    free(label_of);
    return failed;
}

static int label_numbers(struct target *target, const struct table *table, const struct column *column)
{
    size_t rows = (size_t)(table->rows - table->first), used = 0;
    double *value = malloc(rows * sizeof *value);
    if (!value)
        return -1;
    memcpy(value, column->number + table->first, rows * sizeof *value);
    qsort(value, rows, sizeof *value, number_compare);
    for (size_t i = 0; i < rows; i++)
        if (i == 0 || value[i] != value[used - 1])
            value[used++] = value[i];
    int failed = 0;
    for (size_t i = 0; i < used; i++) {
        char text[NUMBER_SIZE];
        if (value[i] == floor(value[i]) && fabs(value[i]) < 1e15)
            snprintf(text, sizeof text, "%.0f", value[i] + 0.0);
        else
            number_format(value[i], text);
        failed |= name_class(target, text);
    }
    for (size_t row = 0; row < rows; row++) {
        const double *at =
            bsearch(&column->number[table->first + (int64_t)row], value, used, sizeof *value, number_compare);
        target->label[row] = (int32_t)(at - value);
    }
    target->classes = (int64_t)used;
    free(value);
    return failed;
}

/* Names cells without a label, and for a column of numbers the texts in it. */
static int check_labels(const struct table *table, int64_t column, bool numbers, struct error *err)
{
    struct misfits misfits;
    misfits_init(&misfits);
    misfits_add_labels(&misfits, table, column, numbers);
    int failed = misfits_report(&misfits, table, err);
    misfits_release(&misfits);
    return failed ? error_prefix(err, "data.target") : 0;
}

static int check_variety(const struct target *target, const struct table *table, struct error *err)
{
    const char *name = table->columns[target->column].name;
    int64_t rows = table->rows - table->first;
    if (target->task == TASK_REGRESSION) {
        for (int64_t row = 1; row < rows; row++)
            if (target->value[row] != target->value[0])
                return 0;
        return error_set(err, ERROR_USAGE,
                         "%s: target \"%.80s\" has the same value in every row, so there is nothing to learn",
                         table->label, name);
    }
    if (target->classes == 1)
        return error_set(err, ERROR_USAGE,
                         "%s: target \"%.80s\" has one class only ('%.80s'), so there is nothing to learn",
                         table->label, name, json_string_value(json_array_get(target->names, 0)));
    if (target->classes * 2 > rows)
        return error_set(
            err, ERROR_USAGE,
            "%s: target \"%.80s\" has %lld classes in %lld rows; expected at least two rows a class%s",
            table->label, name, (long long)target->classes, (long long)rows,
            table->columns[target->column].text ? "" : " (data.task: regression?)");
    return 0;
}

int target_read(struct target *target, struct table *table, int64_t column, enum task_request request,
                json_t *notes, struct error *err)
{
    memset(target, 0, sizeof *target);
    target->column = column;
    struct column *source = &table->columns[column];
    struct column_summary summary = column_summarise(table, source, table->first);
    bool texts = column_use(&summary) == COLUMN_TEXTS;
    if (texts && request == TASK_REQUEST_REGRESSION)
        return check_labels(table, column, true, err);
    bool all = texts || (request == TASK_REQUEST_CLASSIFICATION && summary.texts > 0);
    if (check_labels(table, column, !all, err) < 0)
        return -1;
    bool classes = all || request == TASK_REQUEST_CLASSIFICATION ||
                   (request == TASK_REQUEST_AUTO && few_integers(table, source));
    target->task = classes ? TASK_CLASSIFICATION : TASK_REGRESSION;
    if (all && column_make_texts(table, source, err) < 0)
        return -1;
    if (classes) {
        target->label = malloc((size_t)(table->rows - table->first) * sizeof *target->label);
        target->names = json_array();
        if (!target->label || !target->names ||
            (all ? label_texts(target, table, source) : label_numbers(target, table, source)) < 0) {
            target_release(target);
            return error_set(err, ERROR_MEMORY, "%s: no memory for the labels", table->label);
        }
    } else {
        target->value = source->number + table->first;
    }
    if (check_variety(target, table, err) < 0) {
        target_release(target);
        return -1;
    }
    if (request == TASK_REQUEST_AUTO)
        note_add(notes, "%s: target \"%.80s\": %s; data.task decides otherwise", table->label, source->name,
                 !classes ? "regression"
                 : texts  ? "classification, since it is text"
                          : "classification, since it has few different integers");
    return 0;
}

void target_release(struct target *target)
{
    free(target->label);
    json_decref(target->names);
    memset(target, 0, sizeof *target);
}
