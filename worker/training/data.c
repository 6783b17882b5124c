/* A dataset from a file: bytes, table, target, split, features; see data.h. */
#include "worker/training/data.h"

#include "base/text.h"
#include "worker/training/data_features.h"
#include "worker/training/data_file.h"
#include "worker/training/data_messages.h"
#include "worker/training/data_split.h"
#include "worker/training/data_table.h"
#include "worker/training/data_target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *path;  /* what is read */
    const char *label; /* what messages call it */
    const json_t *target;
    double validation, test;
    enum header header;
    char delimiter; /* 0: find out */
    enum task_request task;
    struct cell_rules rules; /* released by whoever read the options */
    struct feature_options features;
};

/* The index of a string among `words`, 0 when the key is absent; -1 with err for anything else. */
static int read_word(const json_t *data, const char *key, const char *const *words, struct error *err)
{
    const json_t *value = json_object_get(data, key);
    /* YAML makes a boolean of `header: true`. */
    const char *text = json_is_true(value)    ? "true"
                       : json_is_false(value) ? "false"
                                              : json_string_value(value);
    if (!value || json_is_null(value))
        return 0;
    for (int i = 0; text && words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    char *found = json_canonical(value);
    error_set(err, ERROR_USAGE, "data.%s: found %s, accepted %s, %s, %s, ...", key, found ? found : "?",
              words[0], words[1], words[2]);
    free(found);
    return -1;
}

static int read_share(const json_t *data, const char *key, double least, double *share, struct error *err)
{
    *share = json_get_number(data, key, 0.2);
    if (*share >= least && *share < 1)
        return 0;
    return error_set(err, ERROR_USAGE, "data.%s: found %g, accepted a share %s 0 and below 1", key, *share,
                     least > 0 ? "above" : "of at least");
}

static int read_options(const json_t *data, const char *path, struct options *options, struct error *err)
{
    static const char *const headers[] = {"auto", "true", "false", NULL};
    static const char *const tasks[] = {"auto", "classification", "regression", NULL};
    static const char *const delimiters[] = {"auto", "comma", "semicolon", "tab", "blanks",
                                             ",",    ";",     "\t",        " ",   NULL};
    static const char bytes[] = {0, ',', ';', '\t', ' ', ',', ';', '\t', ' '};
    memset(options, 0, sizeof *options);
    const char *written = json_get_string(data, "path", NULL);
    options->path = path ? path : written;
    options->label = written ? written : path;
    if (!options->path)
        return error_set(err, ERROR_USAGE, "data.path: missing, expected the path of a table");
    options->target = json_object_get(data, "target");
    int header = read_word(data, "header", headers, err);
    int task = header < 0 ? -1 : read_word(data, "task", tasks, err);
    int delimiter = task < 0 ? -1 : read_word(data, "delimiter", delimiters, err);
    if (delimiter < 0 || read_share(data, "validation", 1e-12, &options->validation, err) < 0 ||
        read_share(data, "test", 0, &options->test, err) < 0)
        return -1;
    options->header = header == 0 ? HEADER_AUTO : header == 1 ? HEADER_YES : HEADER_NO;
    options->task = (enum task_request)task;
    options->delimiter = bytes[delimiter];
    if (feature_options_read(&options->features, data, err) < 0)
        return -1;
    return cell_rules_init(&options->rules, json_object_get(data, "missing"), err);
}

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
    return error_set(err, ERROR_USAGE,
                     "%s: target \"%.80s\" cannot be standardised: its training rows have mean %g and sd %g",
                     table->label, table->columns[target->column].name, dataset->target_mean,
                     dataset->target_sd);
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

static int plan(struct features *features, struct dataset *dataset, struct table *table,
                const struct target *target, const struct feature_options *given, const int64_t *rows,
                struct error *err)
{
    bool *excluded = calloc((size_t)table->column_count, sizeof *excluded);
    if (!excluded)
        return no_memory(table, err);
    excluded[target->column] = true;
    struct feature_options options = *given;
    options.excluded = excluded;
    int64_t all = dataset->rows[SPLIT_TRAIN] + dataset->rows[SPLIT_VALIDATION] + dataset->rows[SPLIT_TEST];
    int failed =
        features_fit(features, table, &options, rows, dataset->rows[SPLIT_TRAIN], all, dataset->notes, err);
    free(excluded);
    return failed;
}

static int build(struct dataset *dataset, struct table *table, const struct target *target,
                 const struct feature_options *options, int64_t *const *rows, struct error *err)
{
    struct features features = {0};
    dataset->task = target->task;
    dataset->classes = target->classes;
    if (target->task == TASK_REGRESSION && fit_values(dataset, target, rows[SPLIT_TRAIN], table, err) < 0)
        return -1;
    if (plan(&features, dataset, table, target, options, rows[SPLIT_TRAIN], err) < 0)
        return -1;
    dataset->features = features.count;
    int failed = count_categories(dataset, &features, table, err);
    for (int split = 0; split < SPLIT_COUNT && !failed; split++)
        failed = fill_split(dataset, (enum split)split, rows[split], &features, target, table, err);
    if (!failed) {
        dataset->preprocessing = describe(dataset, &features, target, table);
        failed = dataset->preprocessing ? 0 : no_memory(table, err);
    }
    features_release(&features);
    return failed;
}

/* Splits by the whole table first, so that the refit's test rows are those of the search. */
static int divide(struct dataset *dataset, const struct target *target, const struct options *options,
                  int64_t count, uint64_t seed, bool refit, int64_t *rows[SPLIT_COUNT], struct error *err)
{
    unsigned char *part = malloc((size_t)count);
    if (!part)
        return error_set(err, ERROR_MEMORY, "%s: no memory to split it", options->label);
    int failed = split_rows(part, target->label, target->classes, count, options->validation, options->test,
                            seed, err);
    if (failed)
        error_prefix(err, "%s", options->label);
    for (int64_t row = 0; row < count && refit; row++)
        if (part[row] == SPLIT_VALIDATION)
            part[row] = SPLIT_TRAIN;
    if (!failed && list_rows(part, count, rows, dataset) < 0)
        failed = error_set(err, ERROR_MEMORY, "%s: no memory to split it", options->label);
    free(part);
    return failed;
}

static int load_table(struct table *table, const struct options *options, json_t *notes, struct error *err)
{
    char *bytes;
    size_t size;
    if (data_file_read(options->path, options->label, &bytes, &size, err) < 0)
        return -1;
    int failed = table_parse(table, bytes, size, options->label, options->delimiter, &options->rules, err);
    free(bytes);
    if (failed)
        return -1;
    if (table_name_columns(table, options->header, json_string_value(options->target), notes, err) == 0)
        return 0;
    data_table_release(table);
    return -1;
}

static int load(struct dataset *dataset, const json_t *data, const struct data_files *files, uint64_t seed,
                bool refit, struct error *err)
{
    struct options options;
    struct table table;
    struct target target = {0};
    int64_t *rows[SPLIT_COUNT] = {NULL};
    int64_t column;
    memset(dataset, 0, sizeof *dataset);
    dataset->target_sd = 1;
    if (read_options(data, files ? files->path : NULL, &options, err) < 0)
        return -1;
    dataset->notes = json_array();
    if (load_table(&table, &options, dataset->notes, err) < 0) {
        cell_rules_release(&options.rules);
        dataset_release(dataset);
        return -1;
    }
    cell_rules_release(&options.rules);
    int failed = target_find(&table, options.target, &column, err);
    if (!failed)
        failed = target_read(&target, &table, column, options.task, dataset->notes, err);
    if (!failed)
        failed = divide(dataset, &target, &options, table.rows - table.first, seed, refit, rows, err);
    if (!failed)
        failed = build(dataset, &table, &target, &options.features, rows, err);
    free(rows[0]);
    target_release(&target);
    data_table_release(&table);
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
