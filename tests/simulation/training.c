/* What a slot does with an attempt: epochs, reports, checkpoints at rungs, ends; and the buffer of what is
 * not acknowledged yet. */
#include "simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void training_release(struct training *training)
{
    for (int64_t i = 0; i < training->sequence - training->acknowledged; i++)
        packet_release(training->said[i]);
    free(training->said);
    json_decref(training->parameters);
    free(training);
}

uint64_t said_key(int64_t trial, int64_t attempt, int64_t resource)
{
    return (uint64_t)trial << 40 | (uint64_t)attempt << 20 | (uint64_t)resource;
}

/* Calls off whatever was scheduled for it, and schedules this. */
static void training_next(struct simulation *simulation, const struct agent *agent, struct training *training,
                          enum happening_type type, int64_t in_ns)
{
    training->id = ++simulation->next_id;
    simulation_schedule(simulation, &(struct happening){
                                        .time_ns = simulation->now_ns + in_ns,
                                        .type = type,
                                        .worker = agent->index,
                                        .process = agent->process,
                                        .id = training->id,
                                    });
}

static void next_epoch(struct simulation *simulation, const struct agent *agent, struct training *training)
{
    training->state = TRAINS;
    training_next(simulation, agent, training, HAPPENS_EPOCH,
                  simulation_between(simulation, 100 * MS, SECOND));
}

static void upload(struct simulation *simulation, const struct agent *agent, struct training *training,
                   enum outcome ending)
{
    training->state = UPLOADS;
    training->ending = ending;
    training_next(simulation, agent, training, HAPPENS_UPLOADED,
                  simulation_between(simulation, 5 * MS, 300 * MS));
}

/* Numbers a message of the attempt, keeps it, sends it. */
static void training_say(struct simulation *simulation, struct agent *agent, struct training *training,
                         struct message *message)
{
    message->trial = training->trial;
    message->attempt = training->attempt;
    message->sequence = ++training->sequence;
    message->device = strdup("cpu/virtual");
    int64_t count = training->sequence - training->acknowledged;
    training->said = realloc(training->said, (size_t)count * sizeof(struct packet *));
    training->said[count - 1] = packet_new(simulation, message);
    network_to_server(simulation, agent, training->said[count - 1]);
}

static void training_end(struct simulation *simulation, struct agent *agent, struct training *training,
                         enum outcome outcome, bool checkpoint)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    engine_table_put(&simulation->said, said_key(training->trial, training->attempt, 0),
                     (void *)((uintptr_t)outcome + 1));
    message.outcome = outcome;
    message.resource = training->resource;
    message.checkpoint_lost = training->lacks_checkpoint;
    if (checkpoint) {
        message.checkpoint = calloc(1, 65);
        message.checkpoint_bytes = 1000;
        trial_checkpoint(training->parameters, training->resource, message.checkpoint);
    }
    if (outcome == OUTCOME_CRASHED)
        message.error = strdup("segmentation fault");
    if (training->is_final)
        message.details =
            json_pack("{s:f}", "test_score", trial_value(training->parameters, training->resource));
    if (training->has_baseline)
        json_object_set_new(message.details, "baseline",
                            json_pack("{s:{s:f}}", "metrics", "score", BASELINE_SCORE));
    if (outcome == OUTCOME_DIVERGED || outcome == OUTCOME_OUT_OF_MEMORY)
        simulation->fired[outcome == OUTCOME_DIVERGED ? FAULT_DIVERGE : FAULT_OUT_OF_MEMORY]++;
    training->state = HAS_ENDED;
    training->id = ++simulation->next_id;
    training_say(simulation, agent, training, &message);
}

static void say_report(struct simulation *simulation, struct agent *agent, struct training *training,
                       double score)
{
    struct message message;
    message_init(&message, MESSAGE_REPORT);
    engine_table_put(&simulation->said, said_key(training->trial, training->attempt, training->resource),
                     simulation);
    message.reports = calloc(1, sizeof(*message.reports));
    message.report_count = 1;
    message.reports[0].resource = training->resource;
    message.reports[0].seconds = 0.25 * (double)training->resource; /* exact, so that sums can be compared */
    message.reports[0].metrics = json_object();
    json_object_set_new(message.reports[0].metrics, "score", json_number(score));
    json_object_set_new(message.reports[0].metrics, "loss", json_number((double)(training->resource % 2)));
    training_say(simulation, agent, training, &message);
}

bool training_needs_slot(const struct training *training)
{
    return training->state == TRAINS || training->state == AWAITS ||
           (training->state == UPLOADS && training->ending != OUTCOME_PAUSED);
}

void training_begin(struct simulation *simulation, struct agent *agent, struct training *training)
{
    char checkpoint[65];
    trial_checkpoint(training->parameters, training->start, checkpoint);
    if (training->start > 0 && !blob_exists(simulation, checkpoint)) {
        training->lacks_checkpoint = true;
        training_end(simulation, agent, training, OUTCOME_INTERRUPTED, false);
        return;
    }
    if (training->resource < training->until)
        next_epoch(simulation, agent, training);
    else
        upload(simulation, agent, training,
               OUTCOME_FINISHED); /* it was handed back with nothing left to train */
}

void training_add(struct simulation *simulation, struct agent *agent, const struct assignment *assignment,
                  int slot)
{
    struct training *training = calloc(1, sizeof(*training));
    char checkpoint[65];
    training->trial = assignment->trial;
    training->attempt = assignment->attempt;
    training->parameters = json_deep_copy(assignment->parameters);
    training->start = training->resource = assignment->start;
    training->until = assignment->until;
    training->is_final = assignment->final != NULL;
    training->has_baseline = json_get_boolean(assignment->final, "baseline", false);
    training->slot = slot;
    agent->trainings =
        realloc(agent->trainings, ((size_t)agent->training_count + 1) * sizeof(struct training *));
    agent->trainings[agent->training_count++] = training;
    trial_checkpoint(training->parameters, training->start, checkpoint);
    if (training->start > 0 && (!assignment->checkpoint || strcmp(assignment->checkpoint, checkpoint) != 0))
        simulation_violate(simulation, "trial %lld starts at %lld from another checkpoint",
                           (long long)training->trial, (long long)training->start);
    const struct record *row = store_row(simulation, RECORD_ATTEMPT, training->trial, training->attempt, 0);
    if (!row || strcmp(row->attempt.worker, agent->name) != 0)
        simulation_violate(simulation, "%s was told of attempt %lld of trial %lld before it was stored",
                           agent->name, (long long)training->attempt, (long long)training->trial);
    /* An assign may come late, when the trial is over and its blobs are gone; a current one must find its
     * blob. */
    else if (training->start > 0 && row->attempt.outcome == OUTCOME_NONE &&
             !blob_exists(simulation, checkpoint) && !blob_is_lost(simulation, checkpoint))
        simulation_violate(simulation, "the checkpoint of trial %lld at %lld is gone",
                           (long long)training->trial, (long long)training->start);
}

static bool fails_in_epoch(struct simulation *simulation, struct agent *agent, struct training *training)
{
    bool reports_it = false;
    int64_t diverges_at = trial_diverges_at(training->parameters, &reports_it);
    if (training->is_final)
        return false;
    if (trial_exhausts_memory(training->parameters)) {
        training_end(simulation, agent, training, OUTCOME_OUT_OF_MEMORY, false);
        return true;
    }
    if (simulation_fault(simulation, FAULT_ATTEMPT_CRASH, 5)) {
        training_end(simulation, agent, training, OUTCOME_CRASHED, false);
        return true;
    }
    if (diverges_at != training->resource + 1)
        return false;
    training->resource++;
    if (reports_it)
        say_report(simulation, agent, training, NAN);
    training_end(simulation, agent, training, OUTCOME_DIVERGED, false);
    return true;
}

void training_epoch(struct simulation *simulation, struct agent *agent, struct training *training)
{
    if (fails_in_epoch(simulation, agent, training)) {
        agent_tidy(simulation, agent);
        return;
    }
    int64_t top = training->is_final ? training->until : simulation->settings.stopping.max_iter;
    training->resource++;
    say_report(simulation, agent, training, trial_value(training->parameters, training->resource));
    if (training->resource >= top)
        upload(simulation, agent, training, OUTCOME_FINISHED);
    else if (training->resource >= training->until)
        training->state = AWAITS;
    else
        next_epoch(simulation, agent, training);
}

void training_uploaded(struct simulation *simulation, struct agent *agent, struct training *training)
{
    char checkpoint[65];
    if (!simulation->server.up || agent->cut) {
        training_next(simulation, agent, training, HAPPENS_UPLOADED, SECOND / 2);
        return;
    }
    trial_checkpoint(training->parameters, training->resource, checkpoint);
    blob_put(simulation, checkpoint);
    training_end(simulation, agent, training, training->ending, true);
    agent_tidy(simulation, agent);
}

void training_interrupt(struct simulation *simulation, struct agent *agent, struct training *training)
{
    if (training->state == HAS_ENDED)
        return;
    if (training->state == UPLOADS)
        return; /* it is about to end anyway */
    if (training->resource > training->start)
        upload(simulation, agent, training, OUTCOME_INTERRUPTED);
    else
        training_end(simulation, agent, training, OUTCOME_INTERRUPTED, false);
}

/* What was acknowledged must be in the store, whatever happened to the coordinator since. */
static void check_stored(struct simulation *simulation, const struct training *training,
                         const struct message *said)
{
    const struct record *attempt =
        store_row(simulation, RECORD_ATTEMPT, training->trial, training->attempt, 0);
    if (!attempt || attempt->attempt.last_sequence < said->sequence)
        simulation_violate(
            simulation, "message %lld of attempt %lld of trial %lld was acknowledged but is not stored",
            (long long)said->sequence, (long long)training->attempt, (long long)training->trial);
    for (size_t i = 0; i < said->report_count; i++)
        if (!store_row(simulation, RECORD_REPORT, training->trial, said->reports[i].resource,
                       training->attempt))
            simulation_violate(simulation, "an acknowledged report of trial %lld is lost",
                               (long long)training->trial);
}

void training_acknowledged(struct simulation *simulation, struct agent *agent, struct training *training,
                           const struct message *message)
{
    while (training->acknowledged < message->sequence && training->acknowledged < training->sequence) {
        check_stored(simulation, training, &training->said[0]->message);
        packet_release(training->said[0]);
        training->acknowledged++;
        memmove(training->said, training->said + 1,
                (size_t)(training->sequence - training->acknowledged) * sizeof(struct packet *));
    }
    if (training->state == HAS_ENDED || (training->state == UPLOADS && training->ending != OUTCOME_PAUSED))
        return;
    if (message->action == ACTION_STOP) {
        training_end(simulation, agent, training, OUTCOME_STOPPED, false);
        return;
    }
    if (message->until > training->until && training->state == UPLOADS) {
        training->state = QUEUES; /* it goes on from its own checkpoint when there is a slot */
        training->id = ++simulation->next_id;
    }
    if (message->until > training->until)
        training->until = message->until;
    if (training->state == AWAITS && training->resource < training->until)
        next_epoch(simulation, agent, training);
    else if (training->state == AWAITS && training->acknowledged == training->sequence)
        upload(simulation, agent, training, OUTCOME_PAUSED);
}

void training_resend(struct simulation *simulation, struct agent *agent, struct training *training)
{
    for (int64_t i = 0; i < training->sequence - training->acknowledged; i++)
        network_to_server(simulation, agent, training->said[i]);
}
