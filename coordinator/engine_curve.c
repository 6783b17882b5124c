/* Curves and objectives: per resource what the newest attempt reported, and the one number a trial is ranked
 * by. */
#include "coordinator/engine_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool metric_read(const json_t *metrics, const char *name, double *value)
{
    const json_t *found = name ? json_object_get(metrics, name) : NULL;
    return found && json_number_get(found, value);
}

static bool ranking_before(const struct trial *a, const struct trial *b)
{
    if (a->rank_key != b->rank_key)
        return a->rank_key < b->rank_key;
    return a->record.number < b->record.number;
}

static size_t *ranking_position(struct trial *trial)
{
    return &trial->rank_position;
}

const struct heap_order ranking_order = {ranking_before, ranking_position};

void trial_unrank(struct engine *engine, struct trial *trial)
{
    trial->record.has_objective = false;
    trial->record.objective = 0;
    heap_remove(&engine->ranking, trial);
}

void trial_rank(struct engine *engine, struct trial *trial)
{
    double objective = trial->record.objective;
    trial->rank_key = engine->settings.maximize ? -objective : objective;
    if (trial->rank_position)
        heap_update(&engine->ranking, trial);
    else if (heap_push(&engine->ranking, trial) < 0)
        engine_fail_memory(engine);
}

static bool value_is_better(const struct engine *engine, double value, double than)
{
    return engine->settings.maximize ? value > than : value < than;
}

static void best_take(const struct engine *engine, struct trial *trial, const struct point *point)
{
    if (!point->has_value || !isfinite(point->value))
        return;
    if (trial->has_best && !value_is_better(engine, point->value, trial->best_value))
        return;
    trial->has_best = true;
    trial->best_value = point->value;
    trial->best_resource = point->resource;
}

/* Sets the objective from the curve; true if it changed. */
static bool objective_update(const struct engine *engine, struct trial *trial)
{
    bool has = false;
    double objective = 0;
    if (engine->settings.objective_best) {
        has = trial->has_best;
        objective = has ? trial->best_value : 0;
    } else {
        size_t i = trial->curve_count;
        while (i > 0 && !trial->curve[i - 1].has_value)
            i--;
        has = i > 0 && isfinite(trial->curve[i - 1].value);
        objective = has ? trial->curve[i - 1].value : 0;
    }
    if (has == trial->record.has_objective && objective == trial->record.objective)
        return false;
    trial->record.has_objective = has;
    trial->record.objective = objective;
    return true;
}

/* Index of the first point at or beyond a resource; curve_count when there is none. */
static size_t curve_index(const struct trial *trial, int64_t resource)
{
    size_t low = 0, high = trial->curve_count;
    if (high > 0 && trial->curve[high - 1].resource < resource)
        return high; /* reports come in order but for a retry */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trial->curve[middle].resource < resource)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct point *trial_curve_at(const struct trial *trial, int64_t resource)
{
    size_t index = curve_index(trial, resource);
    return index < trial->curve_count ? &trial->curve[index] : NULL;
}

void trial_curve_free(struct trial *trial)
{
    free(trial->curve);
    trial->curve = NULL;
    trial->curve_count = trial->curve_capacity = 0;
}

/* Room for a new point at `index`. */
static int curve_open(struct trial *trial, size_t index)
{
    if (trial->curve_count == trial->curve_capacity) {
        size_t capacity = trial->curve_capacity ? trial->curve_capacity * 2 : 8;
        struct point *curve = realloc(trial->curve, capacity * sizeof(*curve));
        if (!curve)
            return -1;
        trial->curve = curve;
        trial->curve_capacity = capacity;
    }
    memmove(&trial->curve[index + 1], &trial->curve[index],
            (trial->curve_count - index) * sizeof(*trial->curve));
    trial->curve_count++;
    return 0;
}

void trial_curve_add(struct engine *engine, struct trial *trial, int64_t attempt, int64_t resource,
                     const json_t *metrics)
{
    struct point point = {.resource = resource, .attempt = attempt, .value = NAN, .tie = NAN};
    point.has_value = metric_read(metrics, engine->settings.metric, &point.value);
    if (!metric_read(metrics, engine->settings.tie_metric, &point.tie))
        point.tie = NAN;
    trial->has_metric |= point.has_value;

    size_t index = curve_index(trial, resource);
    bool replaces = index < trial->curve_count && trial->curve[index].resource == resource;
    if (replaces && trial->curve[index].attempt > attempt)
        return;
    if (!replaces && curve_open(trial, index) < 0) {
        engine_fail_memory(engine);
        return;
    }
    trial->curve[index] = point;
    if (replaces) {
        trial->has_best = false;
        for (size_t i = 0; i < trial->curve_count; i++)
            best_take(engine, trial, &trial->curve[i]);
    } else {
        best_take(engine, trial, &point);
    }
    if (resource > trial->record.resource) {
        engine->resource_done += (double)(resource - trial->record.resource);
        trial->record.resource = resource;
    }
    if (objective_update(engine, trial) && !trial->record.is_final) {
        if (trial->record.has_objective)
            trial_rank(engine, trial);
        else
            trial_unrank(engine, trial);
    }
}
