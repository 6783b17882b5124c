/* The store: rows by key, applied a whole turn at a time, and blobs. Every row is compared with the one it
 * replaces: this is where lost and doubled things show. */
#include "simulation.h"

#include "coordinator/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

static uint64_t row_key(enum record_type type, int64_t trial, int64_t a, int64_t b)
{
    return (uint64_t)type << 60 | (uint64_t)trial << 40 | (uint64_t)a << 20 | (uint64_t)b;
}

static uint64_t record_key(const struct record *record)
{
    switch (record->type) {
    case RECORD_SWEEP:
        return row_key(RECORD_SWEEP, 0, 0, 0);
    case RECORD_TRIAL:
        return row_key(RECORD_TRIAL, record->trial.number, 0, 0);
    case RECORD_ATTEMPT:
        return row_key(RECORD_ATTEMPT, record->attempt.trial, record->attempt.number, 0);
    case RECORD_REPORT:
        return row_key(RECORD_REPORT, record->report.trial, record->report.resource, record->report.attempt);
    case RECORD_RUNG_ENTRY:
        return row_key(RECORD_RUNG_ENTRY, record->rung_entry.trial, record->rung_entry.rung, 0);
    case RECORD_WORKER:
        return row_key(RECORD_WORKER, 0, strtoll(record->worker.name + strlen("worker-"), NULL, 10), 0);
    }
    return 0;
}

const struct record *store_row(const struct simulation *simulation, enum record_type type, int64_t trial,
                               int64_t a, int64_t b)
{
    return engine_table_get(&simulation->store.rows, row_key(type, trial, a, b));
}

/* ---- what may change ---- */

/* Records show a trial after an event, in which it may have made two or three moves. */
static bool moves_lead(enum trial_state from, enum trial_state to, enum trial_reason reason, int steps)
{
    if (move_is_allowed(from, to, reason))
        return true;
    static const enum trial_state between[] = {TRIAL_WAITING, TRIAL_RUNNING, TRIAL_PAUSED};
    for (size_t i = 0; steps > 1 && i < sizeof(between) / sizeof(between[0]); i++)
        if (move_is_allowed(from, between[i], REASON_NONE) && moves_lead(between[i], to, reason, steps - 1))
            return true;
    return false;
}

static void check_trial(struct simulation *simulation, const struct trial_record *old,
                        const struct trial_record *new)
{
    long long number = (long long)new->number;
    bool moved = old->state != new->state || old->reason != new->reason;
    if (!json_equal(old->parameters, new->parameters))
        simulation_violate(simulation, "the parameters of trial %lld changed", number);
    if (trial_state_is_end(old->state) && moved)
        simulation_violate(simulation, "trial %lld ended twice: %s/%s, %s/%s", number,
                           trial_state_name(old->state), trial_reason_name(old->reason),
                           trial_state_name(new->state), trial_reason_name(new->reason));
    else if (moved && !moves_lead(old->state, new->state, new->reason, 3))
        simulation_violate(simulation, "trial %lld moved from %s to %s/%s", number,
                           trial_state_name(old->state), trial_state_name(new->state),
                           trial_reason_name(new->reason));
    if (!trial_state_is_end(new->state) && *old->checkpoint && !blob_is_lost(simulation, old->checkpoint) &&
        (!*new->checkpoint || new->checkpoint_resource < old->checkpoint_resource))
        simulation_violate(simulation, "trial %lld lost its checkpoint at %lld", number,
                           (long long)old->checkpoint_resource);
    if (new->resource < old->resource)
        simulation_violate(simulation, "trial %lld fell back from resource %lld to %lld", number,
                           (long long)old->resource, (long long)new->resource);
}

static void check_attempt(struct simulation *simulation, const struct attempt_record *old,
                          const struct attempt_record *new)
{
    bool changed = strcmp(old->worker, new->worker) != 0 || strcmp(old->session, new->session) != 0 ||
                   old->start != new->start || old->started_ms != new->started_ms;
    if (changed || new->last_sequence < old->last_sequence || new->until < old->until)
        simulation_violate(simulation, "attempt %lld of trial %lld was rewritten", (long long)new->number,
                           (long long)new->trial);
    if (old->outcome != OUTCOME_NONE && new->outcome != old->outcome)
        simulation_violate(simulation, "attempt %lld of trial %lld ended twice: %s, %s",
                           (long long)new->number, (long long)new->trial, outcome_name(old->outcome),
                           outcome_name(new->outcome));
}

/* The coordinator may give an attempt up or hand it to somebody else; every other end is the worker's to
 * tell. */
static void check_outcome(struct simulation *simulation, const struct attempt_record *attempt)
{
    uintptr_t said =
        (uintptr_t)engine_table_get(&simulation->said, said_key(attempt->trial, attempt->number, 0));
    bool ours = attempt->outcome == OUTCOME_NONE || attempt->outcome == OUTCOME_LOST ||
                attempt->outcome == OUTCOME_INTERRUPTED;
    if (!ours && said != (uintptr_t)attempt->outcome + 1)
        simulation_violate(simulation, "attempt %lld of trial %lld is %s, which its worker did not say",
                           (long long)attempt->number, (long long)attempt->trial,
                           outcome_name(attempt->outcome));
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_entry(struct simulation *simulation, const struct rung_entry_record *old,
                        const struct rung_entry_record *new)
{
    if (old->bracket != new->bracket || old->order != new->order || !same_number(old->value, new->value) ||
        !same_number(old->tie, new->tie) || (old->promoted && !new->promoted))
        simulation_violate(simulation, "the entry of trial %lld in rung %lld changed", (long long)new->trial,
                           (long long)new->rung);
}

static void check_change(struct simulation *simulation, const struct record *old, const struct record *new)
{
    switch (new->type) {
    case RECORD_TRIAL:
        check_trial(simulation, &old->trial, &new->trial);
        break;
    case RECORD_ATTEMPT:
        check_attempt(simulation, &old->attempt, &new->attempt);
        check_outcome(simulation, &new->attempt);
        break;
    case RECORD_REPORT:
        simulation_violate(simulation, "resource %lld of attempt %lld of trial %lld was reported twice",
                           (long long)new->report.resource, (long long)new->report.attempt,
                           (long long)new->report.trial);
        break;
    case RECORD_RUNG_ENTRY:
        check_entry(simulation, &old->rung_entry, &new->rung_entry);
        break;
    case RECORD_SWEEP:
        if (old->sweep.ended_ms)
            simulation_violate(simulation, "the sweep changed after its end");
        break;
    case RECORD_WORKER:
        break;
    }
}

static void check_new(struct simulation *simulation, const struct record *new)
{
    struct world_store *store = &simulation->store;
    if (new->type == RECORD_TRIAL &&new->trial.number > 0) {
        if (new->trial.number != store->trials + 1)
            simulation_violate(simulation, "trial %lld came after trial %lld", (long long)new->trial.number,
                               (long long)store->trials);
        store->trials = new->trial.number;
    } else if (new->type == RECORD_REPORT) {
        if (!engine_table_get(&simulation->said,
                              said_key(new->report.trial, new->report.attempt, new->report.resource)))
            simulation_violate(simulation, "nobody reported resource %lld of attempt %lld of trial %lld",
                               (long long)new->report.resource, (long long)new->report.attempt,
                               (long long)new->report.trial);
        uint64_t key = row_key(RECORD_REPORT, new->report.trial, new->report.resource, 0);
        if (new->report.trial > 0 && !engine_table_get(&store->seen_points, key)) {
            engine_table_put(&store->seen_points, key, store);
            store->points++;
        }
    } else if (new->type == RECORD_ATTEMPT &&new->attempt.number > 1) {
        const struct record *before =
            store_row(simulation, RECORD_ATTEMPT, new->attempt.trial, new->attempt.number - 1, 0);
        if (!before)
            simulation_violate(simulation, "trial %lld has attempt %lld without the one before",
                               (long long)new->attempt.trial, (long long)new->attempt.number);
    }
}

/* ---- commits ---- */

static void row_put(struct simulation *simulation, const struct record *record)
{
    struct world_store *store = &simulation->store;
    struct record *row = engine_table_get(&store->rows, record_key(record));
    struct record *copy;
    if (row) {
        check_change(simulation, row, record);
        record_release(row);
    } else {
        check_new(simulation, record);
        row = malloc(sizeof(*row));
        if (store->count == store->capacity) {
            store->capacity = store->capacity ? store->capacity * 2 : 256;
            store->all = realloc(store->all, store->capacity * sizeof(*store->all));
        }
        store->all[store->count++] = row;
        engine_table_put(&store->rows, record_key(record), row);
    }
    copy = row;
    if (record_copy(copy, record) < 0)
        abort();
}

/* Things that must hold between rows once a turn is in. */
static void check_commit(struct simulation *simulation, const struct record *record)
{
    if (record->type == RECORD_TRIAL) {
        const struct record *row = store_row(simulation, RECORD_TRIAL, record->trial.number, 0, 0);
        if (*row->trial.checkpoint && !blob_exists(simulation, row->trial.checkpoint) &&
            !blob_is_lost(simulation, row->trial.checkpoint))
            simulation_violate(simulation, "trial %lld names a checkpoint that is not stored",
                               (long long)record->trial.number);
    } else if (record->type == RECORD_ATTEMPT && record->attempt.number > 1) {
        const struct record *before =
            store_row(simulation, RECORD_ATTEMPT, record->attempt.trial, record->attempt.number - 1, 0);
        if (before && before->attempt.outcome == OUTCOME_NONE)
            simulation_violate(simulation, "two attempts of trial %lld run",
                               (long long)record->attempt.trial);
    }
}

void store_apply(struct simulation *simulation, const struct effects *effects)
{
    for (size_t i = 0; i < effects->record_count; i++)
        row_put(simulation, &effects->records[i]);
    for (size_t i = 0; i < effects->record_count; i++)
        check_commit(simulation, &effects->records[i]);
}

/* ---- recovery ---- */

static int compare_rows(const void *left, const void *right)
{
    const struct record *a = *(struct record *const *)left, *b = *(struct record *const *)right;
    uint64_t x = record_key(a), y = record_key(b);
    if (a->type == RECORD_RUNG_ENTRY && b->type == RECORD_RUNG_ENTRY) {
        x = (uint64_t)a->rung_entry.order;
        y = (uint64_t)b->rung_entry.order;
    }
    return x < y ? -1 : x > y;
}

#define PART(array, count_field, record_type_name, member)                                                   \
    case record_type_name:                                                                                   \
        snapshot->array[snapshot->count_field++] = row->member;                                              \
        break

void store_snapshot(const struct simulation *simulation, struct snapshot *snapshot)
{
    const struct world_store *store = &simulation->store;
    struct record **sorted = malloc(store->count * sizeof(struct record *));
    memcpy(sorted, store->all, store->count * sizeof(struct record *));
    qsort(sorted, store->count, sizeof(struct record *), compare_rows);
    memset(snapshot, 0, sizeof(*snapshot));
    snapshot->trials = malloc(store->count * sizeof(*snapshot->trials));
    snapshot->attempts = malloc(store->count * sizeof(*snapshot->attempts));
    snapshot->reports = malloc(store->count * sizeof(*snapshot->reports));
    snapshot->rung_entries = malloc(store->count * sizeof(*snapshot->rung_entries));
    snapshot->workers = malloc(store->count * sizeof(*snapshot->workers));
    for (size_t i = 0; i < store->count; i++) {
        const struct record *row = sorted[i];
        switch (row->type) {
            PART(trials, trial_count, RECORD_TRIAL, trial);
            PART(attempts, attempt_count, RECORD_ATTEMPT, attempt);
            PART(reports, report_count, RECORD_REPORT, report);
            PART(rung_entries, rung_entry_count, RECORD_RUNG_ENTRY, rung_entry);
            PART(workers, worker_count, RECORD_WORKER, worker);
        case RECORD_SWEEP:
            snapshot->sweep = row->sweep;
            break;
        }
    }
    free(sorted);
}

void store_snapshot_release(struct snapshot *snapshot)
{
    free(snapshot->trials);
    free(snapshot->attempts);
    free(snapshot->reports);
    free(snapshot->rung_entries);
    free(snapshot->workers);
}

void store_release(struct simulation *simulation)
{
    struct world_store *store = &simulation->store;
    for (size_t i = 0; i < store->count; i++) {
        record_release(store->all[i]);
        free(store->all[i]);
    }
    free(store->all);
    engine_table_release(&store->rows);
    engine_table_release(&store->blobs);
    engine_table_release(&store->lost);
    engine_table_release(&store->seen_points);
    engine_table_release(&simulation->said);
}

/* ---- blobs ---- */

static uint64_t blob_key(const char *sha256)
{
    char digits[17] = {0};
    memcpy(digits, sha256, 16);
    return strtoull(digits, NULL, 16);
}

/* Whoever sends a blob names it soon: it is no leftover any more, should it have been one. */
void blob_put(struct simulation *simulation, const char *sha256)
{
    struct world_server *server = &simulation->server;
    for (size_t i = 0; i < server->leftover_count; i++)
        if (server->leftovers[i] == blob_key(sha256))
            server->leftovers[i] = 0;
    engine_table_put(&simulation->store.blobs, blob_key(sha256), simulation);
    engine_table_remove(&simulation->store.lost, blob_key(sha256));
}

bool blob_is_lost(const struct simulation *simulation, const char *sha256)
{
    return engine_table_get(&simulation->store.lost, blob_key(sha256));
}

void blob_lose_any(struct simulation *simulation)
{
    struct world_store *store = &simulation->store;
    if (!simulation->armed[FAULT_BLOB_LOST])
        return;
    for (int64_t number = 1; number <= store->trials; number++) {
        const struct record *row = store_row(simulation, RECORD_TRIAL, number, 0, 0);
        const char *sha256 = row->trial.checkpoint;
        if (!*sha256 || trial_state_is_end(row->trial.state) || !blob_exists(simulation, sha256) ||
            !simulation_fault(simulation, FAULT_BLOB_LOST, 2))
            continue;
        blob_delete(simulation, sha256);
        engine_table_put(&store->lost, blob_key(sha256), simulation);
        return;
    }
}

bool blob_exists(const struct simulation *simulation, const char *sha256)
{
    return engine_table_get(&simulation->store.blobs, blob_key(sha256));
}

void blob_delete(struct simulation *simulation, const char *sha256)
{
    engine_table_remove(&simulation->store.blobs, blob_key(sha256));
}

uint64_t *blobs_unnamed(const struct simulation *simulation, size_t *count)
{
    const struct world_store *store = &simulation->store;
    uint64_t *keys = calloc(store->blobs.count + 1, sizeof(*keys));
    *count = 0;
    for (size_t i = 0; i < store->blobs.capacity; i++) {
        uint64_t key = store->blobs.entries[i].value ? store->blobs.entries[i].key : 0;
        bool named = key == 0;
        for (size_t row = 0; row < store->count && !named; row++)
            named = store->all[row]->type == RECORD_TRIAL && *store->all[row]->trial.checkpoint &&
                    blob_key(store->all[row]->trial.checkpoint) == key;
        if (!named)
            keys[(*count)++] = key;
    }
    return keys;
}
