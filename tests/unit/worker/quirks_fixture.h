/* Tables with a column `n` that names their rows 0, 1, 2, ...: what is loaded of each, to the value. Numbers
 * stay as they are (preprocess: none). */
#ifndef RUNG_TESTS_UNIT_WORKER_QUIRKS_FIXTURE_H
#define RUNG_TESTS_UNIT_WORKER_QUIRKS_FIXTURE_H

#include "tests/unit/worker/data_fixture.h"

#define RAW "\"preprocess\": \"none\", \"test\": 0"

static inline const json_t *feature_at(const struct dataset *dataset, int64_t f)
{
    return json_array_get(json_object_get(dataset->preprocessing, "features"), (size_t)f);
}

/* The feature called `name`; of a column of texts the one for `category`. */
static inline int64_t feature_of(const struct dataset *dataset, const char *name, const char *category)
{
    for (int64_t f = 0; f < dataset->features; f++) {
        const json_t *feature = feature_at(dataset, f);
        const char *text = json_get_string(feature, "category", NULL);
        bool same = category ? text && !strcmp(text, category) : !text;
        if (same && !strcmp(json_get_string(feature, "name", ""), name))
            return f;
    }
    fail_msg("no feature %s %s", name, category ? category : "");
    return -1;
}

struct row {
    enum split split;
    int64_t at;
};

static inline struct row row_of(const struct dataset *dataset, int n)
{
    int64_t f = feature_of(dataset, "n", NULL);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset->rows[split]; i++)
            if (dataset->x[split][i * dataset->features + f] == (float)n)
                return (struct row){(enum split)split, i};
    fail_msg("no row %d", n);
    return (struct row){0};
}

static inline double value(const struct dataset *dataset, int n, const char *name)
{
    struct row row = row_of(dataset, n);
    return dataset->x[row.split][row.at * dataset->features + feature_of(dataset, name, NULL)];
}

static inline bool is_in(const struct dataset *dataset, int n, const char *name, const char *category)
{
    struct row row = row_of(dataset, n);
    return dataset->x[row.split][row.at * dataset->features + feature_of(dataset, name, category)] == 1;
}

static inline const char *class_of(const struct dataset *dataset, int n)
{
    struct row row = row_of(dataset, n);
    return class_name(dataset, dataset->label[row.split][row.at]);
}

static inline void check_values(const struct dataset *dataset, const char *name, int count,
                                const double *expected)
{
    for (int n = 0; n < count; n++) {
        double found = value(dataset, n, name);
        if (found != (double)(float)expected[n])
            fail_msg("%s of row %d: %.9g, expected %.9g", name, n, found, expected[n]);
    }
}

static inline void check_note(const struct dataset *dataset, const char *words)
{
    if (has_note(dataset, words))
        return;
    char *notes = json_canonical(dataset->notes);
    fail_msg("no note \"%s\" in %s", words, notes);
}

/* Loads, compares column c with the numbers given, and expects a note (NULL: of no kind). Three rows are
 * written twice, since two classes need four. */
static inline void check_column(const char *text, const char *note, int count, const double *expected)
{
    char again[2000];
    const char *body = count < 4 ? strstr(text, "y\n") : NULL;
    snprintf(again, sizeof again, "%s%s", text, body ? body + 2 : "");
    struct dataset dataset = load_text(again, "\"y\"", RAW);
    assert_int_equal(all_rows(&dataset), count < 4 ? 2 * count : count);
    check_values(&dataset, "c", count, expected);
    if (note)
        check_note(&dataset, note);
    dataset_release(&dataset);
}

#define NUMBERS(...)                                                                                         \
    (sizeof(double[]){__VA_ARGS__} / sizeof(double)), (double[])                                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

#endif
