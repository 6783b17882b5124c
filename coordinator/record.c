/* Records: names of states, deep copies, release. */
#include "coordinator/record.h"

#include <stdlib.h>
#include <string.h>

static const char *const sweep_states[] = {
    [SWEEP_RUNNING] = "running",           [SWEEP_PAUSED] = "paused",     [SWEEP_STOPPING] = "stopping",
    [SWEEP_STOPPING_NOW] = "stopping_now", [SWEEP_FINISHED] = "finished", [SWEEP_STOPPED] = "stopped",
};

static const char *const trial_states[] = {
    [TRIAL_WAITING] = "waiting",     [TRIAL_RUNNING] = "running", [TRIAL_PAUSED] = "paused",
    [TRIAL_COMPLETED] = "completed", [TRIAL_STOPPED] = "stopped", [TRIAL_FAILED] = "failed",
    [TRIAL_CANCELLED] = "cancelled",
};

static const char *const trial_reasons[] = {
    [REASON_NONE] = "",
    [REASON_FINISHED] = "finished",
    [REASON_PRUNED] = "pruned",
    [REASON_THRESHOLD] = "threshold",
    [REASON_USER] = "user",
    [REASON_DIVERGED] = "diverged",
    [REASON_OUT_OF_MEMORY] = "out_of_memory",
    [REASON_TIMED_OUT] = "timed_out",
    [REASON_CRASHED] = "crashed",
    [REASON_NO_METRIC] = "no_metric",
    [REASON_INVALID] = "invalid",
    [REASON_LOST] = "lost",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Index of `name`, or -1. */
static int name_find(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

const char *sweep_state_name(enum sweep_state state)
{
    return (size_t)state < COUNT(sweep_states) ? sweep_states[state] : "unknown";
}

const char *trial_state_name(enum trial_state state)
{
    return (size_t)state < COUNT(trial_states) ? trial_states[state] : "unknown";
}

const char *trial_reason_name(enum trial_reason reason)
{
    return (size_t)reason < COUNT(trial_reasons) ? trial_reasons[reason] : "unknown";
}

bool sweep_state_parse(const char *name, enum sweep_state *state)
{
    int index = name_find(sweep_states, COUNT(sweep_states), name);
    if (index >= 0)
        *state = (enum sweep_state)index;
    return index >= 0;
}

bool trial_state_parse(const char *name, enum trial_state *state)
{
    int index = name_find(trial_states, COUNT(trial_states), name);
    if (index >= 0)
        *state = (enum trial_state)index;
    return index >= 0;
}

bool trial_reason_parse(const char *name, enum trial_reason *reason)
{
    int index = name_find(trial_reasons, COUNT(trial_reasons), name);
    if (index >= 0)
        *reason = (enum trial_reason)index;
    return index >= 0;
}

static void sweep_record_release(struct sweep_record *sweep)
{
    free(sweep->name);
    free(sweep->spec_text);
    json_decref(sweep->normalised);
    free(sweep->version);
    json_decref(sweep->final);
    json_decref(sweep->baseline);
    memset(sweep, 0, sizeof(*sweep));
}

static void trial_record_release(struct trial_record *trial)
{
    json_decref(trial->parameters);
    json_decref(trial->derived);
    memset(trial, 0, sizeof(*trial));
}

static void attempt_record_release(struct attempt_record *attempt)
{
    free(attempt->worker);
    free(attempt->session);
    free(attempt->device);
    free(attempt->error);
    free(attempt->details);
    memset(attempt, 0, sizeof(*attempt));
}

static void report_record_release(struct report_record *report)
{
    json_decref(report->metrics);
    memset(report, 0, sizeof(*report));
}

static void worker_record_release(struct worker_record *worker)
{
    free(worker->name);
    free(worker->session);
    free(worker->host);
    free(worker->version);
    json_decref(worker->devices);
    memset(worker, 0, sizeof(*worker));
}

void record_release(struct record *record)
{
    switch (record->type) {
    case RECORD_SWEEP:
        sweep_record_release(&record->sweep);
        break;
    case RECORD_TRIAL:
        trial_record_release(&record->trial);
        break;
    case RECORD_ATTEMPT:
        attempt_record_release(&record->attempt);
        break;
    case RECORD_REPORT:
        report_record_release(&record->report);
        break;
    case RECORD_WORKER:
        worker_record_release(&record->worker);
        break;
    case RECORD_RUNG_ENTRY: /* owns nothing */
        break;
    }
}

/* Replaces a borrowed string in a shallow copy by one of its own. */
static void own_string(char **string, bool *failed)
{
    if (!*string)
        return;
    *string = strdup(*string);
    if (!*string)
        *failed = true;
}

/* The same for JSON: a deep copy, since JSON values are mutable and their counts not atomic. */
static void own_json(json_t **value, bool *failed)
{
    if (!*value)
        return;
    *value = json_deep_copy(*value);
    if (!*value)
        *failed = true;
}

int record_copy(struct record *to, const struct record *from)
{
    bool failed = false;
    *to = *from;
    switch (to->type) {
    case RECORD_SWEEP:
        own_string(&to->sweep.name, &failed);
        own_string(&to->sweep.spec_text, &failed);
        own_json(&to->sweep.normalised, &failed);
        own_string(&to->sweep.version, &failed);
        own_json(&to->sweep.final, &failed);
        own_json(&to->sweep.baseline, &failed);
        break;
    case RECORD_TRIAL:
        own_json(&to->trial.parameters, &failed);
        own_json(&to->trial.derived, &failed);
        break;
    case RECORD_ATTEMPT:
        own_string(&to->attempt.worker, &failed);
        own_string(&to->attempt.session, &failed);
        own_string(&to->attempt.device, &failed);
        own_string(&to->attempt.error, &failed);
        own_string(&to->attempt.details, &failed);
        break;
    case RECORD_REPORT:
        own_json(&to->report.metrics, &failed);
        break;
    case RECORD_WORKER:
        own_string(&to->worker.name, &failed);
        own_string(&to->worker.session, &failed);
        own_string(&to->worker.host, &failed);
        own_string(&to->worker.version, &failed);
        own_json(&to->worker.devices, &failed);
        break;
    case RECORD_RUNG_ENTRY:
        break;
    }
    if (failed)
        record_release(to);
    return failed ? -1 : 0;
}

void snapshot_release(struct snapshot *snapshot)
{
    sweep_record_release(&snapshot->sweep);
    for (size_t i = 0; i < snapshot->trial_count; i++)
        trial_record_release(&snapshot->trials[i]);
    for (size_t i = 0; i < snapshot->attempt_count; i++)
        attempt_record_release(&snapshot->attempts[i]);
    for (size_t i = 0; i < snapshot->report_count; i++)
        report_record_release(&snapshot->reports[i]);
    for (size_t i = 0; i < snapshot->worker_count; i++)
        worker_record_release(&snapshot->workers[i]);
    free(snapshot->trials);
    free(snapshot->attempts);
    free(snapshot->reports);
    free(snapshot->rung_entries);
    free(snapshot->workers);
    memset(snapshot, 0, sizeof(*snapshot));
}
