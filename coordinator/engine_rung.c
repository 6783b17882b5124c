/* Rungs: how far a trial may go, what its reports lead to when it gets there, and being let go on. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <math.h>
#include <stdlib.h>

int64_t trial_until(const struct engine *engine, const struct trial *trial)
{
    if (!trial->record.is_final)
        return stopping_target(engine->stopping, trial->record.number);
    const json_t *epochs = json_object_get(engine->settings.final, "epochs");
    if (json_is_integer(epochs))
        return json_integer_value(epochs);
    const struct trial *winner = heap_top(&engine->ranking);
    return winner && winner->has_best ? winner->best_resource : engine->settings.stopping.max_iter;
}

bool trial_is_at_top(const struct engine *engine, const struct trial *trial)
{
    return engine->settings.stopping.kind == STOPPING_NONE
               ? trial->record.resource >= engine->settings.stopping.max_iter
               : trial->entry_count == stopping_rung_count(engine->stopping);
}

const struct rung_entry_record *trial_last_entry(const struct trial *trial)
{
    return trial->entry_count ? &trial->entries[trial->entry_count - 1] : NULL;
}

/* At a rung that it may not leave, with all its reports there, a trial only has to hand in its checkpoint; a
 * pruned one only has to stop. */
static bool trial_is_resting(const struct engine *engine, const struct trial *trial)
{
    if (!trial->holder || trial->record.is_final)
        return false;
    if (trial->must_stop)
        return true;
    const struct attempt *attempt = trial_newest(trial);
    const struct rung_entry_record *entry = trial_last_entry(trial);
    return engine->pauses && entry && !entry->promoted && !trial_is_at_top(engine, trial) &&
           attempt->reached >= attempt->until;
}

void trial_update_resting(struct engine *engine, struct trial *trial)
{
    bool resting = trial_is_resting(engine, trial);
    if (resting == trial->is_resting)
        return;
    trial->is_resting = resting;
    engine->resting += resting ? 1 : -1;
}

/* It entered its rung with no number, and may have diverged there: its worker was lost before it could say
 * so. Whether it counts as pruned or as diverged must not depend on that. */
bool trial_may_have_diverged(const struct trial *trial)
{
    const struct rung_entry_record *entry = trial_last_entry(trial);
    return entry && !isfinite(entry->value);
}

bool trial_is_told_to_stop(const struct trial *trial)
{
    const struct attempt *attempt = trial_newest(trial);
    return trial->must_stop && !(trial_may_have_diverged(trial) && attempt->reached < attempt->until);
}

static struct rung_entry_record *entry_make(struct engine *engine, struct trial *trial,
                                            const struct point *point)
{
    struct rung_entry_record *entries = realloc(trial->entries, (trial->entry_count + 1) * sizeof(*entries));
    if (!entries) {
        engine_fail_memory(engine);
        return NULL;
    }
    trial->entries = entries;
    entries[trial->entry_count] = (struct rung_entry_record){
        .trial = trial->record.number,
        .bracket = trial->record.bracket,
        .rung = trial->entry_count,
        .order = ++engine->entry_order,
        .value = point->value,
        .tie = point->tie,
    };
    return &entries[trial->entry_count++];
}

/* The newest attempt, while it runs, may go to where the trial may go. In a sweep that is being stopped it
 * ends where it was sent to, and one that was left at its rung ends there: the trial goes on in another. */
static void until_raise(struct engine *engine, struct trial *trial)
{
    if (!trial->holder || trial->is_pausing || engine_is_stopping(engine))
        return;
    trial_newest(trial)->until = trial_until(engine, trial);
    engine_mark_attempt(engine, trial, trial->attempt_count);
    trial_update_resting(engine, trial);
}

/* Enters one rung. True if the trial may enter the next. */
static bool rung_enter(struct engine *engine, struct trial *trial, const struct point *point)
{
    struct rung_entry_record *entry = entry_make(engine, trial, point);
    if (!entry)
        return false;
    enum stopping_verdict verdict =
        stopping_enter(engine->stopping, trial->record.number, entry->rung, entry->value, entry->tie);
    engine->stopping_changed = true;
    engine->starved = false;
    if (verdict == STOPPING_STOP)
        trial->must_stop = true;
    trial_update_resting(engine, trial);
    if (verdict == STOPPING_PAUSE && !engine_holds(engine) &&
        stopping_next_promotion(engine->stopping, engine_active(engine)) == trial->record.number) {
        stopping_promote(engine->stopping, trial->record.number);
        verdict = STOPPING_CONTINUE;
    }
    entry->promoted = verdict == STOPPING_CONTINUE;
    engine_keep_entry(engine, entry);
    until_raise(engine, trial);
    return entry->promoted;
}

void trial_judge(struct engine *engine, struct trial *trial)
{
    if (engine->settings.stopping.kind == STOPPING_NONE || trial->must_stop || trial->record.is_final)
        return;
    const struct rung_entry_record *entry = trial_last_entry(trial);
    bool open = !entry || entry->promoted;
    while (open && !trial_is_at_top(engine, trial)) {
        const struct point *point =
            trial_curve_at(trial, stopping_level(engine->stopping, trial->entry_count));
        open = point && rung_enter(engine, trial, point);
    }
}

void trial_promote(struct engine *engine, struct trial *trial)
{
    if (trial->entry_count == 0 || trial_state_is_end(trial->record.state)) {
        engine_fail(engine, "trial %lld cannot be promoted", (long long)trial->record.number);
        return;
    }
    stopping_promote(engine->stopping, trial->record.number);
    struct rung_entry_record *entry = &trial->entries[trial->entry_count - 1];
    entry->promoted = true;
    engine_keep_entry(engine, entry);
    engine->stopping_changed = true;
    engine->starved = false;
    if (trial->record.state == TRIAL_PAUSED) {
        trial_change(engine, trial, TRIAL_WAITING, REASON_NONE);
        trial_enqueue(engine, trial, QUEUE_PROMOTION);
        return;
    }
    until_raise(engine, trial);
    trial_update_resting(engine, trial);
    trial_judge(engine, trial); /* its reports may have jumped over the next rung already */
    if (trial->holder && !trial->is_pausing)
        attempt_acknowledge(engine, trial->holder, trial, trial->attempt_count);
}

void trial_go_on(struct engine *engine, struct trial *trial, struct slot *slot)
{
    trial->is_pausing = false;
    slot_set_idle(engine, slot, false);
    slot_take(engine, slot, trial);
    until_raise(engine, trial);
    attempt_acknowledge(engine, trial->holder, trial, trial->attempt_count);
}
