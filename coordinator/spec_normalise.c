/* The normalised object: a complete spec in the spec's own schema, so that reading it gives the same spec;
 * beside it `train_given` and `source`, which only tell where it came from. */
#include "coordinator/spec_reader.h"

#include <string.h>

/* Takes the value; no memory is remembered in *failed. */
static void put(json_t *object, const char *key, json_t *value, bool *failed)
{
    *failed = json_object_set_new(object, key, value) != 0 || *failed;
}

static json_t *bound(const struct parameter *parameter, double value)
{
    return parameter->integer ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *normalise_parameter(const struct parameter *parameter, bool *failed)
{
    json_t *object = json_object();
    const char *named = NULL;
    switch (parameter->distribution) {
    case DISTRIBUTION_CONSTANT:
        put(object, "value", json_incref(json_array_get(parameter->values, 0)), failed);
        return object;
    case DISTRIBUTION_CATEGORICAL:
        put(object, "values", json_incref(parameter->values), failed);
        return object;
    case DISTRIBUTION_NORMAL:
        put(object, "distribution", json_string("normal"), failed);
        put(object, "mu", json_real(parameter->mu), failed);
        put(object, "sigma", json_real(parameter->sigma), failed);
        return object;
    case DISTRIBUTION_INT_UNIFORM:
        named = "int_uniform";
        break;
    case DISTRIBUTION_UNIFORM:
        named = "uniform";
        break;
    case DISTRIBUTION_LOG_UNIFORM_VALUES:
        named = "log_uniform_values";
        break;
    case DISTRIBUTION_LATTICE:
        put(object, "step", bound(parameter, parameter->step), failed);
        break;
    case DISTRIBUTION_INT_LOG_UNIFORM:
        put(object, "log", json_true(), failed);
        break;
    }
    if (named) {
        put(object, "distribution", json_string(named), failed);
    }
    put(object, "min", bound(parameter, parameter->minimum), failed);
    put(object, "max", bound(parameter, parameter->maximum), failed);
    return object;
}

static json_t *normalise_metric(const struct spec *spec)
{
    return json_pack("{s:s, s:s, s:s}", "name", spec->metric, "goal",
                     spec->maximize ? "maximize" : "minimize", "objective",
                     spec->objective == OBJECTIVE_BEST ? "best" : "last");
}

static json_t *normalise_stopping(const struct stopping_settings *stopping, bool *failed)
{
    bool halving = stopping->kind == STOPPING_SUCCESSIVE_HALVING;
    json_t *object = json_pack("{s:s, s:I, s:I, s:f}", "type", halving ? "successive_halving" : "asha",
                               "min_iter", (json_int_t)stopping->min_iter, "max_iter",
                               (json_int_t)stopping->max_iter, "eta", stopping->eta);
    if (halving) {
        put(object, "bracket_size", json_integer(stopping->bracket_size), failed);
    } else {
        put(object, "mode", json_string(stopping->kind == STOPPING_ASHA_STOPPING ? "stopping" : "promotion"),
            failed);
    }
    return object;
}

static void set_optional(json_t *object, const struct spec *spec, bool *failed)
{
    if (spec->description) {
        put(object, "description", json_string(spec->description), failed);
    }
    if (spec->metric) {
        put(object, "metric", normalise_metric(spec), failed);
    }
    if (spec->run_cap >= 0) {
        put(object, "run_cap", json_integer(spec->run_cap), failed);
    }
    if (spec->stopping.kind != STOPPING_NONE) {
        put(object, "early_terminate", normalise_stopping(&spec->stopping, failed), failed);
    }
    if (json_object_size(spec->train) > 0) {
        put(object, "train", json_deep_copy(spec->train), failed);
        put(object, "train_given", json_deep_copy(spec->train_given), failed);
    }
}

/* JSON integers have 63 bits; a larger seed is kept as its decimal text. */
static json_t *normalise_seed(uint64_t seed)
{
    char text[24];
    if (seed <= (uint64_t)INT64_MAX) {
        return json_integer((json_int_t)seed);
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    return json_string(text);
}

json_t *spec_normalise(const struct spec *spec)
{
    json_t *parameters = json_object();
    json_t *object =
        json_pack("{s:s, s:s, s:o, s:o, s:{s:I}, s:I, s:{s:s, s:s}}", "name", spec->name, "method",
                  spec->sampler->name, "seed", normalise_seed(spec->seed), "parameters", parameters,
                  "resources", "devices_per_trial", (json_int_t)spec->devices_per_trial, "max_retries",
                  (json_int_t)spec->max_retries, "source", "file", spec->file, "folder", spec->folder);
    bool failed = !object;
    for (size_t i = 0; object && i < spec->space.count; i++) {
        const struct parameter *parameter = &spec->space.parameters[i];
        put(parameters, parameter->name, normalise_parameter(parameter, &failed), &failed);
    }
    set_optional(object, spec, &failed);
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}
