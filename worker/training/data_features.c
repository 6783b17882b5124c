/* From columns to features; see data_features.h. */
#include "worker/training/data_features.h"

#include "base/text.h"
#include "worker/training/data_columns.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns left out, by reason, for one note each. */
struct dropped {
    struct text names;
    int64_t count;
};

struct fit {
    struct features *features;
    struct table *table;
    const int64_t *train;
    int64_t train_rows;
    struct dropped empty, constant, index, varied;
};

static void drop(struct dropped *dropped, const struct column *column)
{
    if (dropped->count++ < 10)
        text_printf(&dropped->names, "%s%.30s", dropped->count > 1 ? ", " : "", column->name);
}

static void note_dropped(struct dropped *dropped, const struct table *table, const char *why, json_t *notes)
{
    if (dropped->count)
        note_add(notes, "%s: dropped %lld column%s %s: %s%s", table->label, (long long)dropped->count,
                 dropped->count == 1 ? "" : "s", why, dropped->names.data ? dropped->names.data : "",
                 dropped->count > 10 ? ", ..." : "");
    text_release(&dropped->names);
}

static int add_feature(struct features *features, const struct feature *feature)
{
    if (features->count == features->capacity) {
        int64_t capacity = features->capacity ? features->capacity * 2 : 64;
        struct feature *more = realloc(features->feature, (size_t)capacity * sizeof *more);
        if (!more)
            return -1;
        features->feature = more;
        features->capacity = capacity;
    }
    features->feature[features->count++] = *feature;
    return 0;
}

/* An unnamed column that counts the rows: what a data frame's index becomes in a file. */
static bool is_index(const struct table *table, int64_t c)
{
    const struct column *column = &table->columns[c];
    bool unnamed = table->first && (!*table->heading[c] || !strncmp(table->heading[c], "Unnamed: ", 9));
    if (!unnamed || table->rows - table->first < 2)
        return false;
    double start = column->number[table->first];
    if (start != 0 && start != 1)
        return false;
    for (int64_t row = table->first; row < table->rows; row++)
        if (column_kind(column, row) != CELL_NUMBER ||
            column->number[row] != start + (double)(row - table->first))
            return false;
    return true;
}

/* Two passes: the mean first, so that the squares do not cancel. */
static int fit_numbers(struct fit *fit, int64_t c, struct error *err)
{
    const struct table *table = fit->table;
    const struct column *column = &table->columns[c];
    const double *value = column->number + table->first;
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
    for (int64_t i = 0; i < fit->train_rows; i++) {
        double x = value[fit->train[i]];
        low = x < low ? x : low;
        high = x > high ? x : high;
        sum += x;
    }
    if (low == high) {
        drop(&fit->constant, column);
        return 0;
    }
    double mean = sum / (double)fit->train_rows;
    for (int64_t i = 0; i < fit->train_rows; i++) {
        double miss = value[fit->train[i]] - mean;
        squares += miss * miss;
    }
    double sd = sqrt(squares / (double)fit->train_rows);
    if (!isfinite(sd) || !isfinite(mean) || sd == 0)
        return error_set(err, ERROR_USAGE,
                         "%s: column \"%.80s\" spans %g to %g, too far to standardise in double precision",
                         table->label, column->name, low, high);
    struct feature feature = {c, CELL_IS_NUMBER, mean, sd};
    if (add_feature(fit->features, &feature) < 0)
        return error_set(err, ERROR_MEMORY, "%s: no memory for the features", table->label);
    return 0;
}

/* All missing texts are one category: the first such entry stands for it. */
static int32_t category_of(const struct column *column, int64_t row, int32_t missing)
{
    return column_kind(column, row) == CELL_MISSING ? missing : column->text[row];
}

static int32_t missing_entry(const struct dictionary *dictionary)
{
    for (int32_t i = 0; i < dictionary->count; i++)
        if (dictionary->kind[i] == CELL_MISSING)
            return i;
    return -1;
}

/* Different categories of the training rows into `entry`; CATEGORIES_MAXIMUM + 1 means too many. */
static int find_categories(const struct fit *fit, const struct column *column, int32_t *entry)
{
    int32_t missing = missing_entry(&column->dictionary);
    int count = 0;
    for (int64_t i = 0; i < fit->train_rows; i++) {
        int32_t category = category_of(column, fit->table->first + fit->train[i], missing);
        int k = 0;
        while (k < count && entry[k] != category)
            k++;
        if (k < count)
            continue;
        if (count == CATEGORIES_MAXIMUM)
            return CATEGORIES_MAXIMUM + 1;
        entry[count++] = category;
    }
    return count;
}

/* By their texts, not by the order in which rows happened to bring them: insertion sort of at most 32. */
static void sort_categories(const struct dictionary *dictionary, int32_t *entry, int count)
{
    for (int i = 1; i < count; i++) {
        int32_t moved = entry[i];
        int k = i;
        for (; k > 0 &&
               strcmp(dictionary_text(dictionary, entry[k - 1]), dictionary_text(dictionary, moved)) > 0;
             k--)
            entry[k] = entry[k - 1];
        entry[k] = moved;
    }
}

static int fit_texts(struct fit *fit, int64_t c, struct error *err)
{
    struct column *column = &fit->table->columns[c];
    if (column_make_texts(fit->table, column, err) < 0)
        return -1;
    int32_t entry[CATEGORIES_MAXIMUM];
    int count = find_categories(fit, column, entry);
    if (count < 2 || count > CATEGORIES_MAXIMUM) {
        drop(count < 2 ? &fit->constant : &fit->varied, column);
        return 0;
    }
    sort_categories(&column->dictionary, entry, count);
    for (int i = 0; i < count; i++) {
        struct feature feature = {c, entry[i], 0, 1};
        if (add_feature(fit->features, &feature) < 0)
            return error_set(err, ERROR_MEMORY, "%s: no memory for the features", fit->table->label);
    }
    return 0;
}

static int fit_column(struct fit *fit, int64_t c, struct misfits *misfits, struct error *err)
{
    struct column *column = &fit->table->columns[c];
    struct column_summary summary = column_summarise(fit->table, column, fit->table->first);
    enum column_use use = column_use(&summary);
    if (use == COLUMN_EMPTY) {
        drop(&fit->empty, column);
    } else if (is_index(fit->table, c)) {
        drop(&fit->index, column);
    } else if (use == COLUMN_TEXTS) {
        return fit_texts(fit, c, err);
    } else if (summary.texts + summary.missing + summary.doubtful) {
        misfits_add_numbers(misfits, fit->table, c);
    } else {
        return fit_numbers(fit, c, err);
    }
    return 0;
}

int features_fit(struct features *features, struct table *table, int64_t target, const int64_t *train,
                 int64_t train_rows, json_t *notes, struct error *err)
{
    memset(features, 0, sizeof *features);
    struct fit fit = {.features = features, .table = table, .train = train, .train_rows = train_rows};
    struct misfits misfits;
    misfits_init(&misfits);
    int failed = 0;
    for (int64_t c = 0; c < table->column_count && !failed; c++)
        if (c != target)
            failed = fit_column(&fit, c, &misfits, err);
    if (!failed)
        failed = misfits_report(&misfits, table, err);
    misfits_release(&misfits);
    note_dropped(&fit.empty, table, "without values", failed ? NULL : notes);
    note_dropped(&fit.constant, table, "constant in training", failed ? NULL : notes);
    note_dropped(&fit.index, table, "that only count the rows", failed ? NULL : notes);
    note_dropped(&fit.varied, table, "of more than 32 different texts", failed ? NULL : notes);
    if (!failed && features->count == 0)
        failed = error_set(err, ERROR_USAGE,
                           "%s: no column is left to learn from (%lld besides the target, all dropped)",
                           table->label, (long long)table->column_count - 1);
    if (failed)
        features_release(features);
    return failed;
}

void features_release(struct features *features)
{
    free(features->feature);
    memset(features, 0, sizeof *features);
}

/* One feature of some rows; x moves on by the number of features a row. */
static void fill_feature(const struct feature *feature, const struct table *table, const int64_t *rows,
                         int64_t count, float *x, int64_t stride)
{
    const struct column *column = &table->columns[feature->column];
    if (feature->entry == CELL_IS_NUMBER) {
        const double *number = column->number + table->first;
        for (int64_t i = 0; i < count; i++)
            x[i * stride] = (float)((number[rows[i]] - feature->mean) / feature->sd);
        return;
    }
    bool missing = column->dictionary.kind[feature->entry] == CELL_MISSING;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = table->first + rows[i];
        bool same = column->text[row] == feature->entry;
        x[i * stride] = same || (missing && column_kind(column, row) == CELL_MISSING);
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
            return column_refuse_far(table, feature->column, rows[i / stride], feature->mean, feature->sd,
                                     err);
        }
    return 0;
}

static json_t *feature_to_json(const struct feature *feature, const struct column *column)
{
    json_t *entry = json_object();
    int failed = json_object_set_new(entry, "name", json_string(column->name));
    if (feature->entry == CELL_IS_NUMBER) {
        failed |= json_object_set_new(entry, "mean", json_number(feature->mean)) |
                  json_object_set_new(entry, "sd", json_number(feature->sd));
    } else {
        const char *text = dictionary_text(&column->dictionary, feature->entry);
        char *valid = utf8_repair(text, strlen(text));
        failed |= json_object_set_new(entry, "category", json_string(valid)); /* NULL is refused */
        free(valid);
    }
    if (!failed)
        return entry;
    json_decref(entry);
    return NULL;
}

json_t *features_to_json(const struct features *features, const struct table *table)
{
    json_t *array = json_array();
    int failed = 0;
    for (int64_t f = 0; f < features->count && !failed; f++) {
        const struct feature *feature = &features->feature[f];
        failed = json_array_append_new(array, feature_to_json(feature, &table->columns[feature->column]));
    }
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}
