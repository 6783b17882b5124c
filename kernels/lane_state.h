/* One lane's own numbers, in the lane's device memory, so that a step recorded once can be replayed: the
 * device moves on by itself, without the host. Plain data, the same layout for every backend. */
#ifndef RUNG_KERNELS_LANE_STATE_H
#define RUNG_KERNELS_LANE_STATE_H

#include <stdint.h>

/* Dynamic loss scaling of fp16 (Micikevicius et al. 2018). */
#define LOSS_SCALE_INITIAL 65536.0
#define LOSS_SCALE_GROWTH_STEPS 2000 /* clean steps until it doubles; each overflow halves it */
#define LOSS_SCALE_SMALL_STEPS 100   /* steps in a row with a scale below 1: diverged */

struct lane_state {
    /* Set by the host when a trial starts or goes on. */
    uint64_t key;   /* of dropout */
    double dropout; /* probability, in [0, 1) */
    double label_smoothing, huber_delta;
    double momentum, weight_decay, beta1, beta2, epsilon;
    double clip_norm; /* 0: none */
    int32_t nesterov; /* 0 or 1 */
    int32_t scaled;   /* 1: loss_scale adapts (fp16) */
    /* Set by the host before each epoch. */
    int64_t epoch_first; /* the step it begins with */
    double loss;         /* 0; summed over the epoch's rows */
    /* Moved on by the device. */
    int64_t step;           /* of the trial, from 0: batches taken; those skipped count */
    int64_t updates;        /* optimizer steps done */
    int64_t skipped;        /* steps whose gradient was not finite, under `scaled` */
    double learning_rate;   /* of this step (step_begin) */
    double gradient_norm;   /* of this step (measure_gradient) */
    double gradient_factor; /* 1 where nothing measures */
    double loss_scale;      /* a power of 2; 1 unless `scaled` */
    int32_t clean_steps;    /* since the scale last changed */
    int32_t small_steps;    /* with a scale below 1, in a row */
    int32_t finite;         /* of this step: 0 skips the update; 1 where nothing measures */
    int32_t reserved;
};

/* The end of a step, the same in every backend: counts it, and moves the loss scale. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline void
    lane_state_end_step(struct lane_state *state)
{
    state->step++;
    if (state->finite)
        state->updates++;
    if (!state->scaled)
        return;
    if (!state->finite) {
        state->skipped++;
        state->clean_steps = 0;
        state->loss_scale *= 0.5;
    } else if (++state->clean_steps == LOSS_SCALE_GROWTH_STEPS) {
        state->clean_steps = 0;
        state->loss_scale *= 2;
    }
    state->small_steps = state->loss_scale < 1 ? state->small_steps + 1 : 0;
}

#endif
