/* Rows of the store: records in, records out. */
#include "base/text.h"
#include "coordinator/store.h"
#include "coordinator/store_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A duration that is no number would be NULL in a column that never is. */
static double duration(double seconds)
{
    return isfinite(seconds) ? seconds : 0;
}

static void put_sweep(struct cursor *cursor, const struct sweep_record *sweep)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)sweep->seed);
    cursor_put_text(cursor, sweep->id);
    cursor_put_static(cursor, sweep->name);
    cursor_put_static(cursor, sweep_state_name(sweep->state));
    cursor_put_static(cursor, sweep->spec_text);
    cursor_put_json(cursor, sweep->normalised);
    cursor_put_static(cursor, sweep->spec_sha256);
    cursor_put_text(cursor, seed);
    cursor_put_static(cursor, sweep->version);
    cursor_put_integer(cursor, sweep->created_ms);
    cursor_put_integer(cursor, sweep->ended_ms);
    cursor_put_json(cursor, sweep->final);
    cursor_put_json(cursor, sweep->baseline);
    cursor_put_text(cursor, sweep->precision);
}

static void put_trial(struct cursor *cursor, const struct trial_record *trial)
{
    cursor_put_integer(cursor, trial->number);
    cursor_put_static(cursor, trial_state_name(trial->state));
    cursor_put_static(cursor, trial_reason_name(trial->reason));
    cursor_put_json(cursor, trial->parameters);
    cursor_put_json(cursor, trial->derived);
    cursor_put_real(cursor, trial->has_objective ? trial->objective : (double)NAN);
    cursor_put_integer(cursor, trial->resource);
    cursor_put_integer(cursor, trial->bracket);
    cursor_put_static(cursor, trial->checkpoint);
    cursor_put_integer(cursor, trial->checkpoint_bytes);
    cursor_put_integer(cursor, trial->checkpoint_resource);
    cursor_put_integer(cursor, trial->retries);
    cursor_put_integer(cursor, trial->losses);
    cursor_put_integer(cursor, trial->is_final);
}

static void put_attempt(struct cursor *cursor, const struct attempt_record *attempt)
{
    cursor_put_integer(cursor, attempt->trial);
    cursor_put_integer(cursor, attempt->number);
    cursor_put_static(cursor, attempt->worker);
    cursor_put_static(cursor, attempt->session);
    cursor_put_static(cursor, attempt->device);
    cursor_put_integer(cursor, attempt->start);
    cursor_put_integer(cursor, attempt->until);
    cursor_put_integer(cursor, attempt->started_ms);
    cursor_put_integer(cursor, attempt->ended_ms);
    cursor_put_integer(cursor, attempt->last_sequence);
    cursor_put_static(cursor, outcome_name(attempt->outcome));
    cursor_put_static(cursor, attempt->error);
    cursor_put_real(cursor, duration(attempt->seconds));
    cursor_put_static(cursor, attempt->details);
}

static void put_report(struct cursor *cursor, const struct report_record *report)
{
    cursor_put_integer(cursor, report->trial);
    cursor_put_integer(cursor, report->resource);
    cursor_put_integer(cursor, report->attempt);
    cursor_put_integer(cursor, report->received_ms);
    cursor_put_real(cursor, duration(report->seconds));
    cursor_put_json(cursor, report->metrics);
}

static void put_rung_entry(struct cursor *cursor, const struct rung_entry_record *entry)
{
    cursor_put_integer(cursor, entry->trial);
    cursor_put_integer(cursor, entry->bracket);
    cursor_put_integer(cursor, entry->rung);
    cursor_put_integer(cursor, entry->order);
    cursor_put_real(cursor, entry->value);
    cursor_put_real(cursor, entry->tie);
    cursor_put_integer(cursor, entry->promoted);
}

static void put_worker(struct cursor *cursor, const struct worker_record *worker)
{
    cursor_put_static(cursor, worker->name);
    cursor_put_static(cursor, worker->session);
    cursor_put_static(cursor, worker->host);
    cursor_put_static(cursor, worker->version);
    cursor_put_json(cursor, worker->devices);
    cursor_put_integer(cursor, worker->first_ms);
    cursor_put_integer(cursor, worker->last_ms);
    cursor_put_integer(cursor, worker->connected);
}

static int put_record(struct store *store, const char *sweep_id, const struct record *record,
                      struct error *err)
{
    static const enum statement statements[] = {
        [RECORD_SWEEP] = STATEMENT_PUT_SWEEP,           [RECORD_TRIAL] = STATEMENT_PUT_TRIAL,
        [RECORD_ATTEMPT] = STATEMENT_PUT_ATTEMPT,       [RECORD_REPORT] = STATEMENT_PUT_REPORT,
        [RECORD_RUNG_ENTRY] = STATEMENT_PUT_RUNG_ENTRY, [RECORD_WORKER] = STATEMENT_PUT_WORKER,
    };
    struct cursor cursor;
    cursor_start(&cursor, store, statements[record->type]);
    if (record->type != RECORD_SWEEP) {
        cursor_put_static(&cursor, sweep_id);
    }
    switch (record->type) {
    case RECORD_SWEEP:
        put_sweep(&cursor, &record->sweep);
        break;
    case RECORD_TRIAL:
        put_trial(&cursor, &record->trial);
        break;
    case RECORD_ATTEMPT:
        put_attempt(&cursor, &record->attempt);
        break;
    case RECORD_REPORT:
        put_report(&cursor, &record->report);
        break;
    case RECORD_RUNG_ENTRY:
        put_rung_entry(&cursor, &record->rung_entry);
        break;
    case RECORD_WORKER:
        put_worker(&cursor, &record->worker);
        break;
    }
    int result = cursor_step(&cursor, err);
    cursor_end(&cursor);
    return result;
}

int store_commit(struct store *store, const char *sweep_id, const struct record *records, size_t count,
                 struct error *err)
{
    if (count == 0) {
        return 0;
    }
    if (!store->writing) {
        return error_set(err, ERROR_INTERNAL, "database %s was opened for reading", store->path);
    }
    if (store_begin(store, true, err) != 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (put_record(store, sweep_id, &records[i], err) != 0) {
            store_end(store, false, NULL);
            return -1;
        }
    }
    return store_end(store, true, err);
}

static bool seed_read(const char *text, uint64_t *seed)
{
    char *end = NULL;
    errno = 0;
    *seed = text != NULL && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return end != NULL && *end == '\0' && errno == 0;
}

void cursor_get_sweep(struct cursor *cursor, struct sweep_record *sweep)
{
    *sweep = (struct sweep_record){0};
    const char *id = cursor_get_static(cursor);
    strncat(sweep->id, id != NULL ? id : "", sizeof sweep->id - 1);
    sweep->name = cursor_get_text(cursor);
    if (!sweep_state_parse(cursor_get_static(cursor), &sweep->state)) {
        cursor_fail_damaged(cursor);
    }
    sweep->spec_text = cursor_get_text(cursor);
    sweep->normalised = cursor_get_json(cursor);
    const char *sha256 = cursor_get_static(cursor);
    strncat(sweep->spec_sha256, sha256 != NULL ? sha256 : "", sizeof sweep->spec_sha256 - 1);
    if (!seed_read(cursor_get_static(cursor), &sweep->seed)) {
        cursor_fail_damaged(cursor);
    }
    sweep->version = cursor_get_text(cursor);
    sweep->created_ms = cursor_get_integer(cursor);
    sweep->ended_ms = cursor_get_integer(cursor);
    sweep->final = cursor_get_json(cursor);
    sweep->baseline = cursor_get_json(cursor);
    const char *precision = cursor_get_static(cursor);
    strncat(sweep->precision, precision != NULL ? precision : "", sizeof sweep->precision - 1);
}

/* The rows below start with the sweep's id, which the caller knows. */
void cursor_get_trial(struct cursor *cursor, struct trial_record *trial)
{
    *trial = (struct trial_record){0};
    cursor_get_static(cursor);
    trial->number = cursor_get_integer(cursor);
    if (!trial_state_parse(cursor_get_static(cursor), &trial->state) ||
        !trial_reason_parse(cursor_get_static(cursor), &trial->reason)) {
        cursor_fail_damaged(cursor);
    }
    trial->parameters = cursor_get_json(cursor);
    trial->derived = cursor_get_json(cursor);
    trial->has_objective = !cursor_next_is_null(cursor);
    trial->objective = cursor_get_real(cursor);
    trial->resource = cursor_get_integer(cursor);
    trial->bracket = cursor_get_integer(cursor);
    const char *checkpoint = cursor_get_static(cursor);
    strncat(trial->checkpoint, checkpoint != NULL ? checkpoint : "", sizeof trial->checkpoint - 1);
    trial->checkpoint_bytes = cursor_get_integer(cursor);
    trial->checkpoint_resource = cursor_get_integer(cursor);
    trial->retries = cursor_get_integer(cursor);
    trial->losses = cursor_get_integer(cursor);
    trial->is_final = cursor_get_integer(cursor) != 0;
}

void cursor_get_attempt(struct cursor *cursor, struct attempt_record *attempt)
{
    *attempt = (struct attempt_record){0};
    cursor_get_static(cursor);
    attempt->trial = cursor_get_integer(cursor);
    attempt->number = cursor_get_integer(cursor);
    attempt->worker = cursor_get_text(cursor);
    attempt->session = cursor_get_text(cursor);
    attempt->device = cursor_get_text(cursor);
    attempt->start = cursor_get_integer(cursor);
    attempt->until = cursor_get_integer(cursor);
    attempt->started_ms = cursor_get_integer(cursor);
    attempt->ended_ms = cursor_get_integer(cursor);
    attempt->last_sequence = cursor_get_integer(cursor);
    const char *outcome = cursor_get_static(cursor);
    if (outcome == NULL || !outcome_parse(outcome, &attempt->outcome)) {
        cursor_fail_damaged(cursor);
    }
    attempt->error = cursor_get_text(cursor);
    attempt->seconds = cursor_get_real(cursor);
    attempt->details = cursor_get_text(cursor);
}

void cursor_get_report(struct cursor *cursor, struct report_record *report)
{
    *report = (struct report_record){0};
    cursor_get_static(cursor);
    report->trial = cursor_get_integer(cursor);
    report->resource = cursor_get_integer(cursor);
    report->attempt = cursor_get_integer(cursor);
    report->received_ms = cursor_get_integer(cursor);
    report->seconds = cursor_get_real(cursor);
    report->metrics = cursor_get_json(cursor);
}

static void get_trial(struct cursor *cursor, void *row)
{
    cursor_get_trial(cursor, row);
}

static void get_attempt(struct cursor *cursor, void *row)
{
    cursor_get_attempt(cursor, row);
}

static void get_report(struct cursor *cursor, void *row)
{
    cursor_get_report(cursor, row);
}

static void get_rung_entry(struct cursor *cursor, void *row)
{
    struct rung_entry_record *entry = row;
    *entry = (struct rung_entry_record){0};
    cursor_get_static(cursor);
    entry->trial = cursor_get_integer(cursor);
    entry->bracket = cursor_get_integer(cursor);
    entry->rung = cursor_get_integer(cursor);
    entry->order = cursor_get_integer(cursor);
    entry->value = cursor_get_real(cursor);
    entry->tie = cursor_get_real(cursor);
    entry->promoted = cursor_get_integer(cursor) != 0;
}

static void get_worker(struct cursor *cursor, void *row)
{
    struct worker_record *worker = row;
    *worker = (struct worker_record){0};
    cursor_get_static(cursor);
    worker->name = cursor_get_text(cursor);
    worker->session = cursor_get_text(cursor);
    worker->host = cursor_get_text(cursor);
    worker->version = cursor_get_text(cursor);
    worker->devices = cursor_get_json(cursor);
    worker->first_ms = cursor_get_integer(cursor);
    worker->last_ms = cursor_get_integer(cursor);
    worker->connected = cursor_get_integer(cursor) != 0;
}

/* Reads all rows into a new array and stores its address at `array`, also on failure, with the rows begun:
 * release them. */
static int load_rows(struct store *store, const char *sweep_id, enum statement statement,
                     void (*get)(struct cursor *cursor, void *row), size_t size, void *array, size_t *count,
                     struct error *err)
{
    struct cursor cursor;
    char *rows = NULL;
    size_t capacity = 0;
    int result;
    cursor_start(&cursor, store, statement);
    cursor_put_static(&cursor, sweep_id);
    while ((result = cursor_step(&cursor, err)) == 1) {
        if (*count == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            char *grown = reallocarray(rows, capacity, size);
            if (grown == NULL) {
                result = error_set(err, ERROR_MEMORY, "no memory for the rows of sweep %s", sweep_id);
                break;
            }
            rows = grown;
        }
        get(&cursor, rows + (*count)++ * size);
    }
    cursor_end(&cursor);
    memcpy(array, &rows, sizeof rows);
    return result;
}

int store_find_sweep(struct store *store, const char *name_or_id, struct sweep_record *sweep,
                     struct error *err)
{
    struct cursor cursor;
    *sweep = (struct sweep_record){0};
    cursor_start(&cursor, store, name_or_id != NULL ? STATEMENT_FIND_SWEEP : STATEMENT_NEWEST_SWEEP);
    if (name_or_id != NULL) {
        cursor_put_static(&cursor, name_or_id);
    }
    int result = cursor_step(&cursor, err);
    if (result == 1) {
        cursor_get_sweep(&cursor, sweep);
        if (cursor_check(&cursor, err) != 0) {
            struct record record = {.type = RECORD_SWEEP, .sweep = *sweep};
            record_release(&record);
            *sweep = (struct sweep_record){0};
            result = -1;
        }
    }
    cursor_end(&cursor);
    return result;
}

int store_no_sweep(struct store *store, const char *asked, struct error *err)
{
    return asked != NULL
               ? error_set(err, ERROR_USAGE, "database %s has no sweep %.100s; rung list shows them",
                           store->path, asked)
               : error_set(err, ERROR_USAGE, "database %s has no sweep yet", store->path);
}

static int load_all(struct store *store, const char *sweep_id, struct snapshot *snapshot, struct error *err)
{
    int found = store_find_sweep(store, sweep_id, &snapshot->sweep, err);
    if (found <= 0) {
        return found == 0 ? store_no_sweep(store, sweep_id, err) : -1;
    }
    const char *id = snapshot->sweep.id;
    if (load_rows(store, id, STATEMENT_GET_TRIALS, get_trial, sizeof *snapshot->trials, &snapshot->trials,
                  &snapshot->trial_count, err) != 0 ||
        load_rows(store, id, STATEMENT_GET_ATTEMPTS, get_attempt, sizeof *snapshot->attempts,
                  &snapshot->attempts, &snapshot->attempt_count, err) != 0 ||
        load_rows(store, id, STATEMENT_GET_REPORTS, get_report, sizeof *snapshot->reports, &snapshot->reports,
                  &snapshot->report_count, err) != 0 ||
        load_rows(store, id, STATEMENT_GET_RUNG_ENTRIES, get_rung_entry, sizeof *snapshot->rung_entries,
                  &snapshot->rung_entries, &snapshot->rung_entry_count, err) != 0 ||
        load_rows(store, id, STATEMENT_GET_WORKERS, get_worker, sizeof *snapshot->workers, &snapshot->workers,
                  &snapshot->worker_count, err) != 0) {
        return -1;
    }
    return 0;
}

int store_load(struct store *store, const char *sweep_id, struct snapshot *snapshot, struct error *err)
{
    *snapshot = (struct snapshot){0};
    if (store_begin(store, false, err) != 0) {
        return -1;
    }
    int result = load_all(store, sweep_id, snapshot, err);
    store_end(store, false, NULL);
    if (result != 0) {
        snapshot_release(snapshot);
        *snapshot = (struct snapshot){0};
    }
    return result;
}
