/* A virtual agent: sessions, heartbeats, slots, and how it goes. */
#include "simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_NS SECOND
#define REST_NS (5 * SECOND)

static uint64_t done_key(int64_t trial, int64_t attempt)
{
    return (uint64_t)trial << 20 | (uint64_t)attempt;
}

void agent_say(struct simulation *simulation, struct agent *agent, struct message *message)
{
    struct packet *packet = packet_new(simulation, message);
    network_to_server(simulation, agent, packet);
    packet_release(packet);
}

static void running_list(const struct agent *agent, struct message *message)
{
    message->running = calloc((size_t)agent->training_count + 1, sizeof(*message->running));
    message->running_count = (size_t)agent->training_count;
    for (int i = 0; i < agent->training_count; i++)
        message->running[i] = (struct running_attempt){
            .trial = agent->trainings[i]->trial,
            .attempt = agent->trainings[i]->attempt,
            .sequence = agent->trainings[i]->sequence,
        };
}

static void say_hello(struct simulation *simulation, struct agent *agent)
{
    struct message message;
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = strdup(agent->name);
    message.session = strdup(agent->session);
    message.host = strdup("host");
    message.version = strdup("1");
    message.devices = calloc(1, sizeof(*message.devices));
    message.device_count = 1;
    message.devices[0].id = strdup("cpu:0");
    message.devices[0].kind = strdup("cpu");
    running_list(agent, &message);
    agent_say(simulation, agent, &message);
}

/* Nothing runs there, nor was anything assigned to it while it was about to be free. */
static bool slot_is_free(const struct agent *agent, int slot)
{
    for (int i = 0; i < agent->training_count; i++)
        if (agent->trainings[i]->slot == slot &&
            (training_needs_slot(agent->trainings[i]) || agent->trainings[i]->state == QUEUES))
            return false;
    return true;
}

static void begin_queued(struct simulation *simulation, struct agent *agent, int slot)
{
    struct training *next = NULL;
    for (int i = 0; i < agent->training_count; i++) {
        struct training *training = agent->trainings[i];
        if (training->slot == slot && training_needs_slot(training))
            return;
        if (training->state == QUEUES && !next)
            next = training;
    }
    if (!next)
        return;
    next->slot = slot;
    training_begin(simulation, agent, next);
}

static void say_heartbeat(struct simulation *simulation, struct agent *agent)
{
    struct message message;
    message_init(&message, MESSAGE_HEARTBEAT);
    running_list(agent, &message);
    message.ready_slots = json_array();
    for (int slot = 0; slot < agent->slots && !agent->leaving && !agent->resting; slot++)
        if (slot_is_free(agent, slot))
            json_array_append_new(message.ready_slots, json_integer(slot));
    agent_say(simulation, agent, &message);
}

static void say_ready(struct simulation *simulation, struct agent *agent, int slot)
{
    struct message message;
    message_init(&message, MESSAGE_READY);
    message.slot = slot;
    message.lanes = 1;
    agent_say(simulation, agent, &message);
}

void agent_start(struct simulation *simulation, struct agent *agent)
{
    agent->alive = true;
    agent->leaving = agent->welcomed = agent->cut = agent->resting = false;
    agent->process++;
    agent->connection++;
    snprintf(agent->session, sizeof(agent->session), "%08x%08x", agent->index + 1, (unsigned)agent->process);
    simulation_say(simulation, "%s starts", agent->name);
    agent_timer(simulation, agent);
}

static void agent_forget_all(struct agent *agent)
{
    for (int i = 0; i < agent->training_count; i++)
        training_release(agent->trainings[i]);
    agent->training_count = 0;
    engine_table_release(&agent->done);
}

void agent_kill(struct simulation *simulation, struct agent *agent, int64_t away_ns)
{
    agent->alive = false;
    agent_forget_all(agent);
    if (agent->stays_away)
        return;
    simulation_schedule(simulation, &(struct happening){
                                        .time_ns = simulation->now_ns + away_ns,
                                        .type = HAPPENS_WORKER_START,
                                        .worker = agent->index,
                                    });
}

void agent_release(struct agent *agent)
{
    agent_forget_all(agent);
    free(agent->trainings);
}

void agent_timer(struct simulation *simulation, struct agent *agent)
{
    if (agent->resting && simulation->now_ns - agent->told_ns > REST_NS)
        agent->welcomed = false; /* it would have been told again */
    if (!agent->welcomed)
        say_hello(simulation, agent);
    else
        say_heartbeat(simulation, agent);
    for (int i = 0; i < agent->training_count; i++)
        training_resend(simulation, agent, agent->trainings[i]);
    simulation_schedule(simulation, &(struct happening){
                                        .time_ns = simulation->now_ns + TIMER_NS,
                                        .type = HAPPENS_WORKER_TIMER,
                                        .worker = agent->index,
                                        .process = agent->process,
                                    });
    agent_tidy(simulation, agent);
}

void agent_leave(struct simulation *simulation, struct agent *agent)
{
    simulation_say(simulation, "%s hands back what it has", agent->name);
    agent->leaving = true;
    for (int i = 0; i < agent->training_count; i++)
        training_interrupt(simulation, agent, agent->trainings[i]);
    agent_tidy(simulation, agent);
}

void agent_tidy(struct simulation *simulation, struct agent *agent)
{
    for (int slot = 0; slot < agent->slots; slot++)
        begin_queued(simulation, agent, slot);
    for (int i = 0; i < agent->training_count;) {
        struct training *training = agent->trainings[i];
        if (training->state != HAS_ENDED || training->acknowledged < training->sequence) {
            i++;
            continue;
        }
        engine_table_put(&agent->done, done_key(training->trial, training->attempt), agent);
        training_release(training);
        agent->trainings[i] = agent->trainings[--agent->training_count];
    }
    if (!agent->leaving || agent->training_count > 0 || !agent->alive)
        return;
    struct message message;
    message_init(&message, MESSAGE_BYE);
    agent_say(simulation, agent, &message);
    simulation_say(simulation, "%s goes", agent->name);
    agent_kill(simulation, agent, simulation_between(simulation, SECOND / 2, 10 * SECOND));
}

static void take_assign(struct simulation *simulation, struct agent *agent, const struct message *message)
{
    if (agent->leaving || agent->resting || message->slot < 0 || message->slot >= agent->slots)
        return;
    for (size_t i = 0; i < message->trial_count; i++) {
        const struct assignment *assignment = &message->trials[i];
        bool known = engine_table_get(&agent->done, done_key(assignment->trial, assignment->attempt));
        for (int j = 0; j < agent->training_count; j++)
            known |= agent->trainings[j]->trial == assignment->trial &&
                     agent->trainings[j]->attempt == assignment->attempt;
        if (!known)
            training_add(simulation, agent, assignment, (int)message->slot);
    }
    agent_tidy(simulation, agent);
}

static void take_acknowledge(struct simulation *simulation, struct agent *agent,
                             const struct message *message)
{
    for (int i = 0; i < agent->training_count; i++) {
        struct training *training = agent->trainings[i];
        if (training->trial != message->trial || training->attempt != message->attempt)
            continue;
        bool had_ended = training->state == HAS_ENDED;
        int slot = training->slot;
        training_acknowledged(simulation, agent, training, message);
        if (!had_ended && training->state == HAS_ENDED && !agent->leaving && !agent->resting)
            say_ready(simulation, agent, slot);
        break;
    }
    agent_tidy(simulation, agent);
}

static void take_drain(struct simulation *simulation, struct agent *agent, const struct message *message)
{
    if (strncmp(message->reason, "sweep ", strlen("sweep ")) == 0)
        agent->stays_away = true;
    if (message->wait) {
        for (int i = 0; i < agent->training_count && !agent->resting; i++)
            training_interrupt(simulation, agent, agent->trainings[i]);
        agent->resting = true;
        agent->told_ns = simulation->now_ns;
        agent_tidy(simulation, agent);
    } else if (!agent->leaving && message->now) {
        agent_leave(simulation, agent);
    } else if (!agent->leaving) {
        agent->leaving = true; /* nothing runs at the end of a sweep */
        agent_tidy(simulation, agent);
    }
}

void agent_receive(struct simulation *simulation, struct agent *agent, const struct message *message)
{
    simulation_say(simulation, "  -> %s %s %lld/%lld #%lld until %lld %s", agent->name,
                   message_type_name(message->type),
                   message->trial_count ? (long long)message->trials[0].trial : (long long)message->trial,
                   message->trial_count ? (long long)message->trials[0].attempt : (long long)message->attempt,
                   (long long)message->sequence,
                   message->trial_count ? (long long)message->trials[0].until : (long long)message->until,
                   message->code ? message->code : (message->action == ACTION_STOP ? "stop" : ""));
    switch (message->type) {
    case MESSAGE_WELCOME:
        agent->welcomed = true;
        agent->resting = false;
        for (int slot = 0; slot < agent->slots && !agent->leaving; slot++)
            if (slot_is_free(agent, slot))
                say_ready(simulation, agent, slot);
        break;
    case MESSAGE_ASSIGN:
        take_assign(simulation, agent, message);
        break;
    case MESSAGE_ACKNOWLEDGE:
        take_acknowledge(simulation, agent, message);
        break;
    case MESSAGE_DRAIN:
        take_drain(simulation, agent, message);
        break;
    case MESSAGE_ERROR:
        if (strcmp(message->code, "unknown_session") == 0 && agent->welcomed) {
            agent->welcomed = false;
            say_hello(simulation, agent);
        } else if (strcmp(message->code, "unknown_session") != 0 &&
                   strcmp(message->code, "name_taken") != 0) {
            simulation_violate(simulation, "%s was answered %s: %s", agent->name, message->code,
                               message->error);
        }
        break;
    default:
        simulation_violate(simulation, "%s got a %s", agent->name, message_type_name(message->type));
        break;
    }
}
