/* Inside the engine: its state, shared by the engine_*.c files and by nobody else.
 *
 *   engine.c            life, events, the loop that follows every event
 *   engine_restore.c    from a snapshot
 *   engine_check.c      whether a snapshot can be what an engine kept
 *   engine_effects.c    records and messages out
 *   engine_worker.c     hello, heartbeat, bye
 *   engine_lease.c      leases, slots
 *   engine_attempt.c    report, ended: sequences and answers
 *   engine_trial.c      a trial's life, and what the end of an attempt makes of it
 *   engine_rung.c       what its reports lead to at a rung
 *   engine_curve.c      curves and objectives
 *   engine_checkpoint.c which blobs are needed
 *   engine_work.c       what a free slot gets; promotions, prunes, the end
 *   engine_final.c      the winner's refit, and the baseline
 *   engine_precision.c  what `precision: auto` is
 *   engine_operator.c   status, pause, resume, stop
 *
 * Failures (no memory, a broken invariant) are sticky: a function notes the first in engine->failure and goes
 * on; engine_handle returns it. The state is then thrown away, so nothing needs undoing. */
#ifndef RUNG_COORDINATOR_ENGINE_STATE_H
#define RUNG_COORDINATOR_ENGINE_STATE_H

#include "coordinator/engine.h"
#include "coordinator/engine_table.h"

#define SLOT_LIMIT 4096               /* slots of one worker; a larger number in a message is a mistake */
#define NOTE_LIMIT 20                 /* notes kept for status */
#define FINAL_EPOCHS_LIMIT 1000000000 /* of the refit: final.epochs, epochs */

struct slot {
    struct worker *worker;
    int64_t number;
    struct trial *trial; /* whose newest attempt it runs, as far as we know */
    bool idle;           /* said ready, has no work: in the engine's list */
    bool suspect;        /* its last attempt ended with its device failing */
    struct slot *previous, *next;
};

struct worker {
    struct worker_record record;
    bool alive;    /* has a lease */
    bool has_peer; /* said hello to this process */
    peer_number peer;
    int64_t heard_ns;
    bool drained;        /* was told to take no more */
    struct slot **slots; /* by number; NULL where unknown */
    size_t slot_count;
    struct trial *held;                         /* open attempts: list through trial.held_next */
    struct worker *lease_previous, *lease_next; /* by heard_ns */
    struct worker *name_next;                   /* same hash of the name */
};

struct attempt {
    struct worker *worker;
    char session[SESSION_SIZE];
    char *device, *error;
    char *details; /* JSON text: what it was trained with */
    int64_t slot;  /* it was begun in; -1: not known (it began before a restart) */
    int64_t start, until;
    int64_t started_ms, ended_ms;
    int64_t last_sequence;
    int64_t reached; /* highest resource it reported */
    enum outcome outcome;
    double seconds;
    bool device_failed; /* crashed, and its device with it */
    bool is_dirty;
};

struct point {
    int64_t resource, attempt;
    bool has_value;
    double value, tie;
};

enum queue { QUEUE_NONE, QUEUE_RETRY, QUEUE_PROMOTION };

struct trial {
    struct trial_record record;
    struct attempt *attempts; /* attempt n at index n-1 */
    int64_t attempt_count;
    struct rung_entry_record *entries; /* of rung r at index r */
    int entry_count;
    struct point *curve; /* ascending resource; freed at the trial's end */
    size_t curve_count, curve_capacity;
    int64_t best_resource; /* where the best value of the curve stands */
    double best_value;
    bool has_best;
    bool has_metric; /* the metric was in a report */
    bool must_stop;  /* pruned, but its attempt has not ended yet */
    bool is_resting; /* counted in engine.resting */
    bool is_pausing; /* its newest attempt was left at its rung, without a slot: its checkpoint is to come */
    bool is_dirty;
    enum queue queue;
    size_t queue_position, rank_position;
    double rank_key;     /* objective, lower is better */
    char (*orphans)[65]; /* checkpoints that older attempts sent too late: deleted at the trial's end */
    size_t orphan_count;

    /* The newest attempt while it is open (its worker has not ended or lost it). */
    struct worker *holder;
    struct slot *slot; /* NULL: not known (it began before a restart) */
    bool seen;         /* the worker said that it holds it */
    uint64_t stamp;    /* of the last list that named it */
    struct trial *held_previous, *held_next;
};

struct dirty {
    struct trial *trial;
    int64_t attempt; /* 0: the trial itself */
};

struct engine {
    struct engine_settings settings;
    struct sweep_record sweep;
    struct stopping *stopping;
    bool pauses; /* the rule pauses at rungs */

    struct trial **trials; /* by number; 0 is the refit */
    int64_t proposed;      /* trials 1..proposed exist */
    size_t trial_capacity;
    int64_t total; /* trials the sweep will have; -1 without bound */
    int64_t state_counts[TRIAL_CANCELLED + 1];
    int64_t resting; /* running, but not going to report any more unless they are promoted */
    int64_t entry_order;
    double resource_done;
    struct heap retries, promotions, ranking;
    struct trial *best_ended; /* its checkpoint stays */

    struct table peers; /* peer number -> worker */
    struct table names; /* FNV-1a of the name -> worker */
    struct table blobs; /* first 64 bits of a hash -> number of trials that name it */
    struct worker *lease_first, *lease_last;
    struct slot *idle_first, *idle_last;
    int64_t live_workers, busy_slots, known_slots, open_attempts;
    uint64_t stamp;

    bool interrupting;
    bool draining;         /* workers were told to take no more and to hand back what runs */
    bool starved;          /* idle slots were offered all work there is */
    bool stopping_changed; /* promotions and prunes may be due */
    bool ended;
    json_t *notes;

    /* During one call. */
    struct trial *reported; /* to be answered once what follows from the report is known */
    const struct worker *reporter;
    int64_t reported_attempt;
    struct effects *effects;
    struct now now;
    struct dirty *dirty;
    size_t dirty_count, dirty_capacity;
    struct error failure;
};

/* engine.c */
void engine_fail_memory(struct engine *engine);
void engine_fail(struct engine *engine, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct engine *engine_allocate(const struct engine_settings *settings, const struct sweep_record *sweep,
                               struct error *err);
void engine_begin(struct engine *engine, struct now now, struct effects *effects);
int engine_follow(struct engine *engine, struct error *err); /* all that follows an event */
void engine_note(struct engine *engine, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* engine_check.c */
/* -1: err (ERROR_RESOURCE) says which row cannot be. */
int engine_check_snapshot(const struct engine_settings *settings, const struct snapshot *snapshot,
                          struct error *err);
/* The highest resource that a trial, or the refit, can come to. */
int64_t engine_resource_limit(const struct engine_settings *settings, bool is_final);

/* engine_effects.c */
struct message *engine_send(struct engine *engine, peer_number peer,
                            enum message_type type);          /* NULL: failed */
char *engine_text(struct engine *engine, const char *string); /* copy; NULL stays NULL */
void engine_send_error(struct engine *engine, peer_number peer, const char *code, const char *text);
void engine_mark_trial(struct engine *engine, struct trial *trial);
void engine_mark_attempt(struct engine *engine, struct trial *trial, int64_t attempt);
void engine_flush(struct engine *engine);
void engine_keep_sweep(struct engine *engine);
void engine_keep_worker(struct engine *engine, const struct worker *worker);
void engine_keep_report(struct engine *engine, const struct report_record *report);
void engine_keep_log(struct engine *engine, int64_t trial, int64_t attempt, const char *out, const char *err);
void engine_keep_entry(struct engine *engine, const struct rung_entry_record *entry);

/* engine_worker.c */
struct worker *worker_find(struct engine *engine, const char *name);
struct worker *worker_add(struct engine *engine, const char *name);
void worker_release(struct worker *worker);
void worker_hello(struct engine *engine, peer_number peer, const struct message *message);
void worker_ready(struct engine *engine, struct worker *worker, const struct message *message);
void worker_heartbeat(struct engine *engine, struct worker *worker, const struct message *message);
void worker_bye(struct engine *engine, struct worker *worker);
void worker_gone(struct engine *engine, const char *name);
void worker_drain(struct engine *engine, struct worker *worker);
void engine_drain_all(struct engine *engine);
void engine_lapse_leases(struct engine *engine);

/* engine_lease.c */
void worker_lease(struct engine *engine, struct worker *worker); /* (re)starts its lease */
void worker_unlease(struct engine *engine, struct worker *worker);
void engine_renew_leases(struct engine *engine);
void slot_set_idle(struct engine *engine, struct slot *slot, bool idle);
void slot_take(struct engine *engine, struct slot *slot, struct trial *trial);
/* Takes the slot from its trial, whose attempt needs it no more, and offers it for other work. */
void slot_vacate(struct engine *engine, struct slot *slot);
/* Forgets a session's slots; its open attempts have been closed or are known to be held elsewhere. */
void worker_forget_slots(struct engine *engine, struct worker *worker);
void worker_slot_ready(struct engine *engine, struct worker *worker, int64_t number);
/* The slots whose devices its worker has given up. */
void worker_lose_slots(struct engine *engine, struct worker *worker, const struct message *message);

/* engine_attempt.c */
struct trial *trial_find(const struct engine *engine, int64_t number);
struct attempt *trial_newest(const struct trial *trial);
void attempt_report(struct engine *engine, struct worker *worker, const struct message *message);
void attempt_ended(struct engine *engine, struct worker *worker, const struct message *message);
void attempt_open(struct engine *engine, struct trial *trial, struct worker *worker, struct slot *slot);
/* Puts the newest attempt of a trial into the hands of a worker. */
void attempt_hold(struct engine *engine, struct trial *trial, struct worker *worker, struct slot *slot);
/* Closes the open attempt of a trial: the worker has it no more. Does not move the trial. */
void attempt_close(struct engine *engine, struct trial *trial, enum outcome outcome);
void attempt_acknowledge(struct engine *engine, const struct worker *worker, const struct trial *trial,
                         int64_t number);
/* Answers the report of this event. One that leaves its trial at a rung frees the slot with that. */
void attempt_answer(struct engine *engine);
void attempt_dismiss(struct engine *engine, const struct worker *worker, int64_t trial, int64_t attempt,
                     int64_t sequence);

/* engine_trial.c */
struct trial *trial_add(struct engine *engine, int64_t number);
void trial_release(struct trial *trial);
void trial_change(struct engine *engine, struct trial *trial, enum trial_state state,
                  enum trial_reason reason);
void trial_enqueue(struct engine *engine, struct trial *trial, enum queue queue);
void trial_dequeue(struct engine *engine, struct trial *trial);
void trial_prune(struct engine *engine, struct trial *trial);
void trial_attempt_over(struct engine *engine, struct trial *trial, enum outcome outcome);
void trial_begin_again(struct engine *engine, struct trial *trial);
/* In a sweep that is being stopped: what does not run now never will. */
void trial_give_up(struct engine *engine, struct trial *trial);
/* Ends one that nobody holds, as nobody's wish any more. */
void trial_drop(struct engine *engine, struct trial *trial);
extern const struct heap_order queue_order, retry_order, ranking_order;

/* engine_rung.c */
int64_t trial_until(const struct engine *engine, const struct trial *trial);
bool trial_is_at_top(const struct engine *engine, const struct trial *trial);
void trial_update_resting(struct engine *engine, struct trial *trial);
void trial_judge(struct engine *engine, struct trial *trial);
bool trial_is_told_to_stop(const struct trial *trial);
void trial_promote(struct engine *engine, struct trial *trial);
/* A trial that was let go on while its worker had yet to send the checkpoint: it goes on there, in this slot.
 */
void trial_go_on(struct engine *engine, struct trial *trial, struct slot *slot);
const struct rung_entry_record *trial_last_entry(const struct trial *trial); /* NULL: none */
bool trial_may_have_diverged(const struct trial *trial);

/* engine_curve.c */
void trial_curve_add(struct engine *engine, struct trial *trial, int64_t attempt, int64_t resource,
                     const json_t *metrics);
/* First point at or beyond a resource, or NULL. */
const struct point *trial_curve_at(const struct trial *trial, int64_t resource);
void trial_curve_free(struct trial *trial);
void trial_rank(struct engine *engine, struct trial *trial); /* puts its objective into the ranking */
void trial_unrank(struct engine *engine, struct trial *trial);

/* engine_checkpoint.c */
void checkpoint_refer(struct engine *engine, const char *sha256);
void checkpoint_set(struct engine *engine, struct trial *trial, const char *sha256, int64_t bytes,
                    int64_t resource);
void checkpoint_drop(struct engine *engine, struct trial *trial);
void checkpoint_retire(struct engine *engine, struct trial *trial); /* the trial has ended */
void checkpoint_orphan(struct engine *engine, struct trial *trial,
                       const char *sha256); /* from an older attempt */

/* engine_work.c */
bool engine_holds(const struct engine *engine); /* no new work: paused, stopping, interrupted or ended */
bool engine_is_stopping(const struct engine *engine); /* by the operator */
bool engine_may_propose(const struct engine *engine);
int64_t engine_active(const struct engine *engine); /* trials that will still report */
void engine_settle(struct engine *engine);
void engine_dispatch(struct engine *engine);
void engine_conclude(struct engine *engine);
void engine_send_assign(struct engine *engine,
                        struct trial *trial); /* of its open attempt; again if need be */
void engine_end(struct engine *engine, enum sweep_state state);

/* engine_final.c */
/* What an assignment of trial 0 asks for: {"refit", "seeds", "epochs", "baseline"}, with the number of epochs
 * that the winner was best at for "best". New reference. */
json_t *final_request(struct engine *engine, const struct trial *trial);
/* Trial 0 has ended: its result becomes the sweep's. Its failure does not fail the sweep. */
void final_set(struct engine *engine, const struct trial *trial);
bool final_is_due(const struct engine *engine);
void final_start(struct engine *engine);
/* It waits, is of no use but the baseline, and nobody is there to train it. */
bool final_is_left(const struct engine *engine);

/* engine_precision.c */
/* Decides what `precision: auto` means in this sweep, by the first worker's devices. */
void precision_decide(struct engine *engine, const struct message *hello);
/* The train settings as a worker gets them. New reference. */
json_t *precision_train(struct engine *engine);

/* engine_operator.c */
void operator_handle(struct engine *engine, peer_number peer, const struct message *message);

#endif
