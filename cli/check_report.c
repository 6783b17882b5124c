/* The report of `rung check` as JSON: space, data, derived learning rates, notes, a sample. */
#include "cli/check_report.h"

#include "worker/training/settings.h"

#include <math.h>
#include <string.h>

#define BATCH_SIZES 16 /* rows of the table of learning rates */

static json_t *optional_integer(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *number_of(const struct parameter *parameter, double value)
{
    return parameter->integer ? json_integer((json_int_t)value) : json_number(value);
}

static json_t *describe_parameter(const struct parameter *parameter)
{
    json_t *object = json_pack("{s:s, s:s, s:o}", "name", parameter->name, "distribution",
                               distribution_name(parameter->distribution), "choices",
                               optional_integer(parameter_grid_size(parameter)));
    if (parameter->values) {
        json_object_set(object, "values", parameter->values);
    } else if (parameter->distribution == DISTRIBUTION_NORMAL) {
        json_object_set_new(object, "mu", json_number(parameter->mu));
        json_object_set_new(object, "sigma", json_number(parameter->sigma));
    } else {
        json_object_set_new(object, "min", number_of(parameter, parameter->minimum));
        json_object_set_new(object, "max", number_of(parameter, parameter->maximum));
    }
    if (parameter->distribution == DISTRIBUTION_LATTICE) {
        json_object_set_new(object, "step", number_of(parameter, parameter->step));
    }
    return object;
}

static json_t *describe_data(const struct dataset *dataset)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "task",
                     dataset->task == TASK_CLASSIFICATION ? "classification" : "regression", "train",
                     (json_int_t)dataset->rows[SPLIT_TRAIN], "validation",
                     (json_int_t)dataset->rows[SPLIT_VALIDATION], "test",
                     (json_int_t)dataset->rows[SPLIT_TEST], "features", (json_int_t)dataset->features,
                     "embedded", (json_int_t)dataset->categories, "classes", (json_int_t)dataset->classes);
}

/* ---- derived learning rates ---- */

static const struct parameter *find_parameter(const struct space *space, const char *name)
{
    for (size_t i = 0; i < space->count; i++) {
        if (strcmp(space->parameters[i].name, name) == 0) {
            return &space->parameters[i];
        }
    }
    return NULL;
}

/* The values of a setting worth a row: all choices, the two ends of a range, or the one under train. New
 * array. */
static json_t *values_of(const struct spec *spec, const char *name)
{
    const struct parameter *parameter = find_parameter(&spec->space, name);
    json_t *array = json_array();
    if (!parameter) {
        json_array_append(array, json_object_get(spec->train, name));
    } else if (parameter->values) {
        size_t index;
        json_t *value;
        json_array_foreach(parameter->values, index, value)
        {
            json_array_append(array, value);
        }
    } else if (parameter->distribution == DISTRIBUTION_NORMAL) {
        json_array_append_new(array, json_real(parameter->mu));
    } else {
        json_array_append_new(array, number_of(parameter, parameter->minimum));
        json_array_append_new(array, number_of(parameter, parameter->maximum));
    }
    return array;
}

static json_t *extreme(const json_t *values, double sign)
{
    size_t index;
    json_t *value, *best = json_array_get(values, 0);
    json_array_foreach(values, index, value)
    {
        best = sign * json_number_value(value) > sign * json_number_value(best) ? value : best;
    }
    return best;
}

/* What one choice of settings comes to; false when it cannot be trained. */
static bool derive(const struct spec *spec, int64_t rows, json_t *batch_size, json_t *optimizer, json_t *rate,
                   struct derived *derived)
{
    struct training_settings settings;
    json_t *point = json_pack("{s:O}", "batch_size", batch_size);
    if (optimizer) {
        json_object_set(point, "optimizer", optimizer);
    }
    if (rate) {
        json_object_set(point, "learning_rate", rate);
    }
    int status = training_settings_read(&settings, spec->train, point, NULL);
    json_decref(point);
    if (status == 0) {
        training_derive(&settings, rows, derived);
    }
    return status == 0;
}

static void add_batch_size(json_t *array, const struct spec *spec, int64_t rows, json_t *batch_size,
                           json_t *optimizer, const json_t *rates)
{
    struct derived low, high;
    if (!derive(spec, rows, batch_size, optimizer, extreme(rates, -1), &low) ||
        !derive(spec, rows, batch_size, optimizer, extreme(rates, 1), &high)) {
        return;
    }
    json_t *row = derived_to_json(&high);
    json_object_set_new(row, "optimizer", optimizer ? json_incref(optimizer) : json_null());
    json_object_set(row, "given_batch_size", batch_size);
    json_object_set_new(row, "peak_learning_rate",
                        json_pack("[f, f]", low.peak_learning_rate, high.peak_learning_rate));
    json_array_append_new(array, row);
}

static json_t *describe_derived(const struct spec *spec, int64_t rows)
{
    json_t *array = json_array();
    json_t *batch_sizes = values_of(spec, "batch_size"), *optimizers = values_of(spec, "optimizer");
    json_t *rates = values_of(spec, "learning_rate");
    size_t i, j;
    json_t *optimizer, *batch_size;
    json_array_foreach(optimizers, i, optimizer)
    {
        json_array_foreach(batch_sizes, j, batch_size)
        {
            if (json_array_size(array) < BATCH_SIZES) {
                add_batch_size(array, spec, rows, batch_size, optimizer, rates);
            }
        }
    }
    json_t *given = json_pack("[O, O]", extreme(rates, -1), extreme(rates, 1));
    json_decref(batch_sizes);
    json_decref(optimizers);
    json_decref(rates);
    return json_pack("{s:o, s:o}", "learning_rate", given, "batch_sizes", array);
}

/* ---- the rest ---- */

static json_t *describe_sample(const struct spec *spec, int64_t sample)
{
    json_t *array = json_array();
    for (int64_t trial = 1; trial <= sample; trial++) {
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, trial);
        if (!point) {
            break;
        }
        json_array_append_new(array,
                              json_pack("{s:I, s:o}", "trial", (json_int_t)trial, "parameters", point));
    }
    return array;
}

/* The spec's own notes, then what the data told. */
static json_t *describe_notes(const struct spec *spec, const struct dataset *dataset)
{
    json_t *notes = json_copy(spec->notes);
    size_t index;
    json_t *text;
    json_array_foreach(dataset->notes, index, text)
    {
        json_array_append_new(notes, json_pack("{s:s, s:i, s:i, s:s, s:O}", "level", "note", "line", 0,
                                               "column", 0, "key", "train.data", "message", text));
    }
    return notes;
}

json_t *check_report(const struct spec *spec, const struct dataset *dataset, int64_t sample)
{
    json_t *metric = json_object_get(spec->normalised, "metric");
    json_t *parameters = json_array();
    json_t *report = json_pack(
        "{s:s, s:s, s:O?, s:O, s:b, s:o, s:o, s:o, s:o, s:o}", "name", spec->name, "method",
        spec->sampler->name, "metric", metric, "seed", json_object_get(spec->normalised, "seed"),
        "seed_given", (int)spec->seed_given, "run_cap", optional_integer(spec->run_cap), "points",
        optional_integer(space_point_count(&spec->space)), "trials", optional_integer(spec->stopping.trials),
        "parameters", parameters, "data", describe_data(dataset));
    if (!report || check_plan(report, &spec->stopping, json_get_integer(spec->train, "replicates", 1)) != 0) {
        json_decref(report);
        return NULL;
    }
    for (size_t i = 0; i < spec->space.count; i++) {
        json_array_append_new(parameters, describe_parameter(&spec->space.parameters[i]));
    }
    json_object_set_new(report, "derived", describe_derived(spec, dataset->rows[SPLIT_TRAIN]));
    json_t *notes = describe_notes(spec, dataset);
    json_object_set_new(report, "notes", notes);
    json_object_set_new(report, "sample", describe_sample(spec, sample));
    if (check_warn(notes, spec, dataset, json_object_get(report, "derived")) != 0 ||
        check_ignored(notes, spec, dataset) != 0) {
        json_decref(report);
        return NULL;
    }
    return report;
}
