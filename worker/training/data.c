/* A dataset from its files: tables, roles of columns, target, split, features; see data.h. */
#include "worker/training/data.h"

#include "worker/training/data_division.h"
#include "worker/training/data_duplicates.h"
#include "worker/training/data_features.h"
#include "worker/training/data_join.h"
#include "worker/training/data_labels.h"
#include "worker/training/data_libsvm.h"
#include "worker/training/data_messages.h"
#include "worker/training/data_options.h"
#include "worker/training/data_roles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Row numbers of each part, in the file's order; one allocation, rows[0] owns it. */
static int list_rows(const unsigned char *part, int64_t count, int64_t *rows[SPLIT_COUNT],
                     struct dataset *dataset)
{
    rows[0] = malloc((size_t)count * sizeof **rows);
    if (!rows[0])
        return -1;
    int64_t at = 0;
    for (int split = 0; split < SPLIT_COUNT; split++) {
        dataset->rows[split] = 0;
        rows[split] = rows[0] + at;
        for (int64_t row = 0; row < count; row++)
            if (part[row] == split)
                rows[split][dataset->rows[split]++] = row;
        at += dataset->rows[split];
    }
    return 0;
}

static int fit_values(struct dataset *dataset, const struct target *target, const int64_t *train,
                      const struct table *table, struct error *err)
{
    int64_t rows = dataset->rows[SPLIT_TRAIN];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < rows; i++)
        sum += target->value[train[i]];
    dataset->target_mean = sum / (double)rows;
    for (int64_t i = 0; i < rows; i++) {
        double miss = target->value[train[i]] - dataset->target_mean;
        squares += miss * miss;
    }
    dataset->target_sd = sqrt(squares / (double)rows);
    if (dataset->target_sd > 0 && isfinite(dataset->target_sd))
        return 0;
    return error_set(
        err, ERROR_USAGE,
        "%s: target \"%.80s\" cannot be standardised: its training rows have mean %g and sd %g; give "
        "its logarithm, or another unit",
        table->label, table->columns[target->column].name, dataset->target_mean, dataset->target_sd);
}

static int no_memory(const struct table *table, struct error *err)
{
    return error_set(err, ERROR_MEMORY, "%s: no memory for its features", table->label);
}

static int fill_labels(struct dataset *dataset, enum split split, const int64_t *rows,
                       const struct target *target, const struct table *table, struct error *err)
{
    int32_t *label = malloc((size_t)dataset->rows[split] * sizeof *label);
    dataset->label[split] = label;
    for (int64_t i = 0; i < dataset->rows[split] && label; i++)
        label[i] = target->label[rows[i]];
    return label ? 0 : no_memory(table, err);
}

static int fill_values(struct dataset *dataset, enum split split, const int64_t *rows,
                       const struct target *target, const struct table *table, struct error *err)
{
    double mean = dataset->target_mean, sd = dataset->target_sd;
    float *y = malloc((size_t)dataset->rows[split] * sizeof *y);
    dataset->y[split] = y;
    for (int64_t i = 0; i < dataset->rows[split] && y; i++) {
        y[i] = (float)((target->value[rows[i]] - mean) / sd);
        if (!isfinite(y[i]))
            return column_refuse_far(table, target->column, rows[i], mean, sd, err);
    }
    return y ? 0 : no_memory(table, err);
}

/* Features and targets of one part. */
static int fill_split(struct dataset *dataset, enum split split, const int64_t *rows,
                      const struct features *features, const struct target *target, const struct table *table,
                      struct error *err)
{
    if (dataset->rows[split] == 0)
        return 0;
    float *x = calloc((size_t)dataset->rows[split], (size_t)features->count * sizeof *x);
    dataset->x[split] = x;
    if (!x)
        return no_memory(table, err);
    if (features->numbering_count) {
        dataset->category[split] =
            calloc((size_t)dataset->rows[split], (size_t)features->numbering_count * sizeof(int32_t));
        if (!dataset->category[split])
            return no_memory(table, err);
        features_fill_categories(features, table, rows, dataset->rows[split], dataset->category[split]);
    }
    if (features_fill(features, table, rows, dataset->rows[split], x, err) < 0)
        return -1;
    return dataset->task == TASK_CLASSIFICATION ? fill_labels(dataset, split, rows, target, table, err)
                                                : fill_values(dataset, split, rows, target, table, err);
}

/* NULL without memory: a model must never be saved with half of it. */
static json_t *describe(const struct dataset *dataset, const struct features *features,
                        const struct target *target, const struct table *table)
{
    bool classes = dataset->task == TASK_CLASSIFICATION;
    json_t *object = json_object();
    int failed = json_object_set_new(object, "task", json_string(classes ? "classification" : "regression")) |
                 json_object_set_new(object, "target", json_string(table->columns[target->column].name)) |
                 features_describe(features, table, object);
    if (classes)
        failed |= json_object_set(object, "classes", target->names);
    else
        failed |= json_object_set_new(object, "target_mean", json_number(dataset->target_mean)) |
                  json_object_set_new(object, "target_sd", json_number(dataset->target_sd));
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

/* How many numbers each embedded column has. */
static int count_categories(struct dataset *dataset, const struct features *features,
                            const struct table *table, struct error *err)
{
    dataset->categories = features->numbering_count;
    dataset->cardinality = calloc((size_t)features->numbering_count + 1, sizeof *dataset->cardinality);
    for (int64_t k = 0; k < features->numbering_count && dataset->cardinality; k++)
        dataset->cardinality[k] = features->numbering[k].count + 1;
    return dataset->cardinality ? 0 : no_memory(table, err);
}

/* Training rows of each class. */
static int count_classes(struct dataset *dataset, const struct table *table, struct error *err)
{
    if (dataset->task != TASK_CLASSIFICATION)
        return 0;
    dataset->class_rows = calloc((size_t)dataset->classes, sizeof *dataset->class_rows);
    for (int64_t i = 0; i < dataset->rows[SPLIT_TRAIN] && dataset->class_rows; i++)
        dataset->class_rows[dataset->label[SPLIT_TRAIN][i]]++;
    return dataset->class_rows ? 0 : no_memory(table, err);
}

static int build(struct dataset *dataset, struct table *table, const struct target *target,
                 const struct feature_options *options, int64_t *const *rows, struct error *err)
{
    struct features features = {0};
    dataset->task = target->task;
    dataset->classes = target->classes;
    if (target->task == TASK_REGRESSION && fit_values(dataset, target, rows[SPLIT_TRAIN], table, err) < 0)
        return -1;
    int64_t all = dataset->rows[SPLIT_TRAIN] + dataset->rows[SPLIT_VALIDATION] + dataset->rows[SPLIT_TEST];
    if (features_fit(&features, table, options, rows[SPLIT_TRAIN], dataset->rows[SPLIT_TRAIN], all,
                     dataset->notes, err) < 0)
        return -1;
    dataset->features = features.count;
    int failed = count_categories(dataset, &features, table, err);
    for (int split = 0; split < SPLIT_COUNT && !failed; split++)
        failed = fill_split(dataset, (enum split)split, rows[split], &features, target, table, err);
    if (!failed)
        failed = count_classes(dataset, table, err);
    if (!failed) {
        dataset->preprocessing = describe(dataset, &features, target, table);
        failed = dataset->preprocessing ? 0 : no_memory(table, err);
    }
    features_release(&features);
    return failed;
}

/* Everything between the files and the dataset. */
struct loading {
    struct options options;
    struct table table;
    struct roles roles;
    struct target target;
    struct duplicates duplicates;
    int64_t *rows[SPLIT_COUNT]; /* the first owns them all */
};

/* Splits as for the search, then merges, so that the refit's test rows are those of the search. */
static int divide(struct loading *loading, struct dataset *dataset, bool refit, struct error *err)
{
    struct table *table = &loading->table;
    int64_t count = table->rows - table->first;
    unsigned char *part = malloc((size_t)count);
    if (!part)
        return error_set(err, ERROR_MEMORY, "%s: no memory to split it", table->label);
    int failed = table_divide(part, table, &loading->roles, &loading->target, &loading->options.split,
                              dataset->notes, err);
    for (int64_t row = 0; row < count && refit && !failed; row++)
        if (part[row] == SPLIT_VALIDATION)
            part[row] = SPLIT_TRAIN;
    if (!failed)
        failed = duplicates_note(&loading->duplicates, table, part, dataset->notes, err);
    if (!failed && list_rows(part, count, loading->rows, dataset) < 0)
        failed = error_set(err, ERROR_MEMORY, "%s: no memory to split it", table->label);
    free(part);
    return failed;
}

/* A column that the settings ask for by name, which tells a header from data; NULL: none. */
static const char *name_asked_for(const json_t *data)
{
    static const char *const keys[] = {"target", "group", "time", "drop"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *wanted = json_object_get(data, keys[i]);
        wanted = json_is_array(wanted) ? json_array_get(wanted, 0) : wanted;
        if (json_is_string(wanted))
            return json_string_value(wanted);
    }
    return NULL;
}

/* The test rows' file behind the other one. */
static int join_test(struct loading *loading, enum data_format format, json_t *notes, struct error *err)
{
    struct table test;
    struct join join = {.format = format,
                        .header = loading->options.header,
                        .labels = &loading->options.test_labels,
                        .roles = &loading->roles};
    if (!loading->options.test.path)
        return 0;
    if (source_read(&loading->options.test, &test, &join.test_format, err) < 0)
        return -1;
    int failed = table_join_test(&loading->table, &test, &join, notes, err);
    data_table_release(&test);
    return failed;
}

/* LIBSVM has the label first, and then perhaps the query that a row belongs to. */
static struct roles_told libsvm_roles(const struct table *table)
{
    bool queries = table->column_count > 1 && !strcmp(table->columns[1].name, LIBSVM_QUERY);
    return (struct roles_told){.target = 0, .instead = -1, .group = queries ? 1 : -1};
}

/* One table with a target column out of all the files. */
static int gather(struct loading *loading, json_t *notes, struct error *err)
{
    const struct options *options = &loading->options;
    struct table *table = &loading->table;
    enum data_format format;
    struct roles_told told = {-1, -1, -1};
    if (source_read(&options->path, table, &format, err) < 0)
        return -1;
    if (format == FORMAT_CSV &&
        table_name_columns(table, options->header, name_asked_for(options->data), notes, err) < 0)
        return -1;
    if (format == FORMAT_LIBSVM)
        told = libsvm_roles(table);
    if (options->labels.path) {
        if (labels_attach(table, &options->labels, "data.labels", options->header, notes, err) < 0)
            return -1;
        told.instead = told.target;
        told.target = table->column_count - 1;
    }
    if (roles_find(&loading->roles, table, options->data, told, notes, err) < 0 ||
        join_test(loading, format, notes, err) < 0 || roles_join_one_hot(&loading->roles, table, err) < 0)
        return -1;
    return 0;
}

static int read_target(struct loading *loading, json_t *notes, struct error *err)
{
    struct table *table = &loading->table;
    int64_t column = loading->roles.target;
    if (loading->options.task != TASK_REQUEST_REGRESSION && classes_respell(table, column, notes, err) < 0)
        return -1;
    if (duplicates_find(&loading->duplicates, table, &loading->roles, err) < 0)
        return -1;
    if (loading->options.deduplicate && duplicates_drop(&loading->duplicates, table, notes, err) < 0)
        return -1;
    if (target_read(&loading->target, table, column, loading->options.task, notes, err) < 0)
        return -1;
    return loading->target.task == TASK_CLASSIFICATION
               ? classes_compare(table, loading->target.label, loading->target.names, err)
               : 0;
}

static int load(struct dataset *dataset, const json_t *data, const struct data_files *files, uint64_t seed,
                bool refit, struct error *err)
{
    struct loading loading;
    memset(dataset, 0, sizeof *dataset);
    memset(&loading, 0, sizeof loading);
    dataset->target_sd = 1;
    if (data_options_read(&loading.options, data, files, seed, err) < 0)
        return -1;
    dataset->notes = json_array();
    int failed = gather(&loading, dataset->notes, err);
    if (!failed)
        failed = read_target(&loading, dataset->notes, err);
    if (!failed)
        failed = divide(&loading, dataset, refit, err);
    loading.options.features.excluded = loading.roles.excluded;
    if (!failed)
        failed =
            build(dataset, &loading.table, &loading.target, &loading.options.features, loading.rows, err);
    free(loading.rows[0]);
    duplicates_release(&loading.duplicates);
    target_release(&loading.target);
    roles_release(&loading.roles);
    data_table_release(&loading.table);
    data_options_release(&loading.options);
    if (failed)
        dataset_release(dataset);
    return failed;
}

int dataset_load(struct dataset *dataset, const json_t *data, const struct data_files *files, uint64_t seed,
                 struct error *err)
{
    return load(dataset, data, files, seed, false, err);
}

int dataset_load_refit(struct dataset *dataset, const json_t *data, const struct data_files *files,
                       uint64_t seed, struct error *err)
{
    return load(dataset, data, files, seed, true, err);
}

void dataset_release(struct dataset *dataset)
{
    for (int split = 0; split < SPLIT_COUNT; split++) {
        free(dataset->x[split]);
        free(dataset->label[split]);
        free(dataset->y[split]);
        free(dataset->category[split]);
    }
    free(dataset->cardinality);
    free(dataset->class_rows);
    json_decref(dataset->preprocessing);
    json_decref(dataset->notes);
    memset(dataset, 0, sizeof *dataset);
}
