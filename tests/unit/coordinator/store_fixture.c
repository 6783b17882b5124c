#include "tests/unit/coordinator/store_fixture.h"

#include "base/files.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct error err = {0};
    /* In memory where possible: fault tests make thousands of fsyncs, which mean nothing to them. */
    snprintf(fixture->folder, sizeof fixture->folder, "/dev/shm/rung-store-XXXXXX");
    if (mkdtemp(fixture->folder) == NULL) {
        snprintf(fixture->folder, sizeof fixture->folder, "/tmp/rung-store-XXXXXX");
        assert_non_null(mkdtemp(fixture->folder));
    }
    snprintf(fixture->path, sizeof fixture->path, "%s/test.db", fixture->folder);
    fixture->store = store_open(fixture->path, STORE_WRITE, NULL, &err);
    if (fixture->store == NULL) {
        fail_msg("%s", err.message);
    }
    *state = fixture;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    folder_remove(fixture->folder, NULL);
    free(fixture);
    return 0;
}

void fixture_reopen(struct fixture *fixture, const char *vfs)
{
    struct error err = {0};
    store_close(fixture->store);
    fixture->store = store_open(fixture->path, STORE_WRITE, vfs, &err);
    if (fixture->store == NULL) {
        fail_msg("%s", err.message);
    }
}

static json_t *parse(const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    json_t *value = json_parse(text, strlen(text), NULL);
    assert_non_null(value);
    return value;
}

struct record sweep_record(const char *id, const char *name, int64_t created_ms, const char *normalised)
{
    struct record record = {.type = RECORD_SWEEP};
    snprintf(record.sweep.id, sizeof record.sweep.id, "%s", id);
    record.sweep.name = strdup(name);
    record.sweep.spec_text = strdup("method: random\n");
    record.sweep.normalised = parse(normalised);
    record.sweep.seed = UINT64_MAX - 7;
    record.sweep.version = strdup("0.1.0");
    record.sweep.created_ms = created_ms;
    memset(record.sweep.spec_sha256, 'a', 64);
    return record;
}

struct record trial_record(int64_t number, enum trial_state state, double objective, int64_t resource,
                           const char *parameters)
{
    struct record record = {.type = RECORD_TRIAL};
    record.trial.number = number;
    record.trial.state = state;
    record.trial.reason = state == TRIAL_COMPLETED ? REASON_FINISHED : REASON_NONE;
    record.trial.parameters = parse(parameters);
    record.trial.has_objective = !isnan(objective);
    record.trial.objective = objective;
    record.trial.resource = resource;
    return record;
}

struct record attempt_record(int64_t trial, int64_t number, const char *worker, double seconds)
{
    struct record record = {.type = RECORD_ATTEMPT};
    record.attempt.trial = trial;
    record.attempt.number = number;
    record.attempt.worker = strdup(worker);
    record.attempt.session = strdup("0123456789abcdef");
    record.attempt.device = strdup("cpu/test");
    record.attempt.until = 9;
    record.attempt.started_ms = 1000;
    record.attempt.outcome = OUTCOME_FINISHED;
    record.attempt.seconds = seconds;
    return record;
}

struct record report_record(int64_t trial, int64_t attempt, int64_t resource, const char *metrics)
{
    struct record record = {.type = RECORD_REPORT};
    record.report.trial = trial;
    record.report.attempt = attempt;
    record.report.resource = resource;
    record.report.received_ms = 2000 + resource;
    record.report.seconds = 0.25;
    record.report.metrics = parse(metrics);
    return record;
}

void keep(struct store *store, struct record record)
{
    struct error err = {0};
    if (store_commit(store, SWEEP_ID, &record, 1, &err) != 0) {
        fail_msg("%s", err.message);
    }
    record_release(&record);
}

void keep_sweep(struct store *store, const char *objective)
{
    char normalised[300];
    snprintf(normalised, sizeof normalised,
             "{\"method\": \"random\", \"metric\": {\"name\": \"accuracy\", \"goal\": \"maximize\", "
             "\"objective\": "
             "\"%s\"}, \"parameters\": {\"learning_rate\": {\"distribution\": \"uniform\", \"min\": 0, "
             "\"max\": 1},"
             " \"fixed\": {\"distribution\": \"constant\", \"value\": 3}}}",
             objective);
    keep(store, sweep_record(SWEEP_ID, "digits", 1000, normalised));
}

void keep_trial(struct store *store, int64_t number, double accuracy, const char *parameters)
{
    char metrics[100], shortest[NUMBER_SIZE];
    snprintf(metrics, sizeof metrics, "{\"accuracy\": %s, \"loss\": 0.5}", number_format(accuracy, shortest));
    keep(store, trial_record(number, TRIAL_COMPLETED, accuracy, 3, parameters));
    keep(store, attempt_record(number, 1, "node1", 1.5));
    keep(store, report_record(number, 1, 3, metrics));
}
