/* Workers: who they are, their sessions, and their own account of what they run. */
#include "coordinator/engine_state.h"
#include "base/random.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static uint64_t name_key(const char *name)
{
    return fnv1a64(name, strlen(name));
}

struct worker *worker_find(struct engine *engine, const char *name)
{
    struct worker *worker = engine_table_get(&engine->names, name_key(name));
    while (worker && strcmp(worker->record.name, name) != 0)
        worker = worker->name_next;
    return worker;
}

struct worker *worker_add(struct engine *engine, const char *name)
{
    struct worker *worker = calloc(1, sizeof(*worker));
    if (worker) {
        worker->record.name = strdup(name);
        worker->record.first_ms = engine->now.utc_ms;
        worker->name_next = engine_table_get(&engine->names, name_key(name));
    }
    if (!worker || !worker->record.name || engine_table_put(&engine->names, name_key(name), worker) < 0) {
        engine_fail_memory(engine);
        worker_release(worker);
        return NULL;
    }
    return worker;
}

void worker_release(struct worker *worker)
{
    if (!worker)
        return;
    for (size_t i = 0; i < worker->slot_count; i++)
        free(worker->slots[i]);
    free(worker->slots);
    struct record record = {.type = RECORD_WORKER, .worker = worker->record};
    record_release(&record);
    free(worker);
}

/* ---- the end of a session ---- */

static void attempt_lose(struct engine *engine, struct trial *trial, enum outcome outcome)
{
    attempt_close(engine, trial, outcome);
    trial_attempt_over(engine, trial, outcome);
}

/* The session is over. What it held is lost, except what it never got to hear of. */
static void worker_leave(struct engine *engine, struct worker *worker)
{
    while (worker->held && !*engine->failure.message)
        attempt_lose(engine, worker->held, worker->held->seen ? OUTCOME_LOST : OUTCOME_INTERRUPTED);
    worker_forget_slots(engine, worker);
    worker_unlease(engine, worker);
    if (worker->has_peer)
        engine_table_remove(&engine->peers, worker->peer);
    worker->has_peer = false;
    worker->record.connected = false;
    worker->record.last_ms = engine->now.utc_ms;
    engine_keep_worker(engine, worker);
}

void engine_lapse_leases(struct engine *engine)
{
    int64_t oldest = engine->now.monotonic_ns - engine->settings.lease_ns;
    while (engine->lease_first && engine->lease_first->heard_ns <= oldest && !*engine->failure.message) {
        struct worker *worker = engine->lease_first;
        for (struct trial *trial = worker->held; trial; trial = trial->held_next)
            trial->seen = true; /* nothing was heard, so it may well run there */
        worker_leave(engine, worker);
    }
}

void worker_bye(struct engine *engine, struct worker *worker)
{
    worker_leave(engine, worker);
}

/* What it was not heard of since a restart of the coordinator ended with that one: no loss of its own. */
void worker_gone(struct engine *engine, const char *name)
{
    struct worker *worker = worker_find(engine, name);
    if (worker && worker->alive)
        worker_leave(engine, worker);
}

void worker_drain(struct engine *engine, struct worker *worker)
{
    struct message *message = worker->has_peer ? engine_send(engine, worker->peer, MESSAGE_DRAIN) : NULL;
    worker->drained = true;
    for (size_t i = 0; i < worker->slot_count; i++)
        if (worker->slots[i])
            slot_set_idle(engine, worker->slots[i], false);
    if (!message)
        return;
    message->now = engine->draining;
    message->wait = engine->interrupting && !engine->ended;
    if (engine->interrupting)
        message->reason = engine_text(engine, "coordinator interrupted");
    else
        message->reason =
            engine_text(engine, engine->sweep.state == SWEEP_FINISHED ? "sweep finished" : "sweep stopped");
}

void engine_drain_all(struct engine *engine)
{
    for (struct worker *worker = engine->lease_first; worker; worker = worker->lease_next)
        worker_drain(engine, worker);
}

/* ---- accounts ---- */

/* Stamps the attempts a worker says it holds; tells it to stop those it should not. */
static void account_take(struct engine *engine, struct worker *worker, const struct message *message)
{
    engine->stamp++;
    for (size_t i = 0; i < message->running_count; i++) {
        const struct running_attempt *listed = &message->running[i];
        struct trial *trial = trial_find(engine, listed->trial);
        bool known = trial && listed->attempt >= 1 && listed->attempt <= trial->attempt_count &&
                     trial->attempts[listed->attempt - 1].worker == worker;
        if (!known) {
            attempt_dismiss(engine, worker, listed->trial, listed->attempt, listed->sequence);
            continue;
        }
        bool open = trial->holder && listed->attempt == trial->attempt_count;
        if (open) {
            trial->stamp = engine->stamp;
            trial->seen = true;
        }
        if (!open || trial_is_told_to_stop(trial))
            attempt_acknowledge(engine, worker, trial, listed->attempt);
    }
}

/* What the worker should hold but does not: sent again where the slot is known, else given to somebody else.
 */
static void account_mend(struct engine *engine, struct worker *worker, enum outcome outcome)
{
    struct trial *next;
    for (struct trial *trial = worker->held; trial && !*engine->failure.message; trial = next) {
        next = trial->held_next;
        if (trial->stamp == engine->stamp)
            continue;
        if (trial->slot)
            engine_send_assign(engine, trial);
        else
            attempt_lose(engine, trial, outcome);
    }
}

/* ---- messages ---- */

static json_t *devices_json(struct engine *engine, const struct message *message)
{
    json_t *devices = json_array();
    for (size_t i = 0; devices && i < message->device_count; i++) {
        const struct device_description *device = &message->devices[i];
        json_t *item = json_pack("{s:s?, s:s?, s:s?, s:I, s:b, s:s*}", "id", device->id, "kind", device->kind,
                                 "name", device->name, "memory_bytes", (json_int_t)device->memory_bytes,
                                 "bf16", (int)device->bf16, "fault", device->fault);
        if (json_array_append_new(devices, item) < 0)
            engine_fail_memory(engine);
    }
    return devices;
}

/* A device that was given up shows in the worker's record. */
static void faults_keep(struct engine *engine, struct worker *worker, const struct message *message)
{
    bool faulty = false;
    for (size_t i = 0; i < message->device_count; i++)
        faulty = faulty || message->devices[i].fault;
    json_t *devices = faulty ? devices_json(engine, message) : NULL;
    if (devices && !json_equal(devices, worker->record.devices)) {
        json_decref(worker->record.devices);
        worker->record.devices = json_incref(devices);
        engine_keep_worker(engine, worker);
    }
    json_decref(devices);
}

static void worker_describe(struct engine *engine, struct worker *worker, const struct message *message)
{
    struct worker_record *record = &worker->record;
    free(record->session);
    free(record->host);
    free(record->version);
    json_decref(record->devices);
    record->session = engine_text(engine, message->session);
    record->host = engine_text(engine, message->host ? message->host : "");
    record->version = engine_text(engine, message->version ? message->version : "");
    record->devices = devices_json(engine, message);
    record->last_ms = engine->now.utc_ms;
    record->connected = true;
    engine_keep_worker(engine, worker);
}

static void welcome_send(struct engine *engine, peer_number peer)
{
    const struct engine_settings *settings = &engine->settings;
    struct message *message = engine_send(engine, peer, MESSAGE_WELCOME);
    if (!message)
        return;
    char seed[24];
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)settings->seed);
    message->sweep = engine_text(engine, settings->sweep_id);
    message->sweep_name = engine_text(engine, settings->sweep_name);
    message->devices_per_trial = settings->devices_per_trial;
    message->trials_per_device = settings->trials_per_device;
    message->heartbeat_seconds = (double)settings->heartbeat_ns / (double)NS_PER_SECOND;
    message->lease_seconds = (double)settings->lease_ns / (double)NS_PER_SECOND;
    message->train = precision_train(engine);
    message->metric = engine_text(engine, settings->metric);
    message->maximize = settings->maximize;
    message->objective = engine_text(engine, settings->objective_best ? "best" : "last");
    message->seed = engine_text(engine, seed);
}

/* Gives the name to this session and peer. The open attempts that the old session held and the new one does
 * not are lost. */
static void session_take(struct engine *engine, struct worker *worker, peer_number peer,
                         const struct message *message)
{
    bool same = worker->record.session && strcmp(worker->record.session, message->session) == 0;
    if (worker->has_peer && worker->peer != peer)
        engine_table_remove(&engine->peers, worker->peer);
    worker->has_peer = true;
    worker->peer = peer;
    if (engine_table_put(&engine->peers, peer, worker) < 0)
        engine_fail_memory(engine);
    if (!same)
        worker_forget_slots(engine, worker);
    if (!same || !worker->record.connected)
        worker_describe(engine, worker, message);
    precision_decide(engine, message);
    worker->drained = false;
    worker_lease(engine, worker);
    welcome_send(engine, peer);
    account_take(engine, worker, message);
    account_mend(engine, worker, same ? OUTCOME_INTERRUPTED : OUTCOME_LOST);
}

/* A peer that was another worker: that worker goes on without a peer until it says hello itself, or lapses.
 */
static void peer_leave_other(struct engine *engine, peer_number peer, const struct worker *worker)
{
    struct worker *other = engine_table_get(&engine->peers, peer);
    if (!other || other == worker)
        return;
    engine_table_remove(&engine->peers, peer);
    other->has_peer = false;
    for (size_t i = 0; i < other->slot_count; i++)
        if (other->slots[i])
            slot_set_idle(engine, other->slots[i], false);
}

void worker_hello(struct engine *engine, peer_number peer, const struct message *message)
{
    if (message->protocol != PROTOCOL_VERSION) {
        engine_send_error(engine, peer, "protocol",
                          "this coordinator speaks protocol 1: use the same version of rung");
        return;
    }
    if (!message->worker || !message->session || strlen(message->session) != SESSION_SIZE - 1) {
        engine_send_error(engine, peer, "malformed",
                          "hello needs a worker's name and a session of 16 hex digits");
        return;
    }
    if (message->device_count > SLOT_LIMIT) {
        engine_send_error(engine, peer, "malformed", "a worker has at most 4096 devices");
        return;
    }
    if (!text_is_printable(message->worker)) {
        engine_send_error(engine, peer, "malformed", "a worker's name has no control characters");
        return;
    }
    struct worker *worker = worker_find(engine, message->worker);
    bool same = worker && worker->record.session && strcmp(worker->record.session, message->session) == 0;
    if (worker && worker->alive && !same) {
        engine_send_error(engine, peer, "name_taken",
                          "a live worker has this name, or one whose lease has not lapsed yet");
        return;
    }
    if (!worker && !(worker = worker_add(engine, message->worker)))
        return;
    peer_leave_other(engine, peer, worker);
    session_take(engine, worker, peer, message);
    if (engine->ended || engine->draining)
        worker_drain(engine, worker);
}

void worker_ready(struct engine *engine, struct worker *worker, const struct message *message)
{
    if (engine->ended || engine->draining)
        worker_drain(engine, worker); /* it has not heard the first */
    else
        worker_slot_ready(engine, worker, message->slot);
}

void worker_heartbeat(struct engine *engine, struct worker *worker, const struct message *message)
{
    worker_lose_slots(engine, worker, message);
    faults_keep(engine, worker, message);
    account_take(engine, worker, message);
    account_mend(engine, worker, OUTCOME_LOST);
    if (engine->ended || engine->draining) {
        worker_drain(engine, worker);
        return;
    }
    size_t i;
    json_t *number;
    json_array_foreach(message->ready_slots, i, number) if (json_is_integer(number))
        worker_slot_ready(engine, worker, json_integer_value(number));
}
