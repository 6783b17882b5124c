/* Loading a spec for a command, and what only the data can tell: does it load, does the metric fit its task,
 * can the points of the space be trained? */
#include "cli/load.h"

#include "base/text.h"
#include "worker/training/loss.h"
#include "worker/training/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_TRIED 32 /* of the space, before the first trial starts */

static void print_problems(const char *path, const char *problems, struct error *err)
{
    size_t count = 1;
    for (const char *c = problems; *c; c++) {
        count += *c == '\n';
    }
    if (count > 1) {
        fprintf(stderr, "%s\n", problems);
        error_set(err, ERROR_USAGE, "%zu errors in %s", count, strcmp(path, "-") == 0 ? "the spec" : path);
    }
}

/* Metrics that the trainer reports for this data; NULL-terminated. */
static void list_metrics(const struct dataset *dataset, const char *names[16])
{
    static const char *const classification[] = {"validation_accuracy", "validation_balanced_accuracy",
                                                 "validation_f1", "validation_auc", NULL};
    static const char *const regression[] = {"validation_rmse", "validation_mae", "validation_r2", NULL};
    const char *const *own = dataset->task == TASK_CLASSIFICATION ? classification : regression;
    size_t count = 0;
    names[count++] = "train_loss";
    names[count++] = "validation_loss";
    for (; *own; own++) {
        if (strcmp(*own, "validation_auc") != 0 || dataset->classes == 2) {
            names[count++] = *own;
        }
    }
    names[count] = NULL;
}

static int check_metric(const struct spec *spec, const struct dataset *dataset, struct error *err)
{
    const char *names[16];
    list_metrics(dataset, names);
    for (size_t i = 0; names[i]; i++) {
        if (!spec->metric || strcmp(spec->metric, names[i]) == 0) {
            return 0;
        }
    }
    struct text text;
    text_init(&text);
    for (size_t i = 0; names[i]; i++) {
        text_printf(&text, "%s%s", i == 0 ? "" : names[i + 1] ? ", " : " or ", names[i]);
    }
    char kind[60];
    snprintf(kind, sizeof kind,
             dataset->task == TASK_REGRESSION ? "regression" : "classification of %lld classes",
             (long long)dataset->classes);
    int status = error_set(err, ERROR_USAGE, "%s: metric.name: found \"%s\", accepted for this data (%s) %s",
                           spec->file, spec->metric, kind, text.data ? text.data : "");
    text_release(&text);
    return status;
}

static int add_note(struct spec *spec, const char *key, const char *message)
{
    json_t *note = json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", "warning", "line", 0, "column", 0, "key",
                             key, "message", message);
    return json_array_append_new(spec->notes, note);
}

/* Settings that exclude each other show only in whole points. That every one of the first fails is an error,
 * that some do is a warning: a trial of such a point ends as invalid. */
static int check_points(struct spec *spec, const struct dataset *dataset, struct error *err)
{
    struct error first = {0};
    int tried = 0, failed = 0;
    for (int64_t number = 1; number <= POINTS_TRIED; number++) {
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, number);
        struct training_settings settings;
        struct error point_err = {0};
        if (!point) {
            break;
        }
        tried++;
        enum loss_kind loss;
        if (training_settings_read(&settings, spec->train, point, &point_err) != 0 ||
            loss_resolve(settings.loss, dataset->classes, &loss, &point_err) != 0) {
            first = failed++ == 0 ? point_err : first;
        }
        json_decref(point);
    }
    if (tried > 0 && failed == tried) {
        *err = first;
        return error_prefix(err, "%s", spec->file);
    }
    if (failed > 0) {
        char message[1100];
        snprintf(message, sizeof message, "%d of the first %d points cannot be trained: %s", failed, tried,
                 first.message);
        if (add_note(spec, "parameters", message) != 0) {
            return error_set(err, ERROR_MEMORY, "no memory");
        }
    }
    return 0;
}

static int check_data(struct spec *spec, struct dataset *dataset, struct error *err)
{
    if (dataset_load(dataset, json_object_get(spec->train, "data"), NULL, spec->seed, err) != 0) {
        err->code = err->code == ERROR_MEMORY ? ERROR_MEMORY : ERROR_USAGE;
        return -1;
    }
    if (check_metric(spec, dataset, err) != 0 || check_points(spec, dataset, err) != 0) {
        dataset_release(dataset);
        return -1;
    }
    return 0;
}

int cli_load_spec_and_data(const char *path, const char *const *overrides, const char *name,
                           struct spec *spec, struct dataset *dataset, struct error *err)
{
    struct spec_options options = {.train_settings = train_settings,
                                   .metric_names = train_metrics,
                                   .overrides = overrides,
                                   .name = name};
    char *problems = NULL;
    struct error local = {0};
    err = err ? err : &local;
    if (spec_load(spec, path, &options, &problems, err) != 0) {
        if (problems) {
            print_problems(path, problems, err);
            free(problems);
        }
        return -1;
    }
    if (check_data(spec, dataset, err) != 0) {
        spec_release(spec);
        return -1;
    }
    return 0;
}

int cli_load_spec(const char *path, const char *const *overrides, const char *name, struct spec *spec,
                  struct error *err)
{
    struct dataset dataset;
    if (cli_load_spec_and_data(path, overrides, name, spec, &dataset, err) != 0) {
        return -1;
    }
    dataset_release(&dataset);
    return 0;
}

int cli_restore_spec(const json_t *normalised, const char *const *overrides, struct spec *spec,
                     struct error *err)
{
    struct spec_options options = {
        .train_settings = train_settings, .metric_names = train_metrics, .overrides = overrides};
    return spec_restore(spec, normalised, &options, err);
}
