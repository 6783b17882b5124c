/* The optimizers: which numbers a trial's steps use; the device does the arithmetic (kernels/device.h has the
 * formulas). */
#ifndef RUNG_WORKER_TRAINING_OPTIMIZER_H
#define RUNG_WORKER_TRAINING_OPTIMIZER_H

#include "worker/training/memory.h"

/* The state of a trial that has done nothing yet. key: of dropout, the trial's seed. */
struct lane_state optimizer_start(const struct training_settings *settings, const struct derived *derived,
                                  enum device_precision precision, uint64_t key);

/* The update that ends a step, with the gradients in memory and the numbers in its state. The gradient is
 * measured first where something needs that: clipping, or fp16's loss scale. */
void optimizer_update(const struct training_settings *settings, const struct model *model,
                      const struct memory *memory, struct device *device, struct lanes lanes);

#endif
