/* The coordinator as the agent sees it: hello and welcome, heartbeats, what is due in the outboxes, drain and
 * bye. */
#include "worker/agent_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool agent_send(struct agent *agent, const struct message *message)
{
    struct error err = {0};
    if (endpoint_send(agent->endpoint, NULL, message, &err) == 0) {
        return true;
    }
    log_debug(agent->log, "", "send %s: %s", message_type_name(message->type), err.message);
    return false;
}

/* What the agent holds, for hello and heartbeat; free() it. */
static struct running_attempt *running_list(const struct agent *agent)
{
    struct running_attempt *list = calloc(agent->attempt_count + 1, sizeof *list);
    for (size_t i = 0; list && i < agent->attempt_count; i++) {
        const struct attempt *attempt = agent->attempts[i];
        list[i] = (struct running_attempt){attempt->trial, attempt->number, attempt->outbox.last};
    }
    return list;
}

static void send_hello(struct agent *agent)
{
    struct message message;
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = agent->name;
    message.session = agent->session;
    message.host = agent->host;
    message.version = (char[]){RUNG_VERSION};
    message.devices = agent->devices;
    message.device_count = (size_t)agent->device_count;
    message.running = running_list(agent);
    message.running_count = message.running ? agent->attempt_count : 0;
    agent_send(agent, &message);
    free(message.running);
    agent->welcomed = false;
    agent->hello_ns = agent->now_ns + HELLO_REPEAT_NS;
}

static void send_ready(struct agent *agent, const struct slot *slot)
{
    struct message message;
    message_init(&message, MESSAGE_READY);
    message.slot = slot->number;
    message.lanes = 1;
    agent_send(agent, &message);
}

static void send_heartbeat(struct agent *agent)
{
    struct message message;
    message_init(&message, MESSAGE_HEARTBEAT);
    message.running = running_list(agent);
    message.running_count = message.running ? agent->attempt_count : 0;
    message.devices = agent->devices;
    message.device_count = (size_t)agent->device_count;
    message.ready_slots = json_array();
    for (int i = 0; i < agent->slot_count; i++) {
        if (slot_is_free(&agent->slots[i]) && !agent->draining && !agent->interrupting) {
            json_array_append_new(message.ready_slots, json_integer(i));
        }
    }
    /* A list that lacks what is held would be taken for a loss: without memory for it rather no heartbeat. */
    if (message.running) {
        agent_send(agent, &message);
    }
    free(message.running);
    json_decref(message.ready_slots);
    agent->heartbeat_ns = agent->now_ns + agent->heartbeat_interval_ns;
}

static void send_bye(struct agent *agent, const char *reason)
{
    struct message message;
    message_init(&message, MESSAGE_BYE);
    message.reason = (char *)reason;
    agent_send(agent, &message);
}

/* "tcp://host:1234" with another port, or the ipc address as it came. free() it. */
static char *blob_address(const struct agent *agent, const struct message *welcome)
{
    if (welcome->blob_endpoint) {
        return strdup(welcome->blob_endpoint);
    }
    const char *colon = strrchr(agent->endpoint_address, ':');
    size_t size = strlen(agent->endpoint_address) + 32;
    char *address = welcome->blob_port > 0 && colon ? malloc(size) : NULL;
    if (address) {
        snprintf(address, size, "%.*s:%lld", (int)(colon - agent->endpoint_address), agent->endpoint_address,
                 (long long)welcome->blob_port);
    }
    return address;
}

/* Asks for the data; the runners are told the sweep when it is there. */
static int sweep_fetch_data(struct agent *agent, const json_t *train, struct error *err)
{
    const char *sha256 = json_get_string(json_object_get(train, "data"), "sha256", NULL);
    if (!sha256) {
        agent->data_ready = true; /* a sweep without data of its own */
        return 0;
    }
    if (!sha256_is_valid(sha256)) {
        return error_set(err, ERROR_PROTOCOL, "welcome: train.data.sha256 is no hash");
    }
    agent->data_path = scratch_blob_path(&agent->scratch, sha256);
    agent->data_transfer =
        agent->data_path ? transfers_fetch(agent->transfers, sha256, agent->data_path, true) : 0;
    if (agent->data_transfer == 0) {
        return error_set(err, ERROR_MEMORY, "no memory to fetch the data");
    }
    return 0;
}

static void forget_sweep(struct agent *agent)
{
    agent_forget_attempts(agent);
    agent_stop_slots(agent);
    if (agent->data_transfer) {
        transfers_cancel(agent->transfers, agent->data_transfer);
        agent->data_transfer = 0;
    }
    json_decref(agent->sweep_line);
    agent->sweep_line = NULL;
    free(agent->sweep);
    agent->sweep = NULL;
    free(agent->data_path);
    agent->data_path = NULL;
    agent->data_ready = false;
}

static int begin_sweep(struct agent *agent, const struct message *welcome, struct error *err)
{
    char *address = blob_address(agent, welcome);
    int result = address ? transfers_connect(agent->transfers, address, agent->server_key, err)
                         : error_set(err, ERROR_PROTOCOL, "welcome: no blob socket");
    free(address);
    if (result != 0) {
        return -1;
    }
    agent->sweep = strdup(welcome->sweep);
    if (!agent->sweep || sweep_fetch_data(agent, welcome->train, err) != 0) {
        return agent->sweep ? -1 : error_set(err, ERROR_MEMORY, "no memory for the sweep");
    }
    agent->sweep_line = json_pack(
        "{s:s,s:O?,s:s?,s:s,s:s?,s:b,s:s}", "type", "sweep", "train", welcome->train, "data_path",
        agent->data_path, "seed", welcome->seed ? welcome->seed : "0", "metric", welcome->metric, "maximize",
        (int)welcome->maximize, "objective", welcome->objective ? welcome->objective : "last");
    if (!agent->sweep_line) {
        return error_set(err, ERROR_MEMORY, "no memory for the sweep");
    }
    return agent_start_slots(agent, welcome->devices_per_trial, err);
}

static void take_welcome(struct agent *agent, const struct message *welcome)
{
    struct error err = {0};
    bool same = agent->sweep && strcmp(agent->sweep, welcome->sweep) == 0;
    agent->welcomed = true;
    agent->ever_welcomed = true;
    agent->refusal.code = ERROR_NONE;
    /* Below a second a heartbeat would cost more than it tells; above a minute the lease is lost. */
    double seconds =
        welcome->heartbeat_seconds > 0.05 && welcome->heartbeat_seconds < 60 ? welcome->heartbeat_seconds : 2;
    agent->heartbeat_interval_ns = (int64_t)(seconds * NS_PER_SECOND);
    agent->heartbeat_ns = agent->now_ns + agent->heartbeat_interval_ns;
    if (!same) {
        if (agent->sweep) {
            log_warning(agent->log, "", "the coordinator now serves another sweep: what was held is dropped");
        }
        forget_sweep(agent);
        if (begin_sweep(agent, welcome, &err) != 0) {
            agent_fail(agent, &err);
            return;
        }
        log_info(agent->log, "", "joined sweep %s (%s) with %d slots",
                 welcome->sweep_name ? welcome->sweep_name : "", welcome->sweep, agent->slot_count);
    }
    for (size_t i = 0; i < agent->attempt_count; i++) {
        outbox_rewind(&agent->attempts[i]->outbox);
    }
    for (int i = 0; i < agent->slot_count; i++) {
        agent->slots[i].announced = false;
    }
}

static void take_error(struct agent *agent, const struct message *message)
{
    const char *code = message->code ? message->code : "";
    const char *text = message->error ? message->error : code;
    if (strcmp(code, "unknown_session") == 0) {
        /* Each message sent before the new hello is answered so: one hello for all of them. */
        if (agent->welcomed) {
            log_info(agent->log, "",
                     "the coordinator does not know this worker (any more): introducing it again");
            agent->welcomed = false;
            agent->hello_ns = 0;
        }
    } else if (strcmp(code, "name_taken") == 0) {
        if (agent->refusal.code == ERROR_NONE) {
            log_warning(agent->log, "", "refused: %s; trying on", text);
        }
        error_set(&agent->refusal, ERROR_CONNECT,
                  "%s refused the name '%s': %s; give another one with --name", agent->endpoint_address,
                  agent->name, text);
        agent->welcomed = false;
    } else if (strcmp(code, "protocol") == 0 && !agent->welcomed) {
        struct error err;
        error_set(&err, ERROR_CONNECT, "%s refused this worker (version %s): %s", agent->endpoint_address,
                  RUNG_VERSION, text);
        agent_fail(agent, &err);
    } else {
        log_warning(agent->log, "", "error from the coordinator: %s: %s", code, text);
    }
}

void agent_interrupt(struct agent *agent)
{
    agent->draining = true;
    if (agent->interrupting) {
        return;
    }
    agent->interrupting = true;
    agent->stop_ns = agent->now_ns;
    /* An attempt may end, but none goes, while this runs: those go with an acknowledge. */
    for (size_t i = 0; i < agent->attempt_count; i++) {
        attempt_interrupt(agent, agent->attempts[i]);
    }
}

static void take_drain(struct agent *agent, const struct message *message)
{
    if (!agent->draining || (message->now && !agent->interrupting)) {
        log_info(agent->log, "", "told to leave%s%s%s", message->now ? " now" : "",
                 message->reason ? ": " : "", message->reason ? message->reason : "");
    }
    agent->draining = true;
    if (message->now) {
        agent_interrupt(agent);
    }
}

void agent_receive(struct agent *agent)
{
    struct message message;
    struct error err = {0};
    int result;
    while (!agent->finished && (result = endpoint_receive(agent->endpoint, NULL, &message, &err)) != 0) {
        if (result < 0) {
            log_warning(agent->log, "", "a malformed message was dropped: %s", err.message);
            continue;
        }
        switch (message.type) {
        case MESSAGE_WELCOME:
            take_welcome(agent, &message);
            break;
        case MESSAGE_ASSIGN:
            agent_assign(agent, &message);
            break;
        case MESSAGE_ACKNOWLEDGE:
            agent_acknowledge(agent, &message);
            break;
        case MESSAGE_DRAIN:
            take_drain(agent, &message);
            break;
        case MESSAGE_ERROR:
            take_error(agent, &message);
            break;
        default:
            log_warning(agent->log, "", "an unexpected %s was dropped", message_type_name(message.type));
        }
        message_release(&message);
    }
}

static void refused(struct agent *agent)
{
    struct error err;
    if (agent->server_key) {
        error_set(&err, ERROR_CONNECT,
                  "%s refused this worker's key, or has another one than expected. The public key of this "
                  "worker must be in the coordinator's `authorized` file, and --server-key must be the "
                  "coordinator's: see rung keygen",
                  agent->endpoint_address);
    } else {
        error_set(&err, ERROR_CONNECT, "%s refused a connection without encryption: leave out --insecure",
                  agent->endpoint_address);
    }
    agent_fail(agent, &err);
}

static void connect_step(struct agent *agent)
{
    enum connection_state state = endpoint_state(agent->endpoint);
    if (state == CONNECTION_REFUSED && !agent->ever_welcomed) {
        refused(agent);
        return;
    }
    if (state == CONNECTION_DOWN || state == CONNECTION_REFUSED) {
        if (!agent->down) {
            agent->down = true;
            log_info(agent->log, "", "no connection to %s: %s", agent->endpoint_address,
                     agent->attempt_count > 0 ? "training goes on" : "trying again");
        }
        agent->welcomed = false;
        agent->hello_ns = 0; /* at once when it is back */
        return;
    }
    if (state == CONNECTION_UP) {
        agent->down = false;
        if (agent->hello_ns == INT64_MAX) {
            agent->hello_ns = agent->now_ns + HELLO_REPEAT_NS; /* that one is on its way now */
        }
    }
    if (!agent->welcomed && agent->now_ns >= agent->hello_ns) {
        send_hello(agent);
        if (state == CONNECTION_NONE) {
            agent->hello_ns = INT64_MAX; /* it waits in the socket: one is enough */
        }
    }
}

static void connect_deadline(struct agent *agent)
{
    struct error err;
    if (agent->welcomed) {
        agent->away_ns = 0;
    } else if (agent->away_ns == 0) {
        agent->away_ns = agent->now_ns;
    }
    double waited = (double)(agent->now_ns - agent->begun_ns) / NS_PER_SECOND;
    double away = agent->away_ns ? (double)(agent->now_ns - agent->away_ns) / NS_PER_SECOND : 0;
    if (!agent->ever_welcomed && waited > agent->wait_seconds) {
        if (agent->refusal.code == ERROR_NONE) {
            error_set(&agent->refusal, ERROR_CONNECT, "no coordinator answered at %s within %g s",
                      agent->endpoint_address, agent->wait_seconds);
        }
        agent_fail(agent, &agent->refusal);
    } else if (agent->ever_welcomed && away > agent->reconnect_seconds && !(agent->stay && !agent->sweep)) {
        error_set(&err, ERROR_CONNECT, "lost the coordinator at %s, and it did not come back within %g s",
                  agent->endpoint_address, agent->reconnect_seconds);
        agent_fail(agent, agent->refusal.code == ERROR_NONE ? &err : &agent->refusal);
    }
}

static void send_due(struct agent *agent)
{
    if (agent->now_ns >= agent->heartbeat_ns) {
        send_heartbeat(agent);
    }
    for (size_t i = 0; i < agent->attempt_count; i++) {
        struct outbox *outbox = &agent->attempts[i]->outbox;
        const struct message *message;
        while ((message = outbox_next(outbox, agent->now_ns))) {
            if (!agent_send(agent, message)) {
                return;
            }
            outbox_sent(outbox, agent->now_ns);
        }
    }
    for (int i = 0; i < agent->slot_count; i++) {
        struct slot *slot = &agent->slots[i];
        if (!slot_is_free(slot)) {
            slot->announced = false;
        } else if (!slot->announced && !agent->draining) {
            send_ready(agent, slot);
            slot->announced = true;
        }
    }
}

/* Runners that have not come to an epoch's end in time: their trials go back as they came. */
static void end_the_slow(struct agent *agent)
{
    for (int i = 0; i < agent->slot_count; i++) {
        struct slot *slot = &agent->slots[i];
        struct attempt *attempt = slot->attempt;
        if (attempt && attempt->state == ATTEMPT_RUNNING) {
            attempt->resource = attempt->start;
            attempt_end(agent, attempt, OUTCOME_INTERRUPTED, "the epoch did not end in time");
            slot_kill(agent, slot, "time is up");
        }
    }
}

/* The next sweep, with --stay: a new session, as if just started, but waiting as long as it takes. */
static void begin_again(struct agent *agent)
{
    forget_sweep(agent);
    random_hex(agent->session, (SESSION_SIZE - 1) / 2);
    agent->welcomed = false;
    agent->draining = false;
    agent->interrupting = false;
    agent->stop_ns = 0;
    agent->hello_ns = agent->now_ns + HELLO_REPEAT_NS;
}

static void leave(struct agent *agent, const char *reason)
{
    if (agent->welcomed || !agent->ever_welcomed) {
        send_bye(agent, reason);
    }
    if (agent->stay && agent->stop_level == 0) {
        begin_again(agent);
    } else {
        agent_finish(agent, agent->stop_level > 0 ? 1 : 0);
    }
}

/* After drain or a wish to stop: until everything is acknowledged, or time is up. */
static void leave_step(struct agent *agent)
{
    bool running = false;
    for (size_t i = 0; i < agent->attempt_count; i++) {
        running = running || agent->attempts[i]->state != ATTEMPT_ENDED;
    }
    if (!running && agent->stop_ns == 0) {
        agent->stop_ns = agent->now_ns; /* only answers are missing: they too get that long */
    }
    double passed = agent->stop_ns ? (double)(agent->now_ns - agent->stop_ns) / NS_PER_SECOND : 0;
    if (agent->attempt_count == 0) {
        leave(agent, "drained");
    } else if (passed >= agent->stop_seconds) {
        log_warning(agent->log, "", "leaving with %zu attempts not handed back in time",
                    agent->attempt_count);
        leave(agent, "time is up");
    } else if (agent->interrupting && passed >= STOP_KILL_SHARE * agent->stop_seconds) {
        end_the_slow(agent);
    }
}

void agent_session_step(struct agent *agent)
{
    connect_step(agent);
    if (!agent->finished) {
        connect_deadline(agent);
    }
    if (!agent->finished && agent->welcomed) {
        send_due(agent);
    }
    if (!agent->finished && (agent->draining || agent->interrupting)) {
        leave_step(agent);
    }
}
