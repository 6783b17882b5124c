/* Leases, which say how long a worker may be silent, and slots, which say where it has room. */
#include "coordinator/engine_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- leases: a list by the time a worker was last heard of, since all leases are equally long ---- */

void worker_unlease(struct engine *engine, struct worker *worker)
{
    if (!worker->alive)
        return;
    if (worker->lease_previous)
        worker->lease_previous->lease_next = worker->lease_next;
    else
        engine->lease_first = worker->lease_next;
    if (worker->lease_next)
        worker->lease_next->lease_previous = worker->lease_previous;
    else
        engine->lease_last = worker->lease_previous;
    worker->lease_previous = worker->lease_next = NULL;
    worker->alive = false;
    engine->live_workers--;
}

void worker_lease(struct engine *engine, struct worker *worker)
{
    worker_unlease(engine, worker);
    worker->heard_ns = engine->now.monotonic_ns;
    worker->alive = true;
    engine->live_workers++;
    worker->lease_previous = engine->lease_last;
    if (engine->lease_last)
        engine->lease_last->lease_next = worker;
    else
        engine->lease_first = worker;
    engine->lease_last = worker;
}

void engine_renew_leases(struct engine *engine)
{
    for (struct worker *worker = engine->lease_first; worker; worker = worker->lease_next)
        worker->heard_ns = engine->now.monotonic_ns;
}

/* ---- slots ---- */

void slot_set_idle(struct engine *engine, struct slot *slot, bool idle)
{
    if (slot->idle == idle)
        return;
    slot->idle = idle;
    if (idle) {
        slot->previous = engine->idle_last;
        slot->next = NULL;
        if (engine->idle_last)
            engine->idle_last->next = slot;
        else
            engine->idle_first = slot;
        engine->idle_last = slot;
        return;
    }
    if (slot->previous)
        slot->previous->next = slot->next;
    else
        engine->idle_first = slot->next;
    if (slot->next)
        slot->next->previous = slot->previous;
    else
        engine->idle_last = slot->previous;
    slot->previous = slot->next = NULL;
}

void slot_take(struct engine *engine, struct slot *slot, struct trial *trial)
{
    trial->slot = slot;
    slot->trial = trial;
    engine->busy_slots++;
}

void slot_vacate(struct engine *engine, struct slot *slot)
{
    slot->trial->slot = NULL;
    slot->trial = NULL;
    slot->suspect = false;
    engine->busy_slots--;
    if (slot->worker->has_peer && !slot->worker->drained)
        slot_set_idle(engine, slot, true);
}

static struct slot *slot_get(struct engine *engine, struct worker *worker, int64_t number)
{
    if ((size_t)number >= worker->slot_count) {
        size_t count = (size_t)number + 1;
        struct slot **slots = realloc(worker->slots, count * sizeof(struct slot *));
        if (!slots) {
            engine_fail_memory(engine);
            return NULL;
        }
        memset(&slots[worker->slot_count], 0, (count - worker->slot_count) * sizeof(struct slot *));
        worker->slots = slots;
        worker->slot_count = count;
    }
    struct slot *slot = worker->slots[number];
    if (!slot) {
        slot = calloc(1, sizeof(*slot));
        if (!slot) {
            engine_fail_memory(engine);
            return NULL;
        }
        slot->worker = worker;
        slot->number = number;
        worker->slots[number] = slot;
        engine->known_slots++;
    }
    return slot;
}

static void slot_forget(struct engine *engine, struct worker *worker, size_t number)
{
    struct slot *slot = worker->slots[number];
    if (!slot)
        return;
    slot_set_idle(engine, slot, false);
    if (slot->trial) {
        slot->trial->slot = NULL;
        engine->busy_slots--;
    }
    free(slot);
    worker->slots[number] = NULL;
    engine->known_slots--;
}

void worker_lose_slots(struct engine *engine, struct worker *worker, const struct message *message)
{
    for (size_t i = 0; i < message->device_count && i < worker->slot_count; i++) {
        if (!message->devices[i].fault || !worker->slots[i])
            continue;
        slot_forget(engine, worker, i);
        engine->starved = false; /* what avoided another slot for this one has nowhere else to go */
        engine_note(engine, "worker %s: %s takes no more work: %s", worker->record.name,
                    message->devices[i].id, message->devices[i].fault);
    }
}

void worker_forget_slots(struct engine *engine, struct worker *worker)
{
    for (size_t i = 0; i < worker->slot_count; i++)
        slot_forget(engine, worker, i);
    free(worker->slots);
    worker->slots = NULL;
    worker->slot_count = 0;
}

void worker_slot_ready(struct engine *engine, struct worker *worker, int64_t number)
{
    if (number < 0 || number >= SLOT_LIMIT || worker->drained)
        return;
    struct slot *slot = slot_get(engine, worker, number);
    if (slot && !slot->trial)
        slot_set_idle(engine, slot, true);
}
