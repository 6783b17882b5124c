/* The learning rate of each optimizer step. */
#ifndef RUNG_WORKER_TRAINING_SCHEDULE_H
#define RUNG_WORKER_TRAINING_SCHEDULE_H

#include "worker/training/settings.h"

#include <stdint.h>

/* Step t counts from 0, in optimizer steps; W = warmup_steps, T = total_steps.
 *
 *     t < W:  peak (f0 + (1 - f0) (t + 1) / W)
 *     else:   peak s((t - W) / (T - W))
 *
 * Under lr_scaling f0 = min(1, 1 / scale): the gradual warm-up of Goyal et al. 2017, section 2.2, which
 * starts at the unscaled rate; else f0 = 0. s is 1, or (1 + cos(pi x)) / 2 (Loshchilov & Hutter 2017, one
 * period). */
double schedule_learning_rate(const struct training_settings *settings, const struct derived *derived,
                              int64_t step);

#endif
