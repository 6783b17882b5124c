/* The engine: decides everything, does nothing. A pure state machine: events in, effects out; no clock, no
 * socket, no disk, no rand(). The same events in the same order give the same effects.
 *
 * Trial states (moves.c holds the one table of allowed moves, checked on every move):
 *
 *   waiting -> running -> paused -> waiting (promoted) ...
 *      |          |  \-> waiting (interrupted, lost or crashed with retries left)
 *      |          |--> completed/finished
 *      |          |--> stopped/pruned|threshold|user
 *      |          \--> failed/diverged|out_of_memory|timed_out|crashed|no_metric|invalid|lost
 *      |--> cancelled/user          paused --> stopped/pruned|user
 *      \--> stopped/pruned|user     (its rung closed, or the sweep was stopped, while it waited to go on)
 *
 * Contract with the server: all records of a turn are committed in one transaction BEFORE any message of that
 * turn is sent; a failed commit is retried with the same records. Answers are functions of stored state. */
#ifndef RUNG_COORDINATOR_ENGINE_H
#define RUNG_COORDINATOR_ENGINE_H

#include "base/clock.h"
#include "base/error.h"
#include "coordinator/record.h"
#include "search/sampler.h"
#include "search/stopping.h"
#include "wire/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A peer is a number given by the server: one per live routing id, never reused in a process. */
typedef uint64_t peer_number;

/* What the engine needs of the spec, borrowed for its life (pointers must stay valid). */
struct engine_settings {
    char sweep_id[SWEEP_ID_SIZE];
    const char *sweep_name;
    const struct sampler_methods *sampler;
    const struct space *space;
    struct stopping_settings stopping;
    uint64_t seed;
    int64_t run_cap;                 /* -1: none */
    const char *metric, *tie_metric; /* may be NULL */
    bool maximize;
    bool objective_best;
    const json_t *train; /* sent in welcome */
    const json_t *final; /* `final` of the spec: {"refit","seeds","epochs"}, or NULL: no refit */
    bool baseline;       /* a linear model is trained too, once the search is over */
    int64_t devices_per_trial, trials_per_device;
    int64_t max_retries; /* crashed */
    int64_t max_losses;  /* lost: 3 */
    int64_t lease_ns, heartbeat_ns;
    bool linger; /* keep serving after the sweep has ended */
};

enum event_type {
    EVENT_MESSAGE,     /* from a peer */
    EVENT_TICK,        /* time passed: leases may lapse. Only after the sockets were drained */
    EVENT_RENEW,       /* the server slept more than 1 s or restarted: every lease starts again in full */
    EVENT_WORKER_GONE, /* a worker is known to have ended: nobody waits for its lease */
    EVENT_INTERRUPT, /* the server is going away: workers checkpoint and hand back; the sweep stays resumable
                      */
};

struct event {
    enum event_type type;
    peer_number peer;              /* EVENT_MESSAGE */
    const struct message *message; /* borrowed during the call */
    const char *worker;            /* EVENT_WORKER_GONE: its name */
};

struct outgoing {
    peer_number peer;
    struct message message; /* owned by the effects */
};

/* What an attempt printed, as its end told it. Owned by the effects; a text may be NULL, not both. */
struct attempt_log {
    int64_t trial, attempt;
    char *out, *err;
};

/* What one turn gathers; many events may append to one. Owned by the caller, emptied with effects_clear. */
struct effects {
    struct record *records;
    size_t record_count, record_capacity;
    struct outgoing *messages;
    size_t message_count, message_capacity;
    char (*unneeded_blobs)[65]; /* checkpoints that no trial can need any more: delete AFTER the commit */
    size_t unneeded_count, unneeded_capacity;
    struct attempt_log *logs; /* to keep AFTER the commit */
    size_t log_count, log_capacity;
    int64_t wake_ns; /* monotonic: call EVENT_TICK no later than this; INT64_MAX: no need */
};
void effects_init(struct effects *effects);
void effects_clear(struct effects *effects); /* keeps the capacity */
void effects_release(struct effects *effects);

struct engine;
/* A new sweep: appends its first records to `effects`. */
struct engine *engine_create(const struct engine_settings *settings, const struct sweep_record *sweep,
                             struct now now, struct effects *effects, struct error *err);
/* From the store's rows; running attempts keep their lease in full from `now` and meet the workers' own
 * accounts. */
struct engine *engine_restore(const struct engine_settings *settings, const struct snapshot *snapshot,
                              struct now now, struct effects *effects, struct error *err);
void engine_destroy(struct engine *engine);

/* 0, or -1 (ERROR_MEMORY; ERROR_INTERNAL: a broken invariant, the text says which). On -1 the server must
 * stop and recover from the store. Bad messages are answered with MESSAGE_ERROR and are not a failure. */
int engine_handle(struct engine *engine, const struct event *event, struct now now, struct effects *effects,
                  struct error *err);

/* The sweep has ended (every trial has, and no more come) and, unless it lingers, no worker remains to be
 * told. */
bool engine_is_done(const struct engine *engine);
bool engine_has_ended(const struct engine *engine);
/* No attempt is running. */
bool engine_is_quiet(const struct engine *engine);
/* No attempt is in the hands of a worker that has said hello to this process: after EVENT_INTERRUPT the
 * server may go. What others still run is as it was before. */
bool engine_was_handed_back(const struct engine *engine);

struct engine_counts {
    int64_t proposed, waiting, running, paused, completed, stopped, failed, cancelled;
    int64_t total; /* trials the sweep will have; -1 unknown */
    int64_t workers, slots, busy_slots;
    int64_t ranked;     /* trials with a finite objective */
    int64_t best_trial; /* 0: none */
    double best_objective;
    int64_t best_resource;
    double resource_done; /* units trained so far */
    enum sweep_state state;
    bool refitting; /* the winner is being trained again */
};
void engine_counts(const struct engine *engine, struct engine_counts *counts);
/* Status as JSON, answered to MESSAGE_STATUS too. `worker_list`, by name, has every worker that ever took
 * part. New reference; NULL: no memory. */
json_t *engine_status(const struct engine *engine, struct now now);
/* Borrowed view of a trial, or NULL. */
const struct trial_record *engine_trial(const struct engine *engine, int64_t number);

#endif
