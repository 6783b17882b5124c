/* The coordinator: turns as the real server has them, and what can go wrong in the middle of one. */
#include "simulation.h"

#include <stdlib.h>
#include <string.h>

#define LEFTOVERS_NS (24 * SECOND) /* four leases, as in the real server */

static void turn_schedule(struct simulation *simulation, int64_t time_ns)
{
    struct world_server *server = &simulation->server;
    if (time_ns < server->busy_until_ns)
        time_ns = server->busy_until_ns;
    if (time_ns < simulation->now_ns)
        time_ns = simulation->now_ns;
    if (server->turn_due && server->turn_ns <= time_ns)
        return;
    server->turn_due = true;
    server->turn_ns = time_ns;
    simulation_schedule(
        simulation,
        &(struct happening){.time_ns = time_ns, .type = HAPPENS_TURN, .process = server->incarnation});
}

static void inbox_clear(struct world_server *server)
{
    for (size_t i = 0; i < server->inbox_count; i++)
        packet_release(server->inbox[i].packet);
    server->inbox_count = 0;
}

static void server_crash(struct simulation *simulation, int64_t down_ns)
{
    struct world_server *server = &simulation->server;
    engine_destroy(server->engine);
    server->engine = NULL;
    effects_clear(&server->effects);
    inbox_clear(server);
    server->up = server->commit_pending = server->turn_due = server->leaving = server->renew_due = false;
    server->interrupt_due = false;
    server->busy_until_ns = 0;
    server->incarnation++;
    server->command_due = 0;
    simulation_schedule(simulation, &(struct happening){.time_ns = simulation->now_ns + down_ns,
                                                        .type = HAPPENS_SERVER_START});
}

static void crash_at_random(struct simulation *simulation)
{
    server_crash(simulation, simulation_between(simulation, SECOND / 10, 9 * SECOND));
}

static void send_all(struct simulation *simulation, size_t limit)
{
    struct effects *effects = &simulation->server.effects;
    for (size_t i = 0; i < effects->message_count && i < limit; i++) {
        if (effects->messages[i].message.type == MESSAGE_ANSWER)
            continue; /* the operator sees by the store what became of it */
        struct packet *packet = packet_new(simulation, &effects->messages[i].message);
        network_to_worker(simulation, effects->messages[i].peer, packet);
        packet_release(packet);
    }
}

/* What the commit made true: blobs go, messages leave. */
static void after_commit(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    bool had_records = server->effects.record_count > 0;
    if (had_records)
        store_apply(simulation, &server->effects);
    if (had_records && simulation_fault(simulation, FAULT_CRASH_AFTER_COMMIT, 4)) {
        check_recovery(simulation);
        crash_at_random(simulation);
        return;
    }
    for (size_t i = 0; i < server->effects.unneeded_count; i++)
        blob_delete(simulation, server->effects.unneeded_blobs[i]);
    if (server->effects.message_count > 1 && simulation_fault(simulation, FAULT_CRASH_AMID_SENDS, 1)) {
        check_recovery(simulation);
        send_all(simulation,
                 (size_t)simulation_between(simulation, 1, (int64_t)server->effects.message_count - 1));
        crash_at_random(simulation);
        return;
    }
    send_all(simulation, SIZE_MAX);
    int64_t wake_ns = server->effects.wake_ns;
    effects_clear(&server->effects);
    if (wake_ns < INT64_MAX)
        turn_schedule(simulation, wake_ns);
}

static void commit(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    if (server->effects.record_count == 0) {
        after_commit(simulation);
        return;
    }
    if (simulation_fault(simulation, FAULT_CRASH_BEFORE_COMMIT, 4)) {
        crash_at_random(simulation);
        return;
    }
    if (simulation_fault(simulation, FAULT_COMMIT_FAILS, 4)) {
        server->commit_pending = server->renew_due = true;
        server->busy_until_ns = simulation->now_ns + simulation_between(simulation, SECOND / 10, 9 * SECOND);
        turn_schedule(simulation, server->busy_until_ns);
        return;
    }
    after_commit(simulation);
    if (server->up && simulation_fault(simulation, FAULT_SLOW_TURN, 4)) {
        server->renew_due = true;
        server->busy_until_ns = simulation->now_ns + simulation_between(simulation, SECOND, 12 * SECOND);
        turn_schedule(simulation, server->busy_until_ns);
    }
}

/* As the real server does it: what nobody named when it started goes at once when no attempt runs, else when
 * whoever was about to name it must have done so, or at the end. */
static void leftovers_remove(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    if (server->leftover_count == 0 ||
        (simulation->now_ns < server->leftovers_due_ns && !engine_has_ended(server->engine)))
        return;
    size_t count;
    uint64_t *unnamed = blobs_unnamed(simulation, &count);
    for (size_t i = 0; i < server->leftover_count; i++)
        for (size_t j = 0; j < count; j++)
            if (server->leftovers[i] && unnamed[j] == server->leftovers[i])
                engine_table_remove(&simulation->store.blobs, unnamed[j]);
    free(unnamed);
    server->leftover_count = 0;
}

static void leftovers_find(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    free(server->leftovers);
    server->leftovers = blobs_unnamed(simulation, &server->leftover_count);
    server->leftovers_due_ns =
        engine_is_quiet(server->engine) ? simulation->now_ns : simulation->now_ns + LEFTOVERS_NS;
    leftovers_remove(simulation);
}

void server_start(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    struct error err = {0};
    if (simulation->store.count == 0) {
        struct sweep_record sweep = {.id = "simulate", .name = (char *)"simulated", .seed = simulation->seed};
        effects_init(&server->effects);
        server->engine =
            engine_create(&simulation->settings, &sweep, simulation_now(simulation), &server->effects, &err);
    } else {
        struct snapshot snapshot;
        store_snapshot(simulation, &snapshot);
        server->engine = engine_restore(&simulation->settings, &snapshot, simulation_now(simulation),
                                        &server->effects, &err);
        store_snapshot_release(&snapshot);
        simulation->restarts++;
    }
    simulation_say(simulation, "coordinator starts");
    if (!server->engine) {
        simulation_violate(simulation, "the coordinator does not start: %s", err.message);
        return;
    }
    struct engine_counts counts;
    engine_counts(server->engine, &counts);
    simulation->proposed = counts.proposed;
    server->up = true;
    commit(simulation);
    if (server->up)
        leftovers_find(simulation);
}

void server_deliver(struct simulation *simulation, const struct happening *happening)
{
    struct world_server *server = &simulation->server;
    if (!server->up || happening->process != server->incarnation) {
        packet_release(happening->packet);
        return;
    }
    if (server->inbox_count == server->inbox_capacity) {
        server->inbox_capacity = server->inbox_capacity ? server->inbox_capacity * 2 : 16;
        server->inbox = realloc(server->inbox, server->inbox_capacity * sizeof(*server->inbox));
    }
    server->inbox[server->inbox_count++] = *happening;
    turn_schedule(simulation, simulation->now_ns + MS / 4);
}

static void handle(struct simulation *simulation, const struct event *event)
{
    struct world_server *server = &simulation->server;
    struct error err = {0};
    if (*simulation->violation)
        return;
    if (event->type == EVENT_MESSAGE)
        simulation_say(simulation, "  <- worker-%d %s %lld/%lld #%lld %s", (int)(event->peer >> 20 & 63) + 1,
                       message_type_name(event->message->type), (long long)event->message->trial,
                       (long long)event->message->attempt, (long long)event->message->sequence,
                       event->message->type == MESSAGE_ENDED ? outcome_name(event->message->outcome) : "");
    if (engine_handle(server->engine, event, simulation_now(simulation), &server->effects, &err) < 0)
        simulation_violate(simulation, "the engine failed: %s", err.message);
    else
        check_event(simulation);
}

static void inbox_handle(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    for (size_t i = 0; i < server->inbox_count; i++) {
        const struct happening *happening = &server->inbox[i];
        peer_number peer = server->incarnation << 26 | (uint64_t)happening->worker << 20 | happening->id;
        handle(simulation,
               &(struct event){.type = EVENT_MESSAGE, .peer = peer, .message = &happening->packet->message});
    }
    inbox_clear(server);
}

void server_interrupt(struct simulation *simulation)
{
    simulation->server.leaving = simulation->server.interrupt_due = true;
    simulation->server.leave_by_ns = simulation->now_ns + simulation_between(simulation, SECOND, 25 * SECOND);
    turn_schedule(simulation, simulation->now_ns);
    turn_schedule(simulation, simulation->server.leave_by_ns);
}

void server_pause(struct simulation *simulation)
{
    simulation->server.command_due = MESSAGE_PAUSE;
    turn_schedule(simulation, simulation->now_ns);
    simulation_schedule(
        simulation, &(struct happening){
                        .time_ns = simulation->now_ns + simulation_between(simulation, SECOND, 8 * SECOND),
                        .type = HAPPENS_RESUME,
                    });
}

void server_resume(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    const struct record *sweep = store_row(simulation, RECORD_SWEEP, 0, 0, 0);
    struct engine_counts counts = {.state = SWEEP_PAUSED};
    if (server->up)
        engine_counts(server->engine, &counts);
    if (server->up && !server->command_due && counts.state != SWEEP_PAUSED &&
        sweep->sweep.state != SWEEP_PAUSED)
        return;
    if (server->up) {
        server->command_due = MESSAGE_RESUME;
        turn_schedule(simulation, simulation->now_ns);
    }
    simulation_schedule(simulation,
                        &(struct happening){.time_ns = simulation->now_ns + SECOND, .type = HAPPENS_RESUME});
}

void server_stop(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    const struct record *sweep = store_row(simulation, RECORD_SWEEP, 0, 0, 0);
    if (sweep->sweep.state != SWEEP_RUNNING && sweep->sweep.state != SWEEP_PAUSED)
        return;
    if (server->up) {
        server->command_due = MESSAGE_STOP;
        turn_schedule(simulation, simulation->now_ns);
    }
    simulation_schedule(simulation,
                        &(struct happening){.time_ns = simulation->now_ns + SECOND, .type = HAPPENS_STOP});
}

static void command_give(struct simulation *simulation)
{
    struct message message;
    message_init(&message, simulation->server.command_due);
    message.now = simulation->stop_now;
    handle(simulation, &(struct event){.type = EVENT_MESSAGE, .peer = 1ULL << 60, .message = &message});
    simulation->server.command_due = 0;
}

/* Ctrl-C: it goes when nothing runs any more, or when its time is up. */
static bool server_leaves(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    if (!server->leaving || engine_has_ended(server->engine) || server->commit_pending)
        return false;
    if (!engine_is_quiet(server->engine) && simulation->now_ns < server->leave_by_ns) {
        turn_schedule(simulation, server->leave_by_ns);
        return false;
    }
    server_crash(simulation, simulation_between(simulation, SECOND, 9 * SECOND));
    return true;
}

void server_turn(struct simulation *simulation)
{
    struct world_server *server = &simulation->server;
    if (!server->up || simulation->now_ns < server->turn_ns || !server->turn_due)
        return;
    server->turn_due = false;
    simulation->turns++;
    if (server->commit_pending) {
        server->commit_pending = false;
        after_commit(simulation);
        if (!server->up)
            return;
    }
    if (server->renew_due)
        handle(simulation, &(struct event){.type = EVENT_RENEW});
    server->renew_due = false;
    inbox_handle(simulation);
    if (server->command_due)
        command_give(simulation);
    if (server->interrupt_due)
        handle(simulation, &(struct event){.type = EVENT_INTERRUPT});
    server->interrupt_due = false;
    handle(simulation, &(struct event){.type = EVENT_TICK});
    if (!*simulation->violation)
        commit(simulation);
    if (server->up && !server->commit_pending)
        leftovers_remove(simulation);
    if (server->up && !*simulation->violation)
        server_leaves(simulation);
}

void server_end(struct simulation *simulation)
{
    leftovers_find(simulation);
}
