/* Evenly spaced values. */
#include "search/distribution.h"

#include <math.h>

/* Beyond 2^53 points neighbouring k are no longer different doubles. */
#define LATTICE_LIMIT 9007199254740992.0
#define DECIMAL_PLACES 15

/* value * scale, when that is a whole number that a double holds exactly and value is its correct quotient.
 */
static bool scale_exactly(double value, double scale, double *whole)
{
    *whole = nearbyint(value * scale);
    return fabs(*whole) < LATTICE_LIMIT && *whole / scale == value;
}

double lattice_value(const struct parameter *parameter, int64_t k)
{
    double scale = 1, low, step;
    for (int places = 0; places <= DECIMAL_PLACES; places++, scale *= 10) {
        if (!scale_exactly(parameter->minimum, scale, &low) || !scale_exactly(parameter->step, scale, &step))
            continue;
        /* Whole numbers add up exactly, and dividing by a power of ten below 10^22 rounds once: the result is
         * the decimal a person would write. */
        double sum = low + (double)k * step;
        if (fabs((double)k * step) < LATTICE_LIMIT && fabs(sum) < LATTICE_LIMIT)
            return sum / scale;
        break;
    }
    return parameter->minimum + (double)k * parameter->step;
}

int64_t lattice_size(const struct parameter *parameter)
{
    if (!(parameter->step > 0) || !(parameter->maximum > parameter->minimum))
        return 1;
    double steps = floor((parameter->maximum - parameter->minimum) / parameter->step);
    if (!(steps < LATTICE_LIMIT))
        return (int64_t)LATTICE_LIMIT;
    /* The quotient was rounded: 0.3 / 0.1 is below 3. */
    int64_t last = (int64_t)steps;
    if (lattice_value(parameter, last) > parameter->maximum)
        last--;
    else if (lattice_value(parameter, last + 1) <= parameter->maximum)
        last++;
    return last + 1;
}

int64_t integer_count(const struct parameter *parameter)
{
    double count = parameter->maximum - parameter->minimum + 1;
    return count < 1 ? 1 : count >= 0x1p63 ? INT64_MAX : (int64_t)count;
}
