/* Grid search: the product of all choices in the order of sorted names, the last one varying fastest. A point
 * is found from its number alone (mixed-radix digits), so nothing is listed and no history is read. */
#include "search/distribution.h"
#include "search/sampler.h"

#include <stdlib.h>

static json_t *grid_choice(const struct parameter *parameter, int64_t index)
{
    json_t *choices, *value;
    switch (parameter->distribution) {
    case DISTRIBUTION_CATEGORICAL:
        choices = parameter->choices ? json_incref(parameter->choices) : parameter_choices(parameter);
        value = json_incref(json_array_get(choices, (size_t)index));
        json_decref(choices);
        return value;
    case DISTRIBUTION_INT_UNIFORM:
        return json_integer((json_int_t)parameter->minimum + index);
    case DISTRIBUTION_LATTICE:
        return parameter->integer ? json_integer((json_int_t)lattice_value(parameter, index))
                                  : json_real(lattice_value(parameter, index));
    default:
        return json_incref(json_array_get(parameter->values, 0));
    }
}

/* Digits of `index`, the last parameter's the lowest; -1 when it is beyond the grid. */
static int grid_digits(const struct space *space, int64_t index, int64_t *digits)
{
    for (size_t i = space->count; i-- > 0;) {
        int64_t size = parameter_grid_size(&space->parameters[i]);
        if (size < 1)
            return -1;
        digits[i] = index % size;
        index /= size;
    }
    return index == 0 ? 0 : -1;
}

static json_t *grid_propose(const struct space *space, uint64_t seed, int64_t number)
{
    (void)seed;
    int64_t *digits = malloc((space->count + 1) * sizeof *digits);
    json_t *point = NULL;
    if (digits && number >= 1 && grid_digits(space, number - 1, digits) == 0)
        point = json_object();
    for (size_t i = 0; point && i < space->count; i++) {
        const struct parameter *parameter = &space->parameters[i];
        json_t *value = grid_choice(parameter, digits[i]);
        if (!value || json_object_set_new(point, parameter->name, value) != 0) {
            json_decref(point);
            point = NULL;
        }
    }
    free(digits);
    return point;
}

const struct sampler_methods grid_sampler = {
    .name = "grid",
    .size = space_grid_size,
    .propose = grid_propose,
};
