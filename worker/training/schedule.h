/* The learning rate of each optimizer step. */
#ifndef RUNG_WORKER_TRAINING_SCHEDULE_H
#define RUNG_WORKER_TRAINING_SCHEDULE_H

#include "worker/training/settings.h"

#include <stdint.h>

/* Step t counts from 0, in optimizer steps; W = warmup_steps, T = total_steps, x = (t - W) / (T - W).
 *
 *     t < W:  peak (f0 + (1 - f0) (t + 1) / W)
 *     else:   peak s(t)
 *
 * Under lr_scaling f0 = min(1, 1 / scale): the gradual warm-up of Goyal et al. 2017, section 2.2, which
 * starts at the unscaled rate; else f0 = 0.
 *
 *     constant   1
 *     step       step_factor^floor((t - W) / P), P = max(1, round(step_epochs * steps of an epoch))
 *     cosine     (1 + cos(pi x)) / 2                      (Loshchilov & Hutter 2017, one period)
 *     linear     1 - x
 *     wsd        1 while x < 0.8, then (1 - x) / 0.2      (Hu et al. 2024, MiniCPM, section 4)
 *     one_cycle  cosine from 1/25 up to 1 over the first 0.3 T steps, then down to 1/250000 (Smith & Topin
 *                2018, in the form and with the numbers of PyTorch's OneCycleLR); W is 0
 *
 * Behind T the rate stays what it was at the end. */
double schedule_learning_rate(const struct training_settings *settings, const struct derived *derived,
                              int64_t step);

#endif
