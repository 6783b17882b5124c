/* The column to predict; see data_target.h. */
#include "worker/training/data_target.h"

#include "base/text.h"
#include "worker/training/data_classes.h"
#include "worker/training/data_columns.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AUTOMATIC_CLASSES 20 /* different integers that are still taken for classes */

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
    int failed = classes ? classes_read(target, table, all, err) : 0;
    if (!classes)
        target->value = source->number + table->first;
    if (!failed)
        failed = check_variety(target, table, err);
    if (!failed && classes)
        failed = classes_note(target, table, notes, err);
    if (failed)
        target_release(target);
    else if (request == TASK_REQUEST_AUTO)
        note_add(notes, "%s: target \"%.80s\": %s; data.task decides otherwise", table->label, source->name,
                 !classes ? "regression"
                 : texts  ? "classification, since it is text"
                          : "classification, since it has few different integers");
    return failed;
}

void target_release(struct target *target)
{
    free(target->label);
    json_decref(target->names);
    memset(target, 0, sizeof *target);
}
