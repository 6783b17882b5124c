/* Matching the columns of two files; see data_join.h. */
#include "worker/training/data_join.h"

#include "base/text.h"
#include "worker/training/data_build.h"
#include "worker/training/data_columns.h"
#include "worker/training/data_decoration.h"
#include "worker/training/data_labels.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many texts of the first row are names of the training table's columns. */
static int64_t count_known(const struct table *table, const struct table *test)
{
    int64_t known = 0;
    for (int64_t c = 0; c < test->column_count; c++)
        known += table_column_named(table, test->heading[c]) >= 0;
    return known;
}

/* A file of test rows is written as its training file is; names that both have decide. */
static int name_columns(const struct table *table, struct table *test, const struct join *join, json_t *notes,
                        struct error *err)
{
    enum header header = join->header;
    if (header == HEADER_AUTO && table->first && 2 * count_known(table, test) >= test->column_count)
        header = HEADER_YES;
    return table_name_columns(test, header, NULL, notes, err);
}

/* Test rows need neither group nor time: they are not split. */
static bool may_lack(const struct join *join, int64_t c)
{
    const struct roles *roles = join->roles;
    return c == roles->group || c == roles->time || roles->dropped[c] || join->test_format == FORMAT_LIBSVM;
}

static bool has_own_labels(const struct join *join)
{
    return join->labels->path != NULL;
}

static int match_names(const struct table *table, const struct table *test, const struct join *join,
                       int64_t *from, json_t *notes, struct error *err)
{
    struct mentions missing = {0}, more = {0};
    bool *used = calloc((size_t)test->column_count, sizeof *used);
    if (!used)
        return error_set(err, ERROR_MEMORY, "%s: no memory for its columns", test->label);
    for (int64_t c = 0; c < table->column_count; c++) {
        if (has_own_labels(join) && c == join->roles->target) {
            from[c] = test->column_count - 1;
            used[from[c]] = true;
            continue;
        }
        const char *name = table->columns[c].name;
        bool same = c < test->column_count && !strcmp(test->columns[c].name, name);
        from[c] = same ? c : table_column_named(test, name);
        if (from[c] >= 0)
            used[from[c]] = true;
        else if (!may_lack(join, c))
            mentions_add(&missing, "%.40s", name);
    }
    for (int64_t c = 0; c < test->column_count; c++)
        if (!used[c])
            mentions_add(&more, "%.40s", test->columns[c].name);
    free(used);
    int failed = 0;
    if (missing.count)
        failed = error_set(
            err, ERROR_USAGE,
            "data.test_path: %s lacks %lld column%s of %s: %s%s; data.drop leaves columns out of both",
            test->label, (long long)missing.count, missing.count == 1 ? "" : "s", table->label,
            missing.names.data ? missing.names.data : "", missing.count > 10 ? ", ..." : "");
    text_release(&missing.names);
    mentions_note(&more, test->label, "ignored", "that the training table lacks", "", failed ? NULL : notes);
    return failed;
}

/* The columns that both files have, in their order; attached labels are the target. */
static int match_positions(const struct table *table, const struct table *test, const struct join *join,
                           int64_t *from, struct error *err)
{
    bool own_labels = has_own_labels(join);
    int64_t columns = table->column_count - own_labels, found = test->column_count - own_labels;
    for (int64_t c = 0, next = 0; c < table->column_count; c++)
        from[c] = own_labels && c == join->roles->target ? test->column_count - 1 : next++;
    if (found == columns)
        return 0;
    const char *hint = "";
    if (own_labels && found == columns + 1)
        hint = "; with data.test_labels it must not have the labels, too";
    else if (!own_labels && found == columns - 1)
        hint = "; if the labels are what it lacks, data.test_labels is their file";
    return error_set(err, ERROR_USAGE,
                     "data.test_path: %s has %lld columns, %s has %lld%s; without a header in both, expected "
                     "as many, in the same order%s",
                     test->label, (long long)found, table->label, (long long)columns,
                     own_labels ? " without its labels" : "", hint);
}

/* Test rows that have their labels already need no other ones. */
static int attach_labels(const struct table *table, struct table *test, const struct join *join,
                         json_t *notes, struct error *err)
{
    const char *target = table->columns[join->roles->target].name;
    if (join->test_format == FORMAT_LIBSVM)
        return error_set(err, ERROR_USAGE, "data.test_labels: %s is LIBSVM, which has labels", test->label);
    if (test->first && table_column_named(test, target) >= 0)
        return error_set(err, ERROR_USAGE, "data.test_labels: %s has the column \"%.80s\" already",
                         test->label, target);
    return labels_attach(test, join->labels, "data.test_labels", join->header, notes, err);
}

/* Numbers in the training rows are numbers here, although these rows alone might be codes. */
static void read_codes(const struct table *table, struct table *test, const int64_t *from)
{
    for (int64_t c = 0; c < table->column_count; c++) {
        if (from[c] < 0 || test->columns[from[c]].written != DECORATION_CODES)
            continue;
        struct column_summary summary = column_summarise(table, &table->columns[c], table->first);
        if (column_use(&summary) == COLUMN_NUMBERS)
            column_read_codes(test, &test->columns[from[c]]);
    }
}

int table_join_test(struct table *table, struct table *test, const struct join *join, json_t *notes,
                    struct error *err)
{
    bool sparse = join->format == FORMAT_LIBSVM && join->test_format == FORMAT_LIBSVM;
    if (join->test_format == FORMAT_CSV && name_columns(table, test, join, notes, err) < 0)
        return -1;
    if (has_own_labels(join) && attach_labels(table, test, join, notes, err) < 0)
        return -1;
    int64_t *from = malloc((size_t)table->column_count * sizeof *from);
    if (!from)
        return error_set(err, ERROR_MEMORY, "%s: no memory for its columns", test->label);
    int failed = sparse || (table->first && test->first) ? match_names(table, test, join, from, notes, err)
                                                         : match_positions(table, test, join, from, err);
    if (!failed)
        read_codes(table, test, from);
    if (!failed)
        failed = table_append(table, test, from, sparse ? 0 : NAN, err);
    free(from);
    return failed;
}
