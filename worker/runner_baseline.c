/* The baseline: a linear model (logistic regression, or ridge regression) on the sweep's own split and
 * preprocessing, with settings that are the same for every sweep. docs/training.md names them. */
#include "worker/runner_private.h"

#include "base/clock.h"
#include "base/random.h"

#include <string.h>

/* Enough to come within a point of what a linear model can do, and little beside any search: rows are visited
 * VISITS times in all, which is a matter of the data only, never of time. Large data is seen EPOCHS_LEAST
 * times: each epoch has steps enough. */
#define BASELINE_VISITS 40000
#define BASELINE_EPOCHS_LEAST 2
#define BASELINE_EPOCHS_MOST 100
#define BASELINE_BATCH 128

static int baseline_settings(const struct dataset *dataset, struct training_settings *settings,
                             struct error *err)
{
    int64_t rows = dataset->rows[SPLIT_TRAIN];
    int64_t batch = rows < BASELINE_BATCH ? rows : BASELINE_BATCH;
    int64_t epochs = rows > 0 ? BASELINE_VISITS / rows : 1;
    epochs = epochs < BASELINE_EPOCHS_LEAST ? BASELINE_EPOCHS_LEAST : epochs;
    epochs = epochs > BASELINE_EPOCHS_MOST ? BASELINE_EPOCHS_MOST : epochs;
    json_t *train =
        json_pack("{s:s, s:s, s:f, s:f, s:s, s:I, s:I, s:s}", "model", "linear", "optimizer", "adamw",
                  "learning_rate", 0.03, "weight_decay", 0.01, "schedule", "cosine", "batch_size",
                  (json_int_t)batch, "epochs", (json_int_t)epochs, "precision", "fp32");
    int result = train ? training_settings_read(settings, train, NULL, err)
                       : error_set(err, ERROR_MEMORY, "no memory for the baseline");
    json_decref(train);
    return result;
}

/* 1: done, *metrics are those of the last epoch; 0: asked to stop; -1 err. */
static int baseline_train(struct runner *runner, struct trainer *trainer, int64_t epochs, json_t **metrics,
                          struct error *err)
{
    bool diverged = false;
    while (trainer_resource(trainer) < epochs) {
        json_decref(*metrics);
        *metrics = NULL;
        runner_poll(runner);
        if (runner->link_failed || runner->run.stopped || runner->run.interrupted) {
            return 0;
        }
        if (trainer_epoch(trainer, metrics, &diverged, err) != 0) {
            return -1;
        }
        if (diverged) {
            return error_set(err, ERROR_INTERNAL, "the linear model diverged");
        }
    }
    return 1;
}

json_t *runner_baseline(struct runner *runner)
{
    struct training_settings settings = {0};
    struct error err = {0};
    json_t *metrics = NULL, *baseline = NULL;
    int64_t begin = clock_now().monotonic_ns;
    uint64_t seed = trial_seed(runner->seed ^ fnv1a64("baseline", strlen("baseline")), 0);
    struct trainer *trainer = NULL;
    int result = baseline_settings(&runner->dataset, &settings, &err);
    if (result == 0) {
        runner_keep_data(runner, &runner->dataset);
        trainer = trainer_create(&settings, &runner->dataset, runner->device, seed, &err);
        result = trainer ? baseline_train(runner, trainer, settings.epochs, &metrics, &err) : -1;
    }
    trainer_destroy(trainer);
    double seconds = (double)(clock_now().monotonic_ns - begin) / NS_PER_SECOND;
    if (result == 1) {
        baseline = json_pack("{s:O, s:I, s:f, s:s}", "metrics", metrics, "epochs",
                             (json_int_t)settings.epochs, "seconds", seconds, "device", runner->device->name);
    } else if (result < 0) {
        baseline =
            json_pack("{s:s, s:s}", "failed", runner_outcome(runner, &err, NULL), "error", err.message);
    }
    json_decref(metrics);
    return baseline;
}
