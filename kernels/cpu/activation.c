/* Element-wise loops of a layer: bias and activation forward, activation backward, the bias' gradient. */
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/loops_internal.h"

/* gelu(x) = x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3), s the logistic function: the tanh form without a
 * tanh. */
#define GELU_A ((real)1.5957691216057308)  /* 2 sqrt(2/pi) */
#define GELU_B ((real)0.07135481627260025) /* 2 sqrt(2/pi) 0.044715 */

/* exp(-2u); s = 1 / (1 + it), and 1 - s = it * s without cancellation. */
static inline real gelu_tail(real x)
{
    return exponential(-x * (GELU_A + GELU_B * x * x));
}

/* d/dx (x s) = s + x s (1 - s) (A + 3 B x^2). Since the exponential ends at 1e-38 and not at 0, the last term
 * would grow like x^3 far out; at this bound it is 1e-27. NaN stays NaN. */
#define GELU_FAR ((real)1e4)

static inline real gelu_slope(real x)
{
    x = x > GELU_FAR ? GELU_FAR : x;
    x = x < -GELU_FAR ? -GELU_FAR : x;
    real tail = gelu_tail(x), s = 1 / (1 + tail);
    return s + x * s * (tail * s) * (GELU_A + 3 * GELU_B * x * x);
}

static void row_identity(real *restrict y, const real *restrict bias, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        y[j] += bias[j];
}

static void row_relu(real *restrict y, const real *restrict bias, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        real v = y[j] + bias[j];
        y[j] = v < 0 ? 0 : v; /* NaN stays NaN */
    }
}

static void row_gelu(real *restrict y, const real *restrict bias, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        real v = y[j] + bias[j];
        y[j] = v / (1 + gelu_tail(v));
    }
}

static void row_keep(real *restrict before, const real *restrict y, const real *restrict bias,
                     int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        before[j] = y[j] + bias[j];
}

void LOOPS(bias_activation)(real *y, real *before, const real *bias, int64_t rows, int64_t columns,
                            enum device_activation f)
{
    for (int64_t i = 0; i < rows; i++, y += columns) {
        if (before)
            row_keep(before + i * columns, y, bias, columns);
        if (f == DEVICE_RELU)
            row_relu(y, bias, columns);
        else if (f == DEVICE_GELU)
            row_gelu(y, bias, columns);
        else
            row_identity(y, bias, columns);
    }
}

void LOOPS(column_sums)(real *restrict sums, const real *restrict x, int64_t rows, int64_t columns,
                        bool accumulate)
{
    if (!accumulate)
        for (int64_t j = 0; j < columns; j++)
            sums[j] = 0;
    for (int64_t i = 0; i < rows; i++, x += columns)
        for (int64_t j = 0; j < columns; j++)
            sums[j] += x[j];
}

static void multiply(real *restrict gradient, const real *restrict mask, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        gradient[i] *= mask[i];
}

void LOOPS(activation_backward)(real *restrict gradient, const real *restrict saved,
                                const real *restrict mask, int64_t count, enum device_activation f)
{
    if (mask)
        multiply(gradient, mask, count);
    if (f == DEVICE_RELU)
        for (int64_t i = 0; i < count; i++)
            gradient[i] = saved[i] > 0 ? gradient[i] : 0;
    else if (f == DEVICE_GELU)
        for (int64_t i = 0; i < count; i++)
            gradient[i] *= gelu_slope(saved[i]);
}
