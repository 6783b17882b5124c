/* A trial as the runner trains it: one trainer for each of its seeds, stepped together epoch by epoch, so
 * that a point is judged by the mean over its seeds. One seed is just its trainer: the same numbers, the same
 * files. */
#ifndef RUNG_WORKER_RUNNER_REPLICATES_H
#define RUNG_WORKER_RUNNER_REPLICATES_H

#include "worker/training/trainer.h"

struct replicates;

/* settings->replicates trainers; dataset and device are borrowed. The first has the trial's own seed, the
 * r-th (from 0) trial_seed(seed ^ FNV-1a("replicate"), r). */
struct replicates *replicates_create(const struct training_settings *settings, const struct dataset *dataset,
                                     struct device *device, uint64_t seed, struct error *err);
void replicates_destroy(struct replicates *replicates);
const struct derived *replicates_derived(const struct replicates *replicates);
/* As trainer_details, of the first; with the notes of all, and "replicates", where there are several. */
json_t *replicates_details(const struct replicates *replicates);
int64_t replicates_resource(const struct replicates *replicates);

/* As trainer_epoch. Of several, each metric is the mean, and beside it stands NAME_sd, the sample's standard
 * deviation (n - 1); diverged: one of them has. */
int replicates_epoch(struct replicates *replicates, json_t **metrics, bool *diverged, struct error *err);
/* As their namesakes of the trainer, for all of them at the same epoch. */
void replicates_keep_best(struct replicates *replicates, double objective);
bool replicates_best(const struct replicates *replicates, double *objective);

/* One file: of several, their checkpoints as one safetensors file, each tensor and each metadatum behind
 * "replicate.R.". load replaces all state or, on failure, none that is used again. */
int replicates_save(struct replicates *replicates, const char *path, struct error *err);
int replicates_load(struct replicates *replicates, const char *path, struct error *err);

#endif
