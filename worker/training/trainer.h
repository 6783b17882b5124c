/* The trainer: one trial on one device, epoch by epoch. The runner drives it:
 *   trainer_create -> [trainer_load] -> trainer_epoch... -> trainer_save -> trainer_destroy
 * Everything random is a function of (trial seed, purpose, epoch, element), so a resumed trial is bitwise
 * equal to one that never stopped. */
#ifndef RUNG_WORKER_TRAINING_TRAINER_H
#define RUNG_WORKER_TRAINING_TRAINER_H

#include "base/error.h"
#include "base/json.h"
#include "kernels/device.h"
#include "worker/training/data.h"
#include "worker/training/random.h" /* trial_seed */
#include "worker/training/settings.h"

#include <stdbool.h>

#include <stdint.h>

struct trainer;
struct safetensors;
/* dataset and device are borrowed. seed: the trial's. settings->replicates: how many trainers, this one among
 * them, are to share what the device has free; what the trainer plans with is its part. ERROR_MEMORY when it
 * does not fit, ERROR_USAGE for a loss that does not suit the target. */
struct trainer *trainer_create(const struct training_settings *settings, const struct dataset *dataset,
                               struct device *device, uint64_t seed, struct error *err);
void trainer_destroy(struct trainer *trainer);
const struct derived *trainer_derived(const struct trainer *trainer);
/* What the trial's record says besides its metrics: {"derived": {...}, "precision": "bf16", "memory": {...}},
 * memory as in trainer_plan with what was really done; with fp16 also loss_scale and skipped_steps; "notes"
 * (an array of sentences) where there is something to say: a precision that is only emulated, a batch that
 * does not fit, why it has diverged, a warm-up that is not used, a checkpoint from another device, ... New
 * reference; NULL without memory. */
json_t *trainer_details(const struct trainer *trainer);
/* What a trial of these settings would take on a device that evaluates so many rows at once
 * (kernels/device.h) and has `available` bytes (0: unbounded), by the layout code the trainer itself uses:
 * {"parameters", "fixed_bytes", "data_bytes", "bytes_per_row", "micro_batch", "accumulation",
 * "evaluation_rows", "bytes" (with the data), "available", "fits"}. `precision` must not be auto in settings.
 * New reference; NULL: err. */
json_t *trainer_plan(const struct training_settings *settings, const struct dataset *dataset,
                     int64_t evaluation_rows, size_t available, struct error *err);
int64_t trainer_resource(const struct trainer *trainer); /* completed epochs */

/* Trains one epoch and evaluates the validation split (when it has rows). *metrics: new object with
 * train_loss (mean over the epoch's samples as they were trained, dropout and all), validation_loss,
 * validation_accuracy, ... (metrics.h). *diverged: the training loss, a weight or an unscaled
 * gradient is no longer finite, or fp16's loss scale stays too small. Where a device with bounded memory
 * refuses some in the first epoch, that is trained again with a smaller micro batch. */
int trainer_epoch(struct trainer *trainer, json_t **metrics, bool *diverged, struct error *err);
/* New object of a split's metrics under a prefix ("test_"), in evaluation mode; empty for a split without
 * rows. */
int trainer_evaluate(struct trainer *trainer, enum split split, const char *prefix, json_t **metrics,
                     struct error *err);

/* With settings.objective_best the caller, who knows the metric and its goal, says which epoch is the best so
 * far: its weights are kept, also across checkpoints. Without the setting nothing is kept. trainer_best:
 * false if there is none; resource may be NULL. trainer_restore_best puts them in place, for a last
 * evaluation and a last save. */
void trainer_keep_best(struct trainer *trainer, double objective);
bool trainer_best(const struct trainer *trainer, double *objective, int64_t *resource);
void trainer_restore_best(struct trainer *trainer);

/* checkpoint.h: written atomically, exact resume; load replaces all state or, on failure, none. take: the
 * same from a file that is open. */
int trainer_save(struct trainer *trainer, const char *path, struct error *err);
int trainer_load(struct trainer *trainer, const char *path, struct error *err);
int trainer_take(struct trainer *trainer, const struct safetensors *file, struct error *err);

#endif
