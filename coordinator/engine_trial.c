/* Trials: their life, their queues, and what the end of an attempt makes of them. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <stdlib.h>
#include <string.h>

static bool queue_before(const struct trial *a, const struct trial *b)
{
    return a->record.number < b->record.number;
}

static size_t *queue_position(struct trial *trial)
{
    return &trial->queue_position;
}

const struct heap_order queue_order = {queue_before, queue_position};

/* Where several devices fail, no trial has all the bad luck. */
static bool retry_before(const struct trial *a, const struct trial *b)
{
    return a->record.losses != b->record.losses ? a->record.losses < b->record.losses : queue_before(a, b);
}

const struct heap_order retry_order = {retry_before, queue_position};

struct trial *trial_find(const struct engine *engine, int64_t number)
{
    return number >= 0 && number <= engine->proposed ? engine->trials[number] : NULL;
}

struct attempt *trial_newest(const struct trial *trial)
{
    return trial->attempt_count ? &trial->attempts[trial->attempt_count - 1] : NULL;
}

static int trials_reserve(struct engine *engine, int64_t number)
{
    size_t wanted = engine->trial_capacity ? engine->trial_capacity : 64;
    while (wanted <= (size_t)number)
        wanted *= 2;
    if (wanted == engine->trial_capacity)
        return 0;
    struct trial **trials = realloc(engine->trials, wanted * sizeof(struct trial *));
    if (!trials)
        return -1;
    memset(&trials[engine->trial_capacity], 0, (wanted - engine->trial_capacity) * sizeof(struct trial *));
    engine->trials = trials;
    engine->trial_capacity = wanted;
    return 0;
}

struct trial *trial_add(struct engine *engine, int64_t number)
{
    struct trial *trial = NULL;
    if (trials_reserve(engine, number) < 0 || !(trial = calloc(1, sizeof(*trial)))) {
        engine_fail_memory(engine);
        return NULL;
    }
    trial->record.number = number;
    trial->record.is_final = number == 0;
    engine->trials[number] = trial;
    if (number == 0)
        return trial;
    engine->proposed = number;
    engine->state_counts[TRIAL_WAITING]++;
    if (stopping_add(engine->stopping, number) < 0)
        engine_fail_memory(engine);
    trial->record.bracket = stopping_bracket(engine->stopping, number);
    return trial;
}

void trial_release(struct trial *trial)
{
    if (!trial)
        return;
    struct record record = {.type = RECORD_TRIAL, .trial = trial->record};
    record_release(&record);
    for (int64_t i = 0; i < trial->attempt_count; i++) {
        free(trial->attempts[i].device);
        free(trial->attempts[i].error);
        free(trial->attempts[i].details);
    }
    free(trial->attempts);
    free(trial->entries);
    free(trial->orphans);
    trial_curve_free(trial);
    free(trial);
}

void trial_change(struct engine *engine, struct trial *trial, enum trial_state state,
                  enum trial_reason reason)
{
    enum trial_state from = trial->record.state;
    struct error err;
    if (trial_move(&trial->record, state, reason, &err) < 0) {
        engine_fail(engine, "%s", err.message);
        return;
    }
    if (!trial->record.is_final) {
        engine->state_counts[from]--;
        engine->state_counts[state]++;
    }
    engine->starved = false;
    engine->stopping_changed = true;
    engine_mark_trial(engine, trial);
}

void trial_dequeue(struct engine *engine, struct trial *trial)
{
    if (trial->queue == QUEUE_RETRY)
        heap_remove(&engine->retries, trial);
    else if (trial->queue == QUEUE_PROMOTION)
        heap_remove(&engine->promotions, trial);
    trial->queue = QUEUE_NONE;
}

void trial_enqueue(struct engine *engine, struct trial *trial, enum queue queue)
{
    trial_dequeue(engine, trial);
    trial->queue = queue;
    if (heap_push(queue == QUEUE_RETRY ? &engine->retries : &engine->promotions, trial) < 0)
        engine_fail_memory(engine);
    engine->starved = false;
}

/* ---- ends ---- */

static void trial_end(struct engine *engine, struct trial *trial, enum trial_state state,
                      enum trial_reason reason)
{
    trial_change(engine, trial, state, reason);
    if (trial->record.is_final) {
        final_set(engine, trial);
        checkpoint_retire(engine, trial);
        return;
    }
    if (state == TRIAL_FAILED || state == TRIAL_CANCELLED)
        trial_unrank(engine, trial);
    if (reason != REASON_PRUNED && !(state == TRIAL_COMPLETED && trial_is_at_top(engine, trial)))
        stopping_end(engine->stopping, trial->record.number, reason == REASON_DIVERGED);
    checkpoint_retire(engine, trial);
    trial_curve_free(trial);
}

void trial_prune(struct engine *engine, struct trial *trial)
{
    stopping_prune(engine->stopping, trial->record.number);
    if (trial_state_is_end(trial->record.state))
        return;
    if (trial->holder) {
        trial->must_stop = true;
        trial_update_resting(engine, trial);
        attempt_acknowledge(engine, trial->holder, trial, trial->attempt_count);
        return;
    }
    if (trial_may_have_diverged(trial)) {
        trial->must_stop = true; /* it is run again first, and its end says which it is */
        return;
    }
    trial_dequeue(engine, trial);
    trial_end(engine, trial, TRIAL_STOPPED, REASON_PRUNED);
}

static void trial_finished(struct engine *engine, struct trial *trial)
{
    bool unmeasured = engine->settings.metric && !trial->has_metric && !trial->record.is_final;
    if (unmeasured)
        trial_end(engine, trial, TRIAL_FAILED, REASON_NO_METRIC);
    else
        trial_end(engine, trial, TRIAL_COMPLETED, REASON_FINISHED);
}

/* Back to where it can go on from. One that was handed back at its rung, checkpoint and all, is as good as
 * paused there, and at the top as good as finished. */
static void trial_requeue(struct engine *engine, struct trial *trial)
{
    const struct rung_entry_record *entry = trial_last_entry(trial);
    int64_t held = *trial->record.checkpoint ? trial->record.checkpoint_resource : 0;
    bool ranked = !trial->record.is_final;
    if (ranked && trial_is_at_top(engine, trial) && held >= engine->settings.stopping.max_iter) {
        trial_finished(engine, trial);
    } else if (ranked && engine->pauses && entry && !entry->promoted && !trial_is_at_top(engine, trial) &&
               held >= stopping_level(engine->stopping, (int)entry->rung)) {
        if (trial->must_stop)
            trial_end(engine, trial, TRIAL_STOPPED, REASON_PRUNED);
        else
            trial_change(engine, trial, TRIAL_PAUSED, REASON_NONE);
    } else {
        trial_change(engine, trial, TRIAL_WAITING, REASON_NONE);
        trial_enqueue(engine, trial, QUEUE_RETRY);
    }
}

static void trial_paused(struct engine *engine, struct trial *trial)
{
    const struct rung_entry_record *entry = trial_last_entry(trial);
    if (!engine->pauses || !entry || trial->record.is_final || trial_is_at_top(engine, trial)) {
        trial_requeue(engine, trial); /* nobody asked it to: it goes on like an interrupted one */
        return;
    }
    trial_change(engine, trial, TRIAL_PAUSED, REASON_NONE);
    if (entry->promoted) { /* let go on while its `ended` was under way */
        trial_change(engine, trial, TRIAL_WAITING, REASON_NONE);
        trial_enqueue(engine, trial, QUEUE_PROMOTION);
    }
}

static void trial_retry(struct engine *engine, struct trial *trial, enum trial_reason reason, int64_t *used,
                        int64_t allowed)
{
    if (*used < allowed) {
        (*used)++;
        trial_requeue(engine, trial);
    } else if (!trial->record.is_final && trial_is_at_top(engine, trial)) {
        trial_finished(engine, trial); /* every report of it is here */
    } else {
        trial_end(engine, trial, TRIAL_FAILED, reason);
    }
}

void trial_drop(struct engine *engine, struct trial *trial)
{
    trial_dequeue(engine, trial);
    trial_end(engine, trial, trial->attempt_count > 0 ? TRIAL_STOPPED : TRIAL_CANCELLED, REASON_USER);
}

void trial_give_up(struct engine *engine, struct trial *trial)
{
    bool refit_goes_on = trial->record.is_final && engine->sweep.state == SWEEP_STOPPING;
    if (!engine_is_stopping(engine) || trial->holder || trial_state_is_end(trial->record.state) ||
        refit_goes_on)
        return;
    trial_drop(engine, trial);
}

static void outcome_take(struct engine *engine, struct trial *trial, enum outcome outcome)
{
    struct trial_record *record = &trial->record;
    /* One that diverged at the very rung it is pruned at has diverged, whichever was known first. */
    bool undecided = outcome == OUTCOME_LOST || outcome == OUTCOME_CRASHED || outcome == OUTCOME_INTERRUPTED;
    if (trial->must_stop && outcome != OUTCOME_DIVERGED && !(undecided && trial_may_have_diverged(trial))) {
        trial_end(engine, trial, TRIAL_STOPPED, REASON_PRUNED);
        return;
    }
    switch (outcome) {
    case OUTCOME_FINISHED:
        trial_finished(engine, trial);
        break;
    case OUTCOME_PAUSED:
        trial_paused(engine, trial);
        break;
    case OUTCOME_CRASHED:
        if (trial_newest(trial)->device_failed) /* a bad device must not use up the trial's own retries */
            trial_retry(engine, trial, REASON_CRASHED, &record->losses, engine->settings.max_losses);
        else
            trial_retry(engine, trial, REASON_CRASHED, &record->retries, engine->settings.max_retries);
        break;
    case OUTCOME_LOST:
        trial_retry(engine, trial, REASON_LOST, &record->losses, engine->settings.max_losses);
        break;
    case OUTCOME_OUT_OF_MEMORY:
        trial_end(engine, trial, TRIAL_FAILED, REASON_OUT_OF_MEMORY);
        break;
    case OUTCOME_TIMED_OUT:
        trial_end(engine, trial, TRIAL_FAILED, REASON_TIMED_OUT);
        break;
    case OUTCOME_DIVERGED:
        trial_end(engine, trial, TRIAL_FAILED, REASON_DIVERGED);
        break;
    case OUTCOME_NO_METRIC:
        trial_end(engine, trial, TRIAL_FAILED, REASON_NO_METRIC);
        break;
    case OUTCOME_INVALID:
        trial_end(engine, trial, TRIAL_FAILED, REASON_INVALID);
        break;
    case OUTCOME_STOPPED: /* without being told by us: like an interrupted one */
    case OUTCOME_INTERRUPTED:
    case OUTCOME_NONE:
    case OUTCOME_COUNT:
        trial_requeue(engine, trial);
        break;
    }
}

/* Its checkpoint cannot be used. It trains again from 0, which gives the same curve; counted like a lost
 * attempt, for a disk that damages all it keeps must not keep a trial going for ever. */
void trial_begin_again(struct engine *engine, struct trial *trial)
{
    engine_note(engine, "trial %lld: the checkpoint at %lld was lost or damaged; it begins again",
                (long long)trial->record.number, (long long)trial->record.checkpoint_resource);
    checkpoint_drop(engine, trial);
    trial_attempt_over(engine, trial, OUTCOME_LOST);
}

void trial_attempt_over(struct engine *engine, struct trial *trial, enum outcome outcome)
{
    outcome_take(engine, trial, outcome);
    trial_give_up(engine, trial);
}
