/* A trial's checkpoint: everything that makes it go on bitwise as if it had never stopped, as a safetensors
 * file.
 *
 * Tensors: layers.I.weight (outputs, inputs) and layers.I.bias (outputs), as PyTorch has them; the same names
 * behind "optimizer.velocity.", "optimizer.mean.", "optimizer.square." and "best.". Metadata (strings):
 * format, model, activation, optimizer, task, epochs, steps, seed, numerics (the device's name),
 * preprocessing (JSON), target_mean, target_sd, and best_epoch and best_objective where there is a best. */
#ifndef RUNG_WORKER_TRAINING_CHECKPOINT_H
#define RUNG_WORKER_TRAINING_CHECKPOINT_H

#include "worker/training/memory.h"

/* How far a trial has come. */
struct progress {
    int64_t epochs, steps; /* completed */
    int64_t best_epoch;    /* 0: none kept */
    double best_objective;
};

/* What a checkpoint is of; all borrowed. */
struct checkpoint_subject {
    const struct training_settings *settings;
    const struct dataset *dataset;
    const struct model *model;
    const struct memory *memory;
    struct device *device;
    uint64_t seed;
};

int checkpoint_write(const char *path, const struct checkpoint_subject *subject,
                     const struct progress *progress, struct error *err);
/* Fills the device's memory and *progress; on failure neither is touched. ERROR_RESOURCE for a file that is
 * damaged or of another model, optimizer, task or seed. */
int checkpoint_read(const char *path, const struct checkpoint_subject *subject, struct progress *progress,
                    struct error *err);

#endif
