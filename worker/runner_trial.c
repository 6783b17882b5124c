/* One trial: epochs until `until`, a report after each, and how it ends. */
#include "worker/runner_private.h"

#include "base/clock.h"

#include <math.h>

static void trial_ended(struct runner *runner, const char *outcome, bool saved, const struct error *reason)
{
    int64_t resource = runner->replicates ? replicates_resource(runner->replicates) : runner->run.start;
    json_t *details = runner->replicates ? replicates_details(runner->replicates) : NULL;
    runner_note(runner, "%s after %lld epochs%s%s", outcome, (long long)resource, reason ? ": " : "",
                reason ? reason->message : "");
    runner_send_ended(runner, outcome, resource, saved, reason, details);
}

static void trial_drop(struct runner *runner)
{
    replicates_destroy(runner->replicates);
    runner->replicates = NULL;
}

/* `blame`: see runner_outcome. */
static void trial_failed(struct runner *runner, const struct error *reason, const char *blame)
{
    trial_ended(runner, runner_outcome(runner, reason, blame), false, reason);
    trial_drop(runner);
}

static int trial_settings(const struct runner *runner, struct training_settings *settings, struct error *err)
{
    if (runner_settings(runner, runner_train_settings(runner), settings, err) != 0) {
        return -1;
    }
    const char *objective = json_get_string(runner->sweep, "objective", "last");
    settings->objective_best = objective[0] == 'b' && json_get_string(runner->sweep, "metric", NULL) != NULL;
    return 0;
}

static int trial_create(struct runner *runner, const struct training_settings *settings, const char **blame,
                        struct error *err)
{
    uint64_t seed =
        settings->seed >= 0 ? (uint64_t)settings->seed : trial_seed(runner->seed, runner->run.trial);
    runner_keep_data(runner, &runner->dataset);
    runner->replicates = replicates_create(settings, &runner->dataset, runner->device, seed, err);
    if (!runner->replicates) {
        return -1;
    }
    if (runner->run.checkpoint && replicates_load(runner->replicates, runner->run.checkpoint, err) != 0) {
        *blame = err->code == ERROR_MEMORY ? NULL : BLAME_CHECKPOINT;
        return error_prefix(err, "load the checkpoint");
    }
    runner_note_start(runner, &runner->dataset, replicates_derived(runner->replicates));
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
    bool any = replicates_best(runner->replicates, &best);
    if (!any || (maximize ? value > best : value < best)) {
        replicates_keep_best(runner->replicates, value);
    }
}

/* 1: goes on; 0: diverged; -1 err. */
static int trial_epoch(struct runner *runner, struct error *err)
{
    json_t *metrics = NULL;
    bool diverged = false;
    int64_t begin = clock_now().monotonic_ns;
    if (replicates_epoch(runner->replicates, &metrics, &diverged, err) != 0) {
        return -1;
    }
    double seconds = (double)(clock_now().monotonic_ns - begin) / NS_PER_SECOND;
    trial_track_best(runner, metrics);
    int64_t resource = replicates_resource(runner->replicates);
    /* With the first report already: a trial may be judged on it and never be heard of again. */
    json_t *details = resource == runner->run.start + 1 ? replicates_details(runner->replicates) : NULL;
    runner_send_report(runner, resource, metrics, seconds, details);
    json_decref(metrics);
    return diverged ? 0 : 1;
}

/* Saves and says so; the trainers stay in memory, for a higher `until`. A disk that fails is blamed on the
 * worker. */
static int trial_pause(struct runner *runner, const char *outcome, const char **blame, struct error *err)
{
    if (replicates_save(runner->replicates, runner->run.save, err) != 0) {
        *blame = err->code == ERROR_RESOURCE ? BLAME_WORKER : NULL;
        return error_prefix(err, "save the checkpoint");
    }
    trial_ended(runner, outcome, true, NULL);
    return 0;
}

static int trial_over(struct runner *runner, const char *outcome)
{
    trial_ended(runner, outcome, false, NULL);
    trial_drop(runner);
    return 0;
}

static int trial_run(struct runner *runner, int64_t epochs, const char **blame, struct error *err)
{
    for (;;) {
        runner_poll(runner);
        int64_t resource = replicates_resource(runner->replicates);
        if (runner->link_failed) {
            return 0;
        }
        if (resource >= epochs) {
            return trial_over(runner, "finished");
        }
        if (runner->run.stopped) {
            return trial_over(runner, "stopped");
        }
        if (resource >= runner->run.until) { /* also when interrupted: the report there has to be judged */
            return trial_pause(runner, "paused", blame, err);
        }
        if (runner->run.interrupted) {
            int result = trial_pause(runner, "interrupted", blame, err);
            if (result == 0) {
                trial_drop(runner);
            }
            return result;
        }
        int going = trial_epoch(runner, err);
        if (going < 0) {
            return -1;
        }
        if (going == 0) {
            return trial_over(runner, "diverged");
        }
    }
}

void runner_train(struct runner *runner)
{
    struct training_settings settings;
    struct error err = {0};
    const char *blame = NULL;
    int result = trial_settings(runner, &settings, &err);
    if (result == 0 && !runner->replicates) {
        result = trial_create(runner, &settings, &blame, &err);
    }
    if (result == 0) {
        result = trial_run(runner, settings.epochs, &blame, &err);
    }
    if (result != 0) {
        trial_failed(runner, &err, blame);
    }
}
