/* The optimizers: which numbers a step of one lane uses; the device does the arithmetic (kernels/device.h has
 * the formulas). */
#ifndef RUNG_WORKER_TRAINING_OPTIMIZER_H
#define RUNG_WORKER_TRAINING_OPTIMIZER_H

#include "worker/training/memory.h"

/* Step `step` (from 0) of one lane, at the schedule's learning rate, with the gradients in memory. */
void optimizer_step(const struct training_settings *settings, const struct derived *derived,
                    const struct model *model, const struct memory *memory, struct device *device,
                    int64_t step);

#endif
