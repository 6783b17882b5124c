/* Attempts that run: reports, judging at a rung, and every way to end. */
#include "worker/agent_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between a pause and its upload. Often the answer of others comes first: it lost and is stopped, or won and
 * goes on here. Long for short epochs, short for long ones. */
#define UPLOAD_DELAY_NS (250 * NS_PER_MS)

static void attempt_append(struct agent *agent, struct attempt *attempt, struct message *message)
{
    struct error err = {0};
    message->trial = attempt->trial;
    message->attempt = attempt->number;
    if (attempt->slot && attempt->slot->device && !message->device) {
        message->device = strdup(attempt->slot->device);
    }
    if (outbox_append(&attempt->outbox, message, &err) != 0) {
        message_release(message);
        agent_fail(agent, &err);
    }
}

void attempt_take_report(struct agent *agent, struct attempt *attempt, json_t *line)
{
    json_t *metrics = json_object_get(line, "metrics");
    struct message message;
    message_init(&message, MESSAGE_REPORT);
    message.reports = calloc(1, sizeof *message.reports);
    if (!message.reports || !json_is_object(metrics)) {
        message_release(&message);
        slot_kill(agent, attempt->slot, "a report without metrics");
        return;
    }
    message.report_count = 1;
    message.reports[0].resource = json_get_integer(line, "resource", attempt->resource + 1);
    message.reports[0].metrics = json_incref(metrics);
    message.reports[0].seconds = json_get_number(line, "seconds", 0);
    json_t *details = json_object_get(line, "details");
    message.details = json_is_object(details) ? json_incref(details) : NULL;
    attempt->resource = message.reports[0].resource;
    attempt_append(agent, attempt, &message);
    attempt->last_report = attempt->outbox.last;
}

static void attempt_free_slot(struct attempt *attempt)
{
    if (attempt->slot) {
        attempt->slot->attempt = NULL;
        attempt->slot = NULL;
    }
}

/* What its runner printed since it was given the attempt. */
static void attempt_take_log(struct attempt *attempt)
{
    bool ran = attempt->state == ATTEMPT_RUNNING || attempt->state == ATTEMPT_HELD ||
               attempt->state == ATTEMPT_UPLOADING;
    if (!ran || !attempt->slot || attempt->ended.log_stderr) {
        return;
    }
    child_read_log(&attempt->slot->child); /* it may have been written just before the word on the link */
    char *words = child_log_end(&attempt->slot->child, CHILD_LOG_SIZE);
    struct text text;
    text_init(&text);
    text_printf(&text, "%s\n", words ? words : "");
    attempt->ended.log_stderr = words && *words ? text_steal(&text) : NULL;
    text_release(&text);
    free(words);
}

/* Puts attempt->ended into the outbox: the attempt is over, its slot free. */
static void attempt_send_ended(struct agent *agent, struct attempt *attempt)
{
    attempt_cancel_transfer(agent, attempt);
    attempt_take_log(attempt);
    attempt->state = ATTEMPT_ENDED;
    attempt->ended.resource = attempt->resource;
    attempt_append(agent, attempt, &attempt->ended);
    attempt_free_slot(attempt);
    attempt_remove_file(&attempt->start_path);
    attempt_remove_file(&attempt->save_path);
    agent_remember_ended(agent, attempt->trial, attempt->number);
}

void attempt_end(struct agent *agent, struct attempt *attempt, enum outcome outcome, const char *error)
{
    attempt->ended.outcome = outcome;
    if (error && !attempt->ended.error) {
        attempt->ended.error = strdup(error);
    }
    attempt_send_ended(agent, attempt);
}

void attempt_end_blamed(struct agent *agent, struct attempt *attempt, const char *blame, const char *error)
{
    if (strcmp(blame, BLAME_CHECKPOINT) == 0) {
        attempt->ended.checkpoint_lost = true;
        log_warning(agent->log, "", "trial %lld attempt %lld cannot use its checkpoint and begins again: %s",
                    (long long)attempt->trial, (long long)attempt->number, error);
        scratch_drop(&agent->scratch, attempt->checkpoint);
        attempt_end(agent, attempt, OUTCOME_INTERRUPTED, error);
    } else {
        attempt_end(agent, attempt, OUTCOME_INTERRUPTED, error);
        agent_break(agent, error);
    }
}

static void attempt_upload(struct agent *agent, struct attempt *attempt)
{
    attempt->state = ATTEMPT_UPLOADING;
    attempt->transfer = transfers_put(agent->transfers, attempt->save_path);
    if (attempt->transfer == 0) {
        attempt_end(agent, attempt, OUTCOME_CRASHED, "no memory to upload the checkpoint");
    }
}

/* Without a slot, but with its file: it goes on from there in the next one. */
static void attempt_requeue(struct agent *agent, struct attempt *attempt)
{
    size_t size = strlen(attempt->save_path) + 8;
    attempt_cancel_transfer(agent, attempt);
    attempt_remove_file(&attempt->start_path);
    attempt->start_path = malloc(size);
    if (attempt->start_path) {
        snprintf(attempt->start_path, size, "%s.start", attempt->save_path);
        unlink(attempt->start_path);
    }
    if (!attempt->start_path || link(attempt->save_path, attempt->start_path) != 0) {
        attempt_end(agent, attempt, OUTCOME_CRASHED, "the checkpoint could not be linked");
        return;
    }
    free(attempt->ended.checkpoint);
    attempt->ended.checkpoint = NULL;
    attempt->start = attempt->resource;
    attempt->state = ATTEMPT_QUEUED;
    attempt->pausing = false;
}

/* HELD or UPLOADING for a pause: whatever its report's answer and the upload allow. */
static void attempt_settle(struct agent *agent, struct attempt *attempt)
{
    bool answered = attempt->outbox.acknowledged >= attempt->last_report;
    bool more = attempt->until > attempt->resource;
    bool leaving = agent->interrupting || agent->draining;
    if (more && !agent->interrupting && attempt->slot && attempt->slot->state == SLOT_READY) {
        attempt->state = ATTEMPT_RUNNING;
        attempt->pausing = false;
        attempt->has_saved = false;
        attempt->slot->state = SLOT_RUNNING;
        slot_send_until(agent, attempt->slot, attempt);
    } else if (more && !agent->interrupting && !attempt->slot) {
        attempt_requeue(agent, attempt);
    } else if (attempt->state == ATTEMPT_HELD && attempt->slot && answered && !leaving) {
        attempt_free_slot(attempt); /* the file is all it needs */
        attempt->upload_ns = agent->now_ns + UPLOAD_DELAY_NS;
    } else if (attempt->state == ATTEMPT_HELD &&
               ((answered && agent->now_ns >= attempt->upload_ns) || leaving)) {
        attempt_upload(agent, attempt);
        attempt_free_slot(attempt);
    } else if (attempt->state == ATTEMPT_UPLOADING && !attempt->transfer && answered) {
        /* Asked back before it could go on: the trial waits with its checkpoint and is no retry. */
        attempt->ended.outcome = more ? OUTCOME_INTERRUPTED : OUTCOME_PAUSED;
        attempt_send_ended(agent, attempt);
    }
}

int64_t agent_upload_paused(struct agent *agent)
{
    int64_t next_ns = INT64_MAX;
    for (size_t i = 0; i < agent->attempt_count; i++) {
        struct attempt *attempt = agent->attempts[i];
        if (attempt->state == ATTEMPT_HELD && attempt->pausing && !attempt->slot) {
            attempt_settle(agent, attempt);
        }
        if (attempt->state == ATTEMPT_HELD && !attempt->slot && attempt->upload_ns < next_ns) {
            next_ns = attempt->upload_ns;
        }
    }
    return next_ns;
}

void attempt_runner_ended(struct agent *agent, struct attempt *attempt, json_t *line)
{
    enum outcome outcome = OUTCOME_CRASHED;
    const char *error = json_get_string(line, "error", NULL);
    json_t *details = json_object_get(line, "details");
    outcome_parse(json_get_string(line, "outcome", "crashed"), &outcome);
    attempt->has_saved = json_get_string(line, "checkpoint", NULL) != NULL;
    if (outcome == OUTCOME_PAUSED && attempt->until > json_get_integer(line, "resource", attempt->resource) &&
        !attempt->stop_sent) {
        attempt->slot->state = SLOT_RUNNING; /* a higher `until` was on its way when it said so: it goes on */
        return;
    }
    attempt->resource = json_get_integer(line, "resource", attempt->resource);
    json_decref(attempt->ended.details);
    attempt->ended.details = json_is_object(details) ? json_incref(details) : NULL;
    attempt->ended.error = error ? strdup(error) : NULL;
    attempt->ended.outcome = outcome;
    attempt->ended.device_failed = json_get_boolean(line, "device_failed", false);
    const char *blame = json_get_string(line, "blame", NULL);
    if (blame) {
        attempt_end_blamed(agent, attempt, blame, error ? error : "");
    } else if (outcome == OUTCOME_PAUSED && attempt->stop_sent && !agent->interrupting) {
        attempt_end(agent, attempt, OUTCOME_STOPPED, NULL);
    } else if (outcome == OUTCOME_PAUSED && attempt->has_saved) {
        attempt->state = ATTEMPT_HELD;
        attempt->pausing = true;
        attempt_settle(agent, attempt);
    } else if (attempt->has_saved) {
        attempt_upload(agent, attempt);
    } else {
        attempt_send_ended(agent, attempt);
    }
}

static void attempt_stop(struct agent *agent, struct attempt *attempt)
{
    switch (attempt->state) {
    case ATTEMPT_QUEUED:
    case ATTEMPT_FETCHING:
    case ATTEMPT_PREPARED:
        attempt_end(agent, attempt, OUTCOME_STOPPED, NULL);
        break;
    case ATTEMPT_RUNNING:
        if (!attempt->stop_sent) {
            attempt->stop_sent = true;
            slot_send_stop(agent, attempt->slot, attempt, "stopped");
        }
        break;
    case ATTEMPT_HELD:
    case ATTEMPT_UPLOADING:
        if (attempt->pausing) {
            if (attempt->slot) {
                slot_send_stop(agent, attempt->slot, attempt, "stopped"); /* it may drop what it holds */
            }
            attempt_end(agent, attempt, OUTCOME_STOPPED, NULL);
        }
        break;
    case ATTEMPT_ENDED:
        break;
    }
}

void attempt_interrupt(struct agent *agent, struct attempt *attempt)
{
    switch (attempt->state) {
    case ATTEMPT_QUEUED:
    case ATTEMPT_FETCHING:
    case ATTEMPT_PREPARED:
        if (attempt->has_saved) { /* it was to go on from its own file */
            attempt->ended.outcome = OUTCOME_INTERRUPTED;
            attempt_upload(agent, attempt);
            attempt_free_slot(attempt);
            break;
        }
        attempt_end(agent, attempt, OUTCOME_INTERRUPTED, NULL);
        break;
    case ATTEMPT_RUNNING:
        if (!attempt->stop_sent) {
            attempt->stop_sent = true;
            slot_send_stop(agent, attempt->slot, attempt, "interrupted");
        }
        break;
    case ATTEMPT_HELD:
    case ATTEMPT_UPLOADING:
        if (attempt->pausing) {
            attempt_settle(agent, attempt);
        }
        break;
    case ATTEMPT_ENDED:
        break;
    }
}

void agent_acknowledge(struct agent *agent, const struct message *message)
{
    struct attempt *attempt = agent_find_attempt(agent, message->trial, message->attempt);
    if (!attempt) {
        return;
    }
    outbox_acknowledge(&attempt->outbox, message->sequence, agent->now_ns);
    if (attempt->state == ATTEMPT_ENDED) {
        if (outbox_is_empty(&attempt->outbox)) {
            agent_drop_attempt(agent, attempt);
        }
        return;
    }
    if (message->action == ACTION_STOP) {
        attempt_stop(agent, attempt);
    } else if (message->until > attempt->until) {
        attempt->until = message->until;
        if (attempt->state == ATTEMPT_RUNNING) {
            slot_send_until(agent, attempt->slot, attempt);
        }
    }
    if ((attempt->state == ATTEMPT_HELD || attempt->state == ATTEMPT_UPLOADING) && attempt->pausing) {
        attempt_settle(agent, attempt);
    }
    agent_dispatch(agent);
}

static void attempt_uploaded(struct agent *agent, struct attempt *attempt,
                             const struct transfer_result *result)
{
    attempt->transfer = 0;
    if (!result->succeeded && result->error.code == ERROR_RESOURCE) {
        attempt_end_blamed(agent, attempt, BLAME_WORKER, result->error.message);
        return;
    }
    if (!result->succeeded) {
        attempt_end(agent, attempt, OUTCOME_CRASHED, result->error.message);
        return;
    }
    attempt->ended.checkpoint = strdup(result->sha256);
    attempt->ended.checkpoint_bytes = result->size;
    scratch_keep_file(&agent->scratch, attempt->save_path, result->sha256, result->size);
    if (attempt->pausing) {
        attempt_settle(agent, attempt);
    } else {
        attempt_send_ended(agent, attempt);
    }
}

void agent_take_transfers(struct agent *agent)
{
    struct transfer_result result;
    bool any = false;
    while (transfers_next_result(agent->transfers, &result)) {
        any = true;
        agent_data_fetched(agent, &result);
        if (agent->finished) {
            return;
        }
        for (size_t i = 0; i < agent->attempt_count; i++) {
            struct attempt *attempt = agent->attempts[i];
            if (attempt->transfer == result.id && attempt->state == ATTEMPT_FETCHING) {
                attempt_fetched(agent, attempt, &result);
            } else if (attempt->transfer == result.id && attempt->state == ATTEMPT_UPLOADING) {
                attempt_uploaded(agent, attempt, &result);
            }
        }
    }
    if (any) {
        agent_dispatch(agent);
    }
}
