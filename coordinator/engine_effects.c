/* Effects: the arrays that a turn fills, and how the engine's state becomes records and messages. */
#include "coordinator/engine_state.h"

#include <stdlib.h>
#include <string.h>

void effects_init(struct effects *effects)
{
    *effects = (struct effects){.wake_ns = INT64_MAX};
}

void effects_clear(struct effects *effects)
{
    for (size_t i = 0; i < effects->record_count; i++)
        record_release(&effects->records[i]);
    for (size_t i = 0; i < effects->message_count; i++)
        message_release(&effects->messages[i].message);
    for (size_t i = 0; i < effects->log_count; i++) {
        free(effects->logs[i].out);
        free(effects->logs[i].err);
    }
    effects->record_count = effects->message_count = effects->unneeded_count = effects->log_count = 0;
}

void effects_release(struct effects *effects)
{
    effects_clear(effects);
    free(effects->records);
    free(effects->messages);
    free(effects->unneeded_blobs);
    free(effects->logs);
    effects_init(effects);
}

/* Room for one more item; returns the array, moved or not, or NULL. */
static void *array_room(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *grown = realloc(array, wanted * size);
    if (grown)
        *capacity = wanted;
    return grown;
}

char *engine_text(struct engine *engine, const char *string)
{
    char *copy = string ? strdup(string) : NULL;
    if (string && !copy)
        engine_fail_memory(engine);
    return copy;
}

struct message *engine_send(struct engine *engine, peer_number peer, enum message_type type)
{
    struct effects *effects = engine->effects;
    struct outgoing *messages =
        array_room(effects->messages, effects->message_count, &effects->message_capacity, sizeof(*messages));
    if (!messages) {
        engine_fail_memory(engine);
        return NULL;
    }
    effects->messages = messages;
    struct outgoing *outgoing = &messages[effects->message_count++];
    outgoing->peer = peer;
    message_init(&outgoing->message, type);
    return &outgoing->message;
}

void engine_send_error(struct engine *engine, peer_number peer, const char *code, const char *text)
{
    struct message *message = engine_send(engine, peer, MESSAGE_ERROR);
    if (!message)
        return;
    message->code = engine_text(engine, code);
    message->error = engine_text(engine, text);
}

void engine_keep_log(struct engine *engine, int64_t trial, int64_t attempt, const char *out, const char *err)
{
    struct effects *effects = engine->effects;
    if (!out && !err)
        return;
    struct attempt_log *logs =
        array_room(effects->logs, effects->log_count, &effects->log_capacity, sizeof(*logs));
    if (!logs) {
        engine_fail_memory(engine);
        return;
    }
    effects->logs = logs;
    logs[effects->log_count++] = (struct attempt_log){
        .trial = trial,
        .attempt = attempt,
        .out = engine_text(engine, out),
        .err = engine_text(engine, err),
    };
}

static struct record *record_new(struct engine *engine, enum record_type type)
{
    struct effects *effects = engine->effects;
    struct record *records =
        array_room(effects->records, effects->record_count, &effects->record_capacity, sizeof(*records));
    if (!records) {
        engine_fail_memory(engine);
        return NULL;
    }
    effects->records = records;
    struct record *record = &records[effects->record_count++];
    memset(record, 0, sizeof(*record));
    record->type = type;
    return record;
}

/* Gathered until the event is over, so that a trial changed five times is kept once. */
static void dirty_add(struct engine *engine, struct trial *trial, int64_t attempt)
{
    struct dirty *dirty =
        array_room(engine->dirty, engine->dirty_count, &engine->dirty_capacity, sizeof(*dirty));
    if (!dirty) {
        engine_fail_memory(engine);
        return;
    }
    engine->dirty = dirty;
    dirty[engine->dirty_count++] = (struct dirty){trial, attempt};
}

void engine_mark_trial(struct engine *engine, struct trial *trial)
{
    if (!trial->is_dirty)
        dirty_add(engine, trial, 0);
    trial->is_dirty = true;
}

void engine_mark_attempt(struct engine *engine, struct trial *trial, int64_t number)
{
    struct attempt *attempt = &trial->attempts[number - 1];
    if (!attempt->is_dirty)
        dirty_add(engine, trial, number);
    attempt->is_dirty = true;
}

/* JSON of the engine never changes once made, so records share it. */
static void keep_trial(struct engine *engine, struct trial *trial)
{
    struct record *record = record_new(engine, RECORD_TRIAL);
    if (!record)
        return;
    record->trial = trial->record;
    json_incref(record->trial.parameters);
    json_incref(record->trial.derived);
    trial->is_dirty = false;
}

static void keep_attempt(struct engine *engine, const struct trial *trial, int64_t number)
{
    struct record *record = record_new(engine, RECORD_ATTEMPT);
    if (!record)
        return;
    struct attempt *attempt = &trial->attempts[number - 1];
    record->attempt = (struct attempt_record){
        .trial = trial->record.number,
        .number = number,
        .worker = engine_text(engine, attempt->worker->record.name),
        .session = engine_text(engine, attempt->session),
        .device = engine_text(engine, attempt->device),
        .start = attempt->start,
        .until = attempt->until,
        .started_ms = attempt->started_ms,
        .ended_ms = attempt->ended_ms,
        .last_sequence = attempt->last_sequence,
        .outcome = attempt->outcome,
        .error = engine_text(engine, attempt->error),
        .seconds = attempt->seconds,
        .details = engine_text(engine, attempt->details),
    };
    attempt->is_dirty = false;
}

void engine_flush(struct engine *engine)
{
    for (size_t i = 0; i < engine->dirty_count; i++) {
        if (engine->dirty[i].attempt)
            keep_attempt(engine, engine->dirty[i].trial, engine->dirty[i].attempt);
        else
            keep_trial(engine, engine->dirty[i].trial);
    }
    engine->dirty_count = 0;
}

/* Copies a whole struct into a record; the few rows of these kinds are worth a deep copy. */
static void keep_copy(struct engine *engine, const struct record *from)
{
    struct record *record = record_new(engine, from->type);
    if (record && record_copy(record, from) < 0) {
        engine->effects->record_count--;
        engine_fail_memory(engine);
    }
}

void engine_keep_sweep(struct engine *engine)
{
    keep_copy(engine, &(struct record){.type = RECORD_SWEEP, .sweep = engine->sweep});
}

void engine_keep_worker(struct engine *engine, const struct worker *worker)
{
    keep_copy(engine, &(struct record){.type = RECORD_WORKER, .worker = worker->record});
}

void engine_keep_report(struct engine *engine, const struct report_record *report)
{
    struct record *record = record_new(engine, RECORD_REPORT);
    if (!record)
        return;
    record->report = *report;
    json_incref(record->report.metrics);
}

void engine_keep_entry(struct engine *engine, const struct rung_entry_record *entry)
{
    struct record *record = record_new(engine, RECORD_RUNG_ENTRY);
    if (record)
        record->rung_entry = *entry;
}
