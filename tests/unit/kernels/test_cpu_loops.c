/* Every table of loops this processor can run, against float64 references. */
#include "kernels/cpu/loops.h"

#include "base/random.h"
#include "kernels/cpu/exponential.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST 137 /* not a multiple of any vector, and longer than several */

static const struct cpu_loops *loops; /* the table under test */

static real value(uint32_t element, double scale)
{
    return (real)(scale * (philox4x32(42, element, 0, 0, 0).word[0] / 2147483648.0 - 1));
}

static void fill(real *x, int64_t count, uint32_t first, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = value(first + (uint32_t)i, scale);
}

static void assert_near(double found, double expected, double tolerance, const char *what, int64_t at)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s: %s %lld is %.9g, expected %.9g", loops->instruction_set, what, (long long)at, found,
                 expected);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double activate(double x, enum device_activation f)
{
    switch (f) {
    case DEVICE_GELU:
        return gelu(x);
    case DEVICE_RELU:
        return fmax(x, 0);
    case DEVICE_SILU:
        return x / (1 + exp(-x));
    case DEVICE_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* From the tanh form itself, not from the logistic one the loops use. */
static double slope(double x, enum device_activation f)
{
    double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), t = tanh(u);

    if (f == DEVICE_GELU)
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    if (f == DEVICE_SILU)
        return 1 / (1 + exp(-x)) + x / ((1 + exp(-x)) * (1 + exp(x)));
    if (f == DEVICE_TANH)
        return 1 - x * x; /* of the output */
    return f == DEVICE_RELU ? x > 0 : 1;
}

static void check_bias_activation(void)
{
    real y[3 * LONGEST], before[3 * LONGEST], sums[3 * LONGEST], bias[LONGEST];

    for (int64_t columns = 1; columns <= LONGEST; columns += 17)
        for (int f = DEVICE_IDENTITY; f <= DEVICE_TANH; f++) {
            fill(y, 3 * columns, 0, 6);
            fill(bias, columns, 1000, 2);
            for (int64_t i = 0; i < 3 * columns; i++)
                sums[i] = y[i] + bias[i % columns];
            loops->bias_activation(y, NULL, before, bias, 3, columns, (enum device_activation)f, DEVICE_FP32);
            for (int64_t i = 0; i < 3 * columns; i++) {
                double expected = activate(sums[i], (enum device_activation)f);
                assert_true(before[i] == sums[i]);
                assert_near(y[i], expected, 3e-7 * (1 + fabs(expected)), "activation", i);
            }
        }
}

static void check_activation_extremes(void)
{
    const real inputs[] = {-1e30f, -100, -12, -0.0f, 0, 12, 100, 1e30f, INFINITY};
    const int count = sizeof(inputs) / sizeof(*inputs);
    real y[16], zero[16] = {0};

    memcpy(y, inputs, sizeof(inputs));
    loops->bias_activation(y, NULL, NULL, zero, 1, count, DEVICE_GELU, DEVICE_FP32);
    for (int i = 0; i < count; i++)
        assert_true(inputs[i] > 1 ? y[i] == inputs[i] : fabs((double)y[i]) < 1e-5);
    y[0] = y[5] = NAN;
    for (int f = DEVICE_IDENTITY; f <= DEVICE_TANH; f++) {
        loops->bias_activation(y, NULL, NULL, zero, 1, 16, (enum device_activation)f, DEVICE_FP32);
        assert_true(isnan(y[0]) && isnan(y[5]) && !isnan(y[1]));
    }
}

static void check_activation_backward(void)
{
    const struct lane_state state = {.dropout = 0.25};
    real x[LONGEST], gradient[LONGEST], given[LONGEST];
    unsigned char mask[LONGEST];

    fill(x, LONGEST, 0, 5);
    fill(given, LONGEST, 500, 1);
    for (int i = 0; i < LONGEST; i++)
        mask[i] = i % 3 != 0;
    for (int f = DEVICE_RELU; f <= DEVICE_TANH; f++)
        for (int masked = 0; masked < 2; masked++) {
            memcpy(gradient, given, sizeof(given));
            loops->activation_backward(gradient, x, masked ? mask : NULL, LONGEST, (enum device_activation)f,
                                       &state, DEVICE_FP32);
            for (int i = 0; i < LONGEST; i++)
                assert_near(gradient[i],
                            given[i] * (masked ? mask[i] / 0.75 : 1) * slope(x[i], (enum device_activation)f),
                            4e-6, "backward", i);
        }
}

/* Far out the slope is 1 or 0; its polynomial alone would overflow there. */
static void check_slope_extremes(void)
{
    const real inputs[] = {20, 1e4f, 1e6f, 1e12f, 1e16f, 1e20f, 1e30f, INFINITY};
    const int count = sizeof(inputs) / sizeof(*inputs);
    real gradient[20], x[20];

    for (int f = DEVICE_GELU; f <= DEVICE_SILU; f++)
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int i = 0; i < 20; i++) {
                gradient[i] = 1;
                x[i] = (real)sign * inputs[i % count];
            }
            loops->activation_backward(gradient, x, NULL, 20, (enum device_activation)f, NULL, DEVICE_FP32);
            for (int i = 0; i < 20; i++)
                assert_near(gradient[i], sign > 0 ? 1 : 0, 1e-6, "slope", i);
        }
    x[3] = NAN;
    loops->activation_backward(gradient, x, NULL, 20, DEVICE_GELU, NULL, DEVICE_FP32);
    assert_true(isnan(gradient[3]) && !isnan(gradient[4]));
}

static void check_column_sums(void)
{
    real x[5 * LONGEST], sums[LONGEST];

    fill(x, 5 * LONGEST, 0, 1);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        for (int j = 0; j < LONGEST; j++)
            sums[j] = 10;
        loops->column_sums(sums, x, 5, LONGEST, accumulate, DEVICE_FP32);
        for (int j = 0; j < LONGEST; j++) {
            double expected = accumulate ? 10 : 0;
            for (int i = 0; i < 5; i++)
                expected += x[i * LONGEST + j];
            assert_near(sums[j], expected, 3e-6, "column sum", j);
        }
    }
}

/* As device.h says. */
static bool is_dropped(int64_t e, uint32_t stream, const struct lane_state *state)
{
    int64_t r = e % 128;
    struct philox block =
        philox4x32(state->key, (uint32_t)(e / 128 * 16 + r % 16), 0, (uint32_t)state->step, stream);
    uint32_t word = block.word[r / 32], half = r / 16 % 2 ? word >> 16 : word & 0xffff;

    return half < (uint32_t)round(state->dropout * 65536);
}

static void check_dropout(void)
{
    const struct lane_state draw = {.key = 0xfedcba9876543210, .step = 17, .dropout = 0.3};
    const int64_t firsts[] = {0, 1, 63, 64, 127, 128, 1000, 131071};
    real y[LONGEST];
    unsigned char mask[LONGEST];

    for (size_t f = 0; f < sizeof(firsts) / sizeof(*firsts); f++)
        for (int64_t count = 1; count <= LONGEST; count += 34) {
            fill(y, count, 0, 1);
            loops->dropout(y, mask, firsts[f], count, 5, &draw, DEVICE_FP32);
            for (int64_t i = 0; i < count; i++) {
                double factor =
                    is_dropped(firsts[f] + i, 5, &draw) ? 0 : 65536 / (65536 - round(0.3 * 65536));
                assert_int_equal(mask[i], factor > 0);
                assert_near(y[i], value((uint32_t)i, 1) * factor, 1e-6, "dropped", i);
            }
        }
}

/* The share dropped within 5 standard errors, and so the expectation of what is kept. */
static void check_dropout_mean(void)
{
    enum { COUNT = 200000 };
    const double probabilities[] = {0, 0.1, 0.5, 0.9999999};
    real *y = malloc(COUNT * sizeof(*y));
    unsigned char *mask = malloc(COUNT);

    assert_true(y && mask);
    for (int p = 0; p < 4; p++) {
        struct lane_state draw = {.key = 99, .step = 3, .dropout = probabilities[p]};
        double mean = 0, error = sqrt(draw.dropout / (1 - draw.dropout) / COUNT);
        for (int i = 0; i < COUNT; i++)
            y[i] = 1;
        loops->dropout(y, mask, 0, COUNT, 0, &draw, DEVICE_FP32);
        for (int i = 0; i < COUNT; i++)
            mean += (double)y[i] / COUNT;
        assert_near(mean, 1, 5 * error + 1e-6, "mean after dropout", p);
    }
    free(y);
    free(mask);
}

static double reference_loss(const real *logits, int32_t label, int64_t classes, double *softmax)
{
    double maximum = -INFINITY, sum = 0;

    for (int64_t j = 0; j < classes; j++)
        maximum = fmax(maximum, logits[j]);
    for (int64_t j = 0; j < classes; j++)
        sum += softmax[j] = exp(logits[j] - maximum);
    for (int64_t j = 0; j < classes; j++)
        softmax[j] /= sum;
    return log(sum) + maximum - logits[label];
}

static void check_cross_entropy(void)
{
    const double scales[] = {1, 30, 1000}; /* 1000: naive exponentials would overflow */
    real logits[4 * LONGEST], gradient[4 * LONGEST];
    double softmax[LONGEST];
    int32_t label[4];

    for (int64_t classes = 2; classes <= LONGEST; classes += classes < 20 ? 1 : 29)
        for (int s = 0; s < 3; s++) {
            struct lane_state state = {.loss = 0};
            double expected = 0, scale = 0.125;
            fill(logits, 4 * classes, (uint32_t)s, scales[s]);
            for (int i = 0; i < 4; i++)
                label[i] = (int32_t)(i * 5 % classes);
            loops->softmax_cross_entropy(gradient, logits, label, NULL, 4, classes, scale, &state);
            for (int i = 0; i < 4; i++) {
                expected += reference_loss(logits + i * classes, label[i], classes, softmax);
                for (int64_t j = 0; j < classes; j++)
                    assert_near(gradient[i * classes + j], scale * (softmax[j] - (j == label[i])), 1e-7,
                                "cross-entropy gradient", j);
            }
            assert_near(state.loss, expected, 1e-6 * (1 + expected), "cross-entropy", classes);
        }
    logits[1] = NAN;
    struct lane_state state = {.loss = 0};
    loops->softmax_cross_entropy(gradient, logits, label, NULL, 1, 20, 1, &state);
    assert_true(isnan(state.loss));
}

/* Without a gradient the moments end at exactly nothing, not among the denormals. */
static void check_moments_end(void)
{
    const struct lane_state state = {.learning_rate = 0.01,
                                     .momentum = 0.5,
                                     .beta1 = 0.5,
                                     .beta2 = 0.5,
                                     .epsilon = 1e-8,
                                     .gradient_factor = 1,
                                     .updates = 1000};
    real w[LONGEST], g[LONGEST] = {0}, m[LONGEST], v[LONGEST], velocity[LONGEST];

    fill(w, LONGEST, 0, 1);
    fill(m, LONGEST, 0, 1);
    fill(velocity, LONGEST, 0, 1);
    for (int i = 0; i < LONGEST; i++)
        v[i] = 1;
    for (int step = 0; step < 110; step++) { /* 2^-110 = 8e-34 */
        loops->adam(w, g, m, v, LONGEST, true, true, &state);
        loops->sgd(w, g, velocity, LONGEST, true, &state);
    }
    for (int i = 0; i < LONGEST; i++)
        assert_true(m[i] == 0 && v[i] == 0 && velocity[i] == 0 && isfinite(w[i]));
    g[3] = NAN;
    loops->adam(w, g, m, v, LONGEST, true, true, &state);
    assert_true(isnan(m[3]) && isnan(v[3]) && isnan(w[3]));
}

static void check_finite(void)
{
    const real bad[] = {NAN, INFINITY, -INFINITY};
    real x[LONGEST];

    for (int64_t count = 0; count <= LONGEST; count++) {
        fill(x, LONGEST, 0, 1e38);
        assert_true(loops->finite(x, count));
        if (count < LONGEST) {
            x[count] = bad[count % 3]; /* just behind the end */
            assert_true(loops->finite(x, count));
            assert_false(loops->finite(x, count + 1));
        }
    }
}

static void each_table(void (*check)(void))
{
    int tables = 0;

    for (int i = 0; cpu_loops_all[i]; i++)
        if (cpu_loops_runs_here(cpu_loops_all[i])) {
            loops = cpu_loops_all[i];
            check();
            tables++;
        }
    assert_true(tables >= 1);
}

#define EACH_TABLE(name)                                                                                     \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        each_table(check_##name);                                                                            \
    }
EACH_TABLE(bias_activation)
EACH_TABLE(activation_extremes)
EACH_TABLE(activation_backward)
EACH_TABLE(slope_extremes)
EACH_TABLE(column_sums)
EACH_TABLE(dropout)
EACH_TABLE(dropout_mean)
EACH_TABLE(cross_entropy)
EACH_TABLE(moments_end)
EACH_TABLE(finite)

/* Two units in the last place over the whole range, as the header says. */
static void test_exponential_is_close(void **state)
{
    double worst = 0;

    (void)state;
    for (int i = -87000; i <= 88000; i++) {
        float x = (float)(i / 1000.0), found = exponential(x), expected = (float)exp((double)x);
        double ulp = nextafterf(expected, INFINITY) - expected;
        worst = fmax(worst, fabs((double)found - exp((double)x)) / ulp);
    }
    if (worst > 2)
        fail_msg("exponential is off by %.2f units in the last place", worst);
    assert_true(exponential(0) == 1);
    assert_true(exponential(-1e30f) < 2e-38f && exponential(-INFINITY) >= 0);
    assert_true(isfinite(exponential(INFINITY)) && exponential(1e30f) > 1e38f);
    assert_true(isnan(exponential(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential_is_close),
        cmocka_unit_test(test_bias_activation),
        cmocka_unit_test(test_activation_extremes),
        cmocka_unit_test(test_activation_backward),
        cmocka_unit_test(test_slope_extremes),
        cmocka_unit_test(test_column_sums),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_dropout_mean),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_moments_end),
        cmocka_unit_test(test_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
