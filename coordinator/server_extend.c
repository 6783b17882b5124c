/* May a stored sweep have another number of trials than before? Where trials are independent it may always;
 * where they are compared all at once only by whole new brackets. */
#include "coordinator/server_state.h"

static int64_t trials_of(int64_t run_cap, int64_t size)
{
    if (run_cap < 0 || size < 0) {
        return run_cap < 0 ? size : run_cap;
    }
    return size < run_cap ? size : run_cap;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Trials of the last bracket that has begun, in a sweep of `total`, `first` of which come before it. */
static int64_t bracket_trials(const struct spec *spec, int64_t total, int64_t first)
{
    int64_t size = spec->stopping.bracket_size;
    return size > 0 ? least(size, total - first) : total - first;
}

/* A bracket that was decided, or is about to be because all its trials exist, takes no more. */
static int bracket_check(const struct spec *spec, int64_t before, int64_t total, int64_t trials,
                         struct error *err)
{
    int64_t size = spec->stopping.bracket_size;
    int64_t first = size > 0 ? (trials - 1) / size * size : 0;
    if (size > 0 && total != before && total % size != 0) {
        return error_set(err, ERROR_USAGE,
                         "run_cap can be raised by whole brackets only: a multiple of %lld (early_terminate."
                         "bracket_size), not %lld",
                         (long long)size, (long long)total);
    }
    int64_t had = bracket_trials(spec, before, first), has = bracket_trials(spec, total, first);
    if (trials - first < had || has <= had) {
        return 0;
    }
    if (size == 0) {
        return error_set(
            err, ERROR_USAGE,
            "run_cap cannot be raised: successive_halving without bracket_size compares all trials of "
            "the sweep at once, and they have begun; choose another --name");
    }
    return error_set(err, ERROR_USAGE,
                     "run_cap cannot be raised: the last bracket has %lld of %lld trials (early_terminate."
                     "bracket_size) and cannot take more now that it was decided; choose another --name",
                     (long long)had, (long long)size);
}

int server_extension_check(const struct server *server, const struct snapshot *snapshot, struct error *err)
{
    const struct spec *spec = server->settings.spec;
    const char *name = spec->name, *db = server->settings.db;
    int64_t size = spec->sampler->size(&spec->space), trials = 0;
    int64_t before = trials_of(json_get_integer(snapshot->sweep.normalised, "run_cap", -1), size);
    int64_t total = trials_of(spec->run_cap, size);
    for (size_t i = 0; i < snapshot->trial_count; i++) {
        trials += !snapshot->trials[i].is_final;
    }
    bool finished = snapshot->sweep.state == SWEEP_FINISHED;
    if (finished && size >= 0 && size <= trials) {
        return error_set(
            err, ERROR_USAGE,
            "sweep %s in %s has finished: all %lld points of its space were tried; choose another --name",
            name, db, (long long)size);
    }
    if (finished && total >= 0 && total <= trials) {
        return error_set(err, ERROR_USAGE,
                         "sweep %s in %s has finished, and nothing is left to resume; for more trials add "
                         "--set run_cap=N with N above %lld",
                         name, db, (long long)trials);
    }
    bool halving = spec->stopping.kind == STOPPING_SUCCESSIVE_HALVING;
    return halving && trials > 0 ? bracket_check(spec, before, total, trials, err) : 0;
}
