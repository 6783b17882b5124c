/* The trainer: one trial on one device, epoch by epoch. The runner drives it:
 *   trainer_create -> [trainer_load] -> trainer_epoch... -> trainer_save -> trainer_destroy
 * Everything random is a function of (trial seed, purpose, epoch, element), so a resumed trial is bitwise equal to one that
 * never stopped. */
#ifndef RUNG_WORKER_TRAINING_TRAINER_H
#define RUNG_WORKER_TRAINING_TRAINER_H

#include "base/error.h"
#include "base/json.h"
#include "kernels/device.h"
#include "worker/training/data.h"
#include "worker/training/settings.h"

#include <stdint.h>

struct trainer;
/* dataset and device are borrowed. seed: the trial's. ERROR_MEMORY when it does not fit. */
struct trainer *trainer_create(const struct training_settings *settings, const struct dataset *dataset,
                               struct device *device, uint64_t seed, struct error *err);
void trainer_destroy(struct trainer *trainer);
const struct derived *trainer_derived(const struct trainer *trainer);
int64_t trainer_resource(const struct trainer *trainer); /* completed epochs */

/* Trains one epoch and evaluates the validation split. *metrics: new object (TRAINING: train_loss, validation_loss,
 * validation_accuracy, ..., or rmse/mae/r2). *diverged: a loss or weight is no longer finite. */
int trainer_epoch(struct trainer *trainer, json_t **metrics, bool *diverged, struct error *err);
/* Metrics of a split under a prefix ("test_..."): evaluation mode. */
int trainer_evaluate(struct trainer *trainer, enum split split, const char *prefix, json_t **metrics, struct error *err);

/* safetensors, written atomically; exact resume. `objective` NULL or the name and goal to track the best epoch by. */
int trainer_save(struct trainer *trainer, const char *path, struct error *err);
int trainer_load(struct trainer *trainer, const char *path, struct error *err);

/* Seed of a trial: one Philox block keyed by the sweep's seed at (trial, "trial"). */
uint64_t trial_seed(uint64_t sweep_seed, int64_t trial);

#endif
