/* Records: what the engine asks the store to keep, and what the store gives back on recovery. One struct a
 * table.
 *
 * Ownership: a record owns its strings and JSON. Functions: record.c. */
#ifndef RUNG_COORDINATOR_RECORD_H
#define RUNG_COORDINATOR_RECORD_H

#include "base/json.h"
#include "wire/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWEEP_ID_SIZE 9 /* 8 characters and NUL */

enum sweep_state {
    SWEEP_RUNNING,
    SWEEP_PAUSED,
    SWEEP_STOPPING, /* by the operator: what runs comes to its `until`, then the refit, then it is stopped */
    SWEEP_STOPPING_NOW, /* what runs is handed back, no refit */
    SWEEP_FINISHED,
    SWEEP_STOPPED,
};
enum trial_state {
    TRIAL_WAITING,
    TRIAL_RUNNING,
    TRIAL_PAUSED,
    TRIAL_COMPLETED,
    TRIAL_STOPPED,
    TRIAL_FAILED,
    TRIAL_CANCELLED
};
enum trial_reason {
    REASON_NONE,
    REASON_FINISHED,
    REASON_PRUNED,
    REASON_THRESHOLD,
    REASON_USER,
    REASON_DIVERGED,
    REASON_OUT_OF_MEMORY,
    REASON_TIMED_OUT,
    REASON_CRASHED,
    REASON_NO_METRIC,
    REASON_INVALID,
    REASON_LOST
};
const char *sweep_state_name(enum sweep_state state);
const char *trial_state_name(enum trial_state state);
const char *trial_reason_name(enum trial_reason reason); /* "" for none */
bool sweep_state_parse(const char *name, enum sweep_state *state);
bool trial_state_parse(const char *name, enum trial_state *state);
bool trial_reason_parse(const char *name, enum trial_reason *reason);

struct sweep_record {
    char id[SWEEP_ID_SIZE];
    char *name;
    enum sweep_state state;
    char *spec_text;
    json_t *normalised;
    char spec_sha256[65];
    uint64_t seed;
    char *version;
    int64_t created_ms, ended_ms; /* ended_ms 0: not ended */
    json_t *final;                /* result of the `final` refit, or NULL */
    json_t *baseline;             /* of the linear model: {"metrics", "epochs", ...}, or NULL */
    char precision[8];            /* what `precision: auto` is in this sweep; "": not decided */
};

struct trial_record {
    int64_t number;
    enum trial_state state;
    enum trial_reason reason;
    json_t *parameters;
    json_t *derived;    /* from the worker (peak learning rate, micro batch, ...), or NULL */
    bool has_objective; /* false: none or NaN */
    double objective;
    int64_t resource; /* completed */
    int64_t bracket;
    char checkpoint[65]; /* sha256, "" none: the newest stored */
    int64_t checkpoint_bytes;
    int64_t checkpoint_resource; /* the resource that checkpoint stands at */
    int64_t retries;             /* crashed attempts retried so far */
    int64_t losses;              /* lost attempts retried so far */
    bool is_final;               /* the refit of the winner, number 0: not ranked */
};

struct attempt_record {
    int64_t trial, number;
    char *worker, *session, *device;
    int64_t start, until; /* resources */
    int64_t started_ms, ended_ms;
    int64_t last_sequence; /* highest applied */
    enum outcome outcome;
    char *error;
    double seconds; /* sum of the reports' */
    char *details;  /* JSON object as text: what it was trained with (derived, precision, memory), or NULL */
};

struct report_record {
    int64_t trial, resource, attempt, received_ms;
    double seconds;
    json_t *metrics;
};

struct rung_entry_record {
    int64_t trial, bracket, rung;
    int64_t order; /* of entry, over the whole sweep, from 1 */
    double value;  /* may be NaN */
    double tie;    /* NaN: none */
    bool promoted;
};

struct worker_record {
    char *name, *session, *host, *version;
    json_t *devices;
    int64_t first_ms, last_ms;
    bool connected;
};

enum record_type {
    RECORD_SWEEP,
    RECORD_TRIAL,
    RECORD_ATTEMPT,
    RECORD_REPORT,
    RECORD_RUNG_ENTRY,
    RECORD_WORKER,
};

/* One row to insert or replace, by its key (sweep id; trial number; trial+attempt; trial+resource+attempt;
 * trial+rung; worker name). */
struct record {
    enum record_type type;
    union {
        struct sweep_record sweep;
        struct trial_record trial;
        struct attempt_record attempt;
        struct report_record report;
        struct rung_entry_record rung_entry;
        struct worker_record worker;
    };
};
void record_release(struct record *record);
/* Deep copy; -1 without memory. */
int record_copy(struct record *to, const struct record *from);

/* Everything of one sweep, as the store holds it; arrays sorted by their keys (rung entries by `order`). */
struct snapshot {
    struct sweep_record sweep;
    struct trial_record *trials;
    size_t trial_count;
    struct attempt_record *attempts;
    size_t attempt_count;
    struct report_record *reports; /* the newest attempt's per (trial, resource), and older ones too */
    size_t report_count;
    struct rung_entry_record *rung_entries;
    size_t rung_entry_count;
    struct worker_record *workers;
    size_t worker_count;
};
void snapshot_release(struct snapshot *snapshot);

#endif
