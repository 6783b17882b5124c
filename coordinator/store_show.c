/* What people ask of one trial, and the list of sweeps. */
#include "base/text.h"
#include "coordinator/store.h"
#include "coordinator/store_internal.h"

#include <math.h>
#include <string.h>

void sweep_goal_read(struct sweep_goal *goal, const json_t *normalised)
{
    const json_t *metric = json_object_get(normalised, "metric");
    goal->metric = json_get_string(metric, "name", "");
    goal->maximize = strcmp(json_get_string(metric, "goal", "minimize"), "maximize") == 0;
    goal->best = strcmp(json_get_string(metric, "objective", "last"), "best") == 0;
}

static json_t *no_memory(struct error *err)
{
    error_set(err, ERROR_MEMORY, "no memory for the answer");
    return NULL;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *time_or_null(int64_t utc_ms)
{
    return utc_ms != 0 ? json_integer(utc_ms) : json_null();
}

static json_t *value_or_null(json_t *value)
{
    return value != NULL ? json_incref(value) : json_null();
}

/* The object itself, or {} for none; takes no reference of its own. */
static json_t *object_of(json_t *value)
{
    return value != NULL ? json_incref(value) : json_object();
}

static json_t *details_or_null(const char *details)
{
    json_t *object = details != NULL ? json_parse(details, strlen(details), NULL) : NULL;
    return object != NULL ? object : json_null();
}

static json_t *attempt_json(const struct attempt_record *attempt)
{
    json_t *object = json_object();
    int failed = json_object_set_new(object, "attempt", json_integer(attempt->number));
    failed |= json_object_set_new(object, "worker", text_or_null(attempt->worker));
    failed |= json_object_set_new(object, "device", text_or_null(attempt->device));
    failed |= json_object_set_new(object, "start", json_integer(attempt->start));
    failed |= json_object_set_new(object, "until", json_integer(attempt->until));
    failed |= json_object_set_new(object, "started_ms", time_or_null(attempt->started_ms));
    failed |= json_object_set_new(object, "ended_ms", time_or_null(attempt->ended_ms));
    failed |= json_object_set_new(object, "outcome", json_string(outcome_name(attempt->outcome)));
    failed |= json_object_set_new(object, "error", text_or_null(attempt->error));
    failed |= json_object_set_new(object, "seconds", json_number(attempt->seconds));
    failed |= json_object_set_new(object, "details", details_or_null(attempt->details));
    if (failed != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *report_json(const struct report_record *report)
{
    json_t *object = json_object();
    int failed = json_object_set_new(object, "resource", json_integer(report->resource));
    failed |= json_object_set_new(object, "attempt", json_integer(report->attempt));
    failed |= json_object_set_new(object, "seconds", json_number(report->seconds));
    failed |= json_object_set_new(object, "metrics", object_of(report->metrics));
    if (failed != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *get_attempt(struct cursor *cursor)
{
    struct record record = {.type = RECORD_ATTEMPT};
    cursor_get_attempt(cursor, &record.attempt);
    json_t *object = attempt_json(&record.attempt);
    record_release(&record);
    return object;
}

static json_t *get_report(struct cursor *cursor)
{
    struct record record = {.type = RECORD_REPORT};
    cursor_get_report(cursor, &record.report);
    json_t *object = report_json(&record.report);
    record_release(&record);
    return object;
}

/* The rows of one trial that a statement selects, as an array. */
static json_t *trial_rows(struct store *store, const char *sweep_id, int64_t trial, enum statement statement,
                          json_t *(*get)(struct cursor *cursor), struct error *err)
{
    struct cursor cursor;
    int result;
    json_t *rows = json_array();
    cursor_start(&cursor, store, statement);
    cursor_put_static(&cursor, sweep_id);
    cursor_put_integer(&cursor, trial);
    while ((result = cursor_step(&cursor, err)) == 1) {
        if (json_array_append_new(rows, get(&cursor)) != 0) {
            no_memory(err);
            result = -1;
            break;
        }
    }
    cursor_end(&cursor);
    if (result != 0) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

/* The refit's record holds all it was told; its scores and the baseline are the sweep's. */
static json_t *derived_of(const struct trial_record *trial)
{
    return object_of(trial->is_final ? json_object_get(trial->derived, "derived") : trial->derived);
}

static json_t *trial_json(const struct trial_record *trial)
{
    json_t *object = json_object();
    int failed = json_object_set_new(object, "trial", json_integer(trial->number));
    failed |= json_object_set_new(object, "state", json_string(trial_state_name(trial->state)));
    failed |= json_object_set_new(object, "reason", json_string(trial_reason_name(trial->reason)));
    failed |= json_object_set_new(object, "parameters", object_of(trial->parameters));
    failed |= json_object_set_new(object, "derived", derived_of(trial));
    failed |= json_object_set_new(object, "objective",
                                  trial->has_objective ? json_number(trial->objective) : json_null());
    failed |= json_object_set_new(object, "resource", json_integer(trial->resource));
    failed |= json_object_set_new(object, "checkpoint", text_or_null(trial->checkpoint));
    if (failed != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* 1: *object is the trial without its rows; 0: there is none. */
static int get_trial(struct store *store, const char *sweep_id, int64_t trial, json_t **object,
                     struct error *err)
{
    struct cursor cursor;
    cursor_start(&cursor, store, STATEMENT_GET_TRIAL);
    cursor_put_static(&cursor, sweep_id);
    cursor_put_integer(&cursor, trial);
    int result = cursor_step(&cursor, err);
    if (result == 1) {
        struct record record = {.type = RECORD_TRIAL};
        cursor_get_trial(&cursor, &record.trial);
        if (cursor_check(&cursor, err) != 0) {
            result = -1;
        } else if ((*object = trial_json(&record.trial)) == NULL) {
            no_memory(err);
            result = -1;
        }
        record_release(&record);
    }
    cursor_end(&cursor);
    return result;
}

static int add_rows(json_t *object, const char *key, json_t *rows, struct error *err)
{
    if (rows != NULL && json_object_set_new(object, key, rows) != 0) {
        no_memory(err);
        return -1;
    }
    return rows != NULL ? 0 : -1;
}

json_t *store_trial(struct store *store, const char *sweep_id, int64_t trial, struct error *err)
{
    json_t *object = NULL;
    struct record sweep = {.type = RECORD_SWEEP};
    if (store_begin(store, false, err) != 0) {
        return NULL;
    }
    int result = store_find_sweep(store, sweep_id, &sweep.sweep, err);
    const char *id = sweep.sweep.id;
    if (result == 0) {
        result = store_no_sweep(store, sweep_id, err);
    } else if (result == 1) {
        result = get_trial(store, id, trial, &object, err);
        if (result == 0) {
            result =
                error_set(err, ERROR_USAGE, "sweep %s has no trial %lld", sweep.sweep.name, (long long)trial);
        }
    }
    if (result == 1) {
        result = add_rows(object, "curve", trial_rows(store, id, trial, STATEMENT_GET_CURVE, get_report, err),
                          err);
    }
    if (result == 0) {
        result = add_rows(object, "attempts",
                          trial_rows(store, id, trial, STATEMENT_GET_TRIAL_ATTEMPTS, get_attempt, err), err);
    }
    store_end(store, false, NULL);
    record_release(&sweep);
    if (result != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Names of the parameters that are searched: all but constants. */
static json_t *searched_parameters(const json_t *normalised)
{
    json_t *names = json_array();
    const char *name;
    json_t *parameter;
    json_object_foreach(json_object_get(normalised, "parameters"), name, parameter)
    {
        const json_t *values = json_object_get(parameter, "values");
        bool constant = strcmp(json_get_string(parameter, "distribution", ""), "constant") == 0 ||
                        (json_object_get(parameter, "value") != NULL && values == NULL) ||
                        json_array_size(values) == 1;
        if (!constant) {
            json_array_append_new(names, json_string(name));
        }
    }
    return names;
}

struct trial_counts {
    int64_t all, completed, stopped, failed;
};

static int count_trials(struct store *store, const char *sweep_id, struct trial_counts *counts,
                        struct error *err)
{
    struct cursor cursor;
    int result;
    cursor_start(&cursor, store, STATEMENT_COUNT_TRIALS);
    cursor_put_static(&cursor, sweep_id);
    while ((result = cursor_step(&cursor, err)) == 1) {
        enum trial_state state;
        bool known = trial_state_parse(cursor_get_static(&cursor), &state);
        int64_t count = cursor_get_integer(&cursor);
        counts->all += count;
        counts->completed += known && state == TRIAL_COMPLETED ? count : 0;
        counts->stopped += known && state == TRIAL_STOPPED ? count : 0;
        counts->failed += known && state == TRIAL_FAILED ? count : 0;
    }
    cursor_end(&cursor);
    return result;
}

static int best_trial(struct store *store, const char *sweep_id, bool maximize, json_t **trial,
                      json_t **objective, struct error *err)
{
    struct cursor cursor;
    cursor_start(&cursor, store, STATEMENT_BEST_TRIAL);
    cursor_put_static(&cursor, sweep_id);
    cursor_put_integer(&cursor, maximize ? -1 : 1);
    int result = cursor_step(&cursor, err);
    *trial = result == 1 ? json_integer(cursor_get_integer(&cursor)) : json_null();
    *objective = result == 1 ? json_number(cursor_get_real(&cursor)) : json_null();
    cursor_end(&cursor);
    return result < 0 ? -1 : 0;
}

static json_t *sweep_json(struct store *store, const struct sweep_record *sweep, struct error *err)
{
    struct sweep_goal goal;
    struct trial_counts counts = {0};
    json_t *trial, *objective;
    sweep_goal_read(&goal, sweep->normalised);
    if (count_trials(store, sweep->id, &counts, err) != 0 ||
        best_trial(store, sweep->id, goal.maximize, &trial, &objective, err) != 0) {
        return NULL;
    }
    json_t *object = json_object();
    int failed = json_object_set_new(object, "name", json_string(sweep->name));
    failed |= json_object_set_new(object, "id", json_string(sweep->id));
    failed |= json_object_set_new(object, "state", json_string(sweep_state_name(sweep->state)));
    failed |= json_object_set_new(object, "method",
                                  text_or_null(json_get_string(sweep->normalised, "method", NULL)));
    failed |= json_object_set_new(object, "metric", text_or_null(goal.metric));
    failed |= json_object_set_new(object, "goal", json_string(goal.maximize ? "maximize" : "minimize"));
    failed |= json_object_set_new(object, "parameters", searched_parameters(sweep->normalised));
    failed |= json_object_set_new(object, "trials", json_integer(counts.all));
    failed |= json_object_set_new(object, "completed", json_integer(counts.completed));
    failed |= json_object_set_new(object, "stopped", json_integer(counts.stopped));
    failed |= json_object_set_new(object, "failed", json_integer(counts.failed));
    failed |= json_object_set_new(object, "best", objective);
    failed |= json_object_set_new(object, "best_trial", trial);
    failed |= json_object_set_new(object, "created_ms", json_integer(sweep->created_ms));
    failed |= json_object_set_new(object, "ended_ms", time_or_null(sweep->ended_ms));
    failed |= json_object_set_new(object, "final", value_or_null(sweep->final));
    failed |= json_object_set_new(object, "baseline", value_or_null(sweep->baseline));
    failed |= json_object_set_new(object, "precision", text_or_null(sweep->precision));
    if (failed != 0) {
        json_decref(object);
        return no_memory(err);
    }
    return object;
}

static int list_rows(struct store *store, json_t *rows, struct error *err)
{
    struct cursor cursor;
    int result;
    cursor_start(&cursor, store, STATEMENT_GET_SWEEPS);
    while ((result = cursor_step(&cursor, err)) == 1) {
        struct record record = {.type = RECORD_SWEEP};
        cursor_get_sweep(&cursor, &record.sweep);
        json_t *row = cursor_check(&cursor, err) == 0 ? sweep_json(store, &record.sweep, err) : NULL;
        record_release(&record);
        if (row == NULL || json_array_append_new(rows, row) != 0) {
            result = -1;
            break;
        }
    }
    cursor_end(&cursor);
    return result;
}

json_t *store_list(struct store *store, struct error *err)
{
    if (store_begin(store, false, err) != 0) {
        return NULL;
    }
    json_t *rows = json_array();
    int result = rows != NULL ? list_rows(store, rows, err) : -1;
    store_end(store, false, NULL);
    if (result != 0) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

json_t *store_checkpoints(struct store *store, struct error *err)
{
    struct cursor cursor;
    json_t *names = json_object();
    int result = names ? 1 : error_set(err, ERROR_MEMORY, "no memory for the names of checkpoints");
    cursor_start(&cursor, store, STATEMENT_GET_CHECKPOINTS);
    while (result > 0 && (result = cursor_step(&cursor, err)) == 1) {
        const char *name = cursor_get_static(&cursor);
        if (json_object_set_new(names, name ? name : "", json_true()) != 0) {
            result = error_set(err, ERROR_MEMORY, "no memory for the names of checkpoints");
        }
    }
    cursor_end(&cursor);
    if (result < 0) {
        json_decref(names);
        return NULL;
    }
    return names;
}
