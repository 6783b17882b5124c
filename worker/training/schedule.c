/* Warm-up, then one of the schedules. */
#include "worker/training/schedule.h"

#include <math.h>

#define PI 3.14159265358979323846

#define DECAY_SHARE 0.2 /* of wsd */
/* of one_cycle */
#define RISE_SHARE 0.3
#define RISE_FROM (1 / 25.0)
#define FALL_TO (RISE_FROM / 1e4)

/* From 1 at x = 0 to 0 at x = 1. */
static double half_cosine(double x)
{
    return 0.5 * (1 + cos(PI * x));
}

static double step_factor(const struct training_settings *settings, const struct derived *derived,
                          int64_t step)
{
    double period = round(settings->step_epochs * (double)derived->steps_per_epoch);

    return pow(settings->step_factor, floor((double)step / fmax(period, 1)));
}

/* The peak is at step 0.3 T - 1, the end at T - 1. */
static double one_cycle(int64_t step, int64_t total)
{
    double top = RISE_SHARE * (double)total - 1, end = (double)total - 1, t = (double)step;

    if (t <= top)
        return 1 - (1 - RISE_FROM) * half_cosine(t / top);
    return t < end ? FALL_TO + (1 - FALL_TO) * half_cosine((t - top) / (end - top)) : FALL_TO;
}

static double factor(const struct training_settings *settings, const struct derived *derived, int64_t step)
{
    int64_t warmup = derived->warmup_steps, total = derived->total_steps;
    double share = step < total ? (double)(step - warmup) / (double)(total - warmup) : 1;

    switch (settings->schedule) {
    case SCHEDULE_CONSTANT:
        break;
    case SCHEDULE_STEP:
        return step_factor(settings, derived, (step < total ? step : total - 1) - warmup);
    case SCHEDULE_COSINE:
        return half_cosine(share);
    case SCHEDULE_LINEAR:
        return 1 - share;
    case SCHEDULE_ONE_CYCLE:
        return one_cycle(step, total);
    case SCHEDULE_WSD:
        return fmin(1, (1 - share) / DECAY_SHARE);
    }
    return 1;
}

double schedule_learning_rate(const struct training_settings *settings, const struct derived *derived,
                              int64_t step)
{
    double peak = derived->peak_learning_rate;

    if (step < derived->warmup_steps) {
        double start = settings->rule == SCALING_NONE ? 0 : fmin(1, 1 / derived->scale);
        return peak * (start + (1 - start) * (double)(step + 1) / (double)derived->warmup_steps);
    }
    return peak * factor(settings, derived, step);
}
