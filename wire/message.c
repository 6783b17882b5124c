/* Messages as values: their names, their beginning and their end. The codec is in message_encode.c and
 * message_decode.c, the tables in message_table.c. */
#include "wire/message.h"

#include "wire/message_table.h"

#include <stdlib.h>
#include <string.h>

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_NONE] = "running",
    [OUTCOME_FINISHED] = "finished",
    [OUTCOME_PAUSED] = "paused",
    [OUTCOME_STOPPED] = "stopped",
    [OUTCOME_INTERRUPTED] = "interrupted",
    [OUTCOME_CRASHED] = "crashed",
    [OUTCOME_OUT_OF_MEMORY] = "out_of_memory",
    [OUTCOME_TIMED_OUT] = "timed_out",
    [OUTCOME_DIVERGED] = "diverged",
    [OUTCOME_NO_METRIC] = "no_metric",
    [OUTCOME_INVALID] = "invalid",
    [OUTCOME_LOST] = "lost",
};

const char *outcome_name(enum outcome outcome)
{
    return (unsigned)outcome < OUTCOME_COUNT ? outcome_names[outcome] : "unknown";
}

bool outcome_parse(const char *name, enum outcome *outcome)
{
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        if (strcmp(name, outcome_names[i]) == 0) {
            *outcome = i;
            return true;
        }
    }
    return false;
}

const char *message_type_name(enum message_type type)
{
    return (unsigned)type < MESSAGE_TYPE_COUNT ? message_layouts[type].name : "unknown";
}

void message_init(struct message *message, enum message_type type)
{
    memset(message, 0, sizeof *message);
    message->type = type;
}

static void lists_release(struct message *message)
{
    for (size_t i = 0; i < message->device_count; i++) {
        free(message->devices[i].id);
        free(message->devices[i].kind);
        free(message->devices[i].name);
        free(message->devices[i].fault);
    }
    for (size_t i = 0; i < message->trial_count; i++) {
        json_decref(message->trials[i].parameters);
        free(message->trials[i].checkpoint);
        json_decref(message->trials[i].final);
    }
    for (size_t i = 0; i < message->report_count; i++) {
        json_decref(message->reports[i].metrics);
    }
    free(message->devices);
    free(message->running);
    free(message->trials);
    free(message->reports);
}

/* Frees every member whatever the type, so that a half-filled message is released too. */
void message_release(struct message *message)
{
    lists_release(message);
    char *const strings[] = {
        message->worker,     message->session,    message->host,          message->version,
        message->sweep,      message->sweep_name, message->blob_endpoint, message->metric,
        message->objective,  message->seed,       message->checkpoint,    message->error,
        message->log_stdout, message->log_stderr, message->device,        message->reason,
        message->code,       message->query,
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        free(strings[i]);
    }
    json_decref(message->ready_slots);
    json_decref(message->train);
    json_decref(message->details);
    json_decref(message->body);
    free(message->bytes);
    memset(message, 0, sizeof *message);
}
