/* Attempts that come: kept, given a slot, fetched for, run, and forgotten once all is acknowledged. */
#include "worker/agent_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct attempt *agent_find_attempt(const struct agent *agent, int64_t trial, int64_t number)
{
    for (size_t i = 0; i < agent->attempt_count; i++) {
        if (agent->attempts[i]->trial == trial && agent->attempts[i]->number == number) {
            return agent->attempts[i];
        }
    }
    return NULL;
}

/* Index of the first entry with a trial not below `trial`. */
static size_t ended_index(const struct agent *agent, int64_t trial)
{
    size_t low = 0, high = agent->ended_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (agent->ended[middle].trial < trial) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool agent_has_ended(const struct agent *agent, int64_t trial, int64_t number)
{
    size_t index = ended_index(agent, trial);
    return index < agent->ended_count && agent->ended[index].trial == trial &&
           agent->ended[index].number >= number;
}

void agent_remember_ended(struct agent *agent, int64_t trial, int64_t number)
{
    size_t index = ended_index(agent, trial);
    if (index < agent->ended_count && agent->ended[index].trial == trial) {
        if (agent->ended[index].number < number) {
            agent->ended[index].number = number;
        }
        return;
    }
    if (agent->ended_count == agent->ended_capacity) {
        size_t capacity = agent->ended_capacity ? 2 * agent->ended_capacity : 64;
        struct ended_attempt *ended = realloc(agent->ended, capacity * sizeof *ended);
        if (!ended) {
            return; /* an assign repeated after this would run it twice: the coordinator takes the first end
                     */
        }
        agent->ended = ended;
        agent->ended_capacity = capacity;
    }
    memmove(&agent->ended[index + 1], &agent->ended[index],
            (agent->ended_count - index) * sizeof *agent->ended);
    agent->ended[index] = (struct ended_attempt){trial, number};
    agent->ended_count++;
}

void attempt_remove_file(char **path)
{
    if (*path) {
        unlink(*path);
    }
    free(*path);
    *path = NULL;
}

void attempt_cancel_transfer(struct agent *agent, struct attempt *attempt)
{
    if (attempt->transfer) {
        transfers_cancel(agent->transfers, attempt->transfer);
        attempt->transfer = 0;
    }
}

static void attempt_destroy(struct agent *agent, struct attempt *attempt)
{
    attempt_cancel_transfer(agent, attempt);
    attempt_remove_file(&attempt->start_path);
    attempt_remove_file(&attempt->save_path);
    json_decref(attempt->parameters);
    json_decref(attempt->final);
    outbox_release(&attempt->outbox);
    message_release(&attempt->ended);
    free(attempt);
}

void agent_forget_attempts(struct agent *agent)
{
    for (size_t i = 0; i < agent->attempt_count; i++) {
        attempt_destroy(agent, agent->attempts[i]);
    }
    for (int i = 0; i < agent->slot_count; i++) {
        agent->slots[i].attempt = NULL;
    }
    agent->attempt_count = 0;
    agent->ended_count = 0;
}

void agent_drop_attempt(struct agent *agent, struct attempt *attempt)
{
    for (size_t i = 0; i < agent->attempt_count; i++) {
        if (agent->attempts[i] == attempt) {
            memmove(&agent->attempts[i], &agent->attempts[i + 1],
                    (agent->attempt_count - i - 1) * sizeof *agent->attempts);
            agent->attempt_count--;
            break;
        }
    }
    attempt_destroy(agent, attempt);
}

static struct attempt *agent_add_attempt(struct agent *agent, const struct assignment *assignment)
{
    if (agent->attempt_count == agent->attempt_capacity) {
        size_t capacity = agent->attempt_capacity ? 2 * agent->attempt_capacity : 16;
        struct attempt **attempts = realloc(agent->attempts, capacity * sizeof *attempts);
        if (!attempts) {
            return NULL;
        }
        agent->attempts = attempts;
        agent->attempt_capacity = capacity;
    }
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt) {
        return NULL;
    }
    attempt->trial = assignment->trial;
    attempt->number = assignment->attempt;
    attempt->parameters = assignment->parameters ? json_incref(assignment->parameters) : json_object();
    attempt->final = json_incref(assignment->final);
    attempt->start = assignment->start;
    attempt->resource = assignment->start;
    attempt->until = assignment->until;
    if (assignment->checkpoint && sha256_is_valid(assignment->checkpoint)) {
        snprintf(attempt->checkpoint, sizeof attempt->checkpoint, "%s", assignment->checkpoint);
    }
    attempt->save_path = scratch_save_path(&agent->scratch, attempt->trial, attempt->number);
    outbox_init(&attempt->outbox);
    message_init(&attempt->ended, MESSAGE_ENDED);
    agent->attempts[agent->attempt_count++] = attempt;
    return attempt;
}

void agent_assign(struct agent *agent, const struct message *message)
{
    for (size_t i = 0; i < message->trial_count; i++) {
        const struct assignment *assignment = &message->trials[i];
        if (agent_find_attempt(agent, assignment->trial, assignment->attempt) ||
            agent_has_ended(agent, assignment->trial, assignment->attempt)) {
            continue;
        }
        struct attempt *attempt = agent_add_attempt(agent, assignment);
        if (!attempt || !attempt->parameters || !attempt->save_path) {
            struct error err;
            error_set(&err, ERROR_MEMORY, "no memory for an attempt");
            agent_fail(agent, &err);
            return;
        }
        /* The slot named, if it is free; otherwise whichever is, or becomes, free (agent_dispatch). */
        struct slot *slot = message->slot < agent->slot_count ? &agent->slots[message->slot] : NULL;
        if (slot && !slot->attempt && slot->state != SLOT_OUT) {
            slot->attempt = attempt;
            attempt->slot = slot;
        }
        if (agent->draining || agent->interrupting) {
            attempt_interrupt(agent, attempt); /* it crossed the drain: back with it */
        }
    }
    agent_dispatch(agent);
}

/* The slot has this attempt: get the checkpoint, then wait for the runner. */
static void attempt_prepare(struct agent *agent, struct attempt *attempt)
{
    attempt->state = ATTEMPT_PREPARED;
    if (attempt->checkpoint[0] == '\0' ||
        attempt->start_path) { /* the latter: it goes on from its own file */
        return;
    }
    char *path = scratch_checkpoint_path(&agent->scratch, attempt->checkpoint);
    attempt->transfer = path ? transfers_fetch(agent->transfers, attempt->checkpoint, path, false) : 0;
    free(path);
    if (attempt->transfer == 0) {
        attempt_end(agent, attempt, OUTCOME_OUT_OF_MEMORY, "no memory to fetch the checkpoint");
        return;
    }
    attempt->state = ATTEMPT_FETCHING;
}

void attempt_fetched(struct agent *agent, struct attempt *attempt, const struct transfer_result *result)
{
    attempt->transfer = 0;
    if (!result->succeeded && result->error.code == ERROR_MEMORY) {
        attempt_end(agent, attempt, OUTCOME_OUT_OF_MEMORY, result->error.message);
        return;
    }
    if (!result->succeeded) {
        attempt_end_blamed(agent, attempt,
                           result->error.code == ERROR_RESOURCE ? BLAME_WORKER : BLAME_CHECKPOINT,
                           result->error.message);
        return;
    }
    /* An own link to the file: that one may go when others need room, this one when the attempt is over. */
    char *path = scratch_checkpoint_path(&agent->scratch, attempt->checkpoint);
    size_t size = strlen(attempt->save_path) + 8;
    attempt->start_path = malloc(size);
    if (path && attempt->start_path) {
        snprintf(attempt->start_path, size, "%s.start", attempt->save_path);
        unlink(attempt->start_path);
    }
    if (!path || !attempt->start_path || link(path, attempt->start_path) != 0) {
        char reason[200];
        snprintf(reason, sizeof reason, "link the fetched checkpoint: %s", strerror(errno));
        free(path);
        attempt_end_blamed(agent, attempt, BLAME_WORKER, reason);
        return;
    }
    free(path);
    if (result->size >= 0) { /* otherwise it was there, and is known */
        scratch_keep(&agent->scratch, result->sha256, result->size);
    }
    attempt->state = ATTEMPT_PREPARED;
}

static struct slot *agent_free_slot(struct agent *agent)
{
    for (int i = 0; i < agent->slot_count; i++) {
        if (slot_is_free(&agent->slots[i])) {
            return &agent->slots[i];
        }
    }
    return NULL;
}

void agent_dispatch(struct agent *agent)
{
    for (size_t i = 0; i < agent->attempt_count; i++) {
        struct attempt *attempt = agent->attempts[i];
        if (attempt->state == ATTEMPT_QUEUED && !attempt->slot) {
            struct slot *slot = agent_free_slot(agent);
            if (slot) {
                slot->attempt = attempt;
                attempt->slot = slot;
            }
        }
        if (attempt->state == ATTEMPT_QUEUED && attempt->slot) {
            attempt_prepare(agent, attempt);
        }
        if (attempt->state == ATTEMPT_PREPARED && attempt->slot->state == SLOT_READY) {
            slot_run(agent, attempt->slot);
        }
    }
}
