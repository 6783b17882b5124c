/* Inside search/: what the samplers share about single distributions. */
#ifndef RUNG_SEARCH_DISTRIBUTION_H
#define RUNG_SEARCH_DISTRIBUTION_H

#include "search/space.h"

/* The distinct values of a categorical parameter as W&B's grid sees them: a whole real equals the integer
 * (1.0 and 1; true and "1" do not). A value keeps the place of its first copy and the form of its last. New
 * reference (an array), NULL without memory. */
json_t *parameter_choices(const struct parameter *parameter);

/* Points low + k*step inside the bounds, k = 0 .. size-1. */
int64_t lattice_size(const struct parameter *parameter);
/* Point k: the double nearest to the decimal low + k*step (0.3, not 0.30000000000000004). */
double lattice_value(const struct parameter *parameter, int64_t k);
/* Integers in [minimum, maximum]. */
int64_t integer_count(const struct parameter *parameter);

#endif
