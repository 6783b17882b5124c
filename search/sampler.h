/* Samplers: propose the point of a trial. One table of functions; random and grid are functions of
 * (seed, trial number) alone, so any number of workers, any order of keys and any restart give the same
 * points.
 *
 * Draws: Philox key = seed, counter = (trial, FNV-1a 64 of the parameter name, draw); see base/random.h. */
#ifndef RUNG_SEARCH_SAMPLER_H
#define RUNG_SEARCH_SAMPLER_H

#include "search/space.h"

struct sampler_methods {
    const char *name; /* the spec's `method` */
    /* Number of points after which the sampler is exhausted; -1: never. */
    int64_t (*size)(const struct space *space);
    /* The point of trial `number` (from 1) as a new JSON object; NULL when number > size or out of memory. */
    json_t *(*propose)(const struct space *space, uint64_t seed, int64_t number);
};

extern const struct sampler_methods random_sampler;
extern const struct sampler_methods grid_sampler;

/* One draw of one parameter (new reference); `draw` counts repeated draws of the same trial and parameter. */
json_t *parameter_sample(const struct parameter *parameter, uint64_t seed, int64_t trial, uint32_t draw);

#endif
