/* Work: what a free slot gets (interrupted and lost trials, then promotions, then a new proposal), what
 * becomes of paused trials, the refit of the winner, and the end of the sweep. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <stdlib.h>
#include <string.h>

bool engine_holds(const struct engine *engine)
{
    return engine->ended || engine->interrupting || engine->sweep.state != SWEEP_RUNNING;
}

bool engine_is_stopping(const struct engine *engine)
{
    return engine->sweep.state == SWEEP_STOPPING || engine->sweep.state == SWEEP_STOPPING_NOW;
}

bool engine_may_propose(const struct engine *engine)
{
    return engine->total < 0 || engine->proposed < engine->total;
}

int64_t engine_active(const struct engine *engine)
{
    return engine->state_counts[TRIAL_RUNNING] + engine->state_counts[TRIAL_WAITING] - engine->resting;
}

/* Synchronous halving decides a whole rung at once, so its promotions do not wait for a free slot. */
static void promote_complete_rungs(struct engine *engine)
{
    if (engine->settings.stopping.kind != STOPPING_SUCCESSIVE_HALVING)
        return;
    for (;;) {
        int64_t number = stopping_next_promotion(engine->stopping, engine_active(engine));
        if (number <= 0 || *engine->failure.message)
            return;
        trial_promote(engine, trial_find(engine, number));
    }
}

void engine_settle(struct engine *engine)
{
    engine->stopping_changed = false;
    if (!engine->pauses || engine_holds(engine))
        return;
    promote_complete_rungs(engine);
    for (;;) {
        int64_t number = stopping_next_prune(engine->stopping, engine_active(engine));
        if (number <= 0 || *engine->failure.message)
            return;
        trial_prune(engine, trial_find(engine, number));
    }
}

static struct trial *trial_propose(struct engine *engine)
{
    if (!engine_may_propose(engine))
        return NULL;
    int64_t number = engine->proposed + 1;
    const struct engine_settings *settings = &engine->settings;
    json_t *parameters = settings->sampler->propose(settings->space, settings->seed, number);
    if (!parameters) {
        engine_fail_memory(engine); /* the total is the sampler's own size, so this is not exhaustion */
        return NULL;
    }
    struct trial *trial = trial_add(engine, number);
    if (!trial) {
        json_decref(parameters);
        return NULL;
    }
    trial->record.parameters = parameters;
    engine_mark_trial(engine, trial);
    if (!engine_may_propose(engine))
        stopping_close(engine->stopping);
    engine->stopping_changed = true;
    return trial;
}

/* ASHA: a promotion is made when there is a slot for it. One that is still at its rung in another slot goes
 * on there. */
static struct trial *promotion_take(struct engine *engine)
{
    while (engine->promotions.count == 0 && engine->settings.stopping.kind == STOPPING_ASHA_PROMOTION) {
        int64_t number = stopping_next_promotion(engine->stopping, engine_active(engine));
        if (number <= 0 || *engine->failure.message)
            break;
        trial_promote(engine, trial_find(engine, number));
    }
    return heap_top(&engine->promotions);
}

/* Promoted, and this worker has it still, checkpoint and all. */
static struct trial *promoted_on(const struct worker *worker)
{
    struct trial *first = NULL;
    for (struct trial *trial = worker->held; trial; trial = trial->held_next) {
        const struct rung_entry_record *entry = trial_last_entry(trial);
        if (trial->is_pausing && !trial->must_stop && entry && entry->promoted &&
            (!first || trial->record.number < first->record.number))
            first = trial;
    }
    return first;
}

/* One whose device failed is tried again in another slot if there is one. */
static bool retry_avoids(const struct engine *engine, const struct trial *trial, const struct slot *slot)
{
    const struct attempt *attempt = trial_newest(trial);
    return attempt && attempt->device_failed && attempt->worker == slot->worker &&
           attempt->slot == slot->number && engine->known_slots > 1;
}

/* Where a trial and a slot have both had a device fail, other trials come first: they tell as well whether
 * the device is bad, and have lost nothing yet. */
static bool retry_comes_last(const struct trial *trial, const struct slot *slot)
{
    return slot->suspect && trial->attempt_count > 0 && trial_newest(trial)->device_failed;
}

static struct trial *work_next(struct engine *engine, const struct slot *slot)
{
    struct trial *retry = heap_top(&engine->retries);
    if (retry && retry_avoids(engine, retry, slot))
        retry = NULL;
    if (!retry && engine_holds(engine))
        return NULL;
    struct trial *trial = retry, *fresh = NULL;
    if (!retry || (!engine_holds(engine) && retry_comes_last(retry, slot))) {
        trial = promotion_take(engine);
        fresh = trial ? NULL : trial_propose(engine);
        trial = trial || fresh ? trial : retry;
    }
    if (trial)
        trial_dequeue(engine, trial);
    return trial ? trial : fresh;
}

void engine_send_assign(struct engine *engine, struct trial *trial)
{
    const struct worker *worker = trial->holder;
    struct message *message = engine_send(engine, worker->peer, MESSAGE_ASSIGN);
    struct assignment *assignment = message ? calloc(1, sizeof(*assignment)) : NULL;
    if (!assignment) {
        engine_fail_memory(engine);
        return;
    }
    const struct attempt *attempt = trial_newest(trial);
    message->slot = trial->slot->number;
    message->trials = assignment;
    message->trial_count = 1;
    assignment->trial = trial->record.number;
    assignment->attempt = trial->attempt_count;
    assignment->parameters = json_incref(trial->record.parameters);
    assignment->start = attempt->start;
    assignment->until = attempt->until;
    if (*trial->record.checkpoint) {
        assignment->checkpoint = engine_text(engine, trial->record.checkpoint);
        assignment->checkpoint_bytes = trial->record.checkpoint_bytes;
    }
    if (trial->record.is_final)
        assignment->final = final_request(engine, trial);
}

void engine_dispatch(struct engine *engine)
{
    /* In a sweep that is being stopped only the refit is left to wait. */
    bool holds = engine_holds(engine) && (engine->interrupting || engine->sweep.state != SWEEP_STOPPING);
    struct slot *next, *slot = engine->idle_first;
    for (; slot && !engine->starved && !holds && !*engine->failure.message; slot = next) {
        next = slot->next;
        struct trial *trial = engine_holds(engine) ? NULL : promoted_on(slot->worker);
        if (trial && engine->retries.count == 0) {
            trial_go_on(engine, trial, slot);
            continue;
        }
        trial = work_next(engine, slot);
        if (!trial) {
            engine->starved = engine->retries.count == 0; /* else it only avoids this slot */
            continue;
        }
        slot_set_idle(engine, slot, false);
        attempt_open(engine, trial, slot->worker, slot);
        trial_change(engine, trial, TRIAL_RUNNING, REASON_NONE);
        if (!*engine->failure.message)
            engine_send_assign(engine, trial);
    }
}

/* ---- the end ---- */

void engine_end(struct engine *engine, enum sweep_state state)
{
    engine->sweep.state = state;
    engine->sweep.ended_ms = engine->now.utc_ms;
    engine->ended = true;
    engine_keep_sweep(engine);
    engine_drain_all(engine);
}

void engine_conclude(struct engine *engine)
{
    struct trial *final = engine->trials[0];
    bool stopping = engine_is_stopping(engine);
    if (engine->ended || *engine->failure.message)
        return;
    if (!stopping && (engine_holds(engine) || engine_may_propose(engine)))
        return;
    if (engine->state_counts[TRIAL_WAITING] + engine->state_counts[TRIAL_RUNNING] +
            engine->state_counts[TRIAL_PAUSED] >
        0)
        return;
    if (final_is_left(engine))
        trial_drop(engine, final);
    if (final_is_due(engine)) {
        if (!engine->interrupting)
            final_start(engine);
    } else if (!final || trial_state_is_end(final->record.state)) {
        engine_end(engine, stopping ? SWEEP_STOPPED : SWEEP_FINISHED);
    }
}
