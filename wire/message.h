/* Every message of the protocol, once (docs/protocol.md). The struct, its encoder and its decoder are driven
 * by one table in message_table.c; decoding checks every bound and never crashes on what a peer sends.
 *
 * Ownership: a decoded message owns everything it points to; message_release frees it. To send, fill a struct
 * (message_init first) with borrowed or owned pointers and encode it; only release what you own.
 * Text fields are `char *` (heap, NULL = absent); JSON fields are json_t * (a reference held by the message).
 */
#ifndef RUNG_WIRE_MESSAGE_H
#define RUNG_WIRE_MESSAGE_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PROTOCOL_VERSION 1
#define SESSION_SIZE 17 /* 16 hex digits and NUL */

enum message_type {
    /* worker -> coordinator */
    MESSAGE_HELLO,
    MESSAGE_READY,
    MESSAGE_HEARTBEAT,
    MESSAGE_REPORT,
    MESSAGE_ENDED,
    MESSAGE_BYE,
    MESSAGE_FETCH, /* blob socket */
    MESSAGE_PUT,   /* blob socket */
    /* coordinator -> worker */
    MESSAGE_WELCOME,
    MESSAGE_ASSIGN,
    MESSAGE_ACKNOWLEDGE,
    MESSAGE_DRAIN,  /* take no more; `now`: also interrupt what runs. reason says why (sweep ended, stop, ...)
                     */
    MESSAGE_CHUNK,  /* blob socket */
    MESSAGE_STORED, /* blob socket */
    MESSAGE_ERROR,
    /* client -> coordinator, answered by MESSAGE_ANSWER */
    MESSAGE_STATUS,
    MESSAGE_PAUSE,
    MESSAGE_RESUME,
    MESSAGE_STOP,
    MESSAGE_QUERY, /* leaderboard | show | list on a live coordinator */
    MESSAGE_ANSWER,
    MESSAGE_TYPE_COUNT
};

enum outcome {
    OUTCOME_NONE, /* still running */
    OUTCOME_FINISHED,
    OUTCOME_PAUSED,
    OUTCOME_STOPPED,
    OUTCOME_INTERRUPTED,
    OUTCOME_CRASHED,
    OUTCOME_OUT_OF_MEMORY,
    OUTCOME_TIMED_OUT,
    OUTCOME_DIVERGED,
    OUTCOME_NO_METRIC,
    OUTCOME_INVALID,
    OUTCOME_LOST,
    OUTCOME_COUNT
};
const char *outcome_name(enum outcome outcome); /* "finished", ... */
bool outcome_parse(const char *name, enum outcome *outcome);

enum action { ACTION_CONTINUE, ACTION_STOP };

struct device_description {
    char *id;   /* "cpu:0", "cuda:0", unique on the worker */
    char *kind; /* "cpu", "cuda", "emulated" */
    char *name; /* "avx512_core_amx", "NVIDIA H200" */
    int64_t memory_bytes;
    bool bf16;   /* products in bf16 are native */
    char *fault; /* why it is used no more; NULL: it is */
};
/* Not a CPU thread: cuda, or its emulation. */
static inline bool device_description_is_gpu(const struct device_description *device)
{
    return device->kind && strcmp(device->kind, "cpu") != 0;
}

/* One attempt a worker holds: running, or ended but not yet acknowledged. sequence = the last number it gave
 * out for this attempt (0: none yet). */
struct running_attempt {
    int64_t trial, attempt, sequence;
};

struct assignment {
    int64_t trial, attempt;
    json_t *parameters;
    int64_t start, until; /* resources: completed when it begins, and where it stops to be judged */
    char *checkpoint;     /* sha256 of the blob to start from, or NULL */
    int64_t checkpoint_bytes;
    json_t *final; /* trial 0, after the search: {"refit","seeds","epochs","baseline"}; NULL for a trial */
};

struct reported {
    int64_t resource;
    json_t *metrics; /* object of numbers (or non-finite strings) */
    double seconds;  /* spent on this unit */
};

struct message {
    enum message_type type;

    /* hello */
    int64_t protocol;
    char *worker, *session, *host, *version;
    struct device_description *devices; /* hello, heartbeat */
    size_t device_count;
    struct running_attempt *running; /* hello, heartbeat */
    size_t running_count;
    json_t *ready_slots; /* heartbeat: array of slot numbers that wait for work */

    /* welcome */
    char *sweep; /* sweep id */
    char *sweep_name;
    int64_t devices_per_trial, trials_per_device;
    double heartbeat_seconds, lease_seconds;
    json_t *train; /* normalised train settings of the sweep (data.files: {path: {sha256, bytes, name}}) */
    int64_t blob_port; /* TCP: port of the blob socket on the same host; 0: ipc, endpoint in blob_endpoint */
    char *blob_endpoint;
    char *metric; /* name of the sweep's metric, or NULL */
    bool maximize;
    char *objective; /* "last" or "best" */
    char *seed;      /* the sweep's seed, decimal text (64 bits do not fit a JSON integer everywhere) */

    /* ready, assign */
    int64_t slot, lanes;
    struct assignment *trials; /* assign */
    size_t trial_count;

    /* report, ended, acknowledge */
    int64_t trial, attempt, sequence;
    struct reported *reports; /* report */
    size_t report_count;
    enum outcome outcome; /* ended */
    int64_t resource;     /* ended: completed resource */
    char *checkpoint;     /* ended: sha256 of the uploaded checkpoint, or NULL; fetch, chunk, put, stored: the
                             blob */
    int64_t checkpoint_bytes;
    bool checkpoint_lost; /* ended: the checkpoint to start from is gone or damaged */
    bool device_failed;   /* ended: crashed, and its device with it */
    char *log_stdout,
        *log_stderr; /* ended: what was printed during the attempt, at most 64 KiB each, or NULL */
    char *error;     /* ended: what went wrong with the end of stderr; error: the text; answer: the refusal or
                        NULL */
    char *device;    /* ended, report: what made the results, "cpu/avx512_core" */
    json_t *details; /* report, ended: facts for the record (derived values, final metrics, ...) */
    enum action action; /* acknowledge */
    int64_t until;      /* acknowledge */

    /* fetch, chunk, put, stored */
    int64_t offset, size; /* bytes; size: whole blob */

    /* drain, stop */
    bool now;
    bool wait; /* drain: the coordinator comes back; stay, and say hello again then */
    char *reason;

    /* error */
    char *code; /* unknown_session, name_taken, protocol, malformed, unknown_type, not_found, unavailable */

    /* query, answer */
    char *query;  /* "leaderboard", "show", "list", "status" */
    json_t *body; /* query arguments; answer contents */

    /* binary frame of chunk and put; borrowed when encoding, owned after decoding */
    void *bytes;
    size_t byte_count;
};

void message_init(struct message *message, enum message_type type); /* everything zero/NULL */
void message_release(struct message *message);
const char *message_type_name(enum message_type type);

/* Frame 1 as JSON text (free() it); NULL with err when a required field is missing or memory ran out. Frame
 * 2, when byte_count > 0, is `bytes` as they are. */
char *message_encode(const struct message *message, size_t *size, struct error *err);
/* Reads frame 1 (and an optional frame 2). On -1 `message` is empty, err (ERROR_PROTOCOL) names the field.
 * Limits: frame 1 at most 16 MiB, lists at most 100,000 entries, names at most 256 bytes,
 * sequences/resources/numbers >= 0. */
int message_decode(struct message *message, const char *json, size_t size, const void *bytes,
                   size_t byte_count, struct error *err);

/* The field tables as Markdown, for docs/protocol.md (a test compares them). free() it. */
char *message_document(void);

#endif
