/* Verbs that make a test of the engine read like a story. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

void engine_fixture_init(struct engine_fixture *fixture, int64_t trials, int64_t max_iter)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->parameter = (struct parameter){
        .name = (char *)"x", .distribution = DISTRIBUTION_UNIFORM, .minimum = 0, .maximum = 1};
    fixture->space = (struct space){.parameters = &fixture->parameter, .count = 1};
    fixture->now = (struct now){.monotonic_ns = 1000 * NS_PER_SECOND, .utc_ms = 1700000000000};
    fixture->settings = (struct engine_settings){
        .sweep_id = "abcd1234",
        .sweep_name = "digits",
        .sampler = &random_sampler,
        .space = &fixture->space,
        .stopping = {.kind = STOPPING_NONE,
                     .min_iter = max_iter,
                     .max_iter = max_iter,
                     .eta = 3,
                     .trials = trials,
                     .maximize = true},
        .seed = 7,
        .run_cap = trials,
        .metric = "score",
        .maximize = true,
        .devices_per_trial = 1,
        .trials_per_device = 1,
        .max_retries = 1,
        .max_losses = 3,
        .lease_ns = LEASE_NS,
        .heartbeat_ns = 2 * NS_PER_SECOND,
    };
    effects_init(&fixture->effects);
}

void engine_fixture_halving(struct engine_fixture *fixture, enum stopping_kind kind, int64_t min_iter,
                            int64_t max_iter, double eta)
{
    struct stopping_settings *stopping = &fixture->settings.stopping;
    stopping->kind = kind;
    stopping->min_iter = min_iter;
    stopping->max_iter = max_iter;
    stopping->eta = eta;
}

static bool same_row(const struct record *a, const struct record *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case RECORD_SWEEP:
        return true;
    case RECORD_TRIAL:
        return a->trial.number == b->trial.number;
    case RECORD_ATTEMPT:
        return a->attempt.trial == b->attempt.trial && a->attempt.number == b->attempt.number;
    case RECORD_REPORT:
        return a->report.trial == b->report.trial && a->report.resource == b->report.resource &&
               a->report.attempt == b->report.attempt;
    case RECORD_RUNG_ENTRY:
        return a->rung_entry.trial == b->rung_entry.trial && a->rung_entry.rung == b->rung_entry.rung;
    case RECORD_WORKER:
        return strcmp(a->worker.name, b->worker.name) == 0;
    }
    return false;
}

static void keep(struct engine_fixture *fixture)
{
    for (size_t i = 0; i < fixture->effects.record_count; i++) {
        const struct record *record = &fixture->effects.records[i];
        size_t at = 0;
        while (at < fixture->row_count && !same_row(&fixture->rows[at], record))
            at++;
        if (at == fixture->row_count)
            fixture->rows = realloc(fixture->rows, ++fixture->row_count * sizeof(*fixture->rows));
        else
            record_release(&fixture->rows[at]);
        assert_int_equal(record_copy(&fixture->rows[at], record), 0);
    }
}

void engine_fixture_begin(struct engine_fixture *fixture)
{
    struct sweep_record sweep = {.id = "abcd1234", .name = (char *)"digits", .seed = 7};
    struct error err = {0};
    fixture->engine = engine_create(&fixture->settings, &sweep, fixture->now, &fixture->effects, &err);
    if (!fixture->engine)
        fail_msg("engine_create: %s", err.message);
    keep(fixture);
}

static int compare_keys(const struct record *a, const struct record *b)
{
    int64_t left[3] = {0}, right[3] = {0};
    for (int side = 0; side < 2; side++) {
        const struct record *record = side ? b : a;
        int64_t *key = side ? right : left;
        if (record->type == RECORD_TRIAL) {
            key[0] = record->trial.number;
        } else if (record->type == RECORD_ATTEMPT) {
            key[0] = record->attempt.trial;
            key[1] = record->attempt.number;
        } else if (record->type == RECORD_REPORT) {
            key[0] = record->report.trial;
            key[1] = record->report.resource;
            key[2] = record->report.attempt;
        } else if (record->type == RECORD_RUNG_ENTRY) {
            key[0] = record->rung_entry.order;
        }
    }
    for (int i = 0; i < 3; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int compare_rows(const void *left, const void *right)
{
    const struct record *a = left, *b = right;
    return a->type != b->type ? (int)a->type - (int)b->type : compare_keys(a, b);
}

#define TAKE(array, count, member)                                                                           \
    do {                                                                                                     \
        (array) = realloc((array), ((count) + 1) * sizeof(*(array)));                                        \
        (array)[(count)++] = copy.member;                                                                    \
    } while (0)

void engine_fixture_snapshot(const struct engine_fixture *fixture, struct snapshot *snapshot)
{
    memset(snapshot, 0, sizeof(*snapshot));
    qsort(fixture->rows, fixture->row_count, sizeof(*fixture->rows), compare_rows);
    for (size_t i = 0; i < fixture->row_count; i++) {
        struct record copy;
        assert_int_equal(record_copy(&copy, &fixture->rows[i]), 0);
        switch (copy.type) {
        case RECORD_SWEEP:
            snapshot->sweep = copy.sweep;
            break;
        case RECORD_TRIAL:
            TAKE(snapshot->trials, snapshot->trial_count, trial);
            break;
        case RECORD_ATTEMPT:
            TAKE(snapshot->attempts, snapshot->attempt_count, attempt);
            break;
        case RECORD_REPORT:
            TAKE(snapshot->reports, snapshot->report_count, report);
            break;
        case RECORD_RUNG_ENTRY:
            TAKE(snapshot->rung_entries, snapshot->rung_entry_count, rung_entry);
            break;
        case RECORD_WORKER:
            TAKE(snapshot->workers, snapshot->worker_count, worker);
            break;
        }
    }
}

void engine_fixture_restart(struct engine_fixture *fixture)
{
    struct snapshot snapshot;
    struct error err = {0};
    engine_fixture_snapshot(fixture, &snapshot);
    engine_destroy(fixture->engine);
    effects_clear(&fixture->effects);
    fixture->engine = engine_restore(&fixture->settings, &snapshot, fixture->now, &fixture->effects, &err);
    if (!fixture->engine)
        fail_msg("engine_restore: %s", err.message);
    keep(fixture);
    snapshot_release(&snapshot);
}

void engine_fixture_release(struct engine_fixture *fixture)
{
    engine_destroy(fixture->engine);
    effects_release(&fixture->effects);
    for (size_t i = 0; i < fixture->row_count; i++)
        record_release(&fixture->rows[i]);
    free(fixture->rows);
}

static void handle(struct engine_fixture *fixture, const struct event *event)
{
    effects_clear(&fixture->effects);
    fixture->err = (struct error){0};
    if (fixture->fail_f)
        fixture->fail_f(fixture->fail_at);
    fixture->result = engine_handle(fixture->engine, event, fixture->now, &fixture->effects, &fixture->err);
    if (fixture->fail_f)
        fixture->fail_f(0);
    if (fixture->result == 0)
        keep(fixture);
    else if (!fixture->fail_f)
        fail_msg("engine_handle: %s", fixture->err.message);
}

void send_event(struct engine_fixture *fixture, enum event_type type)
{
    handle(fixture, &(struct event){.type = type});
}

void send_gone(struct engine_fixture *fixture, const char *worker)
{
    handle(fixture, &(struct event){.type = EVENT_WORKER_GONE, .worker = worker});
}

void send_message(struct engine_fixture *fixture, peer_number peer, struct message *message)
{
    handle(fixture, &(struct event){.type = EVENT_MESSAGE, .peer = peer, .message = message});
    message_release(message);
}

void pass_seconds(struct engine_fixture *fixture, double seconds)
{
    fixture->now.monotonic_ns += (int64_t)(seconds * (double)NS_PER_SECOND);
    fixture->now.utc_ms += (int64_t)(seconds * 1000);
    send_event(fixture, EVENT_TICK);
}

static void running_set(struct message *message, const int64_t *running)
{
    while (running && running[message->running_count * 2])
        message->running_count++;
    message->running = calloc(message->running_count + 1, sizeof(*message->running));
    for (size_t i = 0; i < message->running_count; i++)
        message->running[i] =
            (struct running_attempt){.trial = running[i * 2], .attempt = running[i * 2 + 1]};
}

void say_hello(struct engine_fixture *fixture, peer_number peer, const char *name, char session,
               const int64_t *running)
{
    struct message message;
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = strdup(name);
    message.host = strdup("host");
    message.devices = calloc(1, sizeof(*message.devices));
    message.device_count = 1;
    message.devices->id = strdup("cpu:0");
    message.devices->kind = strdup("cpu");
    message.session = calloc(1, SESSION_SIZE);
    memset(message.session, session, SESSION_SIZE - 1);
    running_set(&message, running);
    send_message(fixture, peer, &message);
}

void say_ready(struct engine_fixture *fixture, peer_number peer, int64_t slot)
{
    struct message message;
    message_init(&message, MESSAGE_READY);
    message.slot = slot;
    message.lanes = 1;
    send_message(fixture, peer, &message);
}

void say_heartbeat(struct engine_fixture *fixture, peer_number peer, const int64_t *running,
                   int64_t ready_slot)
{
    struct message message;
    message_init(&message, MESSAGE_HEARTBEAT);
    running_set(&message, running);
    if (ready_slot >= 0)
        message.ready_slots = json_pack("[I]", (json_int_t)ready_slot);
    send_message(fixture, peer, &message);
}

void say_bye(struct engine_fixture *fixture, peer_number peer)
{
    struct message message;
    message_init(&message, MESSAGE_BYE);
    send_message(fixture, peer, &message);
}

void say_report(struct engine_fixture *fixture, peer_number peer, int64_t trial, int64_t attempt,
                int64_t sequence, int64_t resource, double score)
{
    struct message message;
    message_init(&message, MESSAGE_REPORT);
    message.trial = trial;
    message.attempt = attempt;
    message.sequence = sequence;
    message.reports = calloc(1, sizeof(*message.reports));
    message.report_count = 1;
    message.reports[0] = (struct reported){.resource = resource, .seconds = 0.5, .metrics = json_object()};
    json_object_set_new(message.reports[0].metrics, "score", json_number(score));
    send_message(fixture, peer, &message);
}

void say_ended(struct engine_fixture *fixture, peer_number peer, int64_t trial, int64_t attempt,
               int64_t sequence, enum outcome outcome, int64_t resource, char checkpoint)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.trial = trial;
    message.attempt = attempt;
    message.sequence = sequence;
    message.outcome = outcome;
    message.resource = resource;
    if (checkpoint) {
        message.checkpoint = calloc(1, 65);
        memset(message.checkpoint, checkpoint, 64);
        message.checkpoint_bytes = 100;
    }
    send_message(fixture, peer, &message);
}

void attach(struct engine_fixture *fixture, peer_number peer)
{
    char name[24];
    snprintf(name, sizeof(name), "w%d", (int)peer);
    say_hello(fixture, peer, name, '1', NULL);
    assert_non_null(sent(fixture, MESSAGE_WELCOME));
    say_ready(fixture, peer, 0);
}

void run_trial(struct engine_fixture *fixture, peer_number peer, int64_t trial, int64_t attempt,
               int64_t until, double score)
{
    for (int64_t resource = 1; resource <= until; resource++) {
        say_report(fixture, peer, trial, attempt, resource, resource, score);
        expect_acknowledge(fixture, resource, ACTION_CONTINUE, until);
    }
    say_ended(fixture, peer, trial, attempt, until + 1, OUTCOME_FINISHED, until, 0);
    expect_acknowledge(fixture, until + 1, ACTION_STOP, until);
}

size_t sent_count(const struct engine_fixture *fixture, enum message_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < fixture->effects.message_count; i++)
        count += fixture->effects.messages[i].message.type == type;
    return count;
}

const struct message *sent(const struct engine_fixture *fixture, enum message_type type)
{
    for (size_t i = fixture->effects.message_count; i-- > 0;)
        if (fixture->effects.messages[i].message.type == type)
            return &fixture->effects.messages[i].message;
    return NULL;
}

void expect_assign(const struct engine_fixture *fixture, int64_t trial, int64_t attempt, int64_t start,
                   int64_t until)
{
    assert_int_equal(sent_count(fixture, MESSAGE_ASSIGN), 1);
    const struct message *message = sent(fixture, MESSAGE_ASSIGN);
    assert_int_equal(message->trial_count, 1);
    assert_int_equal(message->trials[0].trial, trial);
    assert_int_equal(message->trials[0].attempt, attempt);
    assert_int_equal(message->trials[0].start, start);
    assert_int_equal(message->trials[0].until, until);
}

void expect_acknowledge(const struct engine_fixture *fixture, int64_t sequence, enum action action,
                        int64_t until)
{
    const struct message *message = sent(fixture, MESSAGE_ACKNOWLEDGE);
    assert_non_null(message);
    assert_int_equal(message->sequence, sequence);
    assert_int_equal(message->action, action);
    assert_int_equal(message->until, until);
}

void expect_trial(const struct engine_fixture *fixture, int64_t trial, enum trial_state state,
                  enum trial_reason reason)
{
    const struct trial_record *record = engine_trial(fixture->engine, trial);
    assert_non_null(record);
    assert_string_equal(trial_state_name(record->state), trial_state_name(state));
    assert_string_equal(trial_reason_name(record->reason), trial_reason_name(reason));
}

const struct attempt_record *stored_attempt(const struct engine_fixture *fixture, int64_t trial,
                                            int64_t attempt)
{
    for (size_t i = 0; i < fixture->row_count; i++)
        if (fixture->rows[i].type == RECORD_ATTEMPT && fixture->rows[i].attempt.trial == trial &&
            fixture->rows[i].attempt.number == attempt)
            return &fixture->rows[i].attempt;
    return NULL;
}

size_t stored_count(const struct engine_fixture *fixture, enum record_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < fixture->row_count; i++)
        count += fixture->rows[i].type == type;
    return count;
}
