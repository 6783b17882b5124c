/* What the agent says: hello, ready, heartbeats, and what is due in the outboxes. */
#include "worker/agent_private.h"

#include <stdlib.h>

static bool agent_send(struct agent *agent, const struct message *message)
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

void agent_send_hello(struct agent *agent)
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

void agent_send_bye(struct agent *agent, const char *reason)
{
    struct message message;
    message_init(&message, MESSAGE_BYE);
    message.reason = (char *)reason;
    agent_send(agent, &message);
}

void agent_send_due(struct agent *agent)
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
