/* The network: one link a worker and direction, which keeps order but for faults. */
#include "simulation.h"

#include <stdlib.h>
#include <string.h>

/* Every eighth message goes through the wire's own encoder and decoder. */
static void through_the_wire(struct simulation *simulation, struct message *message)
{
    struct message decoded;
    struct error err = {0};
    size_t size = 0;
    char *text = message_encode(message, &size, &err);
    if (!text || message_decode(&decoded, text, size, NULL, 0, &err) < 0)
        simulation_violate(simulation, "a %s message does not survive the wire: %s",
                           message_type_name(message->type), err.message);
    else {
        message_release(message);
        *message = decoded;
    }
    free(text);
}

struct packet *packet_new(struct simulation *simulation, struct message *message)
{
    struct packet *packet = calloc(1, sizeof(*packet));
    packet->references = 1;
    if (++simulation->messages % 8 == 0)
        through_the_wire(simulation, message);
    packet->message = *message;
    message_init(message, message->type);
    return packet;
}

void packet_release(struct packet *packet)
{
    if (!packet || --packet->references > 0)
        return;
    message_release(&packet->message);
    free(packet);
}

/* Puts it on the link: when it arrives, how often, or whether at all. */
static void transmit(struct simulation *simulation, struct happening *happening, int64_t *link_ns)
{
    happening->time_ns = simulation->now_ns + simulation_between(simulation, MS / 2, 3 * MS);
    if (happening->time_ns < *link_ns)
        happening->time_ns = *link_ns;
    if (simulation_fault(simulation, FAULT_LOSE, 6))
        return;
    if (simulation_fault(simulation, FAULT_DELAY, 6))
        happening->time_ns += simulation_between(simulation, SECOND, 12 * SECOND);
    else if (simulation_fault(simulation, FAULT_REORDER, 6))
        happening->time_ns += simulation_between(simulation, 10 * MS, 400 * MS);
    else
        *link_ns = happening->time_ns;
    if (simulation_fault(simulation, FAULT_REPEAT, 6)) {
        struct happening again = *happening;
        again.time_ns += simulation_between(simulation, 0, 8 * SECOND);
        again.packet->references++;
        simulation_schedule(simulation, &again);
    }
    happening->packet->references++;
    simulation_schedule(simulation, happening);
}

void network_to_server(struct simulation *simulation, struct agent *agent, struct packet *packet)
{
    struct happening happening = {
        .type = HAPPENS_DELIVER_TO_SERVER,
        .worker = agent->index,
        .process = simulation->server.incarnation,
        .id = agent->connection,
        .packet = packet,
    };
    if (agent->cut || !simulation->server.up)
        return;
    transmit(simulation, &happening, &simulation->link_ns[agent->index][0]);
}

/* A peer number holds the incarnation, the worker and its connection, as a routing id would. */
void network_to_worker(struct simulation *simulation, peer_number peer, struct packet *packet)
{
    struct happening happening = {
        .type = HAPPENS_DELIVER_TO_WORKER,
        .worker = (int)(peer >> 20 & 63),
        .id = peer & 0xfffff,
        .packet = packet,
    };
    if (!simulation->agents[happening.worker].cut)
        transmit(simulation, &happening, &simulation->link_ns[happening.worker][1]);
}
