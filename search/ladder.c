/* The ladder of rungs. */
#include "search/stopping.h"

#include <math.h>

/* An eta so near to 1 that this many factors do not lead from min_iter to max_iter would make no useful
 * ladder. */
#define FACTOR_LIMIT 1000000

static int check_settings(const struct stopping_settings *settings, struct error *err)
{
    if (settings->min_iter < 1 && settings->kind != STOPPING_NONE)
        return error_set(err, ERROR_USAGE, "min_iter is %lld, must be 1 or more",
                         (long long)settings->min_iter);
    if (settings->max_iter < 1)
        return error_set(err, ERROR_USAGE, "max_iter is %lld, must be 1 or more",
                         (long long)settings->max_iter);
    if (settings->kind == STOPPING_NONE)
        return 0;
    if (settings->max_iter < settings->min_iter)
        return error_set(err, ERROR_USAGE, "max_iter is %lld, must not be below min_iter (%lld)",
                         (long long)settings->max_iter, (long long)settings->min_iter);
    if (!(settings->eta > 1) || isinf(settings->eta))
        return error_set(err, ERROR_USAGE, "eta is %g, must be a number above 1", settings->eta);
    return 0;
}

int stopping_levels(const struct stopping_settings *settings, int64_t levels[STOPPING_LEVELS],
                    struct error *err)
{
    if (check_settings(settings, err) != 0)
        return -1;
    int count = 0, factors = 0;
    if (settings->kind != STOPPING_NONE) {
        /* Resources are whole: a level between two is rounded down, and equal levels are one rung. */
        for (double level = (double)settings->min_iter; level < (double)settings->max_iter;
             level *= settings->eta) {
            int64_t whole = (int64_t)level;
            if (++factors > FACTOR_LIMIT || count == STOPPING_LEVELS - 1)
                return error_set(err, ERROR_USAGE, "eta %g makes more than %d rungs between %lld and %lld",
                                 settings->eta, STOPPING_LEVELS, (long long)settings->min_iter,
                                 (long long)settings->max_iter);
            if (count == 0 || whole > levels[count - 1])
                levels[count++] = whole;
        }
    }
    levels[count++] = settings->max_iter;
    return count;
}
