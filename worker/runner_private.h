/* What the parts of the runner share: runner.c (link and life), runner_trial.c (a trial), runner_final.c (the
 * refit), runner_baseline.c (the linear model). */
#ifndef RUNG_WORKER_RUNNER_PRIVATE_H
#define RUNG_WORKER_RUNNER_PRIVATE_H

#include "worker/link.h"
#include "worker/runner_replicates.h"
#include "worker/training/data.h"
#include "worker/training/device_data.h"
#include "worker/training/settings.h"
#include "worker/training/trainer.h"

#include <stdbool.h>
#include <stdint.h>

/* One run as the agent asked for it. */
struct run {
    json_t *line; /* owned: the "run" message, which all borrowed texts below point into */
    int64_t trial, attempt, start, until;
    json_t *parameters, *final;
    const char *checkpoint, *save;
    bool stopped, interrupted; /* the agent wants it back */
    const char *blame;         /* for its failure, where it is not the trial's: see link.h */
};

struct runner {
    struct link link;
    struct device *device;
    json_t *sweep; /* the "sweep" message, NULL before it came */
    uint64_t seed;
    struct dataset dataset, refit; /* refit: loaded when first needed */
    bool has_dataset, has_refit;
    const struct dataset *kept; /* which of them is kept on the device; NULL: none */
    struct device_data kept_data;
    struct run run;                /* the one under way or paused; line NULL: none */
    struct replicates *replicates; /* its state, kept while it is paused */
    struct trainer *trainer;       /* of the refit: the seed under way */
    bool link_failed;              /* closed, or nonsense came: go */
    bool device_failed;            /* nothing can be computed in this process any more */
};

/* Takes what the agent has sent since, without waiting: a higher until, stop. */
void runner_poll(struct runner *runner);
/* Steals details (may be NULL). */
void runner_send_report(struct runner *runner, int64_t resource, json_t *metrics, double seconds,
                        json_t *details);
/* Says how the run ended. `saved`: its checkpoint is at run.save. Steals details (may be NULL). */
void runner_send_ended(struct runner *runner, const char *outcome, int64_t resource, bool saved,
                       const struct error *reason, json_t *details);
/* One line on stderr, for people who look at the attempt's log. */
void runner_note(const struct runner *runner, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How the attempt begins: the data, the device, the parameters and what they come to. */
void runner_note_start(const struct runner *runner, const struct dataset *dataset,
                       const struct derived *derived);
/* The outcome that an error amounts to. Notes whether the device is behind it: then nobody else is to blame.
 * `blame`: whose fault it is otherwise, NULL the trial's. */
const char *runner_outcome(struct runner *runner, const struct error *reason, const char *blame);
/* The settings of the run's point over a train object, with what `precision: auto` is in this sweep. */
int runner_settings(const struct runner *runner, const json_t *train, struct training_settings *settings,
                    struct error *err);

/* runner_trial.c: from the run's start, or on from a pause with the trainer in memory. A pause keeps the
 * trainer. */
void runner_train(struct runner *runner);
/* runner_final.c: the winner's refit, and whatever else is to be trained after the search. */
void runner_refit(struct runner *runner);
/* runner_baseline.c: {"metrics": {}, "epochs", "seconds"} of the linear model, or {"failed", "error"}. New
 * reference; NULL: asked to stop meanwhile. */
json_t *runner_baseline(struct runner *runner);

/* The sweep's train object. Borrowed. */
json_t *runner_train_settings(const struct runner *runner);
struct data_files runner_data_files(const struct runner *runner);
/* Keeps a data set on the device for the trials to come, in place of the one before; NULL: none. Where it
 * does not fit, the trial that needs it says so. */
void runner_keep_data(struct runner *runner, const struct dataset *dataset);

#endif
