/* Warm-up, then constant or cosine. */
#include "worker/training/schedule.h"

#include <math.h>

#define PI 3.14159265358979323846

double schedule_learning_rate(const struct training_settings *settings, const struct derived *derived,
                              int64_t step)
{
    double peak = derived->peak_learning_rate;
    int64_t warmup = derived->warmup_steps, total = derived->total_steps;

    if (step < warmup) {
        double start = settings->rule == SCALING_NONE ? 0 : fmin(1, 1 / derived->scale);
        return peak * (start + (1 - start) * (double)(step + 1) / (double)warmup);
    }
    if (settings->schedule == SCHEDULE_CONSTANT)
        return peak;
    /* Training beyond the last epoch keeps the last value. */
    double share = step < total ? (double)(step - warmup) / (double)(total - warmup) : 1;
    return peak * 0.5 * (1 + cos(PI * share));
}
