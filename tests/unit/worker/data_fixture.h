/* Small verbs for the tests of data: write a text to a file, load it, look at what came of it. */
#ifndef RUNG_TESTS_UNIT_WORKER_DATA_FIXTURE_H
#define RUNG_TESTS_UNIT_WORKER_DATA_FIXTURE_H

#include "worker/training/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define FIXTURE_SEED 7

static char fixture_path[64];

static inline void write_bytes(const void *bytes, size_t size)
{
    snprintf(fixture_path, sizeof fixture_path, "data-%ld.csv", (long)getpid());
    FILE *file = fopen(fixture_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* {"path": the file, "target": ..., more...}; `more` is JSON members or "". */
static inline json_t *options_of(const char *target, const char *more)
{
    char text[400];
    struct error err = {0};
    int size = snprintf(text, sizeof text, "{\"path\": \"%s\", \"target\": %s%s%s}", fixture_path, target,
                        *more ? ", " : "", more);
    json_t *options = json_parse(text, (size_t)size, &err);
    if (!options)
        fail_msg("%s: %s", text, err.message);
    return options;
}

/* Loads the file written last; the caller releases. */
static inline struct dataset load_options(const char *target, const char *more)
{
    struct dataset dataset;
    struct error err = {0};
    json_t *options = options_of(target, more);
    if (dataset_load(&dataset, options, NULL, FIXTURE_SEED, &err) < 0)
        fail_msg("%s", err.message);
    json_decref(options);
    unlink(fixture_path);
    return dataset;
}

static inline struct dataset load_text(const char *text, const char *target, const char *more)
{
    write_bytes(text, strlen(text));
    return load_options(target, more);
}

/* Expects a refusal whose message has each of the NULL-terminated words. */
static inline void load_refused(const char *target, const char *more, const char *const *words)
{
    struct dataset dataset;
    struct error err = {0};
    json_t *options = options_of(target, more);
    assert_int_equal(dataset_load(&dataset, options, NULL, FIXTURE_SEED, &err), -1);
    json_decref(options);
    unlink(fixture_path);
    assert_int_equal(err.code, ERROR_USAGE);
    for (; *words; words++)
        if (!strstr(err.message, *words))
            fail_msg("message lacks \"%s\":\n%s", *words, err.message);
}

#define refused(text, target, more, ...)                                                                     \
    do {                                                                                                     \
        write_bytes(text, strlen(text));                                                                     \
        load_refused(target, more, (const char *const[]){__VA_ARGS__, NULL});                                \
    } while (0)

/* The original value of feature f in row i of a split, from its standardised form. */
static inline double original(const struct dataset *dataset, enum split split, int64_t i, int64_t f)
{
    const json_t *feature = json_array_get(json_object_get(dataset->preprocessing, "features"), (size_t)f);
    double mean = json_get_number(feature, "mean", 0), sd = json_get_number(feature, "sd", 1);
    return dataset->x[split][i * dataset->features + f] * sd + mean;
}

static inline const char *feature_name(const struct dataset *dataset, int64_t f)
{
    const json_t *feature = json_array_get(json_object_get(dataset->preprocessing, "features"), (size_t)f);
    return json_get_string(feature, "name", "");
}

static inline const char *class_name(const struct dataset *dataset, int64_t label)
{
    return json_string_value(
        json_array_get(json_object_get(dataset->preprocessing, "classes"), (size_t)label));
}

static inline bool has_note(const struct dataset *dataset, const char *words)
{
    size_t i;
    json_t *note;
    json_array_foreach(dataset->notes, i, note)
    {
        if (strstr(json_string_value(note), words))
            return true;
    }
    return false;
}

static inline int64_t all_rows(const struct dataset *dataset)
{
    return dataset->rows[SPLIT_TRAIN] + dataset->rows[SPLIT_VALIDATION] + dataset->rows[SPLIT_TEST];
}

#endif
