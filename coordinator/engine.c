/* The engine's life, its events, and what follows every event: promotions and prunes, work for free slots,
 * the end. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void engine_fail(struct engine *engine, const char *format, ...)
{
    if (*engine->failure.message)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(engine->failure.message, sizeof(engine->failure.message), format, arguments);
    va_end(arguments);
    engine->failure.code = ERROR_INTERNAL;
}

void engine_fail_memory(struct engine *engine)
{
    engine_fail(engine, "the engine ran out of memory");
    engine->failure.code = ERROR_MEMORY;
}

void engine_note(struct engine *engine, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (json_array_size(engine->notes) < NOTE_LIMIT)
        json_array_append_new(engine->notes, json_string(text));
}

static int64_t trials_total(const struct engine_settings *settings)
{
    int64_t size = settings->sampler->size(settings->space);
    if (size < 0 || settings->run_cap < 0)
        return size < 0 ? settings->run_cap : size;
    return size < settings->run_cap ? size : settings->run_cap;
}

struct engine *engine_allocate(const struct engine_settings *settings, const struct sweep_record *sweep,
                               struct error *err)
{
    struct record copy;
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine) {
        error_set(err, ERROR_MEMORY, "no memory for the engine");
        return NULL;
    }
    engine->settings = *settings;
    engine->retries.order = &retry_order;
    engine->promotions.order = &queue_order;
    engine->ranking.order = &ranking_order;
    engine->trial_capacity = 64;
    engine->trials = calloc(engine->trial_capacity, sizeof(struct trial *));
    engine->notes = json_array();
    engine->pauses = settings->stopping.kind == STOPPING_SUCCESSIVE_HALVING ||
                     settings->stopping.kind == STOPPING_ASHA_PROMOTION;
    engine->total = trials_total(settings);
    engine->stopping_changed = true;
    if (!engine->trials || !engine->notes ||
        record_copy(&copy, &(struct record){.type = RECORD_SWEEP, .sweep = *sweep}) < 0) {
        error_set(err, ERROR_MEMORY, "no memory for the engine");
        engine_destroy(engine);
        return NULL;
    }
    engine->sweep = copy.sweep;
    engine->stopping = stopping_create(&settings->stopping, err);
    if (!engine->stopping) {
        engine_destroy(engine);
        return NULL;
    }
    return engine;
}

struct engine *engine_create(const struct engine_settings *settings, const struct sweep_record *sweep,
                             struct now now, struct effects *effects, struct error *err)
{
    struct engine *engine = engine_allocate(settings, sweep, err);
    if (!engine)
        return NULL;
    engine_begin(engine, now, effects);
    engine_keep_sweep(engine);
    if (engine->total == 0)
        stopping_close(engine->stopping);
    if (engine_follow(engine, err) < 0) {
        engine_destroy(engine);
        return NULL;
    }
    return engine;
}

static void workers_release(struct engine *engine)
{
    for (size_t i = 0; i < engine->names.capacity; i++) {
        struct worker *next, *worker = engine->names.entries[i].value;
        for (; worker; worker = next) {
            next = worker->name_next;
            worker_release(worker);
        }
    }
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    for (size_t i = 0; engine->trials && i < engine->trial_capacity; i++)
        trial_release(engine->trials[i]);
    workers_release(engine);
    free(engine->trials);
    free(engine->dirty);
    heap_release(&engine->retries);
    heap_release(&engine->promotions);
    heap_release(&engine->ranking);
    engine_table_release(&engine->peers);
    engine_table_release(&engine->names);
    engine_table_release(&engine->blobs);
    stopping_destroy(engine->stopping);
    json_decref(engine->notes);
    record_release(&(struct record){.type = RECORD_SWEEP, .sweep = engine->sweep});
    free(engine);
}

void engine_begin(struct engine *engine, struct now now, struct effects *effects)
{
    engine->now = now;
    engine->effects = effects;
}

int engine_follow(struct engine *engine, struct error *err)
{
    bool failed = *engine->failure.message;
    while (!failed) {
        if (engine->stopping_changed)
            engine_settle(engine);
        attempt_answer(engine); /* before the slot it may free gets other work */
        engine_dispatch(engine);
        if (!engine->stopping_changed)
            engine_conclude(engine);
        failed = *engine->failure.message;
        if (!engine->stopping_changed)
            break;
    }
    if (!failed)
        engine_flush(engine);
    engine->effects->wake_ns =
        engine->lease_first ? engine->lease_first->heard_ns + engine->settings.lease_ns : INT64_MAX;
    engine->effects = NULL;
    if (*engine->failure.message)
        return error_set(err, engine->failure.code, "%s", engine->failure.message);
    return 0;
}

/* ---- events ---- */

/* What only a worker that said hello may send. */
static void worker_handle(struct engine *engine, peer_number peer, const struct message *message)
{
    struct worker *worker = engine_table_get(&engine->peers, peer);
    if (!worker) {
        if (message->type != MESSAGE_BYE)
            engine_send_error(engine, peer, "unknown_session", "say hello first");
        return;
    }
    worker_lease(engine, worker);
    switch (message->type) {
    case MESSAGE_READY:
        worker_ready(engine, worker, message);
        break;
    case MESSAGE_HEARTBEAT:
        worker_heartbeat(engine, worker, message);
        break;
    case MESSAGE_REPORT:
        attempt_report(engine, worker, message);
        break;
    case MESSAGE_ENDED:
        attempt_ended(engine, worker, message);
        break;
    default:
        worker_bye(engine, worker);
        break;
    }
}

static void message_handle(struct engine *engine, peer_number peer, const struct message *message)
{
    switch (message->type) {
    case MESSAGE_HELLO:
        worker_hello(engine, peer, message);
        break;
    case MESSAGE_READY:
    case MESSAGE_HEARTBEAT:
    case MESSAGE_REPORT:
    case MESSAGE_ENDED:
    case MESSAGE_BYE:
        worker_handle(engine, peer, message);
        break;
    case MESSAGE_STATUS:
    case MESSAGE_PAUSE:
    case MESSAGE_RESUME:
    case MESSAGE_STOP:
    case MESSAGE_QUERY:
        operator_handle(engine, peer, message);
        break;
    case MESSAGE_ERROR:
        break; /* never answered, or two sides would answer each other for ever */
    default:
        engine_send_error(engine, peer, "unknown_type", "a coordinator does not take this message");
        break;
    }
}

int engine_handle(struct engine *engine, const struct event *event, struct now now, struct effects *effects,
                  struct error *err)
{
    engine_begin(engine, now, effects);
    if (!*engine->failure.message) {
        switch (event->type) {
        case EVENT_MESSAGE:
            message_handle(engine, event->peer, event->message);
            break;
        case EVENT_TICK:
            engine_lapse_leases(engine);
            break;
        case EVENT_RENEW:
            engine_renew_leases(engine);
            break;
        case EVENT_WORKER_GONE:
            worker_gone(engine, event->worker);
            break;
        case EVENT_INTERRUPT:
            engine->interrupting = engine->draining = true;
            engine_drain_all(engine);
            break;
        }
    }
    return engine_follow(engine, err);
}

/* ---- queries ---- */

bool engine_has_ended(const struct engine *engine)
{
    return engine->ended;
}

bool engine_is_done(const struct engine *engine)
{
    return engine->ended && !engine->settings.linger && engine->live_workers == 0;
}

bool engine_is_quiet(const struct engine *engine)
{
    return engine->open_attempts == 0;
}

bool engine_was_handed_back(const struct engine *engine)
{
    for (const struct worker *worker = engine->lease_first; worker; worker = worker->lease_next)
        if (worker->has_peer && worker->held)
            return false;
    return true;
}

const struct trial_record *engine_trial(const struct engine *engine, int64_t number)
{
    const struct trial *trial = trial_find(engine, number);
    return trial ? &trial->record : NULL;
}

void engine_counts(const struct engine *engine, struct engine_counts *counts)
{
    const struct trial *best = heap_top(&engine->ranking);
    const struct trial *final = engine->trials[0];
    *counts = (struct engine_counts){
        .proposed = engine->proposed,
        .waiting = engine->state_counts[TRIAL_WAITING],
        .running = engine->state_counts[TRIAL_RUNNING],
        .paused = engine->state_counts[TRIAL_PAUSED],
        .completed = engine->state_counts[TRIAL_COMPLETED],
        .stopped = engine->state_counts[TRIAL_STOPPED],
        .failed = engine->state_counts[TRIAL_FAILED],
        .cancelled = engine->state_counts[TRIAL_CANCELLED],
        .total = engine->total,
        .workers = engine->live_workers,
        .slots = engine->known_slots,
        .busy_slots = engine->busy_slots,
        .ranked = (int64_t)engine->ranking.count,
        .best_trial = best ? best->record.number : 0,
        .best_objective = best ? best->record.objective : 0,
        .best_resource = best ? best->record.resource : 0,
        .resource_done = engine->resource_done,
        .state = engine->sweep.state,
        .refitting = engine->settings.final && final && !trial_state_is_end(final->record.state),
    };
}
