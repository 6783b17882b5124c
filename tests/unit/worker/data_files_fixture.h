/* Small verbs for the tests of data in several files: each test writes what it needs into the working folder,
 * under names of its own, and gives the settings as JSON. */
#ifndef RUNG_TESTS_UNIT_WORKER_DATA_FILES_FIXTURE_H
#define RUNG_TESTS_UNIT_WORKER_DATA_FILES_FIXTURE_H

#include "tests/unit/worker/data_fixture.h"

#include <math.h>

/* NAME with the process's number before it, so that tests may run side by side; valid until the fourth next
 * call. */
static inline const char *file_named(const char *name)
{
    static char paths[4][80];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%ld-%s", (long)getpid(), name);
    return path;
}

static inline void write_file_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(file_named(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void write_file(const char *name, const char *text)
{
    write_file_bytes(name, text, strlen(text));
}

/* Settings in JSON with single quotes; the names of files that were written stand for their paths. */
static inline json_t *settings_of(const char *text)
{
    static const char *const keys[] = {"path", "labels", "test_path", "test_labels"};
    struct error err = {0};
    char *json = strdup(text);
    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *settings = json_parse(json, strlen(json), &err);
    if (!settings)
        fail_msg("%s: %s", json, err.message);
    free(json);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *name = json_get_string(settings, keys[i], NULL);
        if (name)
            json_object_set_new(settings, keys[i], json_string(file_named(name)));
    }
    return settings;
}

/* The caller releases. */
static inline struct dataset load_files(const char *settings)
{
    struct dataset dataset;
    struct error err = {0};
    json_t *data = settings_of(settings);
    if (dataset_load(&dataset, data, NULL, FIXTURE_SEED, &err) < 0)
        fail_msg("%s", err.message);
    json_decref(data);
    return dataset;
}

/* Expects a refusal whose message has each of the NULL-terminated words. */
static inline void check_refused(const char *settings, const char *const *words)
{
    struct dataset dataset;
    struct error err = {0};
    json_t *data = settings_of(settings);
    assert_int_equal(dataset_load(&dataset, data, NULL, FIXTURE_SEED, &err), -1);
    json_decref(data);
    assert_int_equal(err.code, ERROR_USAGE);
    for (; *words; words++)
        if (!strstr(err.message, *words))
            fail_msg("message lacks \"%s\":\n%s", *words, err.message);
}
#define files_refused(settings, ...) check_refused(settings, (const char *const[]){__VA_ARGS__, NULL})

/* Removes what the test wrote. */
static inline void remove_files(const char *const *names)
{
    for (; *names; names++)
        unlink(file_named(*names));
}
#define forget(...) remove_files((const char *const[]){__VA_ARGS__, NULL})

/* The feature of that name, or -1. */
static inline int64_t feature_named(const struct dataset *dataset, const char *name)
{
    for (int64_t f = 0; f < dataset->features; f++)
        if (!strcmp(feature_name(dataset, f), name))
            return f;
    return -1;
}

/* The value of a feature before it was scaled. */
static inline double value_at(const struct dataset *dataset, enum split split, int64_t row, const char *name)
{
    int64_t f = feature_named(dataset, name);
    if (f < 0)
        fail_msg("no feature %s", name);
    return original(dataset, split, row, f);
}

#endif
