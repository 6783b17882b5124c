/* What the parts of the agent share.
 *
 *   agent.c             life: create, the loop, stopping, destroy
 *   agent_connection.c  coming and going: the connection, waiting for it, leaving
 *   agent_session.c     what the coordinator says
 *   agent_data.c        the sweep's data
 *   agent_send.c        what the agent says
 *   agent_assign.c      attempts that come, wait for a slot, are run, are forgotten
 *   agent_attempts.c    attempts that run: reported, paused, uploaded, ended
 *   agent_slots.c       slots: runner children, what they say, how they die
 *
 * An attempt's way (only its newest report's acknowledge leads out of HELD):
 *
 *   QUEUED -> FETCHING -> PREPARED -> RUNNING -> HELD -> UPLOADING -> ENDED -> forgotten when acknowledged
 *      ^ (slot busy) (checkpoint) (runner idle) ^      |  |   (a pause: the slot is free already)
 *      |                                        \------/  |   a higher until: goes on in memory,
 *      \--------------------------------------------------/   or without a slot from its file
 */
#ifndef RUNG_WORKER_AGENT_PRIVATE_H
#define RUNG_WORKER_AGENT_PRIVATE_H

#include "base/clock.h"
#include "base/files.h"
#include "wire/message.h"
#include "wire/socket.h"
#include "worker/agent.h"
#include "worker/child.h"
#include "worker/link.h"
#include "worker/outbox.h"
#include "worker/scratch.h"
#include "worker/transfer.h"

#include <signal.h>

#define STOP_SECONDS 25      /* unless the settings say otherwise */
#define STOP_KILL_SHARE 0.88 /* of it; runners that have not come to an epoch's end by then are ended */
#define HELLO_REPEAT_NS (2 * NS_PER_SECOND)
#define REST_HEARTBEATS 5           /* a coordinator that goes away says so again after each */
#define AGENT_WAKE_EVENT UINT64_MAX /* epoll data of wake_fd */
#define EARLY_DEATHS_LIMIT 3        /* runners that die before they are ready, in a row on one slot */
#define DEVICE_FAILURES_LIMIT 3     /* of a GPU, in a row, runners that die early among them */
#define DEVICE_FAILURES_OF_ONE 5    /* the same with one trial only: more than that is tried */

enum attempt_state {
    ATTEMPT_QUEUED,   /* waits for a slot */
    ATTEMPT_FETCHING, /* has a slot; its checkpoint is on the way */
    ATTEMPT_PREPARED, /* has a slot; the runner is not ready yet */
    ATTEMPT_RUNNING,
    ATTEMPT_HELD, /* at `until`, checkpoint saved, in the runner's memory; waits for the answer to its report
                   */
    ATTEMPT_UPLOADING, /* its checkpoint goes to the coordinator; of a pause from the file, without a slot */
    ATTEMPT_ENDED,     /* `ended` is in the outbox */
};

struct slot;

struct attempt {
    int64_t trial, number;
    json_t *parameters, *final;
    int64_t start, until;
    char checkpoint[SHA256_TEXT]; /* to start from; "": none */
    enum attempt_state state;
    struct slot *slot; /* NULL: queued or ended */
    uint64_t transfer; /* fetch or upload under way; 0: none */
    struct outbox outbox;
    int64_t resource;    /* completed */
    int64_t last_report; /* sequence of the newest report, 0: none */
    char *start_path;    /* own link to the checkpoint to start from */
    char *save_path;     /* where the runner saves */
    bool has_saved;      /* the runner said that it did */
    bool pausing;        /* HELD or UPLOADING because of a pause */
    int64_t upload_ns;   /* HELD without a slot: when its checkpoint is due to be sent */
    bool stop_sent;
    struct message ended; /* being prepared while the checkpoint is uploaded */
};

enum slot_state {
    SLOT_EMPTY,    /* no runner; started at restart_ns */
    SLOT_STARTING, /* runner started, not idle yet */
    SLOT_READY,    /* runner takes a run (and may hold a paused trial) */
    SLOT_RUNNING,  /* runner trains */
    SLOT_ENDING,   /* its link closed or it was told to go: waits for its death */
    SLOT_OUT,      /* its device failed again and again: no more work */
};

struct slot {
    int number;
    enum slot_state state;
    struct child child;
    struct link link;
    struct attempt *attempt; /* the one it has, from assignment to the end; NULL: free */
    char *device;            /* what its runner computes on: "cpu/avx512_core" */
    bool announced;          /* `ready` was sent in this session, since it became free */
    int early_deaths;
    int device_failures; /* in a row, without a run that ended well between */
    int64_t failed_with; /* the trial of all of them; -1: of several, or of none */
    int64_t restart_ns, kill_ns;
    char fault[200];   /* why the agent ended it; "": it was not the agent */
    char failure[300]; /* how its device failed; "": it did not, in this runner */
    int64_t failing;   /* the trial that it failed with */
};

struct ended_attempt {
    int64_t trial, number;
};

#define DATA_FILES 8 /* of one sweep */

struct data_fetch {
    char key[24]; /* the setting below train.data that names the file */
    char sha256[SHA256_TEXT];
    char *path;
    uint64_t transfer; /* 0: it is there */
};

struct agent {
    char *endpoint_address, *name, *program, *server_key; /* server_key NULL: none */
    char host[256];
    double wait_seconds, reconnect_seconds, stop_seconds;
    bool stay;
    const struct log *log;

    struct bus *bus;
    struct endpoint *endpoint;
    struct transfers *transfers;
    struct scratch scratch;
    struct device_description *devices;
    int device_count;
    int epoll_fd; /* links and logs of all slots (data: the slot's number), and wake_fd */
    int wake_fd;  /* eventfd: stop requests reach the loop */
    volatile sig_atomic_t stop_level;

    /* The session with the coordinator. */
    char session[SESSION_SIZE];
    bool ever_welcomed, welcomed;
    int64_t begun_ns;     /* when the wait for the first welcome began */
    int64_t away_ns;      /* since when there is no session; 0: there is one */
    bool down;            /* the connection was lost, and that was logged */
    int64_t hello_ns;     /* 0: send one at once */
    int64_t heartbeat_ns; /* when the next one is due */
    struct error refusal; /* the newest one, for the time-out's text */

    /* The sweep. */
    char *sweep;
    json_t *sweep_line; /* the link's "sweep" message, complete once the data is there */
    int64_t heartbeat_interval_ns;
    struct data_fetch data[DATA_FILES];
    size_t data_count;
    bool data_ready; /* all of it is there */

    struct slot *slots;
    int slot_count;
    int64_t ask_ns;            /* when all runners are asked whether they live */
    struct attempt **attempts; /* in the order assigned */
    size_t attempt_count, attempt_capacity;
    struct ended_attempt *ended; /* sorted by trial: the newest attempt that ended here */
    size_t ended_count, ended_capacity;
    int64_t oom_kills; /* as the kernel counted when last looked at */

    bool draining;     /* take no more */
    bool interrupting; /* hand back what runs */
    bool resting;      /* then do not leave, but wait for the coordinator's return */
    int64_t rest_ns;   /* when it was told so last */
    int64_t stop_ns;   /* when interrupting began, or the draining had only answers to wait for; 0: not yet */
    bool finished;
    int result; /* of agent_run: 0, 1, -1 with `failure` */
    struct error failure;
    struct error broken; /* what is wrong with this machine: attempts are handed back, then agent_run fails */

    int64_t upload_ns; /* when the next checkpoint of a paused trial is due; 0: none */
    int64_t now_ns;    /* of this turn */
};

/* agent.c */
void agent_fail(struct agent *agent, const struct error *reason);
void agent_finish(struct agent *agent, int result);
/* This machine cannot go on (a full disk, no descriptors, ...): takes no more work, hands back what it has,
 * and then fails with `reason`. */
void agent_break(struct agent *agent, const char *reason);

/* agent_connection.c: the connection, hello, what is due, and whether it is time to go. */
void agent_session_step(struct agent *agent);
void agent_end_rest(struct agent *agent); /* as if never told to drain */

/* agent_session.c */
void agent_receive(struct agent *agent);
void agent_interrupt(struct agent *agent); /* take no more, hand back what runs */
void agent_forget_sweep(struct agent *agent);

/* agent_data.c */
/* Asks for all files; the runners are told the sweep when they are there. */
int agent_fetch_data(struct agent *agent, const json_t *train, struct error *err);
/* {"path": "/...", ...}: where they are, or will be. New object. */
json_t *agent_data_paths(const struct agent *agent);
void agent_forget_data(struct agent *agent);
void agent_data_fetched(struct agent *agent, const struct transfer_result *result);

/* agent_send.c */
void agent_send_hello(struct agent *agent);
void agent_send_due(struct agent *agent); /* heartbeat, outboxes, ready slots */
void agent_send_bye(struct agent *agent, const char *reason);

/* agent_assign.c */
void agent_assign(struct agent *agent, const struct message *message);
struct attempt *agent_find_attempt(const struct agent *agent, int64_t trial, int64_t number);
/* Whatever can begin now begins: queued attempts find slots, prepared ones their runner. */
void agent_dispatch(struct agent *agent);
void attempt_fetched(struct agent *agent, struct attempt *attempt, const struct transfer_result *result);
void attempt_cancel_transfer(struct agent *agent, struct attempt *attempt);
void attempt_remove_file(char **path); /* frees the path too */
/* It ended here: an assign of it, or of an older attempt, is no news. */
void agent_remember_ended(struct agent *agent, int64_t trial, int64_t number);
void agent_drop_attempt(struct agent *agent, struct attempt *attempt);
void agent_forget_attempts(struct agent *agent); /* all of them */

/* agent_attempts.c */
void agent_acknowledge(struct agent *agent, const struct message *message);
void attempt_take_report(struct agent *agent, struct attempt *attempt, json_t *line);
/* The runner's "ended". */
void attempt_runner_ended(struct agent *agent, struct attempt *attempt, json_t *line);
/* The attempt is over as `outcome`; `error` may be NULL. Frees its slot. */
void attempt_end(struct agent *agent, struct attempt *attempt, enum outcome outcome, const char *error);
/* The same as interrupted, for a fault that is not the trial's; `blame` as in link.h. */
void attempt_end_blamed(struct agent *agent, struct attempt *attempt, const char *blame, const char *error);
/* Asks for it back, with its checkpoint if it has one. */
void attempt_interrupt(struct agent *agent, struct attempt *attempt);
void agent_take_transfers(struct agent *agent);
int64_t agent_upload_paused(struct agent *agent); /* those that are due; when the next one is */

/* agent_slots.c */
/* Starts a runner for each device, before the sweep is known: they get ready while the agent knocks. */
int agent_start_slots(struct agent *agent, struct error *err);
/* The sweep is known: its runners are told, or started. */
int agent_join_slots(struct agent *agent, int64_t devices_per_trial, struct error *err);
void agent_stop_slots(struct agent *agent);
void agent_slots_step(struct agent *agent);
/* What its runner said and printed since. */
void slot_read(struct agent *agent, struct slot *slot);
void slot_send_sweep(struct agent *agent, struct slot *slot);
void slot_run(struct agent *agent, struct slot *slot);
void slot_send_until(struct agent *agent, struct slot *slot, const struct attempt *attempt);
void slot_send_stop(struct agent *agent, struct slot *slot, const struct attempt *attempt,
                    const char *reason);
/* Ends the runner for a fault of its own, or because time is up. */
void slot_kill(struct agent *agent, struct slot *slot, const char *fault);

/* agent_devices.c */
int agent_find_devices(struct agent *agent, const char *request, struct error *err);
bool slot_has_gpu(const struct agent *agent, const struct slot *slot);
/* One more failure of its GPU, with `trial` (-1: without one): takes the slot out when there were too many.
 * The node goes on with the others, or leaves where there is none. */
void slot_device_failed(struct agent *agent, struct slot *slot, int64_t trial, const char *why);

static inline bool slot_is_free(const struct slot *slot)
{
    return slot->state == SLOT_READY && !slot->attempt;
}

#endif
