/* One trial: epochs until `until`, a report after each, and how it ends. */
#include "worker/runner_private.h"

#include "base/clock.h"

#include <math.h>

static json_t *trial_details(const struct runner *runner)
{
    return json_pack("{s:o}", "derived", derived_to_json(trainer_derived(runner->trainer)));
}

static void trial_ended(struct runner *runner, const char *outcome, bool saved, const struct error *reason)
{
    int64_t resource = runner->trainer ? trainer_resource(runner->trainer) : runner->run.start;
    json_t *details = runner->trainer ? trial_details(runner) : NULL;
    runner_note(runner, "%s after %lld epochs%s%s", outcome, (long long)resource, reason ? ": " : "",
                reason ? reason->message : "");
    runner_send_ended(runner, outcome, resource, saved, reason, details);
}

static void trial_drop(struct runner *runner)
{
    trainer_destroy(runner->trainer);
    runner->trainer = NULL;
}

static void trial_failed(struct runner *runner, const struct error *reason)
{
    trial_ended(runner, runner_outcome(runner, reason), false, reason);
    trial_drop(runner);
}

static int trial_settings(const struct runner *runner, struct training_settings *settings, struct error *err)
{
    if (training_settings_read(settings, runner_train_settings(runner), runner->run.parameters, err) != 0) {
        return -1;
    }
    const char *objective = json_get_string(runner->sweep, "objective", "last");
    settings->objective_best = objective[0] == 'b' && json_get_string(runner->sweep, "metric", NULL) != NULL;
    return 0;
}

static int trial_create(struct runner *runner, const struct training_settings *settings, struct error *err)
{
    uint64_t seed =
        settings->seed >= 0 ? (uint64_t)settings->seed : trial_seed(runner->seed, runner->run.trial);
    runner->trainer = trainer_create(settings, &runner->dataset, runner->device, seed, err);
    if (!runner->trainer) {
        return -1;
    }
    if (runner->run.checkpoint && trainer_load(runner->trainer, runner->run.checkpoint, err) != 0) {
        runner->run.blame = err->code == ERROR_MEMORY ? NULL : BLAME_CHECKPOINT;
        return error_prefix(err, "load the checkpoint");
    }
    runner_note_start(runner, &runner->dataset, trainer_derived(runner->trainer));
    return 0;
}

/* With `objective: best` the trainer keeps the weights of the best epoch; which one that is only the sweep
 * knows. */
static void trial_track_best(const struct runner *runner, const json_t *metrics)
{
    const char *metric = json_get_string(runner->sweep, "metric", NULL);
    bool maximize = json_get_boolean(runner->sweep, "maximize", false);
    double value, best;
    if (!metric || !json_number_get(json_object_get(metrics, metric), &value) || isnan(value)) {
        return;
    }
    bool any = trainer_best(runner->trainer, &best, NULL);
    if (!any || (maximize ? value > best : value < best)) {
        trainer_keep_best(runner->trainer, value);
    }
}

/* 1: goes on; 0: diverged; -1 err. */
static int trial_epoch(struct runner *runner, struct error *err)
{
    json_t *metrics = NULL;
    bool diverged = false;
    int64_t begin = clock_now().monotonic_ns;
    if (trainer_epoch(runner->trainer, &metrics, &diverged, err) != 0) {
        return -1;
    }
    double seconds = (double)(clock_now().monotonic_ns - begin) / NS_PER_SECOND;
    trial_track_best(runner, metrics);
    int64_t resource = trainer_resource(runner->trainer);
    /* With the first report already: a trial may be judged on it and never be heard of again. */
    json_t *details = resource == runner->run.start + 1 ? trial_details(runner) : NULL;
    runner_send_report(runner, resource, metrics, seconds, details);
    json_decref(metrics);
    return diverged ? 0 : 1;
}

/* Saves and says so; the trainer stays in memory, for a higher `until`. */
static int trial_pause(struct runner *runner, const char *outcome, struct error *err)
{
    if (runner_save(runner, "checkpoint", err) != 0) {
        return -1;
    }
    trial_ended(runner, outcome, true, NULL);
    return 0;
}

static int trial_run(struct runner *runner, int64_t epochs, struct error *err)
{
    for (;;) {
        runner_poll(runner);
        int64_t resource = trainer_resource(runner->trainer);
        int going = 1;
        if (runner->link_failed) {
            return 0;
        }
        if (resource >= epochs) {
            trial_ended(runner, "finished", false, NULL);
            trial_drop(runner);
            return 0;
        }
        if (runner->run.stopped) {
            trial_ended(runner, "stopped", false, NULL);
            trial_drop(runner);
            return 0;
        }
        if (resource >= runner->run.until) { /* also when interrupted: the report there has to be judged */
            return trial_pause(runner, "paused", err);
        }
        if (runner->run.interrupted) {
            int result = trial_pause(runner, "interrupted", err);
            trial_drop(runner);
            return result;
        }
        going = trial_epoch(runner, err);
        if (going < 0) {
            return -1;
        }
        if (going == 0) {
            trial_ended(runner, "diverged", false, NULL);
            trial_drop(runner);
            return 0;
        }
    }
}

void runner_train(struct runner *runner)
{
    struct training_settings settings;
    struct error err = {0};
    int result = trial_settings(runner, &settings, &err);
    if (result == 0 && !runner->trainer) {
        result = trial_create(runner, &settings, &err);
    }
    if (result == 0) {
        result = trial_run(runner, settings.epochs, &err);
    }
    if (result != 0) {
        trial_failed(runner, &err);
    }
}
