/* Spaces and how many points they have. */
#include "search/space.h"
#include "search/distribution.h"

#include <math.h>
#include <stdlib.h>

void space_release(struct space *space)
{
    for (size_t i = 0; i < space->count; i++) {
        free(space->parameters[i].name);
        json_decref(space->parameters[i].values);
        json_decref(space->parameters[i].choices);
    }
    free(space->parameters);
    *space = (struct space){0};
}

int space_prepare(struct space *space)
{
    for (size_t i = 0; i < space->count; i++) {
        struct parameter *parameter = &space->parameters[i];
        if (parameter->distribution != DISTRIBUTION_CATEGORICAL || parameter->choices)
            continue;
        parameter->choices = parameter_choices(parameter);
        if (!parameter->choices)
            return -1;
    }
    return 0;
}

const char *distribution_name(enum distribution distribution)
{
    static const char *const names[] = {
        [DISTRIBUTION_CONSTANT] = "constant",
        [DISTRIBUTION_CATEGORICAL] = "categorical",
        [DISTRIBUTION_INT_UNIFORM] = "int_uniform",
        [DISTRIBUTION_UNIFORM] = "uniform",
        [DISTRIBUTION_LOG_UNIFORM_VALUES] = "log_uniform_values",
        [DISTRIBUTION_NORMAL] = "normal",
        [DISTRIBUTION_LATTICE] = "lattice",
        [DISTRIBUTION_INT_LOG_UNIFORM] = "int_log_uniform",
    };
    return names[distribution];
}

/* The text two values share when they are one choice: of a point (typed) or of a grid (whole reals are
 * integers). */
static char *choice_key(const json_t *value, bool grid)
{
    double real = json_is_real(value) ? json_real_value(value) : 0.5;
    if (grid && real == nearbyint(real) && fabs(real) < 0x1p63) {
        json_t *whole = json_integer((json_int_t)real);
        char *key = whole ? json_canonical(whole) : NULL;
        json_decref(whole);
        return key;
    }
    return json_canonical(value);
}

/* An object {key: value}. Setting a key again keeps its place and takes the new value, which is exactly the
 * rule. */
static json_t *distinct_values(const json_t *values, bool grid)
{
    json_t *distinct = json_object();
    for (size_t i = 0; distinct && i < json_array_size(values); i++) {
        char *key = choice_key(json_array_get(values, i), grid);
        /* A canonical text is valid UTF-8, since the values are. */
        if (!key || json_object_set_nocheck(distinct, key, json_array_get(values, i)) != 0) {
            json_decref(distinct);
            distinct = NULL;
        }
        free(key);
    }
    return distinct;
}

json_t *parameter_choices(const struct parameter *parameter)
{
    json_t *distinct = distinct_values(parameter->values, true);
    json_t *choices = distinct ? json_array() : NULL;
    const char *key;
    json_t *value;
    json_object_foreach(distinct, key, value)
    {
        if (choices && json_array_append(choices, value) != 0) {
            json_decref(choices);
            choices = NULL;
        }
    }
    json_decref(distinct);
    return choices;
}

static int64_t categorical_size(const struct parameter *parameter, bool grid)
{
    if (grid && parameter->choices)
        return (int64_t)json_array_size(parameter->choices);
    json_t *distinct = distinct_values(parameter->values, grid);
    int64_t size = (int64_t)json_object_size(distinct);
    json_decref(distinct);
    return size;
}

int64_t parameter_grid_size(const struct parameter *parameter)
{
    switch (parameter->distribution) {
    case DISTRIBUTION_CONSTANT:
        return 1;
    case DISTRIBUTION_CATEGORICAL:
        return categorical_size(parameter, true);
    case DISTRIBUTION_INT_UNIFORM:
        return integer_count(parameter);
    case DISTRIBUTION_LATTICE:
        return lattice_size(parameter);
    case DISTRIBUTION_UNIFORM:
    case DISTRIBUTION_LOG_UNIFORM_VALUES:
    case DISTRIBUTION_NORMAL:
    case DISTRIBUTION_INT_LOG_UNIFORM:
        return -1;
    }
    return -1;
}

/* Number of different values that random search can draw. */
static int64_t parameter_point_count(const struct parameter *parameter)
{
    switch (parameter->distribution) {
    case DISTRIBUTION_CATEGORICAL:
        return categorical_size(parameter, false);
    case DISTRIBUTION_INT_LOG_UNIFORM:
        return integer_count(parameter);
    case DISTRIBUTION_NORMAL:
        return parameter->sigma == 0 ? 1 : -1;
    default:
        return parameter_grid_size(parameter);
    }
}

static int64_t space_product(const struct space *space, int64_t (*size_f)(const struct parameter *parameter))
{
    int64_t product = 1;
    bool infinite = false;
    for (size_t i = 0; i < space->count; i++) {
        int64_t size = size_f(&space->parameters[i]);
        if (size < 0)
            infinite = true;
        else if (__builtin_mul_overflow(product, size, &product))
            product = INT64_MAX;
    }
    return infinite ? -1 : product;
}

int64_t space_grid_size(const struct space *space)
{
    return space_product(space, parameter_grid_size);
}

int64_t space_point_count(const struct space *space)
{
    return space_product(space, parameter_point_count);
}

const char *space_grid_obstacle(const struct space *space)
{
    for (size_t i = 0; i < space->count; i++) {
        if (parameter_grid_size(&space->parameters[i]) < 0)
            return space->parameters[i].name;
    }
    return NULL;
}
