/* Element-wise loops of a layer: bias and activation forward, activation backward, the bias' gradient. */
#include "kernels/cpu/curves.h"
#include "kernels/cpu/stored.h"

#include <string.h>

/* y = f(x); may be the same. */
#define EACH(expression)                                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        real v = x[i];                                                                                       \
        x[i] = (expression);                                                                                 \
    }

static void apply(real *x, int64_t count, enum device_activation f)
{
    switch (f) {
    case DEVICE_IDENTITY:
        break;
    case DEVICE_RELU:
        EACH(v < 0 ? 0 : v) /* NaN stays NaN */
        break;
    case DEVICE_GELU:
        EACH(v / (1 + gelu_tail(v)))
        break;
    case DEVICE_SILU:
        EACH(v / (1 + exponential(-v)))
        break;
    case DEVICE_TANH:
        EACH(hyperbolic_tangent(v))
        break;
    }
}

/* As apply, of x + bias in one pass. */
#define EACH_BIASED(expression)                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        real v = x[i] + bias[i];                                                                             \
        x[i] = (expression);                                                                                 \
    }

static void apply_biased(real *restrict x, const real *restrict bias, int64_t count, enum device_activation f)
{
    switch (f) {
    case DEVICE_IDENTITY:
        EACH_BIASED(v)
        break;
    case DEVICE_RELU:
        EACH_BIASED(v < 0 ? 0 : v)
        break;
    case DEVICE_GELU:
        EACH_BIASED(v / (1 + gelu_tail(v)))
        break;
    case DEVICE_SILU:
        EACH_BIASED(v / (1 + exponential(-v)))
        break;
    case DEVICE_TANH:
        EACH_BIASED(hyperbolic_tangent(v))
        break;
    }
}

static void keep(void *before, int64_t at, const real *restrict x, const real *restrict bias, int64_t count,
                 enum device_precision precision)
{
    real block[STRETCH], *restrict kept = stored_open(block, before, at, precision);

    for (int64_t i = 0; i < count; i++)
        kept[i] = x[i] + bias[i];
    stored_close(before, at, kept, count, precision);
}

void LOOPS(bias_activation)(real *x, void *y, void *before, const real *bias, int64_t rows, int64_t columns,
                            enum device_activation f, enum device_precision precision)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t first = 0, count; first < columns; first += count) {
            int64_t at = i * columns + first;
            count = stretch_of(columns - first, precision);
            if (before)
                keep(before, at, x + at, bias + first, count, precision);
            apply_biased(x + at, bias + first, count, f);
            if (y)
                stored_close(y, at, x + at, count, precision);
        }
}

void LOOPS(activation)(void *y, const void *x, int64_t count, enum device_activation f,
                       enum device_precision precision)
{
    for (int64_t at = 0, size; at < count; at += size) {
        real block[STRETCH], *to = stored_open(block, y, at, precision);
        size = stretch_of(count - at, precision);
        const real *from = stored_read(to, x, at, size, precision);
        if (to != from)
            memcpy(to, from, (size_t)size * sizeof(*to));
        apply(to, size, f);
        stored_close(y, at, to, size, precision);
    }
}

static void add_reals(real *restrict y, const real *restrict x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] += x[i];
}

void LOOPS(add)(void *y, const void *x, int64_t count, enum device_precision precision)
{
    for (int64_t at = 0, size; at < count; at += size) {
        real sum[STRETCH], term[STRETCH];
        size = stretch_of(count - at, precision);
        stored_read(sum, y, at, size, precision);
        real *to = stored_open(sum, y, at, precision);
        add_reals(to, stored_read(term, x, at, size, precision), size);
        stored_close(y, at, to, size, precision);
    }
}

void LOOPS(column_sums)(real *sums, const void *x, int64_t rows, int64_t columns, bool accumulate,
                        enum device_precision precision)
{
    real block[STRETCH];

    if (!accumulate)
        memset(sums, 0, (size_t)columns * sizeof(*sums));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t first = 0, count; first < columns; first += count) {
            count = stretch_of(columns - first, precision);
            add_reals(sums + first, stored_read(block, x, i * columns + first, count, precision), count);
        }
}

static void multiply(real *restrict gradient, const unsigned char *restrict mask, real factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        gradient[i] *= (real)mask[i] * factor;
}

#define EACH_SLOPE(expression)                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        real v = saved[i];                                                                                   \
        gradient[i] = (expression);                                                                          \
    }

static void slopes(real *restrict gradient, const real *restrict saved, int64_t count,
                   enum device_activation f)
{
    switch (f) {
    case DEVICE_IDENTITY:
        break;
    case DEVICE_RELU:
        EACH_SLOPE(v > 0 ? gradient[i] : 0)
        break;
    case DEVICE_GELU:
        EACH_SLOPE(gradient[i] * gelu_slope(v))
        break;
    case DEVICE_SILU:
        EACH_SLOPE(gradient[i] * silu_slope(v))
        break;
    case DEVICE_TANH:
        EACH_SLOPE(gradient[i] * (1 - v * v))
        break;
    }
}

void LOOPS(activation_backward)(void *gradient, const void *saved, const unsigned char *mask, int64_t count,
                                enum device_activation f, const struct lane_state *state,
                                enum device_precision precision)
{
    real factor = mask ? dropout_factor(state) : 1;

    for (int64_t at = 0, size; at < count; at += size) {
        real block[STRETCH], saved_block[STRETCH];
        size = stretch_of(count - at, precision);
        stored_read(block, gradient, at, size, precision);
        real *g = stored_open(block, gradient, at, precision);
        if (mask)
            multiply(g, mask + at, factor, size);
        if (f != DEVICE_IDENTITY)
            slopes(g, stored_read(saved_block, saved, at, size, precision), size, f);
        stored_close(gradient, at, g, size, precision);
    }
}
