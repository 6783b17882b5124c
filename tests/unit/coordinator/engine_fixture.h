/* A small sweep around an engine: one parameter x in [0, 1], stepped time, no network. Verbs make messages
 * and hand them in; what the engine answered lies in `effects` (of the last event only). */
#ifndef RUNG_TESTS_ENGINE_FIXTURE_H
#define RUNG_TESTS_ENGINE_FIXTURE_H

#include "coordinator/engine.h"

struct engine_fixture {
    struct space space;
    struct parameter parameter;
    struct engine_settings settings;
    struct engine *engine;
    struct effects effects;
    struct now now;
    /* When set, called around every event: with fail_at before, with 0 behind; the event may then fail. */
    void (*fail_f)(long n);
    long fail_at;
    int result; /* of the last event */
    struct error err;
    struct record *rows; /* every record so far, by key */
    size_t row_count;
};

#define LEASE_NS (30 * NS_PER_SECOND)

/* A random sweep of `trials` that run to max_iter; metric "score", maximised. Change `settings`, then begin.
 */
void engine_fixture_init(struct engine_fixture *fixture, int64_t trials, int64_t max_iter);
void engine_fixture_halving(struct engine_fixture *fixture, enum stopping_kind kind, int64_t min_iter,
                            int64_t max_iter, double eta);
void engine_fixture_begin(struct engine_fixture *fixture);
/* Throws the engine away and recovers from the rows. */
void engine_fixture_restart(struct engine_fixture *fixture);
/* The rows as the store would hand them out. */
void engine_fixture_snapshot(const struct engine_fixture *fixture, struct snapshot *snapshot);
void engine_fixture_release(struct engine_fixture *fixture);

void pass_seconds(struct engine_fixture *fixture, double seconds); /* and a tick */
void send_event(struct engine_fixture *fixture, enum event_type type);
void send_gone(struct engine_fixture *fixture, const char *worker); /* EVENT_WORKER_GONE */
void send_message(struct engine_fixture *fixture, peer_number peer,
                  struct message *message); /* releases it */

/* session: one digit, repeated. running: pairs of trial, attempt; ends with 0 or NULL. */
void say_hello(struct engine_fixture *fixture, peer_number peer, const char *name, char session,
               const int64_t *running);
void say_ready(struct engine_fixture *fixture, peer_number peer, int64_t slot);
void say_heartbeat(struct engine_fixture *fixture, peer_number peer, const int64_t *running,
                   int64_t ready_slot);
void say_bye(struct engine_fixture *fixture, peer_number peer);
/* One report of {"score": score}. */
void say_report(struct engine_fixture *fixture, peer_number peer, int64_t trial, int64_t attempt,
                int64_t sequence, int64_t resource, double score);
/* checkpoint: one hex digit, repeated; 0: none. */
void say_ended(struct engine_fixture *fixture, peer_number peer, int64_t trial, int64_t attempt,
               int64_t sequence, enum outcome outcome, int64_t resource, char checkpoint);
/* hello and ready of slot 0 of worker "w<peer>". */
void attach(struct engine_fixture *fixture, peer_number peer);
/* Reports 1..until in one message each and ends it as finished: sequences from 1. */
void run_trial(struct engine_fixture *fixture, peer_number peer, int64_t trial, int64_t attempt,
               int64_t until, double score);

/* The last event's messages. */
size_t sent_count(const struct engine_fixture *fixture, enum message_type type);
const struct message *sent(const struct engine_fixture *fixture,
                           enum message_type type); /* the last of that type, or NULL */
/* Fails the test unless exactly this was assigned by the last event. */
void expect_assign(const struct engine_fixture *fixture, int64_t trial, int64_t attempt, int64_t start,
                   int64_t until);
void expect_acknowledge(const struct engine_fixture *fixture, int64_t sequence, enum action action,
                        int64_t until);
void expect_trial(const struct engine_fixture *fixture, int64_t trial, enum trial_state state,
                  enum trial_reason reason);
/* The attempt as it is stored. */
const struct attempt_record *stored_attempt(const struct engine_fixture *fixture, int64_t trial,
                                            int64_t attempt);
size_t stored_count(const struct engine_fixture *fixture, enum record_type type);

#endif
