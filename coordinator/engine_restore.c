/* Recovery: the stored rows into a fresh engine. What the stopping rule knew is replayed from the rung
 * entries, in their order; attempts that were running keep their lease in full and wait for their workers'
 * own accounts. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <stdlib.h>
#include <string.h>

static void restore_workers(struct engine *engine, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->worker_count && !*engine->failure.message; i++) {
        struct record copy;
        struct record row = {.type = RECORD_WORKER, .worker = snapshot->workers[i]};
        struct worker *worker = worker_add(engine, snapshot->workers[i].name);
        if (!worker || record_copy(&copy, &row) < 0) {
            engine_fail_memory(engine);
            return;
        }
        record_release(&(struct record){.type = RECORD_WORKER, .worker = worker->record});
        worker->record = copy.worker;
        worker->record.connected = false; /* until it says hello to this process */
    }
}

static void restore_trials(struct engine *engine, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->trial_count && !*engine->failure.message; i++) {
        struct record copy;
        const struct trial_record *row = &snapshot->trials[i];
        if (row->number != 0 && row->number != engine->proposed + 1) {
            engine_fail(engine, "the store has no trial %lld", (long long)engine->proposed + 1);
            return;
        }
        struct trial *trial = trial_add(engine, row->number);
        if (!trial || record_copy(&copy, &(struct record){.type = RECORD_TRIAL, .trial = *row}) < 0) {
            engine_fail_memory(engine);
            return;
        }
        if (!copy.trial.is_final && copy.trial.bracket != trial->record.bracket)
            engine_fail(engine, "the store has trial %lld in another bracket", (long long)row->number);
        trial->record = copy.trial;
        if (*trial->record.checkpoint)
            checkpoint_refer(engine, trial->record.checkpoint);
        engine->resource_done += (double)trial->record.resource;
        if (trial->record.is_final)
            continue;
        engine->state_counts[TRIAL_WAITING]--;
        engine->state_counts[trial->record.state]++;
    }
}

static void restore_attempt(struct engine *engine, const struct attempt_record *row)
{
    struct trial *trial = trial_find(engine, row->trial);
    if (!trial || row->number != trial->attempt_count + 1) {
        engine_fail(engine, "the store has no attempt before %lld of trial %lld", (long long)row->number,
                    (long long)row->trial);
        return;
    }
    struct worker *worker = worker_find(engine, row->worker);
    struct attempt *attempts = realloc(trial->attempts, (trial->attempt_count + 1) * sizeof(*attempts));
    if (!attempts || (!worker && !(worker = worker_add(engine, row->worker)))) {
        trial->attempts = attempts ? attempts : trial->attempts;
        engine_fail_memory(engine);
        return;
    }
    trial->attempts = attempts;
    struct attempt *attempt = &attempts[trial->attempt_count++];
    *attempt = (struct attempt){
        .worker = worker,
        .slot = -1,
        .device = engine_text(engine, row->device),
        .error = engine_text(engine, row->error),
        .details = engine_text(engine, row->details),
        .start = row->start,
        .until = row->until,
        .started_ms = row->started_ms,
        .ended_ms = row->ended_ms,
        .last_sequence = row->last_sequence,
        .reached = row->start,
        .outcome = row->outcome,
        .seconds = row->seconds,
    };
    if (row->session)
        memcpy(attempt->session, row->session, strnlen(row->session, SESSION_SIZE - 1));
}

/* Curves of the trials that go on; of the others only what the refit asks for, and whether they have the
 * metric. */
static void restore_reports(struct engine *engine, const struct snapshot *snapshot)
{
    double resource_done = engine->resource_done;
    for (size_t i = 0; i < snapshot->report_count && !*engine->failure.message; i++) {
        const struct report_record *row = &snapshot->reports[i];
        struct trial *trial = trial_find(engine, row->trial);
        if (!trial || row->attempt < 1 || row->attempt > trial->attempt_count) {
            engine_fail(engine, "the store has a report of no attempt of trial %lld", (long long)row->trial);
            return;
        }
        struct attempt *attempt = &trial->attempts[row->attempt - 1];
        if (row->resource > attempt->reached)
            attempt->reached = row->resource;
        bool late = attempt->outcome != OUTCOME_NONE && row->received_ms > attempt->ended_ms;
        struct trial_record kept = trial->record;
        if (!late)
            trial_curve_add(engine, trial, row->attempt, row->resource, row->metrics);
        trial->record = kept; /* the row is the truth */
    }
    engine->resource_done = resource_done;
}

static void restore_ranking(struct engine *engine)
{
    for (int64_t number = 1; number <= engine->proposed; number++) {
        struct trial *trial = engine->trials[number];
        heap_remove(&engine->ranking, trial);
        if (trial->record.has_objective)
            trial_rank(engine, trial);
        if (!trial_state_is_end(trial->record.state))
            continue;
        trial_curve_free(trial);
        if (trial->record.has_objective &&
            (!engine->best_ended || ranking_order.before(trial, engine->best_ended)))
            engine->best_ended = trial;
    }
}

/* A trial enters a rung after it was let go from the one below. */
static void replay_entry(struct engine *engine, const struct rung_entry_record *row)
{
    struct trial *trial = trial_find(engine, row->trial);
    struct rung_entry_record *entries =
        trial ? realloc(trial->entries, (trial->entry_count + 1) * sizeof(*entries)) : NULL;
    if (!trial || row->rung != trial->entry_count) {
        engine_fail(engine, "the store has a rung entry out of order of trial %lld", (long long)row->trial);
        return;
    }
    if (!entries) {
        engine_fail_memory(engine);
        return;
    }
    trial->entries = entries;
    entries[trial->entry_count++] = *row;
    engine->entry_order = row->order > engine->entry_order ? row->order : engine->entry_order;
    if (row->rung > 0)
        stopping_promote(engine->stopping, row->trial);
    stopping_enter(engine->stopping, row->trial, (int)row->rung, row->value, row->tie);
}

static void replay_end(struct engine *engine, struct trial *trial)
{
    const struct rung_entry_record *last =
        trial->entry_count ? &trial->entries[trial->entry_count - 1] : NULL;
    int64_t number = trial->record.number;
    bool top = trial_is_at_top(engine, trial);
    if (last && last->promoted) /* as it was decided then: asha may decide otherwise in hindsight */
        stopping_promote(engine->stopping, number);
    if (!trial_state_is_end(trial->record.state)) {
        trial->must_stop =
            engine->settings.stopping.kind == STOPPING_ASHA_STOPPING && last && !last->promoted && !top;
        return;
    }
    if (trial->record.reason == REASON_PRUNED) {
        if (engine->pauses)
            stopping_prune(engine->stopping, number);
    } else if (!(trial->record.state == TRIAL_COMPLETED && top)) {
        stopping_end(engine->stopping, number, trial->record.reason == REASON_DIVERGED);
    }
}

static void restore_stopping(struct engine *engine, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->rung_entry_count && !*engine->failure.message; i++)
        replay_entry(engine, &snapshot->rung_entries[i]);
    for (int64_t number = 1; number <= engine->proposed && !*engine->failure.message; number++)
        replay_end(engine, engine->trials[number]);
    if (!engine_may_propose(engine))
        stopping_close(engine->stopping);
}

/* Running trials back into the hands of their workers, waiting ones into their queues. */
static void restore_work(struct engine *engine)
{
    for (int64_t number = 0; number <= engine->proposed && !*engine->failure.message; number++) {
        struct trial *trial = engine->trials[number];
        const struct attempt *newest = trial ? trial_newest(trial) : NULL;
        if (!trial)
            continue;
        if (trial->record.state == TRIAL_WAITING) {
            bool promoted = newest && newest->outcome == OUTCOME_PAUSED && trial->entry_count > 0;
            trial_enqueue(engine, trial, promoted ? QUEUE_PROMOTION : QUEUE_RETRY);
        }
        if (trial->record.state != TRIAL_RUNNING)
            continue;
        if (!newest || newest->outcome != OUTCOME_NONE) {
            engine_fail(engine, "trial %lld is running without an attempt", (long long)number);
            return;
        }
        if (!newest->worker->alive)
            worker_lease(engine, newest->worker);
        attempt_hold(engine, trial, newest->worker, NULL);
        /* One that may go on was given a higher `until` together with its last report. */
        trial->is_pausing = engine->pauses && !trial->record.is_final && !trial_is_at_top(engine, trial) &&
                            newest->reached >= newest->until;
    }
}

/* A finished sweep goes on if it may have more trials than it had; a stopped one never. */
static void restore_state(struct engine *engine)
{
    bool reopens = engine->sweep.state == SWEEP_FINISHED && engine_may_propose(engine);
    engine->draining = engine->sweep.state == SWEEP_STOPPING_NOW;
    engine->ended =
        engine->sweep.state == SWEEP_STOPPED || (engine->sweep.state == SWEEP_FINISHED && !reopens);
    if (!reopens)
        return;
    engine->sweep.state = SWEEP_RUNNING;
    engine->sweep.ended_ms = 0;
    json_decref(engine->sweep.final); /* of a winner that may be none any more */
    engine->sweep.final = NULL;
    engine_keep_sweep(engine);
}

struct engine *engine_restore(const struct engine_settings *settings, const struct snapshot *snapshot,
                              struct now now, struct effects *effects, struct error *err)
{
    struct engine *engine = engine_check_snapshot(settings, snapshot, err) == 0
                                ? engine_allocate(settings, &snapshot->sweep, err)
                                : NULL;
    if (!engine)
        return NULL;
    engine_begin(engine, now, effects);
    restore_workers(engine, snapshot);
    restore_trials(engine, snapshot);
    for (size_t i = 0; i < snapshot->attempt_count && !*engine->failure.message; i++)
        restore_attempt(engine, &snapshot->attempts[i]);
    if (!*engine->failure.message)
        restore_reports(engine, snapshot);
    if (!*engine->failure.message) {
        restore_ranking(engine);
        restore_stopping(engine, snapshot);
        restore_work(engine);
        restore_state(engine);
    }
    if (engine_follow(engine, err) < 0) {
        engine_destroy(engine);
        return NULL;
    }
    return engine;
}
