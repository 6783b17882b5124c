/* After the search: the refit, the winner's parameters trained again with several seeds and scored on the
 * test rows; and the baseline, where it is asked for.
 *
 * details = {"test_accuracy": {"mean", "sd"}, ... one for each test metric, "seeds", "epochs", "derived",
 * "precision", "notes", "baseline"}; sd is the sample's (n - 1), 0 for one seed; notes where there are some.
 * The model of the first seed is saved. Seed k's trial seed is trial_seed(sweep seed ^ FNV-1a("final"), k),
 * so that it is none of a trial's. */
#include "worker/runner_private.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* Sums of each test metric over the seeds: {"test_accuracy": [values]}. */
static int scores_add(json_t *scores, const json_t *metrics)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)metrics, name, value)
    {
        json_t *list = json_object_get(scores, name);
        if (!list) {
            list = json_array();
            json_object_set_new(scores, name, list);
        }
        if (json_array_append(list, value) != 0) {
            return -1;
        }
    }
    return 0;
}

static json_t *scores_summary(json_t *scores)
{
    json_t *summary = json_object();
    const char *name;
    json_t *list;
    json_object_foreach(scores, name, list)
    {
        size_t count = json_array_size(list), index;
        double sum = 0, squares = 0, value = NAN;
        json_t *entry;
        json_array_foreach(list, index, entry)
        {
            sum += json_number_get(entry, &value) ? value : NAN;
        }
        double mean = sum / (double)count;
        json_array_foreach(list, index, entry)
        {
            value = json_number_get(entry, &value) ? value : NAN;
            squares += (value - mean) * (value - mean);
        }
        double sd = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
        json_object_set_new(summary, name,
                            json_pack("{s:o,s:o}", "mean", json_number(mean), "sd", json_number(sd)));
    }
    return summary;
}

/* The rows it trains on: training and validation together, unless `refit` says train. */
static const struct dataset *final_rows(struct runner *runner, struct error *err)
{
    if (strcmp(json_get_string(runner->run.final, "refit", "train+validation"), "train") == 0) {
        return &runner->dataset;
    }
    if (!runner->has_refit) {
        const json_t *data = json_object_get(runner_train_settings(runner), "data");
        struct data_files files = runner_data_files(runner);
        if (dataset_load_refit(&runner->refit, data, &files, runner->seed, err) != 0) {
            error_prefix(err, "load the data");
            return NULL;
        }
        runner->has_refit = true;
    }
    return &runner->refit;
}

/* The schedule is the winner's, also where it is left early; a training that is longer than the winner's has
 * it stretched, lest most of it be done at the rate that schedules end with. */
static int final_settings(const struct runner *runner, int64_t epochs, struct training_settings *settings,
                          struct error *err)
{
    json_t *train = json_copy(runner_train_settings(runner));
    int64_t given = json_get_integer(train, "epochs", epochs);
    int result = json_object_set_new(train, "epochs", json_integer(epochs > given ? epochs : given)) == 0
                     ? runner_settings(runner, train, settings, err)
                     : error_set(err, ERROR_MEMORY, "no memory for the refit");
    json_decref(train);
    settings->replicates = 1; /* one seed after the other */
    return result;
}

/* One training. 1: done, *metrics are the test's; 0: asked to stop, or diverged; -1 err. */
static int final_train(struct runner *runner, int64_t epochs, bool *diverged, json_t **metrics,
                       struct error *err)
{
    *diverged = false;
    while (trainer_resource(runner->trainer) < epochs) {
        json_t *unused = NULL;
        runner_poll(runner);
        if (runner->link_failed || runner->run.stopped || runner->run.interrupted) {
            return 0;
        }
        if (trainer_epoch(runner->trainer, &unused, diverged, err) != 0) {
            return -1;
        }
        json_decref(unused);
        if (*diverged) {
            return 0;
        }
    }
    return trainer_evaluate(runner->trainer, SPLIT_TEST, "test_", metrics, err) == 0 ? 1 : -1;
}

static int final_seed(struct runner *runner, const struct training_settings *settings, int64_t index,
                      int64_t epochs, bool *diverged, json_t *scores, const char **blame, struct error *err)
{
    const struct dataset *rows = final_rows(runner, err);
    uint64_t base = settings->seed >= 0 ? (uint64_t)settings->seed : runner->seed;
    uint64_t seed = trial_seed(base ^ fnv1a64("final", strlen("final")), index);
    json_t *metrics = NULL;
    runner_keep_data(runner, rows);
    runner->trainer = rows ? trainer_create(settings, rows, runner->device, seed, err) : NULL;
    if (!runner->trainer) {
        return -1;
    }
    if (index == 0) {
        runner_note_start(runner, rows, trainer_derived(runner->trainer));
    }
    int result = final_train(runner, epochs, diverged, &metrics, err);
    if (result == 1 && index == 0 && trainer_save(runner->trainer, runner->run.save, err) != 0) {
        *blame = err->code == ERROR_RESOURCE ? BLAME_WORKER : NULL; /* its disk */
        result = error_prefix(err, "save the model");
    }
    if (result == 1 && scores_add(scores, metrics) != 0) {
        result = error_set(err, ERROR_MEMORY, "no memory for the scores");
    }
    json_decref(metrics);
    return result;
}

/* told: what the first seed's trainer says of itself. */
static json_t *final_details(json_t *scores, int64_t seeds, int64_t epochs, const json_t *told)
{
    static const char *const names[] = {"derived", "precision", "notes"};
    json_t *details = scores_summary(scores);
    json_object_set_new(details, "seeds", json_integer(seeds));
    json_object_set_new(details, "epochs", json_integer(epochs));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(told, names[i]);
        if (value) {
            json_object_set(details, names[i], value);
        }
    }
    return details;
}

/* All seeds. 1: done, *details are the result; 0: asked to stop, or diverged; -1 err. */
static int final_seeds(struct runner *runner, int64_t epochs, bool *diverged, const char **blame,
                       json_t **details, struct error *err)
{
    struct training_settings settings;
    int64_t seeds = json_get_integer(runner->run.final, "seeds", 5);
    json_t *scores = json_object(), *told = NULL;
    int result = final_settings(runner, epochs, &settings, err) == 0 ? 1 : -1;
    for (int64_t index = 0; index < seeds && result == 1; index++) {
        result = final_seed(runner, &settings, index, epochs, diverged, scores, blame, err);
        if (runner->trainer && !told) {
            told = trainer_details(runner->trainer);
        }
        trainer_destroy(runner->trainer);
        runner->trainer = NULL;
    }
    runner_note(runner, "the refit with %lld seeds of %lld epochs %s%s%s", (long long)seeds,
                (long long)epochs, result == 1 ? "has finished" : "ended early", result < 0 ? ": " : "",
                result < 0 ? err->message : "");
    if (result == 1) {
        *details = final_details(scores, seeds, epochs, told);
    }
    json_decref(scores);
    json_decref(told);
    return result;
}

/* Into *details, which may be NULL before. The same results. Where its device fails all of it is tried again,
 * unless that would throw away a refit. */
static int final_baseline(struct runner *runner, json_t **details, struct error *err)
{
    if (!json_get_boolean(runner->run.final, "baseline", false)) {
        return 1;
    }
    json_t *baseline = runner_baseline(runner);
    if (!baseline) {
        return 0;
    }
    if (runner->device_failed && !*details) {
        error_set(err, ERROR_RESOURCE, "%s", json_get_string(baseline, "error", ""));
        json_decref(baseline);
        return -1;
    }
    *details = *details ? *details : json_object();
    json_object_set_new(*details, "baseline", baseline);
    return 1;
}

void runner_refit(struct runner *runner)
{
    struct error err = {0};
    bool diverged = false, refits = strcmp(json_get_string(runner->run.final, "refit", ""), "none") != 0;
    const char *blame = NULL;
    int64_t epochs = json_get_integer(runner->run.final, "epochs", runner->run.until);
    json_t *details = NULL;
    int result = refits ? final_seeds(runner, epochs, &diverged, &blame, &details, &err) : 1;
    if (result == 1) {
        result = final_baseline(runner, &details, &err);
    }
    if (result == 1) {
        runner_send_ended(runner, "finished", epochs, refits, NULL, details);
        return;
    }
    json_decref(details);
    if (result < 0) {
        runner_send_ended(runner, runner_outcome(runner, &err, blame), 0, false, &err, NULL);
    } else {
        const char *outcome = diverged ? "diverged" : runner->run.stopped ? "stopped" : "interrupted";
        runner_send_ended(runner, outcome, 0, false, NULL, NULL);
    }
}
