/* After the search: trial 0, which trains the winner again and, once in a sweep, a linear model beside it, so
 * that people see what the search was worth. Assigned like any other trial, never ranked. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <string.h>

/* Once it has a result, or was given up, it stays: the data and their split do not change. */
static bool baseline_is_due(const struct engine *engine)
{
    return engine->settings.baseline && !engine->sweep.baseline;
}

json_t *final_request(struct engine *engine, const struct trial *trial)
{
    const json_t *refit = engine->settings.final;
    json_t *request = refit ? json_deep_copy(refit) : json_pack("{s:s}", "refit", "none");
    if (!request || json_object_set_new(request, "epochs", json_integer(trial_newest(trial)->until)) < 0 ||
        (baseline_is_due(engine) && json_object_set_new(request, "baseline", json_true()) < 0))
        engine_fail_memory(engine);
    return request;
}

/* ---- its result ---- */

static json_t *failure_of(const struct trial *trial)
{
    const struct attempt *attempt = trial_newest(trial);
    return json_pack("{s:s, s:s?}", "failed", trial_reason_name(trial->record.reason), "error",
                     attempt ? attempt->error : NULL);
}

static void baseline_set(struct engine *engine, const struct trial *trial)
{
    if (!baseline_is_due(engine))
        return;
    json_t *told = json_object_get(trial->record.derived, "baseline");
    engine->sweep.baseline = told ? json_incref(told) : failure_of(trial);
    if (!engine->sweep.baseline)
        engine_fail_memory(engine);
}

/* What the refit said of itself; the baseline is a result of its own. */
static json_t *refit_result(const struct trial *trial)
{
    json_t *result = trial->record.derived ? json_copy(trial->record.derived) : json_object();
    json_object_del(result, "baseline");
    return result;
}

void final_set(struct engine *engine, const struct trial *trial)
{
    if (trial->record.reason == REASON_USER)
        return; /* nobody wants one */
    baseline_set(engine, trial);
    if (!engine->settings.final)
        return;
    json_decref(engine->sweep.final);
    engine->sweep.final = trial->record.state == TRIAL_COMPLETED ? refit_result(trial) : failure_of(trial);
    if (!engine->sweep.final)
        engine_fail_memory(engine);
    if (trial->record.state == TRIAL_FAILED)
        engine_note(engine, "the refit of the winner failed: %s", trial_reason_name(trial->record.reason));
}

/* ---- when ---- */

/* A sweep that was opened again has no result any more: it refits again. A baseline alone is not worth
 * waiting for a worker. */
bool final_is_due(const struct engine *engine)
{
    const struct trial *winner = heap_top(&engine->ranking), *final = engine->trials[0];
    bool refits = engine->settings.final != NULL;
    bool wanted = refits || (baseline_is_due(engine) && engine->live_workers > 0);
    if (!wanted || !winner || engine->sweep.state == SWEEP_STOPPING_NOW)
        return false;
    if (!final)
        return true;
    if (!trial_state_is_end(final->record.state) || !refits)
        return trial_state_is_end(final->record.state);
    return !engine->sweep.final || !json_equal(final->record.parameters, winner->record.parameters);
}

void final_start(struct engine *engine)
{
    struct trial *trial = engine->trials[0];
    if (!trial && !(trial = trial_add(engine, 0)))
        return;
    checkpoint_drop(engine, trial);
    json_decref(trial->record.parameters);
    json_decref(trial->record.derived);
    trial->record = (struct trial_record){
        .is_final = true,
        .state = TRIAL_WAITING,
        .parameters = json_incref(heap_top(&engine->ranking)->record.parameters),
    };
    engine_mark_trial(engine, trial);
    trial_enqueue(engine, trial, QUEUE_RETRY);
    engine_dispatch(engine);
}

bool final_is_left(const struct engine *engine)
{
    const struct trial *final = engine->trials[0];
    bool waits = final && final->record.state == TRIAL_WAITING;
    return waits && !engine->settings.final && engine->live_workers == 0;
}
