/* What the parts of the runner share: runner.c (link and life), runner_trial.c (a trial), runner_final.c (the
 * refit). */
#ifndef RUNG_WORKER_RUNNER_PRIVATE_H
#define RUNG_WORKER_RUNNER_PRIVATE_H

#include "worker/link.h"
#include "worker/training/data.h"
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
    struct run run;          /* the one under way or paused; line NULL: none */
    struct trainer *trainer; /* its state, kept while it is paused */
    bool link_failed;        /* closed, or nonsense came: go */
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
/* Saves the trainer's state at run.save; a disk that fails is blamed on the worker. */
int runner_save(struct runner *runner, const char *what, struct error *err);
/* The outcome that an error amounts to. */
const char *runner_outcome(const struct runner *runner, const struct error *reason);

/* runner_trial.c: from the run's start, or on from a pause with the trainer in memory. A pause keeps the
 * trainer. */
void runner_train(struct runner *runner);
/* runner_final.c */
void runner_refit(struct runner *runner);

/* The sweep's train object. Borrowed. */
json_t *runner_train_settings(const struct runner *runner);
struct data_files runner_data_files(const struct runner *runner);

#endif
