/* The space of a sweep: its parameters and their distributions. Pure data; built by coordinator/spec.
 *
 * A point is a JSON object {parameter name: value}; values are typed JSON (true, 1, 1.0 and "1" differ).
 * Its canonical text (json_canonical) is its identity. */
#ifndef RUNG_SEARCH_SPACE_H
#define RUNG_SEARCH_SPACE_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum distribution {
    DISTRIBUTION_CONSTANT,           /* value */
    DISTRIBUTION_CATEGORICAL,        /* values[ceil(u*n)-1], as W&B */
    DISTRIBUTION_INT_UNIFORM,        /* integer in [minimum, maximum], both included */
    DISTRIBUTION_UNIFORM,            /* minimum + u*(maximum-minimum) */
    DISTRIBUTION_LOG_UNIFORM_VALUES, /* exp(U(ln minimum, ln maximum)), kept inside the bounds */
    DISTRIBUTION_NORMAL,             /* N(mu, sigma); sigma 0 is a constant */
    DISTRIBUTION_LATTICE,         /* native {min,max,step}: low + k*step inside the bounds, uniform over k */
    DISTRIBUTION_INT_LOG_UNIFORM, /* native {min,max,log} with integers: rounded inside the bounds */
};

struct parameter {
    char *name;
    enum distribution distribution;
    json_t *values; /* JSON array: the choices (CATEGORICAL) or the one value (CONSTANT); NULL otherwise */
    double minimum, maximum, step, mu, sigma;
    bool integer;    /* values are JSON integers (int_uniform, integer lattice) */
    json_t *choices; /* CATEGORICAL: what a grid takes of `values`; made by space_prepare, NULL before */
};

struct space {
    struct parameter *parameters; /* sorted by name (bytes); names are unique */
    size_t count;
};

void space_release(struct space *space);
/* Optional, once the space is built: remembers each parameter's grid choices, which otherwise are gathered
 * anew for every point (slow only for long lists of values). -1 without memory. */
int space_prepare(struct space *space);
const char *distribution_name(enum distribution distribution);

/* Number of choices of one parameter on a grid, or -1 if it is continuous. Values that are equal as W&B sees
 * them (1 and 1.0) count once: the last written is used. */
int64_t parameter_grid_size(const struct parameter *parameter);
/* Number of points of the whole grid (1 for all constants); -1: not finite; saturates at INT64_MAX. */
int64_t space_grid_size(const struct space *space);
/* Names the first parameter that a grid cannot take, or NULL. Borrowed from `space`. */
const char *space_grid_obstacle(const struct space *space);

/* Number of different points random search can draw (-1 infinite); differs from the grid in log integers. */
int64_t space_point_count(const struct space *space);

#endif
