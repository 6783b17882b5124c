/* What the coordinator says: welcome to a sweep, errors, drain; assign and acknowledge are passed on. */
#include "worker/agent_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void agent_forget_sweep(struct agent *agent)
{
    agent_forget_attempts(agent);
    agent_stop_slots(agent);
    agent_forget_data(agent);
    json_decref(agent->sweep_line);
    agent->sweep_line = NULL;
    free(agent->sweep);
    agent->sweep = NULL;
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
    if (!agent->sweep || agent_fetch_data(agent, welcome->train, err) != 0) {
        return agent->sweep ? -1 : error_set(err, ERROR_MEMORY, "no memory for the sweep");
    }
    agent->sweep_line = json_pack(
        "{s:s,s:O?,s:o,s:s,s:s?,s:b,s:s}", "type", "sweep", "train", welcome->train, "data_files",
        agent_data_paths(agent), "seed", welcome->seed ? welcome->seed : "0", "metric", welcome->metric,
        "maximize", (int)welcome->maximize, "objective", welcome->objective ? welcome->objective : "last");
    if (!agent->sweep_line) {
        return error_set(err, ERROR_MEMORY, "no memory for the sweep");
    }
    return agent_join_slots(agent, welcome->devices_per_trial, err);
}

static void take_welcome(struct agent *agent, const struct message *welcome)
{
    struct error err = {0};
    bool same = agent->sweep && strcmp(agent->sweep, welcome->sweep) == 0;
    if (same && agent->away_ns != 0) {
        log_info(agent->log, "", "reconnected to %s", agent->endpoint_address);
    }
    if (agent->resting && agent->stop_level == 0) {
        agent_end_rest(agent); /* the coordinator is back */
    }
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
            agent_forget_sweep(agent);
        }
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
        log_info(agent->log, "", "told to %s%s%s%s",
                 message->wait ? "hand back what runs and to wait" : "leave",
                 message->now && !message->wait ? " now" : "", message->reason ? ": " : "",
                 message->reason ? message->reason : "");
    }
    agent->resting = message->wait;
    agent->rest_ns = agent->now_ns;
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
