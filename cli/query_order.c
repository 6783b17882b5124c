/* Puts the keys of a live coordinator's answer back in the order that the store gives them: on the wire
 * objects are sorted by key, and people read rank first. A file and a coordinator so print the same text. */
#include "cli/query.h"

#include <string.h>

static const char *const board_keys[] = {
    "rank",    "sweep",   "trial",   "state",  "reason", "objective", "resource",      "parameters",
    "derived", "metrics", "seconds", "worker", "device", "attempts",  "within_one_se", NULL};
static const char *const list_keys[] = {"name",   "id",         "state",      "method",     "metric",
                                        "goal",   "parameters", "trials",     "completed",  "stopped",
                                        "failed", "best",       "best_trial", "created_ms", "ended_ms",
                                        "final",  "baseline",   "precision",  NULL};
static const char *const trial_keys[] = {"trial",   "state",     "reason",   "parameters",
                                         "derived", "objective", "resource", "checkpoint",
                                         "curve",   "attempts",  NULL};
static const char *const curve_keys[] = {"resource", "attempt", "seconds", "metrics", NULL};
static const char *const attempt_keys[] = {"attempt", "worker",     "device",   "start",
                                           "until",   "started_ms", "ended_ms", "outcome",
                                           "error",   "seconds",    "details",  NULL};

/* Moves the keys named to the front, in this order; a newer coordinator's other keys follow. */
static int order_object(json_t *object, const char *const *keys)
{
    json_t *old = json_copy(object);
    int failed = old == NULL || json_object_clear(object);
    for (; *keys != NULL; keys++) {
        json_t *value = json_object_get(old, *keys);
        failed |= value != NULL && json_object_set(object, *keys, value) != 0;
    }
    failed |= json_object_update_missing(object, old);
    json_decref(old);
    return failed;
}

static int order_rows(json_t *rows, const char *const *keys)
{
    size_t i;
    json_t *row;
    int failed = 0;
    json_array_foreach(rows, i, row)
    {
        failed |= order_object(row, keys);
    }
    return failed;
}

int query_order(const char *query, json_t *answer)
{
    if (strcmp(query, "leaderboard") == 0) {
        return order_rows(answer, board_keys);
    }
    if (strcmp(query, "list") == 0) {
        return order_rows(answer, list_keys);
    }
    return order_object(answer, trial_keys) | order_rows(json_object_get(answer, "curve"), curve_keys) |
           order_rows(json_object_get(answer, "attempts"), attempt_keys);
}
