/* The operator's commands: status, pause, resume, stop. Each is answered; each may be repeated. */
#include "coordinator/engine_state.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *left, const void *right)
{
    const struct worker *const *a = left, *const *b = right;
    return strcmp((*a)->record.name, (*b)->record.name);
}

static json_t *worker_status(const struct worker *worker, struct now now)
{
    const struct worker_record *record = &worker->record;
    json_int_t slots = 0, busy = 0;
    for (size_t i = 0; i < worker->slot_count; i++)
        slots += worker->slots[i] != NULL;
    json_int_t faulty = 0;
    size_t index;
    json_t *device;
    json_array_foreach(record->devices, index, device) faulty += json_object_get(device, "fault") != NULL;
    for (const struct trial *trial = worker->held; trial; trial = trial->held_next)
        busy++;
    double silent = worker->has_peer ? (double)(now.monotonic_ns - worker->heard_ns) / NS_PER_SECOND
                                     : (double)(now.utc_ms - record->last_ms) / 1e3;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:b}", "name", record->name, "host",
                     record->host ? record->host : "", "devices",
                     (json_int_t)json_array_size(record->devices), "faulty", faulty, "slots", slots, "busy",
                     busy, "last_seen_seconds", json_number(silent > 0 ? silent : 0), "connected",
                     worker->alive && worker->has_peer);
}

/* New reference; NULL: no memory. */
static json_t *workers_status(const struct engine *engine, struct now now)
{
    size_t count = 0;
    json_t *list = json_array();
    for (size_t i = 0; i < engine->names.capacity; i++)
        for (struct worker *worker = engine->names.entries[i].value; worker; worker = worker->name_next)
            count++;
    struct worker **sorted = calloc(count + 1, sizeof(struct worker *));
    bool failed = !list || !sorted;
    count = 0;
    for (size_t i = 0; !failed && i < engine->names.capacity; i++)
        for (struct worker *worker = engine->names.entries[i].value; worker; worker = worker->name_next)
            sorted[count++] = worker;
    if (!failed)
        qsort(sorted, count, sizeof(struct worker *), compare_names);
    for (size_t i = 0; !failed && i < count; i++)
        failed = json_array_append_new(list, worker_status(sorted[i], now)) < 0;
    free(sorted);
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *engine_status(const struct engine *engine, struct now now)
{
    struct engine_counts counts;
    engine_counts(engine, &counts);
    bool leaving = engine->interrupting && !engine->ended;
    const char *state = leaving ? "interrupting" : sweep_state_name(counts.state);
    json_t *best = counts.best_trial ? json_pack("{s:I, s:o, s:I}", "trial", (json_int_t)counts.best_trial,
                                                 "objective", json_number(counts.best_objective), "resource",
                                                 (json_int_t)counts.best_resource)
                                     : json_null();
    return json_pack("{s:s, s:s, s:s, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:I, s:I, s:I, s:I, "
                     "s:o, s:o, s:b, s:O?, s:O?, s:s?, s:O, s:o}",
                     "sweep", engine->settings.sweep_id, "name", engine->settings.sweep_name, "state", state,
                     "trials", "total", (json_int_t)counts.total, "proposed", (json_int_t)counts.proposed,
                     "waiting", (json_int_t)counts.waiting, "running", (json_int_t)counts.running, "paused",
                     (json_int_t)counts.paused, "completed", (json_int_t)counts.completed, "stopped",
                     (json_int_t)counts.stopped, "failed", (json_int_t)counts.failed, "cancelled",
                     (json_int_t)counts.cancelled, "workers", (json_int_t)counts.workers, "slots",
                     (json_int_t)counts.slots, "busy_slots", (json_int_t)counts.busy_slots, "ranked",
                     (json_int_t)counts.ranked, "best", best, "resource_done",
                     json_number(counts.resource_done), "refitting", (int)counts.refitting, "final",
                     engine->sweep.final, "baseline", engine->sweep.baseline, "precision",
                     *engine->sweep.precision ? engine->sweep.precision : NULL, "notes", engine->notes,
                     "worker_list", workers_status(engine, now));
}

static void answer_send(struct engine *engine, peer_number peer, const char *refusal)
{
    struct message *message = engine_send(engine, peer, MESSAGE_ANSWER);
    if (!message)
        return;
    message->error = engine_text(engine, refusal);
    if (refusal)
        return;
    message->body = engine_status(engine, engine->now);
    if (!message->body)
        engine_fail_memory(engine);
}

static void sweep_set_state(struct engine *engine, enum sweep_state state)
{
    if (engine->sweep.state == state)
        return;
    engine->sweep.state = state;
    engine->starved = false;
    engine->stopping_changed = true; /* what was due while it was paused */
    engine_keep_sweep(engine);
}

/* Kept, so that a sweep whose coordinator dies meanwhile goes on stopping. */
static void operator_stop(struct engine *engine, bool now)
{
    if (engine->sweep.state == SWEEP_STOPPING_NOW)
        return;
    sweep_set_state(engine, now ? SWEEP_STOPPING_NOW : SWEEP_STOPPING);
    for (int64_t number = 0; number <= engine->proposed && !*engine->failure.message; number++)
        if (engine->trials[number])
            trial_give_up(engine, engine->trials[number]);
    if (!now || engine->draining)
        return;
    engine->draining = true;
    engine_drain_all(engine);
}

void operator_handle(struct engine *engine, peer_number peer, const struct message *message)
{
    bool asks_status = message->type == MESSAGE_STATUS || (message->type == MESSAGE_QUERY && message->query &&
                                                           strcmp(message->query, "status") == 0);
    if (asks_status) {
        answer_send(engine, peer, NULL);
        return;
    }
    if (message->type == MESSAGE_QUERY) {
        answer_send(engine, peer, "the engine answers only the query \"status\"");
        return;
    }
    if (engine->ended) {
        answer_send(engine, peer, "the sweep has ended");
        return;
    }
    if (message->type == MESSAGE_STOP) {
        operator_stop(engine, message->now);
    } else if (engine_is_stopping(engine)) {
        answer_send(engine, peer, "the sweep is being stopped");
        return;
    } else {
        sweep_set_state(engine, message->type == MESSAGE_PAUSE ? SWEEP_PAUSED : SWEEP_RUNNING);
    }
    answer_send(engine, peer, NULL);
}
