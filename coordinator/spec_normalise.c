/* The normalised object: a complete spec in the spec's own schema, so that reading it gives the same spec;
 * beside it `train_given` and `source`, which only tell where it came from. */
#include "coordinator/spec_reader.h"

#include <string.h>

static json_t *bound(const struct parameter *parameter, double value)
{
    return parameter->integer ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *normalise_parameter(const struct parameter *parameter)
{
    json_t *object = json_object();
    const char *named = NULL;
    switch (parameter->distribution) {
    case DISTRIBUTION_CONSTANT:
        json_object_set(object, "value", json_array_get(parameter->values, 0));
        return object;
    case DISTRIBUTION_CATEGORICAL:
        json_object_set(object, "values", parameter->values);
        return object;
    case DISTRIBUTION_NORMAL:
        json_object_set_new(object, "distribution", json_string("normal"));
        json_object_set_new(object, "mu", json_real(parameter->mu));
        json_object_set_new(object, "sigma", json_real(parameter->sigma));
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
        json_object_set_new(object, "step", bound(parameter, parameter->step));
        break;
    case DISTRIBUTION_INT_LOG_UNIFORM:
        json_object_set_new(object, "log", json_true());
        break;
    }
    if (named) {
        json_object_set_new(object, "distribution", json_string(named));
    }
    json_object_set_new(object, "min", bound(parameter, parameter->minimum));
    json_object_set_new(object, "max", bound(parameter, parameter->maximum));
    return object;
}

static json_t *normalise_metric(const struct spec *spec)
{
    return json_pack("{s:s, s:s, s:s}", "name", spec->metric, "goal",
                     spec->maximize ? "maximize" : "minimize", "objective",
                     spec->objective == OBJECTIVE_BEST ? "best" : "last");
}

static json_t *normalise_stopping(const struct stopping_settings *stopping)
{
    bool halving = stopping->kind == STOPPING_SUCCESSIVE_HALVING;
    json_t *object = json_pack("{s:s, s:I, s:I, s:f}", "type", halving ? "successive_halving" : "asha",
                               "min_iter", (json_int_t)stopping->min_iter, "max_iter",
                               (json_int_t)stopping->max_iter, "eta", stopping->eta);
    if (halving) {
        json_object_set_new(object, "bracket_size", json_integer(stopping->bracket_size));
    } else {
        json_object_set_new(object, "mode",
                            json_string(stopping->kind == STOPPING_ASHA_STOPPING ? "stopping" : "promotion"));
    }
    return object;
}

static void set_optional(json_t *object, const struct spec *spec)
{
    if (spec->description) {
        json_object_set_new(object, "description", json_string(spec->description));
    }
    if (spec->metric) {
        json_object_set_new(object, "metric", normalise_metric(spec));
    }
    if (spec->run_cap >= 0) {
        json_object_set_new(object, "run_cap", json_integer(spec->run_cap));
    }
    if (spec->stopping.kind != STOPPING_NONE) {
        json_object_set_new(object, "early_terminate", normalise_stopping(&spec->stopping));
    }
    if (json_object_size(spec->train) > 0) {
        json_object_set_new(object, "train", json_deep_copy(spec->train));
        json_object_set_new(object, "train_given", json_deep_copy(spec->train_given));
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
    if (!object) {
        return NULL;
    }
    for (size_t i = 0; i < spec->space.count; i++) {
        const struct parameter *parameter = &spec->space.parameters[i];
        if (json_object_set_new(parameters, parameter->name, normalise_parameter(parameter)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    set_optional(object, spec);
    return object;
}
