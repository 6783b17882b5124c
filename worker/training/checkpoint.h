/* A trial's checkpoint: everything that makes it go on bitwise as if it had never stopped, as a safetensors
 * file.
 *
 * Tensors: as the model lists them, by the names and in the shapes PyTorch has for their like:
 * layers.I.weight (outputs, inputs), layers.I.bias, norms.I.{weight, bias, running_mean, running_var},
 * embeddings.I.weight (entries, width); of a resnet first.*, blocks.I.{norm, first, second}.*, norm.*,
 * head.*. The same names behind "optimizer.velocity.", "optimizer.mean.", "optimizer.square." and "best.".
 * Metadata (strings): format, task, model, norm, activation, loss, optimizer, epochs, steps, updates,
 * skipped, seed, numerics, preprocessing (JSON), target_mean, target_sd; with fp16 loss_scale, clean_steps
 * and small_steps; best_epoch and best_objective where there is a best.
 *
 * numerics is the class within which results are equal bit for bit: device, precision, micro batch. A trial
 * may go on from a checkpoint of another one; it is then equal up to rounding. */
#ifndef RUNG_WORKER_TRAINING_CHECKPOINT_H
#define RUNG_WORKER_TRAINING_CHECKPOINT_H

#include "worker/training/data.h"
#include "worker/training/loss.h"
#include "worker/training/memory.h"
#include "worker/training/safetensors.h"

/* How far a trial has come. */
struct progress {
    int64_t epochs;          /* completed */
    struct lane_state state; /* after them */
    int64_t best_epoch;      /* 0: none kept */
    double best_objective;
};

/* What a checkpoint is of; all borrowed. */
struct checkpoint_subject {
    const struct training_settings *settings;
    const struct derived *derived;
    const struct dataset *dataset;
    const struct model *model;
    enum loss_kind loss;
    const struct memory *memory;
    struct device *device;
    enum device_precision precision;
    uint64_t seed;
};

int checkpoint_write(const char *path, const struct checkpoint_subject *subject,
                     const struct progress *progress, struct error *err);
/* Fills the device's memory and those members of *progress that move, the others being set; on failure
 * neither is touched. *numerics: the class it was made in, to be freed, if that is another one; else NULL.
 * ERROR_RESOURCE for a file that is damaged, of an earlier format, or of another model, loss, optimizer, task
 * or seed. */
int checkpoint_read(const struct safetensors *file, const struct checkpoint_subject *subject,
                    struct progress *progress, char **numerics, struct error *err);

#endif
