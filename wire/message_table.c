/* The protocol's tables; docs/protocol.md is made from them. */
#include "wire/message_table.h"

const char *const action_names[] = {[ACTION_CONTINUE] = "continue", [ACTION_STOP] = "stop", NULL};

#define REQUIRED true
#define OPTIONAL false
#define AT(member) offsetof(struct message, member)
#define LIST(array, count, entry)                                                                            \
    .kind = FIELD_LIST, .offset = AT(array), .count_offset = AT(count), .list = &(entry)
#define END                                                                                                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

static const struct field device_fields[] = {
    {"id", FIELD_NAME, REQUIRED, offsetof(struct device_description, id), 0, NULL,
     "unique on the worker: `cpu:0`, `cuda:0`"},
    {"kind", FIELD_NAME, REQUIRED, offsetof(struct device_description, kind), 0, NULL,
     "`cpu`, `cuda` or `emulated`"},
    {"name", FIELD_NAME, OPTIONAL, offsetof(struct device_description, name), 0, NULL,
     "what it is: `avx512_core_amx`, `NVIDIA H200`"},
    {"memory_bytes", FIELD_INTEGER, OPTIONAL, offsetof(struct device_description, memory_bytes), 0, NULL,
     "memory a trial may use"},
    {"bf16", FIELD_BOOLEAN, OPTIONAL, offsetof(struct device_description, bf16), 0, NULL,
     "a GPU with native products in bf16"},
    {"fault", FIELD_TEXT, OPTIONAL, offsetof(struct device_description, fault), 0, NULL,
     "why it takes no more work: it failed again and again"},
    END,
};
static const struct field_list devices = {sizeof(struct device_description), device_fields};

static const struct field running_fields[] = {
    {"trial", FIELD_INTEGER, REQUIRED, offsetof(struct running_attempt, trial), 0, NULL,
     "the trial's number"},
    {"attempt", FIELD_INTEGER, REQUIRED, offsetof(struct running_attempt, attempt), 0, NULL,
     "the attempt's number"},
    {"sequence", FIELD_INTEGER, REQUIRED, offsetof(struct running_attempt, sequence), 0, NULL,
     "the last number given out for this attempt; 0: none yet"},
    END,
};
static const struct field_list running = {sizeof(struct running_attempt), running_fields};

static const struct field assignment_fields[] = {
    {"trial", FIELD_INTEGER, REQUIRED, offsetof(struct assignment, trial), 0, NULL,
     "the trial's number; 0: what is trained after the search"},
    {"attempt", FIELD_INTEGER, REQUIRED, offsetof(struct assignment, attempt), 0, NULL,
     "the attempt's number"},
    {"parameters", FIELD_OBJECT, REQUIRED, offsetof(struct assignment, parameters), 0, NULL,
     "the point of the space"},
    {"start", FIELD_INTEGER, REQUIRED, offsetof(struct assignment, start), 0, NULL,
     "resource already completed; 0: from the beginning"},
    {"until", FIELD_INTEGER, REQUIRED, offsetof(struct assignment, until), 0, NULL,
     "resource at which the attempt stops to be judged"},
    {"checkpoint", FIELD_HASH, OPTIONAL, offsetof(struct assignment, checkpoint), 0, NULL,
     "the blob to go on from"},
    {"checkpoint_bytes", FIELD_INTEGER, OPTIONAL, offsetof(struct assignment, checkpoint_bytes), 0, NULL,
     "its size"},
    {"final", FIELD_OBJECT, OPTIONAL, offsetof(struct assignment, final), 0, NULL,
     "only for trial 0: `{\"refit\", \"seeds\", \"epochs\", \"baseline\"}`"},
    END,
};
static const struct field_list assignments = {sizeof(struct assignment), assignment_fields};

static const struct field reported_fields[] = {
    {"resource", FIELD_INTEGER, REQUIRED, offsetof(struct reported, resource), 0, NULL,
     "completed units, from 1"},
    {"metrics", FIELD_METRICS, REQUIRED, offsetof(struct reported, metrics), 0, NULL, "values by name"},
    {"seconds", FIELD_NUMBER, OPTIONAL, offsetof(struct reported, seconds), 0, NULL, "spent on this unit"},
    END,
};
static const struct field_list reports = {sizeof(struct reported), reported_fields};

/* Fields that more than one message has. */
#define TRIAL                                                                                                \
    {                                                                                                        \
        "trial", FIELD_INTEGER, REQUIRED, AT(trial), 0, NULL, "the trial's number"                           \
    }
#define ATTEMPT                                                                                              \
    {                                                                                                        \
        "attempt", FIELD_INTEGER, REQUIRED, AT(attempt), 0, NULL, "the attempt's number"                     \
    }
#define SHA256                                                                                               \
    {                                                                                                        \
        "sha256", FIELD_HASH, REQUIRED, AT(checkpoint), 0, NULL, "the blob's name"                           \
    }
#define DEVICE                                                                                               \
    {                                                                                                        \
        "device", FIELD_NAME, OPTIONAL, AT(device), 0, NULL, "what made the results: `cpu/avx512_core`"      \
    }
#define DEVICES(presence)                                                                                    \
    {                                                                                                        \
        .name = "devices", .required = (presence), .help = "what the worker offers",                         \
        LIST(devices, device_count, devices)                                                                 \
    }
#define RUNNING                                                                                              \
    {                                                                                                        \
        .name = "running", .help = "attempts held: running, or ended and not yet acknowledged",              \
        LIST(running, running_count, running)                                                                \
    }

static const struct field hello_fields[] = {
    {"protocol", FIELD_INTEGER, REQUIRED, AT(protocol), 0, NULL, "1"},
    {"worker", FIELD_NAME, REQUIRED, AT(worker), 0, NULL, "the worker's name, unique among live workers"},
    {"session", FIELD_SESSION, REQUIRED, AT(session), 0, NULL, "drawn at each start of the worker"},
    {"host", FIELD_NAME, OPTIONAL, AT(host), 0, NULL, "host name"},
    {"version", FIELD_NAME, OPTIONAL, AT(version), 0, NULL, "the worker's software"},
    DEVICES(REQUIRED),
    RUNNING,
    END,
};

static const struct field ready_fields[] = {
    {"slot", FIELD_INTEGER, REQUIRED, AT(slot), 0, NULL, "the slot's number on this worker"},
    {"lanes", FIELD_INTEGER, REQUIRED, AT(lanes), 0, NULL, "how many trials it takes at once"},
    END,
};

static const struct field heartbeat_fields[] = {
    RUNNING,
    {"ready", FIELD_SLOTS, OPTIONAL, AT(ready_slots), 0, NULL, "slots that wait for work"},
    DEVICES(OPTIONAL),
    END,
};

static const struct field report_fields[] = {
    TRIAL,
    ATTEMPT,
    {"sequence", FIELD_INTEGER, REQUIRED, AT(sequence), 0, NULL,
     "this message's number within the attempt, from 1"},
    {.name = "reports",
     .required = REQUIRED,
     .help = "in order of resource",
     LIST(reports, report_count, reports)},
    DEVICE,
    {"details", FIELD_OBJECT, OPTIONAL, AT(details), 0, NULL,
     "with the first report of an attempt: `derived` values for the trial's record, `precision`, `memory`"},
    END,
};

static const struct field ended_fields[] = {
    TRIAL,
    ATTEMPT,
    {"sequence", FIELD_INTEGER, REQUIRED, AT(sequence), 0, NULL,
     "this message's number within the attempt, from 1"},
    {"outcome", FIELD_OUTCOME, REQUIRED, AT(outcome), 0, NULL, "how it ended"},
    {"resource", FIELD_INTEGER, REQUIRED, AT(resource), 0, NULL, "completed units"},
    {"checkpoint", FIELD_HASH, OPTIONAL, AT(checkpoint), 0, NULL, "the uploaded checkpoint"},
    {"checkpoint_bytes", FIELD_INTEGER, OPTIONAL, AT(checkpoint_bytes), 0, NULL, "its size"},
    {"checkpoint_lost", FIELD_BOOLEAN, OPTIONAL, AT(checkpoint_lost), 0, NULL,
     "the checkpoint to start from is gone or damaged: the trial begins again"},
    {"device_failed", FIELD_BOOLEAN, OPTIONAL, AT(device_failed), 0, NULL,
     "crashed because its device failed: it is tried again, in another slot if there is "
     "one, as often as a lost one"},
    {"error", FIELD_TEXT, OPTIONAL, AT(error), 0, NULL, "what went wrong, with the end of stderr"},
    {"stdout", FIELD_TEXT, OPTIONAL, AT(log_stdout), 0, NULL,
     "what was printed during the attempt, for people"},
    {"stderr", FIELD_TEXT, OPTIONAL, AT(log_stderr), 0, NULL, "likewise"},
    DEVICE,
    {"details", FIELD_OBJECT, OPTIONAL, AT(details), 0, NULL, "facts for the record: `derived` values, ..."},
    END,
};

static const struct field bye_fields[] = {
    {"reason", FIELD_TEXT, OPTIONAL, AT(reason), 0, NULL, "why the worker leaves"},
    END,
};

static const struct field fetch_fields[] = {
    SHA256,
    {"offset", FIELD_INTEGER, REQUIRED, AT(offset), 0, NULL, "first byte wanted"},
    END,
};

static const struct field put_fields[] = {
    SHA256,
    {"offset", FIELD_INTEGER, REQUIRED, AT(offset), 0, NULL,
     "where these bytes belong: the bytes sent so far"},
    {"size", FIELD_INTEGER, REQUIRED, AT(size), 0, NULL, "bytes of the whole blob"},
    END,
};

static const struct field welcome_fields[] = {
    {"sweep", FIELD_NAME, REQUIRED, AT(sweep), 0, NULL, "the sweep's id"},
    {"sweep_name", FIELD_NAME, OPTIONAL, AT(sweep_name), 0, NULL, "the sweep's name"},
    {"devices_per_trial", FIELD_INTEGER, REQUIRED, AT(devices_per_trial), 0, NULL, "devices of one slot"},
    {"trials_per_device", FIELD_INTEGER, OPTIONAL, AT(trials_per_device), 0, NULL, "lanes of one slot"},
    {"heartbeat_seconds", FIELD_NUMBER, REQUIRED, AT(heartbeat_seconds), 0, NULL,
     "send a heartbeat this often"},
    {"lease_seconds", FIELD_NUMBER, REQUIRED, AT(lease_seconds), 0, NULL,
     "without a heartbeat for this long, attempts are lost"},
    {"train", FIELD_OBJECT, OPTIONAL, AT(train), 0, NULL,
     "settings of the built-in trainer; `data.files` names the blobs of the data, by the setting below "
     "`data` that names the file (`path`, `labels`, `test_path`, `test_labels`): `{\"sha256\", \"bytes\", "
     "\"name\"}` each"},
    {"blob_port", FIELD_INTEGER, OPTIONAL, AT(blob_port), 0, NULL,
     "tcp: the blob socket's port on the same host"},
    {"blob_endpoint", FIELD_TEXT, OPTIONAL, AT(blob_endpoint), 0, NULL,
     "ipc: the blob socket's whole address"},
    {"metric", FIELD_NAME, OPTIONAL, AT(metric), 0, NULL, "the sweep's metric"},
    {"maximize", FIELD_BOOLEAN, OPTIONAL, AT(maximize), 0, NULL, "its goal"},
    {"objective", FIELD_NAME, OPTIONAL, AT(objective), 0, NULL, "`last` or `best`"},
    {"seed", FIELD_NAME, OPTIONAL, AT(seed), 0, NULL, "the sweep's seed in decimal digits"},
    END,
};

static const struct field assign_fields[] = {
    {"slot", FIELD_INTEGER, REQUIRED, AT(slot), 0, NULL, "the slot that was ready"},
    {.name = "trials",
     .required = REQUIRED,
     .help = "one for each lane used",
     LIST(trials, trial_count, assignments)},
    END,
};

static const struct field acknowledge_fields[] = {
    TRIAL,
    ATTEMPT,
    {"sequence", FIELD_INTEGER, REQUIRED, AT(sequence), 0, NULL, "everything up to this number is stored"},
    {"action", FIELD_ACTION, REQUIRED, AT(action), 0, NULL, "whether the attempt goes on"},
    {"until", FIELD_INTEGER, OPTIONAL, AT(until), 0, NULL,
     "resource at which it stops to be judged; only grows"},
    END,
};

static const struct field drain_fields[] = {
    {"now", FIELD_BOOLEAN, OPTIONAL, AT(now), 0, NULL, "also checkpoint and hand back what runs"},
    {"wait", FIELD_BOOLEAN, OPTIONAL, AT(wait), 0, NULL,
     "do not leave: the coordinator comes back, and its `welcome` ends the draining"},
    {"reason", FIELD_TEXT, OPTIONAL, AT(reason), 0, NULL, "why"},
    END,
};

static const struct field chunk_fields[] = {
    SHA256,
    {"offset", FIELD_INTEGER, REQUIRED, AT(offset), 0, NULL, "where these bytes belong"},
    {"size", FIELD_INTEGER, REQUIRED, AT(size), 0, NULL, "bytes of the whole blob"},
    END,
};

static const struct field stored_fields[] = {
    SHA256,
    {"offset", FIELD_INTEGER, REQUIRED, AT(offset), 0, NULL, "bytes the coordinator has"},
    {"size", FIELD_INTEGER, REQUIRED, AT(size), 0, NULL,
     "bytes of the whole blob; it is durable once `offset` reaches it"},
    END,
};

static const struct field error_fields[] = {
    {"code", FIELD_NAME, REQUIRED, AT(code), 0, NULL,
     "`unknown_session`, `name_taken`, `protocol`, `malformed`, `unknown_type`, `not_found`, or "
     "`unavailable` (the "
     "coordinator's disk; try again later)"},
    {"message", FIELD_TEXT, OPTIONAL, AT(error), 0, NULL, "for people"},
    {"sha256", FIELD_HASH, OPTIONAL, AT(checkpoint), 0, NULL, "the blob it is about"},
    END,
};

static const struct field stop_fields[] = {
    {"now", FIELD_BOOLEAN, OPTIONAL, AT(now), 0, NULL, "checkpoint and end instead of letting trials finish"},
    {"reason", FIELD_TEXT, OPTIONAL, AT(reason), 0, NULL, "why"},
    END,
};

static const struct field query_fields[] = {
    {"query", FIELD_NAME, REQUIRED, AT(query), 0, NULL, "`leaderboard`, `show`, `list` or `status`"},
    {"body", FIELD_OBJECT, OPTIONAL, AT(body), 0, NULL,
     "arguments: `sweep`, `trial`, `where`, `sort`, `top`"},
    END,
};

static const struct field answer_fields[] = {
    {"error", FIELD_TEXT, OPTIONAL, AT(error), 0, NULL, "why there is no answer"},
    {"body", FIELD_JSON, OPTIONAL, AT(body), 0, NULL, "the answer"},
    END,
};

static const struct field no_fields[] = {END};

#define TO_COORDINATOR "worker -> coordinator"
#define TO_WORKER "coordinator -> worker"
#define BLOB_TO_COORDINATOR "worker -> coordinator, blob socket"
#define BLOB_TO_WORKER "coordinator -> worker, blob socket"
#define FROM_CLIENT "client -> coordinator"

const struct message_layout message_layouts[MESSAGE_TYPE_COUNT] = {
    [MESSAGE_HELLO] = {"hello", TO_COORDINATOR, "Introduces a worker; answered by `welcome` or `error`.",
                       hello_fields, false},
    [MESSAGE_READY] = {"ready", TO_COORDINATOR,
                       "A slot waits for work; answered by `assign` when there is some.", ready_fields,
                       false},
    [MESSAGE_HEARTBEAT] = {"heartbeat", TO_COORDINATOR,
                           "Keeps the leases. The coordinator sends again whatever these lists lack.",
                           heartbeat_fields, false},
    [MESSAGE_REPORT] = {"report", TO_COORDINATOR,
                        "Metrics of an attempt; answered by `acknowledge` once stored.", report_fields,
                        false},
    [MESSAGE_ENDED] = {"ended", TO_COORDINATOR, "An attempt is over; answered by `acknowledge` once stored.",
                       ended_fields, false},
    [MESSAGE_BYE] = {"bye", TO_COORDINATOR, "The worker leaves; its attempts are over.", bye_fields, false},
    [MESSAGE_FETCH] = {"fetch", BLOB_TO_COORDINATOR,
                       "Asks for a piece of a blob; answered by `chunk` or `error`.", fetch_fields, false},
    [MESSAGE_PUT] = {"put", BLOB_TO_COORDINATOR,
                     "A piece of a blob in frame 2, at most 1 MiB; answered by `stored` or `error`.",
                     put_fields, true},
    [MESSAGE_WELCOME] = {"welcome", TO_WORKER, "What a worker must know of the sweep.", welcome_fields,
                         false},
    [MESSAGE_ASSIGN] = {"assign", TO_WORKER, "Work for a slot. A worker ignores one it holds or has ended.",
                        assign_fields, false},
    [MESSAGE_ACKNOWLEDGE] = {"acknowledge", TO_WORKER, "Reports are stored, and what to do next.",
                             acknowledge_fields, false},
    [MESSAGE_DRAIN] = {"drain", TO_WORKER, "Take no more work, and leave when nothing runs.", drain_fields,
                       false},
    [MESSAGE_CHUNK] = {"chunk", BLOB_TO_WORKER, "A piece of a blob in frame 2, at most 1 MiB.", chunk_fields,
                       true},
    [MESSAGE_STORED] = {"stored", BLOB_TO_WORKER, "How much of an upload has arrived.", stored_fields, false},
    [MESSAGE_ERROR] = {"error", "coordinator -> anyone", "Why a message was not taken.", error_fields, false},
    [MESSAGE_STATUS] = {"status", FROM_CLIENT, "Asks how the sweep stands; answered by `answer`.", no_fields,
                        false},
    [MESSAGE_PAUSE] = {"pause", FROM_CLIENT, "Hand out no more work; answered by `answer`.", no_fields,
                       false},
    [MESSAGE_RESUME] = {"resume", FROM_CLIENT, "Hand out work again; answered by `answer`.", no_fields,
                        false},
    [MESSAGE_STOP] = {"stop", FROM_CLIENT, "End the sweep; answered by `answer`.", stop_fields, false},
    [MESSAGE_QUERY] = {"query", FROM_CLIENT, "Asks for stored results; answered by `answer`.", query_fields,
                       false},
    [MESSAGE_ANSWER] = {"answer", "coordinator -> client", "The answer to a client.", answer_fields, false},
};
