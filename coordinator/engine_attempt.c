/* Attempts: `report` and `ended` are numbered together, applied in that order only, and answered from what is
 * stored. Only the newest attempt, while it is open, touches the trial; what others say is kept with them. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <stdlib.h>
#include <string.h>

void attempt_open(struct engine *engine, struct trial *trial, struct worker *worker, struct slot *slot)
{
    struct attempt *attempts = realloc(trial->attempts, (trial->attempt_count + 1) * sizeof(*attempts));
    if (!attempts) {
        engine_fail_memory(engine);
        return;
    }
    trial->attempts = attempts;
    struct attempt *attempt = &attempts[trial->attempt_count++];
    int64_t start = *trial->record.checkpoint ? trial->record.checkpoint_resource : 0;
    *attempt = (struct attempt){
        .worker = worker,
        .slot = slot->number,
        .start = start,
        .until = trial_until(engine, trial),
        .started_ms = engine->now.utc_ms,
        .reached = start,
    };
    memcpy(attempt->session, worker->record.session, strnlen(worker->record.session, SESSION_SIZE - 1));
    trial->seen = trial->is_pausing = false;
    attempt_hold(engine, trial, worker, slot);
    engine_mark_attempt(engine, trial, trial->attempt_count);
}

void attempt_hold(struct engine *engine, struct trial *trial, struct worker *worker, struct slot *slot)
{
    trial->holder = worker;
    trial->slot = NULL;
    trial->held_previous = NULL;
    trial->held_next = worker->held;
    if (worker->held)
        worker->held->held_previous = trial;
    worker->held = trial;
    engine->open_attempts++;
    if (slot)
        slot_take(engine, slot, trial);
    trial_update_resting(engine, trial);
}

void attempt_close(struct engine *engine, struct trial *trial, enum outcome outcome)
{
    struct attempt *attempt = trial_newest(trial);
    attempt->outcome = outcome;
    attempt->ended_ms = engine->now.utc_ms;
    engine_mark_attempt(engine, trial, trial->attempt_count);
    if (trial->held_previous)
        trial->held_previous->held_next = trial->held_next;
    else
        trial->holder->held = trial->held_next;
    if (trial->held_next)
        trial->held_next->held_previous = trial->held_previous;
    if (trial->slot) {
        trial->slot->trial = NULL;
        trial->slot->suspect = attempt->device_failed;
        engine->busy_slots--;
    }
    engine->open_attempts--;
    trial->held_previous = trial->held_next = NULL;
    trial->holder = NULL;
    trial->slot = NULL;
    trial_update_resting(engine, trial);
}

/* ---- answers ---- */

static void acknowledge_send(struct engine *engine, const struct worker *worker, const struct message *answer)
{
    if (!worker->has_peer)
        return;
    struct message *message = engine_send(engine, worker->peer, MESSAGE_ACKNOWLEDGE);
    if (message)
        *message = *answer;
}

void attempt_acknowledge(struct engine *engine, const struct worker *worker, const struct trial *trial,
                         int64_t number)
{
    const struct attempt *attempt = &trial->attempts[number - 1];
    bool goes_on = trial->holder && number == trial->attempt_count && !trial_is_told_to_stop(trial);
    struct message answer;
    message_init(&answer, MESSAGE_ACKNOWLEDGE);
    answer.trial = trial->record.number;
    answer.attempt = number;
    answer.sequence = attempt->last_sequence;
    answer.action = goes_on ? ACTION_CONTINUE : ACTION_STOP;
    answer.until = attempt->until;
    acknowledge_send(engine, worker, &answer);
}

void attempt_answer(struct engine *engine)
{
    struct trial *trial = engine->reported;
    engine->reported = NULL;
    if (!trial)
        return;
    attempt_acknowledge(engine, engine->reporter, trial, engine->reported_attempt);
    const struct attempt *newest = trial_newest(trial);
    if (!trial->is_resting || trial->is_pausing || newest->reached < newest->until)
        return;
    trial->is_pausing = true;
    if (trial->slot)
        slot_vacate(engine, trial->slot);
}

/* An attempt that is none of ours: the worker may forget all of it. */
void attempt_dismiss(struct engine *engine, const struct worker *worker, int64_t trial, int64_t attempt,
                     int64_t sequence)
{
    struct message answer;
    message_init(&answer, MESSAGE_ACKNOWLEDGE);
    answer.trial = trial;
    answer.attempt = attempt;
    answer.sequence = sequence;
    answer.action = ACTION_STOP;
    acknowledge_send(engine, worker, &answer);
}

/* ---- messages ---- */

/* The attempt a message speaks of, if this worker ever had it. */
static struct attempt *attempt_find(const struct engine *engine, const struct worker *worker, int64_t number,
                                    int64_t attempt, struct trial **trial)
{
    *trial = trial_find(engine, number);
    if (!*trial || attempt < 1 || attempt > (*trial)->attempt_count)
        return NULL;
    struct attempt *found = &(*trial)->attempts[attempt - 1];
    return found->worker == worker ? found : NULL;
}

static bool attempt_is_open(const struct trial *trial, const struct attempt *attempt)
{
    return trial->holder && attempt == trial_newest(trial);
}

static void text_replace(struct engine *engine, char **text, const char *with)
{
    if (!with || (*text && strcmp(*text, with) == 0))
        return;
    free(*text);
    *text = engine_text(engine, with);
}

/* A misspelt metric would else show only when everything has been trained for nothing. */
static void metric_warn(struct engine *engine, const struct trial *trial, struct attempt *attempt,
                        const struct message *message)
{
    const char *metric = engine->settings.metric;
    if (!metric || trial->has_metric || trial->record.is_final || message->report_count == 0)
        return;
    struct text text;
    text_init(&text);
    text_printf(&text, "the metric \"%s\" is not in the first report, which has", metric);
    const char *key;
    json_t *value;
    json_object_foreach(message->reports[0].metrics, key, value) text_printf(&text, " %s", key);
    char *warning = text_steal(&text);
    text_replace(engine, &attempt->error, warning);
    engine_note(engine, "trial %lld: %s", (long long)trial->record.number, warning ? warning : "");
    free(warning);
}

static void report_apply(struct engine *engine, struct trial *trial, int64_t number,
                         const struct reported *reported)
{
    struct attempt *attempt = &trial->attempts[number - 1];
    if (reported->resource <= attempt->reached)
        return; /* each resource once, in order: an entry at a rung is the value AT that rung */
    if (reported->resource > engine_resource_limit(&engine->settings, trial->record.is_final))
        return; /* nobody asked for it, nor could a recovery believe it */
    attempt->reached = reported->resource;
    attempt->seconds += reported->seconds;
    bool open = attempt_is_open(trial, attempt);
    struct report_record report = {
        .trial = trial->record.number,
        .resource = reported->resource,
        .attempt = number,
        .received_ms = engine->now.utc_ms,
        .seconds = reported->seconds,
        .metrics = reported->metrics,
    };
    /* What comes after the attempt was given up is dated after its end: that is how recovery tells it apart.
     */
    if (!open && report.received_ms <= attempt->ended_ms)
        report.received_ms = attempt->ended_ms + 1;
    engine_keep_report(engine, &report);
    if (open)
        trial_curve_add(engine, trial, number, reported->resource, reported->metrics);
}

/* Values that the worker derived become part of the trial; the refit keeps all it was told. The attempt keeps
 * everything as text: there may be as many as trials, and nobody looks at it here. */
static void details_take(struct engine *engine, struct trial *trial, const struct message *message)
{
    json_t *details = message->details, *derived = json_object_get(details, "derived");
    derived = trial->record.is_final ? details : derived;
    if (details && !trial->record.is_final) {
        struct attempt *attempt = trial_newest(trial);
        free(attempt->details);
        attempt->details = json_canonical(details);
        engine_mark_attempt(engine, trial, trial->attempt_count);
        if (!attempt->details)
            engine_fail_memory(engine);
    }
    if (!derived)
        return;
    json_decref(trial->record.derived);
    trial->record.derived = json_incref(derived);
    engine_mark_trial(engine, trial);
}

void attempt_report(struct engine *engine, struct worker *worker, const struct message *message)
{
    struct trial *trial;
    struct attempt *attempt = attempt_find(engine, worker, message->trial, message->attempt, &trial);
    if (!attempt) {
        attempt_dismiss(engine, worker, message->trial, message->attempt, message->sequence);
        return;
    }
    if (message->sequence == attempt->last_sequence + 1) {
        bool open = attempt_is_open(trial, attempt);
        attempt->last_sequence++;
        text_replace(engine, &attempt->device, message->device);
        for (size_t i = 0; i < message->report_count; i++)
            report_apply(engine, trial, message->attempt, &message->reports[i]);
        engine_mark_attempt(engine, trial, message->attempt);
        if (open) {
            trial->seen = true;
            if (!trial->record.is_final)
                details_take(engine, trial, message);
            if (attempt->last_sequence == 1)
                metric_warn(engine, trial, attempt, message);
            engine_mark_trial(engine, trial);
            trial_judge(engine, trial);
            trial_update_resting(engine, trial);
        }
    }
    engine->reported = trial;
    engine->reporter = worker;
    engine->reported_attempt = message->attempt;
}

static void ended_apply(struct engine *engine, struct trial *trial, int64_t number,
                        const struct message *message)
{
    struct attempt *attempt = &trial->attempts[number - 1];
    attempt->last_sequence++;
    text_replace(engine, &attempt->device, message->device);
    text_replace(engine, &attempt->error, message->error);
    engine_mark_attempt(engine, trial, number);
    engine_keep_log(engine, trial->record.number, number, message->log_stdout, message->log_stderr);
    if (!attempt_is_open(trial, attempt)) {
        if (message->checkpoint)
            checkpoint_orphan(engine, trial, message->checkpoint);
        return;
    }
    /* It had been sent before the worker heard that the trial may go on: the slot is still free. */
    if (trial->slot && message->outcome == OUTCOME_PAUSED && attempt->reached < attempt->until)
        slot_vacate(engine, trial->slot);
    attempt->device_failed = message->device_failed && message->outcome == OUTCOME_CRASHED;
    attempt_close(engine, trial, message->outcome);
    details_take(engine, trial, message);
    if (message->checkpoint_lost && message->outcome == OUTCOME_INTERRUPTED) {
        trial_begin_again(engine, trial);
        return;
    }
    if (message->checkpoint &&
        message->resource > engine_resource_limit(&engine->settings, trial->record.is_final))
        checkpoint_orphan(engine, trial, message->checkpoint);
    else if (message->checkpoint)
        checkpoint_set(engine, trial, message->checkpoint, message->checkpoint_bytes, message->resource);
    trial_attempt_over(engine, trial, message->outcome);
}

void attempt_ended(struct engine *engine, struct worker *worker, const struct message *message)
{
    struct trial *trial;
    struct attempt *attempt = attempt_find(engine, worker, message->trial, message->attempt, &trial);
    if (!attempt) {
        attempt_dismiss(engine, worker, message->trial, message->attempt, message->sequence);
        if (message->checkpoint && trial)
            checkpoint_orphan(engine, trial, message->checkpoint);
        return;
    }
    if (message->sequence == attempt->last_sequence + 1)
        ended_apply(engine, trial, message->attempt, message);
    attempt_acknowledge(engine, worker, trial, message->attempt);
}
