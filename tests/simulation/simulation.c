/* Time, events, faults that fall due, and the main loop. */
#include "simulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Virtual time that a sweep may take: a calm one with one slot takes about 600 s, a faulty one rarely 1,500
 * s. */
#define TIME_LIMIT (20000 * SECOND)
/* After the last fault, with nothing but work left. */
#define CALM_LIMIT (3000 * SECOND)

const char *fault_name(enum fault fault)
{
    static const char *const names[] = {
        "message lost",
        "message repeated",
        "message delayed",
        "message reordered",
        "partition",
        "worker crash",
        "worker interrupted",
        "crash before commit",
        "crash after commit",
        "crash amid sends",
        "commit fails",
        "slow turn",
        "coordinator interrupted",
        "sweep paused",
        "attempt crash",
        "checkpoint lost",
        "diverged",
        "out of memory",
    };
    return names[fault];
}

/* ---- chance: splitmix64 ---- */

uint64_t simulation_random(struct simulation *simulation)
{
    uint64_t z = simulation->random += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

int64_t simulation_below(struct simulation *simulation, int64_t bound)
{
    return (int64_t)(simulation_random(simulation) % (uint64_t)bound);
}

int64_t simulation_between(struct simulation *simulation, int64_t low, int64_t high)
{
    return low + simulation_below(simulation, high - low + 1);
}

/* ---- telling ---- */

void simulation_violate(struct simulation *simulation, const char *format, ...)
{
    if (*simulation->violation)
        return;
    int size = snprintf(simulation->violation, sizeof(simulation->violation),
                        "at %.3f s: ", (double)simulation->now_ns / SECOND);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(simulation->violation + size, sizeof(simulation->violation) - (size_t)size, format, arguments);
    va_end(arguments);
}

void simulation_say(struct simulation *simulation, const char *format, ...)
{
    if (!simulation->verbose)
        return;
    printf("%9.3f  ", (double)simulation->now_ns / SECOND);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

struct now simulation_now(const struct simulation *simulation)
{
    return (struct now){.monotonic_ns = simulation->now_ns,
                        .utc_ms = 1700000000000 + simulation->now_ns / NS_PER_MS};
}

/* ---- the queue of what happens ---- */

static bool sooner(const struct happening *a, const struct happening *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

void simulation_schedule(struct simulation *simulation, const struct happening *happening)
{
    if (simulation->heap_count + 2 > simulation->heap_capacity) {
        simulation->heap_capacity = simulation->heap_capacity ? simulation->heap_capacity * 2 : 64;
        simulation->heap = realloc(simulation->heap, simulation->heap_capacity * sizeof(*simulation->heap));
    }
    struct happening *heap = simulation->heap;
    size_t index = ++simulation->heap_count;
    struct happening item = *happening;
    item.order = ++simulation->order;
    for (; index > 1 && sooner(&item, &heap[index / 2]); index /= 2)
        heap[index] = heap[index / 2];
    heap[index] = item;
}

static struct happening next_happening(struct simulation *simulation)
{
    struct happening *heap = simulation->heap, first = heap[1], last = heap[simulation->heap_count--];
    size_t index = 1;
    for (size_t child; (child = index * 2) <= simulation->heap_count; index = child) {
        if (child < simulation->heap_count && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &last))
            break;
        heap[index] = heap[child];
    }
    heap[index] = last;
    return first;
}

/* ---- faults ---- */

static int64_t fault_distance(struct simulation *simulation)
{
    /* The faults of a kind are spread over the first 7 tenths of a calm run's reports. */
    int64_t mean = simulation->expected_points * 7 / 10 / (FAULTS_DRAWN + 2);
    return simulation_between(simulation, mean / 2, mean + mean / 2);
}

bool simulation_fault(struct simulation *simulation, enum fault fault, int rarity)
{
    if (!simulation->armed[fault] || simulation_below(simulation, rarity) != 0)
        return false;
    simulation->armed[fault]--;
    simulation->fired[fault]++;
    simulation_say(simulation, "FAULT %s", fault_name(fault));
    return true;
}

static struct agent *any_agent(struct simulation *simulation)
{
    int first = (int)simulation_below(simulation, simulation->agent_count);
    for (int i = 0; i < simulation->agent_count; i++) {
        struct agent *agent = &simulation->agents[(first + i) % simulation->agent_count];
        if (agent->alive && !agent->leaving && !agent->cut)
            return agent;
    }
    return NULL;
}

static void agent_cut(struct simulation *simulation, struct agent *agent)
{
    agent->cut = true;
    simulation_schedule(
        simulation, &(struct happening){
                        .time_ns = simulation->now_ns + simulation_between(simulation, SECOND, 15 * SECOND),
                        .type = HAPPENS_HEAL,
                        .worker = agent->index,
                    });
}

/* Those that befall workers and the coordinator at any time; the others wait for their moment elsewhere. */
static void faults_strike(struct simulation *simulation)
{
    struct agent *agent = any_agent(simulation);
    if (agent && simulation_fault(simulation, FAULT_WORKER_CRASH, 8))
        agent_kill(simulation, agent, simulation_between(simulation, SECOND / 2, 10 * SECOND));
    agent = any_agent(simulation);
    if (agent && simulation_fault(simulation, FAULT_PARTITION, 8))
        agent_cut(simulation, agent);
    agent = any_agent(simulation);
    if (agent && simulation_fault(simulation, FAULT_WORKER_INTERRUPT, 8))
        agent_leave(simulation, agent);
    if (simulation->server.up && !simulation->server.leaving &&
        simulation_fault(simulation, FAULT_COORDINATOR_INTERRUPT, 8))
        server_interrupt(simulation);
    if (simulation->server.up && simulation_fault(simulation, FAULT_SWEEP_PAUSE, 8))
        server_pause(simulation);
    blob_lose_any(simulation);
}

static void faults_fall_due(struct simulation *simulation)
{
    if (simulation->calm)
        return;
    for (int fault = 0; fault < FAULT_ARMED_COUNT; fault++) {
        while (simulation->due[fault] > 0 && simulation->store.points >= simulation->due_at[fault]) {
            simulation->due[fault]--;
            simulation->armed[fault]++;
            simulation->due_at[fault] += fault_distance(simulation);
        }
    }
    faults_strike(simulation);
    if (simulation->stop_at && !simulation->stop_asked && simulation->store.points >= simulation->stop_at) {
        simulation->stop_asked = true;
        server_stop(simulation);
    }
}

/* Where nothing pauses at rungs, only what was interrupted has a checkpoint to lose: by luck. */
int faults_wanted(const struct simulation *simulation, enum fault fault)
{
    bool pauses = simulation->scheme == SCHEME_HALVING || simulation->scheme == SCHEME_ASHA_PROMOTION;
    return fault == FAULT_BLOB_LOST && !pauses ? 0 : FAULTS_OF_A_KIND;
}

static bool faults_are_over(const struct simulation *simulation)
{
    for (int fault = 0; fault < FAULT_ARMED_COUNT; fault++)
        if (simulation->fired[fault] < faults_wanted(simulation, (enum fault)fault))
            return false;
    return true;
}

/* ---- life ---- */

static void agents_init(struct simulation *simulation)
{
    simulation->agent_count = simulation->calm ? 1 : (int)simulation_between(simulation, 1, WORKER_LIMIT);
    for (int i = 0; i < simulation->agent_count; i++) {
        struct agent *agent = &simulation->agents[i];
        agent->index = i;
        snprintf(agent->name, sizeof(agent->name), "worker-%d", i + 1);
        agent->slots = simulation->calm ? 1 : (int)simulation_between(simulation, 1, SLOTS_LIMIT);
        simulation_schedule(simulation, &(struct happening){
                                            .time_ns = simulation_below(simulation, 20 * SECOND),
                                            .type = HAPPENS_WORKER_START,
                                            .worker = i,
                                        });
    }
}

void simulation_init(struct simulation *simulation, uint64_t seed, bool calm, int64_t expected_points)
{
    memset(simulation, 0, sizeof(*simulation));
    simulation->seed = seed;
    simulation->random = seed * 2 + calm;
    simulation->calm = calm;
    simulation->expected_points = expected_points;
    simulation->scheme = (enum scheme)(seed % SCHEME_COUNT);
    simulation->now_ns = SECOND;
    scheme_init(simulation);
    for (int fault = 0; fault < FAULT_ARMED_COUNT && !calm; fault++) {
        simulation->due[fault] = FAULTS_DRAWN;
        simulation->due_at[fault] = fault_distance(simulation);
    }
    server_start(simulation);
    agents_init(simulation);
}

void simulation_plan_stop(struct simulation *simulation)
{
    simulation->stop_at = simulation_between(simulation, 1, simulation->expected_points);
    simulation->stop_now = simulation_below(simulation, 2);
}

static void happen(struct simulation *simulation, const struct happening *happening)
{
    struct agent *agent = &simulation->agents[happening->worker];
    bool same_process = agent->alive && agent->process == happening->process;
    switch (happening->type) {
    case HAPPENS_DELIVER_TO_SERVER:
        server_deliver(simulation, happening);
        break;
    case HAPPENS_DELIVER_TO_WORKER:
        if (agent->alive && !agent->cut && agent->connection == happening->id)
            agent_receive(simulation, agent, &happening->packet->message);
        packet_release(happening->packet);
        break;
    case HAPPENS_TURN:
        if (happening->process == simulation->server.incarnation)
            server_turn(simulation);
        break;
    case HAPPENS_SERVER_START:
        server_start(simulation);
        break;
    case HAPPENS_WORKER_START:
        if (!agent->alive)
            agent_start(simulation, agent);
        break;
    case HAPPENS_WORKER_TIMER:
        if (same_process)
            agent_timer(simulation, agent);
        break;
    case HAPPENS_EPOCH:
    case HAPPENS_UPLOADED:
        for (int i = 0; same_process && i < agent->training_count; i++) {
            if (agent->trainings[i]->id != happening->id)
                continue;
            if (happening->type == HAPPENS_EPOCH)
                training_epoch(simulation, agent, agent->trainings[i]);
            else
                training_uploaded(simulation, agent, agent->trainings[i]);
            break;
        }
        break;
    case HAPPENS_RESUME:
        server_resume(simulation);
        break;
    case HAPPENS_STOP:
        server_stop(simulation);
        break;
    case HAPPENS_HEAL:
        agent->cut = false;
        if (simulation_below(simulation, 2)) {
            agent->connection++; /* the transport gave up: a new routing id */
            agent->welcomed = agent->welcomed && simulation_below(simulation, 2);
        }
        break;
    }
}

static bool is_over(const struct simulation *simulation)
{
    if (!simulation->server.up || !engine_is_done(simulation->server.engine))
        return false;
    return !simulation->server.commit_pending && simulation->server.effects.record_count == 0;
}

void simulation_run(struct simulation *simulation)
{
    int64_t calm_since = 0; /* the few faults drawn on top of the promised number do no harm */
    while (!*simulation->violation && !is_over(simulation) && simulation->heap_count > 0) {
        struct happening happening = next_happening(simulation);
        simulation->now_ns = happening.time_ns;
        simulation->trace =
            (simulation->trace ^ (uint64_t)happening.time_ns ^ ((uint64_t)happening.type << 56)) *
            1099511628211ULL;
        happen(simulation, &happening);
        faults_fall_due(simulation);
        if (!calm_since && faults_are_over(simulation))
            calm_since = simulation->now_ns;
        if (simulation->now_ns > TIME_LIMIT || (calm_since && simulation->now_ns > calm_since + CALM_LIMIT))
            simulation_violate(simulation, "nothing comes to an end");
    }
    if (!*simulation->violation && !is_over(simulation))
        simulation_violate(simulation, "nothing happens any more");
    if (!*simulation->violation)
        check_end(simulation);
}

void simulation_release(struct simulation *simulation)
{
    for (size_t i = 1; i <= simulation->heap_count; i++)
        packet_release(simulation->heap[i].packet);
    free(simulation->heap);
    for (size_t i = 0; i < simulation->server.inbox_count; i++)
        packet_release(simulation->server.inbox[i].packet);
    free(simulation->server.inbox);
    free(simulation->server.leftovers);
    engine_destroy(simulation->server.engine);
    effects_release(&simulation->server.effects);
    for (int i = 0; i < simulation->agent_count; i++)
        agent_release(&simulation->agents[i]);
    store_release(simulation);
    json_decref(simulation->final_request);
    json_decref(simulation->parameters[0].values);
    json_decref(simulation->parameters[1].values);
}
