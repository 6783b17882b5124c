/* Filling features, and describing them; see data_features.h. */
#include "worker/training/data_features.h"

#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void features_release(struct features *features)
{
    for (int64_t f = 0; f < features->count; f++)
        scaling_release(&features->feature[f].scaling);
    for (int64_t k = 0; k < features->numbering_count; k++)
        numbering_release(&features->numbering[k]);
    free(features->feature);
    free(features->numbering);
    memset(features, 0, sizeof *features);
}

static void fill_numbers(const struct scaling *scaling, const double *number, const int64_t *rows,
                         int64_t count, float *x, int64_t stride)
{
    if (scaling->preprocess == PREPROCESS_QUANTILE) {
        double last = NAN, score = scaling_apply(scaling, NAN);
        for (int64_t i = 0; i < count; i++) {
            double value = number[rows[i]];
            /* Pixels and counters repeat themselves, and a score costs a hundred times a comparison. */
            if (value != last && !(isnan(value) && isnan(last)))
                score = scaling_apply(scaling, value);
            last = value;
            x[i * stride] = (float)score;
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double value = number[rows[i]];
        value = isnan(value) ? scaling->fill : value;
        x[i * stride] = (float)((value - scaling->centre) / scaling->scale);
    }
}

/* One feature of some rows; x moves on by the number of features a row. */
static void fill_feature(const struct feature *feature, const struct table *table, const int64_t *rows,
                         int64_t count, float *x, int64_t stride)
{
    const struct column *column = &table->columns[feature->column];
    const double *number = column->number + table->first;
    switch (feature->kind) {
    case FEATURE_NUMBER:
        fill_numbers(&feature->scaling, number, rows, count, x, stride);
        break;
    case FEATURE_MISSING:
        for (int64_t i = 0; i < count; i++)
            x[i * stride] = isnan(number[rows[i]]) ? 1 : 0;
        break;
    case FEATURE_CATEGORY: {
        bool missing = column->dictionary.kind[feature->entry] == CELL_MISSING;
        for (int64_t i = 0; i < count; i++) {
            int32_t entry = column->text[table->first + rows[i]];
            x[i * stride] =
                entry == feature->entry || (missing && column->dictionary.kind[entry] == CELL_MISSING);
        }
    }
    }
}

int features_fill(const struct features *features, const struct table *table, const int64_t *rows,
                  int64_t count, float *x, struct error *err)
{
    enum { BLOCK = 64 }; /* rows: columns are read and rows are written, so both stay in the cache */
    int64_t stride = features->count;
    for (int64_t from = 0; from < count; from += BLOCK) {
        int64_t block = count - from < BLOCK ? count - from : BLOCK;
        for (int64_t f = 0; f < features->count; f++)
            fill_feature(&features->feature[f], table, rows + from, block, x + from * stride + f, stride);
    }
    for (int64_t i = 0; i < count * stride; i++)
        if (!isfinite(x[i])) {
            const struct feature *feature = &features->feature[i % stride];
            return column_refuse_far(table, feature->column, rows[i / stride], feature->scaling.centre,
                                     feature->scaling.scale, err);
        }
    return 0;
}

void features_fill_categories(const struct features *features, const struct table *table, const int64_t *rows,
                              int64_t count, int32_t *category)
{
    for (int64_t k = 0; k < features->numbering_count; k++) {
        const struct numbering *numbering = &features->numbering[k];
        const int32_t *text = table->columns[numbering->column].text + table->first;
        for (int64_t i = 0; i < count; i++)
            category[i * features->numbering_count + k] = numbering->number_of[text[rows[i]]];
    }
}

static json_t *describe_feature(const struct feature *feature, const struct column *column)
{
    json_t *object = json_object();
    int failed = 0;
    switch (feature->kind) {
    case FEATURE_NUMBER:
        failed = json_object_set_new(object, "name", json_string(column->name)) |
                 scaling_describe(&feature->scaling, object);
        break;
    case FEATURE_MISSING:
        failed = json_object_set_new(object, "name", json_sprintf("%s missing", column->name)) |
                 json_object_set_new(object, "missing_of", json_string(column->name));
        break;
    case FEATURE_CATEGORY:
        failed =
            json_object_set_new(object, "name", json_string(column->name)) |
            json_object_set_new(object, "category", dictionary_to_json(&column->dictionary, feature->entry));
        if (column->dictionary.kind[feature->entry] == CELL_MISSING)
            failed |= json_object_set_new(object, "missing", json_true());
    }
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

/* data.missing as the array it may have been given as. */
static json_t *list_missing(const json_t *missing)
{
    if (!missing || json_is_null(missing))
        return json_array();
    json_t *copy = json_deep_copy(missing);
    return !copy || json_is_array(copy) ? copy : json_pack("[o]", copy);
}

int features_describe(const struct features *features, const struct table *table, json_t *object)
{
    json_t *x = json_array(), *categories = json_array();
    int failed = 0;
    for (int64_t f = 0; f < features->count && !failed; f++) {
        const struct feature *feature = &features->feature[f];
        failed = json_array_append_new(x, describe_feature(feature, &table->columns[feature->column]));
    }
    for (int64_t k = 0; k < features->numbering_count && !failed; k++)
        failed = json_array_append_new(categories, numbering_to_json(&features->numbering[k], table));
    failed |= json_object_set_new(object, "preprocess", json_string(preprocess_names[features->preprocess]));
    failed |= json_object_set_new(object, "missing", list_missing(features->missing));
    failed |= json_object_set_new(object, "features", x);
    failed |= json_object_set_new(object, "categories", categories);
    return failed ? -1 : 0;
}
