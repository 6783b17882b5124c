/* A cluster in memory: one coordinator (the real engine, a store of records, blobs), virtual workers, a
 * network, and faults. Everything is drawn from one seed and happens in stepped time, so a seed replays
 * exactly.
 *
 *   simulation.c  time, events, the main loop, when faults are due
 *   network.c     packets: lost, repeated, delayed, reordered, cut off
 *   store.c       rows by key, blobs, and what must hold of every commit
 *   server.c      turns of the coordinator, its crashes, failed commits, slow turns
 *   worker.c      an agent with slots, its messages, its crashes
 *   training.c    what a slot does: epochs, reports, checkpoints, ends
 *   check.c       what must hold at the end, and that recovery gives the same engine */
#ifndef RUNG_TESTS_SIMULATION_H
#define RUNG_TESTS_SIMULATION_H

#include "coordinator/engine.h"
#include "coordinator/engine_table.h"

#include <stdbool.h>
#include <stdint.h>

#define MS NS_PER_MS
#define SECOND NS_PER_SECOND
#define BASELINE_SCORE 0.125 /* of the linear model, whoever trains it */
#define WORKER_LIMIT 8
#define SLOTS_LIMIT 3
#define FAULTS_OF_A_KIND 20 /* that must strike in each run */
#define FAULTS_DRAWN 24     /* the last few may find no occasion before the sweep ends */

enum fault {
    FAULT_LOSE,
    FAULT_REPEAT,
    FAULT_DELAY,
    FAULT_REORDER,
    FAULT_PARTITION,
    FAULT_WORKER_CRASH,
    FAULT_WORKER_INTERRUPT,
    FAULT_CRASH_BEFORE_COMMIT,
    FAULT_CRASH_AFTER_COMMIT,
    FAULT_CRASH_AMID_SENDS,
    FAULT_COMMIT_FAILS,
    FAULT_SLOW_TURN,
    FAULT_COORDINATOR_INTERRUPT,
    FAULT_SWEEP_PAUSE,
    FAULT_ATTEMPT_CRASH,
    FAULT_BLOB_LOST,
    FAULT_ARMED_COUNT, /* those before are drawn; those after come from the trials themselves */
    FAULT_DIVERGE = FAULT_ARMED_COUNT,
    FAULT_OUT_OF_MEMORY,
    FAULT_COUNT
};
const char *fault_name(enum fault fault);

/* A message on its way; shared by its repetitions. */
struct packet {
    int references;
    struct message message;
};

enum happening_type {
    HAPPENS_DELIVER_TO_SERVER,
    HAPPENS_DELIVER_TO_WORKER,
    HAPPENS_TURN,
    HAPPENS_SERVER_START,
    HAPPENS_WORKER_START,
    HAPPENS_WORKER_TIMER,
    HAPPENS_EPOCH,
    HAPPENS_UPLOADED,
    HAPPENS_HEAL,
    HAPPENS_RESUME,
    HAPPENS_STOP,
};

struct happening {
    int64_t time_ns;
    uint64_t order; /* ties in the order of scheduling */
    enum happening_type type;
    int worker;
    uint64_t process; /* of the worker, or incarnation of the server */
    uint64_t id;      /* attempt, or the connection of a delivery */
    struct packet *packet;
};

enum training_state { QUEUES, TRAINS, AWAITS, UPLOADS, HAS_ENDED };

/* An attempt in a worker's hands, until all it said is acknowledged. */
struct training {
    uint64_t id; /* changes whenever a scheduled epoch or upload is called off */
    int64_t trial, attempt;
    json_t *parameters;
    int64_t start, until, resource;
    bool is_final, has_baseline, lacks_checkpoint;
    enum training_state state;
    enum outcome ending; /* while it uploads: what comes after */
    int slot;
    int64_t sequence, acknowledged;
    struct packet **said; /* messages acknowledged+1 .. sequence */
};

struct agent {
    int index;
    char name[24], session[SESSION_SIZE];
    bool alive, cut, welcomed, leaving, stays_away;
    bool resting;    /* handed everything back, waits for an interrupted coordinator */
    int64_t told_ns; /* when it was told so last */
    uint64_t process, connection;
    int slots;
    struct training **trainings;
    int training_count;
    struct table done; /* attempts it ended and forgot: trial << 20 | attempt */
};

struct world_server {
    bool up;
    uint64_t incarnation;
    struct engine *engine;
    struct effects effects;
    struct happening *inbox;
    size_t inbox_count, inbox_capacity;
    bool turn_due, renew_due, commit_pending, leaving, interrupt_due;
    enum message_type command_due; /* of the operator: MESSAGE_PAUSE, _RESUME, _STOP, or 0 (hello): none */
    uint64_t *leftovers;           /* blobs that nobody named when it started */
    size_t leftover_count;
    int64_t leftovers_due_ns;
    int64_t turn_ns, busy_until_ns, leave_by_ns;
};

struct world_store {
    struct table rows; /* key -> struct record * */
    struct record **all;
    size_t count, capacity;
    struct table blobs; /* first 64 bits of the hash -> itself */
    struct table lost;  /* likewise: gone or damaged by a fault */
    int64_t points;     /* different (trial, resource) */
    struct table seen_points;
    int64_t trials; /* highest number */
};

enum scheme {
    SCHEME_RANDOM,
    SCHEME_GRID,
    SCHEME_HALVING,
    SCHEME_ASHA_PROMOTION,
    SCHEME_ASHA_STOPPING,
    SCHEME_COUNT
};

struct simulation {
    uint64_t seed, random;
    bool verbose, calm;
    enum scheme scheme;
    struct engine_settings settings;
    struct space space;
    struct parameter parameters[2];
    json_t *final_request;
    int64_t trials;

    int64_t now_ns;
    struct happening *heap; /* from index 1 */
    size_t heap_count, heap_capacity;
    uint64_t order, next_id;
    uint64_t trace; /* hash of all that happened: equal for equal seeds */

    struct world_server server;
    struct world_store store;
    struct agent agents[WORKER_LIMIT];
    int agent_count;
    int64_t link_ns[WORKER_LIMIT][2]; /* when the last packet of a direction arrives: links keep order */

    int64_t expected_points; /* of a calm run; 0: this is one */
    int64_t stop_at;         /* points after which the operator stops the sweep; 0: never */
    bool stop_now, stop_asked;
    int due[FAULT_COUNT], armed[FAULT_COUNT], fired[FAULT_COUNT];
    int64_t due_at[FAULT_COUNT]; /* points after which the next fault of a kind is due */
    struct table said; /* (trial, attempt, resource) that a worker reported; resource 0: outcome + 1 */
    int64_t proposed;
    int64_t messages, turns, restarts;
    char violation[600];
};

/* simulation.c */
void simulation_init(struct simulation *simulation, uint64_t seed, bool calm, int64_t expected_points);
/* The operator will stop this sweep, at any time. */
void simulation_plan_stop(struct simulation *simulation);
void simulation_run(struct simulation *simulation);
void simulation_release(struct simulation *simulation);
uint64_t simulation_random(struct simulation *simulation);
int64_t simulation_below(struct simulation *simulation, int64_t bound);
int64_t simulation_between(struct simulation *simulation, int64_t low, int64_t high);
void simulation_schedule(struct simulation *simulation, const struct happening *happening);
/* Takes an armed fault of this kind, one time in `rarity`. */
bool simulation_fault(struct simulation *simulation, enum fault fault, int rarity);
/* How many of a kind must strike in a run. */
int faults_wanted(const struct simulation *simulation, enum fault fault);
void simulation_violate(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void simulation_say(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct now simulation_now(const struct simulation *simulation);

/* scheme.c: sweeps to simulate, and what their trials do */
void scheme_init(struct simulation *simulation);
double trial_value(const json_t *parameters, int64_t resource);
/* Resource at which the trial diverges, 0: never. */
int64_t trial_diverges_at(const json_t *parameters, bool *reports_it);
bool trial_exhausts_memory(const json_t *parameters);
void trial_checkpoint(const json_t *parameters, int64_t resource, char sha256[65]);
bool scheme_is_deterministic(enum scheme scheme);
extern const char *const scheme_names[];

/* network.c */
struct packet *packet_new(struct simulation *simulation, struct message *message); /* takes the message */
void packet_release(struct packet *packet);
void network_to_server(struct simulation *simulation, struct agent *agent,
                       struct packet *packet); /* borrows it */
void network_to_worker(struct simulation *simulation, peer_number peer, struct packet *packet);

/* store.c */
void store_apply(struct simulation *simulation, const struct effects *effects);
const struct record *store_row(const struct simulation *simulation, enum record_type type, int64_t trial,
                               int64_t a, int64_t b);
void store_snapshot(const struct simulation *simulation, struct snapshot *snapshot); /* borrows the rows */
void store_snapshot_release(struct snapshot *snapshot);
void store_release(struct simulation *simulation);
void blob_put(struct simulation *simulation, const char *sha256);
bool blob_exists(const struct simulation *simulation, const char *sha256);
void blob_delete(struct simulation *simulation, const char *sha256);
/* Some stored checkpoint of a trial that goes on is gone, or its bytes are others. */
void blob_lose_any(struct simulation *simulation);
bool blob_is_lost(const struct simulation *simulation, const char *sha256);
/* Keys of the blobs that no trial's row names; free() them. */
uint64_t *blobs_unnamed(const struct simulation *simulation, size_t *count);

/* server.c */
void server_start(struct simulation *simulation);
void server_deliver(struct simulation *simulation, const struct happening *happening);
void server_turn(struct simulation *simulation);
void server_end(struct simulation *simulation); /* what the real one does with an ended sweep */
void server_interrupt(struct simulation *simulation);
void server_pause(struct simulation *simulation);
void server_resume(struct simulation *simulation); /* again and again until it is stored */
void server_stop(struct simulation *simulation);   /* likewise */

/* worker.c */
void agent_start(struct simulation *simulation, struct agent *agent);
void agent_kill(struct simulation *simulation, struct agent *agent, int64_t away_ns);
void agent_timer(struct simulation *simulation, struct agent *agent);
void agent_receive(struct simulation *simulation, struct agent *agent, const struct message *message);
void agent_leave(struct simulation *simulation, struct agent *agent); /* hand everything back, then go */
void agent_say(struct simulation *simulation, struct agent *agent, struct message *message);
void agent_tidy(struct simulation *simulation,
                struct agent *agent); /* forgets what is acknowledged; may say bye */
void agent_release(struct agent *agent);

/* training.c */
uint64_t said_key(int64_t trial, int64_t attempt, int64_t resource);
/* Kept until its slot is free: the slot may be given before its worker knows that it gives it up. */
void training_add(struct simulation *simulation, struct agent *agent, const struct assignment *assignment,
                  int slot);
void training_begin(struct simulation *simulation, struct agent *agent, struct training *training);
bool training_needs_slot(const struct training *training);
void training_epoch(struct simulation *simulation, struct agent *agent, struct training *training);
void training_uploaded(struct simulation *simulation, struct agent *agent, struct training *training);
void training_acknowledged(struct simulation *simulation, struct agent *agent, struct training *training,
                           const struct message *message);
void training_interrupt(struct simulation *simulation, struct agent *agent, struct training *training);
void training_resend(struct simulation *simulation, struct agent *agent, struct training *training);
void training_release(struct training *training);

/* check.c */
void check_recovery(struct simulation *simulation); /* a second engine from the store equals the live one */
void check_event(struct simulation *simulation);    /* after each event of the engine */
void check_end(struct simulation *simulation);
/* One line a trial: what the leaderboard shows. free() it. */
char *simulation_leaderboard(const struct simulation *simulation);

#endif
